"""GET /metrics: Prometheus can read it, what it counts is right, and its names
and labels are few and always the same."""

import concurrent.futures
import math
import os
import re
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

import openapi
import support
from service import wait_for
from stream import Stream

OPS = {"grants": "grant", "renewals": "renew", "releases": "release",
       "checks": "check", "fences": "fence", "revocations": "revoke"}
RESULTS = {"ok", "held", "over", "unknown", "stale", "rejected", "busy",
           "full", "failed"}
EVENTS = {"granted", "renewed", "released", "expired", "revoked"}
HISTOGRAMS = {"request_seconds", "commit_seconds", "batch_operations"}


def text(service):
    answer = service.get("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == (
        "text/plain; version=0.0.4; charset=utf-8")
    return answer.body.decode()


def families(service):
    """{name without leasehold_: family}"""
    found = {}
    for family in text_string_to_metric_families(text(service)):
        assert family.name.startswith("leasehold_"), family.name
        assert family.name not in found
        found[family.name.removeprefix("leasehold_")] = family
    return found


class Figures:
    """All samples of one look: figures("grants_total", result="ok")."""

    def __init__(self, service):
        self.of = {(s.name.removeprefix("leasehold_"),
                    frozenset(s.labels.items())): s.value
                   for family in families(service).values()
                   for s in family.samples}

    def __call__(self, name, **labels):
        return self.of[name, frozenset(labels.items())]

    def __sub__(self, before):
        """What has moved since, and by how much."""
        return {(name, *sorted(labels)): value - before.of[name, labels]
                for (name, labels), value in self.of.items()
                if value != before.of[name, labels]}


def grant(service, resource="r", holder="a", **more):
    answer = service.post("grant", resource=resource, holder=holder, **more)
    assert answer.status == 200, answer.body
    return answer.json


# --- the text -------------------------------------------------------------------

def test_every_metric_has_a_type_a_help_and_samples(service):
    found = families(service)
    for name, family in found.items():
        assert family.type in ("counter", "gauge", "histogram"), name
        assert family.documentation.endswith("."), name
        assert family.samples, name
        for sample in family.samples:
            assert math.isfinite(sample.value), sample
            counts = family.type == "counter"
            assert sample.name.endswith("_total") == counts, sample
    assert {n for n, f in found.items() if f.type == "histogram"} \
        == HISTOGRAMS


def test_what_the_operator_was_promised_is_there(service):
    found = set(families(service))
    for name in (*OPS, "expirations", "active_leases", "waiters", "streams",
                 "fence_rejections", "request_seconds", "commit_seconds",
                 "batch_operations", "queue_depth", "busy_seconds",
                 "wal_pages", "wal_bytes", "checkpoints_blocked",
                 "checkpoint_blocked", "clock_lead_seconds", "clock_steps",
                 "process_start_time_seconds",
                 "process_resident_memory_bytes", "process_open_fds",
                 "build_info"):
        assert name in found, name


def test_labels_have_few_values_whatever_clients_send(service):
    before = Figures(service).of.keys()
    for i in range(20):
        grant(service, f"resource {i}", f"holder {i}")
        service.get(f"/v1/nothing/{i}")
        service.request("BREW", f"/pot/{i}")
        service.post("fence", resource=f"{i}\n\"{{", token=i)
        service.post("batch", ops=[{"op": f"{i}"}])
    assert Figures(service).of.keys() == before
    allowed = {
        "result": RESULTS, "event": EVENTS,
        "route": set(openapi.routes()) | {"other"}}
    for _, labels in before:
        for name, value in labels:
            if name in allowed:
                assert value in allowed[name]
            else:
                assert name in ("le", "version", "sqlite")


def test_a_histogram_agrees_with_itself(service):
    for _ in range(10):
        grant(service, ttl=0.1)
        wait_for(lambda: service.get("/v1/leases").json["leases"] == [])
    for name in HISTOGRAMS:
        family = families(service)[name]
        series = {}
        for sample in family.samples:
            labels = dict(sample.labels)
            bound = labels.pop("le", None)
            one = series.setdefault(frozenset(labels.items()), {})
            one[bound or sample.name.rpartition("_")[2]] = sample.value
        for one in series.values():
            bounds = [b for b in one if b not in ("sum", "count")]
            assert [float(b) for b in bounds] == sorted(map(float, bounds))
            counts = [one[b] for b in bounds]
            assert counts == sorted(counts)
            assert one["+Inf"] == one["count"]
            assert (one["sum"] > 0) == (one["count"] > 0)


def test_it_is_read_like_any_other_page(service):
    assert service.request("HEAD", "/metrics").body == b""
    assert service.request("POST", "/metrics", b"{}").status == 405
    answer = service.get("/metrics?name=x")
    assert (answer.status, answer.code) == (422, "invalid")
    assert answer.headers["Content-Type"] == "application/problem+json"


