-- lease_guard: the statements that put a table under the fence.
-- binds  :table :resource_column :token_column TEXT
-- yields one text of statements, or no row when main has no such table with
--        such columns
-- AFTER triggers see what was really written, also by an upsert or OR REPLACE;
-- what an upsert was offered and did not write only one BEFORE it sees (where a
-- number that SQLite still has to choose is -1). The register learns what is in
-- the table already.
-- They are plain SQL and refer to their own file, so they hold wherever it is
-- opened. Nothing in them can conflict, for the conflict policy of the guarded
-- statement (OR IGNORE, OR REPLACE) would take the place of theirs. A trigger
-- of the same name that a table took along when it was renamed is not dropped;
-- then CREATE says that it exists.

SELECT group_concat(iif(old.tbl_name = object.name COLLATE NOCASE, printf(
    'DROP TRIGGER main."lease_guard_%w_%s";
', object.name, event.name), '') || iif(event.row IS NULL, printf('CREATE TRIGGER main."lease_guard_%w_%s" BEFORE INSERT ON "%w"
WHEN typeof(NEW."%w") = ''integer'' AND NEW."%w" > 0 BEGIN
    SELECT RAISE(ABORT, ''lease_guard: token is stale'')
    WHERE NEW."%w" < (SELECT token FROM lease_fence
        WHERE resource = NEW."%w");
END;
INSERT INTO main.lease_fence (resource, token)
SELECT "%w", max("%w") FROM main."%w"
WHERE typeof("%w") = ''text'' AND typeof("%w") = ''integer''
    AND "%w" BETWEEN 1 AND 9007199254740991 GROUP BY "%w" COLLATE BINARY
ON CONFLICT (resource) DO UPDATE SET token = excluded.token
WHERE token < excluded.token;
',
    object.name, event.name, object.name, token.name, token.name,
    token.name, resource.name,
    resource.name, token.name, object.name, resource.name, token.name,
    token.name, resource.name), printf('CREATE TRIGGER main."lease_guard_%w_%s" AFTER %s ON "%w" BEGIN
    SELECT RAISE(ABORT, ''lease_guard: resource must be text'')
    WHERE typeof(NEW."%w") <> ''text'';
    SELECT RAISE(ABORT, ''lease_guard: token must be an integer'')
    WHERE typeof(NEW."%w") <> ''integer'';
    SELECT RAISE(ABORT, ''lease_guard: token must be 1 to 9007199254740991'')
    WHERE NEW."%w" NOT BETWEEN 1 AND 9007199254740991;
    SELECT RAISE(ABORT, ''lease_guard: token is stale'')
    WHERE NEW."%w" < (SELECT max(token) FROM lease_fence
        WHERE resource = NEW."%w" OR resource = %s."%w");
    UPDATE lease_fence SET token = NEW."%w"
    WHERE resource = NEW."%w" AND token < NEW."%w";
    INSERT INTO lease_fence (resource, token)
    SELECT NEW."%w", NEW."%w"
    WHERE NOT EXISTS (SELECT 1 FROM lease_fence WHERE resource = NEW."%w");
END;
',
    object.name, event.name, event.name, object.name,
    resource.name, token.name, token.name,
    token.name, resource.name, event.row, resource.name,
    token.name, resource.name, token.name,
    resource.name, token.name, resource.name)), '') AS statements
FROM main.sqlite_schema AS object
JOIN pragma_table_xinfo(object.name, 'main') AS resource
    ON resource.name = :resource_column COLLATE NOCASE
JOIN pragma_table_xinfo(object.name, 'main') AS token
    ON token.name = :token_column COLLATE NOCASE
JOIN (SELECT 'insert' AS name, 'NEW' AS row UNION ALL
    SELECT 'update', 'OLD' UNION ALL SELECT 'before', NULL) AS event
LEFT JOIN main.sqlite_schema AS old ON old.type = 'trigger'
    AND old.name = printf('lease_guard_%s_%s', object.name, event.name)
        COLLATE NOCASE
WHERE object.type = 'table' AND object.name = :table COLLATE NOCASE
    AND object.sql NOT LIKE 'CREATE VIRTUAL %'
    AND lower(object.name) NOT IN ('lease', 'lease_event', 'lease_fence',
        'lease_clock', 'lease_config')
HAVING count(*) > 0;
