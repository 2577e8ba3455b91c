-- http_fields_text: read the fields of a query, all of which are text.
-- binds  :json TEXT an object, :fields TEXT the known names ' a b c '
-- yields one row a key: key, value, wrong, as http_fields does

SELECT key, atom AS value,
    CASE key
    WHEN 'resource' THEN 'value ' || lease_problem('resource', atom)
    WHEN 'holder' THEN 'value ' || lease_problem('holder', atom)
    WHEN 'prefix' THEN
        iif(atom = '', NULL, 'value ' || lease_problem('resource', atom))
    WHEN 'limit' THEN CASE WHEN atom NOT GLOB '[1-9]*'
            OR atom GLOB '*[^0-9]*' OR length(atom) > 4
            OR CAST(atom AS INTEGER) > 1000
        THEN iif(atom GLOB '*[0-9]*' AND atom NOT GLOB '*[^-0-9.]*',
            'value', 'type') || ' must be 1 to 1000' END
    WHEN 'wait' THEN CASE WHEN atom NOT GLOB '[0-9]*'
            OR atom GLOB '*[^0-9.]*' OR atom GLOB '*.*.*'
            OR CAST(atom AS REAL) NOT BETWEEN 0 AND 60
        THEN iif(atom GLOB '*[0-9]*' AND atom NOT GLOB '*[^-0-9.]*',
            'value', 'type') || ' must be 0 to 60 seconds' END
    WHEN 'after' THEN CASE
        -- of the log, the only list that can be waited on
        WHEN instr(:fields, ' wait ') THEN CASE WHEN atom NOT GLOB '[0-9]*'
                OR atom GLOB '*[^0-9]*' OR length(atom) > 16
            THEN 'value must be the number of an event, or 0' END
        WHEN length(atom) > 800 OR atom NOT GLOB '[1-9]*:*'
            OR substr(atom, 1, instr(atom, ':') - 1) GLOB '*[^0-9]*'
        THEN 'value must be the "next" of a page' END
    END AS wrong
FROM json_each(:json);
