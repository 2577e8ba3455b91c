-- http_grant: take a lease, POST /v1/grant.
-- binds  :resource :holder TEXT, :ttl :capacity :data :request_id :actor
--        or NULL; :ahead INTEGER or NULL: how many wait for it before;
--        :waited INTEGER ms: how long this one has waited, or NULL; :look 1:
--        grant nothing, only look whether who holds it is in the way
-- yields status, body, retry_after, expires_at (see fcgi/route.h), the last
--        also of the first holder to run out when it is refused; status 0 when
--        a look could not tell
-- Nobody is granted anything while others wait before, but a repeated request
-- gets what it got.
-- The order is fixed: the grant, the time, then what is in the tables. LIMIT
-- keeps SQLite from merging the steps into one, and, unlike MATERIALIZED,
-- costs no table. A new grant counts from its own instant; the time is read
-- only for a refusal and where the grant may be a repeated one.
-- Where all holders run out at once, as one alone does, they need no order:
-- an ORDER BY opens a table, which costs more than to read them.

WITH
    granted(token) AS (
        SELECT CASE WHEN :look OR :ahead > 0 AND NOT EXISTS (
                SELECT 1 FROM main.lease_event
                WHERE request_id = :request_id AND resource = :resource
                    AND holder = :holder)
            THEN NULL ELSE lease_grant(:resource, :holder, coalesce(:ttl, 30),
                coalesce(:capacity, 1), :data, :request_id, :actor) END
        LIMIT 1),
    answered(token, ended, at) AS (
        SELECT token, CASE WHEN token IS NULL THEN (
                SELECT lease_why(resource, event.token)
                FROM main.lease_event AS event
                WHERE request_id = :request_id AND resource = :resource
                    AND holder = :holder) END,
            CASE WHEN token IS NULL OR :request_id IS NOT NULL
                THEN CAST(round(lease_now() * 1000) AS INTEGER) END
        FROM granted LIMIT 1),
    decided(token, ended, at, soonest, latest) AS (
        SELECT token, ended, at,
            CASE WHEN token IS NULL THEN (
                SELECT min(expires_at) FROM main.lease
                WHERE resource = :resource AND expires_at > at) END,
            CASE WHEN token IS NULL THEN (
                SELECT max(expires_at) FROM main.lease
                WHERE resource = :resource AND expires_at > at) END
        FROM answered LIMIT 1)
SELECT
    CASE WHEN decided.token IS NOT NULL THEN 200
        WHEN ended IS NOT NULL THEN 410
        WHEN :look AND NOT (
            SELECT coalesce(max(holder = :holder) OR count(*)
                >= min(coalesce(:capacity, 1), min(capacity)), 0)
            FROM main.lease WHERE resource = :resource AND expires_at > at)
        THEN 0
        ELSE 409 END AS status,
    CASE WHEN decided.token IS NOT NULL THEN (
        SELECT iif(:waited IS NULL, told,
            json_set(told, '$.waited', :waited / 1000.0))
        FROM (SELECT json_object(
            'resource', lease.resource,
            'holder', lease.holder,
            'token', lease.token,
            'epoch', lease.epoch,
            'capacity', lease.capacity,
            'ttl', lease.ttl / 1000.0,
            'granted_at', lease_instant(lease.granted_at),
            'renewed_at', lease_instant(lease.renewed_at),
            'expires_at', lease_instant(lease.expires_at),
            'remaining', (lease.expires_at
                - max(lease.renewed_at, coalesce(decided.at, 0))) / 1000.0,
            'data', lease.data) AS told))
        WHEN ended IS NOT NULL THEN json_object(
            'type', 'about:blank', 'title', 'Gone', 'status', 410,
            'code', ended,
            'detail', 'The lease that this Idempotency-Key got is over: '
                || ended || '. Ask with a new key.')
        ELSE json_object(
            'type', 'about:blank', 'title', 'Conflict', 'status', 409,
            'code', 'held',
            'detail', 'The resource is held.',
            'remaining', (soonest - at) / 1000.0,
            'ahead', coalesce(:ahead, 0),
            'holders', CASE WHEN soonest < latest THEN (
                SELECT json_group_array(json_object(
                    'holder', holder,
                    'expires_at', lease_instant(expires_at),
                    'remaining', (expires_at - at) / 1000.0))
                FROM (SELECT holder, expires_at FROM main.lease
                    WHERE resource = :resource AND expires_at > at
                    ORDER BY expires_at LIMIT 100))
            ELSE (
                SELECT json_group_array(json_object(
                    'holder', holder,
                    'expires_at', lease_instant(expires_at),
                    'remaining', (expires_at - at) / 1000.0))
                FROM (SELECT holder, expires_at FROM main.lease
                    WHERE resource = :resource AND expires_at > at
                    LIMIT 100)) END) END AS body,
    CASE WHEN ended IS NULL THEN max(1, min(60, (soonest - at + 999) / 1000))
        END AS retry_after,
    CASE WHEN decided.token IS NOT NULL THEN lease.expires_at
        WHEN ended IS NULL THEN soonest END AS expires_at
FROM decided LEFT JOIN main.lease AS lease
    ON lease.epoch = CASE WHEN :request_id IS NULL THEN decided.token
        WHEN decided.token IS NOT NULL THEN (
            SELECT epoch FROM main.lease
            WHERE resource = :resource AND holder = :holder) END;
