-- active_range: active leases of the resources from :low up to :high.
-- binds  :low TEXT, :high TEXT (or a BLOB, above every text), :now ms
-- yields the columns of lease_active, times in ms
-- What the statement grants or renews ahead of the scan is left out, as in
-- active_expiry.

SELECT resource, holder, token, epoch, capacity, ttl, granted_at, renewed_at,
    expires_at, data
FROM main.lease
WHERE resource >= :low AND resource <= :high AND +expires_at > :now
    AND token <= (
        SELECT max(ifnull((SELECT max(token) FROM main.lease_event), 0),
            ifnull((SELECT seq FROM main.sqlite_sequence
                WHERE name = 'lease_event'), 0)))
ORDER BY resource, holder;
