-- cli_view_token: what `lease grant` and `lease renew` print.
-- binds  :body TEXT the answer
-- yields line, json

SELECT json_extract(:body, '$.token') AS line, :body AS json;
