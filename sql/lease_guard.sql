-- lease_guard: the statements that put a table under the fence.
-- binds  :table :resource_column :token_column TEXT
-- yields one text of statements, or no row when main has no such table with
--        such columns
-- AFTER triggers see what was really written, also by an upsert or OR REPLACE.
-- They are plain SQL and refer to their own file, so they hold wherever it is
-- opened. Nothing in them can conflict, for the conflict policy of the guarded
-- statement (OR IGNORE, OR REPLACE) would take the place of theirs. A trigger
-- of the same name that a table took along when it was renamed is not dropped;
-- then CREATE says that it exists.

SELECT group_concat(iif(old.tbl_name = object.name COLLATE NOCASE, printf(
    'DROP TRIGGER main."lease_guard_%w_%s";
', object.name, event.name), '') || printf('CREATE TRIGGER main."lease_guard_%w_%s" AFTER %s ON "%w" BEGIN
    SELECT RAISE(ABORT, ''lease_guard: resource must be text'')
    WHERE typeof(NEW."%w") <> ''text'';
    SELECT RAISE(ABORT, ''lease_guard: token must be an integer'')
    WHERE typeof(NEW."%w") <> ''integer'';
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
    resource.name, token.name,
    token.name, resource.name, event.row, resource.name,
    token.name, resource.name, token.name,
    resource.name, token.name, resource.name), '') AS statements
FROM main.sqlite_schema AS object
JOIN pragma_table_xinfo(object.name, 'main') AS resource
    ON resource.name = :resource_column COLLATE NOCASE
JOIN pragma_table_xinfo(object.name, 'main') AS token
    ON token.name = :token_column COLLATE NOCASE
JOIN (SELECT 'insert' AS name, 'NEW' AS row UNION ALL
    SELECT 'update', 'OLD') AS event
LEFT JOIN main.sqlite_schema AS old ON old.type = 'trigger'
    AND old.name = printf('lease_guard_%s_%s', object.name, event.name)
        COLLATE NOCASE
WHERE object.type = 'table' AND object.name = :table COLLATE NOCASE
    AND object.sql NOT LIKE 'CREATE VIRTUAL %'
    AND lower(object.name) NOT IN ('lease', 'lease_event', 'lease_fence',
        'lease_clock', 'lease_config')
HAVING count(*) > 0;
