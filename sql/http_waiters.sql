-- http_waiters: who waits for a resource, GET /v1/waiters.
-- binds  :resource TEXT, :ahead INTEGER: how many wait; :waiters TEXT or NULL:
--        the first of them in turn, a line each: milliseconds, a space, the
--        holder, in which there is no control character
-- yields status, body, retry_after, expires_at (see fcgi/route.h)

SELECT 200 AS status,
    json_object(
        'resource', :resource,
        'waiting', :ahead,
        'waiters', json((
            SELECT json_group_array(json_object(
                'holder', substr(value, instr(value, ' ') + 1),
                'waited', CAST(value AS INTEGER) / 1000.0))
            FROM json_each('["' || replace(replace(replace(:waiters,
                '\', '\\'), '"', '\"'), char(10), '","') || '"]'))))
        AS body,
    NULL AS retry_after,
    NULL AS expires_at;
