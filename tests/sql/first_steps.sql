-- One lease from its grant to its end, as a newcomer would try it.
.mode column
.nullvalue NULL
SELECT lease_grant('shard/0', 'w1', 30) AS granted;
SELECT lease_grant('shard/0', 'w2', 30) AS refused;
.shell advance 10
SELECT resource, holder, token, epoch, capacity, ttl, remaining
  FROM lease_active;
SELECT lease_renew('shard/0', 1) AS renewed;
SELECT lease_check('shard/0', 1) AS by_epoch, lease_check('shard/0', 2)
  AS by_token, lease_check('shard/0', 3) AS by_none;
SELECT resource, holder, token, epoch, remaining FROM lease_active;
SELECT lease_release('shard/0', 2) AS released;
SELECT lease_release('shard/0', 2) AS again;
SELECT lease_why('shard/0', 2) AS why, lease_why('shard/0', 9) AS unknown;
SELECT count(*) AS active FROM lease_active;
SELECT token, event, holder, epoch FROM lease_event;
