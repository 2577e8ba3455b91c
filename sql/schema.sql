-- schema: everything Leasehold keeps in a database file.
-- Run once, whole, by lease_init() or the first write. ext/schema.c compares
-- what a file holds with these texts, statement by statement, before it uses
-- the file; one blank line ends each statement.
-- Times are integer milliseconds of lease time (Unix epoch).

CREATE TABLE main.lease_event (
    -- The truth: one row for whatever happened to a lease, in order.
    token INTEGER PRIMARY KEY AUTOINCREMENT -- the number that only grows
        CONSTRAINT "tokens end at 2^53" CHECK (token < 9007199254740992),
    at INTEGER NOT NULL,       -- when it was decided, rounded down
    event TEXT NOT NULL CHECK (
        event = 'granted' OR event = 'renewed' OR event = 'released'
        OR event = 'expired' OR event = 'revoked' OR event = 'restored'),
    resource TEXT,             -- NULL only when restored
    holder TEXT,               -- NULL only when restored
    grant_token INTEGER,       -- token of the grant it follows; NULL on a grant
    ttl INTEGER,               -- asked for: granted, renewed
    capacity INTEGER,          -- granted
    data TEXT,                 -- granted
    request_id TEXT,           -- granted, when the caller gave one
    actor TEXT,                -- who asked, where that is known
    reason TEXT,               -- revoked
    expires_at INTEGER,        -- until when this token's promise holds
    epoch INTEGER AS (coalesce(grant_token, token)) VIRTUAL,
    CHECK (event = 'restored' OR (resource IS NOT NULL AND holder IS NOT NULL
        AND expires_at IS NOT NULL))
) STRICT;

CREATE INDEX main.lease_event_request ON lease_event (request_id)
    WHERE request_id IS NOT NULL;

CREATE INDEX main.lease_event_end ON lease_event (grant_token)
    WHERE event <> 'granted' AND event <> 'renewed';

CREATE TABLE main.lease (
    -- The projection: who holds what. A row may have run out already.
    epoch INTEGER PRIMARY KEY,   -- the first token of this tenure
    token INTEGER NOT NULL,      -- the newest of this tenure
    resource TEXT NOT NULL,
    holder TEXT NOT NULL,
    capacity INTEGER NOT NULL,   -- holders this one accepts, itself included
    ttl INTEGER NOT NULL,        -- asked for last
    granted_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL, -- granted_at before the first renewal
    expires_at INTEGER NOT NULL, -- active while now < expires_at
    data TEXT,                   -- what the holder wants others to see
    UNIQUE (resource, holder)
) STRICT;

CREATE INDEX main.lease_expires_at ON lease (expires_at);

CREATE INDEX main.lease_holder ON lease (holder);

CREATE TABLE main.lease_fence (
    -- The register of the highest token seen for each resource.
    resource TEXT PRIMARY KEY,
    token INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE main.lease_clock (
    -- One row: lease time is anchor + the kernel's boot time clock.
    id INTEGER PRIMARY KEY CHECK (id = 1),
    boot_id TEXT NOT NULL,     -- the boot that anchor belongs to
    anchor INTEGER NOT NULL
) STRICT;

CREATE TABLE main.lease_config (
    -- One row: settings, and where trimming stands.
    id INTEGER PRIMARY KEY CHECK (id = 1),
    schema INTEGER NOT NULL,           -- version of these tables
    min_ttl INTEGER NOT NULL,
    max_ttl INTEGER NOT NULL,
    event_rows INTEGER NOT NULL,       -- events kept before trimming
    trim_from INTEGER NOT NULL,        -- the step that trimmed last: after
    trim_to INTEGER NOT NULL,          -- this token, up to this one
    trimmed INTEGER NOT NULL           -- up to here the log has holes
) STRICT;

INSERT INTO main.lease_config
VALUES (1, 1, 100, 86400000, 100000, 0, 0, 0);

CREATE VIEW main.lease_proof AS
    -- Rule of proof: each token of a tenure in the projection, and until when
    -- it proves the tenure. The newest token and the epoch prove it to its
    -- end, a token between them as long as its own promise ran.
    SELECT e.token, e.resource, e.holder, l.epoch, l.token AS newest, l.ttl,
        l.expires_at,
        iif(e.token = l.token OR e.token = l.epoch,
            l.expires_at, e.expires_at) AS proves_until
    FROM lease_event AS e
    JOIN lease AS l ON l.epoch = e.epoch
    WHERE e.event = 'granted' OR e.event = 'renewed';

CREATE TRIGGER main.lease_event_refuse BEFORE INSERT ON lease_event
WHEN NEW.event = 'granted' BEGIN
    -- No clock for this boot yet: the caller stores one and comes again.
    SELECT RAISE(IGNORE) WHERE NEW.at IS NULL;
    SELECT RAISE(IGNORE) WHERE NEW.request_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM lease_event WHERE request_id = NEW.request_id
            AND resource = NEW.resource AND holder = NEW.holder);
    -- Held is held; else the others must fit below the smallest capacity.
    SELECT RAISE(IGNORE) WHERE (
        SELECT max(holder = NEW.holder)
            OR count(*) >= min(capacity) OR count(*) >= NEW.capacity
        FROM lease WHERE resource = NEW.resource AND expires_at > NEW.at);
