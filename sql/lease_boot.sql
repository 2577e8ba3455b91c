-- lease_boot: set the lease clock at the first write of a boot.
-- It goes on from the wall clock, but never from before the newest event.
-- binds  :boot_id TEXT, :lead ms (wall clock - boot time), :boottime ms
-- yields one changed row, or none when the clock was set already

INSERT INTO main.lease_clock (id, boot_id, anchor)
VALUES (1, :boot_id, max(:lead, coalesce(
    (SELECT at - :boottime FROM main.lease_event
     ORDER BY token DESC LIMIT 1), :lead)))
ON CONFLICT (id) DO UPDATE
SET boot_id = excluded.boot_id, anchor = excluded.anchor
WHERE lease_clock.boot_id <> excluded.boot_id;