# --- what is counted -------------------------------------------------------------

def test_each_operation_is_counted_by_its_result(service, clock):
    lease = grant(service, ttl=30)
    steps = [
        ("grants", "held", "grant", dict(resource="r", holder="b")),
        ("grants", "rejected", "grant", dict(resource="", holder="b")),
        ("renewals", "ok", "renew", dict(resource="r", token=1)),
        ("renewals", "unknown", "renew", dict(resource="r", token=99)),
        ("checks", "ok", "check", dict(resource="r", token=1)),
        ("checks", "over", "check", dict(resource="r", token=1,
                                         min_remaining=99)),
        ("fences", "ok", "fence", dict(resource="r", token=5)),
        ("fences", "stale", "fence", dict(resource="r", token=4)),
        ("releases", "unknown", "release", dict(resource="r", token=99)),
        ("releases", "ok", "release", dict(resource="r", token=1)),
        ("renewals", "over", "renew", dict(resource="r", token=1)),
        ("revocations", "unknown", "revoke", dict(resource="r")),
    ]
    assert lease["token"] == 1
    for name, result, route, fields in steps:
        before = Figures(service)
        service.post(route, **fields)
        moved = Figures(service) - before
        results = {k: v for k, v in moved.items()
                   if k[0].removesuffix("_total") in OPS}
        assert results == {(f"{name}_total", ("result", result)): 1}
        assert moved["request_seconds_count", ("route", f"/v1/{route}")] == 1
        assert (("fence_rejections_total",) in moved) == (result == "stale")


def test_the_parts_of_a_batch_count_and_what_was_undone_does_not(service):
    ops = [dict(op="grant", resource="r", holder="a"),
           dict(op="grant", resource="r", holder="b"),
           dict(op="fence", resource="r", token=9),
           dict(op="fence", resource="r", token=8)]
    before = Figures(service)
    assert service.post("batch", ops=ops).status == 200
    moved = Figures(service) - before
    assert moved["grants_total", ("result", "ok")] == 1
    assert moved["grants_total", ("result", "held")] == 1
    assert moved["fences_total", ("result", "stale")] == 1
    assert moved["events_total", ("event", "granted")] == 1
    assert moved["batch_operations_sum",] == 4
    assert moved["request_seconds_count", ("route", "/v1/batch")] == 1
    ops[0]["resource"] = "s"
    before = Figures(service)
    assert service.post("batch", ops=ops, atomic=True).status == 409
    moved = Figures(service) - before
    assert ("grants_total", ("result", "ok")) not in moved
    assert moved["grants_total", ("result", "held")] == 1
    assert ("events_total", ("event", "granted")) not in moved


def test_nothing_is_lost_when_all_count_at_once(service):
    def work(worker):
        for i in range(support.scaled(100)):
            lease = grant(service, f"{worker}/{i}")
            service.post("renew", resource=f"{worker}/{i}",
                         token=lease["token"])
            service.post("check", resource=f"{worker}/{i}", token=1)
            service.get("/nothing")
            service.get("/metrics")

    before = Figures(service)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    moved = Figures(service) - before
    n = 8 * support.scaled(100)
    assert moved["grants_total", ("result", "ok")] == n
    assert moved["renewals_total", ("result", "ok")] == n
    assert sum(v for k, v in moved.items() if k[0] == "checks_total") == n
    assert moved["events_total", ("event", "granted")] == n
    assert moved["events_total", ("event", "renewed")] == n
    assert moved["batch_operations_sum",] == 2 * n
    assert moved["active_leases",] == n
    for route in ("/v1/grant", "/v1/renew", "/v1/check"):
        assert moved["request_seconds_count", ("route", route)] == n


def test_what_is_on_no_route_counts_as_other(service):
    before = Figures(service)
    service.get("/v1/nothing")
    service.get("/healthz", {"Host": "evil.example"})
    moved = Figures(service) - before
    assert moved["request_seconds_count", ("route", "other")] == 2


def test_active_leases_are_those_in_force_and_expiries_are_counted(
        service, clock):
    for i in range(5):
        grant(service, f"r{i}", ttl=10 + i)
    assert Figures(service)("active_leases") == 5
    clock.advance(12)
    figures = Figures(service)
    assert figures("active_leases") == 2
    wait_for(lambda: Figures(service)("expirations_total") == 3)
    assert Figures(service)("events_total", event="expired") == 3
    assert Figures(service)("active_leases") == 2


def test_an_expiry_told_by_the_next_grant_is_counted_too(service, clock):
    for _ in range(10):
        grant(service, ttl=10)
        clock.advance(10)
    grant(service, ttl=10)
    assert Figures(service)("expirations_total") == 10


