-- http_fence: remember the highest token seen, POST /v1/fence.
-- binds  :resource TEXT, :token INTEGER
-- yields status, body, retry_after, expires_at (see fcgi/route.h)
-- Both LIMITs keep lease_fence() from being called more than once.

WITH
    seen(highest) AS (
        SELECT coalesce((SELECT token FROM main.lease_fence
            WHERE resource = :resource), 0) LIMIT 1),
    fenced(highest, token) AS (
        SELECT highest, CASE WHEN :token >= highest
            THEN lease_fence(:resource, :token) END
        FROM seen LIMIT 1)
SELECT
    iif(token IS NULL, 412, 200) AS status,
    CASE WHEN token IS NULL THEN json_object(
            'type', 'about:blank', 'title', 'Precondition Failed',
            'status', 412,
            'code', 'stale',
            'detail', 'A higher token was seen for this resource.',
            'highest', highest)
        ELSE json_object('highest', token) END AS body,
    NULL AS retry_after,
    NULL AS expires_at
FROM fenced LIMIT 1;
