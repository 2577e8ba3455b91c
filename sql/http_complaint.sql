-- http_complaint: what is wrong with a field, told to the client.
-- binds  :at TEXT where it is, as a JSON array, :name TEXT, :wrong TEXT its
--        type (missing, unknown, type, value), a blank, and what to say
-- yields problem: an object {loc, msg, type}

SELECT json_object(
    'loc', json_insert(:at, '$[#]', substr(:name, 1, 64)),
    'msg', substr(:wrong, instr(:wrong, ' ') + 1),
    'type', substr(:wrong, 1, instr(:wrong, ' ') - 1)) AS problem;
