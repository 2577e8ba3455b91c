"""What went wrong elsewhere, over HTTP: cases of tests/PROOF.md that no other
test of the service covers. The id in a docstring (C001) names the case."""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import socket
import threading
import time

import pytest

import support
from service import Service, alive, stand_still, wait_for
from test_http_life import Load, held_lock, tokens_in


@pytest.fixture(scope="module")
def shared(build, tmp_path_factory):
    """For tests with names of their own, that leave no lease."""
    with Service(tmp_path_factory.mktemp("cases")) as running:
        pid = running.pid
        yield running
        assert running.pid == pid


JSON = {"Content-Type": "application/json"}


def events(service, resource="r"):
    told = service.get(f"/v1/events?resource={resource}").json["events"]
    return [(e["event"], e["holder"], e["token"]) for e in told]


def leases(service, query=""):
    return service.get("/v1/leases" + query).json["leases"]


# --- ownership ------------------------------------------------------------------

@pytest.mark.parametrize("taken", [False, True])
def test_who_comes_back_too_late_changes_nothing(service, clock, taken):
    """C001, C005, C012, C064"""
    first = service.post("grant", resource="r", holder="a", ttl=3).json
    clock.advance(10)
    if taken:
        service.post("grant", resource="r", holder="b", ttl=60)
    before, told = leases(service), events(service)
    late = service.post("renew", resource="r", token=first["token"])
    assert (late.status, late.code) == (410, "expired")
    over = service.post("release", resource="r", token=first["token"])
    assert over.json == {"released": False, "why": "expired"}
    assert leases(service) == before and events(service)[:2] == told[:2]
    again = service.post("grant", resource="r", holder="a", ttl=60)
    assert again.status == (409 if taken else 200)
    held, = leases(service)
    assert held["holder"] == ("b" if taken else "a")
    assert held["token"] > first["token"]
    assert [e[0] for e in events(service)] == ["granted", "expired", "granted"]
    # Held is held, also by a holder of the same name.
    same = service.post("grant", resource="r", holder=held["holder"], ttl=60)
    assert same.status == 409 and leases(service) == [held]


def test_only_a_token_of_the_tenure_renews_it(service, clock):
    """C010, C063: a lost reply to a renewal costs nothing."""
    token = service.post("grant", resource="r", holder="a", ttl=5).json["token"]
    while token < 7:
        token = service.post("renew", resource="r", token=token,
                             ttl=5).json["token"]
        clock.advance(4)
    for wrong, status in ((6, 410), (8, 404), (2 ** 53 - 1, 404)):
        answer = service.post("renew", resource="r", token=wrong)
        assert answer.status == status, wrong
    once, twice = (service.post("renew", resource="r", token=7).json["token"]
                   for _ in range(2))
    assert (once, twice) == (8, 9)
    assert [e[2] for e in events(service)] == list(range(1, 10))


def test_what_was_renewed_is_there_whatever_is_swept_beside_it(service):
    """C003"""
    ttl = {f"r{i}": 0.5 + i / 100 for i in range(300)}

    def batch(op, wanted, **fields):
        if not wanted:
            return {}
        answer = service.post("batch", ops=[
            dict(op=op, resource=r, **{k: v[r] for k, v in fields.items()})
            for r in wanted]).json["results"]
        return dict(zip(wanted, answer))

    def grant(wanted):
        """What of it was stored before it ran out."""
        told = batch("grant", wanted, holder=dict.fromkeys(ttl, "a"), ttl=ttl)
        assert {told[r]["status"] for r in wanted} <= {200, 503}
        return {r: told[r]["token"] for r in wanted if "token" in told[r]}

    tokens, found = grant(ttl), 0
    for _ in range(3):
        time.sleep(0.6)     # for some it is too late then: so it should be
        sent = time.monotonic()
        told = batch("renew", tokens, ttl=ttl, token=tokens)
        kept = [r for r in tokens if told[r]["status"] == 200]
        assert {told[r]["status"] for r in tokens} <= {200, 410, 503}
        seen = batch("check", kept, token={r: told[r]["token"] for r in kept})
        passed = time.monotonic() - sent
        assert not [r for r in kept
                    if ttl[r] > passed and seen[r]["status"] != 200]
        found += len(kept)
        tokens = {r: told[r]["token"] for r in kept} | grant(
            [r for r in ttl if r not in kept])
    assert found


