-- lease_check: does the token prove a tenure that has this long left?
-- binds  :resource TEXT, :token INTEGER, :min_remaining ms or NULL (0),
--        :now ms
-- yields 1, or no row

SELECT 1 FROM main.lease_proof
WHERE token = :token AND resource = :resource
    AND proves_until > :now AND expires_at - :now >= ifnull(:min_remaining, 0);
