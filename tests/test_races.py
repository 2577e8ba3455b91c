"""Many processes want the same thing at the same time."""

import functools
import os
import random
import struct
import time

import pytest

import checker
import clients
import support
from support import one

RESOURCES = [f"r{n}" for n in range(8)]
REPORT = struct.Struct("iiq")       # process, round, token; 0 refused, -1 error


def racer(number, connect, start, reports, rounds):
    client = connect()
    for name in range(rounds):
        start.wait(number)
        try:
            got = client.grant(f"race/{name}", f"w{number}", 30)
            token = got[0] if got else 0
        except clients.Unknown as error:
            print(f"w{number} round {name}: {error}", flush=True)
            token = -1
        os.write(reports, REPORT.pack(number, name, token))
    client.close()


def race(connects, rounds):
    """In each round all processes ask for one new name at once. Answers for
    each round the tokens that were granted, and how many errors there were in
    all."""
    start = clients.Start(len(connects))
    receive, send = os.pipe()
    processes = [
        clients.FORK.Process(target=racer, daemon=True,
                             args=(n, connect, start, send, rounds))
        for n, connect in enumerate(connects)]
    for process in processes:
        process.start()
    granted, errors = [], 0
    for name in range(rounds):
        start.signal()
        got = [REPORT.unpack(os.read(receive, REPORT.size)) for _ in connects]
        assert {round_ for _, round_, _ in got} == {name}
        granted.append([token for _, _, token in got if token > 0])
        errors += sum(token < 0 for _, _, token in got)
    for process in processes:
        process.join()
    start.close()
    os.close(receive)
    os.close(send)
    return granted, errors


@pytest.mark.limit(180)
def test_of_32_processes_half_sql_half_http_exactly_one_wins(service):
    """C019"""
    rounds = support.scaled(1000)
    connects = [functools.partial(clients.Sql, service.db),
                functools.partial(clients.Http, service.port)] * 16
    before = time.monotonic()
    granted, errors = race(connects, rounds)
    print(f"{rounds} rounds in {time.monotonic() - before:.1f} s")
    assert errors == 0
    assert [len(tokens) for tokens in granted] == [1] * rounds
    winners = [tokens[0] for tokens in granted]
    assert winners == sorted(set(winners)), "a later round, a lower token"


@pytest.mark.limit(120)
def test_of_16_processes_on_a_file_without_a_service_exactly_one_wins(
        db, tmp_path):
    """C019"""
    con = db()
    con.execute("PRAGMA journal_mode=WAL").fetchall()
    rounds = support.scaled(200)
    connects = [functools.partial(clients.Sql, tmp_path / "lease.db")] * 16
    granted, errors = race(connects, rounds)
    assert errors == 0
    assert [len(tokens) for tokens in granted] == [1] * rounds


def test_many_processes_at_once_make_one_schema(db, tmp_path):
    connects = [functools.partial(clients.Sql, tmp_path / "lease.db")] * 8
    granted, errors = race(connects, 1)
    assert errors == 0 and len(granted[0]) == 1
    assert one(db(), "PRAGMA integrity_check") == "ok"


# --- load ---------------------------------------------------------------------

def worker_life(client, log, name, until, resources, ttl=0.5):
    """Take, extend and give back leases as workers do, and write down every
    call and its answer, until the clock says so."""
    dice = random.Random(name)
    while time.monotonic() < until:
        resource = dice.choice(resources)
        token = step(log.begin("grant", resource=resource, holder=name,
                               ttl=ttl),
                     lambda: client.grant(resource, name, ttl))
        for _ in range(dice.randrange(4) if token else 0):
            renewed = step(log.begin("renew", resource=resource, token=token,
                                     ttl=ttl),
                           lambda: client.renew(resource, token, ttl))
            token = renewed or token
        if token and dice.random() < 0.9:
            call = log.begin("release", resource=resource, token=token)
            try:
                call.ok(released=client.release(resource, token))
            except clients.Unknown as error:
                call.unknown(why=str(error))


def step(call, act):
    """One grant or renewal; its token, or None."""
    try:
        got = act()
    except clients.Unknown as error:
        call.unknown(why=str(error))
        time.sleep(0.005)
        return None
    if got is None:
        call.refused()
        return None
    call.ok(token=got[0], remaining=got[1])
    return got[0]


