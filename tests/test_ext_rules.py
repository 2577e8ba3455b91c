"""The rules of a lease, one by one, through SQL: ownership, tokens, time,
bounds, transactions, the fence and its guards. A case id in a docstring (C001)
names the fault elsewhere that the test rules out."""

import itertools
import random
import sqlite3
import threading

import pytest

import support
from support import one

MAX_TOKEN = 2**53 - 1


def grant(con, resource="r", holder="a", ttl=10, *more):
    marks = ", ?" * len(more)
    return one(con, f"SELECT lease_grant(?, ?, ?{marks})",
               resource, holder, ttl, *more)


def renew(con, token, *more, resource="r"):
    marks = ", ?" * len(more)
    return one(con, f"SELECT lease_renew(?, ?{marks})", resource, token, *more)


def release(con, token, resource="r"):
    return one(con, "SELECT lease_release(?, ?)", resource, token)


def why(con, token, resource="r"):
    return one(con, "SELECT lease_why(?, ?)", resource, token)


def check(con, token, *more, resource="r"):
    marks = ", ?" * len(more)
    return one(con, f"SELECT lease_check(?, ?{marks})", resource, token, *more)


def rows(con):
    return con.execute("SELECT * FROM lease_active "
                       "ORDER BY resource, holder").fetchall()


def log(con):
    return con.execute("SELECT token, event, resource, holder "
                       "FROM lease_event ORDER BY token").fetchall()


def refused(con, sql, *args, match=None):
    """The SQL error that a call is answered with."""
    with pytest.raises(sqlite3.Error, match=match) as error:
        one(con, sql, *args)
    return error.value


# --- ownership (rules 1, 6, 7, 9) ----------------------------------------------

@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("taken", [False, True])
def test_a_tenure_that_is_over_is_not_renewed_taken_or_not(db, clock, swept,
                                                           taken):
    """C001, C005"""
    con = db()
    first = grant(con, ttl=1)
    clock.advance(1.5)
    if swept:
        assert one(con, "SELECT lease_sweep()") == 1
    second = grant(con, holder="b") if taken else None
    before, events = rows(con), log(con)
    assert renew(con, first) is None
    assert release(con, first) == 0
    assert why(con, first) == "expired"
    assert rows(con) == before and log(con) == events
    assert [r[1:3] for r in before] == ([("b", second)] if taken else [])


def test_a_lapsed_holder_gets_the_lease_again_at_once_with_a_higher_token(
        db, clock):
    """C005, C012"""
    con = db()
    first = grant(con, ttl=2)
    clock.advance(5)
    second = grant(con, ttl=60)
    assert second > first
    assert grant(con, ttl=60) is None
    assert len(rows(con)) == 1


def test_a_sweep_that_was_late_takes_nothing_that_was_renewed(db, clock):
    """C003"""
    con, sweeper = db(), db()
    con.execute("PRAGMA synchronous = OFF")
    tokens = [grant(con, f"r{i}", ttl=1) for i in range(100)]
    for _ in range(5):
        clock.advance(0.9)
        tokens = [renew(con, t, resource=f"r{i}")
                  for i, t in enumerate(tokens)]
        clock.advance(0.06)
        assert one(sweeper, "SELECT lease_sweep()") == 0
        assert all(check(con, t, resource=f"r{i}")
                   for i, t in enumerate(tokens))


def test_a_release_in_the_instant_of_expiry_is_harmless(db, clock):
    """C008"""
    con = db()
    for off, answer in ((-0.001, 1), (0, 0), (0.001, 0)):
        token = grant(con, ttl=1)
        clock.advance(1 + off)
        assert release(con, token) == answer
        assert rows(con) == []
        assert grant(con, holder="next", ttl=0.1)
        clock.advance(1)


@pytest.mark.parametrize("wrong", [6, 8, 2**53 - 1])
def test_another_token_than_the_current_is_refused(db, wrong):
    """C010"""
    con = db()
    while (token := grant(con)) < 7:
        release(con, token)
    before = log(con)
    assert token == 7
    for call in (renew, release, check):
        assert not call(con, wrong)
    assert log(con) == before
    assert renew(con, "7") == 8


@pytest.mark.parametrize("wrong", [2**63 - 1, 2**53, 0, -1, 7.0, "7 ", "7.0",
                                   "", None, b"7", "0x7", "+7"])
def test_what_is_no_token_is_an_error(db, wrong):
    """C010"""
    con = db()
    for name in ("renew", "release", "check", "why", "fence"):
        refused(con, f"SELECT lease_{name}('r', ?)", wrong,
                match=f"^lease_{name}: token must be ")
    assert one(con, "SELECT count(*) FROM sqlite_schema") == 0


def test_lost_replies_do_no_harm(db):
    """C063"""
    con = db()
    token = grant(con)
    assert grant(con) is None
    newer = renew(con, token)
    newest = renew(con, token)
    assert newest > newer > token
    assert check(con, token) == check(con, newer) == check(con, newest) == 1
    assert release(con, newest) == 1
    assert release(con, newest) == 0
    assert why(con, newest) == "released"


def test_a_holder_that_returns_too_late_disturbs_nobody(db, clock):
    """C064"""
    con = db()
    first = grant(con, ttl=3)
    clock.advance(10)
    second = grant(con, holder="b")
    before = rows(con)
    assert renew(con, first) is None
    assert release(con, first) == 0
    assert grant(con) is None
    assert rows(con) == before
    assert [e[:2] + e[3:] for e in log(con)] == [
        (first, "granted", "a"), (first + 1, "expired", "a"),
        (second, "granted", "b")]


# --- what proves a tenure (rule 4) --------------------------------------------------

def test_the_first_and_the_newest_token_prove_a_tenure_to_its_end(db, clock):
    con = db()
    first = grant(con, ttl=10)
    middle = renew(con, first, 20)
    newest = renew(con, middle, 1000)
    clock.advance(500)
    assert [check(con, t) for t in (first, middle, newest)] == [1, 0, 1]
    assert why(con, middle) == "expired"
    clock.advance(500)
    assert [check(con, t) for t in (first, middle, newest)] == [0, 0, 0]


def test_a_token_between_them_proves_it_until_its_own_expiry(db, clock):
    con = db()
    first = grant(con, ttl=10)
    middle = renew(con, first, 20)
    newest = renew(con, middle, 1000)
    clock.advance(19.999)
    assert check(con, middle) == 1
    assert renew(con, middle) > newest
    clock.advance(0.001)
    assert check(con, middle) == 0
    assert renew(con, middle) is None
    assert release(con, middle) == 0


def test_a_token_proves_nothing_for_another_resource_or_tenure(db, clock):
    con = db()
    old = grant(con)
    release(con, old)
    token = grant(con)
    assert check(con, token, resource="R") == 0
    assert why(con, token, resource="R") == "unknown"
    assert check(con, old) == 0
    ended = one(con, "SELECT token FROM lease_event WHERE event = 'released'")
    assert check(con, ended) == 0
    assert why(con, ended) == "unknown"
    assert renew(con, ended) is None


def test_min_remaining_asks_for_time_left(db, clock):
    con = db()
    token = grant(con, ttl=10)
    assert check(con, token, 10) == 1
    assert check(con, token, 10.001) == 0
    assert check(con, token, "2.5") == 1
    assert check(con, token, None) == 1
    clock.advance(7.5)
    assert check(con, token, 2.5) == 1
    assert check(con, token, 2.501) == 0


@pytest.mark.parametrize("end, how", [("release", "released"),
                                      ("revoke", "revoked"),
                                      ("expire", "expired")])
def test_each_token_of_a_tenure_tells_how_it_ended(db, clock, end, how):
    con = db()
    tokens = [grant(con)]
    tokens += [renew(con, tokens[0]) for _ in range(2)]
    if end == "release":
        release(con, tokens[1])
    elif end == "revoke":
        one(con, "SELECT lease_revoke('r', NULL, 'maintenance', 'admin')")
    clock.advance(10)
    grant(con, holder="b")
    assert [why(con, t) for t in tokens] == [how] * 3
    if end == "revoke":
        assert con.execute("SELECT reason, actor FROM lease_event WHERE "
                           "event = 'revoked'").fetchall() == [
                               ("maintenance", "admin")]


