"""GET /v1/events: pages, long polls and streams, behind a real lighttpd. What
is asserted about times is generous; tests/bench/wait.py measures.
"""

import os
import random
import signal
import threading
import time
from datetime import datetime

import pytest

import support
from service import Service, wait_for
from stream import Stream


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("events")) as running:
        yield running


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path) as running:
        yield running


@pytest.fixture
def sql(shared):
    con = support.connect(shared.db)
    yield con
    con.close()


def newest(service):
    return service.get("/v1/status").json["leases"]["newest_token"]


def page(service, **query):
    path = "/v1/events?" + "&".join(f"{k}={v}" for k, v in query.items())
    return service.get(path)


def grant_many(con, count, name="many", data=None):
    """In one transaction, by another process than the service."""
    con.execute("BEGIN IMMEDIATE")
    for i in range(count):
        con.execute("SELECT lease_grant(?, 'sql', 600, 1, ?)",
                    (f"{name}/{i}", data)).fetchall()
    con.execute("COMMIT")


def instant(text):
    """An instant of an answer, in Unix seconds."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def numbers(con, after=0):
    return [n for n, in con.execute(
        "SELECT token FROM lease_event WHERE token > ? ORDER BY token",
        (after,))]


# --- pages -------------------------------------------------------------------

def test_a_page_tells_what_happened_in_order(shared):
    before = newest(shared)
    lease = shared.post("grant", resource="tale", holder="a", ttl=30,
                        capacity=2, data="seen").json
    renewed = shared.post("renew", resource="tale", token=lease["token"],
                          ttl=60).json
    shared.post("release", resource="tale", token=renewed["token"])
    shared.post("grant", resource="tale", holder="b", ttl=30)
    shared.post("revoke", resource="tale", holder="b", reason="because")
    told = page(shared, after=before).json
    assert [e["event"] for e in told["events"]] == \
        ["granted", "renewed", "released", "granted", "revoked"]
    assert told["next"] == told["events"][-1]["token"]
    first, second, third, _, last = told["events"]
    # A lease counts from the full millisecond after it was decided.
    early = instant(lease["granted_at"]) - instant(first.pop("at"))
    assert 0 <= round(early * 1000) <= 1
    assert first == {
        "token": lease["token"],
        "event": "granted", "resource": "tale", "holder": "a",
        "epoch": lease["token"], "ttl": 30, "capacity": 2,
        "expires_at": lease["expires_at"], "data": "seen", "reason": None,
        "actor": None}
    assert second["token"] == renewed["token"] and second["ttl"] == 60
    assert third["epoch"] == lease["token"] and third["ttl"] is None
    assert last["reason"] == "because"


def test_pages_follow_one_another_without_a_gap(shared, sql):
    before = newest(shared)
    grant_many(sql, 25, "row")
    got, after = [], before
    for _ in range(4):
        told = page(shared, after=after, limit=7).json
        got += [e["token"] for e in told["events"]]
        after = told["next"]
    assert got == numbers(sql, before) and after == got[-1]
    end = page(shared, after=after).json
    assert end == {"events": [], "next": after}


def test_a_page_of_one_resource_goes_through_the_log_in_bounded_steps(
        shared, sql):
    before = newest(shared)
    grant_many(sql, 6000, "hay")
    needle = shared.post("grant", resource="needle", holder="a").json["token"]
    first = page(shared, after=before, resource="needle", wait=10)
    assert first.json == {"events": [], "next": before + 5000}
    second = page(shared, after=before + 5000, resource="needle").json
    assert [e["token"] for e in second["events"]] == [needle]
    assert second["next"] == needle


def test_a_page_without_after_begins_with_the_oldest_event(shared):
    assert page(shared, limit=1).json["events"][0]["token"] == 1


def test_what_the_log_no_longer_has_is_gone_and_the_answer_says_what_is_left(
        service):
    con = support.connect(service.db)
    con.execute("SELECT lease_config('event_rows', 1000)").fetchall()
    con.execute("BEGIN IMMEDIATE")
    for i in range(1200):
        con.execute("SELECT lease_grant('r', 'a', 60), lease_revoke('r')"
                    ).fetchall()
    con.execute("COMMIT")
    gone = page(service, after=1)
    assert gone.status == 410 and gone.code == "trimmed"
    oldest = gone.json["oldest"]
    told = page(service, after=oldest - 1, limit=1000).json
    assert [e["token"] for e in told["events"]] == \
        list(range(oldest, oldest + 1000))
    assert page(service, limit=1).json["events"][0]["token"] == oldest
    with Stream(service, after=1) as stream:
        reset, first = stream.take(2)
    assert reset.name == "reset" and reset.data == {"oldest": oldest}
    assert first.id == first.data["token"] == oldest
    con.close()


def test_a_number_that_was_never_issued_is_gone_too(shared):
    beyond = newest(shared) + 1000
    assert page(shared, after=beyond).code == "trimmed"
    assert page(shared, after=beyond, wait=5).code == "trimmed"
    with Stream(shared, last_event_id=beyond) as stream:
        assert stream.next().name == "reset"


def test_a_long_page_ends_where_it_has_enough(shared, sql):
    before = newest(shared)
    grant_many(sql, 300, "fat", "x" * 4000)
    told = page(shared, after=before, limit=1000).json
    assert 50 < len(told["events"]) < 200
    assert told["next"] == told["events"][-1]["token"]


@pytest.mark.parametrize("query", [
    "after=x", "after=-1", "after=1.5", "after=%201", "limit=0", "limit=1001",
    "wait=61", "wait=-1", "wait=1e1", "wait=x", "wait=1.2.3", "resource=",
    "colour=red"])
def test_a_query_that_makes_no_sense_is_refused(shared, query):
    answer = shared.get("/v1/events?" + query)
    assert answer.status == 422
    assert answer.json["errors"][0]["loc"] == ["query", query.split("=")[0]]


# --- long polls ---------------------------------------------------------------

def in_background(work):
    result = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()

    def join():
        thread.join(support.patience(60))
        return result[0]
    return join


def parked(service, kind="polls"):
    return service.get("/v1/status").json["parked"][kind]


def test_a_long_poll_ends_empty_when_nothing_happens(shared):
    after = newest(shared)
    start = time.monotonic()
    answer = page(shared, after=after, wait=0.4)
    assert answer.json == {"events": [], "next": after}
    assert 0.39 <= time.monotonic() - start < support.patience(5)
    wait_for(lambda: parked(shared) == 0)


def test_a_long_poll_hears_of_the_service_and_of_other_processes(shared, sql):
    for act in (
            lambda: shared.post("grant", resource="poll/1", holder="a"),
            lambda: sql.execute(
                "SELECT lease_grant('poll/2', 'a', 30)").fetchall()):
        after = newest(shared)
        poll = in_background(lambda: page(shared, after=after, wait=30))
        wait_for(lambda: parked(shared) == 1)
        start = time.monotonic()
        act()
        told = poll().json
        assert time.monotonic() - start < support.patience(5)
        assert [e["token"] for e in told["events"]] == [after + 1]
        assert told["next"] == after + 1


def test_a_long_poll_of_one_resource_sleeps_through_all_others(shared):
    after = newest(shared)
    poll = in_background(
        lambda: page(shared, after=after, resource="mine", wait=30))
    wait_for(lambda: parked(shared) == 1)
    for i in range(20):
        shared.post("grant", resource=f"theirs/{i}", holder="a")
    mine = shared.post("grant", resource="mine", holder="a").json["token"]
    told = poll().json
    assert [e["token"] for e in told["events"]] == [mine]


def test_a_long_poll_that_has_something_to_tell_does_not_wait(shared):
    start = time.monotonic()
    assert len(page(shared, after=0, wait=30, limit=3).json["events"]) == 3
    assert time.monotonic() - start < support.patience(5)


def test_head_is_never_parked(shared):
    start = time.monotonic()
    query = f"/v1/events?wait=30&after={newest(shared)}"
    answer = shared.request("HEAD", query)
    assert answer.status == 200 and answer.body == b""
    answer = shared.request("HEAD", query, None,
                            {"Accept": "text/event-stream"})
    assert answer.headers["Content-Type"] == "application/json"
    assert time.monotonic() - start < support.patience(5)


def test_a_poll_or_stream_whose_client_left_is_forgotten(shared):
    after = newest(shared)
    con = shared.connect()
    con.request("GET", f"/v1/events?after={after}&wait=60")
    stream = Stream(shared)
    wait_for(lambda: parked(shared) == 1 and parked(shared, "streams") == 1)
    con.close()
    stream.close()
    wait_for(lambda: parked(shared) == 0 and parked(shared, "streams") == 0)


# --- streams ------------------------------------------------------------------

def test_a_stream_tells_at_once_what_happens(shared, sql):
    with Stream(shared) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        for act in (
                lambda: shared.post("grant", resource="now/1", holder="a"),
                lambda: sql.execute(
                    "SELECT lease_grant('now/2', 'a', 30)").fetchall()):
            start = time.monotonic()
            act()
            event = stream.next()
            assert time.monotonic() - start < support.patience(5)
            assert event.id == event.data["token"] == newest(shared)
            assert event.name == "message"
            assert event.data["event"] == "granted"
        assert 1000 <= stream.retry < 2000


@pytest.mark.parametrize("by_sql", [False, True])
def test_an_expiry_is_told_when_it_happens(shared, sql, by_sql):
    with Stream(shared) as stream:
        start = time.monotonic()
        if by_sql:
            sql.execute("SELECT lease_grant('brief', 'a', 0.3)").fetchall()
        else:
            shared.post("grant", resource="brief", holder="a", ttl=0.3)
        assert stream.next().data["event"] == "granted"
        event = stream.next()
    assert event.data["event"] == "expired"
    assert 0.28 < time.monotonic() - start < support.patience(5)


def test_a_stream_tells_the_past_first_then_the_present(shared, sql):
    before = newest(shared)
    grant_many(sql, 1000, "past")
    with Stream(shared, after=before) as stream:
        got = [e.id for e in stream.take(1000)]
        lease = shared.post("grant", resource="present", holder="a").json
        got.append(stream.next().id)
    assert got == numbers(sql, before) and got[-1] == lease["token"]


def worked(service):
    """Seconds of the processor that the service has had."""
    total = 0
    for task in os.listdir(f"/proc/{service.pid}/task"):
        with open(f"/proc/{service.pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def test_the_past_costs_a_stream_about_what_it_costs_as_pages(service):
    """An event read for a stream is told, not read again and again."""
    con = support.connect(service.db)
    grant_many(con, 1000, "long", "x" * 4096)
    con.close()
    begun = worked(service)
    after, pages = 0, []
    while len(pages) < 1000:
        told = page(service, after=after, limit=1000).json
        after = told["next"]
        pages += [e["token"] for e in told["events"]]
    paged = worked(service)
    with Stream(service, after=0) as stream:
        assert [e.id for e in stream.take(1000)] == pages
    streamed = worked(service)
    print(f"pages {paged - begun:.3f} s, stream {streamed - paged:.3f} s")
    assert streamed - paged < 4 * (paged - begun)


def test_a_stream_of_one_resource_tells_nothing_else(shared, sql):
    before = newest(shared)
    grant_many(sql, 5000, "other")
    with Stream(shared, after=before, resource="single") as stream:
        for holder in "abc":
            for i in range(3):
                shared.post("grant", resource=f"else/{holder}/{i}",
                            holder="a")
            lease = shared.post("grant", resource="single", holder=holder,
                                ttl=30).json
            event = stream.next()
            assert event.data["holder"] == holder
            assert event.id == lease["token"]
            shared.post("release", resource="single", token=lease["token"])
            assert stream.next().data["event"] == "released"


def test_last_event_id_counts_more_than_the_address(shared):
    last = newest(shared)
    lease = shared.post("grant", resource="again", holder="a").json
    with Stream(shared, after=1, last_event_id=last) as stream:
        assert stream.id is None
        assert stream.next().id == lease["token"]


def test_a_stream_lost_before_its_first_event_can_be_resumed(shared):
    with Stream(shared) as stream:
        stream.buffer = b"" + stream.buffer
        wait_for(lambda: parked(shared, "streams") == 1)
        shared.post("grant", resource="first", holder="a")
        stream._block(b"\n\n")          # what comes before any event
        begin = newest(shared) - 1
    with Stream(shared, last_event_id=begin) as stream:
        assert stream.next().data["resource"] == "first"


def test_the_beginning_of_a_stream_says_where_it_begins(shared):
    with Stream(shared) as stream:
        block = stream._block(b"\n\n").decode()
    assert f"id: {newest(shared)}" in block.split("\n")


@pytest.mark.limit(180)
def test_killed_and_resumed_200_times_no_event_is_lost_or_doubled(service):
    rounds = support.scaled(200, 20)
    stop = threading.Event()
    rng = random.Random(5)

    def write():
        con = service.connect()
        n = 0
        while not stop.is_set():
            n += 1
            service.post("grant", con=con, resource=f"busy/{n}", holder="a",
                         ttl=0.2)
            time.sleep(0.001)

    def write_sql():
        con = support.connect(service.db)
        while not stop.is_set():
            con.execute("SELECT lease_grant('sql', 'a', 30), "
                        "lease_revoke('sql')").fetchall()
            time.sleep(0.02)
        con.close()

    threads = [threading.Thread(target=w) for w in (write, write_sql)]
    for thread in threads:
        thread.start()
    got = []
    last = 0
    try:
        for _ in range(rounds):
            with Stream(service, last_event_id=last) as stream:
                for _ in range(rng.randrange(1, 12)):
                    last = stream.next().id
                    got.append(last)
                if rng.random() < 0.5:      # reset, with data under way
                    stream.socket.setsockopt(
                        1, 13, b"\1\0\0\0\0\0\0\0")
            if rng.random() < 0.1:
                time.sleep(0.05)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    time.sleep(0.4)
    con = support.connect(service.db)
    end = numbers(con)
    with Stream(service, last_event_id=last) as stream:
        while last < end[-1]:
            last = stream.next().id
            got.append(last)
    con.close()
    assert got == end


def test_a_reader_that_takes_nothing_is_dropped_and_slows_nobody(service):
    """C128: The quick one has all while the slow one holds its place: whoever
    waited for that would be cut off with it."""
    con = support.connect(service.db)
    slow = Stream(service, receive_buffer=4096)
    with Stream(service) as quick:
        got = in_background(lambda: [e.id for e in quick.take(2000)])
        for i in range(4):
            grant_many(con, 500, f"big/{i}", "x" * 4096)
        assert got() == numbers(con)
        wait_for(lambda: parked(service, "streams") == 1, 60)
        wait_for(lambda: not service.get("/v1/status").json["checkpoint"][
            "blocked"])
        grant_many(con, 1, "after all")
        assert quick.next().data["resource"] == "after all/0"
    slow.close()
    con.close()


def test_the_end_of_the_service_ends_streams_and_answers_polls(service):
    after = newest(service)
    poll = in_background(lambda: page(service, after=after, wait=30))
    with Stream(service) as stream:
        wait_for(lambda: parked(service) == 1)
        start = time.monotonic()
        os.kill(service.pid, signal.SIGTERM)
        assert stream.next() is None
        answer = poll()
    assert answer.status == 503 and answer.code == "stopping"
    assert int(answer.headers["Retry-After"]) >= 1
    assert time.monotonic() - start < support.patience(5)


@pytest.mark.limit(60)
def test_a_silent_stream_says_something_every_15_seconds(service):
    with Stream(service) as stream:
        start = time.monotonic()
        stream._block(b"\n\n")
        block = stream._block(b"\n\n")
    assert block == b":"
    assert 14 < time.monotonic() - start < support.patience(25)
