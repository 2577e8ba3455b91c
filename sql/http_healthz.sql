-- http_healthz: can leases be read and written, GET /healthz.
-- binds  :locked_ms :write_error INTEGER (see fcgi/stats.h)
-- yields status, body, retry_after, expires_at (see fcgi/route.h)
-- 1032, SQLITE_READONLY_DBMOVED, is looked for at each request.
-- "locked" is told only after a second: short waits are nothing to heal.

SELECT
    iif(ill IS NULL, 200, 503) AS status,
    CASE WHEN ill IS NULL THEN json_object('status', 'ok')
        ELSE json_object(
            'type', 'about:blank', 'title', 'Service Unavailable',
            'status', 503, 'code', ill,
            'detail', 'Leases can be read, not written.') END AS body,
    iif(ill IS NULL, NULL, 1) AS retry_after,
    NULL AS expires_at
FROM (
    SELECT CASE WHEN :locked_ms > 1000 THEN 'busy'
        WHEN :write_error & 255 = 13 THEN 'storage_full'
        WHEN :write_error NOT IN (0, 1032) THEN 'read_only' END AS ill
    FROM main.lease_config WHERE id = 1);
