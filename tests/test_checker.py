"""The checker must find what is wrong: each history here is one that must
not pass, and the first is one that must."""

import pytest

import checker

S = checker.NS


def op(kind, start, end, token=None, client="a", outcome="ok", **args):
    args = {"resource": "r", **args}
    if kind == "grant":
        args = {"holder": client, "ttl": 2, **args}
    result = {} if token is None else {"token": token, "remaining": 2}
    if kind == "release":
        result = {"released": True}
    return checker.Op(client, kind, args, start * S, end * S, outcome, result)


def event(token, kind, at, holder="a", epoch=None, expires_at=None,
          capacity=1):
    return {"token": token, "event": kind, "at": at, "resource": "r",
            "holder": holder, "epoch": epoch or token, "capacity": capacity,
            "expires_at": expires_at}


GOOD_LOG = [
    event(1, "granted", 1000, expires_at=3000),
    event(2, "renewed", 2000, epoch=1, expires_at=4000),
    event(3, "released", 2500, epoch=1),
    event(4, "granted", 2600, "b", expires_at=4600),
    event(5, "expired", 5000, "b", epoch=4),
]

GOOD = [
    op("grant", 1, 1.1, 1),
    checker.Op("a", "renew", {"resource": "r", "token": 1}, 2 * S,
               round(2.1 * S), "ok", {"token": 2, "remaining": 2}),
    checker.Op("a", "release", {"resource": "r", "token": 2},
               round(2.5 * S), round(2.55 * S), "ok", {"released": True}),
    op("grant", 2.6, 2.7, 4, client="b"),
]


def test_a_true_history_passes():
    assert checker.problems(GOOD, GOOD_LOG) == []


def test_a_lease_renewed_twice_from_one_token_may_be_released_by_either():
    ops = [op("grant", 1, 1.1, 1),
           op("renew", 1.2, 1.3, 3), op("renew", 1.4, 1.5, 4),
           op("release", 1.6, 1.7), op("grant", 2, 2.1, 5, client="b")]
    ops[1].args["token"] = ops[2].args["token"] = 1
    for token, fine in ((3, True), (4, True), (2, False)):
        ops[3].args["token"] = token
        assert fine == (not list(checker.one_at_a_time(ops)))


@pytest.mark.parametrize("check, ops", [
    (checker.tokens_once,
     [op("grant", 1, 2, 7), op("grant", 3, 4, 7, client="b")]),
    (checker.tokens_in_order,
     [op("grant", 1, 2, 8), op("grant", 3, 4, 7, client="b")]),
    (checker.one_at_a_time,
     [op("grant", 1, 1.1, 7), op("grant", 2, 2.1, 8, client="b")]),
], ids=["a token twice", "a token that went back", "two holders at once"])
def test_a_false_history_is_found(check, ops):
    assert list(check(ops))


def test_overlapping_calls_may_have_tokens_in_either_order():
    ops = [op("grant", 1, 3, 8), op("grant", 2, 4, 7, client="b")]
    assert not list(checker.tokens_in_order(ops))


def test_a_grant_after_the_time_sent_plus_ttl_is_no_overlap():
    ops = [op("grant", 1, 2.9, 7), op("grant", 2.95, 3.0, 8, client="b")]
    assert not list(checker.one_at_a_time(ops))


def test_an_acknowledged_grant_that_is_not_in_the_log_is_found():
    assert list(checker.acknowledged_kept(GOOD, GOOD_LOG[:3]))


def test_an_acknowledged_release_that_is_not_in_the_log_is_found():
    assert list(checker.acknowledged_kept(GOOD[:3], GOOD_LOG[:2]))


def test_an_unanswered_call_need_not_be_in_the_log():
    ops = [checker.Op("a", "grant", {"resource": "r", "holder": "a",
                                     "ttl": 2}, S)]
    assert checker.problems(ops, []) == []


@pytest.mark.parametrize("log", [
    [event(1, "granted", 1000, expires_at=3000),
     event(2, "granted", 2000, "b", expires_at=4000)],
    [event(1, "granted", 1000, expires_at=3000),
     event(2, "granted", 3000, "b", expires_at=5000)],
    [event(1, "granted", 1000, expires_at=3000),
     event(2, "renewed", 3000, epoch=1, expires_at=5000)],
    [event(1, "granted", 1000, expires_at=3000),
     event(2, "expired", 2999, epoch=1)],
    [event(1, "granted", 1000, expires_at=3000),
     event(2, "renewed", 2000, epoch=1, expires_at=2500)],
    [event(1, "granted", 1000, expires_at=3000),
     event(2, "released", 900, epoch=1)],
    [event(1, "released", 900, epoch=1)],
], ids=["two holders", "expiry not told", "renewed when over",
        "expired early", "renewal shortens", "time goes back",
        "an end without a beginning"])
def test_a_log_against_the_rules_is_found(log):
    assert list(checker.log_obeys_the_rules(log))


def test_a_log_file_cut_short_by_a_kill_is_read(tmp_path):
    path = tmp_path / "a.log"
    log = checker.Log(path, "a")
    log.begin("grant", resource="r", holder="a", ttl=2).ok(token=1)
    log.begin("grant", resource="r", holder="a", ttl=2)
    log.close()
    with open(path, "ab") as cut:
        cut.write(b'{"n": 2, "outc')
    first, second = checker.read([path])
    assert (first.outcome, first.token) == ("ok", 1)
    assert (second.outcome, second.end) == ("unknown", float("inf"))
