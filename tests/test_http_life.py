"""The service as a process: start and end, faults of the disk, foreign locks,
many clients at once."""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import threading
import time

import pytest

import service as service_module
import support
from service import Service, alive, stand_still, wait_for


class Load:
    """Clients that grant fresh names until stopped, and what they were told:
    answers[] of Answer, or None where the connection broke."""

    def __init__(self, service, clients=8, ttl=600):
        self.service, self.ttl = service, ttl
        self.answers, self.stopped = [], threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,))
                        for i in range(clients)]

    def run(self, number):
        con, n = None, 0
        while not self.stopped.is_set():
            n += 1
            try:
                con = con or self.service.connect()
                answer = self.service.post(
                    "grant", con=con, resource=f"{number}/{n}", holder="load",
                    ttl=self.ttl)
                self.answers.append(answer)
                if answer.status != 200:
                    time.sleep(0.02)
            except (OSError, service_module.http.client.HTTPException):
                self.answers.append(None)
                con = None
                time.sleep(0.02)

    def granted(self):
        return [a.json["token"] for a in list(self.answers)
                if a and a.status == 200]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_for(lambda: len(self.granted()) > 20, what="load begins")
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def tokens_in(path):
    with contextlib.closing(support.connect(str(path))) as con:
        assert support.one(con, "PRAGMA integrity_check") == "ok"
        return {t for t, in con.execute(
            "SELECT token FROM lease_event WHERE event = 'granted'")}


def held_lock(path):
    """A foreign connection that holds the write lock."""
    con = sqlite3.connect(str(path), isolation_level=None)
    con.execute("BEGIN IMMEDIATE")
    return con


def check(db, build):
    """What the service says to a database it cannot use."""
    done = subprocess.run(
        [build / "lease-fcgi", "check"], capture_output=True, text=True,
        env=dict(os.environ, LEASE_DB=str(db)), timeout=30)
    assert done.stderr.count("\n") == (done.returncode != 0)
    return done.returncode, done.stderr


# --- start ----------------------------------------------------------------------

def test_check_makes_a_database_but_no_folder(build, tmp_path):
    db = tmp_path / "lease.db"
    assert check(db, build) == (0, "")
    assert db.exists()
    code, said = check(tmp_path / "a" / "lease.db", build)
    assert code == 1 and f"{tmp_path}/a/lease.db: No such file" in said
    assert not (tmp_path / "a").exists()


def test_a_file_that_is_no_database_is_named_and_refused(build, tmp_path):
    db = tmp_path / "lease.db"
    db.write_bytes(b"This is a letter, not a database. " * 100)
    before = db.read_bytes()
    code, said = check(db, build)
    assert code == 1 and str(db) in said and "not a database" in said
    assert db.read_bytes() == before


def test_foreign_tables_and_newer_schemas_are_refused(build, tmp_path):
    """C089"""
    foreign, newer = tmp_path / "foreign.db", tmp_path / "newer.db"
    with contextlib.closing(sqlite3.connect(foreign)) as con:
        con.execute("CREATE TABLE lease (name TEXT)")
    assert check(newer, build)[0] == 0
    with contextlib.closing(sqlite3.connect(newer)) as con, con:
        con.execute("UPDATE lease_config SET schema = 999")
        con.execute("ALTER TABLE lease_config ADD COLUMN colour TEXT")
    for db in (foreign, newer):
        code, said = check(db, build)
        assert code == 1 and str(db) in said


def test_a_folder_or_a_path_through_a_file_is_refused(build, tmp_path):
    (tmp_path / "file").write_text("x")
    for db in (tmp_path, tmp_path / "file" / "lease.db"):
        code, said = check(db, build)
        assert code == 1 and str(db) in said


def test_a_file_that_another_process_keeps_locked_is_told(build, tmp_path):
    """It has no tables of ours yet, so that the start must write them."""
    db = tmp_path / "lease.db"
    with contextlib.closing(sqlite3.connect(db)) as con:
        con.execute("PRAGMA journal_mode=WAL").fetchall()
        con.execute("CREATE TABLE t(x)")
    with contextlib.closing(held_lock(db)):
        code, said = check(db, build)
    assert code == 1 and f"{db}: " in said and "locked" in said


