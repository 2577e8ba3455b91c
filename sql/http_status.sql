-- http_status: how the service and its clock are, GET /v1/status.
-- binds  :actor TEXT or NULL: who asks, :may TEXT a JSON array: what that user
--        may do, the service's figures (see fcgi/stats.h): :uptime_ms :queued
--        :queue_max :batches :operations :commit_us :locked_ms :write_error
--        :wal_pages :parked_max :waits :streams :polls :checkpoint_ms :checkpoint_blocked
-- yields status, body, retry_after, expires_at (see fcgi/route.h)

WITH now(lease, wall) AS MATERIALIZED (
    SELECT CAST(round(lease_now() * 1000) AS INTEGER),
        CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
SELECT 200 AS status,
    json_object(
        'version', lease_version(),
        'sqlite', sqlite_version(),
        'uptime', :uptime_ms / 1000.0,
        'clock', json_object(
            'now', lease_instant(now.lease),
            'lead', (now.lease - now.wall) / 1000.0),
        'leases', json_object(
            'active', (SELECT count(*) FROM main.lease)
                - (SELECT count(*) FROM main.lease
                    WHERE expires_at <= now.lease),
            'events', (SELECT count(*) FROM main.lease_event),
            'newest_token', coalesce((SELECT max(token)
                FROM main.lease_event), 0)),
        'queue', json_object(
            'waiting', :queued,
            'most', :queue_max,
            'batches', :batches,
            'operations', :operations,
            'commit', :commit_us / 1000000.0,
            'locked', :locked_ms / 1000.0,
            'write_error', :write_error),
        'parked', json_object(
            'grants', :waits,
            'streams', :streams,
            'polls', :polls,
            'most', :parked_max),
        'user', :actor,
        'may', json(:may),
        'durability', 'full',
        'checkpoint', json_object(
            'wal_pages', :wal_pages,
            'since', (:uptime_ms - :checkpoint_ms) / 1000.0,
            'blocked', json(iif(:checkpoint_blocked, 'true', 'false'))))
        AS body,
    NULL AS retry_after,
    NULL AS expires_at
FROM now;