def test_a_release_in_the_instant_of_expiry_is_no_fault(shared):
    """C008"""
    def round_(number):
        name, con = f"instant/{number}", shared.connect()
        token = shared.post("grant", con=con, resource=name, holder="a",
                             ttl=0.1).json["token"]
        time.sleep(0.085 + number % 20 / 1000)
        answer = shared.post("release", con=con, resource=name, token=token)
        assert answer.status == 200
        assert answer.json in ({"released": True, "why": "released"},
                               {"released": False, "why": "expired"})
        free = shared.post("grant", con=con, resource=name, holder="b",
                           ttl=0.1)
        con.close()
        return free.status, answer.json["released"]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(round_, range(support.scaled(100, 20))))
    assert {status for status, _ in ended} == {200}


def test_all_that_counts_leases_counts_the_same(service, clock):
    """C016"""
    got = [service.post("grant", resource=f"r{i}", holder="h",
                        ttl=1 if i < 2 else 60).json for i in range(10)]
    for lease in got[2:5]:
        for released in (True, False):
            answer = service.post("release", resource=lease["resource"],
                                  token=lease["token"])
            assert answer.json["released"] is released
    service.post("renew", resource="r5", token=got[5]["token"])
    clock.advance(1)
    assert len(leases(service)) == 5
    assert service.get("/v1/status").json["leases"]["active"] == 5
    assert "\nleasehold_active_leases 5\n" in \
        service.get("/metrics").body.decode()
    with contextlib.closing(support.connect(service.db, clocked=True)) as con:
        assert support.one(con, "SELECT count(*) FROM lease_active") == 5


# --- time -----------------------------------------------------------------------

def test_a_ttl_out_of_bounds_is_refused_also_to_a_renewal(service):
    """C031"""
    token = service.post("grant", resource="r", holder="a").json["token"]
    for ttl in (2 ** 63 - 1, 2 ** 63 - 808, 2 ** 62, 2 ** 50, 1e15, 1e18, 1e19,
                2 ** 31, 2 ** 32, 86400.001, 0.0994, -1):
        for answer in (service.post("renew", resource="r", token=token,
                                    ttl=ttl),
                       service.post("grant", resource="q", holder="a",
                                    ttl=ttl)):
            assert (answer.status, answer.code) == (422, "invalid")
            assert "0.1 to 86400" in answer.json["errors"][0]["msg"]
    assert len(events(service)) == 1 and not leases(service, "?resource=q")


def test_a_lease_ends_at_its_ttl_and_not_at_twice(shared):
    """C034, C036: nobody else asks the service for anything meanwhile."""
    sent = time.monotonic()
    lease = shared.post("grant", resource="once", holder="a", ttl=2).json
    shared.post("renew", resource="once", token=lease["token"], ttl=2)
    renewed = time.monotonic()
    with contextlib.closing(support.connect(shared.db)) as con:
        while not support.one(con, "SELECT lease_grant('once', 'b', 0.1)"):
            time.sleep(0.01)
    ended = time.monotonic()
    assert ended - sent >= 2 and ended - renewed < 2 + support.patience(1.5)


@pytest.mark.parametrize("wall", [-3600, 3600, None])
def test_a_wall_clock_that_is_set_ends_no_lease_of_the_service(service, clock,
                                                              wall):
    """C044"""
    first = service.post("grant", resource="r", holder="a", ttl=60).json
    if wall is None:
        clock.set_wall(0)
    else:
        clock.step_wall(wall)
    clock.advance(20)
    lease, = leases(service)
    assert lease["remaining"] == 40
    newer = service.post("renew", resource="r", token=first["token"]).json
    assert newer["token"] > first["token"] and newer["remaining"] == 60
    clock.advance(59.999)
    assert service.post("grant", resource="r", holder="b").status == 409
    clock.advance(0.001)
    assert leases(service) == []
    assert service.post("grant", resource="r", holder="b").status == 200


