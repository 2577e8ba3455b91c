-- cli_next: where the next page of a list begins.
-- binds  :body TEXT the answer
-- yields next: text for leases, a number for events; NULL at the end

SELECT coalesce(
    json_extract(:body, '$.next'),
    (SELECT max(json_extract(value, '$.token'))
        FROM json_each(:body, '$.events'))) AS next;
