-- http_events: a page of the log of events, oldest first, GET /v1/events.
-- binds  :after TEXT a number or NULL: events behind this one;
--        :resource TEXT or NULL: only of this one; :limit TEXT or NULL: how
--        many at most; :wait TEXT or NULL: seconds, 0 asks for an answer now
-- yields status, body, retry_after, expires_at (see fcgi/route.h); with :wait
--        and nothing to tell status 204: the request may be parked. Its body
--        is the answer for the case that nothing comes.
-- Without :after from where the log is whole. There is no index by resource:
-- of one resource, a page looks at 5,000 events and "next" says how far it
-- came. A page also ends when it has about half a megabyte; it is first
-- measured, then told.

WITH
    log(trimmed, newest, start, most) AS MATERIALIZED (
        SELECT trimmed,
            coalesce((SELECT max(token) FROM main.lease_event), 0),
            coalesce(CAST(:after AS INTEGER), trimmed),
            CAST(coalesce(:limit, 100) AS INTEGER)
        FROM main.lease_config WHERE id = 1),
    looked(token, wanted, size) AS MATERIALIZED (
        SELECT token, :resource IS NULL OR resource IS :resource,
            400 + coalesce(length(resource) + length(holder), 0)
                + coalesce(length(data), 0) + coalesce(length(reason), 0)
        FROM log CROSS JOIN main.lease_event AS event
        WHERE event.token > log.start
        ORDER BY event.token
        LIMIT (SELECT iif(:resource IS NULL, most, 5000) FROM log)),
    page(token) AS MATERIALIZED (
        SELECT token
        FROM (SELECT token, row_number() OVER running AS n,
                sum(size) OVER running AS size
            FROM looked WHERE wanted
            WINDOW running AS (ORDER BY token)), log
        WHERE n <= most AND (size <= 500000 OR n = 1)),
    told(n, next, more) AS MATERIALIZED (
        SELECT count(*),
            CASE WHEN count(*) < (SELECT count(*) FROM looked WHERE wanted)
                THEN max(token)
                ELSE coalesce((SELECT max(token) FROM looked),
                    (SELECT start FROM log)) END,
            (SELECT count(*) FROM looked) >= 5000
        FROM page)
SELECT
    CASE WHEN start < trimmed OR start > newest THEN 410
        WHEN n = 0 AND NOT more AND CAST(:wait AS REAL) > 0 THEN 204
        ELSE 200 END AS status,
    CASE WHEN start < trimmed OR start > newest THEN json_object(
            'type', 'about:blank', 'title', 'Gone', 'status', 410,
            'code', 'trimmed',
            'detail', iif(start > newest,
                'The log has not come to this number: it is another one''s.',
                'The log does not go back so far; it is whole from oldest '
                || 'on.'),
            'oldest', coalesce((SELECT min(token) FROM main.lease_event
                WHERE token > trimmed), newest))
        ELSE printf('{"events":[%s],"next":%d}', (
            SELECT group_concat(json_object(
                'token', event.token,
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
                'actor', actor))
            FROM page CROSS JOIN main.lease_event AS event
                ON event.token = page.token), next) END
        AS body,
    NULL AS retry_after,
    NULL AS expires_at
FROM log, told;
