-- lease_fence_highest: the highest token seen for the resource.
-- binds  :resource TEXT
-- yields token, or no row

SELECT token FROM main.lease_fence WHERE resource = :resource;
