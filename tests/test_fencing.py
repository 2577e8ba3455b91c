"""A worker that sleeps past its lease loses other people's updates, unless the
write is fenced: the short form of tests/fencing.py."""

import sqlite3
import time

import pytest

import fencing
import support
from support import one


@pytest.mark.limit(120)
def test_only_a_fence_keeps_a_sleeper_from_overwriting(service):
    until = time.monotonic() + support.patience(100)
    runs = fencing.race(
        service, 0.2, 3, lambda runs: all(run.enough() for run in runs)
        or time.monotonic() > until)
    print(*fencing.table(runs), sep="\n")
    lost = {run.kind: run.lost for run in runs}
    assert lost.pop("leases") > 0
    assert lost.pop("late_fence") > 0, "the fence with the write alone"
    assert lost == {"check": 0, "attached": 0, "fence": 0, "guard": 0}
    assert all(run.tally.refused > 0 for run in runs if not run.record.loses)


def write_in_another_file(db, begin):
    """A connection in the middle of a checked write to a file beside the one
    with the leases, and its token."""
    con = db()
    con.execute("PRAGMA journal_mode=WAL").fetchall()
    con.execute("ATTACH ? AS o", (":memory:",))
    con.execute("CREATE TABLE o.record(n INTEGER)")
    con.execute("INSERT INTO o.record VALUES (5)")
    token = one(con, "SELECT lease_grant('r', 'a', 10)")
    con.execute(begin)
    assert con.execute("UPDATE o.record SET n = 6 WHERE lease_check('r', ?)",
                       (token,)).rowcount == 1
    return con


def test_a_checked_write_to_another_file_holds_off_the_next_holder(db, clock):
    con = write_in_another_file(db, "BEGIN IMMEDIATE")
    clock.advance(10)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        one(db(timeout=0.01), "SELECT lease_grant('r', 'b', 10)")
    con.execute("COMMIT")
    assert one(db(), "SELECT lease_grant('r', 'b', 10)")


def test_without_immediate_the_next_holder_comes_before_the_commit(db, clock):
    """Why the README says IMMEDIATE: this grant comes between."""
    con = write_in_another_file(db, "BEGIN")
    clock.advance(10)
    assert one(db(), "SELECT lease_grant('r', 'b', 10)")
    con.execute("COMMIT")
