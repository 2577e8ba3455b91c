-- Every wrong argument is an error that names function, argument and bounds;
-- none changes anything.
SELECT lease_init();
SELECT lease_grant('', 'a', 30);
SELECT lease_grant('r', '', 30);
SELECT lease_grant(NULL, 'a', 30);
SELECT lease_grant(7, 'a', 30);
SELECT lease_grant(x'72', 'a', 30);
SELECT lease_grant('r', 'a', '30abc');
SELECT lease_grant('r', 'a', ' 30');
SELECT lease_grant('r', 'a', 0.09);
SELECT lease_grant('r', 'a', -1);
SELECT lease_grant('r', 'a', 86400.001);
SELECT lease_grant('r', 'a', 9223372036854775807);
SELECT lease_grant('r', 'a', 1e400);
SELECT lease_grant('r', 'a', NULL);
SELECT lease_grant('r', 'a', 30, 0);
SELECT lease_grant('r', 'a', 30, 10001);
SELECT lease_grant('r', 'a', 30, 1.5);
SELECT lease_grant('r' || char(10), 'a', 30);
SELECT lease_grant('r' || char(0) || 'x', 'a', 30);
SELECT lease_grant(printf('%.513c', 'x'), 'a', 30);
SELECT lease_grant('r', printf('%.257c', 'x'), 30);
SELECT lease_grant('r', 'a', 30, 1, printf('%.4097c', 'x'));
SELECT lease_grant('r', 'a', 30, 1, NULL, '');
SELECT lease_renew('r', 7.5);
SELECT lease_renew('r', 'seven');
SELECT lease_check('r', 1, -1);
SELECT lease_revoke(NULL);
SELECT lease_grant('r');
SELECT count(*) FROM lease_event;
-- right at the bounds
SELECT lease_grant(printf('%.512c', 'x'), printf('%.256c', 'x'), 0.1, 10000,
  printf('%.4096c', 'x'), printf('%.128c', 'x'));
SELECT lease_grant('text that is a number', 'a', '30.5');
SELECT ttl FROM lease_active WHERE resource LIKE 'text%';
