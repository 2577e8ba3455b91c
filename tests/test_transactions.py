"""Calls inside larger statements and transactions, in views and triggers, on
files that cannot be written: each does the right thing or gives a clear
error, and leaves nothing half done."""

import ctypes
import os
import sqlite3
import subprocess
import threading
import time

import pytest

import support
from support import one


def everything(con):
    """All that our tables hold."""
    return [con.execute(f"SELECT * FROM main.{table} ORDER BY 1, 2").fetchall()
            for table in ("lease_event", "lease")]


def active(con):
    return con.execute("SELECT resource, holder, token FROM lease_active "
                       "ORDER BY resource, holder").fetchall()


# --- inside another statement -------------------------------------------------

def test_insert_select_keeps_the_tokens_it_was_given(db):
    con = db()
    con.execute("SELECT lease_init()").fetchall()
    con.execute("CREATE TABLE mine(resource TEXT, token INTEGER)")
    con.execute("INSERT INTO mine SELECT value, lease_grant(value, 'a', 30) "
                "FROM json_each('[\"r1\",\"r2\",\"r3\"]')")
    mine = con.execute("SELECT resource, token FROM mine").fetchall()
    assert mine == [(r, t) for r, _, t in active(con)]
    assert [t for _, t in mine] == [1, 2, 3]


def test_insert_select_that_fails_takes_its_grants_back(db):
    con = db()
    con.execute("SELECT lease_init()").fetchall()
    con.execute("CREATE TABLE mine(resource TEXT PRIMARY KEY, token INTEGER)")
    con.execute("INSERT INTO mine VALUES('r3', 0)")
    with pytest.raises(sqlite3.IntegrityError):
        con.execute("INSERT INTO mine SELECT value, "
                    "lease_grant(value, 'a', 30) "
                    "FROM json_each('[\"r1\",\"r2\",\"r3\"]')")
    assert active(con) == []
    assert con.execute("SELECT * FROM mine").fetchall() == [("r3", 0)]


def test_the_callers_last_insert_rowid_is_given_back(db):
    con = db()
    con.execute("SELECT lease_init()").fetchall()
    con.execute("CREATE TABLE t(x)")
    con.execute("INSERT INTO t(rowid, x) VALUES(77, 'x')")
    one(con, "SELECT lease_grant('r', 'a', 30)")
    assert one(con, "SELECT last_insert_rowid()") == 77


def test_the_check_guards_the_write_it_stands_in(db, clock):
    con = db()
    token = one(con, "SELECT lease_grant('r', 'a', 10)")
    con.execute("CREATE TABLE t(x)")
    write = "INSERT INTO t SELECT ? WHERE lease_check('r', ?)"
    assert con.execute(write, ("in time", token)).rowcount == 1
    clock.advance(10)
    assert con.execute(write, ("too late", token)).rowcount == 0
    assert con.execute("SELECT x FROM t").fetchall() == [("in time",)]


# --- transactions -------------------------------------------------------------

def test_rollback_takes_every_change_back(db):
    con = db()
    kept = one(con, "SELECT lease_grant('kept', 'a', 30)")
    before = everything(con)
    con.execute("BEGIN IMMEDIATE")
    one(con, "SELECT lease_grant('r', 'b', 30)")
    one(con, "SELECT lease_renew('kept', ?)", kept)
    one(con, "SELECT lease_release('kept', ?)", kept)
    con.execute("ROLLBACK")
    assert everything(con) == before
    assert one(con, "SELECT lease_check('kept', ?)", kept) == 1


def test_a_number_rolled_back_was_never_issued(db):
    con = db()
    con.execute("SELECT lease_init()").fetchall()
    con.execute("BEGIN IMMEDIATE")
    inside = one(con, "SELECT lease_grant('r', 'a', 30)")
    con.execute("ROLLBACK")
    assert one(con, "SELECT lease_grant('r', 'b', 30)") == inside
    assert active(con) == [("r", "b", inside)]


def test_rollback_of_the_first_write_takes_the_schema_along(db):
    con = db()
    con.execute("BEGIN IMMEDIATE")
    one(con, "SELECT lease_grant('r', 'a', 30)")
    con.execute("ROLLBACK")
    assert one(con, "SELECT count(*) FROM sqlite_schema") == 0
    assert active(con) == []
    assert one(con, "SELECT lease_grant('r', 'b', 30)") == 1
    assert active(con) == [("r", "b", 1)]