END;

CREATE TRIGGER main.lease_event_lapse BEFORE INSERT ON lease_event
WHEN NEW.event = 'granted' AND EXISTS (SELECT 1 FROM lease
    WHERE resource = NEW.resource AND expires_at <= NEW.at)
BEGIN
    -- Tell the expiries that come before this grant. Triggers fire in no
    -- promised order, so this one refuses by itself what the one above
    -- refuses. A trigger of its own, because its INSERT … SELECT opens a
    -- temporary table, which costs a fifth of a grant.
    SELECT RAISE(IGNORE) WHERE NEW.request_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM lease_event WHERE request_id = NEW.request_id
            AND resource = NEW.resource AND holder = NEW.holder);
    SELECT RAISE(IGNORE) WHERE (
        SELECT max(holder = NEW.holder)
            OR count(*) >= min(capacity) OR count(*) >= NEW.capacity
        FROM lease WHERE resource = NEW.resource AND expires_at > NEW.at);
    INSERT INTO lease_event (at, event, resource, holder, grant_token,
        expires_at)
    SELECT NEW.at, 'expired', resource, holder, epoch, expires_at
    FROM lease WHERE resource = NEW.resource AND expires_at <= NEW.at;
END;

CREATE TRIGGER main.lease_event_granted AFTER INSERT ON lease_event
WHEN NEW.event = 'granted' BEGIN
    -- A lease counts from the next full millisecond after NEW.at.
    INSERT INTO lease VALUES (NEW.token, NEW.token, NEW.resource, NEW.holder,
        NEW.capacity, NEW.ttl, NEW.expires_at - NEW.ttl,
        NEW.expires_at - NEW.ttl, NEW.expires_at, NEW.data);
END;

CREATE TRIGGER main.lease_event_renewed AFTER INSERT ON lease_event
WHEN NEW.event = 'renewed' BEGIN
    UPDATE lease SET token = NEW.token, ttl = NEW.ttl,
        renewed_at = iif(NEW.expires_at - NEW.ttl <= NEW.at + 1,
            NEW.expires_at - NEW.ttl, NEW.at),
        expires_at = NEW.expires_at
    WHERE epoch = NEW.grant_token;
END;

CREATE TRIGGER main.lease_event_ended AFTER INSERT ON lease_event
WHEN NEW.event <> 'granted' AND NEW.event <> 'renewed' BEGIN
    DELETE FROM lease WHERE epoch = NEW.grant_token;
END;

CREATE TRIGGER main.lease_event_trim AFTER INSERT ON lease_event
WHEN NEW.token % 64 = 0 BEGIN
    -- Every 64 events look at the next 128 old ones, round and round: what a
    -- tenure in force still needs stays, the rest goes.
    UPDATE lease_config SET trim_from = trim_to, trim_to = coalesce((
        SELECT max(token) FROM (SELECT token FROM lease_event
            WHERE token > trim_to AND token <= NEW.token - event_rows
            ORDER BY token LIMIT 128)), 0);
    UPDATE lease_config SET trimmed = trim_to WHERE trim_to > trimmed;
    DELETE FROM lease_event
    WHERE token > (SELECT trim_from FROM lease_config)
        AND token <= (SELECT trim_to FROM lease_config)
        AND NOT EXISTS (SELECT 1 FROM lease AS l
            WHERE l.epoch = lease_event.epoch
                AND (lease_event.token = l.epoch
                    OR lease_event.token = l.token
                    OR lease_event.expires_at > NEW.at));
    UPDATE lease_config SET trim_to = 0 WHERE NOT EXISTS (
        SELECT 1 FROM lease_event
        WHERE token > trim_to AND token <= NEW.token - event_rows);
END;
