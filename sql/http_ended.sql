-- http_ended: what may concern those who wait for a resource.
-- binds  :after INTEGER: events behind this number
-- yields token, resource if a lease of it ended, else NULL, expires_at of what
--        was granted or renewed, else NULL, trimmed: up to here the log has
--        holes

SELECT token,
    CASE WHEN event = 'released' OR event = 'expired' OR event = 'revoked'
        THEN resource END AS resource,
    CASE WHEN event = 'granted' OR event = 'renewed' THEN expires_at END
        AS expires_at,
    (SELECT trimmed FROM main.lease_config WHERE id = 1) AS trimmed
FROM main.lease_event
WHERE token > :after
ORDER BY token;
