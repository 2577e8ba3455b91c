-- http_renew: extend a lease, POST /v1/renew.
-- binds  :resource TEXT, :token INTEGER, :ttl or NULL, :actor TEXT or NULL
-- yields status, body, retry_after, expires_at (see fcgi/route.h)

WITH
    renewed(token) AS (
        SELECT lease_renew(:resource, :token, :ttl, :actor) LIMIT 1),
    decided(token, why) AS (
        SELECT token, CASE WHEN token IS NULL
            THEN lease_why(:resource, :token) END
        FROM renewed)
SELECT
    CASE WHEN decided.token IS NOT NULL THEN 200
        WHEN why = 'unknown' THEN 404
        ELSE 410 END AS status,
    CASE WHEN decided.token IS NOT NULL THEN json_object(
            'resource', lease.resource,
            'holder', lease.holder,
            'token', lease.token,
            'epoch', lease.epoch,
            'capacity', lease.capacity,
            'ttl', lease.ttl / 1000.0,
            'granted_at', lease_instant(lease.granted_at),
            'renewed_at', lease_instant(lease.renewed_at),
            'expires_at', lease_instant(lease.expires_at),
            'remaining', (lease.expires_at - lease.renewed_at) / 1000.0,
            'data', lease.data)
        WHEN why = 'unknown' THEN json_object(
            'type', 'about:blank', 'title', 'Not Found', 'status', 404,
            'code', 'unknown',
            'detail', 'No lease of this resource ever had this token, or it '
                || 'is long over.')
        ELSE json_object(
            'type', 'about:blank', 'title', 'Gone', 'status', 410,
            'code', iif(why = 'active', 'expired', why),
            'detail', 'The lease is over: ' || why
                || '. Stop the work it protected.') END AS body,
    NULL AS retry_after,
    lease.expires_at AS expires_at
FROM decided LEFT JOIN main.lease AS lease
    ON lease.epoch = (
        SELECT epoch FROM main.lease_event WHERE token = decided.token);
