-- schema_object: is there an object with this very definition in main?
-- binds  :sql TEXT
-- yields 1, or no row

SELECT 1 FROM main.sqlite_schema WHERE sql = :sql;