def test_a_renewal_stored_too_late_is_never_told_to_have_worked(service,
                                                                clock):
    """C171: the disk, or who holds the lock, takes longer than the lease."""
    lease = service.post("grant", resource="r", holder="a", ttl=10).json
    con = held_lock(service.db)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        late = pool.submit(service.post, "renew", resource="r",
                           token=lease["token"], ttl=10)
        wait_for(lambda: service.get("/v1/status").json["queue"]["waiting"])
        clock.advance(10)
        con.execute("ROLLBACK")
        con.close()
        assert (late.result().status, late.result().code) == (410, "expired")
    assert service.post("grant", resource="r", holder="b").json["token"] > \
        lease["token"]


def test_leases_end_though_the_service_sleeps_and_it_makes_up_for_it(
        service, clock):
    """C173"""
    count = support.scaled(3000)
    with contextlib.closing(support.connect(service.db, clocked=True)) as con:
        con.execute("BEGIN IMMEDIATE")
        for i in range(count):
            con.execute("SELECT lease_grant(?, 'a', 5)", (f"r{i}",)).fetchall()
        con.execute("COMMIT")
        stand_still(service.pid)
        try:
            clock.advance(60)
            assert support.one(con, "SELECT count(*) FROM lease_active") == 0
            assert support.one(con, "SELECT lease_grant('r0', 'b', 60)")
        finally:
            os.kill(service.pid, signal.SIGCONT)
        wait_for(lambda: support.one(
            con, "SELECT count(*) FROM lease_event WHERE event = 'expired'"
        ) == count, 30, "all are swept")
        assert con.execute("SELECT resource, holder FROM lease").fetchall() \
            == [("r0", "b")]


# --- the web server in between --------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_end_of_the_web_server_loses_no_answer(service, number):
    """C126: with grants under way."""
    with Load(service, 4) as load:
        pid = service.pid
        service.end(number)
    assert not alive(pid)
    assert not service.db.with_name("lease.db-wal").exists()
    granted = load.granted()
    assert len(set(granted)) == len(granted)
    assert set(granted) <= tokens_in(service.db)
    service.start().wait_ready()
    answer = service.post("grant", resource="after", holder="a")
    assert answer.json["token"] > max(granted)


def test_a_hang_up_ends_nothing(shared):
    """C125: what a logrotate may send."""
    pid = shared.pid
    os.kill(shared.lighttpd, signal.SIGHUP)
    for _ in range(20):
        assert shared.get("/healthz").status == 200
    assert shared.pid == pid and alive(shared.lighttpd)


