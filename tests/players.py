"""players.py: clients that do what workers do, for tests/fire.py: each is a
process of its own, by HTTP or with the extension loaded, and writes down every
call with its answer (checker.Log).

    player = players.Http(port, anchor_ms)           # or players.Sql(path)
    outcome, result = player.ask("grant", {"resource": "r", "holder": "w1",
                                           "ttl": 0.4, "capacity": 1})

Outcomes: ok, refused, failed (an answer that promises that nothing was done),
unknown. From HTTP, result has "expires": the end that was told, ns of the boot
clock.
"""

import contextlib
import http.client
import json
import sqlite3
import time
from datetime import datetime
from urllib.parse import quote

import checker
import clients
import support

MS = 1_000_000
# With 409 or 503; with 502 nobody knows.
NOTHING_DONE = ("busy", "overloaded", "stopping", "read_only", "taken_over",
                "unavailable")
FIELDS = ("resource", "holder", "ttl", "capacity", "data", "wait", "token",
          "reason")


class Http(clients.Http):
    def __init__(self, port, anchor_ms):
        super().__init__(port, timeout=3)
        self.anchor_ms = anchor_ms

    def send(self, method, path, body=None, key=None):
        headers = {"Content-Type": "application/json"} if body else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        try:
            self.con.request(method, path, body and json.dumps(body), headers)
            answer = self.con.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except ConnectionRefusedError:
            self.con.close()
            return 503, {"code": "unavailable"}
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.con.close()
            return 0, {"code": repr(error)}

    def ask(self, kind, args):
        if kind == "list":
            status, answer = self.send("GET", "/v1/leases?limit=1000&prefix="
                                       + quote(args["prefix"]))
        else:
            body = {k: v for k, v in args.items()
                    if k in FIELDS and v is not None}
            status, answer = self.send("POST", f"/v1/{kind}", body,
                                       args.get("key"))
        if not isinstance(answer, dict):
            answer = {}
        outcome = self.outcome(kind, status, answer)
        if outcome not in ("ok", "refused"):
            return outcome, {"why": f"{status} {answer.get('code')}"}
        return outcome, getattr(self, f"read_{kind}")(status, answer)

    @staticmethod
    def outcome(kind, status, answer):
        code = answer.get("code")
        if code in NOTHING_DONE and status in (409, 503):
            return "failed"
        if status == 200 or (kind in ("release", "revoke") and status == 404):
            return "ok"
        over = {"grant": (409, 410), "renew": (404, 410), "check": (404, 410)}
        return "refused" if code and status in over.get(kind, ()) \
            else "unknown"

    def read_grant(self, status, answer):
        if status == 409:
            return {"ahead": answer["ahead"]}
        if status == 410:
            return {"why": answer["code"]}
        until = datetime.fromisoformat(answer["expires_at"]).timestamp()
        return {"token": answer["token"], "epoch": answer["epoch"],
                "expires": (round(until * 1000) - self.anchor_ms) * MS}

    def read_renew(self, status, answer):
        return self.read_grant(status, answer) if status == 200 else {}

    def read_release(self, _status, answer):
        return {"released": answer.get("released", False)}

    def read_revoke(self, _status, answer):
        return {"revoked": answer.get("revoked", 0)}

    def read_check(self, _status, _answer):
        return {}

    def read_list(self, _status, answer):
        return by_resource((l["resource"], l["holder"], l["token"])
                           for l in answer["leases"])


class Sql:
    """Where a call fails, SQLite undid it."""

    def __init__(self, path):
        self.con = support.connect(str(path), timeout=10)

    def close(self):
        self.con.close()

    def ask(self, kind, args):
        try:
            return getattr(self, kind)(args)
        except sqlite3.OperationalError as error:
            return "failed", {"why": f"{error.sqlite_errorname}: {error}"}

    def value(self, sql, *args):
        return support.one(self.con, sql, *args)

    def grant(self, args):
        token = self.value(
            "SELECT lease_grant(?, ?, ?, ?, ?, ?)", args["resource"],
            args["holder"], args["ttl"], args["capacity"], args.get("data"),
            args.get("key"))
        return ("ok", {"token": token}) if token else ("refused", {})

    def renew(self, args):
        token = self.value("SELECT lease_renew(?, ?, ?)", args["resource"],
                           args["token"], args["ttl"])
        return ("ok", {"token": token}) if token else ("refused", {})

    def release(self, args):
        return "ok", {"released": bool(self.value(
            "SELECT lease_release(?, ?)", args["resource"], args["token"]))}

    def revoke(self, args):
        return "ok", {"revoked": self.value(
            "SELECT lease_revoke(?, ?, ?)", args["resource"],
            args.get("holder"), args["reason"])}

    def check(self, args):
        held = self.value("SELECT lease_check(?, ?)", args["resource"],
                          args["token"])
        return "ok" if held else "refused", {}

    def list(self, args):
        return "ok", by_resource(self.con.execute(
            "SELECT resource, holder, token FROM lease_active"
            " WHERE resource GLOB ?", (args["prefix"] + "*",)).fetchall())


