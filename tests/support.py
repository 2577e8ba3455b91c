"""support.py: what the tests share: where the build is, how a host loads it,
and the test clock.

    con = support.connect("lease.db")
    con.execute("SELECT lease_grant('shard/0', 'w1', 30)").fetchone()

The build under test is the folder named by LEASE_BUILD (default build/), its
variant with a test clock is in test/ below it. Under a sanitizer tests/run
preloads its runtime into this process; children start without it, for most
of them (lighttpd, curl, a browser) do not want it. A child that loads lease.so
takes env=host_env().
"""

import os
import sqlite3
import subprocess
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = (ROOT / os.environ.get("LEASE_BUILD", "build")).resolve()
SAN = os.environ.get("LEASE_SAN", "")
PRELOAD = os.environ.pop("LD_PRELOAD", "")

if SAN:
    # This process has read its own options already: leaks are looked for in
    # programs of ours, not in hosts, which free little before they exit.
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "").replace(
        "detect_leaks=0", "detect_leaks=1")


def patience(seconds):
    """A bound on time, wider where a sanitizer slows all down."""
    return seconds * 5 if SAN else seconds


def scaled(rounds, least=1):
    """A number of rounds, cut to a tenth where a sanitizer slows all down."""
    return max(least, rounds // 10) if SAN else rounds


def host_env(**more):
    """The environment of a child that loads the extension."""
    env = dict(os.environ, **more)
    if PRELOAD:
        env["LD_PRELOAD"] = PRELOAD
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "").replace(
            "detect_leaks=1", "detect_leaks=0")
    return env


def extension(clocked=False):
    """What .load takes: the path of the extension without its suffix."""
    return str(BUILD / "test" / "lease" if clocked else BUILD / "lease")


def load(con, clocked=False):
    """Load the extension into a connection."""
    con.enable_load_extension(True)
    con.load_extension(extension(clocked))
    con.enable_load_extension(False)
    return con


def connect(path=":memory:", *, clocked=False, timeout=5.0, **options):
    """A connection with the extension, in SQLite's own autocommit."""
    con = sqlite3.connect(path, timeout=timeout, isolation_level=None,
                          **options)
    return load(con, clocked)


def one(con, sql, *args):
    """The first value of the first row of a statement that is run to its
    end, or None when there is no row."""
    rows = con.execute(sql, args).fetchall()
    return rows[0][0] if rows else None


def shell(script, path=":memory:", *, clocked=False, loaded=True, cwd=None,
          env=None, timeout=60):
    """Run a script in the sqlite3 shell. Answers what it printed, errors
    among the results in the order they came."""
    head = f".load {extension(clocked)}\n" if loaded else ""
    done = subprocess.run(
        ["stdbuf", "-oL", "sqlite3", "-batch", "-init", "/dev/null",
         str(path)], input=head + script, text=True, cwd=cwd,
        env=env or host_env(), timeout=timeout, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    return done.stdout


class Clock:
    """The file that the test build takes its time from: milliseconds since
    boot, milliseconds of the wall clock, boot id. Seconds outside."""

    def __init__(self, path, boot=1_000.0, wall=1_700_000_000.0):
        self.path = Path(path)
        self.boot_ms = round(boot * 1000)
        self.wall_ms = round(wall * 1000)
        self.boot_id = str(uuid.uuid4())
        self.write()

    def write(self):
        new = self.path.with_name(self.path.name + ".new")
        new.write_text(f"{self.boot_ms} {self.wall_ms} {self.boot_id}\n")
        new.replace(self.path)

    @property
    def boot(self):
        return self.boot_ms / 1000

    @property
    def wall(self):
        return self.wall_ms / 1000

    def advance(self, seconds):
        """Time passes, for both clocks alike."""
        self.boot_ms += round(seconds * 1000)
        self.wall_ms += round(seconds * 1000)
        self.write()

    def step_wall(self, seconds):
        """Somebody sets the wall clock forward or back by so much."""
        self.set_wall(self.wall + seconds)

    def set_wall(self, unix_seconds):
        """Somebody sets the wall clock."""
        self.wall_ms = round(unix_seconds * 1000)
        self.write()

    def reboot(self, down=60.0, boot=10.0):
        """The machine was off for so long and runs anew: boot time begins
        again, the boot id is another."""
        self.boot_ms = round(boot * 1000)
        self.wall_ms += round((down + boot) * 1000)
        self.boot_id = str(uuid.uuid4())
        self.write()