# --- renewal (rule 6) ---------------------------------------------------------------

def test_a_renewal_never_shortens(db, clock):
    con = db()
    token = grant(con, ttl=100)
    token = renew(con, token, 1)
    assert one(con, "SELECT remaining FROM lease_active") == 100
    clock.advance(99.5)
    token = renew(con, token, 1)
    assert one(con, "SELECT remaining FROM lease_active") == 1


def test_a_renewal_without_a_ttl_takes_the_one_before(db, clock):
    con = db()
    token = grant(con, ttl=10)
    token = renew(con, token, 30)
    clock.advance(20)
    token = renew(con, token)
    assert one(con, "SELECT remaining FROM lease_active") == 30
    token = renew(con, token, None)
    assert one(con, "SELECT ttl FROM lease_active") == 30


def test_grant_and_renewal_count_in_the_same_unit(db, clock):
    """C034, C036"""
    con = db()
    token = grant(con, ttl=2)
    for _ in range(3):
        assert one(con, "SELECT expires_at - lease_now() "
                        "FROM lease_active") == 2
        assert one(con, "SELECT ttl FROM lease_active") == 2
        clock.advance(1.999)
        assert grant(con, holder="b") is None
        token = renew(con, token, 2)
    clock.advance(2)
    assert grant(con, holder="b")


# --- request_id (rule 7) ------------------------------------------------------------

def asked(con, request_id="q", *, resource="r", holder="a", ttl=10,
          capacity=1, data=None):
    return grant(con, resource, holder, ttl, capacity, data, request_id)


def test_a_repeated_request_is_answered_with_the_newest_token(db, clock):
    con = db()
    token = asked(con)
    assert asked(con) == token
    token = renew(con, token)
    assert asked(con) == token
    before = log(con)
    assert asked(con) == token
    assert log(con) == before


@pytest.mark.parametrize("other", [{"ttl": 11}, {"capacity": 2},
                                   {"data": ""}, {"data": "x"}])
@pytest.mark.parametrize("over", [False, True])
def test_a_repeat_that_asks_for_something_else_is_an_error(db, clock, other,
                                                           over):
    con = db()
    asked(con)
    clock.advance(20 * over)
    error = refused(con, "SELECT lease_grant(?, ?, ?, ?, ?, 'q')",
                    *({"resource": "r", "holder": "a", "ttl": 10,
                       "capacity": 1, "data": None} | other).values(),
                    match="request_id")
    assert error.sqlite_errorname == "SQLITE_CONSTRAINT"


@pytest.mark.parametrize("end", ["expire", "release", "revoke", "sweep"])
def test_a_repeat_after_the_end_is_never_granted_anew(db, clock, end):
    con = db()
    token = asked(con)
    if end == "release":
        release(con, token)
    elif end == "revoke":
        one(con, "SELECT lease_revoke('r')")
    else:
        clock.advance(10)
        if end == "sweep":
            one(con, "SELECT lease_sweep()")
    before = log(con)
    assert asked(con) is None
    assert log(con) == before
    assert grant(con) > token
    assert asked(con) is None


def test_a_refusal_is_not_remembered(db, clock):
    con = db()
    grant(con, holder="b", ttl=5)
    assert asked(con) is None
    clock.advance(5)
    assert asked(con)


def test_a_request_id_belongs_to_one_holder_and_one_resource(db):
    con = db()
    assert asked(con) and asked(con, resource="r2", ttl=11)
    assert asked(con, holder="b", ttl=12) is None
    assert asked(con, holder="b", resource="r3", ttl=13)


def test_a_repeat_in_the_transaction_and_after_its_rollback(db):
    con = db()
    one(con, "SELECT lease_init()")
    con.execute("BEGIN IMMEDIATE")
    token = asked(con)
    assert asked(con) == token
    con.execute("ROLLBACK")
    assert asked(con, ttl=30) == token


# --- capacity (rule 8) -------------------------------------------------------------

def test_an_exclusive_lease_is_never_shared_whatever_others_ask(db, clock):
    con = db()
    first = grant(con)
    assert grant(con, "r", "b", 10, 10000) is None
    release(con, first)
    assert grant(con, "r", "b", 10, 10000)
    assert grant(con) is None


def test_n_permits_are_n_holders(db, clock):
    con = db()
    tokens = [grant(con, "r", f"h{i}", 10 + i, 3) for i in range(4)]
    assert tokens == [1, 2, 3, None]
    release(con, tokens[1])
    assert grant(con, "r", "h3", 10, 3) and grant(con, "r", "h4", 10, 3) is None
    clock.advance(10)
    assert grant(con, "r", "h4", 10, 3)


def test_the_smallest_capacity_among_all_decides(db):
    con = db()
    assert grant(con, "r", "a", 10, 5)
    assert grant(con, "r", "b", 10, 2)
    assert grant(con, "r", "c", 10, 5) is None
    assert grant(con, "r", "c", 10, 1) is None


def test_readers_share_and_a_writer_waits_for_all_of_them(db):
    con = db()
    readers = [grant(con, "r", f"reader{i}", 10, 10000) for i in range(20)]
    assert all(readers)
    assert grant(con, "r", "writer", 10, 1) is None
    for token in readers:
        assert grant(con, "r", "writer", 10, 1) is None
        release(con, token)
    assert grant(con, "r", "writer", 10, 1)
    assert grant(con, "r", "reader1", 10, 10000) is None


def test_a_holder_has_one_lease_of_a_resource_whatever_the_capacity(db):
    con = db()
    assert grant(con, "r", "a", 10, 100)
    assert grant(con, "r", "a", 10, 100) is None


def test_revoke_takes_one_holder_or_all_and_no_lapsed_one(db, clock):
    con = db()
    grant(con, "r", "lapsed", 1, 10)
    clock.advance(1)
    for holder in "abc":
        grant(con, "r", holder, 10, 10)
    assert one(con, "SELECT lease_revoke('r', 'b')") == 1
    assert one(con, "SELECT lease_revoke('r', 'b')") == 0
    assert one(con, "SELECT lease_revoke('r', 'lapsed')") == 0
    assert one(con, "SELECT lease_revoke('r')") == 2
    assert one(con, "SELECT lease_revoke('r')") == 0


# --- the token (rule 3) -------------------------------------------------------------

def test_refusals_give_and_take_no_number(db):
    """C028"""
    con = db()
    grant(con)
    for _ in range(support.scaled(10_000)):
        assert grant(con, holder="b") is None
    assert renew(con, 1) == 2


def test_numbers_rise_whatever_is_done_to_the_tables_by_hand(db, clock):
    """C021, C026"""
    con = db()
    last = 0
    token = grant(con)
    for _ in range(40):
        token = renew(con, token)
    for harm in ("SELECT 1", "DELETE FROM lease", "DELETE FROM lease_event",
                 "DELETE FROM lease_event; DELETE FROM lease",
                 "VACUUM", "DELETE FROM lease; VACUUM",
                 "SELECT lease_restore(1)"):
        con.executescript(harm)
        con.close()
        clock.advance(20)
        con = db()
        token = grant(con)
        assert token > last and token > 40, harm
        last = token


def test_a_number_that_restore_issues_is_new_too(db, clock):
    con = db()
    for _ in range(50):
        release(con, grant(con))
    con.execute("DELETE FROM lease_event")
    assert one(con, "SELECT lease_restore(1)") > 100


def test_restore_goes_past_what_was_issued_since_the_backup(db, clock,
                                                            tmp_path):
    """C057"""
    con = db()
    grant(con, ttl=86400)
    con.execute("VACUUM INTO ?", (str(tmp_path / "backup.db"),))
    clock.advance(3600)
    con.execute("PRAGMA synchronous = OFF")
    for i in range(2000):
        newest = grant(con, f"r{i}")
    old = db("backup.db")
    restored = one(old, "SELECT lease_restore()")
    assert restored >= 1 + 3600 * 10**6
    assert grant(old, "new") == restored + 1 > newest
    assert one(old, "SELECT lease_restore(10)") == restored + 11
    assert check(old, 1) == 1


def test_the_default_margin_is_at_least_a_million(db, clock):
    con = db()
    assert one(con, "SELECT lease_restore()") >= 10**6
    newest = one(con, "SELECT max(token) FROM lease_event")
    assert one(con, "SELECT lease_restore()") == newest + 10**6


