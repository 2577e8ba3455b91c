-- lease_fence: remember the highest token seen for the resource.
-- binds  :resource TEXT, :token INTEGER
-- yields one changed row, or none when this one or a higher was seen before

INSERT INTO main.lease_fence (resource, token)
VALUES (:resource, :token)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token
WHERE excluded.token > lease_fence.token;
