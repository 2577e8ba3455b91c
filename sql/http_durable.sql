-- http_durable: did http_open_writer take effect, and is the file whole.
-- binds  :doubt INTEGER, 1: look through all of it
-- yields journal_mode TEXT ('wal'), synchronous INTEGER (2: FULL),
--        whole TEXT ('ok'), cache_spill INTEGER (0: OFF)

SELECT journal_mode, synchronous,
    CASE WHEN :doubt
        THEN (SELECT integrity_check FROM pragma_integrity_check(1))
        ELSE 'ok' END AS whole,
    cache_spill
FROM pragma_journal_mode, pragma_synchronous, pragma_cache_spill;
