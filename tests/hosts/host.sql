-- host.sql, in the sqlite3 shell: .load EXTENSION, then this.
.nullvalue NULL
CREATE TABLE work(token INTEGER);
SELECT 'granted ' || lease_grant('r', 'w1', 30);
SELECT 'refused ' || ifnull(lease_grant('r', 'w2', 30), 'NULL');
SELECT 'renewed ' || lease_renew('r', 1);
BEGIN IMMEDIATE;
INSERT INTO work SELECT 2 WHERE lease_check('r', 2);
SELECT 'checked ' || changes();
COMMIT;
SELECT 'active ' || resource || ' ' || holder || ' ' || token
FROM lease_active;
SELECT 'closed';
