-- lease_config_get: one setting; times in seconds.
-- binds  :name TEXT
-- yields its value

SELECT CASE :name
    WHEN 'min_ttl' THEN min_ttl / 1000.0
    WHEN 'max_ttl' THEN max_ttl / 1000.0
    WHEN 'event_rows' THEN event_rows END AS value
FROM main.lease_config WHERE id = 1;
