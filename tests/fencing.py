#!/usr/bin/python3
"""fencing.py: what a lease alone cannot do, counted. Several processes take
turns at a record, each under a lease: read the number, work, write the number
plus one. Some work for longer than their lease lasts, some are stopped.

    LEASE_BUILD=build tests/fencing.py SECONDS [TTL]

A lost update is a write that was acknowledged and is not in the number. The
kinds of record, with what guards the write:

leases      nothing
check       lease_check in the write, in the file that has the leases
attached    the same with the record in another file, both locked
late_fence  lease_fence with the write, in a file without leases
fence       lease_fence with the read and with the write
guard       lease_guard's triggers, plain SQL without the extension; the read
            leaves its token in the row

late_fence is not enough for a number that is read before it is written: a
successor may read it, then the sleeper wakes and writes with its old token,
which is still the highest seen, and the successor writes over it.

Exit 0: leases and late_fence lost updates, the others none.
"""

import contextlib
import mmap
import random
import signal
import sqlite3
import struct
import sys
import tempfile
import time
from dataclasses import dataclass, fields

import clients
import nemesis
import support
from service import Service

TABLE = ("CREATE TABLE IF NOT EXISTS record(resource TEXT PRIMARY KEY,"
         " n INTEGER, token INTEGER)")


# --- kinds of record -----------------------------------------------------------

class Leases:
    loses = True
    extension = False

    def __init__(self, folder, name):
        self.name = name
        path = self.path(folder)
        self.con = support.connect(path, timeout=30) if self.extension else \
            sqlite3.connect(path, timeout=30, isolation_level=None)

    def path(self, folder):
        return str(folder / f"{self.name}.db")

    def make(self):
        self.con.execute("PRAGMA journal_mode=WAL").fetchall()
        self.con.execute("PRAGMA synchronous=NORMAL")
        self.con.execute(TABLE)
        self.con.execute("INSERT INTO record VALUES (?, 0, 0)", (self.name,))

    @contextlib.contextmanager
    def transaction(self):
        self.con.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.con.execute("ROLLBACK")
            raise
        self.con.execute("COMMIT")

    def number(self):
        return support.one(self.con, "SELECT n FROM record WHERE resource = ?",
                           self.name)

    def read(self, _token):
        return self.number()

    def write(self, _token, n):
        """False or an IntegrityError: refused."""
        self.con.execute("UPDATE record SET n = ? WHERE resource = ?",
                         (n, self.name))
        return True


class Check(Leases):
    loses = False
    extension = True

    def path(self, folder):
        return str(folder / "lease.db")

    def write(self, token, n):
        return self.con.execute(
            "UPDATE record SET n = ?1 WHERE resource = ?2"
            " AND lease_check(?2, ?3)", (n, self.name, token)).rowcount == 1


class Attached(Leases):
    loses = False
    extension = True

    def __init__(self, folder, name):
        super().__init__(folder, name)
        path = self.path(folder)
        self.con.close()
        self.con = support.connect(str(folder / "lease.db"), timeout=30)
        self.con.execute("ATTACH ? AS other", (path,))

    def make(self):
        self.con.execute("PRAGMA other.journal_mode=WAL").fetchall()
        self.con.execute(TABLE.replace("record", "other.record"))
        self.con.execute("INSERT INTO other.record VALUES (?, 0, 0)",
                         (self.name,))

    def number(self):
        return support.one(
            self.con, "SELECT n FROM other.record WHERE resource = ?",
            self.name)

    def write(self, token, n):
        with self.transaction():
            return self.con.execute(
                "UPDATE other.record SET n = ?1 WHERE resource = ?2"
                " AND lease_check(?2, ?3)",
                (n, self.name, token)).rowcount == 1


class LateFence(Leases):
    extension = True

    def fence(self, token):
        support.one(self.con, "SELECT lease_fence(?, ?)", self.name, token)

    def write(self, token, n):
        with self.transaction():
            self.fence(token)
            return super().write(token, n)


class Fence(LateFence):
    loses = False

    def read(self, token):
        with self.transaction():
            self.fence(token)
            return self.number()


class Guard(Leases):
    loses = False

    def make(self):
        super().make()
        support.load(self.con)
        support.one(self.con,
                    "SELECT lease_guard('record', 'resource', 'token')")

    def read(self, token):
        with self.transaction():
            self.con.execute("UPDATE record SET token = ? WHERE resource = ?",
                             (token, self.name))
            return self.number()

    def write(self, token, n):
        self.con.execute("UPDATE record SET n = ?, token = ?"
                         " WHERE resource = ?", (n, token, self.name))
        return True


