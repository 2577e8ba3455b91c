-- schema_plain: is lease_config a table that can be read without running
-- anything of the file: no view, no virtual table, no generated column?
-- yields 1, or no row

SELECT 1 FROM main.sqlite_schema
WHERE lower(name) = 'lease_config' AND type = 'table' AND rootpage > 0
    AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo('lease_config', 'main')
        WHERE hidden <> 0);
