-- engine_owner: makes SQLite connect lease_active; it is never run.
-- yields nothing

SELECT 1 FROM main.lease_active;
