"""POST /v1/batch: many operations at once, each under the rules of its own
route, in one transaction, all or none where asked."""

import concurrent.futures
import json

import pytest

import service as service_module
import support

NAMES = "grant, renew, release, check, fence, revoke"


def op(name, **fields):
    return {"op": name, **fields}


def batch(service, *ops, **more):
    return service.post("batch", ops=list(ops), **more)


def results(service, *ops, **more):
    answer = batch(service, *ops, **more)
    assert answer.status == 200, answer.body
    assert list(answer.json) == ["results"]
    return answer.json["results"]


def grant(service, resource="r", holder="a", **more):
    answer = service.post("grant", resource=resource, holder=holder, **more)
    assert answer.status == 200, answer.body
    return answer.json


def events(service):
    return service.get("/v1/events?limit=1000").json["events"]


def wrong(answer):
    """What a 422 complains about: (place, type)."""
    assert (answer.status, answer.code) == (422, "invalid"), answer.body
    return [(tuple(e["loc"][1:]), e["type"]) for e in answer.json["errors"]]


# --- each is as by itself -------------------------------------------------------

STEPS = [
    ("grant", dict(resource="r", holder="a", ttl=30, data="\"ü\"\n")),
    ("grant", dict(resource="r", holder="b")),
    ("grant", dict(resource="s", holder="a", ttl=0.5, capacity=3)),
    ("renew", dict(resource="r", token=1)),
    ("renew", dict(resource="r", token=99)),
    ("check", dict(resource="r", token=1, min_remaining=5)),
    ("check", dict(resource="r", token=1, min_remaining=50)),
    ("fence", dict(resource="r", token=5)),
    ("fence", dict(resource="r", token=4)),
    ("release", dict(resource="r", token=3)),
    ("release", dict(resource="r", token=3)),
    ("release", dict(resource="r", token=98)),
    ("renew", dict(resource="r", token=3)),
    ("revoke", dict(resource="r", reason="stuck")),
    ("revoke", dict(resource="r")),
]


def test_each_operation_answers_what_its_own_route_does(
        service, clock, tmp_path):
    """The same steps, one by one at one service and at once at another."""
    (tmp_path / "other").mkdir()
    with service_module.Service(tmp_path / "other", clocked=True) as other:
        alone = [other.post(name, **fields) for name, fields in STEPS]
        told = results(service, *(op(name, **fields)
                                  for name, fields in STEPS))
    assert len(told) == len(STEPS)
    assert {a.status for a in alone} >= {200, 404, 409, 410, 412}
    for answer, result in zip(alone, told):
        assert result["status"] == answer.status
        assert result == answer.json | {"status": answer.status}


def test_operations_happen_in_order(service):
    told = results(service, op("grant", resource="r", holder="a"),
                   op("release", resource="r", token=1),
                   op("grant", resource="r", holder="b"),
                   op("grant", resource="r", holder="c"))
    assert [r["status"] for r in told] == [200, 200, 200, 409]
    assert told[3]["holders"][0]["holder"] == "b"
    assert [(e["event"], e["holder"]) for e in events(service)] == [
        ("granted", "a"), ("released", "a"), ("granted", "b")]


def test_a_request_id_is_the_idempotency_key_of_a_grant(service, clock):
    ops = [op("grant", resource="r", holder="a", ttl=30, request_id="k-1"),
           op("grant", resource="s", holder="a", ttl=30, request_id="k-1")]
    first = results(service, *ops)
    clock.advance(10)
    again = results(service, *ops)
    assert [r["token"] for r in again] == [r["token"] for r in first] == [1, 2]
    assert [r["remaining"] for r in again] == [20, 20]
    answer = service.post("grant", {"Idempotency-Key": "k-1"}, resource="r",
                          holder="a", ttl=30)
    assert answer.json["token"] == 1
    other = results(service, ops[0] | {"ttl": 31},
                    op("grant", resource="q", holder="a"))
    assert (other[0]["status"], other[0]["code"]) == (
        422, "idempotency_mismatch")
    assert other[1]["status"] == 200
    assert len(events(service)) == 3


def test_a_lease_over_is_gone_and_the_rest_goes_on(service, clock):
    old = grant(service, "old", ttl=10)
    new = grant(service, "new", ttl=60)
    clock.advance(10)
    told = results(service, op("renew", resource="old", token=old["token"]),
                   op("renew", resource="new", token=new["token"]))
    assert [(r["status"], r.get("code")) for r in told] == [
        (410, "expired"), (200, None)]