def by_resource(rows):
    leases = {}
    for resource, holder, token in rows:
        leases.setdefault(resource, []).append([holder, token])
    return {"leases": leases}


class Life:
    """One client: its calls, each written down before and after."""

    def __init__(self, player, path, name, dice, plan):
        self.player, self.name, self.dice, self.plan = player, name, dice, plan
        self.episode = path.parent.name
        self.log = checker.Log(path, name)
        self.waits = isinstance(player, Http)
        self.old = []               # (resource, token) of before

    def do(self, kind, again=False, **args):
        call = self.log.begin(kind, **args)
        outcome, result = self.player.ask(kind, args)
        if again and outcome == "ok":
            result["replayed"] = True
        call.end(outcome, **result)
        return outcome, result

    def tag(self):
        return f"{self.name}/{self.log.number + 1}"

    def pause(self, most=0.02):
        time.sleep(self.dice.uniform(0, most))

    def take(self, resource, capacity):
        """A grant; sent again under its key when the answer was lost."""
        args = {"resource": resource, "holder": self.name, "data": self.tag(),
                "ttl": self.dice.choice([0.15, 0.3, 0.6]),
                "capacity": capacity}
        if self.dice.random() < 0.6:
            args["key"] = args["data"]
        if self.waits and self.dice.random() < 0.6:
            args["wait"] = self.dice.choice([0.2, 0.5, 1.0])
        outcome, result = self.do("grant", **args)
        for _ in range(6 if "key" in args else 0):
            if outcome not in ("unknown", "failed"):
                break
            self.pause(0.2)
            outcome, result = self.do("grant", again=True, **args)
        return result["token"] if outcome == "ok" else None

    def hold(self, resource, token):
        for _ in range(self.dice.randrange(4)):
            self.pause(0.1)
            if self.dice.random() < 0.4:
                self.do("check", resource=resource, token=token)
                continue
            outcome, result = self.do(
                "renew", resource=resource, token=token,
                ttl=self.dice.choice([0.15, 0.3, 0.6]))
            self.old.append((resource, token))
            if outcome == "ok":
                token = result["token"]
            elif outcome == "refused":
                return
        if self.dice.random() < 0.6:
            self.do("release", resource=resource, token=token)
        self.old.append((resource, token))

    def other(self, resource):
        """Something that needs no lease of one's own."""
        dice = self.dice.random()
        if dice < 0.3:
            holder = f"w{self.dice.randrange(6)}"
            self.do("revoke", resource=resource, reason=self.tag(),
                    holder=holder if self.dice.random() < 0.5 else None)
        elif dice < 0.6:
            self.do("list", prefix=resource.partition("/")[0] + "/")
        elif self.old:
            resource, token = self.dice.choice(self.old[-5:])
            kind = self.dice.choice(["check", "check", "release", "renew"])
            more = {"ttl": 0.3} if kind == "renew" else {}
            self.do(kind, resource=resource, token=token, **more)

    def live(self, shared):
        """shared[0]: it is time to end; shared[1]: whose turn it is, of the
        resources, so that the history of each stays short."""
        while not shared[0]:
            resource, capacities = self.dice.choice(self.plan)
            resource = f"{self.episode}.{shared[1]}/{resource}"
            if self.dice.random() < 0.3:
                self.other(resource)
            elif token := self.take(resource, self.dice.choice(capacities)):
                self.hold(resource, token)
            self.pause()
        with contextlib.suppress(OSError):
            self.player.close()
