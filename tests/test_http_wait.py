"""POST /v1/grant with wait: first come, first served, behind a real lighttpd.
What is asserted about times is generous; tests/bench/wait.py measures.
"""

import concurrent.futures
import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import struct
import threading
import time

import pytest

import support
from service import Answer, Service, wait_for
from stream import Stream


PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("wait")) as running:
        yield running


@pytest.fixture
def own(tmp_path):
    with Service(tmp_path) as running:
        yield running


@pytest.fixture(autouse=True)
def nobody_waits(request):
    yield
    if "service" in request.fixturenames:
        service = request.getfixturevalue("service")
        wait_for(lambda: waiting(service) == 0, what="nobody waits any more")


def waiting(service):
    return service.get("/v1/status").json["parked"]["grants"]


class Waiter:
    """A grant on its way, sent by a socket of its own."""

    def __init__(self, service, wait=30, key=None, settled=True, fast=False,
                 **fields):
        self.service = service
        before = waiting(service) if settled else None
        body = json.dumps(dict(wait=wait, **fields)).encode()
        keyed = f"Idempotency-Key: {key}\r\n" if key else ""
        self.text = (
            f"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n{keyed}"
            "Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        self.socket = socket.socket()
        if fast:        # in the packet that connects, where both sides can
            self.socket.sendto(self.text, socket.MSG_FASTOPEN,
                               ("127.0.0.1", service.port))
        else:
            self.socket.connect(("127.0.0.1", service.port))
            self.socket.sendall(self.text)
        self.socket.settimeout(60)
        if settled:
            wait_for(lambda: waiting(service) > before, what="it waits")

    def answer(self):
        """What came; closes."""
        file = self.socket.makefile("rb")
        head = iter(lambda: file.readline().decode().strip(), "")
        status = int(next(head).split()[1])
        headers = dict(line.split(": ", 1) for line in head)
        body = file.read(int(headers["Content-Length"]))
        file.close()
        self.socket.close()
        return Answer(status, headers, body)

    def answered(self):
        """Has anything come?"""
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        self.socket.settimeout(60)
        return False

    def leave(self, how="close"):
        if how == "reset":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   struct.pack("ii", 1, 0))
        if how == "half close":
            self.socket.shutdown(socket.SHUT_WR)
        else:
            self.socket.close()


def hold(service, resource, holder="holder", ttl=60, **fields):
    answer = service.post("grant", resource=resource, holder=holder, ttl=ttl,
                          **fields)
    assert answer.status == 200
    return answer.json


def release(service, lease):
    answer = service.post("release", resource=lease["resource"],
                          token=lease["token"])
    assert answer.json["released"] is True


# --- waiting ------------------------------------------------------------------

def test_a_free_resource_is_granted_at_once(service):
    lease = hold(service, "free", wait=60)
    assert "waited" not in lease
    release(service, lease)


def test_a_waiter_gets_what_is_released_and_its_ttl_starts_then(service):
    """C049"""
    lease = hold(service, "given")
    waiter = Waiter(service, resource="given", holder="next", ttl=5)
    time.sleep(0.3)
    assert not waiter.answered()
    start = time.monotonic()
    release(service, lease)
    got = waiter.answer()
    assert got.status == 200 and time.monotonic() - start < support.patience(5)
    assert got.json["holder"] == "next" and got.json["remaining"] == 5
    assert 0.3 <= got.json["waited"] < 10
    assert got.json["token"] > lease["token"]
    release(service, got.json)


def test_when_the_time_is_over_the_answer_says_who_holds_and_who_waits(
        service):
    lease = hold(service, "kept")
    start = time.monotonic()
    first = Waiter(service, resource="kept", holder="first", wait=20)
    second = Waiter(service, resource="kept", holder="second", wait=0.5)
    answer = second.answer()
    assert 0.5 <= time.monotonic() - start < support.patience(10)
    assert answer.status == 409 and answer.code == "held"
    assert answer.json["ahead"] == 1
    assert [h["holder"] for h in answer.json["holders"]] == ["holder"]
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    only = service.post("grant", resource="kept", holder="third")
    assert only.status == 409 and only.json["ahead"] == 1
    release(service, lease)
    release(service, first.answer().json)


