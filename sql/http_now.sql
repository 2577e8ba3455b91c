-- http_now: lease time, and how far the next expiry is.
-- yields now ms, next ms: 0 when a lease has run out that is still in the
--        table, NULL when there is none

SELECT now, (SELECT max(0, min(expires_at) - now) FROM main.lease) AS next
FROM (SELECT CAST(round(lease_now() * 1000) AS INTEGER) AS now);
