-- The same request again: the lease as it is now, nothing written.
.nullvalue NULL
SELECT lease_grant('r', 'a', 10, 1, 'd', 'q1');
SELECT lease_grant('r', 'a', 10, 1, 'd', 'q1');
SELECT lease_renew('r', 1, 10);
SELECT lease_grant('r', 'a', 10, 1, 'd', 'q1');
SELECT lease_grant('r', 'a', 11, 1, 'd', 'q1');
SELECT lease_grant('r', 'a', 10, 1, 'other', 'q1');
SELECT lease_grant('r', 'b', 10, 1, 'd', 'q1');
.shell advance 10
SELECT lease_grant('r', 'a', 10, 1, 'd', 'q1');
SELECT lease_grant('r', 'a', 10, 1, 'd', 'q2');
SELECT token, event, holder, request_id FROM lease_event;
