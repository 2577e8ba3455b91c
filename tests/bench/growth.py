"""growth.py: what many leases cost, and how soon a waiter gets what is free."""

import os
import shutil
import statistics
import time
from pathlib import Path

import support
import wait
from load import Figure as Number
from peer_leasehold import Leasehold
from service import Service


def filled(path, leases):
    """A database with so many leases in force."""
    con = support.connect(path)
    con.execute("PRAGMA journal_mode = WAL")
    con.execute("BEGIN IMMEDIATE")
    con.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        "WHERE i < ?) SELECT count(lease_grant(printf('%08x/%d', "
        "i * 2654435761 % 4294967296, i), 'w' || (i % 1000), 86400)) FROM n",
        (leases,)).fetchall()
    con.execute("COMMIT")
    con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    con.close()


def growth(results, folder, options):
    """Grants over HTTP by 64 clients at few and at many leases, how long the
    service takes to start with them, and its memory."""
    homes = {}
    for leases in (1000, options.leases):
        homes[leases] = folder / f"leases{leases}"
        homes[leases].mkdir()
        filled(homes[leases] / "lease.db", leases)
    for number in range(options.rounds):
        for leases, home in homes.items():
            os.sync()
            system, start = Leasehold(), time.monotonic()
            with Service(home):
                took = (time.monotonic() - start) * 1000
            system.start(home)
            try:
                system.run("fresh", 64, 1, 10**6 + number)      # warm
                figure = system.run("fresh", 64, options.seconds, number + 1)
                memory = wait.rss_mib(system.service)
            finally:
                system.stop()
            name = f"{leases:,} leases"
            results.add("growth", name, "grants", 64, figure)
            results.add("growth", name, "start-up", 0,
                        Number(took, more={"unit": "ms"}))
            results.add("growth", name, "memory", 0,
                        Number(memory, more={"unit": "MiB"}))
    for home in homes.values():
        shutil.rmtree(home)


def waits(results, folder, options):
    """Of 1,000 waiters on 100 resources: until the next has it, p99."""
    home = Path(folder, "waits")
    home.mkdir()
    with Service(home) as service:
        con, http = support.connect(service.db), service.connect()
        crowd = wait.Crowd(service, 3600)
        released = wait.freed_by(crowd, lambda lease: service.post(
            "release", con=http, resource=lease["resource"],
            token=lease["token"]), 200 * options.rounds)
        crowd.close()
        crowd = wait.Crowd(service, 1.5)
        wait.expired(crowd, con, 3)
        expired = wait.expired(crowd, con, 3 * options.rounds)
        crowd.close()
        con.close()
    for name, times in (("release", released), ("expiry", expired)):
        times.sort()
        results.add("waits", name, "to the next grant, p99", 0, Number(
            times[len(times) * 99 // 100], statistics.median(times),
            times[len(times) * 99 // 100], more={"unit": "ms"}))