@pytest.mark.parametrize("way", ["vacuum into", "shell dump", "iterdump",
                                 "backup", "serialize"])
def test_leases_and_numbers_survive_a_copy(db, clock, tmp_path, way):
    """C107, C057, C106"""
    con = db()
    one(con, "SELECT lease_fence('f', 7)")
    grant(con, "gone")
    token = renew(con, grant(con, data := "r", "a", 60, 2, "dätä\n'\""))
    release(con, grant(con, "top"), "top")
    if way == "vacuum into":
        con.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
        copy = db("copy.db")
    elif way == "shell dump":
        dump = support.shell(".dump\n", tmp_path / "lease.db", loaded=False)
        assert "Error" not in dump
        support.shell(dump, tmp_path / "copy.db", loaded=False)
        copy = db("copy.db")
    elif way == "iterdump":
        script = "\n".join(con.iterdump())
        copy = db("copy.db")
        copy.executescript(script)
    elif way == "backup":
        copy = db("copy.db")
        con.backup(copy)
    else:
        copy = db(":memory:")
        copy.deserialize(con.serialize())
    assert rows(copy) == rows(con)
    assert log(copy) == log(con)
    before = one(con, "SELECT seq FROM sqlite_sequence "
                      "WHERE name = 'lease_event'")
    assert renew(copy, token) == before + 1
    assert grant(copy, "next") == before + 2
    refused(copy, "SELECT lease_fence('f', 6)", match="stale")
    assert one(copy, "PRAGMA integrity_check") == "ok"


def test_numbers_end_before_2_to_the_53_with_a_clear_error(db, clock):
    con = db()
    one(con, "SELECT lease_init()")
    con.execute("UPDATE sqlite_sequence SET seq = 0")
    con.execute("INSERT INTO sqlite_sequence VALUES('lease_event', ?)",
                (MAX_TOKEN - 2,))
    assert grant(con) == MAX_TOKEN - 1
    assert renew(con, MAX_TOKEN - 1) == MAX_TOKEN
    before = rows(con)
    for sql in ("SELECT lease_grant('x', 'a', 1)",
                f"SELECT lease_renew('r', {MAX_TOKEN})",
                f"SELECT lease_release('r', {MAX_TOKEN})",
                "SELECT lease_revoke('r')", "SELECT lease_restore()",
                "SELECT lease_restore(1)"):
        error = refused(con, sql, match=r"2\^53")
        assert error.sqlite_errorname == "SQLITE_CONSTRAINT_CHECK"
    assert rows(con) == before
    assert check(con, MAX_TOKEN) == 1


def test_the_margin_of_restore_does_not_overflow(db):
    con = db()
    assert one(con, "SELECT lease_restore(?)", 2**52) == 2**52
    error = refused(con, "SELECT lease_restore(?)", 2**52)
    assert "2^53" in str(error)
    refused(con, "SELECT lease_restore(?)", 2**52 + 1, match="margin")
    refused(con, "SELECT lease_restore(0)", match="margin")


# --- the log is trimmed -------------------------------------------------------------

