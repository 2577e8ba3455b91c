"""`lease run`: what the command gets, how it ends, and that it never runs on
when the lease is over, whoever is killed or stopped.
"""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

import cli
import support
from service import alive, wait_for

TTL = 1.0


@pytest.fixture
def place(tmp_path, build):
    return cli.Place("--db", tmp_path / "lease.db")


@pytest.fixture
def log(tmp_path):
    return tmp_path / "marks"


def events(place, resource="r"):
    """What happened to the resource, and to which tenure."""
    lines = place.lease("events", "-r", resource).stdout.splitlines()
    return [line.split("\t")[2] for line in lines]


def expiry(place, resource="r"):
    """When the lease in force ends: milliseconds of the boot clock."""
    con = sqlite3.connect(place.where[1])
    try:
        return con.execute(
            "SELECT expires_at - anchor FROM lease, lease_clock "
            "WHERE resource = ?", [resource]).fetchone()[0]
    finally:
        con.close()


def test_the_command_runs_with_its_lease_in_the_environment(place, tmp_path):
    script = ("echo $LEASE_RESOURCE $LEASE_HOLDER $LEASE_TOKEN $LEASE_EPOCH "
              "$LEASE_EXPIRES_AT $(cat $LEASE_FILE) $LEASE_DB; "
              f"{cli.LEASE} check; echo $LEASE_FILE")
    with place.run("-r", "r", "-o", "me", command=["sh", "-c", script],
                   env=cli.environ(TMPDIR=str(tmp_path))) as job:
        out, err = job.out()
    first, left, file = out.splitlines()
    assert re.fullmatch(r"r me 1 1 20\d\d-\S+Z 1 /.*lease\.db", first), err
    assert 29 < float(left) <= 30
    assert file.startswith(str(tmp_path)) and not Path(file).exists()
    assert events(place) == ["granted", "released"]


