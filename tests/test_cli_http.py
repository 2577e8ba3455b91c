"""`lease` and a service that is slow, away, cut off, or behind TLS and
passwords: the command stops in time, and nothing is granted unheard.
"""

import base64
import concurrent.futures
import contextlib
import http.server
import os
import re
import signal
import ssl
import subprocess
import threading
import time

import pytest

import cli
import support
from proxy import Proxy
from service import Service, wait_for

TTL = 1.5


@pytest.fixture
def log(tmp_path):
    return tmp_path / "marks"


@pytest.fixture
def way(service):
    with Proxy(service.port) as proxy:
        yield proxy


def at(service):
    return cli.Place("--url", f"http://127.0.0.1:{service.port}")


def lease_ends(service, resource="r"):
    """When the lease in force ends, on the boot clock, at the latest."""
    answer = service.get(f"/v1/leases?resource={resource}").json
    return cli.boot_ms() + answer["leases"][0]["remaining"] * 1000


def proves_no_overlap(log):
    """a ended before b began."""
    assert cli.span(log, "a")[1] < cli.span(log, "b")[0]


def loses(service, place, log, harm, heal=lambda: None):
    """a runs, then comes the harm; b waits on an undisturbed way. a stops
    before b begins."""
    with place.run("-r", "r", "-t", TTL, command=cli.marks(log, "a")) as a:
        wait_for(lambda: cli.read_marks(log, "a"))
        with at(service).run(
                "-r", "r", "-t", TTL, "-w", 30,
                command=cli.marks(log, "b", seconds=0.3)) as b:
            time.sleep(0.6)     # a renews once, b begins to wait
            harm()
            assert a.wait() == 76
            heal()
            assert b.wait() == 0
        _, err = a.out()
    proves_no_overlap(log)
    return err


def test_answers_dropped_on_the_way(service, way, log):
    """C184"""
    def drop():
        way.mode = "drop"

    err = loses(service, cli.Place("--url", way.url), log, drop)
    assert "cannot renew 'r'" in err and "lost 'r'" in err


def test_answers_later_than_the_lease_lasts(service, way, log):
    """C049, C184"""
    def slow():
        way.delay, way.mode = 3, "slow"

    loses(service, cli.Place("--url", way.url), log, slow)


def test_connections_cut_before_the_answer_cost_nothing_while_some_pass(
        service, way, log):
    """A renewal whose answer is lost is asked for again, with the token that
    the holder still has."""
    with cli.Place("--url", way.url).run(
            "-r", "r", "-t", TTL,
            command=cli.marks(log, "a", seconds=3)) as job:
        wait_for(lambda: cli.read_marks(log, "a"))
        way.mode = "cut"
        wait_for(lambda: way.cuts >= 1)
        way.mode = "pass"
        assert job.wait() == 0


def test_the_service_is_stopped_and_started_again(service, log):
    loses(service, at(service), log, service.stop,
          lambda: service.start().wait_ready())


def test_the_service_is_away_for_less_than_the_ttl(service, log):
    with at(service).run("-r", "r", "-t", 4,
                         command=cli.marks(log, "a", seconds=4)) as job:
        wait_for(lambda: cli.read_marks(log, "a"))
        service.kill()
        service.start().wait_ready()
        assert job.wait() == 0
        _, err = job.out()
    assert "lost" not in err


def test_the_service_says_410(service, log):
    def revoke():
        service.post("revoke", resource="r")

    with at(service).run("-r", "r", "-t", TTL, "-g", 0.2,
                         command=cli.marks(log, "a", deaf=False)) as job:
        wait_for(lambda: cli.read_marks(log, "a"))
        revoked = cli.boot_ms()
        revoke()
        assert job.wait() == 76
        _, err = job.out()
    assert cli.span(log, "a")[1] <= \
        revoked + TTL * 1000 / 3 + support.patience(1000)
    assert "revoked" in err


@pytest.mark.parametrize("victim", ["a", "b"])
def test_kill_9_of_one_of_two_contenders(service, log, victim):
    """C187"""
    place = at(service)
    with place.run("-r", "r", "-t", TTL,
                   command=cli.marks(log, "a", seconds=1)) as a:
        wait_for(lambda: cli.read_marks(log, "a"))
        with place.run("-r", "r", "-t", TTL, "-w", 20,
                       command=cli.marks(log, "b", seconds=0.3)) as b:
            time.sleep(0.2)
            ends = lease_ends(service)
            os.kill({"a": a, "b": b}[victim].pid, signal.SIGKILL)
            if victim == "b":
                b.wait()
                assert a.wait() == 0
                assert not cli.read_marks(log, "b")
            else:
                assert b.wait() == 0
                proves_no_overlap(log)
                assert cli.span(log, "b")[0] >= ends - 20
    assert service.post("grant", resource="r", holder="c").status == 200


