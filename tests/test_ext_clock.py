"""The lease clock: wall clocks step, machines reboot and sleep, and nothing
but time that has passed ends a lease."""

import sqlite3
import subprocess
import sys
import threading
import time

import pytest

import support
from support import one

HOUR = 3600
EPOCH = 1_700_000_000


def grant(con, resource="r", holder="a", ttl=60):
    return one(con, "SELECT lease_grant(?, ?, ?)", resource, holder, ttl)


def remaining(con, resource="r"):
    return one(con, "SELECT remaining FROM lease_active WHERE resource = ?",
               resource)


@pytest.mark.parametrize("set_to", [
    EPOCH + HOUR, EPOCH - HOUR, 0, 0.001, 2**31, 2**33, -HOUR,
    EPOCH + 10 * 365 * 86400])
def test_a_wall_clock_that_is_set_moves_no_lease(db, clock, set_to):
    """C044"""
    con = db()
    token = grant(con)
    now = one(con, "SELECT lease_now()")
    clock.set_wall(set_to)
    assert one(con, "SELECT lease_now()") == now
    assert one(db(), "SELECT lease_now()") == now
    assert remaining(con) == 60
    clock.advance(30)
    assert remaining(con) == 30
    newer = one(con, "SELECT lease_renew('r', ?)", token)
    assert newer > token and remaining(con) == 60
    clock.advance(59.999)
    assert grant(con, holder="b") is None
    clock.advance(0.001)
    assert remaining(con) is None
    assert grant(con, holder="b") == newer + 2


def test_a_wall_clock_that_wanders_all_the_time_changes_nothing(db, clock):
    """C044"""
    con = db()
    con.execute("PRAGMA synchronous = OFF")
    last = grant(con, ttl=1000)
    start = one(con, "SELECT lease_now()")
    for i in range(100):
        clock.advance(1)
        clock.step_wall((-1) ** i * HOUR * i)
        assert one(con, "SELECT lease_now()") == start + i + 1
        assert remaining(con) == 999
        token = one(con, "SELECT lease_renew('r', ?)", last)
        assert token == last + 1
        last = token


def test_time_asleep_counts(db, clock):
    """C047: CLOCK_BOOTTIME runs on in suspend."""
    con = db()
    token = grant(con)
    clock.advance(8 * HOUR)
    assert remaining(con) is None
    assert one(con, "SELECT lease_renew('r', ?)", token) is None
    assert grant(con, holder="b") > token


@pytest.mark.parametrize("down, left", [(0, 40), (20, 20), (39.999, 0.001),
                                        (40, None), (9 * HOUR, None)])
def test_time_switched_off_counts(db, clock, down, left):
    """C054"""
    grant(db())
    clock.advance(10)
    clock.reboot(down, boot=10)
    con = db()
    assert remaining(con) == left
    assert (grant(con, holder="b") is None) == (left is not None)
    assert remaining(con) == (60 if left is None else left)


def test_restarts_do_not_begin_the_count_anew(db, clock):
    """C054"""
    grant(db())
    for left in range(55, 0, -5):
        clock.advance(5)
        con = db()
        assert grant(con, holder="b") is None
        assert remaining(con) == left
        con.close()
    clock.advance(5)
    assert grant(db(), holder="b")


@pytest.mark.parametrize("wall", [0, EPOCH - 86400, EPOCH + 59.999])
def test_after_a_reboot_lease_time_is_never_before_the_newest_event(db, clock,
                                                                    wall):
    con = db()
    token = grant(con)
    clock.advance(30)
    one(con, "SELECT lease_renew('r', ?)", token)
    newest = one(con, "SELECT lease_now()")
    clock.reboot(down=5)
    clock.set_wall(wall)
    con = db()
    want = max(newest, wall)
    assert one(con, "SELECT lease_now()") == want
    assert remaining(con) == round(newest + 60 - want, 3)
    assert grant(con, holder="b") is None
    assert one(con, "SELECT lease_now()") == want
    clock.advance(newest + 60 - want)
    assert grant(con, holder="b") > token


def test_a_boot_with_a_clock_far_ahead_freezes_nothing_later(db, clock):
    con = db()
    token = grant(con)
    clock.reboot()
    clock.set_wall(EPOCH + 12 * 365 * 86400)
    con = db()
    token = grant(con)
    clock.reboot()
    clock.set_wall(EPOCH + HOUR)
    con = db()
    assert remaining(con) == 60
    assert grant(con, "another")
    clock.advance(30)
    assert remaining(con) == 30
    one(con, "SELECT lease_renew('r', ?)", token)
    before = one(con, "SELECT lease_now()")
    clock.advance(60)
    assert one(con, "SELECT lease_now()") == before + 60
    assert remaining(con) is None
    assert grant(con) > token


def test_before_the_first_write_of_a_boot_readers_see_what_it_will_store(
        db, clock):
    con = db()
    token = grant(con)
    clock.reboot(down=20)
    con = db()
    seen = one(con, "SELECT lease_now()")
    left = remaining(con)
    assert one(con, "SELECT lease_check('r', ?)", token) == 1
    boot = "SELECT boot_id FROM lease_clock"
    assert one(con, boot) != clock.boot_id
    assert one(con, "SELECT lease_sweep()") == 0
    assert one(con, boot) == clock.boot_id
    assert one(con, "SELECT lease_now()") == seen
    assert remaining(con) == left


def test_a_clock_that_stands_still_gives_rising_tokens(db, clock):
    """C052"""
    con = db()
    con.execute("PRAGMA synchronous = OFF")
    token = grant(con, ttl=86400)
    for _ in range(1000):
        newer = one(con, "SELECT lease_renew('r', ?)", token)
        assert newer == token + 1
        token = newer
    clock.advance(1)
    clock.step_wall(1)
    assert one(con, "SELECT lease_renew('r', ?)", token) == token + 1
    assert one(con, "SELECT count(DISTINCT at) FROM lease_event") == 2


