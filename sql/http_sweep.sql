-- http_sweep: record leases that have run out, asked by the service itself.
-- binds  :limit INTEGER
-- yields status, body, retry_after, expires_at (see fcgi/route.h)

SELECT 200 AS status, lease_sweep(:limit) AS body, NULL AS retry_after,
    NULL AS expires_at;