def test_sigstop_past_the_ttl(service, log):
    place = at(service)
    with place.run("-r", "r", "-t", TTL, command=cli.marks(log, "a")) as a:
        wait_for(lambda: cli.read_marks(log, "a"))
        os.kill(a.pid, signal.SIGSTOP)
        with place.run("-r", "r", "-t", TTL, "-w", 20,
                       command=cli.marks(log, "b", seconds=0.3)) as b:
            assert b.wait() == 0
        os.kill(a.pid, signal.SIGCONT)
        assert a.wait() == 76
    proves_no_overlap(log)


# --- grants whose answer is lost or late ----------------------------------------


def test_a_grant_whose_answer_is_lost_is_not_made_twice(service, way):
    """The repeat has the same Idempotency-Key, and gets the same lease."""
    way.mode = "once"
    place = cli.Place("--url", way.url)
    with place.run("-r", "r", command=["sh", "-c",
                                       "echo $LEASE_TOKEN"]) as job:
        out, err = job.out()
        assert job.wait() == 0, err
    assert way.cuts == 1 and out == "1\n"
    log = service.get("/v1/events").json["events"]
    assert [event["event"] for event in log] == ["granted", "released"]


def test_a_slow_grant_is_counted_from_its_sending(service, way):
    """C049: 1 s of 3 s are gone when the answer comes; the command begins with a
    lease renewed meanwhile, and the token of that."""
    way.delay, way.mode = 1.0, "slow"
    place = cli.Place("--url", way.url)
    with place.run("-r", "r", "-t", 3, command=[
            "sh", "-c", "echo $LEASE_TOKEN $(cat $LEASE_FILE)"]) as job:
        out, err = job.out()
    assert out == "2 2\n", err


def test_a_grant_that_comes_too_late_to_be_used_is_given_back(service, way,
                                                             log):
    way.delay, way.mode = 1.2, "slow"
    place = cli.Place("--url", way.url)
    with place.run("-r", "r", "-t", 1, command=cli.marks(log, "a")) as job:
        _, err = job.out()
        assert job.wait() == 69
    assert "too late" in err and not cli.read_marks(log)


def test_a_lease_that_is_over_before_the_command_begins(service, way, log):
    """Revoked while its answer is under way: much of its time is left, but
    the renewal that comes first tells."""
    way.delay, way.mode = 3, "slow"
    place = cli.Place("--url", way.url)
    with place.run("-r", "r", "-t", 14, command=cli.marks(log, "a")) as job:
        wait_for(lambda: service.get("/v1/leases").json["leases"])
        service.post("revoke", resource="r")
        assert job.wait() == 76
        _, err = job.out()
    assert not cli.read_marks(log)
    assert "revoked" in err and "not started" in err
    log = service.get("/v1/events").json["events"]
    assert [event["event"] for event in log] == ["granted", "revoked"]


def test_a_signal_while_the_grant_is_under_way_leaves_no_lease(service, way):
    way.delay, way.mode = 0.5, "slow"
    place = cli.Place("--url", way.url)
    with place.run("-r", "r", "-t", 60, command=["true"]) as job:
        wait_for(lambda: service.get("/v1/leases").json["leases"])
        os.kill(job.pid, signal.SIGTERM)
        assert job.wait() == 143
    assert service.get("/v1/leases").json["leases"] == []


def test_waiting_outlasts_a_service_that_is_not_there_yet(tmp_path, build):
    service = Service(tmp_path)
    place = at(service)
    with place.run("-r", "r", "-w", 30, command=["true"]) as job:
        wait_for(lambda: len(job.family()) == 1)
        time.sleep(0.2)
        with service:
            assert job.wait() == 0


def test_many_waiters_get_it_one_after_the_other(service, tmp_path):
    shared = tmp_path / "shared"
    script = (f"[ ! -e {shared} ] || echo overlap; touch {shared}; "
              f"sleep 0.02; rm {shared}")
    place = at(service)
    jobs = [place.run("-r", "r", "-w", 40, command=["sh", "-c", script])
            for _ in range(8)]
    try:
        for job in jobs:
            out, err = job.out()
            assert (job.wait(), out) == (0, ""), err
    finally:
        for job in jobs:
            job.__exit__()


def grants_asked(service):
    counts = re.findall(r"^leasehold_grants_total\S* (\d+)$",
                        service.get("/metrics").body.decode(), re.M)
    return sum(map(int, counts))


