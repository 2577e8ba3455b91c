"""A file of an older schema is brought up to date, once, whole, and with its
token counter. The test build knows a schema 0 for this (sql/test_*.sql)."""

import re
import sqlite3
import threading

import pytest

import support


def definitions(name):
    """The statements of a file of sql/, by the name that they create."""
    text = (support.ROOT / "sql" / f"{name}.sql").read_text()
    parts = [p for p in text.rstrip().rstrip(";").split(";\n\n")]
    found = {}
    for part in parts:
        part = "\n".join(line for line in part.splitlines()
                         if not line.startswith("--")).strip()
        created = re.match(r"CREATE \w+ main\.(\w+)", part)
        found[created.group(1) if created else part] = part
    return found


@pytest.fixture
def old(tmp_path, clock):
    """A file of schema 0 whose highest token, 7, belongs to a deleted row."""
    path = tmp_path / "lease.db"
    con = sqlite3.connect(path, isolation_level=None)
    past = definitions("test_schema_0")
    for name, text in definitions("schema").items():
        if name.startswith("INSERT"):
            con.execute("INSERT INTO lease_config"
                        " VALUES (1, 0, 100, 86400000, 5000)")
        else:
            con.execute(past.get(name, text))
    con.execute("INSERT INTO lease_event (token, at, event)"
                " VALUES (7, 1, 'restored')")
    con.execute("DELETE FROM lease_event")
    con.close()
    return path


def test_a_reader_says_that_the_file_is_older_and_changes_nothing(old):
    con = support.connect(old, clocked=True)
    before = con.execute("SELECT * FROM sqlite_schema").fetchall()
    for sql in ("SELECT lease_check('r', 1)", "SELECT * FROM lease_active"):
        with pytest.raises(sqlite3.OperationalError, match="older version"):
            con.execute(sql).fetchall()
    assert con.execute("SELECT * FROM sqlite_schema").fetchall() == before


def test_the_first_write_upgrades_and_the_token_goes_on(old):
    """C023"""
    con = support.connect(old, clocked=True)
    assert support.one(con, "SELECT lease_grant('r', 'h', 30)") == 8
    assert con.execute("SELECT schema, event_rows, trimmed FROM lease_config"
                       ).fetchall() == [(1, 5000, 0)]
    assert support.one(con, "PRAGMA integrity_check") == "ok"
    again = support.connect(old, clocked=True)
    assert support.one(again, "SELECT lease_init()") == 1
    assert support.one(again, "SELECT lease_check('r', 8)") == 1


def test_an_upgrade_that_is_rolled_back_has_not_happened(old):
    con = support.connect(old, clocked=True)
    con.execute("BEGIN IMMEDIATE")
    assert support.one(con, "SELECT lease_grant('r', 'h', 30)") == 8
    con.execute("ROLLBACK")
    assert support.one(con, "SELECT schema FROM lease_config") == 0
    assert support.one(con, "SELECT lease_grant('r', 'h', 30)") == 8


def test_many_that_upgrade_at_once_upgrade_once(old):
    """C023"""
    tokens, gate = [], threading.Barrier(8)

    def grant(number):
        con = support.connect(old, clocked=True, timeout=30)
        gate.wait()
        tokens.append(support.one(con, "SELECT lease_grant(?, 'h', 30)",
                                  f"r{number}"))
        con.close()

    threads = [threading.Thread(target=grant, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(tokens) == list(range(8, 16))


def test_an_older_schema_that_is_not_to_the_letter_is_refused(old):
    con = sqlite3.connect(old, isolation_level=None)
    con.execute("CREATE TRIGGER foreign_one AFTER INSERT ON lease_event"
                " BEGIN SELECT 1; END")
    con.close()
    con = support.connect(old, clocked=True)
    with pytest.raises(sqlite3.OperationalError, match="left alone"):
        con.execute("SELECT lease_grant('r', 'h', 30)")
    assert support.one(con, "SELECT schema FROM lease_config") == 0


def test_a_file_whose_version_is_newer_is_refused_whatever_else_it_says(
        db, clock):
    con = db()
    con.execute("SELECT lease_grant('r', 'h', 30)")
    con.execute("UPDATE lease_config SET schema = 999")
    other = db()
    for sql in ("SELECT lease_grant('s', 'h', 30)", "SELECT lease_check('r', 1)",
                "SELECT * FROM lease_active", "SELECT lease_init()"):
        with pytest.raises(sqlite3.OperationalError,
                           match="lease schema 999.*use a newer one"):
            other.execute(sql).fetchall()
    assert other.execute("SELECT resource FROM lease").fetchall() == [("r",)]
