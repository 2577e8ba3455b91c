-- engine_rollback: take back all of a transaction in which a write broke off.

ROLLBACK;
