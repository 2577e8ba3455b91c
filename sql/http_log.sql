-- http_log: from where to where the log goes.
-- yields trimmed: up to here it has holes, newest: the last number, oldest:
--        the first event behind trimmed

SELECT trimmed,
    coalesce((SELECT max(token) FROM main.lease_event), 0) AS newest,
    coalesce((SELECT min(token) FROM main.lease_event
        WHERE token > trimmed), trimmed) AS oldest
FROM main.lease_config WHERE id = 1;
