"""peer_etcd.py: one etcd node through its own HTTP gateway.

A grant of a name with a ttl of its own takes a lease and a transaction that
makes the key if it is not there: two requests, sent together on one
connection, so that the second costs no way of its own. A client that has a
lease already, a session, needs the transaction only: that is told as a
system of its own. Keeping a lease alive writes nothing there: after a crash
the whole ttl begins anew, and there is no new number to fence with. What does
the work of a renewal, durable and with a new number (the key's revision), is
the session's transaction that writes the key again if it is still the
holder's.
"""

import base64
import http.client
import json
import shutil
import subprocess

import load
from service import free_port, wait_for


def claim(key, lease):
    return json.dumps({
        "compare": [{"key": key, "target": "CREATE", "result": "EQUAL",
                     "create_revision": "0"}],
        "success": [{"request_put": {"key": key, "value": "Yg==",
                                     "lease": lease}}]})


def again(key, lease):
    return json.dumps({
        "compare": [{"key": key, "target": "VALUE", "result": "EQUAL",
                     "value": "Yg=="}],
        "success": [{"request_put": {"key": key, "value": "Yg==",
                                     "lease": lease}}]})


class Etcd:
    name, note = "etcd: lease and transaction", "durable, renewals not"
    parts = [("/v3/lease/grant", '{"TTL":"3600","ID":"NUMBER"}'),
             ("/v3/kv/txn", claim("NAME", "NUMBER"))]

    def start(self, folder):
        self.port, peers = free_port(), free_port()
        url, peer = (f"http://127.0.0.1:{p}" for p in (self.port, peers))
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [shutil.which("etcd"), "--data-dir", str(folder / "data"),
                 "--listen-client-urls", url, "--advertise-client-urls", url,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls",
                 peer, "--initial-cluster", f"default={peer}"],
                stdout=log, stderr=log)

        def ready():
            try:
                return self.post("/v3/kv/range", {"key": "aaaa"})
            except OSError:
                return None
        wait_for(ready, 30, "etcd answers")
        assert self.post("/v3/lease/grant", {"TTL": "3600", "ID": "7"})["ID"]
        for i in range(256):
            self.post("/v3/lease/grant", {"TTL": "3600", "ID": str(1000 + i)})

    def stop(self):
        load.end(self.process)

    def post(self, path, fields):
        con = http.client.HTTPConnection("127.0.0.1", self.port)
        con.request("POST", path, json.dumps(fields))
        answer = json.loads(con.getresponse().read())
        con.close()
        return answer

    def run(self, work, clients, seconds, seed):
        if work == "fresh":
            return load.http(self.port, clients, seconds, seed, self.parts)
        if work == "contended":
            held = claim(base64.b64encode(b"held").decode(), "7")
            self.post("/v3/kv/txn", json.loads(held))
            return load.http(self.port, clients, seconds, seed,
                             [("/v3/kv/txn", held)])
        return load.http(self.port, clients, seconds, seed, bodies=(
            "/v3/lease/keepalive",
            [f'{{"ID":"{1000 + i}"}}' for i in range(clients)]))


class EtcdSession(Etcd):
    """The same node, one request a grant or renewal."""

    name, note = "etcd: transaction of a session", "durable"
    parts = [("/v3/kv/txn", claim("NAME", "7"))]

    def __init__(self, etcd):
        self.etcd = etcd

    def start(self, folder):
        self.port = self.etcd.port

    def stop(self):
        pass

    def run(self, work, clients, seconds, seed):
        if work == "fresh":
            return super().run(work, clients, seconds, seed)
        if work == "contended":
            return None
        keys = [base64.b64encode(b"own %d" % i).decode()
                for i in range(clients)]
        for key in keys:
            self.post("/v3/kv/txn", json.loads(claim(key, "7")))
            done = self.post("/v3/kv/txn", json.loads(again(key, "7")))
            assert done["succeeded"]
        return load.http(self.port, clients, seconds, seed, bodies=(
            "/v3/kv/txn", [again(key, "7") for key in keys]))
