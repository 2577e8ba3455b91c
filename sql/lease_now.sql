-- lease_now: lease time. Before the first write of a boot, what it would be.
-- binds  :boot_id TEXT, :lead ms (wall clock - boot time), :boottime ms
-- yields now ms

SELECT lease_tick(coalesce(
    (SELECT anchor FROM main.lease_clock WHERE id = 1 AND boot_id = :boot_id),
    max(:lead, coalesce(
        (SELECT at - :boottime FROM main.lease_event
         ORDER BY token DESC LIMIT 1), :lead)))) AS now;
