"""Files that are not what they seem: other people's tables under our names,
ours changed, a newer version, damage. Each is refused with a clear error,
nothing of the file is run, and nothing of it changes."""

import re
import sqlite3

import pytest

import support
from support import one

WRITES = ["SELECT lease_grant('r', 'a', 10)", "SELECT lease_renew('r', 1)",
          "SELECT lease_release('r', 1)", "SELECT lease_revoke('r')",
          "SELECT lease_fence('r', 1)", "SELECT lease_sweep()",
          "SELECT lease_restore()", "SELECT lease_init()",
          "SELECT lease_config('min_ttl', 1)",
          "SELECT lease_guard('victim', 'r', 'k')"]
READS = ["SELECT lease_check('r', 1)", "SELECT lease_why('r', 1)",
         "SELECT lease_now()", "SELECT * FROM lease_active",
         "SELECT lease_config('min_ttl')", "SELECT lease_problem('ttl', 1)"]

OURS = ["lease_event", "lease", "lease_fence", "lease_clock", "lease_config"]


def content(path):
    """All that a file holds, as a stock SQLite sees it."""
    con = sqlite3.connect(path)
    con.create_function("boom", -1, lambda *_: 1, deterministic=True)
    schema = con.execute("SELECT * FROM sqlite_schema").fetchall()
    tables = [name for kind, name, _, page, _ in schema
              if kind == "table" and page]
    found = [(t, con.execute(f'SELECT * FROM "{t}"').fetchall())
             for t in tables]
    con.close()
    return schema, found


def refuses(path, match="not as Leasehold makes them", writes_only=False):
    """Every function refuses the file; nothing of it runs or changes."""
    before = content(path)
    ran = []
    con = support.connect(path)
    con.create_function("boom", -1, lambda *args: ran.append(args) or 1,
                        deterministic=True)
    for sql in WRITES + ([] if writes_only else READS):
        with pytest.raises(sqlite3.Error, match=match) as error:
            con.execute(sql).fetchall()
        assert error.value.sqlite_errorname == "SQLITE_ERROR", sql
        assert "lease" in str(error.value)
        con.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.Error, match=match):
            con.execute(sql).fetchall()
        con.execute("ROLLBACK")
    con.close()
    assert ran == []
    assert content(path) == before


class Plain(sqlite3.Connection):
    path = None


@pytest.fixture
def plain(tmp_path):
    """A file without leases, in a stock connection."""
    con = sqlite3.connect(tmp_path / "plain.db", isolation_level=None,
                          factory=Plain)
    con.create_function("boom", -1, lambda *_: 1, deterministic=True)
    con.execute("CREATE TABLE victim(r TEXT, k INTEGER, v)")
    con.path = tmp_path / "plain.db"
    yield con
    con.close()


@pytest.fixture
def ours(tmp_path, build):
    """A lease database with a lease in it, in a stock connection."""
    path = tmp_path / "ours.db"
    con = support.connect(path)
    con.execute("CREATE TABLE victim(r TEXT, k INTEGER, v)")
    one(con, "SELECT lease_grant('r', 'a', 86400)")
    one(con, "SELECT lease_fence('r', 1)")
    con.close()
    con = sqlite3.connect(path, isolation_level=None, factory=Plain)
    con.create_function("boom", -1, lambda *_: 1, deterministic=True)
    con.path = path
    yield con
    con.close()


# --- other people's objects under our names ----------------------------------------

@pytest.mark.parametrize("name", OURS + ["lease_proof", "LEASE", "Lease_Event"])
@pytest.mark.parametrize("what", [
    "CREATE TABLE {0}(x)", "CREATE VIEW {0} AS SELECT boom() AS x",
    "CREATE VIEW {0} AS SELECT boom() AS schema, 1 AS id, 2 AS token",
    "CREATE INDEX {0} ON victim(r)",
    "CREATE TRIGGER {0} AFTER INSERT ON victim BEGIN SELECT boom(); END",
    "CREATE VIRTUAL TABLE {0} USING fts5(x)",
    "CREATE TABLE {0}(id, schema AS (boom()), x)"])
