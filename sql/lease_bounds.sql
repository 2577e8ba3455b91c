-- lease_bounds: the shortest and the longest ttl that are allowed.
-- yields min_ttl ms, max_ttl ms

SELECT min_ttl, max_ttl FROM main.lease_config WHERE id = 1;
