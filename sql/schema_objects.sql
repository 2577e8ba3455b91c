-- schema_objects: how much of main bears one of our names or hangs on one of
-- our tables. What SQLite makes for itself (sql IS NULL) does not count.
-- yields how many

SELECT count(*) FROM main.sqlite_schema
WHERE sql IS NOT NULL
    AND (lower(tbl_name) IN ('lease', 'lease_event', 'lease_fence',
            'lease_clock', 'lease_config', 'lease_proof')
        OR lower(name) IN ('lease', 'lease_event', 'lease_fence',
            'lease_clock', 'lease_config', 'lease_proof'));