def test_an_object_of_our_name_that_is_not_ours(plain, name, what):
    """C089"""
    plain.execute(what.format(name))
    refuses(plain.path)


def test_a_view_as_the_version_row_is_not_read(plain):
    plain.execute("CREATE TABLE real(id, schema)")
    plain.execute("INSERT INTO real VALUES(1, 99)")
    plain.execute("CREATE VIEW lease_config AS SELECT id, schema + boom() "
                  "AS schema FROM real")
    refuses(plain.path)


@pytest.mark.parametrize("name", OURS)
def test_part_of_our_schema_is_not_our_schema(plain, ours, name):
    """Half a schema: one table alone, as we make it."""
    plain.execute(ours.execute("SELECT sql FROM sqlite_schema WHERE name = ?",
                               (name,)).fetchone()[0])
    refuses(plain.path)


# --- our tables, changed -------------------------------------------------------------

HARM = [
    "ALTER TABLE lease ADD COLUMN x ANY",
    "ALTER TABLE lease_event ADD COLUMN x INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE lease_event ADD COLUMN x INTEGER AS (boom()) VIRTUAL",
    "ALTER TABLE lease_event RENAME COLUMN reason TO why",
    "CREATE TRIGGER x AFTER INSERT ON lease_event BEGIN SELECT boom(); END",
    "CREATE TRIGGER x BEFORE INSERT ON lease_event BEGIN "
    "SELECT RAISE(IGNORE); END",
    "CREATE TRIGGER x AFTER UPDATE ON lease BEGIN DELETE FROM victim; END",
    "CREATE TRIGGER x AFTER INSERT ON lease_fence BEGIN SELECT boom(); END",
    "CREATE TRIGGER x AFTER UPDATE ON lease_config BEGIN SELECT boom(); END",
    "CREATE TRIGGER x INSTEAD OF DELETE ON lease_proof BEGIN "
    "SELECT boom(); END",
    "CREATE INDEX x ON lease(boom(holder))",
    "CREATE INDEX x ON lease_event(holder) WHERE boom()",
    "CREATE UNIQUE INDEX x ON lease_event(event)",
    "DROP TRIGGER lease_event_refuse", "DROP TRIGGER lease_event_granted",
    "DROP TRIGGER lease_event_ended", "DROP TRIGGER lease_event_trim",
    "DROP INDEX lease_expires_at", "DROP INDEX lease_event_request",
    "DROP VIEW lease_proof", "DROP TABLE lease_fence",
    "DROP TABLE lease_clock", "DROP TABLE lease",
    "DROP VIEW lease_proof; CREATE VIEW lease_proof AS SELECT boom() AS token",
    "DROP TABLE lease_fence; CREATE TABLE lease_fence(resource TEXT PRIMARY "
    "KEY, token INTEGER NOT NULL)",
    "DROP TABLE lease_clock; CREATE VIEW lease_clock AS SELECT 1 AS id, "
    "boom() AS anchor, '' AS boot_id",
]


@pytest.mark.parametrize("sql", HARM)
def test_our_schema_with_a_change_is_refused(ours, sql):
    """C089"""
    ours.executescript(sql)
    refuses(ours.path)


@pytest.mark.parametrize("trigger", [
    "lease_event_refuse", "lease_event_lapse", "lease_event_granted",
    "lease_event_renewed", "lease_event_ended", "lease_event_trim"])
def test_a_trigger_with_an_altered_text_is_refused(ours, trigger):
    text = one(ours, "SELECT sql FROM sqlite_schema WHERE name = ?", trigger)
    ours.execute(f"DROP TRIGGER {trigger}")
    ours.execute(re.sub(r"END$", "SELECT boom(); END", text))
    refuses(ours.path)


def test_a_trigger_of_our_name_on_another_table_is_refused(ours):
    ours.execute("DROP TRIGGER lease_event_refuse")
    ours.execute("CREATE TRIGGER lease_event_refuse BEFORE INSERT ON victim "
                 "BEGIN SELECT boom(); END")
    refuses(ours.path)