def test_first_come_first_served(service):
    lease = hold(service, "queue")
    line = [Waiter(service, resource="queue", holder=f"h{i}")
            for i in range(10)]
    tokens = [lease["token"]]
    for waiter in line:
        release(service, lease)
        lease = waiter.answer().json
        tokens.append(lease["token"])
    assert tokens == sorted(tokens)
    release(service, lease)


def test_nobody_overtakes_those_who_wait(service):
    lease = hold(service, "fair", capacity=5)
    writer = Waiter(service, resource="fair", holder="writer", capacity=1)
    # It would fit beside the holder, but not before the writer.
    refused = service.post("grant", resource="fair", holder="reader",
                           capacity=5)
    assert refused.status == 409 and refused.json["ahead"] == 1
    reader = Waiter(service, resource="fair", holder="reader", capacity=5)
    release(service, lease)
    lease = writer.answer().json
    assert not reader.answered()
    release(service, lease)
    release(service, reader.answer().json)


@pytest.mark.parametrize("how", ["close", "reset", "time over"])
def test_who_fits_is_served_when_the_one_before_no_longer_waits(service, how):
    lease = hold(service, "head", capacity=2)
    wait = 2 if how == "time over" else 30
    writer = Waiter(service, resource="head", holder="writer", wait=wait)
    reader = Waiter(service, resource="head", holder="reader", capacity=2)
    start = time.monotonic()
    if how == "time over":
        assert writer.answer().status == 409
    else:
        writer.leave(how)
    got = reader.answer().json
    assert time.monotonic() - start < support.patience(wait % 30 + 5)
    release(service, got)
    release(service, lease)


def test_several_are_served_at_once_as_far_as_the_capacity_goes(service):
    lease = hold(service, "pool")
    readers = [Waiter(service, resource="pool", holder=f"r{i}", capacity=3)
               for i in range(3)]
    writer = Waiter(service, resource="pool", holder="w")
    late = Waiter(service, resource="pool", holder="late", capacity=3)
    release(service, lease)
    got = [r.answer().json for r in readers]
    assert not writer.answered() and not late.answered()
    for one in got:
        release(service, one)
    release(service, writer.answer().json)
    release(service, late.answer().json)


def test_one_permit_that_comes_free_goes_to_one_waiter(service):
    held = [hold(service, "permits", holder=f"h{i}", capacity=2)
            for i in range(2)]
    first, second = (Waiter(service, resource="permits", holder=h, capacity=2)
                     for h in "ab")
    release(service, held[0])
    lease = first.answer().json
    assert not second.answered()
    release(service, held[1])
    release(service, second.answer().json)
    release(service, lease)


# --- what frees a resource ------------------------------------------------------

def by_expiry(_service, _lease):
    pass


def by_revoke(service, lease):
    service.post("revoke", resource=lease["resource"])


def by_sql(service, lease):
    with contextlib.closing(support.connect(service.db)) as con:
        assert support.one(con, "SELECT lease_release(?, ?)",
                           lease["resource"], lease["token"]) == 1


@pytest.mark.parametrize("free, ttl", [
    (by_revoke, 60), (by_sql, 60), (by_expiry, 1)])
def test_a_waiter_gets_what_is_freed_in_any_way(service, free, ttl):
    """C036"""
    lease = hold(service, f"freed/{free.__name__}", ttl=ttl)
    waiter = Waiter(service, resource=lease["resource"], holder="next")
    start = time.monotonic()
    free(service, lease)
    got = waiter.answer()
    assert got.status == 200
    assert time.monotonic() - start < ttl % 60 + support.patience(5)
    release(service, got.json)


