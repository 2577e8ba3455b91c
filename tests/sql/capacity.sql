-- Exclusive, semaphore, readers and a writer: the smallest capacity counts.
.nullvalue NULL
SELECT 'semaphore', lease_grant('s', 'a', 60, 2), lease_grant('s', 'b', 60, 2),
  lease_grant('s', 'c', 60, 2);
SELECT 'readers', lease_grant('f', 'r1', 60, 10000),
  lease_grant('f', 'r2', 60, 10000), lease_grant('f', 'w', 60, 1);
SELECT 'writer', lease_grant('g', 'w', 60, 1), lease_grant('g', 'r', 60, 10000);
SELECT 'the same holder twice', lease_grant('s', 'a', 60, 9);
SELECT lease_revoke('f', 'r1'), lease_revoke('f'), lease_revoke('f');
SELECT lease_grant('f', 'w', 60, 1);
SELECT resource, holder, capacity FROM lease_active ORDER BY 1, 2;