def test_side_files_of_another_user_are_named(build, tmp_path):
    """C075"""
    if os.getuid() != 0:
        pytest.skip("needs root, to be somebody else")
    db = tmp_path / "lease.db"
    assert check(db, build)[0] == 0
    (tmp_path / "lease.db-wal").touch(0o600)
    os.chmod(db, 0o666)
    reached = tmp_path
    while reached != reached.parent:
        os.chmod(reached, reached.stat().st_mode | 0o777
                 if reached == tmp_path else reached.stat().st_mode | 0o111)
        reached = reached.parent
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", build / "lease-fcgi",
         "check"], capture_output=True, text=True, timeout=30,
        env=dict(os.environ, LEASE_DB=str(db)))
    assert done.returncode == 1
    assert f"{db}-wal: cannot be written by user 65534: it belongs to user 0" \
        in done.stderr


def test_a_second_service_on_a_database_ends_with_one_line(service, build):
    """C099"""
    code, said = check(service.db, build)
    assert code == 1
    assert f"{service.db}: another service has this database (process " \
        f"{service.pid})" in said
    link = service.folder / "link.db"
    link.symlink_to(service.db)
    assert check(link, build)[0] == 1


def test_it_must_be_started_by_a_web_server(build, tmp_path):
    done = subprocess.run([build / "lease-fcgi"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=30,
                          env=dict(os.environ,
                                   LEASE_DB=str(tmp_path / "lease.db")))
    assert done.returncode == 1 and done.stderr.count("\n") == 1


def test_what_cannot_start_stays_until_lighttpd_has_seen_it(build, tmp_path):
    """Gone at once, it would take lighttpd with it, but only now and then."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        with subprocess.Popen(
                [build / "lease-fcgi"], stdin=listening, text=True,
                stderr=subprocess.PIPE, env=dict(
                    os.environ, LEASE_DB=str(tmp_path / "a/lease.db"))) as it:
            while "event=cannot_start" not in it.stderr.readline():
                assert it.poll() is None
            said = time.monotonic()
            assert it.wait(30) == 1
            assert time.monotonic() - said > 0.1


def test_while_no_service_runs_the_answer_is_503_in_json(build, tmp_path):
    script = tmp_path / "start"
    script.write_text(f"#!/bin/sh\n[ -e {tmp_path}/broken ] && exit 1\n"
                      f"exec {build}/lease-fcgi\n")
    script.chmod(0o755)
    service = Service(tmp_path)
    service.binary = script
    with service:
        (tmp_path / "broken").touch()
        os.kill(service.pid, signal.SIGKILL)

        def down():
            answer = service.get("/healthz")
            return answer.status == 503 and answer
        answer = wait_for(down, what="it is down")
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.code == "unavailable"
        assert answer.headers["Retry-After"] == "1"
        assert answer.headers["X-Request-Id"]
        # Who is at it while it ends gets no answer from it: 502.
        told = {(a.status, a.code) for a in (
            service.post("grant", resource="r", holder="h") for _ in range(50))}
        assert told <= {(503, "unavailable"), (502, "unavailable")}
        (tmp_path / "broken").unlink()
        service.wait_ready()


# --- end ------------------------------------------------------------------------

def test_a_restart_keeps_leases_and_their_time(service, clock):
    """C054"""
    lease = service.post("grant", resource="r", holder="a", ttl=60).json
    service.stop()
    assert not (service.folder / "lease.db-wal").exists()
    clock.advance(50)
    service.start().wait_ready()
    answer = service.post("check", resource="r", token=lease["token"])
    assert answer.json == lease | {"remaining": 10}
    clock.advance(10)
    assert service.post("grant", resource="r", holder="b").status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_and_loses_no_answer(service, number):
    """C126"""
    with Load(service) as load:
        pid = service.pid
        os.kill(pid, number)
        wait_for(lambda: not alive(pid), 5, "the service ends")
        wait_for(lambda: service.pid not in (None, pid), what="a new one")
        done = len(load.granted())
        wait_for(lambda: len(load.granted()) > done + 20, what="it goes on")
    assert {a.status for a in load.answers if a} <= {200, 503}, service.log()
    for answer in load.answers:
        if answer and answer.status == 503:
            assert answer.headers["Content-Type"] == "application/problem+json"
    granted = load.granted()
    assert len(set(granted)) == len(granted)
    assert set(granted) <= tokens_in(service.db)


def test_a_reload_under_load_answers_all_and_leaves_one_service(service):
    """C125"""
    first = service.pid
    with Load(service) as load:
        for _ in range(2):
            before = service.pid
            service.reload()
            wait_for(lambda: service.pid not in (None, before), what="reload")
            service.wait_ready()
            done = len(load.granted())
            wait_for(lambda: len(load.granted()) > done + 20,
                     what="it goes on")
            wait_for(lambda: not alive(before), what="the old one ends")
    assert service.pid != first
    assert set(load.granted()) <= tokens_in(service.db)
    assert {a.status for a in load.answers if a} <= {200, 503}


@pytest.mark.parametrize("stopped", [False, True])
def test_a_killed_lighttpd_that_is_started_at_once_has_a_service(
        service, stopped):
    """Also while the service of before has not yet ended."""
    before = service.pid
    if stopped:
        stand_still(before)
    service.replace()
    wait_for(lambda: service.pid, what="a new one is started")
    os.kill(before, signal.SIGCONT)
    service.wait_ready(30)
    assert service.post("grant", resource="r", holder="a").status == 200
    wait_for(lambda: not alive(before), what="the old one ends")


def test_lighttpd_ends_on_sigint_and_takes_the_service_along(service):
    pid = service.pid
    service.end(signal.SIGINT)
    assert not alive(pid)


@pytest.mark.plain
@pytest.mark.parametrize("number, held", [
    (signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, False)])
def test_make_run_serves_until_it_is_told_to_end(build, tmp_path, number,
                                                 held):
    """C126: Ctrl-C goes to all of its processes, SIGTERM to make alone. What
    was stored by then was answered. A client may hold a connection, and say
    nothing."""
    port = service_module.free_port()
    db = tmp_path / "some where, it's here" / "lease.db"
    log = tmp_path / "some where, it's here" / "access log"
    db.parent.mkdir()
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("LEASE", "MAKE", "MFLAGS"))}
    with subprocess.Popen(
            ["make", "run", f"PORT={port}", f"DB={db}", f"ACCESS_LOG={log}"],
            cwd=support.ROOT, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            start_new_session=True) as make:
        running = Service(tmp_path)
        running.port = port
        try:
            running.wait_ready(60)
            assert running.get("/").headers["Content-Type"].startswith(
                "text/html")
            with socket.socket() as client, Load(running) as load:
                if held:
                    client.connect(("127.0.0.1", port))
                wait_for(lambda: len(load.granted()) > 20, what="grants")
                if number == signal.SIGTERM:
                    make.send_signal(number)
                else:
                    os.killpg(make.pid, number)
                said, _ = make.communicate(timeout=15)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(make.pid, signal.SIGINT)
    assert "Leasehold" in said
    assert number == signal.SIGTERM or "Error" not in said
    assert tokens_in(db) == set(load.granted())
    assert "POST /v1/grant" in log.read_text()
    # Without being asked, nothing is written of requests that went well.
    assert "POST /v1/grant" not in said


# --- many at once ---------------------------------------------------------------

def test_of_many_clients_that_race_exactly_one_wins(service):
    """C019, C175"""
    for number in range(support.scaled(20, 3)):
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            answers = list(pool.map(lambda i: service.post(
                "grant", resource=f"r{number}", holder=f"h{i}", ttl=60),
                range(32)))
        assert sorted(a.status for a in answers) == [200] + [409] * 31


def test_a_thousand_connections_at_once_are_all_answered(service):
    """C178"""
    text = (b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\nConnection: close"
            b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n")
    connections = []
    for number in range(1000):
        con = socket.create_connection(("127.0.0.1", service.port), 60)
        connections.append((con, b'{"resource":"r%d","holder":"h"}' % number))
    for con, body in connections:
        con.sendall(text % len(body) + body)
    said = []
    for con, _ in connections:
        with con, con.makefile("rb") as file:
            said.append(file.read())
    assert all(s.startswith(b"HTTP/1.1 200 OK") for s in said)
    assert len(tokens_in(service.db)) == 1000


@pytest.mark.plain
def test_memory_stays_small(service):
    """C121, C181"""
    with contextlib.closing(support.connect(str(service.db))) as con:
        con.execute("CREATE TEMP TABLE t (x)")
        con.execute("""WITH RECURSIVE n(i) AS
            (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
            INSERT INTO temp.t SELECT lease_grant('r' || i, 'h', 600, 1,
                '{' || hex(zeroblob(500)) || '}') FROM n""")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: service.get("/v1/leases?limit=1000"),
                      range(100)))
    with Load(service, 16):
        time.sleep(0.5)
    status = open(f"/proc/{service.pid}/status").read()
    peak = int(status.partition("VmHWM:")[2].split()[0])
    assert peak < 64 * 1024, f"{peak} KiB"


def test_refusals_cost_no_write(service):
    """C028"""
    service.post("grant", resource="r", holder="a", ttl=600)
    log = service.folder / "lease.db-wal"
    before = log.stat()
    for _ in range(50):
        answer = service.post("grant", resource="r", holder="b")
        assert answer.status == 409
        service.post("renew", resource="r", token=99)
        service.post("release", resource="r", token=99)
    after = log.stat()
    assert (after.st_mtime_ns, after.st_size) \
        == (before.st_mtime_ns, before.st_size)


# --- a foreign lock -------------------------------------------------------------

def test_a_lock_held_for_a_second_only_delays(service):
    """C067"""
    con = held_lock(service.db)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        futures = [pool.submit(service.post, "grant", resource=f"r{i}",
                               holder="h") for i in range(20)]
        time.sleep(1)
        assert not any(f.done() for f in futures)
        con.execute("ROLLBACK")
        released = time.monotonic()
        assert [f.result().status for f in futures] == [200] * 20
    assert time.monotonic() - released < support.patience(3)


def test_a_lock_held_long_lets_reads_go_on_and_refuses_writes(service):
    """C067, C171"""
    lease = service.post("grant", resource="r", holder="a", ttl=600).json
    con = held_lock(service.db)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        start = time.monotonic()
        futures = [pool.submit(service.post, "grant", resource=f"x{i}",
                               holder="h") for i in range(4)]
        while not all(f.done() for f in futures):
            assert service.get("/v1/leases").status == 200
            assert service.post("check", resource="r",
                                token=lease["token"]).status == 200
            time.sleep(0.1)
        assert 4 < time.monotonic() - start < support.patience(10)
        for answer in (f.result() for f in futures):
            assert (answer.status, answer.code) == (503, "busy")
            assert answer.headers["Retry-After"] == "1"
    later = threading.Thread(
        target=lambda: service.post("grant", resource="y", holder="h"))
    later.start()
    wait_for(lambda: service.get("/healthz").status == 503, what="ill")
    con.execute("ROLLBACK")
    later.join(1)
    assert not later.is_alive()
    assert service.post("renew", resource="r",
                        token=lease["token"]).status == 200
    assert service.get("/healthz").status == 200
    assert "event=locked_out" in service.log()


def test_what_is_known_to_be_held_is_refused_without_the_writer(service):
    """Also while another process holds the lock: nothing is written for it."""
    lease = service.post("grant", resource="r", holder="a", ttl=600).json
    first = service.post("grant", resource="r", holder="b")
    service.post("grant", resource="s", holder="a", capacity=2)
    service.post("grant", resource="s", holder="b", capacity=2)
    assert service.post("grant", resource="s", holder="c").status == 409
    batches = service.get("/v1/status").json["queue"]["batches"]
    con = held_lock(service.db)
    for resource, holder, capacity in (
            ("r", "b", 1), ("r", "b", 9), ("r", "a", 1), ("s", "b", 2),
            ("s", "c", 2), ("s", "c", 9)):
        answer = service.post("grant", resource=resource, holder=holder,
                              capacity=capacity)
        assert (answer.status, answer.code) == (409, "held")
    again = service.post("grant", resource="r", holder="b")
    told, repeated = first.json, again.json
    for refusal in (told, repeated):
        del refusal["remaining"], refusal["holders"][0]["remaining"]
    assert repeated == told
    assert again.headers["Retry-After"] == first.headers["Retry-After"]
    assert service.get("/v1/status").json["queue"]["batches"] == batches
    con.execute("ROLLBACK")
    # What it may know nothing of is for the writer.
    token = service.post("release", resource="r", token=lease["token"])
    assert token.status == 200
    assert service.post("grant", resource="r", holder="b").status == 200
    assert service.get("/v1/status").json["queue"]["batches"] > batches


def test_a_grant_asked_for_again_gets_what_it_got_though_it_is_held(service):
    """What a reader sees to be held may be held by the one who asks."""
    def ask(**fields):
        return service.post("grant", headers={"Idempotency-Key": "k"},
                            resource="r", holder="a", ttl=600, **fields)
    lease = ask().json
    assert service.post("grant", resource="r", holder="b").status == 409
    assert service.post("grant", resource="r", holder="b").status == 409
    assert ask().json["token"] == lease["token"]


def test_who_asks_while_others_wait_is_told_how_many(service):
    service.post("grant", resource="r", holder="a", ttl=600)
    for _ in range(2):
        assert service.post("grant", resource="r",
                            holder="c").json["ahead"] == 0
    waiting = send_grant(service, "r", holder="b", wait=60)
    wait_for(lambda: service.get("/v1/status").json["parked"]["grants"] == 1)
    for _ in range(2):
        assert service.post("grant", resource="r",
                            holder="c").json["ahead"] == 1
    waiting.close()


def send_grant(service, resource, **fields):
    """Ask for it on a connection of its own, which is returned."""
    body = json.dumps({"resource": resource, "holder": "h"} | fields)
    client = socket.create_connection(("127.0.0.1", service.port), 30)
    client.sendall((
        "POST /v1/grant HTTP/1.1\r\nHost: localhost\r\nContent-Type: application"
        f"/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
    return client


@pytest.mark.parametrize("how", ["close", "reset", "half close"])
def test_a_request_whose_client_has_gone_is_not_done_later(service, how):
    """C180"""
    service.post("grant", resource="first", holder="a")
    con = held_lock(service.db)
    with send_grant(service, "left") as client:
        wait_for(lambda: service.get("/v1/status").json["queue"]["waiting"],
                 what="it is queued")
        if how == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              struct.pack("ii", 1, 0))
        elif how == "half close":
            client.shutdown(socket.SHUT_WR)
        if how != "half close":
            client.close()
        time.sleep(0.2)
        con.execute("ROLLBACK")
        wait_for(lambda:
                 not service.get("/v1/status").json["queue"]["waiting"])
    assert service.get("/v1/leases?resource=left").json["leases"] == []


@pytest.mark.parametrize("who", ["service", "lighttpd", "both"])
def test_what_stood_still_does_nothing_for_clients_that_left(service, who):
    """A process is stopped, as a debugger or a paused machine does it."""
    service.post("grant", resource="first", holder="a")
    processes = {"service": [service.pid], "lighttpd": [service.lighttpd],
                 "both": [service.lighttpd, service.pid]}[who]
    for number in processes:
        stand_still(number)
    clients = []
    for how in ("close", "reset", "half close"):
        clients.append(send_grant(service, f"left/{how}"))
        if how == "reset":
            clients[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   struct.pack("ii", 1, 0))
        if how == "half close":
            clients[-1].shutdown(socket.SHUT_WR)
        else:
            clients[-1].close()
    stayed = send_grant(service, "stayed")
    time.sleep(0.2)     # so old must a request be to be looked at closely
    for number in processes:
        os.kill(number, signal.SIGCONT)
    with stayed, clients[-1]:
        assert stayed.recv(99).startswith(b"HTTP/1.1 200 ")
        assert clients[-1].recv(99).startswith(b"HTTP/1.1 400 ")
    assert service.get("/v1/leases?prefix=left").json["leases"] == []
    assert service.post("grant", resource="left/reset",
                        holder="b").json["token"] <= 3


def test_who_closes_its_sending_half_at_once_is_answered(service):
    with send_grant(service, "half") as client:
        client.shutdown(socket.SHUT_WR)
        assert client.recv(99).startswith(b"HTTP/1.1 ")


def test_a_client_that_leaves_is_no_error_in_the_log(service):
    lease = service.post("grant", resource="r", holder="a", ttl=600).json
    asked = [send_grant(service, "r", wait=30), send_grant(service, "r", wait=30)]
    for path, kind in (("?wait=30&after=%d" % lease["token"], "*/*"),
                       ("", "text/event-stream")):
        asked.append(socket.create_connection(("127.0.0.1", service.port)))
        asked[-1].sendall((f"GET /v1/events{path} HTTP/1.1\r\nHost: localhost"
                           f"\r\nAccept: {kind}\r\n\r\n").encode())

    def parked():
        told = service.get("/v1/status").json["parked"]
        return told["grants"] + told["streams"] + told["polls"]

    wait_for(lambda: parked() == 4, what="all wait")
    for client in asked:
        client.close()
    wait_for(lambda: parked() == 0, what="all have left")
    service.stop()
    assert "closing connection" not in service.log()
    assert "end-of-file" not in service.log()


def test_a_lease_over_before_it_was_stored_is_not_handed_out(service):
    """C046"""
    con = held_lock(service.db)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        # The ttl counts from when it is granted, not from the request.
        future = pool.submit(service.post, "grant", resource="r", holder="h",
                             ttl=0.5)
        time.sleep(1)
        con.execute("ROLLBACK")
        answer = future.result()
    assert answer.status == 200 and answer.json["remaining"] == 0.5


def test_a_lease_that_ran_out_while_it_was_stored_is_not_handed_out(
        service, clock):
    """The clock runs so fast that storing takes longer than the lease."""
    ended, told = threading.Event(), set()

    def run():
        while not ended.is_set():
            clock.advance(0.1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        until = time.monotonic() + 60
        while len(told) < 2 and time.monotonic() < until:
            answer = service.post("grant", resource="r", holder="h", ttl=0.1)
            if answer.status == 503:
                assert answer.code == "too_late"
                assert answer.headers["Retry-After"] == "1"
                told.add("grant")
            ops = [dict(op="grant", resource=name, holder="h", ttl=ttl)
                   for name, ttl in (("a", 86400), ("b", 0.1))]
            answer = service.post("batch", ops=ops)
            results = answer.json["results"]
            if results[1]["status"] == 503:
                assert results[1]["code"] == "too_late"
                # Also found by the id, though the answer is 200.
                assert answer.status == 200 and (
                    f"request={answer.headers['X-Request-Id']} path=/v1/grant"
                    " status=503 code=too_late rc=0") in service.log()
                assert "token" not in results[1]
                told.add("batch")
            assert results[0]["status"] in (200, 409)
    finally:
        ended.set()
        thread.join()
    assert told == {"grant", "batch"}


# --- the log, the disk ----------------------------------------------------------

def test_a_forgotten_read_is_reported_and_the_log_shrinks_after_it(service):
    """C070"""
    service.post("grant", resource="r", holder="a")
    log = service.folder / "lease.db-wal"
    con = sqlite3.connect(str(service.db), isolation_level=None)
    con.execute("BEGIN")
    con.execute("SELECT count(*) FROM lease_event").fetchall()

    def told():
        return service.get("/v1/status").json["checkpoint"]

    with Load(service, 16):
        wait_for(lambda: told()["wal_pages"] > 4000, 30, "a long log")
        wait_for(lambda: told()["blocked"], 15, "it is reported")
        size = log.stat().st_size
        con.execute("ROLLBACK")
        wait_for(lambda: not told()["blocked"], what="it goes on")
    con.close()
    assert size > 4_000_000
    assert "event=checkpoint_blocked" in service.log()
    service.stop()
    assert not log.exists()


def test_a_checkpoint_that_another_process_keeps_off_is_reported(service):
    """C070: byte 121 of -shm is SQLite's lock on checkpoints."""
    def told():
        return service.get("/v1/status").json["checkpoint"]

    service.post("grant", resource="r", holder="a")
    with open(f"{service.db}-shm", "r+b") as shm:
        fcntl.lockf(shm, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 121)
        for i in range(3):
            ops = [{"op": "grant", "resource": f"{i}/{j}", "holder": "a",
                    "data": "x" * 4000} for j in range(250)]
            assert service.post("batch", ops=ops).status == 200
        wait_for(lambda: told()["blocked"], 20, "it is reported")
        assert "event=checkpoint_blocked" in service.log()
        assert service.log().count(" rc=5\n")
    wait_for(lambda: not told()["blocked"], 20, "it goes on")


def test_the_log_is_folded_back_now_and_then_not_at_each_commit(service):
    con = service.connect()
    for i in range(400):
        assert service.post("grant", con=con, resource=f"r{i}",
                            holder="a").status == 200
    con.close()
    told = service.get("/metrics").body.decode()
    tried = re.search(r"^leasehold_checkpoints_total (\d+)", told, re.M)
    # 400 commits of at most 10 pages each, and one for each 1,000 pages.
    assert 1 <= int(tried[1]) <= 5


def test_under_constant_writing_the_log_begins_anew_in_time(service):
    pages = [0]

    def began_anew():
        status = service.get("/v1/status").json
        pages.append(status["checkpoint"]["wal_pages"])
        return sum(b < a for a, b in zip(pages, pages[1:])) >= 2

    with Load(service, 16):
        wait_for(began_anew, 60, "the log begins anew")
    assert max(pages) < 8000


def test_a_full_disk_is_507_and_heals_without_a_restart(small_disk, tmp_path):
    """C071, C073"""
    with Service(tmp_path, db=small_disk / "lease.db") as service:
        lease = service.post("grant", resource="r", holder="a",
                             ttl=600).json
        pid, ballast = service.pid, small_disk / "ballast"
        with open(ballast, "wb", buffering=0) as file:
            for size in (65536, 4096):
                with contextlib.suppress(OSError):
                    while file.write(b"x" * size):
                        pass
        told = []
        for number in range(200):
            answer = service.post("grant", resource=f"r{number}",
                                  holder="b", data="x" * 4096)
            told.append(answer)
            if answer.status == 507:
                break
        assert answer.code == "storage_full"
        assert answer.headers["Retry-After"]
        before = service.get("/v1/status").json["leases"]["newest_token"]
        ops = [dict(op="grant", resource=f"b{i}", holder="b", data="x" * 4096)
               for i in range(100)]
        batch = service.post("batch", atomic=True, ops=ops)
        assert (batch.status, batch.code) == (507, "storage_full")
        batch = service.post("batch", ops=ops).json
        assert {r["code"] for r in batch["results"]} == {"storage_full"} \
            if "results" in batch else batch["code"] == "storage_full"
        assert service.get("/v1/status").json["leases"]["newest_token"] \
            == before
        assert service.get("/v1/leases").status == 200
        assert service.get("/healthz").code == "storage_full"
        ballast.unlink()
        assert service.post("renew", resource="r",
                            token=lease["token"]).status == 200
        assert service.get("/healthz").status == 200
        assert service.pid == pid
        granted = {a.json["token"] for a in told if a.status == 200}
        assert granted <= tokens_in(service.db)


def test_a_database_that_was_moved_away_is_told_and_heals(service, tmp_path):
    token = service.post("grant", resource="r", holder="a",
                         ttl=600).json["token"]
    for put in (None, "another"):
        service.db.rename(tmp_path / "away.db")
        if put:
            shutil.copy(tmp_path / "away.db", service.db)
        for answer in (service.post("grant", resource="s", holder="a"),
                       service.post("check", resource="r", token=token),
                       service.post("batch", ops=[
                           dict(op="renew", resource="r", token=token)]),
                       service.get("/v1/leases"), service.get("/healthz"),
                       service.get("/v1/events", {
                           "Accept": "text/event-stream"})):
            assert (answer.status, answer.code) == (503, "database_moved")
            assert answer.headers["Retry-After"]
        (tmp_path / "away.db").rename(service.db)
        assert service.get("/healthz").status == 200
        token = service.post("renew", resource="r",
                             token=token).json["token"]
    assert "code=database_moved" in service.log()
    assert service.get("/v1/leases?resource=s").json["leases"] == []
