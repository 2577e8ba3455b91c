"""peer_redis.py: Redis that syncs its file before it answers (appendfsync
always), by redis-benchmark, in its own protocol: SET NX PX, and for a renewal
the usual script that compares the holder. Names are random numbers."""

import csv
import subprocess

import load
from service import free_port, wait_for

RENEW = ("if redis.call('get', KEYS[1]) == ARGV[1] then "
         "return redis.call('pexpire', KEYS[1], 3600000) end return 0")


class Redis:
    name, note = "Redis SET NX PX", "durable, own protocol"

    def start(self, folder):
        self.port = free_port()
        self.rates = {}
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
             "--dir", str(folder), "--appendonly", "yes", "--appendfsync",
             "always", "--save", "", "--logfile", str(folder / "log")],
            stdout=subprocess.DEVNULL)
        wait_for(lambda: b"PONG" in self.cli("ping"), 20, "Redis answers")
        self.cli("set", "held", "first", "px", "3600000")
        for i in range(256):
            self.cli("set", f"own:{i:012}", "b", "px", "3600000")

    def cli(self, *words):
        return subprocess.run(
            ["redis-cli", "-p", str(self.port), *words], check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

    def stop(self):
        load.end(self.process)

    def benchmark(self, clients, requests, names, words):
        said = subprocess.run(
            ["redis-benchmark", "-p", str(self.port), "-c", str(clients), "-n",
             str(requests), "-r", str(names), "--csv", *words], text=True,
            check=True, stdout=subprocess.PIPE).stdout
        row = next(csv.DictReader(said.splitlines()))
        return load.Figure(float(row["rps"]), float(row["p50_latency_ms"]),
                           float(row["p99_latency_ms"]))

    def run(self, work, clients, seconds, _seed):
        names, words = {
            "fresh": (2**31 - 1, ["set", "load:__rand_int__", "b", "nx", "px",
                                   "3600000"]),
            "contended": (1, ["set", "held", "b", "nx", "px", "3600000"]),
            "renew": (clients, ["eval", RENEW, "1", "own:__rand_int__", "b"]),
        }[work]
        key = work, clients
        if key not in self.rates:   # it counts requests, not seconds
            self.rates[key] = self.benchmark(clients, 1000, names, words).rate
        figure = self.benchmark(
            clients, max(1000, int(self.rates[key] * seconds)), names, words)
        self.rates[key] = figure.rate
        return figure
