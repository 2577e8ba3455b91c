"""peer_leasehold.py: the service behind its lighttpd, as it is shipped."""

import json
import struct

import load
from service import Service

HOUR = '"ttl":3600'


class Api:
    """The three kinds of work on this HTTP interface; others speak it, too."""

    port = None

    def post(self, route, **fields):
        raise NotImplementedError

    def prepare(self):
        """A lease for each client, and one that others want."""
        self.post("grant", resource="held", holder="first", ttl=36000)
        answers = [self.post("grant", resource=f"own/{i}", holder="bench",
                             ttl=36000) for i in range(256)]
        self.own = [a.get("epoch", a.get("token", 1)) for a in answers]

    def run(self, work, clients, seconds, seed):
        if work == "fresh":
            return load.http(self.port, clients, seconds, seed, [
                ("/v1/grant", f'{{"resource":"load/NAME","holder":"b",{HOUR}}}')])
        if work == "contended":
            return load.http(self.port, clients, seconds, seed, [
                ("/v1/grant", f'{{"resource":"held","holder":"b",{HOUR}}}')])
        return load.http(self.port, clients, seconds, seed, bodies=(
            "/v1/renew", [json.dumps(dict(resource=f"own/{i}", token=t,
                                          ttl=3600))
                          for i, t in enumerate(self.own[:clients])]))


class Leasehold(Api):
    name, note = "Leasehold", "durable"

    def __init__(self, preload=None):
        self.preload = preload

    def start(self, folder, **environment):
        self.count = folder / "fsyncs"
        self.count.write_bytes(bytes(8))
        if self.preload:
            environment |= {"LD_PRELOAD": str(self.preload),
                            "BENCH_FSYNCS": str(self.count)}
        self.service = Service(folder, **environment)
        self.service.__enter__()
        self.port = self.service.port
        self.prepare()

    def stop(self):
        self.service.__exit__()

    def post(self, route, **fields):
        return self.service.post(route, **fields).json

    def fsyncs(self):
        return struct.unpack("q", self.count.read_bytes())[0]

    def spent(self):
        return (self.fsyncs(), load.cpu_us(self.service.pid),
                load.cpu_us(self.service.lighttpd))

    def run(self, work, clients, seconds, seed):
        """With fsyncs and the processors' time for each operation."""
        before = self.spent()
        figure = super().run(work, clients, seconds, seed)
        each = [(b - a) / max(1, figure.done)
                for a, b in zip(before, self.spent())]
        figure.more = dict(zip(("fsyncs", "service_us", "lighttpd_us"), each))
        return figure

    def batch_bodies(self, size):
        """64 batches that renew so many leases each, again and again."""
        for i in range(64):
            ops = [dict(op="grant", resource=f"batch/{i}/{k}", holder="b",
                        ttl=36000) for k in range(size)]
            yield dict(ops=[
                dict(op="renew", resource=r["resource"], token=r["epoch"],
                     ttl=36000)
                for r in self.post("batch", ops=ops)["results"]])

    def batches(self, bodies, clients, seconds):
        """Renewals a second."""
        figure = load.http(self.port, clients, seconds, 0, bodies=(
            "/v1/batch", [json.dumps(body) for body in bodies]))
        assert not figure.refused
        assert all(r["status"] == 200
                   for r in self.post("batch", **bodies[0])["results"])
        figure.rate *= len(bodies[0]["ops"])
        return figure


class Empty(Leasehold):
    """The floor: the same lighttpd before a program that answers at once."""

    name, note = "floor: empty FastCGI", "keeps nothing"

    def __init__(self, binary):
        super().__init__()
        self.binary = binary

    def start(self, folder):
        self.service = Service(folder)
        self.service.binary = self.binary
        self.service.__enter__()
        self.port = self.service.port
        self.prepare()

    def fsyncs(self):
        return 0
