#!/usr/bin/python3
"""uptime.py: does anything grow, or become slow, with the hours?

    LEASE_BUILD=build tests/uptime.py SECONDS [PARTS]

A service at a steady pace: 300 calls a second on 5,000 names, by HTTP and SQL,
and 20 streams as dashboards have. In each of PARTS parts (48, or fewer when they
would be shorter than 5 s; in eight hours one takes ten minutes) something is
killed with -9; in every sixth the file is copied, in the middle one VACUUM is
run. At the end of a part the clients rest until the last lease has run out; then

* what they saw is held against the event log (checker.py),
* each stream must have told every event once, in order,
* memory, descriptors, log, file and answering times are looked at.

At the end the second half of the parts is held against the first. Exit 0:
nothing was found, 1: what was is printed.
"""

import contextlib
import mmap
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import checker
import clients
import fire
import nemesis
import players
import support
from service import Service, wait_for
from stream import Stream

WORKERS = ["http"] * 4 + ["sql"]
CALLS = 300                     # a second, of all together
NAMES = 5000
STREAMS = 20
PARTS = 48
KILLS = ("kill service", "kill client", "kill lighttpd", "kill client")
MIB = 1 << 20


class Life(players.Life):
    """One client at its pace: takes a name, renews and releases its own."""

    def live(self, shared):
        own, due = {}, time.monotonic()
        while not shared[0]:
            due = max(due + len(WORKERS) / CALLS, time.monotonic() - 1)
            time.sleep(max(0, due - time.monotonic()))
            if own and self.dice.random() < 0.6:
                self.keep(own, self.dice.choice(list(own)))
                continue
            name = f"name/{self.dice.randrange(NAMES)}"
            outcome, result = self.do(
                "grant", resource=name, holder=self.name, capacity=1,
                ttl=self.dice.choice([0.5, 1, 2]), data=self.tag())
            if outcome == "ok":
                own[name] = result["token"]
        with contextlib.suppress(OSError):
            self.player.close()

    def keep(self, own, name):
        token = own.pop(name)
        if self.dice.random() < 0.4:
            self.do("release", resource=name, token=token)
            return
        outcome, result = self.do("renew", resource=name, token=token,
                                  ttl=self.dice.choice([0.5, 1, 2]))
        if outcome == "ok":
            own[name] = result["token"]


class Crowd(fire.Crowd):
    kinds, life, plan = WORKERS, Life, None


class Watcher(threading.Thread):
    """A dashboard's stream, taken up again where it broke off."""

    def __init__(self, service, after):
        super().__init__(daemon=True)
        self.service, self.last, self.told = service, after, 0
        self.over, self.problems = False, []

    def run(self):
        while not self.over:
            with contextlib.suppress(OSError, AssertionError, TimeoutError):
                with Stream(self.service, last_event_id=self.last) as stream:
                    while not self.over and (event := stream.next()):
                        self.take(event)
            time.sleep(0 if self.over else 0.1)

    def take(self, event):
        if event.name == "reset" or int(event.id) <= self.last:
            self.problems.append(f"a stream after {self.last}: {event}")
        self.last = int(event.id)
        self.told += 1


@dataclass
class Part:
    """What was seen of one: bytes, milliseconds."""
    calls: int
    memory: int
    descriptors: int
    log: int
    file: int
    p50: float
    p99: float

    def __str__(self):
        return (f"{self.calls} calls, p50 {self.p50:.2f} ms, p99 "
                f"{self.p99:.1f} ms; memory {self.memory / MIB:.1f} MiB, "
                f"{self.descriptors} descriptors, log {self.log / MIB:.1f} MiB, "
                f"file {self.file / MIB:.1f} MiB")


