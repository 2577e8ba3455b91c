-- cli_newest: the number of the newest event.
-- binds  :body TEXT what /v1/status answered
-- yields newest

SELECT json_extract(:body, '$.leases.newest_token') AS newest;