def test_events_of_other_processes_are_counted(service):
    before = Figures(service)
    with support.connect(str(service.db)) as con:
        token = support.one(con, "SELECT lease_grant('q', 'sql', 30)")
        support.one(con, "SELECT lease_renew('q', ?)", token)
        support.one(con, "SELECT lease_revoke('q')")
    moved = Figures(service) - before
    for event in ("granted", "renewed", "revoked"):
        assert moved["events_total", ("event", event)] == 1
    assert not [k for k in moved if k[0] == "grants_total"]


def test_events_are_counted_from_the_first_on_and_not_those_of_before(
        service):
    grant(service)
    assert Figures(service)("events_total", event="granted") == 1
    service.stop()
    service.start().wait_ready()
    assert Figures(service)("events_total", event="granted") == 0
    grant(service, "s")
    assert Figures(service)("events_total", event="granted") == 1


def test_who_waits_and_who_watches_is_shown(service):
    grant(service)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        waiter = pool.submit(grant, service, holder="b", wait=30)
        poll = pool.submit(service.get,
                           "/v1/events?after=1&resource=none&wait=30")
        wait_for(lambda: Figures(service)("waiters") == 1
                 and Figures(service)("long_polls") == 1)
        service.post("revoke", resource="r")
        assert waiter.result()["holder"] == "b"
        with Stream(service):
            wait_for(lambda: Figures(service)("streams") == 1)
        wait_for(lambda: Figures(service)("streams") == 0)
        assert Figures(service)("waiters") == 0
        grant(service, "none")
        assert poll.result().status == 200


def test_a_foreign_lock_shows_as_busy_time(service):
    before = Figures(service)("busy_seconds_total")
    with support.connect(str(service.db)) as con, \
            concurrent.futures.ThreadPoolExecutor(1) as pool:
        con.execute("BEGIN IMMEDIATE")
        asked = pool.submit(grant, service)
        wait_for(lambda: Figures(service)("queue_depth") == 1)
        time.sleep(0.5)
        growing = Figures(service)("busy_seconds_total")
        con.execute("ROLLBACK")
        asked.result()
    assert 0.3 < growing - before
    after = Figures(service)
    assert growing <= after("busy_seconds_total") < before + 10
    assert after("queue_depth") == 0


def test_a_request_that_gets_no_lock_counts_as_busy(service):
    with support.connect(str(service.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        assert service.post("grant", resource="r", holder="a").status == 503
        con.execute("ROLLBACK")
    assert Figures(service)("grants_total", result="busy") == 1


def test_a_forgotten_read_transaction_shows(service):
    """The log grows and checkpoints do not get through."""
    with support.connect(str(service.db)) as con:
        con.execute("BEGIN")
        con.execute("SELECT count(*) FROM lease").fetchall()
        data = "x" * 4096
        for i in range(8):
            ops = [dict(op="grant", resource=f"{i}/{k}", holder="h",
                        data=data) for k in range(200)]
            assert service.post("batch", ops=ops).status == 200
        wait_for(lambda: Figures(service)("checkpoints_blocked_total") > 0)
        figures = Figures(service)
        assert figures("wal_pages") > 1000
        assert figures("wal_bytes") \
            == os.path.getsize(f"{service.db}-wal") > 4096 * 1000
        con.execute("ROLLBACK")


def test_a_clock_that_runs_as_it_should_is_no_step(service):
    time.sleep(2.2)
    figures = Figures(service)
    assert figures("clock_steps_total") == 0
    assert abs(figures("clock_lead_seconds")) < 0.5


def test_a_wall_clock_that_jumps_is_a_step(service, clock):
    """The service compares with the real wall clock: when the test clock is
    set it is as if the other had been."""
    before = Figures(service)
    clock.advance(100)
    wait_for(lambda: Figures(service)("clock_steps_total")
             > before("clock_steps_total"))
    moved = Figures(service)("clock_lead_seconds") \
        - before("clock_lead_seconds")
    assert 60 < moved < 101


def test_the_process_is_described(service):
    figures = Figures(service)
    rss = int(re.search(r"VmRSS:\s+(\d+)", open(
        f"/proc/{service.pid}/status", encoding="ascii").read())[1]) * 1024
    assert figures("process_resident_memory_bytes") == pytest.approx(rss,
                                                                     rel=0.5)
    assert figures("process_open_fds") == pytest.approx(
        len(os.listdir(f"/proc/{service.pid}/fd")), abs=3)
    assert 0 <= time.time() - figures("process_start_time_seconds") < 300
    told = service.get("/v1/status").json
    assert figures("build_info", version=told["version"],
                   sqlite=told["sqlite"]) == 1
