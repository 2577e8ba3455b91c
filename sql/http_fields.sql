-- http_fields: read the fields of a body.
-- binds  :json TEXT an object
-- yields one row a key: key, value (of an array: how many are in it), wrong:
--        NULL or what is wrong with it, as http_complaint takes it
-- null is as good as left out. Numbers are numbers, text is none. What is said
-- of a key that is no field does not matter. A column of json_each() is read
-- anew, and copied, at each place where it stands: so at as few as can be, in
-- the order of how often they are needed.

SELECT key, coalesce(atom, json_array_length(value)) AS value,
    CASE type
    WHEN 'text' THEN CASE key
        WHEN 'resource' THEN 'value ' || lease_problem('resource', atom)
        WHEN 'holder' THEN 'value ' || lease_problem('holder', atom)
        WHEN 'data' THEN 'value ' || lease_problem('data', atom)
        WHEN 'reason' THEN 'value ' || lease_problem('reason', atom)
        WHEN 'op' THEN NULL -- http_batch has looked at it
        WHEN 'request_id' THEN 'value ' || lease_problem('request_id', atom)
        WHEN 'ops' THEN 'type must be an array'
        WHEN 'atomic' THEN 'type must be true or false'
        ELSE 'type must be a number, not text' END
    WHEN 'null' THEN NULL
    WHEN 'array' THEN CASE key
        WHEN 'ops' THEN CASE WHEN json_array_length(value)
                NOT BETWEEN 1 AND 1000
            THEN 'value must have 1 to 1000 operations, it has '
                || json_array_length(value) END
        WHEN 'atomic' THEN 'type must be true or false'
        ELSE 'type must not be an object or array' END
    WHEN 'object' THEN CASE key
        WHEN 'ops' THEN 'type must be an array'
        WHEN 'atomic' THEN 'type must be true or false'
        ELSE 'type must not be an object or array' END
    WHEN 'true' THEN CASE key
        WHEN 'atomic' THEN NULL
        WHEN 'ops' THEN 'type must be an array'
        ELSE 'type must not be a boolean' END
    WHEN 'false' THEN CASE key
        WHEN 'atomic' THEN NULL
        WHEN 'ops' THEN 'type must be an array'
        ELSE 'type must not be a boolean' END
    ELSE CASE key
        WHEN 'token' THEN 'value ' || lease_problem('token', atom)
        WHEN 'ttl' THEN 'value ' || lease_problem('ttl', atom)
        WHEN 'capacity' THEN 'value ' || lease_problem('capacity', atom)
        WHEN 'min_remaining' THEN
            'value ' || lease_problem('min_remaining', atom)
        WHEN 'wait' THEN
            iif(atom BETWEEN 0 AND 60, NULL, 'value must be 0 to 60 seconds')
        WHEN 'ops' THEN 'type must be an array'
        WHEN 'atomic' THEN 'type must be true or false'
        -- The others are text, and all of them complain alike.
        ELSE 'type ' || lease_problem('data', atom) END
    END AS wrong
FROM json_each(:json);
