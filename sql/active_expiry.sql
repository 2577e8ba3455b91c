-- active_expiry: active leases in the order in which they run out.
-- binds  :now ms
-- yields the columns of lease_active, times in ms
-- Who renews each lease of such a scan moves it ahead of the scan: what is
-- newer than the scan's beginning is left out, or there would be no end.

SELECT resource, holder, token, epoch, capacity, ttl, granted_at, renewed_at,
    expires_at, data
FROM main.lease
WHERE expires_at > :now AND token <= (
    SELECT max(ifnull((SELECT max(token) FROM main.lease_event), 0),
        ifnull((SELECT seq FROM main.sqlite_sequence
            WHERE name = 'lease_event'), 0)))
ORDER BY expires_at;
