-- http_ttl: what is wrong with a ttl by the bounds of now, which may have been
-- set after its request was read, or be too narrow for the usual one.
-- binds  :ttl or NULL
-- yields name, wrong: as http_complaint takes them

SELECT 'ttl' AS name,
    'value ' || lease_problem('ttl', coalesce(:ttl, 30)) AS wrong;
