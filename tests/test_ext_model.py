"""The engine against a model of its rules: several connections, transactions,
clocks that step, reboots, and every result and the whole of lease_active
compared after each step.

LEASE_MODEL_STEPS sets how many steps (default 10,000), LEASE_MODEL_SEED where
it begins; `make test` always takes the same road. LEASE_MODEL_SHRINK=1 looks
for the shortest way to a failure, which takes minutes.
"""

import itertools
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis.stateful import (RuleBasedStateMachine, initialize, invariant,
                                 precondition, rule,
                                 run_state_machine_as_test)

import model
import support

STEPS = support.scaled(int(os.environ.get("LEASE_MODEL_STEPS", "10000")))
SEED = int(os.environ.get("LEASE_MODEL_SEED", "1"))

connections = st.integers(0, 2)
resources = st.sampled_from(["a", "b", "B", "b/é", "\U0010ffff"])
holders = st.sampled_from(["h1", "h2", "h3", "H1"])
ttls = st.sampled_from([0.1, 0.0999, 1, 2.5, 10, 60.001, 86400, 86400.001])
capacities = st.sampled_from([1, 1, 2, 3, 10000])
request_ids = st.sampled_from([None, None, "q1", "q2"])
data = st.sampled_from([None, "", "text\n"])


class Host:
    """One connection of the machine, and what it should see."""

    def __init__(self, path):
        self.con = support.connect(path, clocked=True, timeout=0.001)
        self.work = None       # State inside its transaction, else None
        self.base = None       # the commit that the transaction began from
        self.wrote = False     # it holds the write lock
        self.points = []       # the savepoints: name, State


