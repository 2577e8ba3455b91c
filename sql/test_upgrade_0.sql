-- test_upgrade_0: from schema 0 to 1. What is dropped here and stands in
-- schema.sql is created again from there.

DROP TRIGGER main.lease_event_trim;

ALTER TABLE main.lease_config ADD COLUMN trim_from INTEGER NOT NULL DEFAULT 0;

ALTER TABLE main.lease_config ADD COLUMN trim_to INTEGER NOT NULL DEFAULT 0;

ALTER TABLE main.lease_config ADD COLUMN trimmed INTEGER NOT NULL DEFAULT 0;

UPDATE main.lease_config SET schema = 1,
    trimmed = coalesce((SELECT min(token) - 1 FROM main.lease_event), 0);