KINDS = {"leases": Leases, "check": Check, "attached": Attached,
         "late_fence": LateFence, "fence": Fence, "guard": Guard}


# --- workers ---------------------------------------------------------------------

@dataclass
class Tally:
    """What a worker counts, in memory that all share."""
    writes: int = 0         # acknowledged
    refused: int = 0
    slept: int = 0          # worked for longer than the lease lasted

    FORM = struct.Struct("qqq")

    def values(self):
        return [getattr(self, f.name) for f in fields(self)]

    def store(self, memory, place):
        self.FORM.pack_into(memory, place * self.FORM.size, *self.values())

    @classmethod
    def total(cls, memory, places):
        rows = [cls.FORM.unpack_from(memory, p * cls.FORM.size)
                for p in range(places)]
        return cls(*map(sum, zip(*rows)))


def turn(http, record, tally, holder, ttl, dice):
    """One lease: read, work, write."""
    status, lease = http.post("grant", resource=record.name, holder=holder,
                              ttl=ttl, wait=5)
    if status != 200:
        return
    until = time.monotonic() + ttl
    try:
        n = record.read(lease["token"])
        time.sleep(ttl * (dice.uniform(0, 0.5) if dice.random() < 0.6
                          else dice.uniform(1.2, 3)))
        tally.slept += time.monotonic() > until
        written = record.write(lease["token"], n + 1)
    except sqlite3.IntegrityError:
        written = False
    tally.writes += written
    tally.refused += not written
    if time.monotonic() < until:
        http.post("release", resource=record.name, token=lease["token"])


class Run:
    """Workers on one kind of record. They end when stop[0] is set."""

    def __init__(self, kind, service, ttl, workers, stop):
        self.kind, self.service, self.ttl, self.stop = kind, service, ttl, stop
        self.workers = workers
        self.memory = mmap.mmap(-1, workers * Tally.FORM.size)
        self.record = KINDS[kind](service.folder, kind)
        self.record.make()
        self.processes = [
            clients.FORK.Process(target=self.work, args=(n,), daemon=True)
            for n in range(workers)]

    def work(self, number):
        dice = random.Random(f"{self.kind}/{number}")
        http = clients.Http(self.service.port, timeout=60)
        record = KINDS[self.kind](self.service.folder, self.kind)
        tally = Tally()
        while not self.stop[0]:
            turn(http, record, tally, f"w{number}", self.ttl, dice)
            tally.store(self.memory, number)

    @property
    def tally(self):
        return Tally.total(self.memory, self.workers)

    @property
    def lost(self):
        """At least; exactly, when all have ended."""
        return self.tally.writes - self.record.number()

    def enough(self):
        """Has it shown what it can?"""
        tally = self.tally
        return tally.slept >= 5 and (
            self.lost > 0 if self.record.loses else tally.refused >= 3)


def race(service, ttl, workers, done, kinds=KINDS):
    """Let workers run on each kind of record, side by side, and stop one now
    and then for longer than its lease, until done(runs)."""
    dice, stop = random.Random(7), mmap.mmap(-1, 1)
    runs = [Run(kind, service, ttl, workers, stop) for kind in kinds]
    processes = [p for run in runs for p in run.processes]
    for process in processes:
        process.start()
    try:
        while not done(runs):
            time.sleep(dice.uniform(0, ttl / 2))
            with nemesis.stopped(dice.choice(processes).pid):
                time.sleep(ttl * dice.uniform(1, 2))
        stop[0] = 1
        for process in processes:
            process.join(support.patience(60))
            assert process.exitcode == 0, process.exitcode
    finally:
        for process in processes:
            process.kill()
            process.join()
    return runs


def table(runs):
    yield (f"{'kind':12}{'writes':>8}{'slept':>8}{'refused':>9}"
           f"{'lost updates':>14}")
    for run in runs:
        tally = run.tally
        yield (f"{run.kind:12}{tally.writes:8}{tally.slept:8}"
               f"{tally.refused:9}{run.lost:14}")


def main(seconds, ttl):
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="leasehold.") as folder, \
            Service(folder) as service:
        runs = race(service, ttl, 4, lambda runs: time.monotonic() > until)
        print(f"fencing: leases of {ttl:g} s, 4 workers each, {seconds:g} s")
        for line in table(runs):
            print(f"fencing: {line}")
    wrong = [run.kind for run in runs
             if (run.lost > 0) != run.record.loses or run.lost < 0]
    if wrong:
        print(f"fencing: FAILED: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(float(sys.argv[1]),
                  float(sys.argv[2]) if len(sys.argv) > 2 else 2))
