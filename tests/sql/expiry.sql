-- A lease is over at the instant it ends, swept or not, and the log tells so
-- before it tells who came next.
.nullvalue NULL
SELECT lease_grant('r', 'a', 10);
.shell advance 9.999
SELECT lease_grant('r', 'b', 10), lease_check('r', 1);
.shell advance 0.001
SELECT lease_check('r', 1), lease_why('r', 1), count(*) FROM lease_active;
SELECT lease_renew('r', 1);
SELECT lease_release('r', 1);
SELECT lease_grant('r', 'b', 10);
SELECT token, event, holder FROM lease_event;
-- nobody comes: a sweep writes it down, once
.shell advance 3600
SELECT lease_sweep();
SELECT lease_sweep();
SELECT token, event, holder FROM lease_event WHERE token > 3;
SELECT lease_why('r', 1), lease_why('r', 3);
-- who was away too long gets a new lease, with a higher token
SELECT lease_grant('r', 'b', 10);