def test_a_thousand_operations_are_one_transaction(service):
    ops = [op("grant", resource=f"r{i}", holder="h" * 256, data="d" * 400)
           for i in range(1000)]
    before = service.get("/v1/status").json["queue"]
    told = results(service, *ops)
    after = service.get("/v1/status").json["queue"]
    assert [r["token"] for r in told] == list(range(1, 1001))
    assert after["batches"] - before["batches"] == 1
    assert after["operations"] - before["operations"] == 1000
    told = results(service, *(op("renew", resource=f"r{i}", token=i + 1)
                              for i in range(1000)))
    assert [r["token"] for r in told] == list(range(1001, 2001))


def test_batches_and_single_requests_share_the_commits(service):
    """Side by side, nothing is lost, nothing is told twice."""
    def batches(worker):
        tokens = []
        for i in range(support.scaled(20)):
            told = results(service, *(
                op("grant", resource=f"{worker}/{i}/{k}", holder="a")
                for k in range(25)))
            tokens += [r["token"] for r in told]
        return tokens

    def singles(worker):
        return [grant(service, f"{worker}/{i}")["token"]
                for i in range(support.scaled(100))]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        running = [pool.submit(work, n) for n, work in
                   enumerate([batches, singles] * 3)]
        tokens = [t for r in running for t in r.result()]
    assert sorted(tokens) == list(range(1, len(tokens) + 1))


# --- beside those who wait --------------------------------------------------------

def waiting(service, n):
    return lambda: service.get("/v1/status").json["parked"]["grants"] == n


@pytest.mark.parametrize("atomic", [False, True])
def test_what_a_batch_gives_back_goes_to_who_waits(service, atomic):
    lease = grant(service)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiter = pool.submit(grant, service, holder="b", wait=30)
        service_module.wait_for(waiting(service, 1))
        told = results(service, op("grant", resource="s", holder="a"),
                       op("release", resource="r", token=lease["token"]),
                       atomic=atomic)
        assert [r["status"] for r in told] == [200, 200]
        assert waiter.result(10)["holder"] == "b"


@pytest.mark.parametrize("atomic", [False, True])
def test_a_batch_does_not_overtake_who_waits(service, atomic):
    """Also not when it itself gives the resource back."""
    lease = grant(service)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiter = pool.submit(grant, service, holder="b", wait=30)
        service_module.wait_for(waiting(service, 1))
        answer = batch(service,
                       op("release", resource="r", token=lease["token"]),
                       op("grant", resource="r", holder="c"), atomic=atomic)
        if atomic:
            assert (answer.status, answer.json["failed"][0]["code"]) == (
                409, "held")
            assert service_module.wait_for(waiting(service, 1))
            service.post("release", resource="r", token=lease["token"])
        else:
            told = answer.json["results"]
            assert [r["status"] for r in told] == [200, 409]
            assert told[1]["holders"][0]["holder"] == "b"
        assert waiter.result(10)["holder"] == "b"


# --- all or none ----------------------------------------------------------------

def test_atomic_does_all(service):
    told = results(service, op("grant", resource="r", holder="a"),
                   op("grant", resource="s", holder="a"), atomic=True)
    assert [r["token"] for r in told] == [1, 2]


def test_atomic_does_none_when_one_is_refused_and_says_which(service, clock):
    grant(service, "held", "b", ttl=30)
    answer = batch(
        service, op("grant", resource="r", holder="a"),
        op("grant", resource="held", holder="a"),
        op("fence", resource="r", token=7),
        op("renew", resource="r", token=99), atomic=True)
    assert (answer.status, answer.code) == (409, "atomic_failed")
    assert answer.headers["Content-Type"] == "application/problem+json"
    alone = [service.post("grant", resource="held", holder="a").json,
             service.post("renew", resource="r", token=99).json]
    assert answer.json["failed"] == [{"op": 1} | alone[0],
                                     {"op": 3} | alone[1]]
    assert len(events(service)) == 1
    assert service.post("fence", resource="r", token=1).status == 200


def test_atomic_gives_no_number_away_for_what_did_not_happen(service):
    batch(service, op("grant", resource="r", holder="a"),
          op("check", resource="r", token=99), atomic=True)
    assert grant(service)["token"] == 1


