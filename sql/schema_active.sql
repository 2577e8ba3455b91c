-- schema_active: the columns of lease_active, as SQLite is told of them.
-- The extension computes its rows; no table of this name is made.

CREATE TABLE lease_active (
    resource TEXT,
    holder TEXT,
    token INTEGER,
    epoch INTEGER,
    capacity INTEGER,
    ttl REAL,
    granted_at REAL,
    renewed_at REAL,
    expires_at REAL,
    remaining REAL,
    data TEXT
);
