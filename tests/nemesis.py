"""nemesis.py: what happens to programs in the night: kill -9, SIGSTOP, a held
lock, a stepped wall clock.

    bane = nemesis.Nemesis(service, crowd, dice, clock)
    bane.do("kill service")         # and waits until the service answers again
    bane.count["kill service"], bane.quiet(begin_ns, end_ns)

crowd has the clients: crowd.pids, and crowd.replace(pid) puts a new one in the
place of one that died. clock is a WallClock or None.
"""

import contextlib
import os
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import checker

FAKETIME = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "faketime" \
    / "libfaketimeMT.so.1"

# Seconds: a service that starts takes no signal before it has the file, which
# may be locked.
PATIENCE = 60


class WallClock:
    """The wall clock of the service and of its lighttpd, by libfaketime. The
    clocks since boot are left alone."""

    def __init__(self, path):
        assert FAKETIME.exists(), f"{FAKETIME}: install libfaketime"
        self.path = Path(path)
        self.step(0)
        self.environment = {
            "LD_PRELOAD": str(FAKETIME), "NO_FAKE_STAT": "1",
            "FAKETIME_TIMESTAMP_FILE": str(path),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_CACHE_DURATION": "1"}

    def step(self, seconds):
        new = self.path.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self.path)

    @staticmethod
    def tidy(pid):
        """It leaves shared memory behind where it is killed."""
        for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
            with contextlib.suppress(OSError):
                (Path("/dev/shm") / name).unlink()


@contextlib.contextmanager
def stopped(pid):
    """Stopped, and at the end going on, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


class Nemesis:
    KINDS = ("kill service", "kill lighttpd", "restart", "stop service",
             "stop lighttpd", "stall", "kill client", "kill client",
             "stop client", "step clock")
    KILLS = ("kill service", "kill lighttpd", "kill client")
    STOPS = ("stop service", "stop lighttpd", "stop client")
    HARMLESS = ("kill client", "stop client", "step clock")

    def __init__(self, service, crowd, dice, clock=None):
        self.service, self.crowd, self.dice = service, crowd, dice
        self.clock = clock
        self.count = Counter()
        self.disturbed = []             # from, to

    def do(self, kind):
        begin = checker.now_ns()
        getattr(self, kind.replace(" ", "_"))()
        if kind not in self.HARMLESS:
            self.service.wait_ready(PATIENCE)
            self.disturbed.append((begin, checker.now_ns()))
        self.count[kind] += 1

    def quiet(self, begin, end):
        return not any(begin <= to and at <= end for at, to in self.disturbed)

    def pause(self):
        """Longer than most leases here last."""
        time.sleep(self.dice.uniform(0.2, 0.8))

    def kill_service(self):
        pid = self.service.pid
        if pid:
            os.kill(pid, signal.SIGKILL)

    def kill_lighttpd(self):
        pid = self.service.lighttpd
        self.service.end(signal.SIGKILL, PATIENCE)
        WallClock.tidy(pid)
        self.service.start()

    def restart(self):
        pid = self.service.lighttpd
        self.service.end(signal.SIGTERM, PATIENCE)
        WallClock.tidy(pid)
        self.service.start()

    def stop_service(self):
        with stopped(self.service.pid or self.service.lighttpd):
            self.pause()

    def stop_lighttpd(self):
        with stopped(self.service.lighttpd):
            self.pause()

    def stall(self):
        """Somebody holds the lock of the file, as a long transaction does."""
        con = sqlite3.connect(self.service.db, timeout=10,
                              isolation_level=None)
        con.execute("BEGIN IMMEDIATE")
        self.pause()
        con.execute("ROLLBACK")
        con.close()

    def kill_client(self):
        pid = self.dice.choice(self.crowd.pids)
        os.kill(pid, signal.SIGKILL)
        self.crowd.replace(pid)

    def stop_client(self):
        with stopped(self.dice.choice(self.crowd.pids)):
            self.pause()

    def step_clock(self):
        if self.clock:
            self.clock.step(self.dice.choice(
                [-86_400 * 365, -3600, -60, -1, 1, 60, 3600, 86_400 * 3650]))
