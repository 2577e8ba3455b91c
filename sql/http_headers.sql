-- http_headers: what is wrong with the fields that come in headers.
-- binds  :request_id :actor TEXT or NULL
-- yields name, wrong: as http_complaint takes them

SELECT 'Idempotency-Key' AS name,
    'value ' || lease_problem('request_id', :request_id) AS wrong
WHERE :request_id IS NOT NULL
UNION ALL
SELECT 'REMOTE_USER', 'value ' || lease_problem('actor', :actor)
WHERE :actor IS NOT NULL;
