-- Which tokens prove a tenure: its epoch, its newest, and any whose own time
-- has not passed.
.nullvalue NULL
SELECT lease_grant('r', 'a', 10);
.shell advance 1
SELECT lease_renew('r', 1, 20);
.shell advance 1
SELECT lease_renew('r', 2, 60);
.shell advance 15
SELECT lease_check('r', 1), lease_check('r', 2), lease_check('r', 3);
.shell advance 10
SELECT lease_check('r', 1), lease_check('r', 2), lease_check('r', 3);
SELECT lease_renew('r', 2), lease_release('r', 2), lease_why('r', 2);
SELECT lease_check('other', 3), lease_check('r', 4);
-- a renewal never shortens
SELECT lease_renew('r', 3, 1);
SELECT remaining FROM lease_active;
SELECT lease_check('r', 4, 30), lease_check('r', 4, 40);
