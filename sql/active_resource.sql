-- active_resource: active leases of one resource, by holder.
-- binds  :resource TEXT, :now ms
-- yields the columns of lease_active, times in ms

SELECT resource, holder, token, epoch, capacity, ttl, granted_at, renewed_at,
    expires_at, data
FROM main.lease
WHERE resource = :resource AND +expires_at > :now
ORDER BY holder;
