-- test_schema_0_upgraded: what a file that came from schema 0 has in place of
-- today's: the text that ALTER TABLE leaves.

CREATE TABLE main.lease_config (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    schema INTEGER NOT NULL,
    min_ttl INTEGER NOT NULL,
    max_ttl INTEGER NOT NULL,
    event_rows INTEGER NOT NULL
, trim_from INTEGER NOT NULL DEFAULT 0, trim_to INTEGER NOT NULL DEFAULT 0, trimmed INTEGER NOT NULL DEFAULT 0) STRICT;