@pytest.mark.parametrize("script, status", [
    ("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143),
    ("exit 75", 75)])
def test_it_exits_as_its_command_did(place, script, status):
    with place.run("-r", "r", command=["sh", "-c", script]) as job:
        assert job.wait() == status
    assert events(place) == ["granted", "released"]


def test_a_command_that_cannot_be_run(place, tmp_path):
    with place.run("-r", "r", command=["/nonexistent"]) as job:
        assert job.wait() == 127
    (tmp_path / "plain").write_text("x")
    with place.run("-r", "r", command=[tmp_path / "plain"]) as job:
        out, err = job.out()
        assert job.wait() == 126 and "plain" in err


def test_stdin_and_stdout_are_the_commands(place):
    with place.run("-r", "r", command=["tr", "a-z", "A-Z"],
                   stdin=subprocess.PIPE) as job:
        out, _ = job.process.communicate("through\n", timeout=20)
    assert out == "THROUGH\n"


def test_it_is_renewed_at_a_third_and_the_file_has_the_newest_token(place,
                                                                    log):
    # Any moment: one whole number, growing.
    script = ("import os,sys,time\n"
              "end, seen = time.monotonic() + 2, []\n"
              "while time.monotonic() < end:\n"
              "    text = open(os.environ['LEASE_FILE']).read()\n"
              "    assert text.endswith('\\n'), text\n"
              "    seen.append(int(text))\n"
              "    time.sleep(0.001)\n"
              "assert seen == sorted(seen)\n"
              "print(len(set(seen)))\n")
    with place.run("-r", "r", "-t", 1.5,
                   command=["/usr/bin/python3", "-S", "-c", script]) as job:
        out, err = job.out()
    happened = events(place)
    assert happened[0] == "granted" and happened[-1] == "released", err
    assert 3 <= happened.count("renewed") <= 6
    assert int(out) >= happened.count("renewed")


def test_held_is_75_at_once_or_after_the_wait(place, log):
    with place.run("-r", "r", command=cli.marks(log, "a")):
        wait_for(lambda: cli.read_marks(log))
        for words in (["-n"], []):
            with place.run("-r", "r", *words, command=["touch", "no"]) as job:
                out, err = job.out()
                assert job.wait() == 75 and "held by" in err
        begun = cli.boot_ms()
        with place.run("-r", "r", "-w", 0.5, command=["touch", "no"]) as job:
            assert job.wait() == 75
        assert cli.boot_ms() - begun >= 490
    assert not Path("no").exists()


def test_the_next_one_begins_when_the_one_before_has_ended(place, log):
    with place.run("-r", "r", "-t", 30,
                   command=cli.marks(log, "a", seconds=0.6)) as first:
        wait_for(lambda: cli.read_marks(log, "a"))
        with place.run("-r", "r", "-w", 20,
                       command=cli.marks(log, "b", seconds=0.1)) as second:
            assert second.wait() == 0
        assert first.wait() == 0
    assert cli.span(log, "a")[1] < cli.span(log, "b")[0]
    assert events(place) == ["granted", "released"] * 2


def test_capacity_lets_so_many_run_at_once(place, log):
    words = ["-r", "r", "-t", 30, "-c", 2]
    with place.run(*words, command=cli.marks(log, "a")), \
            place.run(*words, command=cli.marks(log, "b")):
        wait_for(lambda: cli.read_marks(log, "a") and
                 cli.read_marks(log, "b"))
        with place.run(*words, command=["true"]) as third:
            assert third.wait() == 75


def test_the_lease_is_kept_while_anything_of_the_group_runs(place, log):
    with place.run("-r", "r", "-t", TTL, command=[
            "sh", "-c", '"$@" & exit 3', "sh",
            *cli.marks(log, "x", seconds=0.5)]) as job:
        wait_for(lambda: cli.read_marks(log))
        assert place.lease("grant", "-r", "r").returncode == 75
        assert job.wait() == 3
    assert cli.read_marks(log)[-1][1] - cli.read_marks(log)[0][1] > 400
    assert events(place)[-1] == "released"


# --- killed, stopped, gone -----------------------------------------------------


@pytest.mark.parametrize("deaf", [False, True])
def test_kill_9_of_lease_run_ends_its_command(place, log, deaf, tmp_path):
    """C185, C187"""
    with place.run("-r", "r", "-t", TTL, "-g", 0.3,
                   command=cli.marks(log, "a", deaf),
                   env=cli.environ(TMPDIR=str(tmp_path / "t"))) as job:
        wait_for(lambda: cli.read_marks(log))
        family = job.family()
        assert len(family) == 2
        killed, end = cli.boot_ms(), expiry(place)
        os.kill(job.pid, signal.SIGKILL)
        cli.gone(family)
        # SIGTERM comes at once, SIGKILL the grace later.
        assert cli.span(log, "a")[1] <= min(
            end, killed + 300 * deaf + support.patience(1000))
    # Nobody renews; the lease runs out, not earlier and not later, whether
    # its file was closed with the process or others have it open.
    other = sqlite3.connect(place.where[1]) if deaf else None
    done = place.lease("grant", "-r", "r", "-w", 5)
    assert done.returncode == 0
    assert end <= cli.boot_ms() <= end + support.patience(3000)
    if other:
        other.close()
    assert "released" not in events(place)


def test_kill_9_leaves_no_file_behind(place, log, tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    with place.run("-r", "r", command=cli.marks(log, "a", deaf=False),
                   env=cli.environ(TMPDIR=str(folder))) as job:
        wait_for(lambda: cli.read_marks(log))
        assert len(list(folder.iterdir())) == 1
        family = job.family()
        os.kill(job.pid, signal.SIGKILL)
        cli.gone(family)
        assert not list(folder.iterdir())


def test_kill_9_of_the_guard_ends_the_command_too(place, log):
    with place.run("-r", "r", "-t", 30,
                   command=cli.marks(log, "a")) as job:
        wait_for(lambda: cli.read_marks(log))
        guard, command = job.family()
        os.kill(guard, signal.SIGKILL)
        cli.gone([command])
        assert job.wait() == 69
    assert events(place) == ["granted", "released"]


def test_what_left_the_group_is_not_waited_for_when_the_guard_dies(
        place, tmp_path):
    away = tmp_path / "away"
    script = f"setsid sh -c 'echo $$ >{away}; exec sleep 60' & exec sleep 60"
    with place.run("-r", "r", "-t", 30, command=["sh", "-c", script]) as job:
        wait_for(lambda: away.exists() and away.read_text())
        try:
            os.kill(job.family()[0], signal.SIGKILL)
            assert job.wait(20) == 69
            assert alive(int(away.read_text()))
        finally:
            os.kill(int(away.read_text()), signal.SIGKILL)
    assert events(place) == ["granted", "released"]


def test_all_of_the_group_is_gone_when_the_guard_died(place, log):
    """Also what is deaf and no child of the command any more."""
    with place.run("-r", "r", "-t", 30, command=[
            "sh", "-c", '("$@" &); exec "$@"', "sh",
            *cli.marks(log, "a")]) as job:
        wait_for(lambda: len({pid for _, _, pid in cli.read_marks(log)}) == 2)
        os.kill(job.family()[0], signal.SIGKILL)
        assert job.wait() == 69
        assert not any(alive(pid) for _, _, pid in cli.read_marks(log))
    assert events(place) == ["granted", "released"]


def test_a_stopped_guard_does_not_hold_up_who_waited_in_vain(place):
    place.lease("grant", "-r", "r")
    with place.run("-r", "r", "-w", 1, command=["true"]) as job:
        wait_for(lambda: len(job.family()) == 1)
        os.kill(job.family()[0], signal.SIGSTOP)
        assert job.wait() == 75


def test_kill_9_of_the_command_gives_the_lease_back(place, log):
    with place.run("-r", "r", "-t", 30,
                   command=cli.marks(log, "a")) as job:
        wait_for(lambda: cli.read_marks(log))
        os.kill(cli.read_marks(log)[0][2], signal.SIGKILL)
        assert job.wait() == 137
    assert events(place) == ["granted", "released"]


@pytest.mark.parametrize("who", ["lease run", "its group", "all"])
def test_stopped_past_the_ttl_the_command_is_killed(place, log, who):
    """C005: With b waiting, the file shows that a never runs beside it."""
    with place.run("-r", "r", "-t", TTL, command=cli.marks(log, "a"),
                   start_new_session=True) as a:
        wait_for(lambda: cli.read_marks(log, "a"))
        guard, command = a.family()
        stopped = {"lease run": [a.pid], "its group": [-a.pid],
                   "all": [-a.pid, guard, command]}[who]
        with place.run("-r", "r", "-t", TTL, "-w", 20,
                       command=cli.marks(log, "b", seconds=0.5)) as b:
            end = expiry(place) + 200   # a renewal may be under way
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            wait_for(lambda: cli.read_marks(log, "b"))
            # The command last: who is awake before it kills before it runs.
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
                time.sleep(0.02)
            assert a.wait() == 76
            cli.gone([guard, command])
            assert b.wait() == 0
    assert cli.span(log, "a")[1] <= end
    assert cli.span(log, "a")[1] < cli.span(log, "b")[0]


def test_stopped_for_less_than_the_ttl_nothing_is_lost(place, log):
    with place.run("-r", "r", "-t", 2,
                   command=cli.marks(log, "a", seconds=3)) as job:
        wait_for(lambda: cli.read_marks(log))
        os.kill(job.pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(job.pid, signal.SIGCONT)
        assert job.wait() == 0
    assert events(place)[-1] == "released"


def test_a_stopped_guard_is_covered_by_lease_run(place, log):
    with place.run("-r", "r", "-t", TTL, command=cli.marks(log, "a")) as job:
        wait_for(lambda: cli.read_marks(log))
        guard, command = job.family()
        os.kill(guard, signal.SIGSTOP)
        end = expiry(place)
        place.lease("revoke", "-r", "r")
        wait_for(lambda: not alive(command), 10, "the command ends")
        assert cli.span(log, "a")[1] <= end + 350
        os.kill(guard, signal.SIGCONT)
        assert job.wait() == 76


def test_a_guard_that_takes_no_more_orders_holds_up_nothing(place, log):
    """Stopped, and flooded with signals for the command: the renewals go on,
    and a lease that is over ends the command before its deadline."""
    with place.run("-r", "r", "-t", 4, "-g", 0.2,
                   command=cli.marks(log, "a")) as job:
        wait_for(lambda: cli.read_marks(log))
        guard, command = job.family()
        os.kill(guard, signal.SIGSTOP)
        for _ in range(400):
            os.kill(job.pid, signal.SIGWINCH)
            time.sleep(0.001)
        n = events(place).count("renewed")
        wait_for(lambda: events(place).count("renewed") >= n + 2, 20)
        end = expiry(place)
        place.lease("revoke", "-r", "r")
        wait_for(lambda: not alive(command), 20, "the command ends")
        assert cli.span(log, "a")[1] < end - 500
        os.kill(guard, signal.SIGCONT)
        assert job.wait() == 76


def test_a_guard_that_dies_while_we_wait_leaves_nothing(place, tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    place.lease("grant", "-r", "r")
    with place.run("-r", "r", "-w", 60, command=["touch", folder / "no"],
                   env=cli.environ(TMPDIR=str(folder))) as job:
        wait_for(lambda: len(job.family()) == 1)
        os.kill(job.family()[0], signal.SIGKILL)
        place.lease("revoke", "-r", "r")
        assert job.wait() == 69
        assert "died" in job.out()[1] and not list(folder.iterdir())
    assert events(place)[-1] == "released"


def blocks(pid, number):
    """Does the process hold the signal back?"""
    mask = re.search(r"^SigBlk:\s*(\w+)",
                     Path(f"/proc/{pid}/status").read_text(), re.M)[1]
    return bool(int(mask, 16) >> (number - 1) & 1)


def run_with_a_stopped_guard(place, ttl, command):
    """It gets the lease after a wait, in which its guard was stopped."""
    place.lease("grant", "-r", "r")
    job = place.run("-r", "r", "-w", 60, "-t", ttl, command=command)
    wait_for(lambda: len(job.family()) == 1)
    os.kill(job.family()[0], signal.SIGSTOP)
    place.lease("revoke", "-r", "r")
    wait_for(lambda: events(place).count("granted") == 2)
    wait_for(lambda: not blocks(job.pid, signal.SIGTERM))
    return job      # the guard has the order to start


@pytest.mark.parametrize("over", ["expired", "revoked"])
def test_a_guard_stopped_before_the_start_starts_nothing(place, tmp_path, db,
                                                         over):
    """Neither at the deadline nor, where it is over sooner, then."""
    ttl = {"expired": 2, "revoked": 9}[over]
    with run_with_a_stopped_guard(place, ttl,
                                  ["touch", tmp_path / "no"]) as job:
        con = db()
        if over == "expired":
            con.execute("BEGIN IMMEDIATE")
        else:
            place.lease("revoke", "-r", "r")
        wait_for(lambda: not job.family(), 40, "the guard ends")
        if over == "expired":
            con.execute("ROLLBACK")
        assert job.wait() == 76
        assert "lost 'r'" in job.out()[1]
    assert not (tmp_path / "no").exists()


def test_a_guard_that_reads_the_start_too_late_starts_nothing(place):
    """When that was seen there was a process, if only for a moment: its page
    faults are counted with its parent, here until `lease run` goes on."""
    with run_with_a_stopped_guard(place, 3, ["true"]) as job:
        guard = job.family()[0]
        os.kill(job.pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(guard, signal.SIGCONT)
        wait_for(lambda: not alive(guard))
        told = Path(f"/proc/{guard}/stat").read_text().rpartition(")")[2]
        assert told.split()[0] == "Z" and told.split()[8] == "0"
        os.kill(job.pid, signal.SIGCONT)
        assert job.wait() == 76


@pytest.mark.parametrize("deaf", [False, True])
def test_a_revoked_lease_stops_the_command(place, log, deaf):
    with place.run("-r", "r", "-t", 3, "-g", 0.2,
                   command=cli.marks(log, "a", deaf)) as job:
        wait_for(lambda: cli.read_marks(log))
        begun = cli.boot_ms()
        place.lease("revoke", "-r", "r", "--reason", "maintenance")
        assert job.wait() == 76
        # Heard of at the next renewal, then SIGTERM, then SIGKILL.
        assert cli.span(log, "a")[1] <= \
            begun + 1000 + 200 + support.patience(1000)
        _, err = job.out()
    assert "revoked" in err


def test_a_locked_file_is_not_waited_for_longer_than_the_lease(place, log,
                                                               db):
    con = db()
    with place.run("-r", "r", "-t", TTL, command=cli.marks(log, "a")) as job:
        wait_for(lambda: cli.read_marks(log))
        con.execute("BEGIN IMMEDIATE")
        end = expiry(place)
        wait_for(lambda: not alive(cli.read_marks(log)[0][2]), 10)
        assert cli.span(log, "a")[1] <= end
        con.execute("ROLLBACK")
        assert job.wait() == 76


def test_sigterm_comes_the_grace_before_the_deadline(place, log, db):
    """A command that hears it has the time to end well, and still the lease
    counts as lost."""
    con = db()
    script = ("trap 'date +%s%N > $0.term; sleep 0.2; exit 0' TERM; "
              "touch $0; while :; do sleep 0.02; done")
    with place.run("-r", "r", "-t", 2, "-g", 0.8,
                   command=["sh", "-c", script, log]) as job:
        wait_for(log.exists)
        con.execute("BEGIN IMMEDIATE")
        ahead = time.time() * 1000 - cli.boot_ms()
        end = expiry(place)
        assert job.process.wait(10) is not None
        con.execute("ROLLBACK")
        assert job.wait() == 76
    termed = int(Path(f"{log}.term").read_text()) / 1e6 - ahead
    assert end - 800 - 400 < termed < end - 800 + support.patience(500)


# --- signals and the terminal -----------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT,
                                    signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_to_the_command(place, tmp_path, number):
    ready = tmp_path / "ready"
    name = signal.Signals(number).name[3:]
    script = (f"trap 'exit 42' {name}; touch {ready}; "
              "while :; do sleep 0.02; done")
    with place.run("-r", "r", command=["sh", "-c", script]) as job:
        wait_for(ready.exists)
        os.kill(job.pid, number)
        assert job.wait() == 42
    assert events(place) == ["granted", "released"]


def test_sigterm_ends_a_command_that_is_stopped(place, log):
    with place.run("-r", "r", command=cli.marks(log, "a", deaf=False)) as job:
        wait_for(lambda: cli.read_marks(log))
        os.kill(job.family()[1], signal.SIGSTOP)
        os.kill(job.pid, signal.SIGTERM)
        assert job.wait() == 143


def test_a_signal_while_it_waits_ends_it(place, log):
    place.lease("grant", "-r", "r")
    with place.run("-r", "r", "-w", 60, command=["true"]) as job:
        wait_for(lambda: len(job.family()) == 1)
        family = job.family()
        time.sleep(0.2)
        os.kill(job.pid, signal.SIGTERM)
        assert job.wait() == 143
        cli.gone(family)
    assert events(place) == ["granted"]


def test_kill_9_while_it_waits_leaves_nothing(place):
    place.lease("grant", "-r", "r")
    with place.run("-r", "r", "-w", 60, command=["true"]) as job:
        wait_for(lambda: len(job.family()) == 1)
        family = job.family()
        os.kill(job.pid, signal.SIGKILL)
        cli.gone(family)


def test_ignored_signals_stay_ignored(place, tmp_path):
    ready = tmp_path / "ready"
    script = f"touch {ready}; sleep 0.5; exit 5"
    with place.run("-r", "r", command=["sh", "-c", script],
                   preexec_fn=lambda: signal.signal(signal.SIGHUP,
                                                    signal.SIG_IGN)) as job:
        wait_for(ready.exists)
        os.kill(job.pid, signal.SIGHUP)
        assert job.wait() == 5


def test_it_dies_with_its_parent_where_asked(place, log, tmp_path):
    """C185"""
    for words, dies in ((["--die-with-parent"], True), ([], False)):
        log.unlink(missing_ok=True)
        run = [cli.LEASE, "run", *place.where, "-r", "r", *words, "--",
               *cli.marks(log, "a", deaf=False)]
        parent = subprocess.Popen(
            ["sh", "-c", '"$@" & echo $!; wait', "sh", *map(str, run)],
            stdout=subprocess.PIPE, text=True, env=cli.environ())
        pid = int(parent.stdout.readline())
        try:
            wait_for(lambda: cli.read_marks(log))
            parent.kill()
            parent.wait()
            if dies:
                cli.gone([pid, cli.read_marks(log)[0][2]])
            else:
                n = len(cli.read_marks(log))
                wait_for(lambda: len(cli.read_marks(log)) > n + 20)
                assert alive(pid)
        finally:
            parent.stdout.close()
            if alive(pid):
                os.kill(pid, signal.SIGTERM)
        cli.gone([pid])


def test_a_wait_that_ends_in_a_lease_is_no_lost_one(place, log):
    """The deadline counts from a question asked after the wait."""
    place.lease("grant", "-r", "r", "-t", 1.5)
    with place.run("-r", "r", "-t", 1, "-w", 10,
                   command=["sh", "-c", "sleep 1.2; exit 4"]) as job:
        assert job.wait() == 4


def test_two_contenders_with_one_killed_again_and_again(place, log):
    """Five rounds: whoever holds it is killed with -9, the other goes on."""
    a = place.run("-r", "r", "-t", 0.6, "-w", 30, command=cli.marks(log, "0"))
    jobs = [a]
    try:
        for i in range(1, support.scaled(6, 3)):
            wait_for(lambda: cli.read_marks(log, str(i - 1)))
            jobs.append(place.run("-r", "r", "-t", 0.6, "-w", 30,
                                  command=cli.marks(log, str(i))))
            time.sleep(0.15)
            os.kill(jobs[i - 1].pid, signal.SIGKILL)
        wait_for(lambda: cli.read_marks(log, str(len(jobs) - 1)))
        spans = [cli.span(log, str(i)) for i in range(len(jobs))]
        assert all(one[1] < two[0] for one, two in zip(spans, spans[1:]))
    finally:
        for job in jobs:
            job.__exit__()
