-- cli_tables: are there leases in this file.
-- yields 1, or 0

SELECT EXISTS (SELECT 1 FROM main.sqlite_schema
    WHERE type = 'table' AND name = 'lease_event');
