-- lease_config_set: change one setting; min_ttl <= max_ttl.
-- binds  :name TEXT, :value INTEGER (ms for times)
-- yields one changed row, or none when min_ttl would pass max_ttl

UPDATE main.lease_config SET
    min_ttl = iif(:name = 'min_ttl', :value, min_ttl),
    max_ttl = iif(:name = 'max_ttl', :value, max_ttl),
    event_rows = iif(:name = 'event_rows', :value, event_rows)
WHERE id = 1
    AND iif(:name = 'min_ttl', :value, min_ttl)
        <= iif(:name = 'max_ttl', :value, max_ttl);
