-- http_revoke: take leases away by force, POST /v1/revoke.
-- binds  :resource TEXT, :holder :reason :actor TEXT or NULL
-- yields status, body, retry_after, expires_at (see fcgi/route.h)

WITH done(revoked) AS (
    SELECT lease_revoke(:resource, :holder, :reason, :actor) LIMIT 1)
SELECT
    iif(revoked, 200, 404) AS status,
    CASE WHEN revoked THEN json_object('revoked', revoked)
        ELSE json_object(
            'type', 'about:blank', 'title', 'Not Found', 'status', 404,
            'code', 'unknown',
            'detail', 'No active lease to take away.') END AS body,
    NULL AS retry_after,
    NULL AS expires_at
FROM done;
