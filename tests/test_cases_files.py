"""What went wrong elsewhere, with files and processes: cases of tests/PROOF.md
that no other test covers. The id in a docstring (C025) names the case.

LEASE_KILLS sets how often a process is killed in the middle (default 40).
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

import clients
import service as service_module
import support
from service import Service, wait_for
from support import one
from test_http_life import Load, check, tokens_in
from test_races import nuisances

KILLS = support.scaled(int(os.environ.get("LEASE_KILLS", "40")), 10)


# --- killed in the middle -------------------------------------------------------

def issue(path, out):
    """Grant, renew and release for ever, and tell each token."""
    client = clients.Sql(path)
    dice = random.Random(os.getpid())
    while True:
        name = f"r{dice.randrange(50)}"
        token, _ = client.grant(name, f"w{os.getpid()}", 60) or (None, 0)
        while token and dice.random() < 0.7:
            os.write(out, b"%d\n" % token)
            token, _ = client.renew(name, token, 60) or (None, 0)
        if token:
            os.write(out, b"%d\n" % token)
            client.release(name, token)
        client.value("SELECT lease_revoke(?)", name)


def killed(path, seconds):
    """Let a process issue tokens for so long; those that it told in full."""
    receive, send = os.pipe()
    process = clients.FORK.Process(target=issue, args=(path, send))
    process.start()
    os.close(send)
    first = os.read(receive, 4096)      # it is at work
    time.sleep(seconds)
    process.kill()
    with open(receive, "rb") as rest:
        told = first + rest.read()
    process.join()
    return [int(line) for line in told.splitlines(True)
            if line.endswith(b"\n")]


@pytest.mark.limit(120 + KILLS)
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_number_told_before_a_kill_is_never_issued_again(db, tmp_path, mode):
    """C025"""
    con = db()
    con.execute(f"PRAGMA journal_mode = {mode}").fetchall()
    one(con, "SELECT lease_init()")
    dice, highest = random.Random(25), 0
    for _ in range(KILLS // 2):
        told = killed(tmp_path / "lease.db", dice.uniform(0, 0.02))
        assert told == sorted(set(told))
        assert not told or told[0] > highest
        highest = max([highest, *told])
    assert one(con, "PRAGMA integrity_check") == "ok"
    assert one(con, "SELECT seq FROM sqlite_sequence "
                    "WHERE name = 'lease_event'") >= highest


# --- backups --------------------------------------------------------------------

def test_a_backup_under_load_ends_soon_and_has_all_that_was_acknowledged(
        service):
    """C057, C061: as README.md says, with VACUUM INTO; then the main file
    alone, which is no backup, and what lease_restore makes of both."""
    with contextlib.closing(support.connect(service.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        for i in range(5000):
            con.execute("SELECT lease_grant(?, 'a', 600)", (f"old/{i}",)
                        ).fetchall()
        con.execute("COMMIT")
    backup, bare = service.folder / "backup.db", service.folder / "bare.db"
    with Load(service, 4) as load:
        before = load.granted()
        start = time.monotonic()
        said = support.shell(f"VACUUM INTO '{backup}';\n", service.db,
                             loaded=False)
        took = time.monotonic() - start
        shutil.copy(service.db, bare)
        wait_for(lambda: len(load.granted()) > len(before) + 20)
    assert said == "" and took < support.patience(30)
    # Nobody was refused or held up for long meanwhile.
    assert {a.status for a in load.answers if a} == {200}
    assert set(before) <= tokens_in(backup)
    newest = max(load.granted())
    for copy in (backup, bare):
        with contextlib.closing(support.connect(copy)) as con:
            assert one(con, "PRAGMA integrity_check") == "ok"
            assert one(con, "SELECT lease_restore()") > newest
            assert one(con, "SELECT lease_grant('new', 'b', 60)") > newest


@pytest.mark.parametrize("middle, new", [(500, 60), (20, 5)])
def test_a_backup_beside_the_log_of_another_file_is_refused_and_left_alone(
        build, tmp_path, middle, new):
    """C059: pages do not fit together, or an index not to its table."""
    path = tmp_path / "lease.db"
    con = support.connect(path)
    con.execute("PRAGMA journal_mode = WAL").fetchall()

    def grants(name, count):
        con.execute("BEGIN IMMEDIATE")
        for i in range(count):
            one(con, "SELECT lease_grant(?, 'a', 600, 1, ?)", f"{name}{i}",
                "x" * 200)
        con.execute("COMMIT")

    restored = tmp_path / "restored"
    restored.mkdir()
    grants("old", 50)
    con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    shutil.copy(path, restored)
    grants("middle", middle)
    con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    grants("new", new)
    for side in ("-wal", "-shm"):
        shutil.copy(f"{path}{side}", restored / f"lease.db{side}")
    con.close()
    before = [(restored / f"lease.db{side}").read_bytes()
              for side in ("", "-wal")]
    code, said = check(restored / "lease.db", build)
    assert code == 1 and "is damaged" in said and "-wal" in said
    assert before == [(restored / f"lease.db{side}").read_bytes()
                      for side in ("", "-wal")]
    for side in ("-wal", "-shm"):
        (restored / f"lease.db{side}").unlink(missing_ok=True)
    (restored / "lease.db").write_bytes(before[0])
    assert check(restored / "lease.db", build) == (0, "")


# --- whose file, by which name --------------------------------------------------

def as_nobody(*command, **options):
    return subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", *map(str, command)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=60, **options)


@pytest.fixture
def nobodys(tmp_path, build):
    """A database of another user than root, in a folder of that user."""
    for folder in [tmp_path, *tmp_path.parents][:-1]:
        folder.chmod(folder.stat().st_mode | 0o711)
    folder = tmp_path / "nobodys"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    path = folder / "lease.db"
    done = as_nobody(build / "lease-fcgi", "check",
                     env=dict(os.environ, LEASE_DB=str(path)))
    assert done.returncode == 0, done.stdout
    return path


@pytest.mark.plain      # a shell does not bear a sanitizer preloaded
def test_the_shell_of_root_killed_beside_it_locks_nobody_out(nobodys, build):
    """C075: SQLite gives the side files to the owner of the database."""
    with subprocess.Popen(["sqlite3", nobodys], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as shell:
        shell.stdin.write("BEGIN IMMEDIATE; CREATE TABLE t(x); COMMIT;\n"
                          "SELECT count(*) FROM lease;\n")
        shell.stdin.flush()
        assert shell.stdout.readline() == "0\n"
        shell.kill()
    side = Path(f"{nobodys}-wal")
    assert side.stat().st_size > 0 and side.stat().st_uid == 65534
    done = as_nobody("sqlite3", nobodys, f".load {build}/lease",
                     "SELECT lease_grant('r', 'a', 60)")
    assert done.stdout == "1\n"
    done = as_nobody(build / "lease-fcgi", "check",
                     env=dict(os.environ, LEASE_DB=str(nobodys)))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.plain
@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_side_file_of_another_user_is_named_and_nothing_granted(
        nobodys, build, tmp_path, suffix):
    """C075"""
    Path(f"{nobodys}{suffix}").touch(0o600)
    start = tmp_path / "start"
    start.write_text("#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups "
                     f"{build}/lease-fcgi\n")
    start.chmod(0o755)
    service = Service(tmp_path, db=nobodys)
    service.binary = start
    try:
        service.start()
        wait_for(lambda: f"{nobodys}{suffix}: cannot be written by user 65534:"
                 " it belongs to user 0" in service.log(), 20, "it says why")
        wait_for(lambda: refused(service), 20, "503 in JSON")
    finally:
        service.stop()
    done = as_nobody("sqlite3", nobodys, f".load {build}/lease",
                     "SELECT lease_grant('r', 'a', 60)")
    assert done.returncode == 14 and "unable to open" in done.stdout


def refused(service):
    with contextlib.suppress(OSError,
                             service_module.http.client.HTTPException):
        answer = service.get("/v1/leases")
        return answer.status == 503 and answer.code == "unavailable"


def test_a_database_of_two_names_is_refused(build, tmp_path):
    """C099: each name would have a log of its own."""
    path = tmp_path / "lease.db"
    assert check(path, build) == (0, "")
    os.link(path, tmp_path / "other.db")
    for name in ("lease.db", "other.db"):
        code, said = check(tmp_path / name, build)
        assert code == 1 and "hard links" in said
    (tmp_path / "other.db").unlink()
    assert check(path, build) == (0, "")


def test_a_relative_path_is_the_same_file_from_every_folder(db, tmp_path):
    """C099"""
    one(db(), "SELECT lease_grant('r', 'a', 60)")
    (tmp_path / "sub").mkdir()
    for folder, path in ((tmp_path, "lease.db"),
                         (tmp_path / "sub", "../lease.db")):
        said = support.shell("SELECT lease_grant('r', 'b', 60) IS NULL;\n",
                             path, cwd=folder)
        assert said == "1\n"


# --- processes ------------------------------------------------------------------

def locks_of(pid):
    """The files that a process has POSIX locks on, by inode."""
    with open("/proc/locks", encoding="ascii") as lines:
        return {int(line.split()[5].rpartition(":")[2]) for line in lines
                if "POSIX" in line and int(line.split()[4]) == pid}


def test_the_service_opens_its_database_after_the_last_fork(service):
    """C078, C080: the locks are the process's own, and nobody takes its log
    away."""
    assert service.post("grant", resource="r", holder="a",
                        ttl=600).status == 200
    side = {suffix: os.stat(f"{service.db}{suffix}").st_ino
            for suffix in ("", "-wal", "-shm")}
    assert locks_of(service.pid) & {side[""], side["-shm"]}
    nuisances(service.db, time.monotonic() + 0.5)
    assert os.stat(f"{service.db}-wal").st_ino == side["-wal"]
    assert locks_of(service.pid) & {side[""], side["-shm"]}
    assert service.get("/v1/leases").json["leases"][0]["holder"] == "a"
    with contextlib.closing(support.connect(service.db)) as con:
        assert one(con, "PRAGMA integrity_check") == "ok"


def test_forked_programs_with_connections_of_their_own_agree(db, tmp_path):
    """C078: a connection is not for a child; each child opens its own, and
    when it ends, the locks of the parent stay."""
    con = db()
    con.execute("PRAGMA journal_mode = WAL").fetchall()
    token = one(con, "SELECT lease_grant('r', 'parent', 600)")
    con.execute("BEGIN IMMEDIATE")

    def child():
        own = clients.Sql(tmp_path / "lease.db", timeout=0.05)
        with contextlib.suppress(clients.Unknown):
            os._exit(1 if own.grant("r", "child", 60) else 0)
        os._exit(0)

    clients.together([child] * 4)
    one(con, "SELECT lease_grant('other', 'parent', 60)")
    con.execute("COMMIT")
    assert one(con, "SELECT lease_check('r', ?)", token) == 1
    assert one(con, "PRAGMA integrity_check") == "ok"


# --- scripts --------------------------------------------------------------------

@pytest.mark.plain
def test_a_script_tells_refusal_from_success_by_status_or_null(service, build,
                                                               tmp_path):
    """C189: what the table "For scripts" of README.md says."""
    path = tmp_path / "scripts.db"

    def shell(sql, *options, path=path):
        done = subprocess.run(
            ["sqlite3", "-bail", *options, path, f".load {build}/lease", sql],
            capture_output=True, text=True)
        return done.returncode, done.stdout

    grant = "SELECT lease_grant('r', '{}', {}) AS token"
    assert shell(grant.format("a", 60)) == (0, "1\n")
    assert shell(grant.format("b", 60)) == (0, "\n")
    assert shell(grant.format("b", 60), "-json") == (0, '[{"token":null}]\n')
    assert shell(grant.format("b", 60), "-csv") == (0, "\n")
    assert shell(grant.format("b", 60), "-nullvalue", "-") == (0, "-\n")
    assert shell("SELECT lease_check('r', 1), lease_release('r', 9)") == (
        0, "1|0\n")
    assert shell(grant.format("b", "'30abc'")) == (1, "")
    assert shell(grant.format("b", 60).replace("'r'", "'s'"), "-readonly") \
        == (8, "")
    with contextlib.closing(sqlite3.connect(path)) as con:
        con.execute("BEGIN IMMEDIATE")
        assert shell(grant.format("b", 60).replace("'r'", "'s'")) == (5, "")

    def curl(body):
        return subprocess.run(
            ["curl", "-sf", f"http://127.0.0.1:{service.port}/v1/grant", "-H",
             "Content-Type: application/json", "-d", json.dumps(body)],
            capture_output=True).returncode

    assert curl({"resource": "r", "holder": "a"}) == 0
    assert curl({"resource": "r", "holder": "b"}) == 22
    assert curl({"resource": "r"}) == 22
