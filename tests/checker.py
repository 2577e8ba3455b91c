"""checker.py: what clients saw, written down, and whether it can be true.

Each client appends to a log of its own, one line when a call begins and one
when its answer is there. A call without an answer may have happened or not, and
may still happen after the client gave up: it has no end.

    log = checker.Log("w1.log", "w1")
    call = log.begin("grant", resource="r", holder="w1", ttl=2)
    call.ok(token=17, remaining=2.0)       # or call.refused() call.unknown()

    ops = checker.read(["w1.log", "w2.log"])
    events = checker.events(sqlite_connection)
    assert not checker.problems(ops, events)

Times are nanoseconds of CLOCK_BOOTTIME, which all processes of a machine
share. The checks, each a function that yields sentences:

tokens_once           no grant or renewal answered a token answered before
tokens_in_order       who began after another ended has the higher token
acknowledged_kept     every acknowledged change is in the event log
one_at_a_time         no two clients were both sure to hold one resource
log_obeys_the_rules   the event log itself, event by event
"""

import json
import os
import time
from dataclasses import dataclass, field
from itertools import groupby

NS = 1_000_000_000
# How much too early a lease may end, in ns: not at all.
GRAIN = 0
GIVES_TOKEN = ("grant", "renew")


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Log:
    """An append-only file of one client; each line is one write()."""

    def __init__(self, path, client):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.client = client
        self.number = 0

    def write(self, **record):
        os.write(self.fd, json.dumps(record).encode() + b"\n")

    def begin(self, op, **arguments):
        self.number += 1
        call = Call(self, self.number)
        self.write(n=self.number, client=self.client, op=op, args=arguments,
                   start=now_ns())
        return call

    def close(self):
        os.close(self.fd)


class Call:
    def __init__(self, log, number):
        self.log = log
        self.number = number

    def end(self, outcome, **result):
        self.log.write(n=self.number, outcome=outcome, end=now_ns(),
                       result=result)

    def ok(self, **result):
        self.end("ok", **result)

    def refused(self, **result):
        self.end("refused", **result)

    def unknown(self, **result):
        self.end("unknown", **result)


@dataclass
class Op:
    client: str
    op: str
    args: dict
    start: int
    end: float = float("inf")
    outcome: str = "unknown"
    result: dict = field(default_factory=dict)

    @property
    def resource(self):
        return self.args.get("resource")

    @property
    def token(self):
        """The token that was answered."""
        return self.result.get("token")

    def __str__(self):
        return (f"{self.client}: {self.op} {self.args} at "
                f"{self.start / NS:.3f} -> {self.outcome} {self.result}")


def read(paths):
    """All calls of all logs. A last line cut short by a kill is left out."""
    ops = []
    for path in paths:
        begun = {}
        with open(path, "rb") as log:
            for line in log:
                if not line.endswith(b"\n"):
                    break
                record = json.loads(line)
                if "op" in record:
                    begun[record["n"]] = Op(record["client"], record["op"],
                                            record["args"], record["start"])
                else:
                    op = begun[record["n"]]
                    op.outcome = record["outcome"]
                    op.result = record["result"]
                    if op.outcome != "unknown":
                        op.end = record["end"]
        ops += begun.values()
    return ops


def events(con):
    """The event log as dicts, oldest first."""
    rows = con.execute("SELECT * FROM main.lease_event ORDER BY token")
    names = [column[0] for column in rows.description]
    return [dict(zip(names, row)) for row in rows]


def answered(ops):
    return [op for op in ops
            if op.outcome == "ok" and op.op in GIVES_TOKEN]


def tokens_once(ops):
    seen = {}
    for op in answered(ops):
        if op.token in seen and not op.result.get("replayed"):
            yield f"token {op.token} twice: {seen[op.token]}; {op}"
        seen[op.token] = op


def tokens_in_order(ops):
    """Sweep in the order of starts beside the order of ends: the highest
    token that had been answered before a call began is below its own."""
    ops = [op for op in answered(ops) if not op.result.get("replayed")]
    by_end = sorted(ops, key=lambda op: op.end)
    done, highest = 0, None
    for op in sorted(ops, key=lambda op: op.start):
        while done < len(by_end) and by_end[done].end < op.start:
            if highest is None or by_end[done].token > highest.token:
                highest = by_end[done]
            done += 1
        if highest is not None and op.token <= highest.token:
            yield f"token went back: {highest}; later {op}"


