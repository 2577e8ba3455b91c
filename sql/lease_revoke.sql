-- lease_revoke: take the resource away from its holders, or from one of them.
-- binds  :resource TEXT, :holder :reason :actor TEXT or NULL, :boot_id TEXT
-- yields one event for each lease taken away
-- The test of :holder looks only at the holders of this one resource.

INSERT OR ROLLBACK INTO main.lease_event
    (at, event, resource, holder, grant_token, actor, reason, expires_at)
SELECT call.now, 'revoked', lease.resource, lease.holder, lease.epoch, :actor,
    :reason, lease.expires_at
FROM (
    SELECT lease_tick(anchor) AS now FROM main.lease_clock
    WHERE id = 1 AND boot_id = :boot_id
) AS call
CROSS JOIN main.lease AS lease
WHERE lease.resource = :resource
    AND (:holder IS NULL OR lease.holder = :holder)
    AND lease.expires_at > call.now;
