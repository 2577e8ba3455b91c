-- http_release: give a lease back, POST /v1/release.
-- binds  :resource TEXT, :token INTEGER, :actor TEXT or NULL
-- yields status, body, retry_after, expires_at (see fcgi/route.h)

WITH
    done(released) AS (
        SELECT lease_release(:resource, :token, :actor) LIMIT 1),
    told(released, why) AS (
        SELECT released, CASE WHEN released THEN 'released'
            ELSE lease_why(:resource, :token) END
        FROM done)
SELECT
    iif(why = 'unknown', 404, 200) AS status,
    CASE WHEN why = 'unknown' THEN json_object(
            'type', 'about:blank', 'title', 'Not Found', 'status', 404,
            'code', 'unknown',
            'detail', 'No lease of this resource ever had this token, or it '
                || 'is long over.')
        ELSE json_object(
            'released', json(iif(released, 'true', 'false')),
            'why', why) END AS body,
    NULL AS retry_after,
    NULL AS expires_at
FROM told;
