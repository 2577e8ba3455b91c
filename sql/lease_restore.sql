-- lease_restore: jump past every number issued since a backup was made.
-- The counter may be ahead of the newest event, after a DELETE by hand.
-- binds  :margin INTEGER or NULL (10^6 for each second since the newest event,
--        at least 10^6), :boot_id TEXT
-- yields the event's number

INSERT INTO main.lease_event (token, at, event)
SELECT max(coalesce(newest.token, 0), coalesce((SELECT seq
        FROM main.sqlite_sequence WHERE name = 'lease_event'), 0))
    + coalesce(:margin,
        1000 * max(1000, call.now - coalesce(newest.at, call.now))),
    call.now, 'restored'
FROM (
    SELECT lease_tick(anchor) AS now FROM main.lease_clock
    WHERE id = 1 AND boot_id = :boot_id
) AS call
LEFT JOIN main.lease_event AS newest ON newest.token =
    (SELECT max(token) FROM main.lease_event)
WHERE call.now IS NOT NULL;
