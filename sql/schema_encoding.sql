-- schema_encoding: how many bytes a letter takes in main.
-- yields 1 in UTF-8, 2 in UTF-16

SELECT length(CAST('a' AS BLOB));