def test_a_lease_of_another_process_is_waited_for_until_it_runs_out(service):
    """C036"""
    with contextlib.closing(support.connect(service.db)) as con:
        assert support.one(con, "SELECT lease_grant('foreign', 'sql', 0.7)")
    start = time.monotonic()
    waiter = Waiter(service, resource="foreign", holder="next")
    got = waiter.answer()
    assert got.status == 200 and time.monotonic() - start < support.patience(5)
    release(service, got.json)


def test_a_holder_that_overtook_by_sql_is_waited_for_in_turn(service):
    lease = hold(service, "raced")
    waiter = Waiter(service, resource="raced", holder="next")
    with contextlib.closing(support.connect(service.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        con.execute("SELECT lease_release('raced', ?)",
                    (lease["token"],)).fetchall()
        con.execute("SELECT lease_grant('raced', 'sql', 0.5)").fetchall()
        con.execute("COMMIT")
    assert not waiter.answered()
    start = time.monotonic()
    got = waiter.answer()
    assert got.status == 200 and time.monotonic() - start < support.patience(5)
    release(service, got.json)


def test_one_name_waits_for_itself(service):
    lease = hold(service, "self", holder="me")
    waiter = Waiter(service, resource="self", holder="me", capacity=5)
    assert not waiter.answered()
    release(service, lease)
    release(service, waiter.answer().json)


# --- clients that leave -----------------------------------------------------------

@pytest.mark.parametrize("how", ["close", "reset", "half close"])
def test_who_leaves_loses_its_place_and_gets_nothing(service, how):
    lease = hold(service, f"left/{how}")
    leaver = Waiter(service, resource=lease["resource"], holder="leaver")
    stayer = Waiter(service, resource=lease["resource"], holder="stayer")
    leaver.leave(how)
    wait_for(lambda: waiting(service) == 1, 5, "it has lost its place")
    release(service, lease)
    got = stayer.answer().json
    assert got["holder"] == "stayer"
    release(service, got)
    events = service.get(f"/v1/events?after={lease['token']}").json["events"]
    assert "leaver" not in {e["holder"] for e in events}
    leaver.socket.close()


@pytest.mark.parametrize("how", ["close", "reset", "half close"])
def test_who_leaves_in_the_moment_before_gets_nothing(service, how):
    lease = hold(service, f"just left/{how}")
    leaver = Waiter(service, resource=lease["resource"], holder="leaver")
    stayer = Waiter(service, resource=lease["resource"], holder="stayer")
    con = service.connect()
    con.connect()
    leaver.leave(how)
    service.post("release", con=con, resource=lease["resource"],
                 token=lease["token"])
    con.close()
    got = stayer.answer().json
    assert got["holder"] == "stayer"
    release(service, got)
    leaver.socket.close()


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("how", ["close", "reset", "half close"])
def test_who_leaves_right_after_asking_is_not_waited_for(service, how, fast):
    """The request and the end of the connection come in one go."""
    lease = hold(service, f"hasty/{how}/{fast}")
    leavers = [Waiter(service, settled=False, resource=lease["resource"],
                      holder=f"h{i}", fast=fast) for i in range(20)]
    for leaver in leavers:
        leaver.leave(how)
    stayer = Waiter(service, settled=False, resource=lease["resource"],
                    holder="stayer")
    wait_for(lambda: waiting(service) == 1, 5, "only one waits")
    release(service, lease)
    got = stayer.answer().json
    assert got["holder"] == "stayer" and got["token"] <= lease["token"] + 2
    release(service, got)
    for leaver in leavers:
        leaver.socket.close()


def test_a_request_in_the_packet_that_connects_waits_like_any_other(service):
    lease = hold(service, "fast")
    waiter = Waiter(service, resource="fast", holder="next", fast=True)
    time.sleep(0.1)
    release(service, lease)
    release(service, waiter.answer().json)


def test_who_leaves_with_the_answer_under_way_gets_it_again_by_its_key(
        service):
    lease = hold(service, "moment")
    waiter = Waiter(service, resource="moment", holder="next", ttl=30,
                    key="moment-1")
    release(service, lease)
    wait_for(waiter.answered)
    waiter.leave("reset")
    again = service.post("grant", {"Idempotency-Key": "moment-1"},
                         resource="moment", holder="next", ttl=30)
    assert again.status == 200
    release(service, again.json)


# --- the same request again ---------------------------------------------------------

def test_the_same_request_again_takes_over_the_place(service):
    lease = hold(service, "again")
    first = Waiter(service, resource="again", holder="me", key="k1")
    other = Waiter(service, resource="again", holder="other")
    second = Waiter(service, settled=False, resource="again", holder="me",
                    key="k1", wait=25)
    answer = first.answer()
    assert answer.status == 409 and answer.code == "taken_over"
    assert waiting(service) == 2
    release(service, lease)
    got = second.answer().json
    assert got["holder"] == "me"
    release(service, got)
    release(service, other.answer().json)


def test_the_same_key_with_other_arguments_is_refused(service):
    lease = hold(service, "mixed")
    first = Waiter(service, resource="mixed", holder="me", key="k2", ttl=10)
    other = service.post("grant", {"Idempotency-Key": "k2"},
                         resource="mixed", holder="me", ttl=11, wait=5)
    assert other.status == 422 and other.code == "idempotency_mismatch"
    release(service, lease)
    release(service, first.answer().json)


def test_a_repeated_request_gets_its_lease_though_others_wait(service):
    key = {"Idempotency-Key": "k3"}
    fields = dict(resource="repeat", holder="me", ttl=30, wait=5)
    lease = service.post("grant", key, **fields).json
    waiter = Waiter(service, resource="repeat", holder="next")
    again = service.post("grant", key, **fields)
    assert again.status == 200 and again.json["token"] == lease["token"]
    release(service, lease)
    over = service.post("grant", key, **fields)
    assert over.status == 410
    release(service, waiter.answer().json)


# --- trouble ----------------------------------------------------------------------

def test_the_end_of_the_service_answers_those_who_wait(own):
    hold(own, "ending")
    waiters = [Waiter(own, resource="ending", holder=f"h{i}")
               for i in range(20)]
    start = time.monotonic()
    os.kill(own.pid, signal.SIGTERM)
    for waiter in waiters:
        answer = waiter.answer()
        assert answer.status == 503 and answer.code == "stopping"
        assert int(answer.headers["Retry-After"]) >= 1
    assert time.monotonic() - start < support.patience(5)


def test_a_foreign_lock_delays_those_who_wait_and_loses_nobody(service):
    lease = hold(service, "locked", ttl=0.5)
    waiter = Waiter(service, resource="locked", holder="next")
    with contextlib.closing(support.connect(service.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        time.sleep(1.2)
        assert not waiter.answered()
        con.execute("COMMIT")
    got = waiter.answer()
    assert got.status == 200 and got.json["token"] > lease["token"]
    release(service, got.json)


@contextlib.contextmanager
def locked(service):
    """Another process holds the write lock."""
    with contextlib.closing(support.connect(service.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        yield con
        con.execute("ROLLBACK")


def test_under_a_foreign_lock_a_wait_ends_though_others_ask(own):
    hold(own, "r")
    waiter = Waiter(own, resource="r", holder="next", wait=0.5)
    over = threading.Event()

    def ask(number):
        over.wait(1.5 * number)     # so that always one is on its way
        while not over.is_set():
            own.post("grant", resource=f"other{number}", holder="a")

    with locked(own), concurrent.futures.ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask, i) for i in range(3)]
        try:
            wait_for(waiter.answered, 15, "its wait is over")
        finally:
            over.set()
        assert waiter.answer().code == "busy"
    for thread in asking:
        thread.result()


def test_who_asks_again_is_not_put_off_by_its_own_first_try(own):
    """The first try's time is over while another process has the lock."""
    lease = hold(own, "r")
    first = Waiter(own, resource="r", holder="me", key="k", wait=1)
    with locked(own):
        other = Waiter(own, settled=False, resource="other", holder="a")
        second = Waiter(own, settled=False, resource="r", holder="me",
                        key="k", wait=30)
        wait_for(lambda: own.get("/v1/status").json["queue"]["waiting"] == 3,
                 what="the first try is over")
    assert other.answer().status == 200
    assert first.answer().code in ("held", "taken_over")
    wait_for(lambda: waiting(own) == 1, what="the second waits")
    release(own, lease)
    assert second.answer().status == 200


def test_what_was_trimmed_before_it_was_seen_is_no_wait_for_ever(own):
    hold(own, "r")
    waiter = Waiter(own, resource="r", holder="next", wait=60)
    with contextlib.closing(support.connect(own.db)) as con:
        support.one(con, "SELECT lease_config('event_rows', 1000)")
        con.execute("BEGIN IMMEDIATE")
        assert support.one(con, "SELECT lease_revoke('r')") == 1
        for _ in range(1500):
            token = support.one(con, "SELECT lease_grant('z', 'a', 30)")
            support.one(con, "SELECT lease_release('z', ?)", token)
        con.execute("COMMIT")
        assert support.one(con, "SELECT count(*) FROM lease_event"
                                " WHERE event = 'revoked'") == 0
    wait_for(waiter.answered, 20, "its turn has come")
    assert waiter.answer().status == 200


def test_on_a_full_disk_who_waits_is_told(small_disk, tmp_path):
    """C071"""
    with Service(tmp_path, db=small_disk / "lease.db") as service:
        hold(service, "full", ttl=2)
        waiter = Waiter(service, resource="full", holder="next")
        other = Waiter(service, resource="full", holder="other")
        ballast = small_disk / "ballast"
        with open(ballast, "wb", 0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        # The log may still have room for a little.
        for i in range(400):
            if service.post("grant", resource=f"r{i}", holder="a",
                            data="x" * 4096).status == 507:
                break
        answers = [waiter.answer(), other.answer()]
        assert {a.status for a in answers} == {507}
        assert {a.code for a in answers} == {"storage_full"}
        ballast.unlink()
        release(service, hold(service, "full"))


def test_with_few_descriptors_few_may_wait_and_others_go_on(tmp_path):
    """C178"""
    few = tmp_path / "few"
    few.write_text(f"#!/bin/sh\nulimit -n 300\nexec "
                   f"{support.BUILD / 'lease-fcgi'}\n")
    few.chmod(0o755)
    service = Service(tmp_path)
    service.binary = few
    with service:
        most = service.get("/v1/status").json["parked"]["most"]
        assert most == (300 - 256) * 3 // 4
        assert "event=few_descriptors have=300" in service.log()
        hold(service, "few")
        line = [Waiter(service, resource="few", holder=f"h{i}")
                for i in range(most)]
        more = service.post("grant", resource="few", holder="x", wait=30)
        assert more.status == 503 and more.code == "overloaded"
        assert service.get("/v1/events?after=1&wait=30").status == 503
        hold(service, "something else")
        for waiter in line:
            waiter.leave()


def test_as_many_may_wait_as_leave_the_web_server_room_for_others(tmp_path):
    """C178"""
    few = tmp_path / "lighttpd"
    few.write_text(f'#!/bin/sh\nulimit -n 1000\n'
                   f'exec {shutil.which("lighttpd", path=PATH)} "$@"\n')
    few.chmod(0o755)
    with Service(tmp_path, PATH=f"{tmp_path}:{PATH}") as service:
        most = service.get("/v1/status").json["parked"]["most"]
        assert most == 1000 * 2 // 5
        hold(service, "room")
        line = [Waiter(service, settled=False, resource="room", holder=f"h{i}")
                for i in range(most)]
        wait_for(lambda: waiting(service) == most)
        more = [Waiter(service, settled=False, resource="room", holder=f"m{i}")
                for i in range(30)]
        for waiter in more:
            answer = waiter.answer()
            assert answer.status == 503 and answer.code == "overloaded"
        assert waiting(service) == most
        hold(service, "something else")
        for waiter in line:
            waiter.leave()
        wait_for(lambda: waiting(service) == 0)


# --- storms -------------------------------------------------------------------------

def rss_kib(service):
    text = open(f"/proc/{service.pid}/status").read()
    return int(text.split("VmRSS:")[1].split()[0])


@pytest.mark.limit(120)
def test_of_many_waiters_each_gets_its_turn_in_order_exactly_once(own):
    """C175"""
    count = support.scaled(500, 100)
    lease = hold(own, "storm")
    line = []
    for i in range(count):
        line.append(Waiter(own, wait=60, settled=False, resource="storm",
                           holder=f"h{i}"))
        if i % 50 == 49:
            wait_for(lambda: waiting(own) == i + 1)
    wait_for(lambda: waiting(own) == count)
    con = own.connect()
    tokens, groups = [], []
    with selectors.DefaultSelector() as ready:
        for i, waiter in enumerate(line):
            ready.register(waiter.socket, selectors.EVENT_READ, i)
        for _ in line:
            assert own.post("release", con=con, resource="storm",
                            token=lease["token"]).json["released"]
            (one, _), = ready.select(10)        # one, and only one
            ready.unregister(one.fileobj)
            lease = line[one.data].answer().json
            assert lease["holder"] == f"h{one.data}"
            tokens.append(lease["token"])
            groups.append(one.data // 50)
    # Those sent together may arrive in any order.
    assert groups == sorted(groups)
    assert tokens == sorted(set(tokens))
    assert waiting(own) == 0
    con.close()


@pytest.mark.limit(120)
def test_many_leases_that_expire_at_once_go_to_those_who_wait(own):
    count = support.scaled(1000, 100)
    with contextlib.closing(support.connect(own.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        for i in range(count):
            con.execute("SELECT lease_grant(?, 'sql', ?)",
                        (f"many/{i}", 6 + i / count)).fetchall()
        con.execute("COMMIT")
    waiters = [Waiter(own, wait=60, settled=False, ttl=60,
                      resource=f"many/{i}", holder="next")
               for i in range(count)]
    wait_for(lambda: waiting(own) == count)
    before = rss_kib(own)
    got = [w.answer() for w in waiters]
    assert {a.status for a in got} == {200}
    assert len({a.json["token"] for a in got}) == count
    assert waiting(own) == 0
    if not support.SAN:
        assert rss_kib(own) < before + 8192


@pytest.mark.parametrize("name", ["each/{}", "one"])
@pytest.mark.limit(120)
def test_more_than_a_transaction_takes_are_served_one_after_another(own, name):
    """Freed in one instant, of a resource each or of one for all."""
    count = 600
    names = [name.format(i) for i in range(count)]
    with contextlib.closing(support.connect(own.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        for resource in set(names):
            con.execute("SELECT lease_grant(?, 'sql', 60)",
                        (resource,)).fetchall()
        con.execute("COMMIT")
        line = [Waiter(own, wait=60, settled=False, resource=resource,
                       holder=f"h{i}", capacity=count)
                for i, resource in enumerate(names)]
        wait_for(lambda: waiting(own) == count, 30)
        con.execute("BEGIN IMMEDIATE")
        for resource in set(names):
            con.execute("SELECT lease_revoke(?)", (resource,)).fetchall()
        con.execute("COMMIT")
    got = [waiter.answer() for waiter in line]
    assert {answer.status for answer in got} == {200}
    assert len({answer.json["token"] for answer in got}) == count
    assert waiting(own) == 0


def test_a_thousand_parked_requests_hold_no_thread_and_little_memory(own):
    count = support.scaled(1000, 100)
    lease = hold(own, "parked")
    wait_for(lambda: "event=started" in own.log(), what="all threads are there")
    threads = len(os.listdir(f"/proc/{own.pid}/task"))
    line = [Waiter(own, wait=60, settled=False, resource="parked",
                   holder=f"h{i}") for i in range(count)]
    streams = [Stream(own) for _ in range(100)]
    wait_for(lambda: waiting(own) == count)
    assert len(os.listdir(f"/proc/{own.pid}/task")) == threads
    if not support.SAN:
        assert rss_kib(own) < 64 << 10
    start = time.monotonic()
    release(own, hold(own, "elsewhere"))
    assert time.monotonic() - start < support.patience(5)
    got = {s.next().data["resource"] for s in streams}
    assert got == {"elsewhere"}
    for stream in streams:
        stream.close()
    for waiter in line:
        waiter.leave()
    wait_for(lambda: waiting(own) == 0, 20)
    wait_for(lambda: len(os.listdir(f"/proc/{own.pid}/fd")) < 100, 20)
    release(own, lease)


def test_retries_while_the_first_attempt_waits_do_not_pile_up(own):
    """C180"""
    lease = hold(own, "retried")
    stop = time.monotonic() + 3
    def retry(i):
        while time.monotonic() < stop:
            with contextlib.suppress(OSError):
                waiter = Waiter(own, settled=False, resource="retried",
                                holder=f"h{i}", key=f"k{i}")
                time.sleep(0.1)
                waiter.leave()
    threads = [threading.Thread(target=retry, args=(i,)) for i in range(30)]
    for thread in threads:
        thread.start()
    while time.monotonic() < stop:
        assert waiting(own) <= 30
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    wait_for(lambda: waiting(own) == 0, 5)
    release(own, lease)
    assert own.get("/v1/leases?resource=retried").json["leases"] == []


def outdated(answer):
    assert (answer.status, answer.code) == (422, "invalid")
    (error,) = answer.json["errors"]
    assert error["loc"] == ["body", "ttl"]
    return "0.1 to 20 seconds" in error["msg"]


def test_the_bounds_of_a_ttl_are_those_of_the_grant_itself(own):
    """Set while a grant waits for its turn or for the lock; also of the usual
    ttl, and of one of many operations."""
    hold(own, "bound")
    waiter = Waiter(own, resource="bound", holder="w", ttl=3600)
    with contextlib.closing(support.connect(own.db)) as con, \
            concurrent.futures.ThreadPoolExecutor() as pool:
        con.execute("BEGIN IMMEDIATE")
        late = pool.submit(own.post, "grant", resource="late", holder="h",
                           ttl=3600)
        many = pool.submit(own.post, "batch", ops=[
            {"op": "grant", "resource": "one", "holder": "h", "ttl": 20},
            {"op": "grant", "resource": "two", "holder": "h", "ttl": 3600}])
        wait_for(lambda:
                 own.get("/v1/status").json["queue"]["waiting"] == 2)
        con.execute("SELECT lease_config('max_ttl', 20)").fetchall()
        con.execute("SELECT lease_revoke('bound')").fetchall()
        con.execute("COMMIT")
        assert outdated(waiter.answer()) and outdated(late.result())
        one, two = many.result().json["results"]
        assert one["status"] == 200
        assert two["status"] == 422 and two["code"] == "invalid"
    assert outdated(own.post("grant", resource="usual", holder="h"))
    assert "level=error" not in own.log()


def test_who_waits_is_told_in_turn(service):
    def told():
        return service.get("/v1/waiters?resource=told").json

    lease = service.post("grant", resource="told", holder="a", ttl=60).json
    assert told() == {"resource": "told", "waiting": 0, "waiters": []}
    names = ['say "b"', "c\\d", "é 🚀"]
    waiters = [Waiter(service, resource="told", holder=n) for n in names]
    answer = told()
    assert answer["waiting"] == 3
    assert [w["holder"] for w in answer["waiters"]] == names
    assert all(0 <= w["waited"] < 30 for w in answer["waiters"])
    service.post("release", resource="told", token=lease["token"])
    assert waiters[0].answer().status == 200
    assert [w["holder"] for w in told()["waiters"]] == names[1:]
    for waiter in waiters[1:]:
        waiter.socket.close()
    wait_for(lambda: told()["waiting"] == 0, what="those who left are gone")
