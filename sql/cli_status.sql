-- cli_status: how a file of leases is, `lease status --db`.
-- binds  nothing
-- yields status, body, retry_after: of /v1/status what a file can tell

WITH now(lease, wall) AS MATERIALIZED (
    SELECT CAST(round(lease_now() * 1000) AS INTEGER),
        CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
SELECT 200 AS status,
    json_object(
        'version', lease_version(),
        'sqlite', sqlite_version(),
        'clock', json_object(
            'now', lease_instant(now.lease),
            'lead', (now.lease - now.wall) / 1000.0),
        'leases', json_object(
            'active', (SELECT count(*) FROM main.lease
                WHERE expires_at > now.lease),
            'events', (SELECT count(*) FROM main.lease_event),
            'newest_token', coalesce((SELECT max(token)
                FROM main.lease_event), 0))) AS body,
    NULL AS retry_after
FROM now;
