-- schema_name: is there an object of this name in main?
-- binds  :name TEXT
-- yields 1, or no row

SELECT 1 FROM main.sqlite_schema WHERE name = :name;