def live(connect, path, name, seconds, resources):
    client, log = connect(), checker.Log(path, name)
    worker_life(client, log, name, time.monotonic() + seconds, resources)
    client.close()


def load(connects, folder, seconds, resources):
    """Let workers live side by side; answers what they wrote down."""
    paths = [folder / f"w{n}.log" for n in range(len(connects))]
    clients.together([
        functools.partial(live, connect, path, path.stem, seconds, resources)
        for connect, path in zip(connects, paths)])
    return checker.read(paths)


def unknown(ops):
    return [str(op) for op in ops if op.outcome == "unknown"]


def test_many_processes_on_one_file_agree_and_none_gets_busy(db, tmp_path):
    """C065"""
    con = db()
    con.execute("PRAGMA journal_mode=WAL").fetchall()
    con.execute("SELECT lease_init()").fetchall()
    ops = load([functools.partial(clients.Sql, tmp_path / "lease.db")] * 6,
               tmp_path, 3, RESOURCES)
    assert not unknown(ops)
    assert checker.answered(ops)
    assert checker.problems(ops, checker.events(con)) == []


def test_sql_and_http_side_by_side_agree(service, tmp_path):
    ops = load([functools.partial(clients.Sql, service.db),
                functools.partial(clients.Http, service.port)] * 3,
               tmp_path, 3, RESOURCES)
    assert not unknown(ops)
    con = support.connect(str(service.db))
    assert checker.problems(ops, checker.events(con)) == []
    con.close()


def test_a_lease_lasts_no_less_than_its_ttl_from_the_moment_of_asking(db):
    """C049: A client counts from the moment it sent the request: nobody else may
    have the resource before that count is over, not by a millisecond's part."""
    con = db(":memory:")        # no fsync hides the instant of the decision
    one(con, "SELECT lease_init()")
    ttl = 0.1
    for number in range(30):
        asked = checker.now_ns()
        one(con, "SELECT lease_grant(?, 'a', ?)", f"r{number}", ttl)
        time.sleep(ttl - 0.01)
        while one(con, "SELECT lease_grant(?, 'b', 60)",
                  f"r{number}") is None:
            pass
        early = ttl * 1e3 - (checker.now_ns() - asked) / 1e6
        assert early <= 0, f"given to another {early:.3f} ms too early"


# --- the shell beside the service ---------------------------------------------

def test_the_shell_sees_and_makes_leases_beside_the_running_service(service):
    http = clients.Http(service.port)
    token, _ = http.grant("r", "by http", 30)
    said = support.shell(
        "SELECT resource, holder, token FROM lease_active;\n"
        "SELECT coalesce(lease_grant('r', 'by shell', 30), 'refused');\n"
        "SELECT lease_grant('q', 'by shell', 30);\n", service.db)
    lines = said.splitlines()
    assert lines[:2] == [f"r|by http|{token}", "refused"]
    assert int(lines[2]) > token
    assert http.grant("q", "by http", 30) is None
    status, answer = http.post("check", resource="q", token=int(lines[2]))
    assert status == 200 and answer["holder"] == "by shell"


@pytest.mark.limit(60)
def test_the_service_bears_the_shell_that_does_what_it_likes(service,
                                                             tmp_path):
    """C080: Dumps, checkpoints, VACUUM and a change of journal mode, all day."""
    stop = time.monotonic() + 3
    nuisance = clients.FORK.Process(target=nuisances,
                                    args=(service.db, stop), daemon=True)
    nuisance.start()
    ops = load([functools.partial(clients.Http, service.port)] * 3,
               tmp_path, 3, RESOURCES)
    nuisance.join()
    assert not unknown(ops)
    con = support.connect(str(service.db))
    assert checker.problems(ops, checker.events(con)) == []
    assert one(con, "PRAGMA integrity_check") == "ok"
    assert one(con, "PRAGMA journal_mode") == "wal"
    con.close()


def nuisances(path, stop):
    while time.monotonic() < stop:
        for script in ("SELECT count(*) FROM lease_event;", ".dump\n",
                       "PRAGMA wal_checkpoint(TRUNCATE);", "VACUUM;",
                       "PRAGMA journal_mode=DELETE;"):
            support.shell(script, path, loaded=False)
