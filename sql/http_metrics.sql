-- http_metrics: what the database has to say, in Prometheus' text format,
-- GET /metrics. The service adds what it has counted (fcgi/metrics.c).
-- binds  :wal_pages INTEGER (see fcgi/stats.h)
-- yields status, body, retry_after, expires_at (see fcgi/route.h)
-- Active leases are all rows without those that have run out and are not yet
-- swept. SQLite counts all rows of a table page by page, not row by row, and
-- has an index for the others, which are few.

SELECT 200 AS status,
    printf('# HELP leasehold_build_info Versions, as labels.
# TYPE leasehold_build_info gauge
leasehold_build_info{version="%s",sqlite="%s"} 1
# HELP leasehold_active_leases Leases in force.
# TYPE leasehold_active_leases gauge
leasehold_active_leases %d
# HELP leasehold_newest_token The number of the newest event.
# TYPE leasehold_newest_token gauge
leasehold_newest_token %d
# HELP leasehold_wal_bytes Bytes in the write-ahead log.
# TYPE leasehold_wal_bytes gauge
leasehold_wal_bytes %d
',
        lease_version(), sqlite_version(),
        (SELECT count(*) FROM main.lease)
            - (SELECT count(*) FROM main.lease WHERE expires_at <= now),
        coalesce((SELECT max(token) FROM main.lease_event), 0),
        (SELECT :wal_pages * (page_size + 24) + 32 * (:wal_pages > 0)
            FROM pragma_page_size)) AS body,
    NULL AS retry_after,
    NULL AS expires_at
FROM (SELECT CAST(round(lease_now() * 1000) AS INTEGER) AS now LIMIT 1);
