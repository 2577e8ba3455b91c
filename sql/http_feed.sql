-- http_feed: what follows in the log, for those who watch.
-- binds  :after INTEGER, :resource TEXT or NULL: only this one is told,
--        :limit INTEGER: how many to look at
-- yields token, trimmed: up to here the log has holes, resource, event as
--        JSON, NULL when it is of another resource, expires_at of what was
--        granted or renewed, else NULL

SELECT token,
    (SELECT trimmed FROM main.lease_config WHERE id = 1) AS trimmed,
    resource,
    CASE WHEN :resource IS NULL OR resource IS :resource THEN json_object(
        'token', token,
        'at', lease_instant(at),
        'event', event,
        'resource', resource,
        'holder', holder,
        'epoch', epoch,
        'ttl', ttl / 1000.0,
        'capacity', capacity,
        'expires_at', lease_instant(expires_at),
        'data', data,
        'reason', reason,
        'actor', actor) END AS event,
    CASE WHEN event = 'granted' OR event = 'renewed' THEN expires_at END
        AS expires_at
FROM main.lease_event
WHERE token > :after
ORDER BY token
LIMIT :limit;