CALLS = ["SELECT lease_grant('r', 'a', 10)", "SELECT lease_renew('r', 1)",
         "SELECT lease_release('r', 1)", "SELECT lease_revoke('r')",
         "SELECT lease_sweep()", "SELECT lease_restore()",
         "SELECT lease_check('r', 1)", "SELECT lease_why('r', 1)",
         "SELECT lease_now()", "SELECT * FROM lease_active"]


@pytest.mark.parametrize("content", [None, "", "12", "1 2", "x y z", "\n"])
def test_without_a_boot_id_every_function_fails_and_says_so(db, clock,
                                                            content):
    con = db()
    token = grant(con)
    line = clock.path.read_text()
    if content is None:
        clock.path.unlink()
    else:
        clock.path.write_text(content)
    before = con.execute("SELECT * FROM lease_event").fetchall()
    for sql in CALLS:
        with pytest.raises(sqlite3.Error, match="boot id") as error:
            con.execute(sql).fetchall()
        assert error.value.sqlite_errorname in ("SQLITE_ERROR",
                                                "SQLITE_CANTOPEN"), sql
    fresh = db()
    for sql in CALLS:
        with pytest.raises(sqlite3.Error, match="boot id"):
            fresh.execute(sql).fetchall()
    assert con.execute("SELECT * FROM lease_event").fetchall() == before
    clock.path.write_text(line)
    assert one(con, "SELECT lease_renew('r', ?)", token) == token + 1
    assert one(fresh, "SELECT lease_check('r', ?)", token) == 1


def test_without_a_boot_id_a_new_file_stays_without_leases(db, clock):
    con = db()
    clock.path.unlink()
    for sql in CALLS[:6] + ["SELECT lease_now()"]:
        with pytest.raises(sqlite3.Error, match="boot id"):
            con.execute(sql).fetchall()
    assert one(con, "SELECT count(*) FROM sqlite_schema "
                    "WHERE name = 'lease_event'") in (0, 1)


@pytest.mark.parametrize("anchor", [2**63 - 1, -2**63, 2**62, -2**62])
def test_an_anchor_out_of_reason_is_an_error_and_no_overflow(db, clock,
                                                             anchor):
    con = db()
    grant(con)
    con.execute("UPDATE lease_clock SET anchor = ?", (anchor,))
    for sql in CALLS:
        try:
            con.execute(sql).fetchall()
        except sqlite3.Error:
            pass
    assert one(con, "PRAGMA integrity_check") == "ok"


FIRST_WRITE = """
import sys
sys.path.insert(0, sys.argv[1])
import support
con = support.connect(sys.argv[2], clocked=True, timeout=30)
print("ready", flush=True)
sys.stdin.readline()
name = sys.argv[3]
token = support.one(con, "SELECT lease_grant(?, ?, 60)", name, name)
print(token, support.one(con, "SELECT anchor FROM lease_clock"),
      support.one(con, "SELECT lease_now()"))
"""


@pytest.mark.parametrize("fresh", [False, True])
def test_processes_that_begin_at_once_agree_on_one_anchor(db, clock, tmp_path,
                                                          fresh):
    if not fresh:
        con = db()
        con.execute("PRAGMA journal_mode = WAL")
        grant(con, "before")
        con.close()
        clock.reboot()
    children = [subprocess.Popen(
        [sys.executable, "-c", FIRST_WRITE, support.ROOT / "tests",
         tmp_path / "lease.db", f"p{i}"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env=support.host_env())
        for i in range(8)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    stop = threading.Event()

    def unsteady():
        while not stop.wait(0.001):
            clock.step_wall(7)
            if clock.wall > EPOCH + 10**6:
                clock.set_wall(EPOCH)

    thread = threading.Thread(target=unsteady)
    thread.start()
    try:
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        said = [child.communicate(timeout=60)[0].split()
                for child in children]
    finally:
        stop.set()
        thread.join()
    assert all(child.returncode == 0 for child in children)
    assert len({anchor for _, anchor, _ in said}) == 1
    assert len({now for *_, now in said}) == 1
    first = 1 if fresh else 2
    assert sorted(int(token) for token, *_ in said) == \
        list(range(first, first + 8))


@pytest.mark.parametrize("call, answer", [
    ("lease_grant('r', 'h', 60)", 3), ("lease_renew('old', 1)", 3),
    ("lease_release('old', 1)", 1), ("lease_revoke('old')", 1),
    ("lease_release('none', 1)", 0)])
def test_a_clock_that_another_has_set_meanwhile_makes_no_refusal(
        db, clock, call, answer):
    first = db()
    first.execute("PRAGMA journal_mode = WAL")
    grant(first, "old", ttl=600)
    first.close()
    clock.reboot()
    con, other = db(), db()

    def meanwhile(sql):
        if "INSERT INTO main.lease_clock" in sql:
            con.set_trace_callback(None)
            assert grant(other, "meanwhile") == 2

    con.set_trace_callback(meanwhile)
    assert one(con, "SELECT " + call) == answer
    assert one(con, "SELECT lease_why('meanwhile', 2)") == "active"


def test_the_real_clock_is_the_kernels(build):
    con = support.connect()
    grant(con)
    lead = one(con, "SELECT anchor FROM lease_clock")
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        assert one(con, "SELECT boot_id FROM lease_clock") == \
            file.read().strip()
    boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert abs(lead / 1000 + boot - time.time()) < support.patience(5)
    assert 0 < remaining(con) <= 60
