#!/usr/bin/python3
"""fire.py: many clients, by HTTP and SQL, under fire; then every answer is held
against what leases promise.

    LEASE_BUILD=build tests/fire.py SECONDS [SEED]

Each episode has a seed of its own, which decides who asks what and what strikes
when (tests/players.py, tests/nemesis.py), and names of its own. At its end all
is left in peace until the last lease has run out; then are checked:

* what clients saw against each other (linear.py, which does not read the log),
* what they saw against the event log (witness.py, checker.py): every event has
  its cause, every acknowledged change its event, tokens grow in real time,
* the event log against the rules, and the table lease against the log.

Exit 0: nothing was found. 1: the seed and what was found is printed, and the
logs and the file are kept. The same seed strikes in the same way again.
"""

import contextlib
import mmap
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import checker
import clients
import linear
import nemesis
import players
import support
import witness
from service import Service, wait_for

# Name, and the capacities that are asked for.
RESOURCES = [("one", [1]), ("alone", [1]), ("queue", [1]), ("two", [2]),
             ("three", [3]), ("readers", [4, 4, 4, 1])]
WORKERS = ["http"] * 5 + ["sql"] * 3
TURN = 3            # strikes, then other resources take their place


class Crowd:
    """The clients of an episode, each a process."""

    kinds, life, plan = WORKERS, players.Life, RESOURCES

    def __init__(self, service, folder, seed, anchor_ms):
        self.service, self.folder, self.seed = service, folder, seed
        self.anchor_ms = anchor_ms
        self.shared = mmap.mmap(-1, 2)      # without a lock to die with
        self.processes, self.paths = {}, []
        for number, kind in enumerate(self.kinds):
            self.add(f"w{number}", kind)

    def __enter__(self):
        return self

    def __exit__(self, problem, *_):
        if problem:
            self.kill()

    def add(self, name, kind):
        path = self.folder / f"{name}.log"
        process = clients.FORK.Process(
            target=self.live, args=(path, name, kind), daemon=True)
        process.start()
        self.paths.append(path)
        self.processes[process.pid] = process, name, kind

    def live(self, path, name, kind):
        dice = random.Random(f"{self.seed}/{name}")
        player = players.Http(self.service.port, self.anchor_ms) \
            if kind == "http" else players.Sql(self.service.db)
        self.life(player, path, name, dice, self.plan).live(self.shared)

    @property
    def pids(self):
        return list(self.processes)

    def replace(self, pid):
        process, name, kind = self.processes.pop(pid)
        process.join()
        self.add(name + "'", kind)

    def end(self):
        """All stop by themselves. Answers what they wrote down."""
        self.shared[0] = 1
        for process, name, _ in self.processes.values():
            process.join(support.patience(60))
            assert process.exitcode == 0, f"{name}: {process.exitcode}"
        return checker.read(self.paths)

    def kill(self):
        for process, _, _ in self.processes.values():
            process.kill()
            process.join()


@dataclass
class Report:
    episodes: int = 0
    counts: Counter = field(default_factory=Counter)    # calls, by outcome
    strikes: Counter = field(default_factory=Counter)   # of the nemesis
    events: int = 0
    histories: int = 0          # a resource of an episode, searched
    undecided: int = 0          # became too large for the search
    holders: int = 0            # at most, of one resource
    handed_on: list = field(default_factory=list)       # ms
    highest: int = 0            # token answered so far
    problems: list = field(default_factory=list)

    def lines(self):
        strikes = self.strikes
        yield (f"{self.episodes} episodes, {sum(self.counts.values())} calls: "
               + ", ".join(f"{n} {what}" for what, n in
                           self.counts.most_common()))
        for what, kinds in (("kills", nemesis.Nemesis.KILLS),
                            ("stops", nemesis.Nemesis.STOPS),
                            ("others", ("restart", "stall", "step clock"))):
            yield f"{sum(strikes[k] for k in kinds)} {what}: " + ", ".join(
                f"{strikes[k]} {k}" for k in kinds)
        yield (f"{self.events} events, at most {self.holders} holders; "
               f"{self.histories} histories searched, {self.undecided} too "
               f"large; {len(self.problems)} problems")
        if waits := sorted(self.handed_on):
            yield (f"{len(waits)} times a lease ran out while somebody waited: "
                   f"granted again after {waits[len(waits) // 2]:.0f} ms "
                   f"(median), {percentile(waits, 99):.0f} ms (99 %), "
                   f"{waits[-1]:.0f} ms (worst)")


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, len(values) * share // 100)]


