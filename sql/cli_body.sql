-- cli_body: the JSON body of a request, without the fields that have no value.
-- binds  :resource :holder :data :reason TEXT, :ttl :wait :min_remaining REAL,
--        :capacity :token INTEGER, or NULL
-- yields body

SELECT json_patch('{}', json_object(
    'resource', :resource,
    'holder', :holder,
    'ttl', :ttl,
    'capacity', :capacity,
    'data', :data,
    'wait', :wait,
    'token', :token,
    'min_remaining', :min_remaining,
    'reason', :reason)) AS body;
