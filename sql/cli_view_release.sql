-- cli_view_release: what `lease release` prints: how the lease ended.
-- binds  :body TEXT the answer
-- yields line, json, over (1 when it was over before)

SELECT json_extract(:body, '$.why') AS line, :body AS json,
    NOT json_extract(:body, '$.released') AS over;
