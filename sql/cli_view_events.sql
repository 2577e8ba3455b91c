-- cli_view_events: what `lease events` and `lease watch` print: one line an
-- event.
-- binds  :body TEXT the answer
-- yields line, json
-- Names and reasons have no control characters, so a tab separates.

SELECT printf('%d%s%s%s%s%s%s%s%s%s%d%s%s',
        json_extract(value, '$.token'), char(9),
        json_extract(value, '$.at'), char(9),
        json_extract(value, '$.event'), char(9),
        coalesce(json_extract(value, '$.resource'), ''), char(9),
        coalesce(json_extract(value, '$.holder'), ''), char(9),
        json_extract(value, '$.epoch'), char(9),
        coalesce(json_extract(value, '$.reason'), '')) AS line,
    value AS json
FROM json_each(:body, '$.events');
