-- http_tally: what has happened since the last look, and the clock.
-- binds  :after INTEGER the number of the last event seen, or NULL: none is
--        counted yet
-- yields newest, lead: ms that lease time is ahead of the wall clock, granted,
--        renewed, released, expired, revoked: how many

SELECT
    coalesce((SELECT max(token) FROM main.lease_event), 0) AS newest,
    CAST(round(lease_now() * 1000
        - (julianday('now') - 2440587.5) * 86400000) AS INTEGER) AS lead,
    count(*) FILTER (WHERE event = 'granted') AS granted,
    count(*) FILTER (WHERE event = 'renewed') AS renewed,
    count(*) FILTER (WHERE event = 'released') AS released,
    count(*) FILTER (WHERE event = 'expired') AS expired,
    count(*) FILTER (WHERE event = 'revoked') AS revoked
FROM main.lease_event
WHERE token > coalesce(:after, (SELECT max(token) FROM main.lease_event), 0);
