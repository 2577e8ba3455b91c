"""Each route of the service: what it answers when all is well, and when it
refuses."""

import re
import time
import urllib.parse

import pytest

import support

FIELDS = ["resource", "holder", "token", "epoch", "capacity", "ttl",
          "granted_at", "renewed_at", "expires_at", "remaining", "data"]


def grant(service, resource="r", holder="a", ttl=30, **more):
    answer = service.post("grant", resource=resource, holder=holder, ttl=ttl,
                          **more)
    assert answer.status == 200, answer.body
    return answer.json


# --- grant ----------------------------------------------------------------------

def test_a_grant_answers_the_lease(service, clock):
    """C034"""
    answer = service.post("grant", resource="shard/0", holder="worker-1",
                          ttl=2.5, data="tab\t\"ü\"")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    lease = answer.json
    assert list(lease) == FIELDS
    assert lease == lease | {
        "resource": "shard/0", "holder": "worker-1", "token": 1, "epoch": 1,
        "capacity": 1, "ttl": 2.5, "remaining": 2.5, "data": "tab\t\"ü\"",
        "granted_at": "2023-11-14T22:13:20.000Z",
        "renewed_at": "2023-11-14T22:13:20.000Z",
        "expires_at": "2023-11-14T22:13:22.500Z"}


def test_ttl_and_capacity_have_defaults(service, clock):
    answer = service.post("grant", resource="r", holder="a")
    assert (answer.json["ttl"], answer.json["capacity"]) == (30, 1)


def test_null_is_as_good_as_left_out(service, clock):
    answer = service.post("grant", resource="r", holder="a", ttl=None,
                          data=None, capacity=None, wait=None)
    assert (answer.json["ttl"], answer.json["data"]) == (30, None)


def test_a_held_resource_is_refused_with_its_holders(service, clock):
    """C028"""
    grant(service, ttl=30)
    clock.advance(10.5)
    answer = service.post("grant", resource="r", holder="b", ttl=5)
    assert answer.status == 409
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Retry-After"] == "20"
    assert answer.json == {
        "type": "about:blank", "title": "Conflict", "status": 409,
        "code": "held", "detail": "The resource is held.", "remaining": 19.5,
        "ahead": 0,
        "holders": [{"holder": "a", "remaining": 19.5,
                     "expires_at": "2023-11-14T22:13:50.000Z"}]}


@pytest.mark.parametrize("ttl, told", [(0.1, "1"), (1.001, "2"), (86400, "60")])
def test_retry_after_is_the_remaining_time_rounded_up_1_to_60(
        service, clock, ttl, told):
    """C040, C175"""
    grant(service, ttl=ttl)
    answer = service.post("grant", resource="r", holder="b")
    assert answer.headers["Retry-After"] == told


def test_an_expired_resource_is_granted_with_a_higher_token(service, clock):
    first = grant(service, ttl=10)
    clock.advance(10)
    second = grant(service, holder="b")
    assert second["token"] > first["token"]


def test_capacity_lets_several_in(service, clock):
    for holder in "abc":
        grant(service, holder=holder, capacity=3)
    answer = service.post("grant", resource="r", holder="d", capacity=3)
    assert answer.status == 409
    assert [h["holder"] for h in answer.json["holders"]] == ["a", "b", "c"]


def test_holders_are_told_in_the_order_in_which_they_run_out(service, clock):
    for holder, ttl in ("a", 30), ("b", 10), ("c", 20):
        grant(service, holder=holder, ttl=ttl, capacity=3)
    answer = service.post("grant", resource="r", holder="d", capacity=3)
    assert [(h["holder"], h["remaining"]) for h in answer.json["holders"]] \
        == [("b", 10.0), ("c", 20.0), ("a", 30.0)]
    assert answer.json["remaining"] == 10.0
    assert answer.headers["Retry-After"] == "10"


def test_the_same_idempotency_key_gets_the_same_lease(service, clock):
    """C063"""
    key = {"Idempotency-Key": "k-1"}
    first = service.post("grant", key, resource="r", holder="a", ttl=30)
    clock.advance(10)
    again = service.post("grant", key, resource="r", holder="a", ttl=30)
    assert again.status == 200
    assert again.json == first.json | {"remaining": 20}
    other = service.post("grant", key, resource="r", holder="a", ttl=31)
    assert (other.status, other.code) == (422, "idempotency_mismatch")


def test_the_key_of_a_lease_that_is_over_says_how_it_ended(service, clock):
    key = {"Idempotency-Key": "k-1"}
    service.post("grant", key, resource="r", holder="a", ttl=30)
    clock.advance(30)
    again = service.post("grant", key, resource="r", holder="a", ttl=30)
    assert (again.status, again.code) == (410, "expired")


# --- renew, release, check ------------------------------------------------------

def test_a_renewal_extends_and_answers_a_new_token(service, clock):
    """C034"""
    lease = grant(service, ttl=30)
    clock.advance(10)
    answer = service.post("renew", resource="r", token=lease["token"])
    assert answer.status == 200
    assert list(answer.json) == FIELDS
    assert answer.json == lease | {
        "token": 2, "renewed_at": "2023-11-14T22:13:30.000Z",
        "expires_at": "2023-11-14T22:14:00.000Z", "remaining": 30}


