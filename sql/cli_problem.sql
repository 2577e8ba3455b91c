-- cli_problem: what an answer that is no success says.
-- binds  :body TEXT the answer
-- yields code, remaining, no_wait (1 when the only thing wrong is "wait"),
--        text for people; no row when it is no JSON object

SELECT
    coalesce(json_extract(:body, '$.code'), '') AS code,
    json_extract(:body, '$.remaining') AS remaining,
    coalesce((SELECT min(json_extract(value, '$.loc[1]') = 'wait')
        FROM json_each(:body, '$.errors')), 0) AS no_wait,
    CASE
    WHEN json_array_length(:body, '$.holders') > 0 THEN
        printf('held by %s%s, for %.1f s',
            json_extract(:body, '$.holders[0].holder'),
            CASE json_array_length(:body, '$.holders') WHEN 1 THEN ''
                ELSE printf(' and %d more',
                    json_array_length(:body, '$.holders') - 1) END,
            json_extract(:body, '$.remaining'))
    WHEN json_array_length(:body, '$.errors') > 0 THEN (
        SELECT group_concat(coalesce(json_extract(value, '$.loc[1]') || ' ',
            '') || json_extract(value, '$.msg'), '; ')
        FROM json_each(:body, '$.errors'))
    ELSE coalesce(json_extract(:body, '$.detail'),
        json_extract(:body, '$.title'), '') END AS text
WHERE json_valid(:body) AND json_type(:body) = 'object';