def acknowledged_kept(ops, log):
    """Whatever was answered ok stands in the log as what it was."""
    by_token = {e["token"]: e for e in log}
    ended = {}
    for e in log:
        if e["event"] in ("released", "revoked", "expired"):
            ended.setdefault((e["resource"], e["epoch"]), e["event"])
    kinds = {"grant": "granted", "renew": "renewed"}
    for op in ops:
        if op.outcome != "ok":
            continue
        if op.op in kinds:
            e = by_token.get(op.token)
            if e is None:
                yield f"lost: {op}"
            elif (e["event"], e["resource"]) != (kinds[op.op], op.resource):
                yield f"not what was answered: {op}; {e}"
            elif op.op == "grant" and e["holder"] != op.args["holder"]:
                yield f"another's: {op}; {e}"
        elif op.op == "release" and op.result.get("released"):
            e = by_token.get(op.args["token"])
            if e is not None and (e["resource"], e["epoch"]) not in ended:
                yield f"lost: {op}"


def tenures(ops):
    """(resource, from, to, op): when a client could be sure to hold. From the
    answer to its grant, to the ttl after it sent the last grant or renewal,
    or to the first try to end it early, by whichever of its tokens."""
    of, renewals, early, revoked = {}, {}, {}, {}
    for op in sorted(answered(ops), key=lambda op: op.token):
        told = (op.client, op.resource, op.token)
        if op.op == "grant":
            of[told] = told
        elif op.op == "renew":
            shown = (op.client, op.resource, op.args["token"])
            of[told] = of.get(shown)
            renewals.setdefault(of[told], []).append(op)
    for op in ops:
        if op.op == "release" and op.outcome != "refused":
            shown = of.get((op.client, op.resource, op.args["token"]))
            early.setdefault(shown, []).append(op.start)
        elif op.op == "revoke" and op.outcome != "refused":
            revoked.setdefault(op.resource, []).append(op)
    for grant in ops:
        if grant.op != "grant" or grant.outcome != "ok":
            continue
        tenure = (grant.client, grant.resource, grant.token)
        end = max(op.start + round(NS * op.result.get(
            "remaining", op.args.get("ttl")))
            for op in [grant, *renewals.get(tenure, [])])
        end = min([end, *early.get(tenure, []), *(
            op.start for op in revoked.get(grant.resource, [])
            if op.end > grant.start)])
        if grant.end < end:
            yield grant.resource, grant.end, end, grant


def one_at_a_time(ops, grain=GRAIN):
    """For resources that only ever were asked for with capacity 1."""
    shared = {op.resource for op in ops if op.args.get("capacity", 1) != 1}
    held = sorted((t for t in tenures(ops) if t[0] not in shared),
                  key=lambda t: (t[0], t[1]))
    for resource, group in groupby(held, key=lambda t: t[0]):
        until, who = 0, None
        for _, begin, end, grant in group:
            if begin < until - grain:
                yield (f"{resource} held twice for "
                       f"{(min(until, end) - begin) / 1e6:.1f} ms: {who}; "
                       f"{grant}")
            if end > until:
                until, who = end, grant


def log_obeys_the_rules(log):
    """Replay the log. Its own times must never go back; a grant needs room, a
    renewal a tenure in force, an end a tenure; who has run out is told to have
    expired before the resource is granted again."""
    active, last_at = {}, None
    for e in log:
        at, resource, holder = e["at"], e["resource"], e["holder"]
        held = active.setdefault(resource, {}) if resource else {}
        if last_at is not None and at < last_at:
            yield f"time went back: {e}"
        last_at = at
        if e["event"] == "granted":
            over = [h for h, g in held.items() if g["expires_at"] <= at]
            if over:
                yield f"granted before {over} was told to have expired: {e}"
            others = [g for h, g in held.items() if h != holder]
            room = min([g["capacity"] for g in others] + [e["capacity"]])
            if holder in held or len(others) >= room:
                yield f"granted while held by {list(held)}: {e}"
            held[holder] = dict(e)
        elif e["event"] in ("renewed", "released", "revoked", "expired"):
            mine = held.get(holder)
            if mine is None or mine["epoch"] != e["epoch"]:
                yield f"{e['event']} without a tenure: {e}"
                continue
            over = mine["expires_at"] <= at
            if over != (e["event"] == "expired"):
                yield f"{e['event']} at the wrong time: {e}; {mine}"
            if e["event"] == "renewed":
                if e["expires_at"] < mine["expires_at"]:
                    yield f"a renewal shortened: {e}; {mine}"
                mine["expires_at"] = e["expires_at"]
            else:
                del held[holder]


def problems(ops, log):
    """Everything that is wrong, as sentences; an empty list when all is well.
    The rules need a log from its beginning."""
    found = [*tokens_once(ops), *tokens_in_order(ops),
             *acknowledged_kept(ops, log), *one_at_a_time(ops),
             *log_obeys_the_rules(log)]
    return found