POST = (b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\n%s\r\n\r\n")
GOOD = b'{"resource":"cut","holder":"h","ttl":30}'


def test_a_body_that_ends_early_or_not_at_all_acts_on_nothing(shared):
    """C116, C135"""
    for length in (b"Content-Length: 0",
                   b"Transfer-Encoding: chunked\r\n\r\n0"):
        said = shared.raw(POST % length)
        assert b" 400 " in said and b"application/problem+json" in said
    with socket.create_connection(("127.0.0.1", shared.port)) as con:
        con.sendall(POST % b"Content-Length: 100" + GOOD)
        con.shutdown(socket.SHUT_WR)
        con.settimeout(support.patience(30))
        with contextlib.suppress(ConnectionError):
            assert b" 200 " not in con.recv(4096)
    assert events(shared, "cut") == []


def test_a_slow_reader_gets_a_large_answer_whole(service):
    """C128"""
    with contextlib.closing(support.connect(service.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        for i in range(150):
            con.execute("SELECT lease_grant(?, 'h', 600, 1, ?)",
                        (f"r{i:03}", "x" * 4000)).fetchall()
        con.execute("COMMIT")
    whole = service.get("/v1/leases?limit=1000").json
    with socket.socket() as con:
        con.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        con.settimeout(support.patience(30))
        con.connect(("127.0.0.1", service.port))
        con.sendall(b"GET /v1/leases?limit=1000 HTTP/1.0\r\n"
                    b"Host: localhost\r\n\r\n")
        parts = []
        while part := con.recv(8192):
            parts.append(part)
            if len(parts) % 20 == 1:
                # Others are served meanwhile.
                assert service.get("/healthz").status == 200
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    assert b" 200 " in head and len(body) > 400_000
    told = json.loads(body)
    assert told["next"] == whole["next"]
    assert [e["token"] for e in told["leases"]] == \
        [e["token"] for e in whole["leases"]]


# --- JSON -----------------------------------------------------------------------

def test_every_form_of_a_json_number_counts(shared):
    """C042, C140"""
    for number, ttl in (("1E2", 100), ("1e0", 1), ("30.9", 30.9),
                        ("3.00e1", 30)):
        answer = shared.post_raw("grant", GOOD.replace(
            b"30", number.encode()).replace(b"cut", b"form"))
        assert (answer.status, answer.json["ttl"]) == (200, ttl)
        shared.post("revoke", resource="form")


def test_deep_nesting_is_refused_at_once(shared):
    """C142"""
    for data, status in (
            (b"[" * 60_000, 400), (b'{"a":' * 12_000, 400),
            (b'{"a":' * 1_000_000, 413),
            (b'{"x":' + b"[" * 31 + b"]" * 31 + b"}", 422),
            (GOOD[:-1] + b',"x":' + b"[" * 40 + b"]" * 40 + b"}", 400)):
        start = time.monotonic()
        assert shared.post_raw("grant", data).status == status
        assert time.monotonic() - start < support.patience(2)


def test_an_error_names_field_and_bound_and_repeats_little(shared):
    """C147"""
    for fields, field, bound in (
            ({}, "resource", "required"), ({"resource": 5}, "resource", "text"),
            ({"resource": "x" * 600}, "resource", "512"),
            ({"ttl": 1e9}, "ttl", "86400"),
            ({"capacity": 0}, "capacity", "10000"),
            ({"y" * 50_000: 1}, "y" * 10, "")):
        answer = shared.post("grant", **({"holder": "h"} | fields))
        assert (answer.status, answer.code) == (422, "invalid")
        assert [e for e in answer.json["errors"] if bound in e["msg"]
                and e["loc"][1].startswith(field)]
        assert not re.search(r"SELECT|INSERT|lease\.db|/tmp",
                             answer.body.decode())
        assert len(answer.body) < 1000


# --- load -----------------------------------------------------------------------

def test_clients_that_give_up_leave_nothing_behind(shared):
    """C180: a service that is slow for a while, and 20 clients that stop
    waiting after 0.2 s and ask again."""
    con = held_lock(shared.db)
    stop = threading.Event()

    def waiting():
        return shared.get("/v1/status").json["queue"]["waiting"]

    def insist(number):
        body = json.dumps({"resource": f"given up/{number}", "holder": "h"})
        while not stop.is_set():
            own = shared.connect(timeout=0.2)
            with contextlib.suppress(OSError):
                shared.request("POST", "/v1/grant", body, JSON, con=own)
            own.close()

    threads = [threading.Thread(target=insist, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    wait_for(lambda: waiting() >= 40, what="they come again")
    stop.set()
    for thread in threads:
        thread.join()
    con.execute("ROLLBACK")
    con.close()
    wait_for(lambda: not waiting())
    assert leases(shared, "?prefix=given up".replace(" ", "%20")) == []


def test_who_comes_in_a_burst_is_answered_renewals_too(shared):
    """C178"""
    token = shared.post("grant", resource="burst", holder="h",
                        ttl=600).json["token"]
    renewal = json.dumps({"resource": "burst", "token": token}).encode()
    sent = []
    for i in range(500):
        route, body = (b"grant", b'{"resource":"burst%d","holder":"h","ttl":600}'
                       % i) if i % 10 else (b"renew", renewal)
        con = socket.create_connection(("127.0.0.1", shared.port),
                                       support.patience(60))
        con.sendall((POST % b"Content-Length: %d" % len(body)).replace(
            b"grant", route) + body)
        sent.append(con)
    for con in sent:
        with con, con.makefile("rb") as file:
            assert file.read().startswith(b"HTTP/1.1 200 ")
    with contextlib.closing(support.connect(shared.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        con.execute("SELECT lease_revoke(resource) FROM lease "
                    "WHERE resource GLOB 'burst*'").fetchall()
        con.execute("COMMIT")
    assert "level=error" not in shared.log()
