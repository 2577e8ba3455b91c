-- lease_grant: give the resource to the holder, unless it is held.
-- binds  :resource :holder TEXT, :ttl ms, :capacity INTEGER, :data
--        :request_id :actor TEXT or NULL, :boot_id TEXT
-- yields the event's number, or no row when refused or without a clock

INSERT OR ROLLBACK INTO main.lease_event
    (at, event, resource, holder, ttl, capacity, data, request_id, actor,
     expires_at)
VALUES (
    (SELECT lease_tick(anchor) FROM main.lease_clock
     WHERE id = 1 AND boot_id = :boot_id),
    'granted', :resource, :holder,
    (SELECT lease_ttl(:ttl, min_ttl, max_ttl) FROM main.lease_config
     WHERE id = 1),
    :capacity, :data, :request_id, :actor,
    (SELECT lease_tock(anchor) + :ttl FROM main.lease_clock
     WHERE id = 1 AND boot_id = :boot_id));
