-- http_batch: the operations of a batch, POST /v1/batch.
-- binds  :json TEXT the body, :names TEXT the operations there are
--        ' grant renew '
-- yields one row an operation, in order: place (where its name stands in
--        :names), op TEXT the object, at TEXT where it is, as a JSON array,
--        problem: NULL or an object {loc, msg, type} for the client
-- lease_config is there to begin reading the database: for what is asked of it
-- row by row that would be done each time.

SELECT place, op, at,
    CASE
    WHEN kind <> 'object' THEN json_object(
        'loc', json(at), 'msg', 'must be an object', 'type', 'type')
    WHEN place = 0 THEN json_object(
        'loc', json_insert(at, '$[#]', 'op'),
        'msg', iif(name IS NULL, 'is required',
            'must be one of: ' || replace(trim(:names), ' ', ', ')),
        'type', CASE typeof(name) WHEN 'null' THEN 'missing'
            WHEN 'text' THEN 'value' ELSE 'type' END) END AS problem
FROM (
    SELECT op, at, kind, name,
        iif(instr(name, ' ') = 0, instr(:names, ' ' || name || ' '), 0)
            AS place
    FROM (
        SELECT value AS op, type AS kind,
            json_array('body', 'ops', key) AS at,
            iif(type = 'object', (
                SELECT CASE type WHEN 'text' THEN atom
                    WHEN 'null' THEN NULL ELSE 0 END
                FROM json_each(op.value) WHERE key = 'op'), NULL) AS name
        FROM main.lease_config AS config CROSS JOIN json_each((
            SELECT value FROM json_each(:json) WHERE key = 'ops')) AS op
        WHERE config.id = 1));