class Machine(RuleBasedStateMachine):
    steps = 0
    counter = itertools.count()

    def __init__(self):
        super().__init__()
        self.dir = Path(tempfile.mkdtemp(prefix="lease-model-"))
        self.clock = support.Clock(self.dir / "clock")
        os.environ["LEASE_TEST_CLOCK"] = str(self.clock.path)
        self.path = self.dir / "lease.db"
        con = sqlite3.connect(self.path)
        con.execute("PRAGMA journal_mode = WAL")
        con.execute("CREATE TABLE mine(resource TEXT UNIQUE, token INTEGER)")
        con.close()
        self.world = model.World(self.clock.boot_ms, self.clock.wall_ms,
                                 self.clock.boot_id)
        self.state = model.State()       # what is committed
        self.commits = 0
        self.sure = 0          # the newest that surely changed the file
        self.tokens = [1]
        self.hosts = [Host(self.path) for _ in range(3)]
        self.bursts = 0

    def teardown(self):
        hold = self.hosts[0]
        for host in self.hosts:
            if host.con.in_transaction:
                host.con.execute("ROLLBACK")
            host.work = None
        self.compare(hold)
        if self.state.schema:
            got = hold.con.execute(
                "SELECT token, at, event, resource, holder, epoch, ttl, "
                "capacity, data, request_id, reason, expires_at "
                "FROM lease_event ORDER BY token").fetchall()
            assert [e[:5] + ((None,) if e[2] == "restored" else e[5:6])
                    + e[6:] for e in got] == self.state.log()
        assert hold.con.execute("PRAGMA integrity_check").fetchone() == \
            ("ok",)
        for host in self.hosts:
            host.con.close()
        shutil.rmtree(self.dir)

    # --- how a call is compared -----------------------------------------------

    def view(self, host):
        return self.state if host.work is None else host.work

    def locked(self, host):
        return any(h.wrote for h in self.hosts if h is not host)

    def refusal(self, host):
        """Why a write of this host cannot begin now, or None."""
        if host.wrote:
            return None
        if self.locked(host):
            return "SQLITE_BUSY"
        if host.base is not None and host.base < self.sure:
            return "SQLITE_BUSY_SNAPSHOT"
        return None

    def in_doubt(self, host):
        """What was undone before its commit may or may not have changed the
        file, and so made the host's snapshot stale."""
        return not host.wrote and host.base is not None \
            and host.base < self.commits

    def commit(self, state):
        if (state.writes, state.doubts) != \
                (self.state.writes, self.state.doubts):
            self.commits += 1
        if state.writes != self.state.writes:
            self.sure = self.commits
        self.state = state

    def write(self, host, change, sql, *args):
        """Run a writing statement and the model's change, and compare."""
        busy = self.refusal(host)
        state = self.view(host).copy()
        kept = None
        try:
            want = change(state)
            kept = state
        except model.Misuse as misuse:
            want = {"error": "SQLITE_ERROR",
                    "constraint": "SQLITE_CONSTRAINT"}[str(misuse)]
            kept = state   # the schema and the clock may have been stored
        want = busy or want
        try:
            got = host.con.execute(sql, args).fetchall()
            got = got[0][0] if got else None
        except sqlite3.Error as error:
            got = error.sqlite_errorname
        if got == "SQLITE_BUSY_SNAPSHOT" and self.in_doubt(host):
            busy = want = got
        assert got == want, (sql, args)
        if busy:
            self.give_up(host)
            return None
        if host.con.in_transaction:
            host.work = kept
            host.base = self.commits if host.base is None else host.base
            host.wrote = True
        else:
            self.commit(kept)
        if isinstance(got, int) and got > 0:
            self.tokens.append(got)
        return got

    def read(self, host, want, sql, *args):
        if host.con.in_transaction and host.base is None:
            host.base = self.commits
            host.work = self.state.copy()
        state = self.view(host)
        assert host.con.execute(sql, args).fetchall() == want(state), \
            (sql, args)

    def compare(self, host):
        self.read(host, lambda s: s.active(self.world),
                  "SELECT * FROM lease_active ORDER BY resource, holder")

    # --- the functions -----------------------------------------------------------

    @rule(n=connections, r=resources, h=holders, ttl=ttls, c=capacities,
          d=data, q=request_ids)
    def grant(self, n, r, h, ttl, c, d, q):
        self.write(self.hosts[n],
                   lambda s: s.grant(self.world, r, h, ttl, c, d, q),
                   "SELECT lease_grant(?, ?, ?, ?, ?, ?)",
                   r, h, ttl, c, d, q)

    def pick(self, data):
        """A token and a resource, most times a pair that belongs together."""
        token = data.draw(st.sampled_from(self.tokens[-8:] + [1, 7]),
                          label="token")
        event = self.state.events.get(token)
        if event is not None and event.resource and data.draw(
                st.integers(0, 9), label="own resource"):
            return event.resource, token
        return data.draw(resources, label="resource"), token

    @rule(n=connections, data=st.data(), ttl=st.one_of(st.none(), ttls))
    def renew(self, n, data, ttl):
        r, t = self.pick(data)
        self.write(self.hosts[n], lambda s: s.renew(self.world, r, t, ttl),
                   "SELECT lease_renew(?, ?, ?)", r, t, ttl)

    @rule(n=connections, data=st.data())
    def release(self, n, data):
        r, t = self.pick(data)
        self.write(self.hosts[n], lambda s: s.release(self.world, r, t),
                   "SELECT lease_release(?, ?)", r, t)

    @rule(n=connections, r=resources, h=st.one_of(st.none(), holders))
    def revoke(self, n, r, h):
        self.write(self.hosts[n],
                   lambda s: s.revoke(self.world, r, h, "why"),
                   "SELECT lease_revoke(?, ?, 'why')", r, h)

    @rule(n=connections, limit=st.sampled_from([None, 1, 2]))
    def sweep(self, n, limit):
        self.write(self.hosts[n],
                   lambda s: s.sweep(self.world, limit or 1000),
                   "SELECT lease_sweep(?)", limit)

    @rule(n=connections, r=resources, t=st.integers(1, 5))
    def fence(self, n, r, t):
        self.write(self.hosts[n], lambda s: s.fence(r, t),
                   "SELECT lease_fence(?, ?)", r, t)

    @rule(n=connections, margin=st.sampled_from([1, 63, 500, None]))
    @precondition(lambda self: self.state.last < 10**9)
    def restore(self, n, margin):
        self.write(self.hosts[n], lambda s: s.restore(self.world, margin),
                   "SELECT lease_restore(?)", margin)

    @rule(n=connections, setting=st.sampled_from(
        [("min_ttl", 0.1), ("min_ttl", 2.0), ("max_ttl", 86400.0),
         ("max_ttl", 1.0), ("max_ttl", 90000.0), ("event_rows", 1000)]))
    def config(self, n, setting):
        self.write(self.hosts[n], lambda s: s.set(*setting),
                   "SELECT lease_config(?, ?)", *setting)

    @rule(n=connections, names=st.lists(resources, min_size=1, max_size=4),
          h=holders, ttl=ttls, c=capacities)
    def insert_select(self, n, names, h, ttl, c):
        """One statement, many grants: all of it or nothing."""
        host = self.hosts[n]
        if not self.view(host).schema and not host.con.in_transaction:
            return   # a test of its own
        before = self.view(host).copy()

        def change(state):
            for name in names:
                token = state.grant(self.world, name, h, ttl, c)
                if name in (r for r, _ in state.mine):
                    raise model.Misuse("constraint")
                state.mine.append((name, token))
                state.writes += 1

        work = before.copy()
        try:
            change(work)
            want = None
        except model.Misuse:
            work, want = before, "failed"
            work.doubts += 1
        want = self.refusal(host) or want
        try:
            host.con.execute(
                "INSERT INTO mine SELECT value, lease_grant(value, ?, ?, ?) "
                "FROM (SELECT value FROM json_each(?) ORDER BY key)",
                (h, ttl, c, str(names).replace("'", '"')
                 .replace("\\U0010ffff", "\U0010ffff")))
            got = None
        except sqlite3.Error as error:
            got = error.sqlite_errorname
            if not got.startswith("SQLITE_BUSY"):
                got = "failed"
        if got == "SQLITE_BUSY_SNAPSHOT" and self.in_doubt(host):
            want = got
        assert got == want
        if want is not None and want != "failed":
            self.give_up(host)
            return
        if host.con.in_transaction:
            host.base = self.commits if host.base is None else host.base
            host.work, host.wrote = work, True
        else:
            self.commit(work)

    @rule(n=connections, data=st.data(),
          least=st.sampled_from([None, 0, 1, 9.999]))
    def check(self, n, data, least):
        r, t = self.pick(data)
        host = self.hosts[n]
        self.read(host, lambda s: [(
            s.check(self.world, r, t, least or 0), s.why(self.world, r, t),
            s.now(self.world))],
            "SELECT lease_check(?, ?, ?), lease_why(?, ?), lease_now()",
            r, t, least, r, t)

    # --- transactions ---------------------------------------------------------------

    @rule(n=connections, how=st.sampled_from(["DEFERRED", "IMMEDIATE"]))
    def begin(self, n, how):
        host = self.hosts[n]
        if host.con.in_transaction:
            return
        if how == "IMMEDIATE" and self.locked(host):
            return
        host.con.execute("BEGIN " + how)
        if how == "IMMEDIATE":
            host.base, host.work = self.commits, self.state.copy()
            host.wrote = True

    @rule(n=connections)
    def commit_it(self, n):
        self.finish(self.hosts[n], "COMMIT")

    @rule(n=connections)
    def roll_back(self, n):
        self.finish(self.hosts[n], "ROLLBACK")

    def give_up(self, host):
        """Busy at the first statement of a transaction: whether it has a
        snapshot now depends on what the connection had to look at."""
        if host.base is None:
            self.finish(host, "ROLLBACK")

    def finish(self, host, how):
        if not host.con.in_transaction:
            return
        host.con.execute(how)
        if how == "COMMIT" and host.wrote:
            self.commit(host.work)
        host.work = host.base = None
        host.wrote, host.points = False, []

    @rule(n=connections)
    def savepoint(self, n):
        host = self.hosts[n]
        if not host.wrote:
            return
        host.con.execute(f"SAVEPOINT p{len(host.points)}")
        host.points.append(host.work.copy())

    @rule(n=connections)
    def roll_back_to(self, n):
        host = self.hosts[n]
        if not host.points:
            return
        doubts = host.work.doubts + 1
        host.work = host.points[-1].copy()
        host.work.doubts = doubts
        host.con.execute(f"ROLLBACK TO p{len(host.points) - 1}")

    @rule(n=connections)
    def release_point(self, n):
        host = self.hosts[n]
        if host.points:
            host.points.pop()
            host.con.execute(f"RELEASE p{len(host.points)}")

    # --- the world -------------------------------------------------------------------

    def tell(self):
        self.world.boot_ms = self.clock.boot_ms
        self.world.wall_ms = self.clock.wall_ms
        self.world.boot_id = self.clock.boot_id

    @rule(seconds=st.sampled_from([0.001, 0.099, 0.5, 1, 9, 50, 90000]))
    def advance(self, seconds):
        self.clock.advance(seconds)
        self.tell()

    @rule(data=st.data(), off=st.sampled_from([-1, 0, 0, 1]))
    def to_an_expiry(self, data, off):
        """To a millisecond before, at, or after somebody's expiry."""
        now = self.state.now_ms(self.world)
        ends = sorted({l.expires_at for l in self.state.leases.values()
                       if l.expires_at + off > now})
        if ends:
            end = data.draw(st.sampled_from(ends[:3]), label="expiry")
            self.clock.advance((end + off - now) / 1000)
            self.tell()

    @rule(seconds=st.sampled_from([3600, -3600, -86400 * 365 * 60]))
    def step_wall(self, seconds):
        self.clock.step_wall(seconds)
        self.tell()

    @rule(down=st.sampled_from([0, 1, 60]))
    def reboot(self, down):
        """The machine goes down; who had a transaction open has none."""
        for host in self.hosts:
            self.finish(host, "ROLLBACK")
            host.con.close()
        self.clock.reboot(down)
        self.tell()
        self.hosts = [Host(self.path) for _ in range(3)]

    @rule(n=connections)
    def reopen(self, n):
        self.finish(self.hosts[n], "ROLLBACK")
        self.hosts[n].con.close()
        self.hosts[n] = Host(self.path)

    @rule(n=connections)
    def vacuum(self, n):
        if any(h.con.in_transaction for h in self.hosts):
            return
        self.hosts[n].con.execute("VACUUM")
        self.commits += 1
        self.sure = self.commits

    @rule(n=connections, r=resources, rows=st.sampled_from([70, 400]))
    @precondition(lambda self: self.bursts < 6)
    def burst(self, n, r, rows):
        """Many renewals, so that the log is trimmed."""
        host = self.hosts[n]
        self.bursts += 1
        own = [l for l in self.view(host).leases.values() if l.resource == r]
        if not own or self.refusal(host) or host.con.in_transaction:
            return
        self.begin(n, "IMMEDIATE")
        token = own[0].token
        for _ in range(rows):
            if token is None:
                break
            last = token
            token = self.write(
                host, lambda s: s.renew(self.world, r, last),
                "SELECT lease_renew(?, ?)", r, last)
        self.finish(host, "COMMIT")

    @invariant()
    def everything_is_as_the_model_says(self):
        Machine.steps += 1
        for host in self.hosts:
            if host.work is not None or not host.con.in_transaction:
                self.compare(host)


def settings(examples):
    phases = [hypothesis.Phase.generate]
    if os.environ.get("LEASE_MODEL_SHRINK"):
        phases.append(hypothesis.Phase.shrink)
    return hypothesis.settings(
        hypothesis.settings(), max_examples=examples, stateful_step_count=60,
        phases=phases)


@pytest.mark.limit(600 if STEPS <= 10_000 else 86_400)
def test_every_function_does_what_the_rules_say(build, monkeypatch):
    monkeypatch.setenv("LEASE_TEST_CLOCK", "")
    Machine.steps = 0
    for seed in itertools.count(SEED):
        if Machine.steps >= STEPS:
            break
        machine = type("Machine", (Machine,), {})
        hypothesis.seed(seed)(machine)
        print(f"LEASE_MODEL_SEED={seed}")
        run_state_machine_as_test(machine, settings=settings(40))
    assert Machine.steps >= STEPS