def busy(con, events, resource="busy"):
    con.execute("BEGIN IMMEDIATE")
    for _ in range(events // 2):
        release(con, grant(con, resource, "x"), resource)
    con.execute("COMMIT")


def test_trimming_keeps_what_a_tenure_in_force_needs(db, clock):
    con = db()
    one(con, "SELECT lease_config('event_rows', 1000)")
    first = grant(con, ttl=5)
    stale = renew(con, first, 5)
    middle = renew(con, first, 80000)
    newest = renew(con, first, 86400)
    asked(con, resource="asked", ttl=86400)
    over = grant(con, "over", ttl=1)
    clock.advance(10)
    one(con, "SELECT lease_sweep()")
    busy(con, 5000)
    kept = {t for t, *_ in log(con)}
    assert {first, middle, newest} <= kept
    assert stale not in kept and over not in kept
    assert 1000 <= len(kept) < 1300
    assert [check(con, t) for t in (first, middle, newest)] == [1, 1, 1]
    assert asked(con, resource="asked", ttl=86400)
    assert why(con, over, "over") == "unknown"
    assert renew(con, first) == max(kept) + 1


def test_trimming_catches_up_when_the_limit_is_lowered(db):
    con = db()
    busy(con, 6000)
    assert one(con, "SELECT count(*) FROM lease_event") == 6000
    one(con, "SELECT lease_config('event_rows', 1000)")
    busy(con, 6000)
    assert 1000 <= one(con, "SELECT count(*) FROM lease_event") < 1300


def test_a_tenure_that_ended_is_trimmed_in_the_next_round(db):
    con = db()
    one(con, "SELECT lease_config('event_rows', 1000)")
    token = grant(con, ttl=86400)
    busy(con, 3000)
    release(con, token)
    busy(con, 5000)
    assert one(con, "SELECT count(*) FROM lease_event "
                    "WHERE token = ?", token) == 0


def test_after_restore_the_log_still_keeps_its_newest_events(db, clock):
    con = db()
    busy(con, 1000)
    token = asked(con, ttl=5)
    one(con, "SELECT lease_restore()")
    clock.advance(10)
    busy(con, 2000)
    assert why(con, token) == "expired"
    assert asked(con, ttl=5) is None


# --- bounds and types (rule 11) -----------------------------------------------------

SECONDS = [
    (30, 30), (30.9, 30.9), ("30", 30), ("30.5", 30.5), ("030", 30),
    (1e3, 1000), (True, 1), (0.1, 0.1), (86400, 86400), (86400.0004, 86400),
    (0.0995, 0.1), (0.3, 0.3), (4.35, 4.35), ("0.1", 0.1)]
NO_SECONDS = [
    "30abc", "  30", "30 ", "0x1e", "1e3", "", ".5", "5.", "-", "1.2.3", "+1",
    "∞", "nan", b"30", None, "3\x000", "1" * 400, "30\n"]
OUTSIDE = [
    2**63 - 1, 9223372036854775000, 2**62, 2**50, 1e15, 1e18, 1e19, 1e308,
    float("inf"), -float("inf"), 2**31, 2**32, 86400.001, 0.0994, 0, -1,
    -2**63, -1e19, "9223372036854775807", "99999999999999999999", "-30",
    0.0, -0.0, 1e-300]


@pytest.mark.parametrize("ttl, seconds", SECONDS)
def test_a_number_of_seconds_is_taken_to_the_millisecond(db, clock, ttl,
                                                         seconds):
    """C031, C042"""
    con = db()
    token = grant(con, ttl=ttl)
    assert one(con, "SELECT ttl FROM lease_active") == seconds
    assert one(con, "SELECT remaining FROM lease_active") == seconds
    assert renew(con, token, ttl)
    assert one(con, "SELECT lease_problem('ttl', ?)", ttl) is None


@pytest.mark.parametrize("ttl", NO_SECONDS + OUTSIDE, ids=repr)
def test_a_ttl_that_is_none_or_out_of_bounds_is_an_error(db, clock, ttl):
    """C031, C042"""
    con = db()
    token = grant(con, "held")
    before = log(con)
    bounds = "ttl must be 0.1 to 86400 seconds" if ttl in OUTSIDE \
        else "ttl must be "
    refused(con, "SELECT lease_grant('r', 'a', ?)", ttl, match=bounds)
    if ttl is not None:
        refused(con, "SELECT lease_renew('held', ?, ?)", token, ttl,
                match=bounds)
    assert log(con) == before
    assert one(con, "SELECT lease_problem('ttl', ?)", ttl) \
        .startswith(bounds[4:])


def test_a_ttl_out_of_bounds_is_misuse_also_before_a_boot_has_its_clock(
        db, clock):
    con = db()
    token = grant(con, "held", ttl=86400)
    clock.reboot()
    for sql in ("SELECT lease_grant('r', 'a', 90000)",
                f"SELECT lease_renew('held', {token}, 90000)"):
        with pytest.raises(sqlite3.OperationalError, match="ttl") as caught:
            con.execute(sql).fetchall()
        assert caught.value.sqlite_errorcode == sqlite3.SQLITE_ERROR


def test_not_a_number_is_no_ttl(db):
    con = db()
    refused(con, "SELECT lease_grant('r', 'a', 1e999 - 1e999)", match="NULL")


def test_the_bounds_of_ttl_are_settings(db, clock):
    con = db()
    assert one(con, "SELECT lease_config('max_ttl', 315360000)") == 315360000
    assert one(con, "SELECT lease_config('min_ttl', 0.001)") == 0.001
    assert one(con, "SELECT lease_config('min_ttl')") == 0.001
    assert grant(con, ttl=315360000)
    assert one(con, "SELECT remaining FROM lease_active") == 315360000
    assert grant(con, "short", ttl=0.001)
    clock.advance(0.001)
    assert len(rows(con)) == 1
    refused(con, "SELECT lease_config('max_ttl', 315360000.001)",
            match="value must be 0.001 to 315360000 seconds")
    refused(con, "SELECT lease_config('min_ttl', 0)", match="value")
    one(con, "SELECT lease_config('max_ttl', 10)")
    refused(con, "SELECT lease_config('min_ttl', 11)", match="max_ttl")
    refused(con, "SELECT lease_grant('r2', 'a', 11)",
            match="0.001 to 10 seconds")
    assert one(con, "SELECT lease_problem('ttl', 11)")
    assert one(con, "SELECT lease_config('event_rows')") == 100_000
    refused(con, "SELECT lease_config('event_rows', 999)", match="1000 to")
    refused(con, "SELECT lease_config('schema', 2)", match="name must be")
    refused(con, "SELECT lease_config(NULL)", match="name")


def test_reading_a_setting_writes_nothing(db):
    con = db()
    assert one(con, "SELECT lease_config('min_ttl')") == 0.1
    assert one(con, "SELECT lease_config('max_ttl')") == 86400
    assert one(con, "SELECT lease_config('event_rows')") == 100_000
    assert one(con, "SELECT count(*) FROM sqlite_schema") == 0


TEXTS = {"resource": 512, "holder": 256, "request_id": 128, "data": 4096,
         "actor": 256, "reason": 512}


def named(con, argument, value):
    """Call a function with this argument; the token or the count."""
    if argument == "reason":
        return one(con, "SELECT lease_revoke('r', NULL, ?)", value)
    arguments = {"resource": "r", "holder": "h", "ttl": 10, "capacity": 1,
                 "data": None, "request_id": None, "actor": None}
    arguments[argument] = value
    return one(con, "SELECT lease_grant(?, ?, ?, ?, ?, ?, ?)",
               *arguments.values())


@pytest.mark.parametrize("argument", TEXTS)
def test_a_text_is_measured_in_bytes_and_kept_to_the_letter(db, argument):
    """C149"""
    con = db()
    most = TEXTS[argument]
    for text in ("x" * most, "é" * (most // 2), "😀" * (most // 4)):
        assert named(con, argument, text) is not None
        column = one(con, f"SELECT {argument} FROM lease_event "
                          "WHERE event <> 'released' ORDER BY token DESC") \
            if argument != "reason" else text
        assert column == text
        one(con, "SELECT lease_revoke(resource) FROM lease_active")
    for text in ("x" * (most + 1), "é" * (most // 2) + "x",
                 "x" * 1_000_001):
        with pytest.raises(sqlite3.Error, match=f"{argument} must be . to "
                           f"{most} bytes, it has {len(text.encode())}"):
            named(con, argument, text)


@pytest.mark.parametrize("argument", TEXTS)
@pytest.mark.parametrize("hex, what", [
    ("FF", "UTF-8"), ("C0AF", "UTF-8"), ("EDA080", "UTF-8"),
    ("F4908080", "UTF-8"), ("6180", "UTF-8"), ("E282", "UTF-8"),
    ("C1BF", "UTF-8"), ("F0808080", "UTF-8"), ("FE", "UTF-8"),
    ("610062", "NUL"), ("00", "NUL")])
def test_a_text_is_valid_utf8_without_nul(db, argument, hex, what):
    """C095, C149"""
    con = db()
    call = "lease_revoke('r', NULL, {})" if argument == "reason" else \
        "lease_grant(" + ", ".join(
            "{}" if a == argument else v for a, v in
            (("resource", "'r'"), ("holder", "'h'"), ("", "10"), ("", "1"),
             ("data", "NULL"), ("request_id", "NULL"), ("actor", "NULL"))
        ) + ")"
    refused(con, "SELECT " + call.format(f"CAST(x'{hex}' AS TEXT)"),
            match=f"{argument} must .*{what}")
    assert one(con, f"SELECT lease_problem(?, CAST(x'{hex}' AS TEXT))",
               argument)


@pytest.mark.parametrize("argument", TEXTS)
@pytest.mark.parametrize("char", ["\n", "\x01", "\x1f", "\x7f", "\x80",
                                  "\x9f", "\t"])
def test_control_characters_are_for_data_alone(db, argument, char):
    con = db()
    if argument == "data":
        assert named(con, argument, f"a{char}b")
        return
    with pytest.raises(sqlite3.Error, match=f"{argument} must not hold"):
        named(con, argument, f"a{char}b")


@pytest.mark.parametrize("argument", TEXTS)
@pytest.mark.parametrize("value", [5, 5.5, b"x", ""])
def test_what_is_no_text_is_an_error(db, argument, value):
    con = db()
    if value == "" and argument in ("data", "reason"):
        assert named(con, argument, value) is not None
        return
    with pytest.raises(sqlite3.Error, match=f"{argument} must be"):
        named(con, argument, value)


def test_names_are_compared_byte_by_byte(db):
    con = db()
    names = ["a", "A", "á", "a\u0301", " a", "a ", "ａ", "0", "00"]
    for name in names:
        assert grant(con, name, name)
    assert sorted(r[0] for r in rows(con)) == sorted(names)


@pytest.mark.parametrize("capacity", [0, -1, 10001, 1.0, "1.0", "x", 2**63 - 1,
                                      b"1", "99999999999999999999999"])
def test_a_capacity_is_a_whole_number_from_1_to_10000(db, capacity):
    con = db()
    refused(con, "SELECT lease_grant('r', 'a', 1, ?)", capacity,
            match="capacity must be")


def test_an_optional_argument_that_is_null_is_left_out(db):
    con = db()
    assert grant(con, "r", "a", 10, None, None, None, None)
    assert one(con, "SELECT capacity FROM lease_active") == 1
    assert one(con, "SELECT lease_sweep(NULL)") == 0
    assert one(con, "SELECT lease_revoke('r', NULL, NULL, NULL)") == 1


def test_a_wrong_number_of_arguments_is_an_error(db):
    con = db()
    for sql in ("lease_grant('r', 'a')", "lease_grant()",
                "lease_grant('r', 'a', 1, 1, '', 'q', 'x', 1)",
                "lease_renew('r')", "lease_check('r')", "lease_now(1)",
                "lease_version(1)", "lease_init(1)", "lease_fence('r')",
                "lease_guard('t')", "lease_config()", "lease_sweep(1, 2)"):
        name = sql.split("(")[0]
        refused(con, "SELECT " + sql, match=f"^{name}: takes")
    assert one(con, "SELECT count(*) FROM sqlite_schema") == 0


def test_the_actor_of_each_change_is_kept(db):
    con = db()
    token = grant(con, "r", "a", 10, 1, None, None, "alice")
    token = renew(con, token, None, "bob")
    one(con, "SELECT lease_release('r', ?, 'carol')", token)
    assert [a for a, in con.execute("SELECT actor FROM lease_event")] == \
        ["alice", "bob", "carol"]


# --- inside the host's statements and transactions (rules 2, 12) ------------------------

def test_a_gui_that_runs_a_select_twice_and_rolls_back_leaves_nothing(db):
    """C090"""
    con, other = db(), db()
    one(con, "SELECT lease_init()")
    con.execute("SAVEPOINT x")
    one(con, "SELECT count(*) FROM (SELECT lease_grant('r', 'h', 60))")
    one(con, "SELECT lease_grant('r', 'h', 60) LIMIT 0, 49999")
    con.execute("ROLLBACK TO x")
    con.execute("RELEASE x")
    assert rows(other) == [] and log(other) == []


@pytest.mark.parametrize("transaction", [False, True])
def test_an_error_in_a_statement_takes_all_its_grants_back(db, transaction):
    """C093"""
    con = db()
    con.execute("CREATE TABLE t(i, token)")
    grant(con, "r25", "other")
    if transaction:
        con.execute("BEGIN")
    sql = ("WITH s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s "
           "WHERE i < 50) INSERT INTO t SELECT i, lease_grant('r' || i, 'h', "
           "iif(i = 30, ?, 60)) FROM s")
    refused(con, sql, 0, match="ttl")
    assert len(rows(con)) == 1 and one(con, "SELECT count(*) FROM t") == 0
    con.execute(sql, (60,))
    if transaction:
        con.execute("COMMIT")
    assert len(rows(con)) == 50
    assert one(con, "SELECT count(*) FROM t WHERE token IS NULL") == 1
    assert one(con, "SELECT count(*) FROM t JOIN lease_active AS a "
                    "ON a.token = t.token AND a.resource = 'r' || i") == 49


@pytest.mark.parametrize("transaction", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_a_first_call_inside_a_running_write(db, transaction, fails):
    con, other = db(), db()
    con.execute("CREATE TABLE t(x PRIMARY KEY)")
    con.execute("INSERT INTO t VALUES(1)")
    sql = "INSERT INTO t SELECT lease_grant(value, 'a', 30) " \
          "FROM json_each(?)"
    names = '["a", "b"]'
    if not transaction:
        refused(con, sql, names, match="call lease_init")
        assert one(con, "SELECT count(*) FROM sqlite_schema") == 2
        return
    con.execute("BEGIN")
    if fails:
        refused(con, sql, names, match="UNIQUE")
        assert one(con, "SELECT lease_grant('c', 'a', 30)") == 1
    else:
        con.execute("DELETE FROM t")
        con.execute(sql, (names,))
    con.execute("COMMIT")
    assert len(rows(other)) == (1 if fails else 2)
    assert one(con, "PRAGMA integrity_check") == "ok"


@pytest.mark.parametrize("pragma", ["recursive_triggers = ON",
                                    "foreign_keys = ON",
                                    "case_sensitive_like = ON",
                                    "count_changes = ON",
                                    "full_column_names = ON",
                                    "reverse_unordered_selects = ON",
                                    "cell_size_check = ON",
                                    "automatic_index = OFF",
                                    "trusted_schema = OFF",
                                    "defer_foreign_keys = ON",
                                    "legacy_alter_table = ON",
                                    "temp_store = MEMORY",
                                    "secure_delete = ON",
                                    "auto_vacuum = FULL",
                                    "journal_mode = WAL",
                                    "journal_mode = MEMORY",
                                    "journal_mode = OFF",
                                    "synchronous = OFF",
                                    "writable_schema = ON",
                                    "locking_mode = EXCLUSIVE",
                                    "threads = 2"])
def test_what_a_host_has_set_changes_nothing(db, clock, pragma):
    """C082"""
    con = db()
    con.execute("PRAGMA " + pragma)
    for round in range(3):
        first = grant(con, "r", "a", 10, 2)
        assert grant(con, "r", "b", 10, 2) == first + 1
        assert grant(con, "r", "c", 10, 2) is None
        assert renew(con, first) == first + 2
        clock.advance(10)
        assert rows(con) == []
        assert grant(con, "r", "c", 10) == first + 5
        assert one(con, "SELECT lease_revoke('r')") == 1
        assert one(con, "SELECT lease_sweep()") == 0
    assert [e[1] for e in log(con)] == [
        "granted", "granted", "renewed", "expired", "expired", "granted",
        "revoked"] * 3


def test_a_cursor_that_reads_in_autocommit_does_not_stop_a_grant(db):
    con = db()
    con.execute("CREATE TABLE t(x)")
    con.executemany("INSERT INTO t VALUES(?)", [(i,) for i in range(10)])
    cursor = con.execute("SELECT x FROM t")
    next(cursor)
    assert grant(con) == 1
    assert len(cursor.fetchall()) == 9
    cursor = con.execute("SELECT x FROM t")
    next(cursor)
    assert renew(con, 1) == 2
    assert len(cursor.fetchall()) == 9


def test_changes_and_last_insert_rowid_stay_the_hosts_own(db, clock):
    con = db()
    one(con, "SELECT lease_init()")
    con.execute("CREATE TABLE t(x)")
    con.execute("INSERT INTO t(rowid, x) VALUES(77, 'x'), (78, 'y')")
    for call in ("lease_grant('r', 'a', 10)", "lease_grant('r', 'b', 10)",
                 "lease_renew('r', 1)", "lease_sweep()", "lease_revoke('r')",
                 "lease_fence('r', 5)", "lease_restore(5)",
                 "lease_release('r', 1)", "lease_config('min_ttl', 0.2)"):
        one(con, "SELECT " + call)
        assert one(con, "SELECT last_insert_rowid()") == 78, call
    cursor = con.execute("INSERT INTO t(rowid, x) "
                         "SELECT 200, lease_grant('r2', 'a', 10)")
    assert cursor.rowcount == 1 and cursor.lastrowid == 200


def test_a_grant_sees_the_time_of_its_own_evaluation(db, clock):
    """C046"""
    con = db()
    con.create_function("tick", 0, lambda: clock.advance(1))
    got = con.execute(
        "SELECT tick(), lease_grant('r' || value, 'h', 10) "
        "FROM json_each('[1, 2, 3]')").fetchall()
    assert [t for _, t in got] == [1, 2, 3]
    ends = [r[8] for r in rows(con)]
    assert [b - a for a, b in zip(ends, ends[1:])] == [1, 1]


def test_a_statement_of_many_calls_commits_call_by_call(db):
    con = db()
    con.execute("CREATE TABLE mine AS SELECT value AS r "
                "FROM json_each('[\"a\", \"b\", \"c\"]')")
    one(con, "SELECT lease_init()")
    cursor = con.execute("SELECT lease_grant(r, 'h', 10) FROM mine")
    next(cursor)
    cursor.close()
    assert [r[0] for r in rows(con)] in (["a"], ["a", "b"])


def test_writes_from_a_function_of_the_host_work(db):
    """A function of the host that calls ours, inside a statement of its
    own: nothing of ours is busy for long."""
    con = db()
    con.create_function("outer_grant", 1, lambda r: grant(con, r))
    assert [t for t, in con.execute(
        "SELECT outer_grant(value) FROM json_each('[\"a\", \"b\"]')")] == \
        [1, 2]


# --- busy and read-only files -----------------------------------------------------------

def test_two_writers_in_tight_loops_never_fail(db, tmp_path):
    """C065"""
    db().execute("PRAGMA journal_mode = WAL")
    errors, done = [], []

    def work(name):
        con = support.connect(tmp_path / "lease.db", timeout=5)
        try:
            for i in range(support.scaled(300)):
                token = grant(con, f"{name}{i}", name)
                renew(con, token, resource=f"{name}{i}")
            done.append(name)
        except sqlite3.Error as error:
            errors.append(error)
        con.close()

    workers = [threading.Thread(target=work, args=(f"w{i}",))
               for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == [] and len(done) == 2


@pytest.mark.parametrize("sql", ["SELECT lease_grant('x', 'a', 10)",
                                 "SELECT lease_renew('r', 1)",
                                 "SELECT lease_revoke('r')",
                                 "SELECT lease_fence('r', 1)",
                                 "SELECT lease_sweep()"])
def test_a_stale_read_transaction_is_told_at_once(db, sql):
    """C065"""
    con, other = db(), db()
    con.execute("PRAGMA journal_mode = WAL")
    grant(con, ttl=100)
    con.execute("BEGIN")
    assert len(rows(con)) == 1
    grant(other, "other")
    events = log(other)
    error = refused(con, sql)
    assert error.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT"
    assert con.in_transaction
    con.execute("ROLLBACK")
    assert log(other) == events
    one(con, sql)


def test_inside_a_read_transaction_a_foreign_lock_is_not_waited_for(db):
    con, other = db(timeout=0), db()
    con.execute("PRAGMA journal_mode = WAL")
    grant(con)
    other.execute("BEGIN IMMEDIATE")
    con.execute("BEGIN")
    assert len(rows(con)) == 1
    error = refused(con, "SELECT lease_grant('x', 'a', 10)", match="locked")
    assert error.sqlite_errorname == "SQLITE_BUSY"


def test_a_full_disk_keeps_its_code_and_leaves_nothing(db, clock):
    """C071, C073"""
    con = db()
    grant(con)
    con.execute(f"PRAGMA max_page_count = "
                f"{one(con, 'PRAGMA page_count')}")
    error = None
    for i in range(10_000):
        try:
            grant(con, f"long/{i:0200}", data := "a", 10, 1, "x" * 2000)
        except sqlite3.Error as full:
            error = full
            break
    assert error.sqlite_errorname == "SQLITE_FULL"
    assert "full" in str(error)
    before = rows(con)
    refused(con, "SELECT lease_grant('y', 'a', 10, 1, ?)", "x" * 4000,
            match="full")
    assert rows(con) == before
    newest = one(con, "SELECT max(token) FROM lease_event")
    con.execute("PRAGMA max_page_count = 1000000")
    assert grant(con, "again") == newest + 1
    assert one(con, "PRAGMA integrity_check") == "ok"


# --- which file (EXT) ---------------------------------------------------------------------

@pytest.mark.parametrize("name", ["lease", "lease_event", "lease_clock",
                                  "lease_config", "lease_fence",
                                  "lease_proof"])
def test_a_temp_table_of_our_name_shadows_nothing(db, name):
    con = db()
    con.execute(f"CREATE TEMP TABLE {name}(x)")
    con.execute(f"INSERT INTO temp.{name} VALUES('host')")
    token = grant(con)
    assert renew(con, token) and len(rows(con)) == 1
    assert one(con, "SELECT lease_fence('r', 1)") == 1
    assert release(con, token) == 1
    con.execute("CREATE TABLE t(r TEXT, k INTEGER)")
    assert one(con, "SELECT lease_guard('t', 'r', 'k')") == 1
    con.execute("INSERT INTO t VALUES('r', 7)")
    refused(con, "INSERT INTO t VALUES('r', 6)", match="stale")
    assert con.execute(f"SELECT * FROM temp.{name}").fetchall() == [("host",)]


@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_real_table_named_lease_active_is_in_nobodys_way(db, tmp_path, kind,
                                                           when):
    make = "CREATE TABLE lease_active(x)" if kind == "TABLE" else \
        "CREATE VIEW lease_active AS SELECT 1 AS x"
    plain = sqlite3.connect(tmp_path / "lease.db", isolation_level=None)
    if when == "before":
        plain.execute(make)
    con = db()
    token = grant(con)
    if when == "after":
        plain.execute(make)
    for _ in range(3):
        token = renew(con, token)
        assert check(con, token) == 1
    assert release(con, token) == 1
    assert [d[0] for d in con.execute("SELECT * FROM lease_active"
                                      ).description] == ["x"]
    plain.close()


def test_leases_are_those_of_main_whatever_is_attached(db, clock, tmp_path):
    """C098"""
    other = db("other.db")
    grant(other, "in the other file")
    con = db()
    con.execute("ATTACH ? AS o", (str(tmp_path / "other.db"),))
    assert rows(con) == []
    assert grant(con) == 1
    assert [r[0] for r in rows(con)] == ["r"]
    assert con.execute("SELECT resource FROM main.lease_active"
                       ).fetchall() == [("r",)]
    # SQLite finds an eponymous table under any name of a file.
    # The clock stands still: both have the same remaining.
    assert con.execute("SELECT * FROM lease_active EXCEPT "
                       "SELECT * FROM o.lease_active").fetchall() == []
    assert con.execute("SELECT resource FROM o.lease_active"
                       ).fetchall() == [("r",)]
    assert con.execute("SELECT resource FROM o.lease").fetchall() == \
        [("in the other file",)]


@pytest.mark.parametrize("path", [":memory:", "", "file::memory:?cache=shared"])
def test_a_private_database_has_leases_of_its_own(build, path):
    """C099"""
    con = support.connect(path, uri=path.startswith("file:"))
    token = grant(con)
    assert renew(con, token) == 2 and len(rows(con)) == 1
    con.close()


def test_a_link_to_the_file_is_the_same_leases(db, tmp_path):
    """C099"""
    con = db()
    grant(con)
    (tmp_path / "link.db").symlink_to("lease.db")
    assert grant(db("link.db"), holder="b") is None


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_a_file_in_utf16_has_the_same_leases(db, encoding):
    con = db()
    con.execute(f"PRAGMA encoding = '{encoding}'")
    names = ["r", "é", "豈", "😀"]  # SQLite makes U+FFFF U+FFFD in there
    for name in names:
        token = grant(con, name, name, 10, 1, name, name)
        assert renew(con, token, resource=name)
        assert asked(con, name, resource=name, holder=name,
                     data=name) == token + 1
    assert [r[0] for r in con.execute("SELECT resource FROM lease_active "
                                      "ORDER BY token")] == names
    refused(con, "SELECT lease_grant(?, 'a', 1)", "é" * 257,
            match="it has 514")
    assert grant(con, "é" * 256)


# --- stock tools open the file -------------------------------------------------------------

def test_a_stock_shell_reads_copies_and_checks_the_file(db, tmp_path):
    """C106, C107, C080"""
    con = db()
    con.execute("PRAGMA journal_mode = WAL")
    grant(con, "r", "a", 60)
    said = support.shell(
        ".tables\n.schema\nSELECT resource, holder FROM lease;\n"
        "PRAGMA integrity_check;\nPRAGMA foreign_key_check;\n"
        "PRAGMA quick_check;\nPRAGMA wal_checkpoint(TRUNCATE);\n"
        "ANALYZE;\nVACUUM;\nREINDEX;\nPRAGMA optimize;\n",
        tmp_path / "lease.db", loaded=False)
    assert "r|a\nok" in said and "rror" not in said
    assert "lease_active" not in said
    assert renew(con, 1) == 2


def test_the_tables_tell_their_story_without_the_extension(db, tmp_path):
    con = db()
    one(con, "SELECT lease_release('r', lease_grant('r', 'a', 60))")
    plain = sqlite3.connect(tmp_path / "lease.db")
    assert plain.execute("SELECT token, event, holder, epoch "
                         "FROM lease_event").fetchall() == [
                             (1, "granted", "a", 1), (2, "released", "a", 1)]
    for sql in ("INSERT INTO lease_event(at, event, resource, holder, "
                "expires_at) VALUES(1, 'stolen', 'r', 'a', 1)",
                "INSERT INTO lease VALUES('r', 'a', 'x', 1, 1, 1, 1, 1, 1, "
                "NULL)"):
        with pytest.raises(sqlite3.IntegrityError):
            plain.execute(sql)
    plain.close()


# --- the fence (issue 3, 3) ----------------------------------------------------------------

def test_the_fence_remembers_the_highest_token_of_each_resource(db):
    con = db()
    assert one(con, "SELECT lease_fence('r', 5)") == 5
    assert one(con, "SELECT lease_fence('r', 5)") == 5
    assert one(con, "SELECT lease_fence('R', 1)") == 1
    assert one(con, "SELECT lease_fence('r', 9)") == 9
    error = refused(con, "SELECT lease_fence('r', 8)",
                    match="^lease_fence: token 8 is stale: 9 was seen")
    assert error.sqlite_errorname == "SQLITE_CONSTRAINT"
    assert one(con, f"SELECT lease_fence('r', {MAX_TOKEN})") == MAX_TOKEN


def test_a_stale_token_fails_the_statement_it_stands_in(db):
    con = db()
    con.execute("CREATE TABLE t(x)")
    one(con, "SELECT lease_fence('r', 5)")
    refused(con, "INSERT INTO t SELECT lease_fence('r', 4)", match="stale")
    con.execute("INSERT INTO t SELECT lease_fence('r', 6)")
    assert con.execute("SELECT x FROM t").fetchall() == [(6,)]


def test_a_fence_that_is_rolled_back_was_not_seen(db):
    con = db()
    one(con, "SELECT lease_fence('r', 5)")
    con.execute("BEGIN")
    one(con, "SELECT lease_fence('r', 50)")
    con.execute("ROLLBACK")
    assert one(con, "SELECT lease_fence('r', 6)") == 6


# --- guards -----------------------------------------------------------------------------------

NASTY = ["plain", "with space", 'quo"te', "apo'strophe", "semi;colon--",
         "a]b[c", "back`tick", "%w%s%%", "select", "été", "new\nline",
         "x" * 200, "1", "lease_guard", "NEW"]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("table", NASTY)
def test_a_guard_holds_whatever_table_and_columns_are_called(db, table):
    con = db()
    for resource, token in ((table, table + "2"), ("a'b", 'c"d')):
        con.execute(f"DROP TABLE IF EXISTS {quoted(table)}")
        con.execute(f"CREATE TABLE {quoted(table)}({quoted(resource)} TEXT, "
                    f"{quoted(token)} INTEGER)")
        con.execute("DELETE FROM lease_fence") \
            if resource == "a'b" else None
        assert one(con, "SELECT lease_guard(?, ?, ?)", table, resource,
                   token) == 1
        con.execute(f"INSERT INTO {quoted(table)} VALUES('r', 5)")
        refused(con, f"INSERT INTO {quoted(table)} VALUES('r', 4)",
                match="stale")
        refused(con, f"UPDATE {quoted(table)} SET {quoted(token)} = 4",
                match="stale")


@pytest.fixture
def guarded(db):
    con = db()
    con.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, r TEXT, k INTEGER, "
                "v, UNIQUE(r))")
    assert one(con, "SELECT lease_guard('t', 'r', 'k')") == 1
    con.execute("INSERT INTO t VALUES(1, 'r', 5, 'first')")
    return con


STALE = [
    "INSERT INTO t VALUES(2, 'r', 4, 'x')",
    "INSERT OR REPLACE INTO t VALUES(1, 'r', 4, 'x')",
    "INSERT OR REPLACE INTO t VALUES(9, 'r', 4, 'x')",
    "REPLACE INTO t VALUES(1, 'r', 4, 'x')",
    "INSERT OR FAIL INTO t VALUES(2, 's', 6, 'x'), (1, 'r', 4, 'x')",
    "INSERT OR ROLLBACK INTO t VALUES(3, 'r', 4, 'x')",
    "INSERT INTO t VALUES(1, 'r', 4, 'x') ON CONFLICT DO UPDATE "
    "SET k = excluded.k, v = excluded.v",
    "INSERT INTO t VALUES(1, 'r', 4, 'x') ON CONFLICT(r) DO UPDATE "
    "SET k = excluded.k, v = excluded.v",
    "UPDATE t SET k = 4", "UPDATE t SET k = 4, v = 'x' WHERE id = 1",
    "UPDATE OR IGNORE t SET k = 4", "UPDATE OR REPLACE t SET k = 4",
    "UPDATE t SET r = 'free', k = 4, v = 'x'",
    "UPDATE t SET k = 4.0", "UPDATE t SET k = '4'",
    "UPDATE t SET k = 'x'", "UPDATE t SET k = NULL", "UPDATE t SET k = 5.5",
    "UPDATE t SET r = NULL", "UPDATE t SET r = x'72'",
    "INSERT INTO t VALUES(2, 's', NULL, 'x')",
    "INSERT INTO t VALUES(2, NULL, 7, 'x')"]


@pytest.mark.parametrize("sql", STALE)
@pytest.mark.parametrize("recursive", ["OFF", "ON"])
def test_a_write_with_a_stale_token_fails_in_every_form(guarded, sql,
                                                        recursive):
    con = guarded
    con.execute(f"PRAGMA recursive_triggers = {recursive}")
    before = con.execute("SELECT * FROM t").fetchall()
    with pytest.raises(sqlite3.IntegrityError):
        con.execute(sql)
    if "OR FAIL" not in sql:
        assert con.execute("SELECT * FROM t").fetchall() == before
    assert one(con, "SELECT v FROM t WHERE r = 'r'") == "first"
    assert one(con, "SELECT token FROM lease_fence WHERE resource = 'r'") == 5


@pytest.mark.parametrize("sql", [
    "INSERT INTO t VALUES(2, 's', 1, 'x')",
    "INSERT OR REPLACE INTO t VALUES(1, 'r', 5, 'x')",
    "INSERT OR REPLACE INTO t VALUES(1, 'r', 6, 'x')",
    "INSERT OR IGNORE INTO t VALUES(2, 'r', 6, 'x')",
    "INSERT OR IGNORE INTO t VALUES(2, 's', 6, 'x')",
    "UPDATE t SET v = 'x'", "UPDATE t SET k = 6", "UPDATE t SET k = '6'",
    "UPDATE OR REPLACE t SET k = 6, v = 'x'",
    "UPDATE t SET r = 's', k = 6", "DELETE FROM t"])
def test_a_write_with_a_fresh_token_goes_through(guarded, sql):
    guarded.execute(sql)
    assert one(guarded, "SELECT token FROM lease_fence "
                        "WHERE resource = 'r'") in (5, 6)


def test_a_row_that_or_ignore_leaves_out_leaves_no_mark(guarded):
    guarded.execute("INSERT OR IGNORE INTO t VALUES(2, 'r', 6, 'x')")
    assert one(guarded, "SELECT token FROM lease_fence") == 5


def test_an_insert_or_ignore_with_a_stale_token_is_not_let_in(guarded):
    with pytest.raises(sqlite3.IntegrityError, match="stale"):
        guarded.execute("INSERT OR IGNORE INTO t VALUES(9, 'q', 3, 'x'), "
                        "(10, 'r2', 1, 'y')") \
            if guarded.execute("SELECT lease_fence('r2', 2)").fetchall() \
            else None
    assert one(guarded, "SELECT count(*) FROM t") == 1


def test_a_guard_holds_for_a_table_without_rowid(db):
    con = db()
    con.execute("CREATE TABLE t(r TEXT PRIMARY KEY, k INTEGER NOT NULL) "
                "WITHOUT ROWID")
    one(con, "SELECT lease_guard('t', 'r', 'k')")
    upsert = "INSERT INTO t VALUES('r', ?) ON CONFLICT DO UPDATE " \
             "SET k = excluded.k"
    con.execute(upsert, (5,))
    con.execute(upsert, (7,))
    refused(con, upsert, 6, match="stale")
    assert con.execute("SELECT * FROM t").fetchall() == [("r", 7)]


def test_a_guard_and_the_function_share_one_register(guarded):
    one(guarded, "SELECT lease_fence('r', 50)")
    refused(guarded, "UPDATE t SET k = 49", match="stale")
    guarded.execute("UPDATE t SET k = 60")
    refused(guarded, "SELECT lease_fence('r', 59)", match="stale")


def test_a_guard_needs_no_extension_and_no_trust(guarded, tmp_path):
    plain = sqlite3.connect(tmp_path / "lease.db", isolation_level=None)
    plain.execute("PRAGMA trusted_schema = OFF")
    with pytest.raises(sqlite3.IntegrityError, match="stale"):
        plain.execute("INSERT OR REPLACE INTO t VALUES(2, 'r', 4, 'x')")
    plain.execute("UPDATE t SET k = 8")
    plain.close()
    refused(guarded, "UPDATE t SET k = 7", match="stale")


def test_a_guard_holds_where_its_file_is_attached(guarded, tmp_path):
    plain = sqlite3.connect(":memory:", isolation_level=None)
    plain.execute("CREATE TABLE lease_fence(resource, token)")
    plain.execute("CREATE TABLE t(r, k)")
    plain.execute("ATTACH ? AS o", (str(tmp_path / "lease.db"),))
    plain.execute("CREATE TEMP TABLE lease_fence(resource, token)")
    with pytest.raises(sqlite3.IntegrityError, match="stale"):
        plain.execute("INSERT OR REPLACE INTO o.t VALUES(2, 'r', 4, 'x')")
    plain.execute("UPDATE o.t SET k = 9")
    plain.close()
    refused(guarded, "UPDATE t SET k = 8", match="stale")


def test_installing_a_guard_again_is_harmless_and_follows_the_columns(guarded):
    con = guarded
    for _ in range(3):
        assert one(con, "SELECT lease_guard('T', 'R', 'K')") == 1
    assert one(con, "SELECT count(*) FROM sqlite_schema "
                    "WHERE type = 'trigger' AND tbl_name = 't'") == 3
    con.execute("ALTER TABLE t ADD COLUMN k2 INTEGER NOT NULL DEFAULT 99")
    one(con, "SELECT lease_guard('t', 'r', 'k2')")
    con.execute("UPDATE t SET k = 1")
    refused(con, "UPDATE t SET k2 = 98", match="stale") \
        if one(con, "SELECT token FROM lease_fence") == 99 else None


def test_a_guard_follows_a_table_that_is_renamed(guarded):
    con = guarded
    con.execute("ALTER TABLE t RENAME TO u")
    con.execute("ALTER TABLE u RENAME COLUMN k TO token")
    refused(con, "UPDATE u SET token = 4", match="stale")
    assert one(con, "SELECT lease_guard('u', 'r', 'token')") == 1
    refused(con, "UPDATE u SET token = 4", match="stale")
    con.execute("UPDATE u SET token = 6")


def test_a_guard_of_a_new_table_does_not_undo_that_of_a_renamed_one(guarded):
    con = guarded
    con.execute("ALTER TABLE t RENAME TO u")
    con.execute("CREATE TABLE t(r TEXT, k INTEGER)")
    refused(con, "SELECT lease_guard('t', 'r', 'k')", match="already exists")
    refused(con, "UPDATE u SET k = 4", match="stale")
    one(con, "SELECT lease_guard('u', 'r', 'k')")
    for event in ("insert", "update", "before"):
        con.execute(f"DROP TRIGGER lease_guard_t_{event}")
    assert one(con, "SELECT lease_guard('t', 'r', 'k')") == 1
    for table in "tu":
        refused(con, f"INSERT OR REPLACE INTO {table}(r, k) VALUES('r', 4)",
                match="stale")


def test_removing_a_guard_is_dropping_three_triggers(guarded):
    for event in ("insert", "update", "before"):
        guarded.execute(f'DROP TRIGGER "lease_guard_t_{event}"')
    guarded.execute("UPDATE t SET k = 4")


def test_a_guard_knows_the_tokens_that_the_table_has(db):
    con = db()
    con.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, r TEXT COLLATE NOCASE,"
                " k, b)")
    con.execute("INSERT INTO t VALUES(1, 'r', 50, 'new'), (2, 'r', 7, ''),"
                " (3, 'R', 9, ''), (4, 'odd', 'x', ''), (5, 'low', -4, ''),"
                " (6, x'00', 5, ''), (7, 'high', 1 << 60, '')")
    one(con, "SELECT lease_fence('r', 60), lease_fence('R', 1)")
    assert one(con, "SELECT lease_guard('t', 'r', 'k')") == 1
    assert con.execute("SELECT resource, token FROM lease_fence"
                       " ORDER BY resource").fetchall() == [("R", 9), ("r", 60)]
    refused(con, "UPDATE t SET k = 59 WHERE id = 1", match="stale")
    refused(con, "INSERT OR REPLACE INTO t VALUES(3, 'R', 8, '')",
            match="stale")
    con.execute("UPDATE t SET k = 60 WHERE id = 1")


def test_an_upsert_is_refused_by_the_token_that_it_was_offered(guarded):
    con = guarded
    con.execute("CREATE UNIQUE INDEX u ON t(r)")
    con.execute("INSERT OR REPLACE INTO t(r, k) VALUES('up', 10)")
    for action in ("UPDATE SET r = excluded.r", "UPDATE SET k = k", "NOTHING"):
        refused(con, "INSERT INTO t(r, k) VALUES('up', 9) ON CONFLICT(r) DO "
                + action, match="stale")
        con.execute("INSERT INTO t(r, k) VALUES('up', 10) ON CONFLICT(r) DO "
                    + action)


@pytest.mark.parametrize("token", [0, -5, 1 << 53, (1 << 63) - 1])
def test_a_guard_takes_tokens_that_can_be_ones(guarded, token):
    refused(guarded, f"INSERT INTO t(r, k) VALUES('n', {token})",
            match="token must be 1 to 9007199254740991")
    guarded.execute(f"INSERT INTO t(r, k) VALUES('n', {(1 << 53) - 1})")


@pytest.mark.parametrize("table, columns", [
    ("none", ("r", "k")), ("temporary", ("r", "k")), ("t", ("r", "nothing")), ("t", ("nothing", "k")),
    ("v", ("r", "k")), ("ft", ("r", "k"))])
def test_a_guard_wants_a_table_of_main_with_both_columns(db, table, columns):
    con = db()
    con.execute("CREATE TABLE t(r, k)")
    con.execute("CREATE TEMP TABLE temporary(r, k)")
    con.execute("CREATE VIEW v AS SELECT * FROM t")
    con.execute("CREATE VIRTUAL TABLE ft USING fts5(r, k)")
    refused(con, "SELECT lease_guard(?, ?, ?)", table, *columns,
            match="table must be a table of main")


def test_our_own_tables_take_no_guard(db):
    con = db()
    one(con, "SELECT lease_init()")
    for table in ("lease", "lease_event", "lease_fence"):
        refused(con, "SELECT lease_guard(?, 'resource', 'token')", table,
                match="lease_guard")
    assert grant(con) == 1


def test_a_guard_can_be_installed_inside_a_transaction(db):
    con = db()
    con.execute("CREATE TABLE t(r TEXT, k INTEGER)")
    con.execute("BEGIN")
    one(con, "SELECT lease_guard('t', 'r', 'k')")
    con.execute("ROLLBACK")
    con.execute("INSERT INTO t VALUES(NULL, NULL)")
    one(con, "SELECT lease_guard('t', 'r', 'k')")
    refused(con, "INSERT INTO t VALUES(NULL, NULL)", match="resource")


def test_a_guard_beside_running_statements(db):
    con = db()
    con.execute("CREATE TABLE t(r TEXT, k INTEGER)")
    con.execute("INSERT INTO t VALUES('r', 1), ('s', 2)")
    cursor = con.execute("SELECT * FROM t")
    next(cursor)
    assert one(con, "SELECT lease_guard('t', 'r', 'k')") == 1
    assert cursor.fetchall() == [("s", 2)]


# --- lease_problem -----------------------------------------------------------------------------

def test_lease_problem_says_what_the_functions_say(db):
    con = db()
    rng = random.Random(1)
    values = [None, "", "x", 5, -1, 0, 5.5, b"x", "x" * 600, 2**60, "12", "a\n"]
    calls = {"resource": "lease_revoke(?)", "token": "lease_check('r', ?)",
             "holder": "lease_grant('r', ?, 10)",
             "ttl": "lease_grant('r', 'h', ?)",
             "capacity": "lease_grant('r', 'h', 10, ?)",
             "min_remaining": "lease_check('r', 1, ?)",
             "request_id": "lease_grant('r', 'h', 10, 1, NULL, ?)"}
    optional = {"capacity", "min_remaining", "request_id"}
    for (name, call), value in itertools.product(calls.items(), values):
        if value is None and name in optional:
            continue
        problem = one(con, "SELECT lease_problem(?, ?)", name, value)
        con.execute("BEGIN")
        if problem is None:
            one(con, f"SELECT {call}", value)
        else:
            assert f"{name} {problem}" in str(
                refused(con, f"SELECT {call}", value))
        con.execute("ROLLBACK")
    refused(con, "SELECT lease_problem('nonsense', 1)", match="name")
    refused(con, "SELECT lease_problem(NULL, 1)", match="name")


# --- lease_instant -----------------------------------------------------------------------------

def test_an_instant_is_written_as_sqlite_writes_it(db):
    """For the years in which SQLite's own leap days are right."""
    con = db()
    rng = random.Random(1)
    first, end = -49541673600000, 253402300800000  # of the years 400 to 9999
    days = range(first // 86400000, end // 86400000, 37)
    for ms in [None, first, -1000, -1, 0, 1, 999, 1000, end - 1, end,
               *(day * 86400000 - rng.randrange(2) for day in days),
               *(rng.randrange(first, end) for _ in range(20000))]:
        assert one(con, "SELECT lease_instant(?)", ms) == one(
            con, "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', ? / 1000.0, "
            "'unixepoch')", ms), ms
    assert one(con, "SELECT lease_instant(?)", -2**63) is None
    assert one(con, "SELECT lease_instant(?)", 2**63 - 1) is None
