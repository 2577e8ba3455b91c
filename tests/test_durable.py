"""What the service answered is on the disk by then: at the moment of each
answer its token is in what the writes and syncs before it make certain."""

import concurrent.futures
import re

import pytest

import preload
import support

pytestmark = pytest.mark.plain  # a sanitizer wants to be preloaded first


class Disk:
    """What is certain of each file."""

    def __init__(self):
        self.files, self.pending = {}, {}
        self.settled, self.begun = {}, {}   # how many operations

    def see(self, kind, name, at, data):
        pending = self.pending.setdefault(name, [])
        if kind in "wt":
            pending.append((kind, at, data))
        elif kind == "b":
            self.begun[at] = self.settled.get(name, 0) + len(pending)
        elif kind == "s":
            # Another thread may have synced more meanwhile.
            done = max(0, self.begun.pop(at) - self.settled.get(name, 0))
            for op in pending[:done]:
                self.apply(name, *op)
            del pending[:done]
            self.settled[name] = self.settled.get(name, 0) + done

    def apply(self, name, kind, at, data):
        file = self.files.setdefault(name, bytearray())
        size = at + len(data)
        file.extend(bytes(max(0, size - len(file))))
        if kind == "w":
            file[at:size] = data
        else:
            del file[at:]

    def events(self, folder):
        """The event log after a power cut now: {token: event}."""
        for name, content in self.files.items():
            (folder / name.rpartition("/")[2]).write_bytes(content)
        (folder / "lease.db-shm").unlink(missing_ok=True)
        con = support.connect(folder / "lease.db")
        try:
            return dict(con.execute("SELECT token, event FROM lease_event"))
        finally:
            con.close()


def client(service, number):
    """Grants, renewals, releases, and some of many at once."""
    for n in range(4):
        name = f"r{number}/{n}"
        token = service.post("grant", resource=name, holder="a",
                             ttl=60).json["token"]
        token = service.post("renew", resource=name, token=token) \
            .json["token"]
        assert service.post("release", resource=name,
                            token=token).status == 200
        service.post("batch", ops=[
            {"op": "grant", "resource": f"{name}/{i}", "holder": "a"}
            for i in range(3)])


def answers_too_early(trace, folder):
    """(what was told, what is missing) of each answer ahead of the disk, and
    how many were looked at."""
    disk, looked, early, durable, fresh = Disk(), 0, [], {}, False
    for kind, name, at, data in preload.trace(trace):
        if kind != "a":
            disk.see(kind, name, at, data)
            fresh = fresh or kind == "s"
            continue
        tokens = [int(t) for t in re.findall(rb'"token":(\d+)', data)]
        if not tokens or not re.search(rb"Status: 200", data):
            continue
        if fresh:
            durable, fresh = disk.events(folder), False
        looked += len(tokens)
        early += [(t, data) for t in tokens
                  if durable.get(t) not in ("granted", "renewed")]
    return early, looked


def run(folder, build, trace):
    running = preload.service(folder, build / "preload.so", trace)
    with running as service, \
            concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: client(service, number), range(6)))


def test_no_answer_is_ahead_of_the_disk(build, tmp_path):
    trace, left = tmp_path / "trace", tmp_path / "left"
    left.mkdir()
    run(tmp_path, build, trace)
    early, looked = answers_too_early(trace, left)
    assert looked >= 6 * 4 * 2
    assert early == []


def test_an_answer_ahead_of_the_disk_would_be_found(build, tmp_path):
    """The same with the syncs taken out of what was written down."""
    trace, left = tmp_path / "trace", tmp_path / "left"
    left.mkdir()
    run(tmp_path, build, trace)
    records = list(preload.trace(trace))
    syncs = [i for i, r in enumerate(records)
             if r[0] == "s" and r[1].endswith("-wal")]
    gone = set(syncs[len(syncs) // 2:])
    with open(trace, "wb") as file:
        for i, (kind, name, at, data) in enumerate(records):
            if i not in gone:
                file.write(preload.RECORD.pack(
                    ord(kind), len(name.encode()), at, len(data))
                    + name.encode() + data)
    early, _ = answers_too_early(trace, left)
    assert early
