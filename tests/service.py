"""service.py: the service behind a real lighttpd, on a free port, with a
database of its own.

    with Service(folder) as service:
        answer = service.post("grant", resource="r", holder="a", ttl=30)
        assert answer.status == 200 and answer.json["token"] == 1

    service.port, service.db     where it is, and its database
    service.lighttpd, .pid       process numbers: the web server, the service
    service.start() .stop() .kill() .reload() .wait_ready() .log()

Ends what it started, by process number, and looks then whether each answer of
500 and above is found in the log by its X-Request-Id.
"""

import collections
import contextlib
import dataclasses
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import support


def wait_for(holds, seconds=10, what="it"):
    """Until holds() is true; its value. Fails after so many seconds."""
    until = time.monotonic() + support.patience(seconds)
    while True:
        value = holds()
        if value:
            return value
        assert time.monotonic() < until, f"{what}: not within {seconds} s"
        time.sleep(0.005)


def alive(pid):
    """Does the process run (one that nobody waited for does not)?"""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def stand_still(pid):
    """Stop the process. A thread may run on for a moment: until none does."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: all(
        (task / "stat").read_text().rpartition(")")[2].split()[0] in "Tt"
        for task in Path(f"/proc/{pid}/task").iterdir()), what="it stands")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclasses.dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """What a problem calls itself."""
        return self.json["code"]


class Service:
    def __init__(self, folder, clocked=False, db=None, bind="127.0.0.1",
                 **environment):
        self.folder = Path(folder)
        self.db = Path(db or self.folder / "lease.db")
        self.port = free_port()
        self.binary = support.BUILD / ("test" if clocked else ".") \
            / "lease-fcgi"
        self.bind, self.environment = bind, environment
        self.host = {"[::1]": "::1", "[::]": "::1"}.get(bind, "127.0.0.1")
        self.lighttpd = None
        self.process = None
        self.run = None
        self.failed = []        # X-Request-Ids
        self.log_path = self.folder / f"service-{self.port}.log"

    # --- life ---------------------------------------------------------------

    def environ(self):
        return dict(
            os.environ, LEASE_ROOT=str(support.ROOT),
            LEASE_BIN=str(self.binary), LEASE_BIND=self.bind,
            LEASE_PORT=str(self.port), LEASE_RUN=self.run,
            LEASE_DB=str(self.db),
            PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin",
        ) | self.environment

    def start(self):
        """Start lighttpd, which starts the service; does not wait."""
        assert self.process is None
        # A short path: names of sockets have at most 107 bytes.
        self.run = tempfile.mkdtemp(prefix="leasehold.")
        return self.spawn()

    def spawn(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                ["lighttpd", "-D", "-f",
                 str(support.ROOT / "lighttpd.conf")],
                env=self.environ(), cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True)
        self.lighttpd = self.process.pid
        return self

    @property
    def socket(self):
        """The path of the socket between lighttpd and the service."""
        return f"{self.run}/fcgi{self.lighttpd}-0"

    @property
    def pid(self):
        """The service's process number, or None while there is none."""
        path = f"/proc/{self.lighttpd}/task/{self.lighttpd}/children"
        with contextlib.suppress(OSError):
            children = [int(pid) for pid in Path(path).read_text().split()]
            running = [pid for pid in children if alive(pid)]
            return running[0] if running else None

    def ready(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get("/healthz").status == 200

    def wait_ready(self, seconds=10):
        try:
            wait_for(self.ready, seconds, "the service answers")
        except AssertionError:
            print(self.log())
            raise
        return self

    def end(self, number, seconds=10):
        """Send lighttpd a signal and wait until it and the service ended."""
        if self.process is None:
            return
        pid = self.pid
        self.process.send_signal(number)
        self.process.wait(support.patience(seconds))
        if pid:
            wait_for(lambda: not alive(pid), seconds, "the service ends")
        self.process = None
        shutil.rmtree(self.run, ignore_errors=True)

    def stop(self):
        self.end(signal.SIGTERM)

    def kill(self):
        """Kill lighttpd without warning; the service follows by itself."""
        self.end(signal.SIGKILL)

    def replace(self):
        """Kill lighttpd and start another at once, in the same folder."""
        self.process.kill()
        self.process.wait()
        return self.spawn()

    def reload(self):
        self.process.send_signal(signal.SIGUSR1)

    def __enter__(self):
        try:
            return self.start().wait_ready()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        try:
            self.stop()
        except (AssertionError, subprocess.TimeoutExpired):
            for pid in filter(None, (self.pid, self.lighttpd)):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait(10)
            raise
        # One kind of report goes to stderr only; a service that died of it
        # may have been started again without anybody noticing.
        log = self.log()
        assert "runtime error:" not in log, log
        # A hundred a second are told, whoever asked, and lighttpd's seconds
        # are not exact; which of more, nobody knows.
        told = collections.Counter(line[:19] for line in log.splitlines()
                                   if "event=answered " in line)
        if max(told.values(), default=0) < 50:
            assert not [name for name in self.failed if
                        f"event=answered request={name} " not in log], log

    def log(self):
        return self.log_path.read_text(errors="replace")

    # --- requests -------------------------------------------------------------

    def connect(self, timeout=30):
        return http.client.HTTPConnection(self.host, self.port,
                                          timeout=timeout)

    def request(self, method, path, body=None, headers=None, con=None):
        """One request, as it stands. A given connection is kept."""
        own = con or self.connect()
        try:
            own.request(method, path, body, headers or {})
            answer = own.getresponse()
            # 501 and 505 are for what a client made up.
            if answer.status in (500, 502, 503, 504, 507):
                self.failed.append(answer.headers["X-Request-Id"])
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            if con is None:
                own.close()

    def get(self, path, headers=None, con=None):
        return self.request("GET", path, None, headers, con)

    def post_raw(self, route, body, headers=None, con=None):
        headers = {"Content-Type": "application/json"} | (headers or {})
        return self.request("POST", f"/v1/{route}", body, headers, con)

    def post(self, route, headers=None, con=None, **fields):
        return self.post_raw(route, json.dumps(fields), headers, con)

    def raw(self, data, timeout=10):
        """Send bytes, answer what comes until the server closes."""
        with socket.create_connection((self.host, self.port),
                                      timeout) as con:
            con.sendall(data)
            parts = []
            with contextlib.suppress(TimeoutError, ConnectionError):
                while part := con.recv(65536):
                    parts.append(part)
            return b"".join(parts)
