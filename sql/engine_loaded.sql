-- engine_loaded: compiles only where Leasehold is loaded; it is never run.
-- yields nothing

SELECT lease_version();
