-- lease_why: what became of the token.
-- binds  :resource TEXT, :token INTEGER, :now ms
-- yields active, expired, released or revoked; no row when unknown

SELECT CASE
    WHEN EXISTS (SELECT 1 FROM main.lease_proof
        WHERE token = :token AND resource = :resource
            AND proves_until > :now) THEN 'active'
    ELSE coalesce(
        (SELECT past.event FROM main.lease_event AS past
         WHERE past.grant_token = event.epoch
            AND past.event <> 'granted' AND past.event <> 'renewed'),
        'expired') END AS why
FROM main.lease_event AS event
WHERE event.token = :token AND event.resource = :resource
    AND (event.event = 'granted' OR event.event = 'renewed');
