-- test_schema_0: what schema 0 had in place of today's. There never was such a
-- release: the test build knows it, so that upgrading is tested before the
-- first one is needed.

CREATE TABLE main.lease_config (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    schema INTEGER NOT NULL,
    min_ttl INTEGER NOT NULL,
    max_ttl INTEGER NOT NULL,
    event_rows INTEGER NOT NULL
) STRICT;

CREATE TRIGGER main.lease_event_trim AFTER INSERT ON lease_event
WHEN NEW.token % 64 = 0 BEGIN
    DELETE FROM lease_event
    WHERE token <= NEW.token - (SELECT event_rows FROM lease_config);
END;