def test_two_that_ask_with_one_request_id_do_not_drive_each_other_out(
        service):
    """Each takes over the place of the other, but not without a pause; and
    both get the one lease."""
    service.post("grant", resource="r", holder="x", ttl=600)
    words = ["grant", "-r", "r", "-o", "h", "-w", 60, "--request-id", "daily"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        both = [pool.submit(at(service).lease, *words) for _ in range(2)]
        wait_for(lambda: grants_asked(service) >= 5, 30)
        asked, begun = grants_asked(service), time.monotonic()
        time.sleep(2)
        asked = grants_asked(service) - asked
        assert asked <= 10 * (time.monotonic() - begun)
        service.post("revoke", resource="r")
        done = [one.result() for one in both]
    assert [one.returncode for one in done] == [0, 0], done
    assert done[0].stdout == done[1].stdout


# --- packets dropped on the way to another network namespace ----------------------


def ip(*words, host=None):
    enter = ["nsenter", "-n", "-t", str(host)] if host else []
    subprocess.run([*enter, "ip", *words], check=True)


def may_have_namespaces():
    return subprocess.run(
        ["unshare", "-n", "ip", "link", "add", "a", "type", "veth", "peer",
         "name", "b"], capture_output=True).returncode == 0


@contextlib.contextmanager
def other_host(name, network):
    """A namespace with a cable to here: here is network.1, there network.2.
    Yields the number of a process in it."""
    host = subprocess.Popen(["unshare", "-n", "sleep", "1000"])
    try:
        ours = os.readlink("/proc/self/ns/net")
        wait_for(lambda: os.readlink(f"/proc/{host.pid}/ns/net") != ours)
        ip("link", "add", name, "type", "veth", "peer", "name", "cable",
           "netns", str(host.pid))
        ip("addr", "add", f"{network}.1/24", "dev", name)
        ip("link", "set", name, "up")
        ip("addr", "add", f"{network}.2/24", "dev", "cable", host=host.pid)
        ip("link", "set", "cable", "up", host=host.pid)
        yield host.pid
    finally:
        host.kill()     # and with its namespace goes the cable
        host.wait()


def test_packets_dropped_on_the_way(build, tmp_path, log):
    """C184: No reset and no refusal: packets go to a machine that is not there.
    Where namespaces are not allowed, a proxy swallows every byte instead."""
    name, network = f"lh{os.getpid()}", f"10.77.{os.getpid() % 250}"
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(
            Service(tmp_path, LEASE_BIND="0.0.0.0"))
        if may_have_namespaces():
            host = stack.enter_context(other_host(name, network))
            place = cli.Place("--url", f"http://{network}.1:{service.port}",
                              prefix=["nsenter", "-n", "-t", str(host)])

            def drop():
                nobody = ["lladdr", "02:00:00:00:00:99", "nud", "permanent"]
                ip("neigh", "replace", f"{network}.1", "dev", "cable",
                   *nobody, host=host)
                ip("neigh", "replace", f"{network}.2", "dev", name, *nobody)
        else:
            way = stack.enter_context(Proxy(service.port))
            place = cli.Place("--url", way.url)

            def drop():
                way.mode = "drop"

        err = loses(service, place, log, drop)
    assert "cannot renew 'r'" in err


# --- TLS and passwords --------------------------------------------------------------


class Gate(http.server.BaseHTTPRequestHandler):
    """Passes POSTs with the right password on to the service."""

    protocol_version = "HTTP/1.1"
    service = None
    wanted = "Basic " + base64.b64encode(b"me:s3cret").decode()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Authorization"] != self.wanted:
            status, body = 401, b"no"
        else:
            answer = self.service.post_raw(self.path.removeprefix("/v1/"),
                                           body)
            status, body = answer.status, answer.body
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def gate(service, tmp_path):
    """https://localhost:…, its certificate, and a file with the password."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", key, "-out", cert], check=True, capture_output=True)
    (tmp_path / "password").write_text("s3cret\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    handler = type("Handler", (Gate,), {"service": service})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield (cli.Place("--url", f"https://localhost:{server.server_port}"),
           cert, tmp_path / "password")
    server.shutdown()
    thread.join()
    server.server_close()


def test_tls_is_verified_and_the_password_comes_from_a_file(gate):
    place, cert, password = gate
    env = cli.environ(LEASE_USER="me", LEASE_PASSWORD_FILE=str(password))
    done = place.lease("grant", "-r", "a", env=env)
    assert done.returncode == 69 and "ertificate" in done.stderr
    done = place.lease("grant", "-r", "a", "--cacert", cert, env=env)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    done = place.lease("grant", "-r", "b", "--cacert", cert, "--user", "you",
                       env=env)
    assert done.returncode == 69 and "401" in done.stderr
    done = place.lease("grant", "-r", "b", "--cacert", cert, "--user", "me",
                       "--password-file", "/nonexistent")
    assert done.returncode == 64 and "password" in done.stderr
    # The command asks as the same user, from wherever it is.
    done = place.lease(
        "run", "-r", "c", "--cacert", os.path.relpath(cert), "--user", "me",
        "--password-file", os.path.relpath(password), "--",
        "sh", "-c", f"cd / && {cli.LEASE} check", env=cli.environ())
    assert done.returncode == 0 and float(done.stdout) > 29, done.stderr
    other = cli.Place("--url", place.where[1].replace("localhost",
                                                      "127.0.0.1"))
    done = other.lease("grant", "-r", "b", "--cacert", cert, env=env)
    assert done.returncode == 69    # the name is verified, too