class Uptime:
    def __init__(self, folder, seconds, parts, seed):
        self.folder, self.seconds, self.count = Path(folder), seconds, parts
        self.dice, self.seed = random.Random(seed), seed
        self.service = Service(self.folder)
        self.parts, self.problems, self.watchers = [], [], []

    def __enter__(self):
        self.service.__enter__()
        self.con = support.connect(str(self.service.db), timeout=60)
        # Twice what a part brings, for it is read at its end.
        support.one(self.con, "SELECT lease_config('event_rows', ?)",
                    max(10_000, int(2 * CALLS * self.seconds / self.count)))
        support.one(self.con, "SELECT lease_revoke('none')")
        self.anchor_ms = support.one(self.con,
                                     "SELECT anchor FROM lease_clock")
        self.watchers = [Watcher(self.service, self.newest())
                         for _ in range(STREAMS)]
        for watcher in self.watchers:
            watcher.start()
        return self

    def __exit__(self, *problem):
        for watcher in self.watchers:
            watcher.over = True
        self.con.close()
        self.service.__exit__(*problem)
        for watcher in self.watchers:
            watcher.join()

    def newest(self):
        return support.one(self.con, "SELECT coalesce(max(token), 0)"
                           " FROM lease_event")

    def copy(self):
        path = self.folder / "copy.db"
        self.con.execute("VACUUM INTO ?", (str(path),))
        with contextlib.closing(support.connect(str(path))) as con:
            if support.one(con, "PRAGMA integrity_check") != "ok":
                self.problems.append("a copy is not whole")
        path.unlink()

    def part(self, number):
        start, newest = time.monotonic(), self.newest()
        told = [watcher.told for watcher in self.watchers]
        folder = self.folder / f"part{number}"
        folder.mkdir()
        with Crowd(self.service, folder, f"{self.seed}/{number}",
                   self.anchor_ms) as crowd:
            length = self.seconds / self.count
            time.sleep(length / 3)
            if number % 6 == 0:
                self.copy()
            if number == self.count // 2:
                self.con.execute("VACUUM")
            time.sleep(max(0, start + length / 2 - time.monotonic()))
            nemesis.Nemesis(self.service, crowd, self.dice).do(
                KILLS[number % len(KILLS)])
            time.sleep(max(0, start + length - time.monotonic()))
            ops = crowd.end()
        self.look(ops, fire.log_whole(self.con, newest), told)
        shutil.rmtree(folder)

    def look(self, ops, log, told):
        wait_for(lambda: all(w.last >= log[-1]["token"] or w.problems
                             for w in self.watchers), 30,
                 "the streams tell the newest")
        self.problems += [
            *checker.tokens_once(ops), *checker.tokens_in_order(ops),
            *checker.acknowledged_kept(ops, log),
            *checker.one_at_a_time(ops), *checker.log_obeys_the_rules(log)]
        for watcher, before in zip(self.watchers, told):
            self.problems += watcher.problems
            if watcher.told - before != len(log):
                self.problems.append(f"a stream told {watcher.told - before} "
                                     f"events, not {len(log)}")
        took = [(op.end - op.start) / 1e6 for op in ops
                if op.outcome in ("ok", "refused")]
        status = Path(f"/proc/{self.service.pid}/status").read_text()
        self.parts.append(Part(
            len(ops), 1024 * int(status.split("VmRSS:")[1].split()[0]),
            len(os.listdir(f"/proc/{self.service.pid}/fd")),
            os.stat(f"{self.service.db}-wal").st_size,
            os.stat(self.service.db).st_size,
            statistics.median(took), fire.percentile(took, 99)))

    def growth(self):
        """What the second half has that the first had not. The log is begun
        anew at 12 MiB and keeps up to 16: so far it has not grown."""
        half = len(self.parts) // 2
        bounds = {"memory": (1.25, 4 * MIB, 0), "descriptors": (1, 20, 0),
                  "log": (1.25, 4 * MIB, 18 * MIB), "file": (1.25, MIB, 0)}
        for name, (times, more, least) in bounds.items():
            first, second = (max(getattr(p, name) for p in parts) for parts in
                             (self.parts[:half], self.parts[half:]))
            if second > max(times * first + more, least):
                yield f"{name} grew from {first} to {second}"
        first, second = (statistics.median(p.p50 for p in parts) for parts in
                         (self.parts[:half], self.parts[half:]))
        if second > 2 * first + 5:
            yield f"an answer took {first:.2f} ms, then {second:.2f} ms"

    def run(self):
        for number in range(self.count):
            self.part(number)
            print(f"uptime: part {number + 1} of {self.count}: "
                  f"{self.parts[-1]}", flush=True)
            if self.problems:
                return
        self.problems += self.growth()


def main(seconds, parts=None):
    parts = int(parts or max(4, min(PARTS, seconds // 5)))
    seed = random.randrange(10**9)
    with tempfile.TemporaryDirectory(prefix="leasehold.uptime.") as folder:
        with Uptime(folder, seconds, parts, seed) as uptime:
            uptime.run()
    print(f"uptime: seed {seed}, {sum(p.calls for p in uptime.parts)} calls, "
          f"{len(uptime.problems)} problems")
    print(*uptime.problems[:10], sep="\n")
    return 1 if uptime.problems else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(float(sys.argv[1]), *sys.argv[2:3]))
