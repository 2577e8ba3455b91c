-- http_open_writer: how the service's writing connections work.
-- Several statements, run once when a connection opens.
-- No page is written before COMMIT: see fcgi/walfile.c.
-- The log is checkpointed by a thread of its own, hence no wal_autocheckpoint.

PRAGMA main.journal_mode = WAL;
PRAGMA main.synchronous = FULL;
PRAGMA cache_spill = OFF;
PRAGMA wal_autocheckpoint = 0;
PRAGMA main.journal_size_limit = 16777216;
PRAGMA main.cache_size = -8192;
PRAGMA trusted_schema = OFF;
