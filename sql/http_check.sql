-- http_check: does the token prove a lease, POST /v1/check.
-- binds  :resource TEXT, :token INTEGER, :min_remaining or NULL
-- yields status, body, retry_after, expires_at (see fcgi/route.h)

WITH
    asked(at) AS (
        SELECT CAST(round(lease_now() * 1000) AS INTEGER) LIMIT 1),
    checked(at, held) AS (
        SELECT at, lease_check(:resource, :token, coalesce(:min_remaining, 0))
        FROM asked LIMIT 1),
    decided(at, held, why) AS (
        SELECT at, held, CASE WHEN held THEN 'active'
            ELSE lease_why(:resource, :token) END
        FROM checked)
SELECT
    CASE WHEN held THEN 200 WHEN why = 'unknown' THEN 404 ELSE 410 END
        AS status,
    CASE WHEN held THEN json_object(
            'resource', lease.resource,
            'holder', lease.holder,
            'token', lease.token,
            'epoch', lease.epoch,
            'capacity', lease.capacity,
            'ttl', lease.ttl / 1000.0,
            'granted_at', lease_instant(lease.granted_at),
            'renewed_at', lease_instant(lease.renewed_at),
            'expires_at', lease_instant(lease.expires_at),
            'remaining', (lease.expires_at - decided.at) / 1000.0,
            'data', lease.data)
        WHEN why = 'unknown' THEN json_object(
            'type', 'about:blank', 'title', 'Not Found', 'status', 404,
            'code', 'unknown',
            'detail', 'No lease of this resource ever had this token, or it '
                || 'is long over.')
        WHEN why = 'active' THEN json_object(
            'type', 'about:blank', 'title', 'Gone', 'status', 410,
            'code', 'expiring',
            'detail', 'The lease ends before min_remaining seconds are over.')
        ELSE json_object(
            'type', 'about:blank', 'title', 'Gone', 'status', 410,
            'code', why,
            'detail', 'The lease is over: ' || why
                || '. Stop the work it protected.') END AS body,
    NULL AS retry_after,
    lease.expires_at AS expires_at
FROM decided LEFT JOIN main.lease AS lease
    ON held AND lease.epoch = (
        SELECT epoch FROM main.lease_event WHERE token = :token);
