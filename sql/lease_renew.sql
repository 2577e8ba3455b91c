-- lease_renew: extend a tenure that is in force; it never shortens.
-- binds  :resource TEXT, :token INTEGER, :ttl ms or NULL (as before),
--        :actor TEXT or NULL, :boot_id TEXT
-- yields the event's number, or no row when refused or without a clock

INSERT OR ROLLBACK INTO main.lease_event
    (at, event, resource, holder, grant_token, ttl, actor, expires_at)
SELECT call.now, 'renewed', proof.resource, proof.holder, proof.epoch,
    coalesce(call.ttl, proof.ttl), :actor,
    iif(proof.expires_at > call.later + coalesce(call.ttl, proof.ttl),
        proof.expires_at, call.later + coalesce(call.ttl, proof.ttl))
FROM (
    SELECT lease_tick(clock.anchor) AS now, lease_tock(clock.anchor) AS later,
        lease_ttl(:ttl, config.min_ttl, config.max_ttl) AS ttl
    FROM main.lease_clock AS clock CROSS JOIN main.lease_config AS config
    WHERE clock.id = 1 AND clock.boot_id = :boot_id AND config.id = 1
) AS call
CROSS JOIN main.lease_proof AS proof
WHERE (call.ttl IS NULL OR call.ttl > 0)
    AND proof.token = :token AND proof.resource = :resource
    AND proof.proves_until > call.now;