@pytest.mark.parametrize("change", [
    "UPDATE sqlite_schema SET sql = replace(sql, 'RAISE(IGNORE)', '1') "
    "WHERE name = 'lease_event_refuse'",
    "UPDATE sqlite_schema SET sql = replace(sql, 'max(holder = NEW.holder)', "
    "'0') WHERE name = 'lease_event_lapse'",
    "UPDATE sqlite_schema SET sql = replace(sql, 'AUTOINCREMENT', "
    "'             ') WHERE name = 'lease_event'",
    "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '        ') "
    "WHERE name = 'lease'",
    "DELETE FROM sqlite_schema WHERE name = 'lease_event_refuse'",
    "UPDATE sqlite_schema SET sql = replace(sql, '-- ', '--  ') "
    "WHERE name = 'lease'"])
def test_a_schema_edited_by_hand_is_refused(ours, change):
    """C082"""
    ours.execute("PRAGMA writable_schema = ON")
    ours.execute(change)
    ours.execute("PRAGMA writable_schema = RESET")
    refuses(ours.path)


def test_a_newer_version_says_so_and_is_left_alone(ours):
    ours.execute("ALTER TABLE lease ADD COLUMN something_new TEXT")
    ours.execute("UPDATE lease_config SET schema = 1000000")
    refuses(ours.path, match="lease schema 1000000.*use a newer one")


def test_a_change_by_another_process_is_noticed(ours):
    """The schema is looked at when it is first used; what SQLite tells of a
    change later makes a kept statement fail or compile anew, never lie."""
    con = support.connect(ours.path)
    token = one(con, "SELECT lease_renew('r', 1)")
    assert token == 2
    ours.execute("DROP TABLE lease_clock")
    for sql in ("SELECT lease_grant('x', 'a', 10)", "SELECT lease_now()",
                "SELECT * FROM lease_active"):
        with pytest.raises(sqlite3.Error, match="lease"):
            con.execute(sql).fetchall()
    con.close()


# --- rows that no function of ours would write ----------------------------------------

@pytest.mark.parametrize("harm", [
    "DELETE FROM lease_config", "DELETE FROM lease_clock",
    "UPDATE lease_config SET min_ttl = 9223372036854775807",
    "UPDATE lease_config SET max_ttl = -9223372036854775808",
    "UPDATE lease_config SET min_ttl = -9223372036854775808, "
    "max_ttl = 9223372036854775807",
    "UPDATE lease_config SET event_rows = -9223372036854775808",
    "UPDATE lease_config SET trim_to = 9223372036854775807",
    "UPDATE lease SET expires_at = 9223372036854775807",
    "UPDATE lease SET expires_at = -9223372036854775808",
    "UPDATE lease SET ttl = 9223372036854775807",
    "UPDATE lease SET capacity = -5", "UPDATE lease SET token = 77",
    "UPDATE lease SET epoch = 77", "UPDATE lease SET holder = x'00'||'b'",
    "DELETE FROM lease", "DELETE FROM lease_event",
    "UPDATE lease_event SET at = 9223372036854775807",
    "UPDATE lease_event SET expires_at = 9223372036854775807",
    "UPDATE sqlite_sequence SET seq = 'x'",
    "UPDATE sqlite_sequence SET seq = -5", "DELETE FROM sqlite_sequence",
    "INSERT INTO sqlite_sequence VALUES('lease_event', 5)"])
def test_rows_out_of_all_reason_give_errors_or_answers_but_no_fault(ours,
                                                                    harm):
    """C082"""
    ours.executescript(harm)
    con = support.connect(ours.path)
    for sql in WRITES + READS + WRITES:
        try:
            con.execute(sql).fetchall()
        except sqlite3.Error as error:
            assert "lease" in str(error) or "overflow" in str(error), error
    assert not any(row[9] < 0 for row in con.execute(
        "SELECT * FROM lease_active"))
    assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    con.close()


# --- damage ------------------------------------------------------------------------------

