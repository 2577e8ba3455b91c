"""witness.py: does the event log explain what clients saw, and the other way
round? The log gives the order that linear.py would have to search for.

    told = witness.Witness(ops, events, anchor_ms)
    for problem in told.problems(): ...

Every event must have a call that caused it, within that call; every
acknowledged change must have its event; what an answer told must be what was
written; no lease is promised shorter than asked for. Then each call without an
answer is known to have happened or not, and linear.py is asked whether the
order of the log explains all answers, refusals and reads.

A grant carries a name of its own in data, a revocation in its reason. anchor_ms
is lease time minus boot time.
"""

from dataclasses import replace

import linear

MS = 1_000_000
ENDS = ("released", "revoked", "expired")


class Witness:
    def __init__(self, ops, log, anchor_ms):
        self.log, self.anchor_ms = log, anchor_ms
        self.ops = [replace(op, result=dict(op.result)) for op in ops]
        self.found = []
        self.by_tag, self.by_token, self.releases = {}, {}, []
        for op in self.ops:
            op.caused = 0
            self.file(op)
        self.epoch = {e["token"]: e["epoch"] for e in log}

    def file(self, op):
        if op.op == "grant":
            self.by_tag.setdefault(op.args["data"], []).append(op)
        elif op.op == "revoke":
            self.by_tag.setdefault(op.args["reason"], []).append(op)
        elif op.op == "renew" and op.outcome == "ok":
            self.by_token[op.token] = op

    def boot(self, ms):
        return (ms - self.anchor_ms) * MS

    def within(self, op, event):
        """Was it decided between the question and the answer?"""
        at = self.boot(event["at"])
        return op.start < at + MS and at <= op.end

    def may(self, op, event):
        return op.outcome in ("ok", "unknown") and self.within(op, event)

    # --- what caused an event ---------------------------------------------------

    def cause(self, event):
        kind = event["event"]
        if kind == "granted":
            same = [op for op in self.by_tag.get(event["data"], [])
                    if self.may(op, event) and not op.caused
                    and op.token in (None, event["token"])]
            return min(same, key=lambda op: op.outcome, default=None)
        if kind == "revoked":
            same = self.by_tag.get(event["reason"], [])
            return next((op for op in same if self.may(op, event)), None)
        if kind == "renewed" and event["token"] in self.by_token:
            op = self.by_token[event["token"]]
            return op if self.within(op, event) else None
        wanted = {"renewed": "renew", "released": "release"}[kind]
        same = [op for op in self.ops
                if op.op == wanted and not op.caused
                and self.epoch.get(op.args["token"]) == event["epoch"]
                and self.may(op, event) and op.token is None
                and op.result.get("released", True)]
        return min(same, key=lambda op: op.outcome, default=None)

    def explain(self, event):
        op = self.cause(event)
        if op is None:
            self.found.append(f"nobody asked for it then: {event}")
            return
        op.caused += 1
        op.result.setdefault("order", event["token"])
        if event["event"] in ("granted", "renewed"):
            self.promise(op, event)
        if op.outcome == "unknown" and event["event"] == "released":
            op.result["released"] = True

    def promise(self, op, event):
        until = self.boot(event["expires_at"])
        if event["expires_at"] - event["at"] < round(op.args["ttl"] * 1000):
            self.found.append(f"shorter than asked for: {op}; {event}")
        if op.result.get("expires", until) != until:
            self.found.append(f"another end than was told: {op}; {event}")
        if event["event"] == "granted" and (
                event["resource"], event["holder"], event["capacity"]) != (
                op.resource, op.args["holder"], op.args["capacity"]):
            self.found.append(f"not what was asked for: {op}; {event}")
        op.result |= {"token": event["token"], "expires": until}

    # --- what calls should have caused ------------------------------------------

    def kept(self, op):
        if op.op == "revoke" and op.outcome == "unknown":
            op.result["revoked"] = op.caused
        wanted = {"grant": 0 if op.result.get("replayed") else 1, "renew": 1,
                  "release": op.result.get("released", 0),
                  "revoke": op.result.get("revoked", 0)}.get(op.op, 0)
        if op.outcome == "ok" and not (
                op.caused == wanted or op.result.get("replayed")):
            self.found.append(f"acknowledged, but {op.caused} events: {op}")
        if op.outcome == "unknown" and op.caused:
            op.outcome = "ok"

    def early(self):
        until = {}
        for e in self.log:
            if e["event"] == "expired" and e["at"] < until.get(e["epoch"], 0):
                yield f"expired before its end: {e}"
            if e["event"] in ("granted", "renewed"):
                until[e["epoch"]] = e["expires_at"]

    def problems(self, undecided=None):
        for event in self.log:
            if event["event"] not in ("expired", "restored"):
                self.explain(event)
        for op in self.ops:
            self.kept(op)
        yield from self.found
        yield from self.early()
        if not self.found:
            settled = [op for op in self.ops if op.outcome != "unknown"]
            yield from linear.problems(settled, undecided)


def projection(log, leases):
    """Is the table lease what the log says? Rows as dicts."""
    fold = {}
    for e in log:
        if e["event"] == "granted":
            fold[e["epoch"]] = {k: e[k] for k in (
                "epoch", "token", "resource", "holder", "capacity", "ttl",
                "expires_at", "data")}
        elif e["event"] == "renewed":
            fold[e["epoch"]] |= {k: e[k] for k in (
                "token", "ttl", "expires_at")}
        elif e["event"] in ENDS:
            del fold[e["epoch"]]
    table = {row["epoch"]: row for row in leases}
    for epoch in fold.keys() | table.keys():
        want, have = fold.get(epoch), table.get(epoch)
        if want is None or have is None or any(
                have[k] != v for k, v in want.items()):
            yield f"half done: the log says {want}, the table {have}"


def handed_on(ops, log, anchor_ms, quiet):
    """How long, in ms, a resource was free while somebody waited for it: from
    the end of a lease that ran out, to the instant of the next grant. Only
    where a grant over HTTP waited from 20 ms before to the instant, where each
    grant was for one holder, and where quiet(from, to) says that nothing
    disturbed the service."""
    shared = {e["resource"] for e in log
              if e["event"] == "granted" and e["capacity"] != 1}
    waiting = {}
    for op in ops:
        if op.op == "grant" and op.args.get("wait"):
            waiting.setdefault(op.resource, []).append(op)
    ended = {}
    for e in log:
        resource = e["resource"]
        if e["event"] in ENDS:
            ended[resource] = e["event"], (e["expires_at"] - anchor_ms) * MS
        elif e["event"] == "granted" and resource not in shared:
            how, end = ended.get(resource, (None, 0))
            at = (e["at"] - anchor_ms) * MS
            waited = [op for op in waiting.get(resource, [])
                      if op.start < end - 20 * MS and op.end >= at
                      and at < op.start + op.args["wait"] * 1000 * MS]
            if how == "expired" and waited and quiet(end - 20 * MS, at):
                yield max(0, at - end) / MS
