-- http_init: create the schema, or find out that the file is not ours.
-- Reads the kernel's boot id, too, while there are descriptors for that.
-- yields nothing of use, or the engine's error

SELECT lease_init(), lease_now();
