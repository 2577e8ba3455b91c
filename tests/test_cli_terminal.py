"""`lease run` on a terminal, under a shell with job control: keys go to the
command, ^C ends it, ^Z stops it and `fg` brings it back.
"""

import os
import pty
import re
import select
import shlex
import signal
import time

import pytest

import cli
from service import alive, wait_for


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)
        self.seen = ""
        self.type("PS1='rea''dy> '; bind 'set enable-bracketed-paste off'\n")
        self.until("ready> ")

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, pattern, seconds=10):
        """Read on until the pattern appears; the match."""
        def found():
            if select.select([self.fd], [], [], 0.05)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            return re.search(pattern, self.seen)

        try:
            match = wait_for(found, seconds, f"{pattern!r} on the terminal")
        except AssertionError:
            print(self.seen)
            raise
        self.seen = self.seen[match.end():]
        return match

    def close(self):
        os.kill(self.pid, signal.SIGHUP)
        os.close(self.fd)
        time.sleep(0.05)
        if alive(self.pid):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@pytest.fixture
def place(tmp_path, build):
    return cli.Place("--db", tmp_path / "lease.db")


@pytest.fixture
def terminal(place):
    env = cli.environ(LEASE_DB=place.where[1], TERM="dumb", HISTFILE="",
                      LEASE=cli.LEASE)
    terminal = Terminal(env)
    yield terminal
    terminal.close()


def test_the_command_reads_the_terminal_and_control_c_ends_it(terminal,
                                                              place):
    terminal.type("$LEASE run -r r -- sh -c 'read x; echo got-$x; exec cat'\n")
    wait_for(lambda: place.lease("list").stdout)
    terminal.type("word\n")
    terminal.until("got-word")
    terminal.type("\x03")
    terminal.until("ready> ")
    terminal.type("echo status-$?\n")
    terminal.until("status-130")
    assert place.lease("list").stdout == ""


def test_control_z_stops_the_job_and_fg_continues_it(terminal, place):
    terminal.type("$LEASE run -r r -- sh -c 'while read x; do echo got-$x; "
                  "done; exit 5'\n")
    wait_for(lambda: place.lease("list").stdout)
    for word in ("one", "two"):
        terminal.type(word + "\n")
        terminal.until("got-" + word)
        terminal.type("\x1a")
        terminal.until("Stopped")
        terminal.until("ready> ")
        terminal.type("echo shell-$((20+3))\n")    # the shell has it again
        terminal.until("shell-23")
        terminal.type("fg\n")
        terminal.until("lease run|LEASE run")
    terminal.type("three\n\x04")
    terminal.until("got-three")
    terminal.until("ready> ")
    terminal.type("echo status-$?\n")
    terminal.until("status-5")


def test_a_job_stopped_past_the_ttl_is_killed_before_anything_else(
        terminal, place, tmp_path):
    log = tmp_path / "marks"
    script = tmp_path / "script"
    script.write_text("exec " + shlex.join(cli.marks(log, "a", deaf=False)))
    terminal.type(f"$LEASE run -r r -t 1.5 -- sh {script}\n")
    wait_for(lambda: cli.read_marks(log))
    terminal.type("\x1a")
    terminal.until("Stopped")
    done = place.lease("grant", "-r", "r", "-w", 10)
    assert done.returncode == 0
    size = log.stat().st_size
    terminal.type("fg\n")
    terminal.until("lost 'r'")
    terminal.until("ready> ")
    terminal.type("echo status-$?\n")
    terminal.until("status-76")
    assert log.stat().st_size == size


def test_in_the_background_it_stops_for_input_and_fg_gives_it(terminal,
                                                              place):
    terminal.type("$LEASE run -r r -- sh -c 'read x; echo got-$x' &\n")
    terminal.until(r"\[1\]")
    wait_for(lambda: place.lease("list").stdout)

    terminal.type("until jobs | grep Stopped; do sleep 0.05; done\n")
    terminal.until("Stopped")
    terminal.type("fg\n")
    terminal.until("sh -c")
    terminal.type("late\n")
    terminal.until("got-late")


def test_a_closed_terminal_ends_the_command(terminal, place, tmp_path):
    """C185"""
    pidfile = tmp_path / "pid"
    terminal.type(f"$LEASE run -r r -t 30 -- sh -c 'echo $$ > {pidfile}; "
                  "while :; do sleep 0.05; done'\n")
    pid = int(wait_for(lambda: pidfile.exists() and pidfile.read_text()))
    os.kill(terminal.pid, signal.SIGHUP)
    cli.gone([pid])
    wait_for(lambda: place.lease("list").stdout == "")