def test_atomic_neighbours_in_one_commit_do_not_hurt_each_other(service):
    """Failing and succeeding ones at the same time."""
    grant(service, "held", "b", ttl=600)

    def ask(worker):
        for i in range(support.scaled(30)):
            fails = i % 2
            answer = batch(
                service, op("grant", resource=f"{worker}/{i}", holder="a"),
                op("grant", resource="held" if fails else f"{worker}/{i}/b",
                   holder="a"), atomic=True)
            assert answer.status == (409 if fails else 200), answer.body
        return True

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(4)))
    leases = service.get("/v1/leases?limit=1000").json["leases"]
    assert len(leases) == 1 + 4 * 2 * -(-support.scaled(30) // 2)


def test_a_check_guards_what_follows(service, clock):
    lease = grant(service, ttl=30)
    guarded = (op("check", resource="r", token=lease["token"]),
               op("grant", resource="step-2", holder="a", ttl=5))
    assert batch(service, *guarded, atomic=True).status == 200
    clock.advance(30)
    answer = batch(service, *guarded, atomic=True)
    assert answer.code == "atomic_failed"
    assert answer.json["failed"][0]["code"] == "expired"
    assert service.get("/v1/leases").json["leases"] == []


def test_atomic_may_be_repeated_when_the_answer_was_lost(service):
    ops = (op("grant", resource="r", holder="a", request_id="k"),
           op("release", resource="r", token=1))
    for _ in range(2):
        told = results(service, ops[0], atomic=True)
        assert told[0]["token"] == 1
    assert results(service, ops[1], atomic=True)[0]["released"] is True
    assert results(service, ops[1], atomic=True)[0]["released"] is False


# --- what is not taken ----------------------------------------------------------

def test_every_mistake_is_told_at_once_with_its_place(service):
    answer = batch(
        service, op("grant", resource="", holder="a", ttl="30"),
        op("renew", resource="r"), op("check", resource="r", token=1, ttl=5),
        op("grant", resource="fine", holder="a"),
        op("fence", resource="r", token=True, request_id=""),
        colour="red", atomic=1)
    assert sorted(wrong(answer), key=str) == sorted([
        (("ops", 0, "resource"), "value"), (("ops", 0, "ttl"), "type"),
        (("ops", 1, "token"), "missing"), (("ops", 2, "ttl"), "unknown"),
        (("ops", 4, "token"), "type"), (("ops", 4, "request_id"), "value"),
        (("colour",), "unknown"), (("atomic",), "type")], key=str)
    assert events(service) == []


def test_the_rules_are_those_of_the_routes(service):
    """A body of its own and the same as one operation of many complain about
    the same."""
    bodies = [
        ("grant", {}), ("grant", {"resource": "x" * 513, "holder": "a\nb"}),
        ("grant", {"resource": 5, "holder": [], "ttl": 1e9, "capacity": 0}),
        ("grant", {"resource": "r", "holder": "a", "data": "x" * 4097}),
        ("grant", {"resource": "r", "holder": "a", "ttl": 0.0001}),
        ("renew", {"resource": "r", "token": 7.5, "ttl": {}}),
        ("renew", {"resource": None, "token": 2 ** 53}),
        ("release", {"resource": "r", "token": "1"}),
        ("check", {"resource": "r", "token": 1, "min_remaining": -1}),
        ("fence", {"resource": "\u0085", "token": 0}),
    ]
    answer = batch(service, *(op(name, **fields) for name, fields in bodies))
    told = wrong(answer) and answer.json["errors"]
    for i, (name, fields) in enumerate(bodies):
        alone = service.post(name, **fields)
        assert alone.status == 422
        assert [e | {"loc": ["body", *e["loc"][3:]]} for e in told
                if e["loc"][2] == i] == alone.json["errors"]


@pytest.mark.parametrize("ops, place, kind, said", [
    ([5], (0,), "type", "must be an object"),
    ([[]], (0,), "type", "must be an object"),
    ([None], (0,), "type", "must be an object"),
    ([{}], (0, "op"), "missing", "is required"),
    ([{"op": None}], (0, "op"), "missing", "is required"),
    ([{"op": 1}], (0, "op"), "type", f"must be one of: {NAMES}"),
    ([{"op": {}}], (0, "op"), "type", f"must be one of: {NAMES}"),
    ([{"op": "steal"}], (0, "op"), "value", f"must be one of: {NAMES}"),
    ([{"op": ""}], (0, "op"), "value", f"must be one of: {NAMES}"),
    ([{"op": "grant renew"}], (0, "op"), "value",
     f"must be one of: {NAMES}"),
    ([{"op": "batch", "ops": []}], (0, "op"), "value",
     f"must be one of: {NAMES}"),
    ([], (), "value", "must have 1 to 1000 operations, it has 0"),
    ([{"op": "check"}] * 1001, (), "value",
     "must have 1 to 1000 operations, it has 1001"),
    ({}, (), "type", "must be an array"),
    ("x", (), "type", "must be an array"),
    (None, (), "missing", "is required"),
])
def test_what_is_no_operation(service, ops, place, kind, said):
    answer = service.post("batch", ops=ops)
    assert wrong(answer) == [(("ops", *place), kind)]
    assert answer.json["errors"][0]["msg"] == said


def test_nobody_waits_in_a_batch(service):
    answer = batch(service, op("grant", resource="r", holder="a", wait=1))
    assert wrong(answer) == [(("ops", 0, "wait"), "unknown")]


@pytest.mark.parametrize("body", [
    '{"ops":[{"op":"check","op":"check","resource":"r","token":1}]}',
    '{"ops":[{"op":"check","op":2,"resource":"r","token":1}]}',
    '{"ops":[{"op":"check","resource":"r","token":1,"token":2}]}',
    '{"ops":[{"op":"check","resource":"r","token":1}],"ops":[]}',
    '{"ops":[{"op":"check","resource":"r","token":1}],'
    '"atomic":true,"atomic":true}',
])
def test_a_field_given_twice_is_400(service, body):
    """C137"""
    answer = service.post_raw("batch", body)
    assert (answer.status, answer.code) == (400, "duplicate_key")


def test_names_may_be_spelled_with_escapes(service):
    answer = service.post_raw("batch", r'{"\u006fps":[{"\u006fp":"\u0067rant",'
                              r'"resource":"\ud83d\udd12","holder":"a"}]}')
    assert answer.json["results"][0]["resource"] == "\U0001f512"


def test_many_mistakes_are_told_up_to_a_hundred(service):
    answer = batch(service, *[op("check")] * 1000)
    assert len(wrong(answer)) == 100


def test_the_body_may_be_a_mebibyte(service):
    body = json.dumps({"ops": [op("check", resource="r", token=1)]})
    for size, status in ((1 << 20, 200), ((1 << 20) + 1, 413),
                         (1_500_000, 413), (3_000_000, 413)):
        answer = service.post_raw("batch", body + " " * (size - len(body)))
        assert answer.status == status, size
    assert answer.code == "too_large"
    # The others are as small as ever.
    assert service.post_raw("check", " " * 65_537).status == 413


def test_a_batch_full_of_the_longest_names_is_taken(service):
    ops = [op("renew", resource="r" * 512, token=2 ** 53 - 1, ttl=86400,
              request_id="k" * 128) for _ in range(1000)]
    assert {r["code"] for r in results(service, *ops)} == {"unknown"}


# --- when things go wrong -------------------------------------------------------

def test_a_lock_that_lasts_is_503_and_nothing_happened(service):
    with support.connect(str(service.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        answer = batch(service, op("grant", resource="r", holder="a"),
                       op("grant", resource="s", holder="a"))
        con.execute("ROLLBACK")
    assert (answer.status, answer.code) == (503, "busy")
    assert answer.headers["Retry-After"]
    assert events(service) == []
    assert service.get("/v1/status").json["queue"]["waiting"] == 0


@pytest.mark.plain
def test_too_much_at_once_is_503_and_leaves_single_requests_alone(service):
    """While somebody else holds the lock, 10,000 operations may wait."""
    ops = [op("check", resource="r", token=1) for _ in range(1000)]
    with support.connect(str(service.db)) as con, \
            concurrent.futures.ThreadPoolExecutor(12) as pool:
        con.execute("BEGIN IMMEDIATE")
        asked = [pool.submit(batch, service, *ops) for _ in range(11)]
        done, _ = concurrent.futures.wait(
            asked, 4, concurrent.futures.FIRST_COMPLETED)
        refused = next(iter(done)).result()
        assert (refused.status, refused.code) == (503, "overloaded")
        single = pool.submit(grant, service)
        con.execute("ROLLBACK")
        assert sorted(a.result().status for a in asked) == [200] * 10 + [503]
        assert single.result()["token"] == 1
