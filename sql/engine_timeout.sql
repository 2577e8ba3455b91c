-- engine_timeout: how long the host waits for a lock.
-- yields ms, 0 when it does not wait

PRAGMA busy_timeout;