def test_a_renewal_never_shortens(service, clock):
    lease = grant(service, ttl=30)
    answer = service.post("renew", resource="r", token=lease["token"], ttl=5)
    assert (answer.json["remaining"], answer.json["ttl"]) == (30, 5)


@pytest.mark.parametrize("route", ["renew", "check"])
def test_a_lease_that_is_over_is_gone_and_says_why(service, clock, route):
    """C001"""
    expired, released, revoked = (
        grant(service, resource, ttl=30) for resource in ("r1", "r2", "r3"))
    service.post("release", resource="r2", token=released["token"])
    service.post("revoke", resource="r3")
    clock.advance(30)
    for lease, why in ((expired, "expired"), (released, "released"),
                       (revoked, "revoked")):
        answer = service.post(route, resource=lease["resource"],
                              token=lease["token"])
        assert (answer.status, answer.code) == (410, why)


@pytest.mark.parametrize("route", ["renew", "check", "release"])
def test_a_token_that_never_was_is_unknown(service, route):
    """C010"""
    lease = grant(service)
    for resource, token in (("r", 99), ("other", lease["token"])):
        answer = service.post(route, resource=resource, token=token)
        assert (answer.status, answer.code) == (404, "unknown")


def test_release_frees_and_is_harmless_the_second_time(service, clock):
    """C063"""
    lease = grant(service)
    first = service.post("release", resource="r", token=lease["token"])
    assert (first.status, first.json) == (
        200, {"released": True, "why": "released"})
    grant(service, holder="b")
    again = service.post("release", resource="r", token=lease["token"])
    assert (again.status, again.json) == (
        200, {"released": False, "why": "released"})
    assert [h["holder"] for h in service.get("/v1/leases").json["leases"]] \
        == ["b"]


def test_release_of_an_expired_lease_says_so(service, clock):
    """C007, C008"""
    lease = grant(service, ttl=30)
    clock.advance(30)
    answer = service.post("release", resource="r", token=lease["token"])
    assert answer.json == {"released": False, "why": "expired"}


def test_check_answers_the_lease_and_changes_nothing(service, clock):
    lease = grant(service, ttl=30)
    clock.advance(12)
    answer = service.post("check", resource="r", token=lease["token"])
    assert answer.status == 200
    assert answer.json == lease | {"remaining": 18}


def test_check_wants_min_remaining_seconds(service, clock):
    lease = grant(service, ttl=30)
    clock.advance(12)
    for least, status in ((18, 200), (18.001, 410)):
        answer = service.post("check", resource="r", token=lease["token"],
                              min_remaining=least)
        assert answer.status == status
    assert answer.code == "expiring"


# --- fence, revoke --------------------------------------------------------------

def test_the_fence_refuses_tokens_below_the_highest_it_saw(service):
    for token, status, highest in ((7, 200, 7), (7, 200, 7), (9, 200, 9),
                                   (8, 412, 9)):
        answer = service.post("fence", resource="r", token=token)
        assert (answer.status, answer.json["highest"]) == (status, highest)
    assert answer.code == "stale"


def test_revoke_takes_away_one_holder_or_all(service):
    for holder in "abc":
        grant(service, holder=holder, capacity=3)
    one = service.post("revoke", resource="r", holder="b", reason="stuck")
    assert (one.status, one.json) == (200, {"revoked": 1})
    rest = service.post("revoke", resource="r")
    assert rest.json == {"revoked": 2}
    none = service.post("revoke", resource="r")
    assert (none.status, none.code) == (404, "unknown")


# --- leases ---------------------------------------------------------------------

def listed(service, query=""):
    answer = service.get("/v1/leases" + query)
    assert answer.status == 200, answer.body
    return [(e["resource"], e["holder"]) for e in answer.json["leases"]]


def test_leases_lists_what_is_active(service, clock):
    """C007, C038"""
    lease = grant(service, "b", ttl=30)
    grant(service, "a", ttl=10)
    assert listed(service) == [("a", "a"), ("b", "a")]
    clock.advance(10)
    answer = service.get("/v1/leases").json
    assert answer == {"leases": [lease | {"remaining": 20}], "next": None,
                      "newest_token": service.get("/v1/status").json[
                          "leases"]["newest_token"],
                      "now": "2023-11-14T22:13:30.000Z"}


def test_leases_of_one_resource_tell_its_fence(service):
    lease = grant(service, "guarded")
    assert service.get("/v1/leases?resource=guarded").json["fence"] is None
    service.post("fence", resource="guarded", token=lease["token"])
    told = service.get("/v1/leases?resource=guarded").json
    assert told["fence"] == lease["token"]
    assert "fence" not in service.get("/v1/leases").json


