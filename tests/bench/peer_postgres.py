"""peer_postgres.py: PostgreSQL with the usual UPSERT, by pgbench, prepared,
in its own protocol over a Unix socket, synchronous_commit on."""

import glob
import os
import re
import subprocess

import load
from service import free_port, wait_for

SCHEMA = """
CREATE SEQUENCE token;
CREATE TABLE lease(resource text PRIMARY KEY, holder text NOT NULL,
    token bigint NOT NULL, expires_at timestamptz NOT NULL);
INSERT INTO lease VALUES ('held', 'first', 0, now() + interval '1 hour');
INSERT INTO lease SELECT 'own/' || i, 'b', 0, now() + interval '1 hour'
    FROM generate_series(1, 256) AS i;
"""
TAKE = """
INSERT INTO lease VALUES ({}, 'b', nextval('token'), now() + interval '1 hour')
ON CONFLICT (resource) DO UPDATE SET holder = excluded.holder,
    token = excluded.token, expires_at = excluded.expires_at
WHERE lease.expires_at <= now() RETURNING token;
"""
WORK = {
    "fresh": "\\set r random(1, 1000000000000)\n"
             + TAKE.format("'load/' || :r"),
    "contended": TAKE.format("'held'"),
    "renew": "UPDATE lease SET token = nextval('token'), "
             "expires_at = now() + interval '1 hour' WHERE resource = "
             "'own/' || (:client_id + 1) AND holder = 'b' "
             "AND expires_at > now() RETURNING token;\n",
}


class Postgres:
    name, note = "PostgreSQL UPSERT", "durable, own protocol"

    def as_user(self, *command):
        """It does not run as root."""
        return [*(["runuser", "-u", "postgres", "--"]
                  if os.geteuid() == 0 else []), *command]

    def start(self, folder):
        self.folder, self.port, self.rates = folder, free_port(), {}
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        if os.geteuid() == 0:
            subprocess.run(["chown", "postgres", folder], check=True)
        data = str(folder / "data")
        with open(folder / "log", "wb") as log:
            subprocess.run(self.as_user(
                f"{self.bin}/initdb", "-D", data, "-A", "trust", "-U", "bench"),
                check=True, cwd="/", stdout=log, stderr=log)
            self.process = subprocess.Popen(self.as_user(
                f"{self.bin}/postgres", "-D", data, "-p", str(self.port), "-k",
                str(folder), "-c", "listen_addresses=", "-c",
                "max_connections=300"), cwd="/", stdout=log, stderr=log)
        wait_for(lambda: self.psql("SELECT 1") == 0, 30, "PostgreSQL answers")
        assert self.psql(SCHEMA) == 0

    def psql(self, sql):
        return subprocess.run(
            ["psql", "-qX", "-h", str(self.folder), "-p", str(self.port), "-U",
             "bench", "-c", sql, "postgres"], check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    def stop(self):
        load.end(self.process)

    def benchmark(self, work, clients, each):
        script, log = self.folder / f"{work}.sql", self.folder / "times"
        script.write_text(WORK[work])
        said = subprocess.run(
            ["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "1",
             "-t", str(each), "-f", str(script), "-l", "--log-prefix",
             str(log), "-h", str(self.folder), "-p", str(self.port), "-U",
             "bench", "postgres"], check=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        times = []
        for name in glob.glob(f"{log}.*"):
            with open(name, encoding="ascii") as lines:
                times += [int(line.split()[2]) / 1000 for line in lines]
            os.unlink(name)
        times.sort()
        rate = float(re.search(r"tps = ([\d.]+)", said)[1])
        return load.Figure(rate, times[len(times) // 2],
                           times[len(times) * 99 // 100])

    def run(self, work, clients, seconds, _seed):
        """It counts transactions: its seconds have the connecting in them."""
        key = work, clients
        if key not in self.rates:
            self.rates[key] = self.benchmark(work, clients, 10).rate
        each = max(10, int(self.rates[key] * seconds / clients))
        figure = self.benchmark(work, clients, each)
        self.rates[key] = figure.rate
        return figure
