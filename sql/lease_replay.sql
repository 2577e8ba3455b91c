-- lease_replay: what became of a grant that carried this request_id.
-- binds  :resource :holder :request_id TEXT, :ttl ms, :capacity INTEGER,
--        :data TEXT or NULL, :now ms
-- yields same (1 when asked with the same arguments), token (the newest, NULL
--        when that tenure is over); or no row when the log knows of none

SELECT
    event.ttl IS :ttl AND event.capacity IS :capacity AND event.data IS :data
        AS same,
    (SELECT token FROM main.lease
     WHERE resource = :resource AND holder = :holder
        AND epoch = event.token AND expires_at > :now) AS token
FROM main.lease_event AS event
WHERE request_id = :request_id AND resource = :resource AND holder = :holder;