def test_a_list_and_the_events_behind_it_miss_nothing(service):
    for name in ("a", "b"):
        grant(service, name)
    newest = service.get("/v1/leases?limit=1").json["newest_token"]
    lease = grant(service, "c")
    told = service.get(f"/v1/events?after={newest}").json["events"]
    assert [e["token"] for e in told] == [lease["token"]]


def test_leases_are_chosen_by_resource_prefix_and_holder(service):
    for resource in ("a", "a/1", "a/2", "b"):
        grant(service, resource, "x", capacity=2)
        grant(service, resource, "y", capacity=2)
    assert listed(service, "?resource=a") == [("a", "x"), ("a", "y")]
    assert listed(service, "?prefix=a/&holder=y") == [
        ("a/1", "y"), ("a/2", "y")]
    assert listed(service, "?resource=b&holder=x") == [("b", "x")]
    assert listed(service, "?prefix=") == listed(service)
    assert listed(service, "?resource=nothing") == []


def test_names_of_any_kind_come_back_as_they_went_in(service):
    """C113"""
    names = ["a b", "100%", "a/../b", "..", "'; DROP TABLE lease; --", "ü",
             "\U0001f512", "a+b&c=d?e#f", '"\\', "𝕏" * 128]
    for name in names:
        grant(service, name, name[:64])
    assert sorted(r for r, _ in listed(service)) == sorted(names)


def test_pages_together_are_the_whole_list(service):
    """C128"""
    with support.connect(str(service.db)) as con:
        con.execute("""WITH RECURSIVE n(i) AS
            (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
            SELECT sum(lease_grant('r' || (i / 3), 'h' || i, 600, 3))
            FROM n""").fetchall()
    got, query = [], "?limit=1000"
    while True:
        page = service.get("/v1/leases" + query).json
        got += [(e["resource"], e["holder"]) for e in page["leases"]]
        if page["next"] is None:
            break
        query = "?limit=1000&after=" + urllib.parse.quote(page["next"])
    assert len(got) == 2500
    assert got == sorted(set(got))


def test_a_page_of_fat_leases_stays_bounded(service):
    """C128"""
    with support.connect(str(service.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        for i in range(400):
            con.execute("SELECT lease_grant(?, 'h', 600, 1, ?)",
                        (f"r{i:03}", "\n\"" * 2048)).fetchall()
        con.execute("COMMIT")
    got, query = [], "?limit=1000"
    while query:
        answer = service.get("/v1/leases" + query)
        assert len(answer.body) < 1_100_000
        assert answer.status == 200, answer.body[:300]
        got += [e["resource"] for e in answer.json["leases"]]
        after = answer.json["next"]
        query = after and "?limit=1000&after=" + urllib.parse.quote(after)
    assert got == [f"r{i:03}" for i in range(400)]


# --- status and health ----------------------------------------------------------

def test_status_tells_of_clock_queue_and_leases(service, clock):
    grant(service)
    clock.step_wall(-100)
    told = service.get("/v1/status").json
    assert told["version"]
    assert told["leases"] == {"active": 1, "events": 1, "newest_token": 1}
    assert told["clock"]["now"] == "2023-11-14T22:13:20.000Z"
    assert told["durability"] == "full"
    assert told["queue"]["waiting"] == 0


def test_healthz_answers(service):
    answer = service.get("/healthz")
    assert (answer.status, answer.json) == (200, {"status": "ok"})


# --- time goes by ---------------------------------------------------------------

def test_an_expiry_is_recorded_soon_without_any_request(service):
    grant(service, ttl=0.3)
    with support.connect(str(service.db)) as con:
        until = time.monotonic() + 5
        while not support.one(con, """SELECT count(*) FROM lease_event
                WHERE event = 'expired'"""):
            assert time.monotonic() < until
            time.sleep(0.01)
        late = support.one(con, """SELECT at - expires_at FROM lease_event
            WHERE event = 'expired'""")
    assert 0 <= late < 500


def test_sql_and_http_show_the_same_leases(service):
    """C098"""
    lease = grant(service)
    with support.connect(str(service.db)) as con:
        assert support.one(con, "SELECT token FROM lease_active") \
            == lease["token"]
        token = support.one(con, "SELECT lease_grant('q', 'by sql', 30)")
    answer = service.post("renew", resource="q", token=token)
    assert answer.json["holder"] == "by sql"


# --- the statements behind them ---------------------------------------------------

@pytest.mark.parametrize("route", ["grant", "renew", "release", "fence",
                                   "revoke"])
def test_a_route_calls_the_function_that_writes_in_one_place(db, route):
    """SQLite merges subqueries into one another and would repeat the call."""
    con = db()
    con.execute("SELECT lease_init()")
    text = (support.ROOT / "sql" / f"http_{route}.sql").read_text()
    values = dict.fromkeys(re.findall(r":(\w+)", text))
    calls = [row for row in con.execute("EXPLAIN " + text, values)
             if str(row[5]).startswith(f"lease_{route}(")]
    assert len(calls) == 1
    steps = {row[1] for row in con.execute("EXPLAIN " + text, values)}
    assert "OpenEphemeral" not in steps or route == "grant"
