-- cli_view_check: what `lease check` prints: the seconds that are left.
-- binds  :body TEXT the answer
-- yields line, json

SELECT printf('%.3f', json_extract(:body, '$.remaining')) AS line,
    :body AS json;
