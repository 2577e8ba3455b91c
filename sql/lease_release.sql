-- lease_release: end a tenure its holder no longer needs.
-- binds  :resource TEXT, :token INTEGER, :actor TEXT or NULL, :boot_id TEXT
-- yields the event's number, or no row when the tenure was over already

INSERT OR ROLLBACK INTO main.lease_event
    (at, event, resource, holder, grant_token, actor, expires_at)
SELECT call.now, 'released', proof.resource, proof.holder, proof.epoch, :actor,
    proof.expires_at
FROM (
    SELECT lease_tick(anchor) AS now FROM main.lease_clock
    WHERE id = 1 AND boot_id = :boot_id
) AS call
CROSS JOIN main.lease_proof AS proof
WHERE proof.token = :token AND proof.resource = :resource
    AND proof.proves_until > call.now;
