-- cli_view_list: what `lease list` prints: one line a lease.
-- binds  :body TEXT the answer
-- yields line, json
-- Names have no control characters, so a tab separates. data may have them,
-- so it stands last and in JSON.

SELECT printf('%s%s%s%s%d%s%d%s%d%s%.3f%s%s',
        json_extract(value, '$.resource'), char(9),
        json_extract(value, '$.holder'), char(9),
        json_extract(value, '$.token'), char(9),
        json_extract(value, '$.epoch'), char(9),
        json_extract(value, '$.capacity'), char(9),
        json_extract(value, '$.remaining'), char(9),
        value -> '$.data') AS line,
    value AS json
FROM json_each(:body, '$.leases');