def test_rollback_to_a_savepoint_takes_back_what_came_after_it(db):
    con = db()
    con.execute("BEGIN IMMEDIATE")
    first = one(con, "SELECT lease_grant('r1', 'a', 30)")
    con.execute("SAVEPOINT s")
    one(con, "SELECT lease_grant('r2', 'a', 30)")
    con.execute("ROLLBACK TO s")
    con.execute("COMMIT")
    assert active(con) == [("r1", "a", first)]


@pytest.mark.parametrize("index", ["lease_expires_at", "lease_holder",
                                   "sqlite_autoindex_lease_1"])
@pytest.mark.parametrize("call", [
    "lease_grant('new', 'b', 30)", "lease_renew('r', 1)",
    "lease_release('r', 1)", "lease_revoke('r')"])
def test_in_a_damaged_file_a_call_that_breaks_off_takes_all_back(
        db, tmp_path, index, call):
    """Whatever it came upon, it came after its event was written."""
    con = db()
    con.execute("CREATE TABLE work(x)")
    one(con, "SELECT lease_grant('r', 'a', 30)")
    page, size = (one(con, f"SELECT rootpage FROM sqlite_schema "
                           f"WHERE name = '{index}'"),
                  one(con, "PRAGMA page_size"))
    before = everything(con)
    con.close()
    with open(tmp_path / "lease.db", "r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    con = db()
    con.execute("BEGIN IMMEDIATE")
    con.execute("INSERT INTO work VALUES(1)")
    try:
        one(con, f"SELECT {call}")
    except sqlite3.DatabaseError as error:
        assert "malformed" in str(error)
        assert not con.in_transaction
        assert everything(con) == before
        assert con.execute("SELECT * FROM work").fetchall() == []
    else:   # it did not need what is damaged
        assert con.in_transaction


@pytest.mark.parametrize("call", [
    "lease_grant('held', 'b', 30)", "lease_grant('new', 'b', 0.01)",
    "lease_grant('new', 'b', 30, 0)", "lease_renew('held', 7)",
    "lease_renew('held', 1, 1e9)", "lease_release('held', 7)"])
def test_what_is_refused_or_wrong_costs_the_transaction_nothing(db, call):
    con = db()
    con.execute("CREATE TABLE work(x)")
    one(con, "SELECT lease_grant('held', 'a', 30)")
    con.execute("BEGIN IMMEDIATE")
    con.execute("INSERT INTO work VALUES(1)")
    try:
        assert one(con, f"SELECT {call}") in (None, 0)
    except sqlite3.OperationalError as error:
        assert "must be" in str(error) or "ttl" in str(error)
    assert con.in_transaction
    con.execute("COMMIT")
    assert con.execute("SELECT * FROM work").fetchall() == [(1,)]


def test_others_see_a_grant_when_it_is_committed(db):
    con, other = db(), db()
    con.execute("SELECT lease_init()").fetchall()
    con.execute("BEGIN IMMEDIATE")
    token = one(con, "SELECT lease_grant('r', 'a', 30)")
    assert active(con) == [("r", "a", token)]
    assert active(other) == []
    con.execute("COMMIT")
    assert active(other) == [("r", "a", token)]


def test_a_refused_grant_beside_a_lapsed_tenure_takes_no_number(db, clock):
    con = db()
    one(con, "SELECT lease_grant('lapsed', 'a', 1)")
    one(con, "SELECT lease_grant('held', 'a', 60, 2)")
    one(con, "SELECT lease_grant('held', 'b', 1, 2)")
    clock.advance(5)
    before = everything(con)
    assert one(con, "SELECT lease_grant('held', 'c', 30)") is None
    assert everything(con) == before
    number = one(con, "SELECT max(token) FROM lease_event")
    assert one(con, "SELECT lease_grant('free', 'c', 30)") == number + 1


def test_a_refusal_writes_nothing_to_the_file(db, tmp_path):
    con = db()
    con.execute("PRAGMA journal_mode=WAL").fetchall()
    one(con, "SELECT lease_grant('r', 'a', 60)")
    size = os.path.getsize(tmp_path / "lease.db-wal")
    for _ in range(100):
        assert one(con, "SELECT lease_grant('r', 'b', 60)") is None
    assert os.path.getsize(tmp_path / "lease.db-wal") == size


# --- files that cannot be written ---------------------------------------------

def test_a_read_only_database_is_read_and_not_written(db, tmp_path):
    con = db()
    token = one(con, "SELECT lease_grant('r', 'a', 60)")
    read_only = support.connect(f"file:{tmp_path}/lease.db?mode=ro", uri=True)
    assert active(read_only) == [("r", "a", token)]
    assert one(read_only, "SELECT lease_check('r', ?)", token) == 1
    for call in ("lease_grant('q', 'b', 30)", f"lease_renew('r', {token})",
                 f"lease_release('r', {token})", "lease_revoke('r')"):
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            one(read_only, f"SELECT {call}")
    read_only.close()
    assert active(con) == [("r", "a", token)]


def test_a_read_only_database_without_leases_has_none(tmp_path):
    path = tmp_path / "empty.db"
    sqlite3.connect(path).execute("CREATE TABLE t(x)")
    con = support.connect(f"file:{path}?mode=ro", uri=True)
    assert active(con) == []
    assert one(con, "SELECT lease_check('r', 1)") == 0
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        one(con, "SELECT lease_grant('r', 'a', 30)")
    con.close()


@pytest.mark.parametrize("pragma", ["query_only = 1"])
def test_query_only_connections_are_told_so(db, pragma):
    con = db()
    con.execute("SELECT lease_init()").fetchall()
    con.execute(f"PRAGMA {pragma}")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        one(con, "SELECT lease_grant('r', 'a', 30)")


# --- a busy database ----------------------------------------------------------

def test_a_busy_database_is_waited_for(db):
    con, other = db(), db(check_same_thread=False)
    con.execute("SELECT lease_init()").fetchall()
    other.execute("BEGIN IMMEDIATE")
    later = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    later.start()
    assert one(con, "SELECT lease_grant('r', 'a', 30)") == 1
    later.join()


def test_without_a_busy_timeout_a_function_waits_itself(db):
    con, other = db(timeout=0), db(check_same_thread=False)
    con.execute("SELECT lease_init()").fetchall()
    other.execute("BEGIN IMMEDIATE")
    later = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    later.start()
    assert one(con, "SELECT lease_grant('r', 'a', 30)") == 1
    later.join()


def test_a_database_that_stays_busy_is_an_error_and_no_refusal(db):
    con, other = db(timeout=0.1), db()
    con.execute("SELECT lease_init()").fetchall()
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked") as error:
        one(con, "SELECT lease_grant('r', 'a', 30)")
    assert error.value.sqlite_errorname == "SQLITE_BUSY"
    other.execute("ROLLBACK")
    assert one(con, "SELECT lease_grant('r', 'a', 30)") == 1


def test_a_stale_read_transaction_gets_busy_snapshot_at_once(db):
    """C065"""
    con, other = db(), db()
    con.execute("PRAGMA journal_mode=WAL").fetchall()
    con.execute("SELECT lease_init()").fetchall()
    con.execute("BEGIN")
    assert active(con) == []
    token = one(other, "SELECT lease_grant('r', 'b', 30)")
    with pytest.raises(sqlite3.OperationalError) as error:
        one(con, "SELECT lease_grant('q', 'a', 30)")
    assert error.value.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT"
    con.execute("ROLLBACK")
    assert active(con) == [("r", "b", token)]


def test_the_lease_time_is_read_after_the_wait_for_the_lock(db, clock):
    """C046, C171: A renewal that waits for the lock past its expiry is refused."""
    con, other = db(check_same_thread=False), db()
    token = one(con, "SELECT lease_grant('r', 'a', 10)")
    answers = []
    other.execute("BEGIN IMMEDIATE")
    waiting = threading.Thread(target=lambda: answers.append(
        one(con, "SELECT lease_renew('r', ?, 10)", token)))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    clock.advance(10)
    other.execute("COMMIT")
    waiting.join()
    assert answers == [None]


def between_tries(con, then):
    """Have then() done after the first try of a call, which fails for a lock,
    and before the second. Answers a list that gets one item when it is done.

    SQLite tells of the question for the host's timeout, which comes in
    between."""
    done = []
    con.set_trace_callback(
        lambda said: "PRAGMA busy_timeout" in said and done.append(then()))
    return done


def reading(con):
    """The same connection, in a read transaction: it lets nobody COMMIT in a
    file with a rollback journal."""
    con.execute("BEGIN")
    con.execute("SELECT * FROM sqlite_schema").fetchall()
    return con


def test_a_lease_that_runs_out_between_two_tries_is_not_renewed(db, clock):
    """C046: The lock was given back in between, others saw it expired."""
    con, reader = db(timeout=0), db()
    token = one(con, "SELECT lease_grant('r', 'a', 10)")
    reading(reader)
    done = between_tries(
        con, lambda: (clock.advance(10), reader.execute("COMMIT")))
    assert one(con, "SELECT lease_renew('r', ?)", token) is None
    assert len(done) == 1
    assert one(con, "SELECT lease_why('r', ?)", token) == "expired"


def test_what_is_granted_at_a_second_try_counts_from_there(db, clock):
    con, reader = db(timeout=0), db()
    one(con, "SELECT lease_grant('lapsed', 'a', 5)")
    reading(reader)
    done = between_tries(
        con, lambda: (clock.advance(10), reader.execute("COMMIT")))
    tokens = con.execute("SELECT lease_grant('lapsed', 'b', 0.5), "
                         "lease_grant('r', 'b', 0.5)").fetchone()
    assert len(done) == 1
    assert con.execute("SELECT token, remaining FROM lease_active "
                       "ORDER BY token").fetchall() == [(t, 0.5) for t in tokens]
    assert con.execute(
        "SELECT event, at - min(at) OVER () FROM lease_event ORDER BY token"
    ).fetchall() == [("granted", 0), ("expired", 10_000), ("granted", 10_000),
                     ("granted", 10_000)]


@pytest.mark.parametrize("call", [
    "lease_init()", "lease_grant('r', 'a', 30)", "lease_config('min_ttl')",
    "lease_guard('work', 'resource', 'token')"])
def test_the_first_call_of_a_connection_waits_for_a_lock_that_bars_reading(
        db, call):
    other, con = db(), db(timeout=0)
    one(other, "SELECT lease_init()")
    other.execute("CREATE TABLE work(resource, token)")
    other.execute("BEGIN EXCLUSIVE")
    done = between_tries(con, lambda: other.execute("COMMIT"))
    assert one(con, f"SELECT {call}") is not None
    assert len(done) == 1


@pytest.mark.parametrize("call", [
    "lease_init()", "lease_grant('r', 'a', 30)",
    "lease_guard('work', 'resource', 'token')"])
def test_what_makes_the_tables_waits_for_a_reader(db, call):
    reader, con = db(), db(timeout=0)
    reader.execute("CREATE TABLE work(resource, token)")
    reading(reader)
    done = between_tries(con, lambda: reader.execute("COMMIT"))
    assert one(con, f"SELECT {call}") == 1
    assert len(done) == 1
    assert one(con, "PRAGMA integrity_check") == "ok"


def test_a_lock_that_comes_while_a_file_is_looked_at_is_no_foreign_file(db):
    con, other = db(timeout=0), db()
    one(con, "SELECT lease_init()")
    con.execute("CREATE INDEX mine ON lease (ttl)")
    with pytest.raises(sqlite3.OperationalError, match="left alone"):
        one(con, "SELECT lease_init()")
    con.set_trace_callback(
        lambda said: "pragma_table_xinfo" in said and not other.in_transaction
        and other.execute("BEGIN EXCLUSIVE"))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        one(con, "SELECT lease_check('r', 1)")


def test_a_hosts_busy_handler_that_gives_up_is_not_asked_a_hundred_times(
        db, tmp_path):
    """SQLite tells nobody that there is one. It asks it once for each try."""
    sqlite = ctypes.CDLL("libsqlite3.so.0")
    asked = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    def give_up(_context, _times):
        asked.append(time.sleep(0.3))
        return 0

    other, con = db(), ctypes.c_void_p()
    other.execute("PRAGMA journal_mode=WAL").fetchall()
    one(other, "SELECT lease_init()")
    other.execute("BEGIN IMMEDIATE")
    assert sqlite.sqlite3_open(bytes(tmp_path / "lease.db"),
                               ctypes.byref(con)) == 0
    sqlite.sqlite3_enable_load_extension(con, 1)
    assert sqlite.sqlite3_load_extension(
        con, support.extension().encode(), None, None) == 0
    sqlite.sqlite3_busy_handler(con, give_up, None)
    said = sqlite.sqlite3_exec(con, b"SELECT lease_grant('r', 'a', 30)", None,
                               None, None)
    sqlite.sqlite3_close(con)
    assert said == 5    # SQLITE_BUSY
    # 2 s in steps of 0.3 s, and what began before they were over.
    assert len(asked) <= 9


# --- views, triggers, other schemas -------------------------------------------

@pytest.mark.parametrize("call", [
    "lease_grant('r', 'a', 30)", "lease_renew('r', 1)",
    "lease_release('r', 1)", "lease_revoke('r')", "lease_sweep()",
    "lease_fence('r', 1)"])
@pytest.mark.parametrize("trusted", ["ON", "OFF"])
def test_a_view_or_trigger_cannot_write_leases(db, call, trusted):
    con = db()
    con.execute("SELECT lease_init()").fetchall()
    con.execute(f"PRAGMA trusted_schema={trusted}")
    before = everything(con)
    con.execute("CREATE TABLE t(x)")
    con.execute(f"CREATE VIEW v AS SELECT {call} AS token")
    con.execute(f"CREATE TRIGGER tr AFTER INSERT ON t "
                f"BEGIN SELECT {call}; END")
    for statement in ("SELECT * FROM v", "INSERT INTO t VALUES(1)"):
        with pytest.raises(sqlite3.OperationalError, match="unsafe use"):
            con.execute(statement).fetchall()
    assert everything(con) == before
    assert con.execute("SELECT * FROM t").fetchall() == []


@pytest.mark.parametrize("trusted", ["ON", "OFF"])
def test_a_view_or_trigger_may_check(db, trusted):
    con = db()
    token = one(con, "SELECT lease_grant('r', 'a', 30)")
    con.execute(f"PRAGMA trusted_schema={trusted}")
    con.execute("CREATE TABLE t(resource, token)")
    con.execute("CREATE VIEW v AS SELECT resource, holder FROM lease_active")
    con.execute("CREATE TRIGGER tr BEFORE INSERT ON t "
                "WHEN NOT lease_check(new.resource, new.token) "
                "BEGIN SELECT RAISE(ABORT, 'no lease'); END")
    assert con.execute("SELECT * FROM v").fetchall() == [("r", "a")]
    con.execute("INSERT INTO t VALUES('r', ?)", (token,))
    with pytest.raises(sqlite3.IntegrityError, match="no lease"):
        con.execute("INSERT INTO t VALUES('r', ?)", (token + 1,))


def test_the_schema_comes_with_the_first_write_and_not_with_loading(db):
    con = db()
    assert active(con) == []
    assert one(con, "SELECT count(*) FROM sqlite_schema") == 0
    assert one(con, "SELECT lease_grant('r', 'a', 30)") == 1


def test_plain_close_works_after_every_function_was_called(db, tmp_path):
    """sqlite3_close() answers SQLITE_BUSY while a statement is open; a file
    that is closed for good has no side files any more."""
    con = db()
    con.execute("PRAGMA journal_mode=WAL").fetchall()
    token = one(con, "SELECT lease_grant('r', 'a', 30)")
    token = one(con, "SELECT lease_renew('r', ?)", token)
    for call in (f"lease_check('r', {token})", f"lease_why('r', {token})",
                 "lease_now()", "lease_sweep()", "lease_fence('f', 1)",
                 f"lease_release('r', {token})", "lease_revoke('r')"):
        one(con, f"SELECT {call}")
    assert active(con) == []
    con.close()
    assert sorted(os.listdir(tmp_path)) == ["lease.db"]


def test_the_extension_may_be_loaded_twice(db):
    con = db()
    token = one(con, "SELECT lease_grant('r', 'a', 30)")
    support.load(con)
    assert active(con) == [("r", "a", token)]


def test_the_file_is_readable_without_the_extension(db, tmp_path):
    con = db()
    one(con, "SELECT lease_grant('r', 'a', 30)")
    said = subprocess.run(
        ["sqlite3", tmp_path / "lease.db",
         "SELECT event, resource, holder FROM lease_event; "
         "SELECT resource, holder FROM lease; PRAGMA integrity_check"],
        capture_output=True, text=True, check=True)
    assert said.stdout == "granted|r|a\nr|a\nok\n"
