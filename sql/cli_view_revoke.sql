-- cli_view_revoke: what `lease revoke` prints: how many were taken away.
-- binds  :body TEXT the answer
-- yields line, json

SELECT json_extract(:body, '$.revoked') AS line, :body AS json;
