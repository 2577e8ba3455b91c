"""cli.py: the program `lease` in tests: run to its end or left running, and
a command for it that leaves its marks in a file.

    place = cli.Place("--db", tmp_path / "lease.db")
    assert place.lease("grant", "-r", "r").returncode == 0
    with place.run("-r", "r", "-t", "1", command=cli.marks(log, "a")) as job:
        wait_for(lambda: cli.read_marks(log))
        os.kill(job.pid, signal.SIGKILL)

A mark is "NAME MILLISECONDS" of the boot clock, every 5 ms, in one write.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import support
from service import alive, wait_for

LEASE = str(support.BUILD / "lease")

MARKER = """
import os, signal, sys, time
name, path, deaf, seconds = sys.argv[1:]
if deaf == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000
    os.write(fd, f"{name} {now} {os.getpid()}\\n".encode())
    time.sleep(0.005)
"""


def boot_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def marks(path, name, deaf=True, seconds=60):
    """A command that marks the file until it is killed, or so long."""
    return [sys.executable, "-S", "-c", MARKER, name, str(path),
            "deaf" if deaf else "hears", str(seconds)]


def read_marks(path, name=None):
    """(name, milliseconds, pid) each, in the order of the file."""
    with contextlib.suppress(FileNotFoundError):
        rows = [line.split() for line in
                Path(path).read_text().splitlines()]
        return [(n, int(ms), int(pid)) for n, ms, pid in rows
                if name in (None, n)]
    return []


def span(path, name):
    """First and last mark of a name."""
    times = [ms for _, ms, _ in read_marks(path, name)]
    return min(times), max(times)


def environ(**more):
    """A plain environment, with nothing of a lease in it."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("LEASE_") or k == "LEASE_TEST_CLOCK"}
    return env | more


class Job:
    """A running `lease run`. Leaving the block kills what is left of it."""

    def __init__(self, process):
        self.process = process
        self.pid = process.pid

    def family(self):
        """Process numbers of the guard and the command."""
        found, new = [], [self.pid]
        while new:
            pid = new.pop()
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
                new += map(int, text.split())
                found += map(int, text.split())
        return found

    def wait(self, seconds=20):
        return self.process.wait(support.patience(seconds))

    def out(self):
        """What it printed, at its end: stdout and stderr."""
        return self.process.communicate(timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in [self.pid, *self.family()]:
            with contextlib.suppress(OSError):
                if pid != self.pid or self.process.poll() is None:
                    os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ValueError):
            self.process.communicate(timeout=30)


class Place:
    """Where to ask: --url or --db and its value."""

    def __init__(self, option, value, prefix=()):
        self.where = [option, str(value)]
        self.prefix = list(prefix)

    def lease(self, verb, *words, env=None, **options):
        """Run a verb to its end."""
        return subprocess.run(
            [*self.prefix, LEASE, verb, *self.where, *map(str, words)],
            capture_output=True, text=True, timeout=60,
            env=env or environ(), **options)

    def run(self, *words, command, env=None, **options):
        """Start `lease run`."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "stdin": subprocess.DEVNULL, "text": True} | options
        return Job(subprocess.Popen(
            [*self.prefix, LEASE, "run", *self.where, *map(str, words), "--",
             *map(str, command)], env=env or environ(), **options))


def gone(pids, seconds=10):
    """Wait until none of the processes runs."""
    wait_for(lambda: not any(alive(pid) for pid in pids), seconds,
             "the processes end")