def test_a_file_that_is_no_database_is_an_error(tmp_path, build):
    path = tmp_path / "no.db"
    path.write_bytes(b"this is no database" * 100)
    con = support.connect(path)
    for sql in WRITES + READS:
        with pytest.raises(sqlite3.DatabaseError, match="not a database") \
                as error:
            con.execute(sql).fetchall()
        assert error.value.sqlite_errorname == "SQLITE_NOTADB"
    con.close()


def test_a_damaged_file_gives_sqlites_own_error(ours, tmp_path):
    size = one(ours, "PRAGMA page_size")
    pages = [p for p, in ours.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name IN "
        "('lease', 'lease_event', 'lease_clock', 'lease_config')")]
    ours.close()
    raw = bytearray(ours.path.read_bytes())
    for page in pages:
        raw[(page - 1) * size:page * size] = b"\xa5" * size
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(raw)
    con = support.connect(damaged)
    for sql in WRITES[:4] + READS[:4]:
        with pytest.raises(sqlite3.DatabaseError, match="malformed") as error:
            con.execute(sql).fetchall()
        assert error.value.sqlite_errorname.startswith("SQLITE_CORRUPT")
    con.close()


# --- hosts that are careful -----------------------------------------------------------------

def test_a_defensive_shell_with_untrusted_schemas(tmp_path, build):
    """C109"""
    path = tmp_path / "lease.db"
    script = """.dbconfig defensive on
PRAGMA trusted_schema = OFF;
SELECT lease_grant('r', 'a', 60);
SELECT lease_grant('r', 'b', 60) IS NULL;
SELECT resource, holder FROM lease_active;
CREATE TABLE t(r TEXT, k INTEGER);
SELECT lease_guard('t', 'r', 'k');
INSERT INTO t VALUES('r', 1);
CREATE VIEW v AS SELECT lease_check('r', 1) AS held, * FROM lease_active;
SELECT held, holder FROM v;
"""
    said = support.shell(script, path).split("\n")
    assert [line for line in said if line and "defensive" not in line] == \
        ["1", "1", "r|a", "1", "1|a"]
    assert support.shell(".dbconfig defensive on\n"
                         "SELECT lease_renew('r', 1);\n", path) \
        .strip().endswith("2")


def test_views_and_triggers_of_a_file_cannot_write_leases(ours):
    """C089: DIRECTONLY, also for the functions inside our statements."""
    con = support.connect(ours.path)
    calls = ["lease_grant('x', 'evil', 10)", "lease_renew('r', 1)",
             "lease_release('r', 1)", "lease_revoke('r')",
             "lease_fence('r', 99)", "lease_sweep()", "lease_restore()",
             "lease_config('max_ttl', 1)", "lease_init()",
             "lease_guard('victim', 'r', 'k')", "lease_tick(1)",
             "lease_ttl(1, 1, 1)", "lease_instant(1)"]
    before = con.execute("SELECT * FROM lease_event").fetchall()
    for i, call in enumerate(calls):
        with pytest.raises(sqlite3.Error, match="unsafe use"):
            con.execute(f"CREATE VIEW v{i} AS SELECT {call} AS x")
            con.execute(f"SELECT * FROM v{i}").fetchall()
        with pytest.raises(sqlite3.Error, match="unsafe use"):
            con.execute(f"CREATE TRIGGER t{i} AFTER INSERT ON victim BEGIN "
                        f"SELECT {call}; END")
            con.execute("INSERT INTO victim VALUES('r', 1, 1)")
        con.execute(f"DROP TRIGGER IF EXISTS t{i}")
    for make in ("CREATE TABLE g(x, y AS (lease_sweep()))",
                 "CREATE TABLE g(x CHECK (lease_sweep()))",
                 "CREATE TABLE g(x DEFAULT (lease_sweep()))",
                 "CREATE INDEX g ON victim(lease_sweep())"):
        with pytest.raises(sqlite3.Error):
            con.execute(make)
            con.execute("INSERT INTO g(rowid) VALUES(1)")
            con.execute("SELECT * FROM g").fetchall()
        con.execute("DROP TABLE IF EXISTS g")
    assert con.execute("SELECT * FROM lease_event").fetchall() == before
    con.close()
