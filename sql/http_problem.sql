-- http_problem: the answer to a request that is not done, RFC 9457.
-- binds  :code TEXT, :detail TEXT or NULL for the usual one, :errors TEXT a
--        JSON array or NULL
-- yields status, body, retry_after
-- With the codes in the route files (held, expired, released, revoked,
-- expiring, unknown, stale, trimmed) the list is closed.

SELECT status,
    CASE WHEN :errors IS NULL THEN json_object(
            'type', 'about:blank', 'title', title, 'status', status,
            'code', code, 'detail', coalesce(:detail, detail))
        ELSE json_object(
            'type', 'about:blank', 'title', title, 'status', status,
            'code', code, 'detail', coalesce(:detail, detail),
            'errors', json(:errors)) END AS body,
    retry_after
FROM (
    SELECT column1 AS code, column2 AS status, column3 AS retry_after,
        column4 AS title, column5 AS detail
    FROM (VALUES
    ('malformed', 400, NULL, 'Bad Request',
        'The request cannot be read.'),
    ('duplicate_key', 400, NULL, 'Bad Request',
        'A field is given twice.'),
    ('left', 400, NULL, 'Bad Request',
        'The client closed the connection or its sending half; nothing was done.'),
    ('foreign_origin', 403, NULL, 'Forbidden',
        'A page of another origin may not ask this.'),
    ('forbidden', 403, NULL, 'Forbidden',
        'You may not do this here.'),
    ('not_found', 404, NULL, 'Not Found',
        'There is nothing at this path.'),
    ('method_not_allowed', 405, NULL, 'Method Not Allowed',
        'This path does not take this method; Allow says which it does.'),
    ('taken_over', 409, NULL, 'Conflict',
        'The same request came again and waits in the place of this one.'),
    ('atomic_failed', 409, NULL, 'Conflict',
        'Operations were refused, so none was done; failed lists them.'),
    ('length_required', 411, NULL, 'Length Required',
        'A body needs a Content-Length.'),
    ('too_large', 413, NULL, 'Content Too Large',
        'The body is larger than this path takes.'),
    ('unsupported_type', 415, NULL, 'Unsupported Media Type',
        'The body must be application/json in UTF-8.'),
    ('foreign_host', 421, NULL, 'Misdirected Request',
        'The service does not answer to this host name.'),
    ('invalid', 422, NULL, 'Unprocessable Content',
        'Fields are missing or not acceptable; errors lists all of them.'),
    ('idempotency_mismatch', 422, NULL, 'Unprocessable Content',
        'This Idempotency-Key was used with other arguments.'),
    ('internal', 500, NULL, 'Internal Server Error',
        'The service failed; its log says how.'),
    ('busy', 503, 1, 'Service Unavailable',
        'Another process holds the database; nothing was changed.'),
    ('overloaded', 503, 1, 'Service Unavailable',
        'Too many requests wait; nothing was changed.'),
    ('too_late', 503, 1, 'Service Unavailable',
        'Storing the lease took longer than the lease lasted.'),
    ('stopping', 503, 1, 'Service Unavailable',
        'The service is stopping; nothing was changed.'),
    ('read_only', 503, 5, 'Service Unavailable',
        'The database cannot be written; nothing was changed.'),
    ('database_moved', 503, 5, 'Service Unavailable',
        'The database file is not where it was; nothing was changed.'),
    ('storage_full', 507, 5, 'Insufficient Storage',
        'The disk is full; nothing was changed.')))
WHERE code = :code;
