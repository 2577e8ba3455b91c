-- http_version: a number that is another one when somebody else has written.
-- yields it

PRAGMA main.data_version;
