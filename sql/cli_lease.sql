-- cli_lease: what a holder needs to know of a lease that it was answered.
-- binds  :body TEXT the answer
-- yields token, epoch, remaining, expires_at; no row when it is no lease

SELECT
    json_extract(:body, '$.token') AS token,
    json_extract(:body, '$.epoch') AS epoch,
    json_extract(:body, '$.remaining') AS remaining,
    json_extract(:body, '$.expires_at') AS expires_at
WHERE json_valid(:body)
    AND json_type(:body, '$.token') = 'integer'
    AND json_type(:body, '$.epoch') = 'integer'
    AND json_type(:body, '$.remaining') IN ('integer', 'real')
    AND json_type(:body, '$.expires_at') = 'text';