class Fire:
    """A service under fire, episode after episode on the same file."""

    def __init__(self, folder):
        self.folder = Path(folder)
        # A sanitizer does not bear another library before its own.
        self.clock = None if support.SAN else nemesis.WallClock(
            self.folder / "wall")
        self.service = Service(
            self.folder, **(self.clock.environment if self.clock else {}))
        self.report = Report()

    def __enter__(self):
        self.service.__enter__()
        self.con = support.connect(str(self.service.db), timeout=30)
        support.one(self.con, "SELECT lease_config('event_rows', 1000000000)")
        # The first write of a boot sets the clock for good.
        support.one(self.con, "SELECT lease_revoke('none')")
        self.anchor_ms = support.one(self.con,
                                     "SELECT anchor FROM lease_clock")
        return self

    def __exit__(self, *problem):
        self.con.close()
        pid = self.service.lighttpd
        self.service.__exit__(*problem)
        nemesis.WallClock.tidy(pid)

    def episode(self, seed, strikes, gap=0.4):
        """Strikes is a list of what is to happen, in that order, with up to
        gap seconds between."""
        dice = random.Random(seed)
        name = f"e{self.report.episodes}"
        folder = self.folder / name
        folder.mkdir()
        after = support.one(self.con, "SELECT max(token) FROM lease_event")
        with Crowd(self.service, folder, seed, self.anchor_ms) as crowd:
            bane = nemesis.Nemesis(self.service, crowd, dice, self.clock)
            for number, kind in enumerate(strikes):
                time.sleep(dice.uniform(0.05, gap / 2))
                crowd.shared[1] = number // TURN
                time.sleep(dice.uniform(0.05, gap / 2))
                bane.do(kind)
            time.sleep(dice.uniform(0.1, gap))
            ops = crowd.end()
        self.look(ops, log_whole(self.con, after or 0), bane)
        if not self.report.problems:
            shutil.rmtree(folder)

    def look(self, ops, log, bane):
        report, undecided = self.report, []
        told = witness.Witness(ops, log, self.anchor_ms)
        found = [
            *checker.tokens_once(ops), *checker.tokens_in_order(ops),
            *checker.acknowledged_kept(ops, log),
            *checker.one_at_a_time(ops), *checker.log_obeys_the_rules(log),
            *witness.projection(log, self.con_rows()),
            *told.problems(undecided), *linear.problems(ops, undecided)]
        tokens = [op.token for op in checker.answered(ops)]
        if min(tokens, default=report.highest + 1) <= report.highest:
            found.append(f"a token of before: {min(tokens)}")
        if support.one(self.con, "PRAGMA integrity_check") != "ok":
            found.append("integrity_check")
        report.highest = max([report.highest, *tokens])
        report.episodes += 1
        report.counts.update(op.outcome for op in ops)
        report.strikes += bane.count
        report.events += len(log)
        report.histories += 2 * len(linear.by_resource(ops)) - len(undecided)
        report.undecided += len(undecided)
        report.holders = max(report.holders, holders(log))
        report.handed_on += witness.handed_on(ops, log, self.anchor_ms,
                                              bane.quiet)
        report.problems += found

    def con_rows(self):
        rows = self.con.execute("SELECT * FROM main.lease")
        names = [column[0] for column in rows.description]
        return [dict(zip(names, row)) for row in rows]


def log_whole(con, after):
    """The events behind a token, once the last lease is over."""
    wait_for(lambda: not support.one(con, "SELECT count(*) FROM lease"), 30,
             "every end is recorded")
    return [e for e in checker.events(con) if e["token"] > after]


def holders(log):
    """The most of one resource at once."""
    held, most = {}, 0
    for e in log:
        now = held.setdefault(e["resource"], set())
        if e["event"] == "granted":
            now.add(e["epoch"])
        elif e["event"] != "renewed":
            now.discard(e["epoch"])
        most = max(most, len(now))
    return most


def main(seconds, seed):
    until = time.monotonic() + seconds
    folder = tempfile.mkdtemp(prefix="leasehold.fire.")
    with Fire(folder) as fire:
        report = fire.report
        while time.monotonic() < until and not report.problems:
            dice = random.Random(seed + 1)
            strikes = dice.choices(nemesis.Nemesis.KINDS, k=10)
            before = sum(report.counts.values())
            fire.episode(seed, strikes)
            print(f"fire: episode {report.episodes}, seed {seed}: "
                  f"{sum(report.counts.values()) - before} calls; "
                  + ", ".join(strikes), flush=True)
            seed += 2
    for line in report.lines():
        print(f"fire: {line}")
    if report.problems:
        print(f"fire: FAILED, seed {seed - 2}; all is kept in {folder}:")
        print(*report.problems[:10], sep="\n")
        return 1
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2
                  else random.randrange(10**9)))
