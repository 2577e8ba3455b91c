"""What the service needs fails: memory, the disk, descriptors, calls that a
signal interrupts. Answers are true or problems, the same process goes on, and
in the end the log obeys the rules."""

import concurrent.futures
import contextlib
import errno
import http.client
import os
import signal
import subprocess
import threading

import pytest

import checker
import preload
import support
from service import wait_for

plain = pytest.mark.plain  # a sanitizer wants to be preloaded first


class Client:
    """Asks for a bit of everything; keeps what it was told. An answer that
    does not come is none."""

    def __init__(self, service):
        self.service, self.n, self.granted, self.statuses = service, 0, {}, []

    def ask(self, route, **fields):
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = self.service.post(route, **fields)
            self.statuses.append(answer.status)
            return answer if answer.status == 200 else None

    def look(self, path):
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.statuses.append(self.service.get(path).status)

    def grant(self, **more):
        self.n += 1
        name = f"r{self.n}"
        answer = self.ask("grant", resource=name, holder="a", ttl=600, **more)
        if answer:
            self.granted[answer.json["token"]] = name
        return name, answer and answer.json["token"]

    def round(self):
        name, token = self.grant()
        self.grant(data="x" * 500)
        token = token or 1
        answer = self.ask("renew", resource=name, token=token)
        if answer:
            self.granted[answer.json["token"]] = name
        self.ask("check", resource=name, token=token)
        self.ask("grant", resource=name, holder="b", wait=0.01)
        self.ask("batch", ops=[
            {"op": "fence", "resource": name, "token": token},
            {"op": "check", "resource": name, "token": token}], atomic=True)
        self.look("/v1/leases?prefix=r&limit=5")
        self.look("/v1/events?after=0&limit=3")
        self.look("/v1/status")
        self.look("/metrics")
        self.ask("release", resource=name, token=token)


def true_and_whole(service, client):
    """Whatever was said to be granted was; the file is in order."""
    with contextlib.closing(support.connect(service.db)) as con:
        assert support.one(con, "PRAGMA integrity_check") == "ok"
        log = checker.events(con)
    assert list(checker.log_obeys_the_rules(log)) == []
    events = {e["token"]: e for e in log}
    for token, name in client.granted.items():
        assert events[token]["resource"] == name
        assert events[token]["event"] in ("granted", "renewed")


def works(service):
    """All in order again, with nothing restarted."""
    answer = service.post("grant", resource="works", holder="a")
    token = answer.json.get("token")
    return (answer.status == 200 and service.post(
        "release", resource="works", token=token).status == 200)


@pytest.fixture
def faulty(build, tmp_path):
    with preload.service(tmp_path, build / "preload.so") as running:
        yield running


@plain
@pytest.mark.parametrize("kind, step", [(preload.OUR_MEMORY, 1),
                                        (preload.SQLITE_MEMORY, 61)])
def test_without_memory_the_answer_is_true_or_a_problem(faulty, kind, step):
    client, pid, countdown, hits = Client(faulty), faulty.pid, 1, 0
    client.round()
    assert set(client.statuses) <= {200, 409}
    while countdown < step * 60:
        faulty.faults.set(kind, countdown, error=errno.ENOMEM)
        client.round()
        if faulty.faults.hits == 0:
            break
        hits += 1
        countdown += step
    faulty.faults.clear()
    assert hits > 10
    assert works(faulty) and faulty.pid == pid
    assert set(client.statuses) <= {200, 404, 409, 410, 412, 500, 503}
    assert 'rc=7 why="out of memory"' in faulty.log()
    true_and_whole(faulty, client)


@plain
@pytest.mark.parametrize("kind, error, status, code", [
    (preload.WRITE, errno.EIO, 500, "internal"),
    (preload.WRITE, errno.EROFS, 500, "internal"),
    (preload.WRITE, errno.ENOSPC, 507, "storage_full"),
    (preload.SYNC, errno.EIO, 500, "internal")])
def test_a_disk_that_fails_is_told_and_heals(faulty, kind, error, status,
                                             code):
    client, pid = Client(faulty), faulty.pid
    client.round()
    faulty.faults.set(kind, 1, every=1, error=error)
    for _ in range(3):
        answer = faulty.post("grant", resource="no", holder="a")
        assert (answer.status, answer.code) == (status, code)
    assert faulty.get("/v1/leases").status == 200
    assert faulty.get("/healthz").status != 200
    faulty.faults.clear()
    assert works(faulty) and faulty.get("/healthz").status == 200
    for countdown in range(1, 25, 4):
        faulty.faults.set(kind, countdown, error=error)
        client.round()
    faulty.faults.clear()
    assert works(faulty) and faulty.pid == pid
    assert "event=failed" in faulty.log()
    true_and_whole(faulty, client)


def queued(service):
    return service.get("/v1/status").json["queue"]["waiting"]


