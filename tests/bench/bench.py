"""bench.py: how fast it is, beside others and beside what its parts allow.

    make bench [ROUNDS=3] [TIME=2]          all of it; 2 s a measurement
    … bench.py --rounds 3 --seconds 2 --only http,embedded,batch,growth,waits

Everything of a round runs in turn, on the same file system, so that what else
the machine does meets all alike; a ratio is the median of the ratios of the
rounds. Prints tables and which targets are met, and writes
build/bench/results.csv and build/bench/results.svg.

What is asked for, by 1, 64 and 256 clients: "fresh", a grant of a name that
was free; "contended", all after one name that is held; "renew", each its own.
"""

import argparse
import contextlib
import csv
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import growth                                   # noqa: E402
import plot                                     # noqa: E402
import support                                  # noqa: E402
import targets                                  # noqa: E402
from peer_etcd import Etcd, EtcdSession         # noqa: E402
from peer_leasehold import Empty, Leasehold     # noqa: E402
from peer_postgres import Postgres              # noqa: E402
from peer_redis import Redis                    # noqa: E402
from peer_sketch import Sketch                  # noqa: E402

WORKS, CLIENTS = ("fresh", "contended", "renew"), (1, 64, 256)
BUILD = support.BUILD / "bench"


class Results:
    """Figures by (section, system, work, clients): one a round."""

    def __init__(self):
        self.figures = {}

    def add(self, section, system, work, clients, figure):
        key = section, system, work, clients
        self.figures.setdefault(key, []).append(figure)

    def all(self, section, system, work, clients=0, what="rate"):
        return [getattr(f, what, None) or f.more.get(what, 0) for f in
                self.figures.get((section, system, work, clients), [])]

    def get(self, *key, what="rate"):
        """The median of the rounds, or None where nothing was measured."""
        values = self.all(*key, what=what)
        return statistics.median(values) if values else None

    def ratio(self, one, other):
        """Of two keys: the median of the rounds' ratios."""
        pairs = list(zip(self.all(*one), self.all(*other)))
        return statistics.median(a / b for a, b in pairs) if pairs else None

    def write(self, path):
        with open(path, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(["section", "system", "work", "clients", "rounds",
                          "median", "least", "most", "unit", "p50_ms",
                          "p99_ms", "of_leasehold"])
            for key in self.figures:
                rates = self.all(*key)
                section, _, work, clients = key
                own = section, "Leasehold", work, clients
                ratio = self.ratio(key, own) if section == "http" else None
                unit = self.figures[key][0].more.get("unit", "1/s")
                out.writerow(
                    [*key, len(rates), f"{statistics.median(rates):.1f}",
                     f"{min(rates):.1f}", f"{max(rates):.1f}", unit,
                     f"{self.get(*key, what='p50'):.2f}",
                     f"{self.get(*key, what='p99'):.2f}",
                     "" if ratio is None else f"{ratio:.2f}"])


def note(text):
    print(text, file=sys.stderr, flush=True)


# --- what is measured -----------------------------------------------------------

def http(results, folder, options):
    etcd = Etcd()
    systems = [Leasehold(BUILD / "fsyncs.so"), Empty(BUILD / "empty"), etcd,
               EtcdSession(etcd), Redis(), Postgres(), Sketch()]
    seed = 0
    with contextlib.ExitStack() as stack:
        for number, system in enumerate(systems):
            home = folder / f"system{number}"
            home.mkdir()
            system.start(home)
            stack.callback(system.stop)
        points = [(r, w, c) for r in range(options.rounds) for w in WORKS
                  for c in CLIENTS]
        for number, work, clients in points:
            if (work, clients) == (WORKS[0], CLIENTS[0]):
                embedded_once(results, folder)  # among the same neighbours
            note(f"round {number + 1}: {work}, {clients} clients")
            for system in systems:
                seed += 1
                os.sync()
                figure = system.run(work, clients, options.seconds, seed)
                if figure:
                    assert work == "contended" or not figure.refused, \
                        (system.name, work, figure)
                    results.add("http", system.name, work, clients, figure)
    return {system.name: system.note for system in systems}


def batch(results, folder, options):
    home = folder / "batch"
    home.mkdir()
    system = Leasehold()
    system.start(home)
    try:
        bodies = list(system.batch_bodies(100))
        for _ in range(options.rounds):
            for clients in (1, 8, 64):
                os.sync()
                results.add("batch", "Leasehold", "100 renewals", clients,
                            system.batches(bodies, clients, options.seconds))
    finally:
        system.stop()


def embedded_once(results, folder):
    note("embedded")
    said = subprocess.run(
        [BUILD / "embedded", support.BUILD / "lease.so", "1",
         str(folder / "embedded.db")], text=True, check=True,
        stdout=subprocess.PIPE).stdout
    for line in said.splitlines():
        name, us = line.split("  ")[0], float(line[42:].split()[0])
        results.add("embedded", name, "µs", 0,
                    growth.Number(us, more={"unit": "µs"}))


def embedded(results, folder, options):
    """Where HTTP is not measured; else it is a part of its rounds."""
    for _ in range(0 if "http" in options.only else options.rounds):
        embedded_once(results, folder)


SECTIONS = {"http": http, "batch": batch, "embedded": embedded,
            "growth": growth.growth, "waits": growth.waits}


# --- what is told -----------------------------------------------------------------

def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                        for i, (cell, w) in enumerate(zip(row, widths))))
    print()


def tell_http(results, notes):
    for work in WORKS if notes else ():
        print(f"{work}: operations a second (median of the rounds; how many "
              "times as fast Leasehold is), p50 / p99 in ms")
        rows = [["", *(f"{c} client{'s' * (c > 1)}" for c in CLIENTS), ""]]
        for name, how in notes.items():
            cells = []
            for clients in CLIENTS:
                key = "http", name, work, clients
                if results.get(*key) is None:
                    cells.append("")
                    continue
                times = results.ratio(("http", "Leasehold", work, clients), key)
                cells.append(
                    f"{results.get(*key):,.0f} (x {times:.2f}) "
                    f"{results.get(*key, what='p50'):.1f} / "
                    f"{results.get(*key, what='p99'):.1f}")
            if any(cells):
                rows.append([name, *cells, how])
        table(rows)


def tell_rest(results):
    rows = [["others", "median", ""]]
    for key, figures in results.figures.items():
        section, system, work, clients = key
        if section != "http":
            rows.append([f"{section}: {system}, {work}"
                         + (f", {clients} clients" if clients else ""),
                         f"{results.get(*key):,.1f}",
                         figures[0].more.get("unit", "1/s")])
    if len(rows) > 1:
        table(rows)


def machine(folder):
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], text=True,
                          check=True, stdout=subprocess.PIPE).stdout.strip()
    return (f"{os.cpu_count()} processors, Linux {platform.release()}, "
            f"{kind}, load before {os.getloadavg()[0]:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--leases", type=int, default=1000000)
    parser.add_argument("--only", default=",".join(SECTIONS))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stops them all
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    results, notes = Results(), {}
    # Not /tmp, which may be memory: all of it is to be stored for good.
    with tempfile.TemporaryDirectory(
            dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        folder = Path(name)
        folder.chmod(0o711)     # PostgreSQL runs as somebody else
        print(machine(folder))
        for section in options.only.split(","):
            notes = SECTIONS[section](results, folder, options) or notes
    print()
    tell_http(results, notes)
    tell_rest(results)
    targets.tell(results)
    results.write(BUILD / "results.csv")
    plot.write(results, BUILD / "results.svg", CLIENTS)


if __name__ == "__main__":
    main()
