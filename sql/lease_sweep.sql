-- lease_sweep: record the expiry of leases that have run out, oldest first.
-- binds  :limit INTEGER, :boot_id TEXT
-- yields one event for each

INSERT OR ROLLBACK INTO main.lease_event
    (at, event, resource, holder, grant_token, expires_at)
SELECT (SELECT lease_tick(anchor) FROM main.lease_clock
        WHERE id = 1 AND boot_id = :boot_id),
    'expired', resource, holder, epoch, expires_at
FROM main.lease
WHERE expires_at <= (SELECT lease_tick(anchor) FROM main.lease_clock
        WHERE id = 1 AND boot_id = :boot_id)
ORDER BY expires_at, epoch
LIMIT :limit;
