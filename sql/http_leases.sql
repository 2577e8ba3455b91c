-- http_leases: the active leases in order of resource and holder,
-- GET /v1/leases.
-- binds  :resource :prefix :holder TEXT or NULL: which ones;
--        :limit TEXT or NULL: how many at most, :after TEXT or NULL: the
--        "next" of the page before
-- yields status, body, retry_after, expires_at (see fcgi/route.h)
-- A page also ends when it has about half a megabyte, so that memory stays
-- bounded: it is first measured, then told, and nothing but names is held in
-- between. "after" is the length of the resource in characters, a colon, the
-- resource, the holder. x'FF' sorts behind every byte of UTF-8. newest_token
-- is of the same moment as the page: the events behind it continue the list.

WITH
    asked(at) AS MATERIALIZED (
        SELECT CAST(round(lease_now() * 1000) AS INTEGER)),
    span(low, high, most, colon) AS MATERIALIZED (
        SELECT max(coalesce(:resource, :prefix, ''), coalesce(:prefix, '')),
            CASE WHEN :resource IS NOT NULL THEN :resource
                ELSE CAST(CAST(coalesce(:prefix, '') AS BLOB) || x'FF'
                    AS TEXT) END,
            CAST(coalesce(:limit, 100) AS INTEGER),
            instr(:after, ':')),
    start(resource, holder) AS MATERIALIZED (
        SELECT coalesce(substr(:after, colon + 1,
                CAST(substr(:after, 1, colon - 1) AS INTEGER)), ''),
            coalesce(substr(:after, colon + 1
                + CAST(substr(:after, 1, colon - 1) AS INTEGER)), '')
        FROM span),
    active AS NOT MATERIALIZED (
        SELECT lease.* FROM asked, span, start CROSS JOIN main.lease AS lease
        WHERE :holder IS NULL
            AND lease.resource >= span.low AND lease.resource <= span.high
            AND (lease.resource, lease.holder)
                > (start.resource, start.holder)
            AND lease.expires_at > asked.at
        UNION ALL
        SELECT lease.* FROM asked, span, start CROSS JOIN main.lease AS lease
        WHERE lease.holder = :holder
            AND lease.resource >= span.low AND lease.resource <= span.high
            AND (lease.resource, lease.holder)
                > (start.resource, start.holder)
            AND lease.expires_at > asked.at),
    measured(resource, holder, n, size) AS MATERIALIZED (
        SELECT resource, holder, row_number() OVER running,
            sum(size) OVER running
        FROM (SELECT resource, holder,
                300 + length(resource) + length(holder)
                    + coalesce(length(data), 0) AS size
            FROM active ORDER BY resource, holder
            LIMIT (SELECT most + 1 FROM span))
        WINDOW running AS (ORDER BY resource, holder)),
    page(n, next) AS MATERIALIZED (
        SELECT n, length(resource) || ':' || resource || holder
        FROM measured
        WHERE n <= (SELECT most FROM span) AND (size <= 500000 OR n = 1)
        ORDER BY n DESC LIMIT 1)
SELECT 200 AS status,
    printf('{"leases":[%s],"next":%s,%s"newest_token":%d,"now":"%s"}', (
        SELECT group_concat(json_object(
            'resource', resource,
            'holder', holder,
            'token', token,
            'epoch', epoch,
            'capacity', capacity,
            'ttl', ttl / 1000.0,
            'granted_at', lease_instant(granted_at),
            'renewed_at', lease_instant(renewed_at),
            'expires_at', lease_instant(expires_at),
            'remaining', (expires_at - asked.at) / 1000.0,
            'data', data))
        FROM (SELECT * FROM active ORDER BY resource, holder
            LIMIT coalesce((SELECT n FROM page), 0))),
        coalesce((SELECT json_quote(next) FROM page
            WHERE n < (SELECT count(*) FROM measured)), 'null'),
        iif(:resource IS NULL, '', printf('"fence":%s,', coalesce((
            SELECT token FROM main.lease_fence WHERE resource = :resource),
            'null'))),
        coalesce((SELECT max(token) FROM main.lease_event), 0),
        lease_instant(asked.at))
        AS body,
    NULL AS retry_after,
    NULL AS expires_at
FROM asked;
