-- schema_version: the version of the tables, where they are plainly ours.
-- yields version, or no row

SELECT schema FROM main.lease_config WHERE id = 1;