@plain
def test_who_waits_is_told_no_grant_that_was_undone(faulty):
    """The disk is full when a lease has run out under a foreign lock, and
    those who ask then find others before them."""
    def ask(holder, wait):
        return faulty.post("grant", resource="r", holder=holder, ttl=0.2,
                           wait=wait)

    faulty.post("grant", resource="r", holder="a", ttl=1)
    with contextlib.closing(support.connect(faulty.db)) as con, \
            concurrent.futures.ThreadPoolExecutor(5) as pool:
        waiters = [pool.submit(ask, f"w{i}", 30) for i in range(3)]
        wait_for(lambda: faulty.get("/v1/status").json["parked"]["grants"] == 3,
                 what="they wait")
        con.execute("BEGIN IMMEDIATE")
        others = [pool.submit(ask, f"n{i}", 0) for i in range(2)]
        wait_for(lambda: queued(faulty) >= 2, what="they are queued")
        wait_for(lambda: not support.one(
            con, "SELECT count(*) FROM lease_active"), what="it ran out")
        faulty.faults.set(preload.WRITE, 1, every=1, error=errno.ENOSPC)
        con.execute("ROLLBACK")
        told = [f.result() for f in others]
        faulty.faults.clear()
        told += [f.result() for f in waiters]
        granted = {e["token"]: e["holder"] for e in checker.events(con)
                   if e["event"] == "granted"}
    assert {a.status for a in told} <= {200, 409, 503, 507}
    got = {a.json["token"]: a.json["holder"] for a in told if a.status == 200}
    assert len(got) == len([a for a in told if a.status == 200])
    assert got.items() <= granted.items()


@plain
def test_a_lock_taken_after_a_full_disk_holds_nobody_up_for_long(faulty):
    """Each of many would wait for it in turn."""
    def ask(number):
        return faulty.post("grant", resource=f"r{number}", holder="a")

    faulty.post("grant", resource="r", holder="a")
    with contextlib.closing(support.connect(faulty.db, timeout=0)) as con, \
            concurrent.futures.ThreadPoolExecutor(300) as pool:
        con.execute("BEGIN IMMEDIATE")
        asked = [pool.submit(ask, i) for i in range(300)]
        wait_for(lambda: queued(faulty) == 300, what="all are queued")
        faulty.faults.set(preload.WRITE, 1, error=errno.ENOSPC)
        con.execute("ROLLBACK")

        # Between two of them: no time to sleep.
        while not faulty.faults.hits:
            pass
        while not con.in_transaction:
            with contextlib.suppress(support.sqlite3.OperationalError):
                con.execute("BEGIN IMMEDIATE")
        try:
            wait_for(lambda: all(f.done() for f in asked), 10,
                     "all are answered")
        finally:
            con.execute("ROLLBACK")
    assert {f.result().status for f in asked} <= {200, 503}
    assert works(faulty)


@plain
def test_calls_that_signals_interrupt_are_made_again(faulty):
    client, pid = Client(faulty), faulty.pid
    faulty.faults.set(preload.INTERRUPTED, 1, every=2, error=errno.EINTR)
    for _ in range(10):
        client.round()
    assert faulty.faults.hits > 100
    faulty.faults.clear()
    assert set(client.statuses) <= {200, 409}
    assert faulty.pid == pid
    true_and_whole(faulty, client)


def test_a_storm_of_signals_loses_no_answer(service):
    """Each stop and continue interrupts what waits; the others are not for
    the service."""
    client, pid, over = Client(service), service.pid, threading.Event()

    def storm():
        while not over.is_set():
            for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGHUP,
                           signal.SIGUSR1, signal.SIGPIPE, signal.SIGCHLD):
                os.kill(pid, number)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        storming = pool.submit(storm)
        try:
            for _ in range(10):
                client.round()
        finally:
            over.set()
            storming.result()
    assert set(client.statuses) <= {200, 409}, service.log()
    assert service.pid == pid
    true_and_whole(service, client)


@plain
def test_without_descriptors_it_waits_and_goes_on(build, tmp_path):
    with preload.service(tmp_path, build / "preload.so",
                         before="ulimit -n 300") as service:
        pid, client = service.pid, Client(service)
        # Some fewer than it has: one or another may be closing just now.
        used = len(os.listdir(f"/proc/{pid}/fd")) - 4
        subprocess.run(["prlimit", f"--pid={pid}", f"--nofile={used}:300"],
                       check=True)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(client.grant) for _ in range(4)]
            wait_for(lambda: "event=accept_failed errno=24" in service.log(),
                     what="it says so")
            subprocess.run(["prlimit", f"--pid={pid}", "--nofile=300:300"],
                           check=True)
            assert all(token for _, token in (f.result() for f in asked)), \
                service.log()
        assert works(service) and service.pid == pid
        true_and_whole(service, client)


# --- the files ----------------------------------------------------------------

def check(binary, db, *before):
    done = subprocess.run([*before, binary, "check"], text=True, timeout=60,
                          capture_output=True,
                          env=dict(os.environ, LEASE_DB=str(db)))
    assert done.stderr.count("\n") == (done.returncode != 0)
    return done.returncode, done.stderr


def test_a_disk_that_is_read_only_is_named_at_the_start(build, small_disk):
    db = small_disk / "lease.db"
    assert check(build / "lease-fcgi", db)[0] == 0
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    subprocess.run(remount, check=True)
    code, said = check(build / "lease-fcgi", db)
    assert code == 1 and f"{db}" in said and "read-only" in said.lower()
    con = support.sqlite3.connect(f"file:{db}?mode=ro&immutable=1", uri=True,
                                  isolation_level=None)
    support.load(con)
    with pytest.raises(support.sqlite3.OperationalError) as error:
        con.execute("SELECT lease_grant('r', 'a', 1)")
    assert error.value.sqlite_errorname.startswith("SQLITE_READONLY")
    con.close()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert check(build / "lease-fcgi", db)[0] == 0
