-- http_open_reader: how the service's reading connections work.
-- Several statements, run once when a connection opens. The last reads the
-- kernel's boot id, while there are descriptors for that.

PRAGMA query_only = ON;
PRAGMA main.cache_size = -1024;
PRAGMA trusted_schema = OFF;
SELECT lease_now();
