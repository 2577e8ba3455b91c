-- cli_view_status: what `lease status` prints: one line, name=value.
-- binds  :body TEXT the answer
-- yields line, json

SELECT printf('version=%s now=%s lead=%.3f active=%d events=%d token=%d',
        json_extract(:body, '$.version'),
        json_extract(:body, '$.clock.now'),
        json_extract(:body, '$.clock.lead'),
        json_extract(:body, '$.leases.active'),
        json_extract(:body, '$.leases.events'),
        json_extract(:body, '$.leases.newest_token')) AS line,
    :body AS json;
