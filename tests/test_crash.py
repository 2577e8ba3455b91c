"""kill -9, again and again, under load: no acknowledged grant is lost, no
token is told twice, the file is whole."""

import functools
import os
import random
import signal
import time

import pytest

import checker
import clients
import support
from support import one
from test_races import RESOURCES, worker_life


def forever(connect, path, name):
    """A worker that goes on whatever happens to the service."""
    log = checker.Log(path, name)
    while True:
        client = connect()
        worker_life(client, log, name, time.monotonic() + 0.5,
                    RESOURCES)
        client.close()


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@pytest.mark.limit(300)
def test_kill_9_of_service_and_lighttpd_under_load_loses_nothing(service,
                                                                 tmp_path):
    """C126, C181"""
    rounds = support.scaled(100)
    dice = random.Random(2)
    paths = [tmp_path / f"w{n}.log" for n in range(5)]
    connects = [functools.partial(clients.Http, service.port)] * 4 + [
        functools.partial(clients.Sql, service.db)]
    workers = [
        clients.FORK.Process(target=forever, daemon=True,
                             args=(connect, path, path.stem))
        for connect, path in zip(connects, paths)]
    for worker in workers:
        worker.start()
    con = support.connect(str(service.db))
    try:
        for number in range(rounds):
            time.sleep(dice.uniform(0.02, 0.2))
            if number % 2:
                kill(service.pid)
            else:
                service.kill()
                service.start()
            service.wait_ready()
            assert one(con, "PRAGMA integrity_check") == "ok"
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    ops, log = checker.read(paths), checker.events(con)
    con.close()
    assert len(checker.answered(ops)) > rounds
    assert checker.problems(ops, log) == []


@pytest.mark.limit(120)
def test_kill_9_of_clients_on_the_file_loses_nothing(db, tmp_path):
    """C025: Programs that have the file open themselves die in the middle."""
    con = db()
    con.execute("PRAGMA journal_mode=WAL").fetchall()
    con.execute("SELECT lease_init()").fetchall()
    dice = random.Random(3)
    connect = functools.partial(clients.Sql, tmp_path / "lease.db")
    for number in range(support.scaled(60)):
        path = tmp_path / f"w{number}.log"
        workers = [clients.FORK.Process(
            target=forever, daemon=True,
            args=(connect, f"{path}.{n}", f"w{number}.{n}"))
            for n in range(2)]
        for worker in workers:
            worker.start()
        time.sleep(dice.uniform(0.03, 0.15))
        for worker in workers:
            worker.kill()
            worker.join()
        assert one(con, "PRAGMA integrity_check") == "ok"
    ops = checker.read(sorted(tmp_path.glob("w*.log.*")))
    assert checker.problems(ops, checker.events(con)) == []


def test_a_lease_keeps_its_end_through_restarts(service):
    """C054: A restart gives nobody more time."""
    http = clients.Http(service.port)
    token, remaining = http.grant("r", "a", 30)
    granted = checker.now_ns()
    for _ in range(3):
        service.kill()
        service.start()
        service.wait_ready()
    status, lease = clients.Http(service.port).post("check", resource="r",
                                                    token=token)
    passed = (checker.now_ns() - granted) / checker.NS
    assert status == 200
    assert lease["remaining"] <= remaining - passed + 0.1


def test_the_service_ends_with_its_lighttpd(service):
    pid = service.pid
    service.kill()
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError("the service runs on without its lighttpd")
