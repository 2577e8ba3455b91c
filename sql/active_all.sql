-- active_all: every active lease, by resource and holder.
-- binds  :now ms
-- yields the columns of lease_active, times in ms
-- What the statement grants or renews ahead of the scan is left out, as in
-- active_expiry.

SELECT resource, holder, token, epoch, capacity, ttl, granted_at, renewed_at,
    expires_at, data
FROM main.lease
WHERE +expires_at > :now AND token <= (
    SELECT max(ifnull((SELECT max(token) FROM main.lease_event), 0),
        ifnull((SELECT seq FROM main.sqlite_sequence
            WHERE name = 'lease_event'), 0)))
ORDER BY resource, holder;
