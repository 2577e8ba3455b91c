"""What is in the log: a line for each answer of 500 and above, found by its
X-Request-Id, and the access log of all requests.

That the line is there for each code is looked at by tests/service.py, at the
end of whatever test met with it.
"""

import json
import os
import re
import signal
import time

import pytest

from service import Service, stand_still, wait_for

GRANT = dict(resource="r", holder="h", ttl=30)


def answered(service):
    """(X-Request-Id, path, status, code) of each line of an answer."""
    return [(name, path, int(status), code) for name, path, status, code in
            re.findall(r"event=answered request=(\S*) path=(\S*) status=(\d+)"
                       r"(?: code=(\S*) rc=\d+)?$", service.log(), re.M)]


def move_away(service):
    """Everything is answered 503 from here on."""
    service.db.rename(service.db.with_suffix(".away"))


# --- what failed --------------------------------------------------------------

def test_what_failed_is_in_the_log_by_its_id_and_nothing_else_is(service):
    for n, answer in enumerate((
            service.post("grant", {"X-Request-Id": "ok"}, **GRANT),
            service.post("grant", {"X-Request-Id": "held"}, **GRANT),
            service.post("renew", {"X-Request-Id": "wrong"}, resource="r"),
            service.get("/v1/nothing", {"X-Request-Id": "nothing"}),
            service.request("FOO", "/", headers={"X-Request-Id": "foo"}))):
        assert answer.status == (200, 409, 422, 404, 501)[n]
    assert answered(service) == []
    move_away(service)
    service.get("/healthz", {"X-Request-Id": "a-1"})
    service.post("grant", {"X-Request-Id": "a-2"}, **GRANT)
    made = service.get("/v1/leases?resource=secret", {"X-Request-Id": "a b"})
    assert answered(service) == [
        (name, path, 503, "database_moved") for name, path in (
            ("a-1", "/healthz"), ("a-2", "/v1/grant"),
            (made.headers["X-Request-Id"], "/v1/leases"))]
    # SQLITE_READONLY_DBMOVED, of each; and no name of anything.
    assert service.log().count(" code=database_moved rc=1032\n") == 3
    assert "secret" not in service.log()


def test_of_many_failures_a_hundred_a_second_are_told_and_how_many_were_not(
        service):
    con = service.connect()
    con.connect()
    move_away(service)
    start, most = time.monotonic(), 1500
    for _ in range(most):
        assert service.get("/v1/leases", con=con).status == 503
    took = time.monotonic() - start
    con.close()

    def left_out():
        return sum(map(int, re.findall(r"event=left_out lines=(\d+)$",
                                       service.log(), re.M)))
    wait_for(lambda: len(answered(service)) + left_out() == most, what="all")
    assert 100 <= len(answered(service)) <= 100 * (took + 2)


def test_a_log_that_nobody_reads_holds_nobody_up(build, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    full = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    script = tmp_path / "start"
    script.write_text(f"#!/bin/sh\nexec {build}/lease-fcgi 2>{pipe}\n")
    script.chmod(0o755)
    service = Service(tmp_path)
    service.binary = script
    try:
        with service:
            with pytest.raises(BlockingIOError):
                while True:
                    os.write(full, b"x" * 4096)
            move_away(service)
            for _ in range(20):
                assert service.post("grant", **GRANT).status == 503
                assert service.get("/healthz").status == 503
            service.failed.clear()      # there is no line of any of them
    finally:
        os.close(full)


# --- what lighttpd answers by itself ------------------------------------------

@pytest.fixture
def breakable(build, tmp_path):
    """A service that does not start anew while there is a file "broken"."""
    script = tmp_path / "start"
    script.write_text(f"#!/bin/sh\n[ -e {tmp_path}/broken ] && exit 1\n"
                      f"exec {build}/lease-fcgi\n")
    script.chmod(0o755)
    service = Service(tmp_path,
                      LEASE_ACCESS_LOG=str(tmp_path / "access.log"))
    service.binary = script
    with service:
        yield service


def end_under(service, name):
    """Have the service killed, for good, while it is asked for something."""
    (service.folder / "broken").touch()
    con = service.connect()
    stand_still(service.pid)
    con.request("POST", "/v1/grant", json.dumps(GRANT),
                {"Content-Type": "application/json", "X-Request-Id": name})
    time.sleep(0.2)
    os.kill(service.pid, signal.SIGKILL)
    status = con.getresponse().status
    con.close()
    return status


def not_run(service):
    """The X-Request-Id of one that is told that no service runs; while one
    ends and the next is tried, it may be told 502."""
    def refused():
        answer = service.get("/v1/leases?resource=r")
        return answer.status == 503 and answer.headers["X-Request-Id"]
    return wait_for(refused, what="it is down")


def test_what_lighttpd_could_not_hand_on_is_in_the_log_by_its_id(breakable):
    assert end_under(breakable, "ended") == 502
    made = not_run(breakable)
    given = breakable.get("/healthz", {"X-Request-Id": "given"}).status
    assert answered(breakable)[0] == ("ended", "/v1/grant", 502, "")
    assert (made, "/v1/leases", 503, "") in answered(breakable)
    assert answered(breakable)[-1] == ("given", "/healthz", given, "")


def test_of_many_of_them_a_hundred_a_second_are_told(breakable):
    end_under(breakable, "ended")
    con = breakable.connect()
    start = time.monotonic()
    for _ in range(1000):
        assert breakable.get("/healthz", con=con).status >= 502
    took = time.monotonic() - start
    time.sleep(1.1)
    assert breakable.get("/healthz", con=con).status >= 502
    con.close()
    left_out = map(int, re.findall(r"event=left_out lines=(\d+)$",
                                   breakable.log(), re.M))
    told = len(answered(breakable))
    assert told + sum(left_out) == 1002 and told <= 100 * (took + 3)


# --- the access log -----------------------------------------------------------

LINE = re.compile(
    r'zone=[+-]\d{4} at=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9} client=(\S+) '
    r'user="((?:[^"\\]|\\.)*)" line="((?:[^"\\]|\\.)*)" status=(\d+) '
    r'bytes=(\d+) us=(\d+) request=([\w.:-]{1,64})')


def lines(path, last):
    """All lines, when the last is there; lighttpd keeps them back for 4 seconds
    at most. Those of who asked whether the service is ready are left out."""
    def there():
        said = path.read_text("ascii") if path.exists() else ""
        return said.endswith(f" request={last}\n") and said.split("\n")[:-1]
    found = [LINE.fullmatch(line) or pytest.fail(line)
             for line in wait_for(there, what="the last line")]
    return [line for line in found if line[3] != "GET /healthz HTTP/1.1"]


@pytest.fixture
def logged(tmp_path, build):
    with Service(tmp_path,
                 LEASE_ACCESS_LOG=str(tmp_path / "access.log")) as service:
        yield service


def head_of(said):
    head = said.partition(b"\r\n\r\n")[0].split(b"\r\n")
    return int(head[0].split()[1]), next(
        line.split()[1].decode() for line in head if b"X-Request-Id" in line)


def test_every_answer_has_a_line_in_the_access_log(breakable):
    given = [(a.status, a.headers["X-Request-Id"]) for a in (
        breakable.post("grant", **GRANT), breakable.post("grant", **GRANT),
        breakable.post("renew", resource="r"), breakable.get("/"),
        breakable.get("/js/main.js"), breakable.get("/nothing"),
        breakable.request("DELETE", "/"), breakable.request("OPTIONS", "*"),
        breakable.get("/", {"Host": "evil.example"}))]
    for said in (b"\x00\x01\r\n\r\n", b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20_000
                 + b"\r\n\r\n",
                 b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n"
                 b"Content-Length: 2000000\r\n\r\n",
                 b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n"
                 b"Content-Type: application/json\r\n"
                 b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                 b"0\r\n\r\n"):
        given.append(head_of(breakable.raw(said)))
    assert {200, 204, 400, 404, 405, 409, 413, 421, 422, 431, 501} \
        <= {status for status, _ in given}
    con = breakable.connect()
    con.request("GET", "/v1/events", None, {
        "Accept": "text/event-stream", "X-Request-Id": "stream"})
    stream = con.getresponse()
    assert stream.readline().startswith(b"retry")
    time.sleep(1)
    stream.close()
    con.close()
    move_away(breakable)
    moved = breakable.get("/v1/leases", {"X-Request-Id": "moved"}).status
    ended = end_under(breakable, "ended")
    last = not_run(breakable)
    assert (moved, ended) == (503, 502)
    given += [(200, "stream"), (503, "moved"), (502, "ended"), (503, last)]
    found = {line[7]: line for line in
             lines(breakable.folder / "access.log", last)}
    for status, name in given:
        assert int(found[name][4]) == status
        assert found[name][1] == "127.0.0.1" and found[name][2] == "-"
        assert int(found[name][5]) > 100
    assert found["ended"][3] == "POST /v1/grant HTTP/1.1"
    assert int(found["ended"][6]) > 200_000
    assert int(found["stream"][6]) > 1_000_000


def test_nothing_of_a_client_forges_a_line_of_the_access_log(logged):
    forged = b'a" status=200 request=forged'
    for n, target in enumerate((
            b"/\n" + forged, b"/\r" + forged, b"/%0a" + forged, b"/\x1b[2J",
            b'/?q="\\', b"/\x7f\x85\xe2\x80\xa8", b'/"%22', b"/\x00")):
        logged.raw(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n"
                   b"Connection: close\r\n\r\n")
        logged.raw(b"GET /?" + str(n).encode() + b" HTTP/1.1\r\n"
                   b"Host: localhost\r\nConnection: close\r\nX-Request-Id: "
                   + target + b"\r\n\r\n")
        logged.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                   b"Authorization: Basic " + target + b"\r\n\r\n")
    logged.get("/", {"X-Request-Id": "last"})
    found = lines(logged.folder / "access.log", "last")
    assert len(found) == 3 * 8 + 1
    assert "forged" not in [line[7] for line in found]


def test_the_access_log_is_opened_anew_on_sighup_and_goes_on_after_a_reload(
        logged):
    path = logged.folder / "access.log"
    pid = logged.pid
    logged.get("/", {"X-Request-Id": "before"})
    path.rename(path.with_suffix(".1"))
    logged.process.send_signal(signal.SIGHUP)
    wait_for(path.exists, what="another file")
    logged.get("/", {"X-Request-Id": "after"})
    assert [line[7] for line in lines(path.with_suffix(".1"), "before")] \
        == ["before"]
    assert [line[7] for line in lines(path, "after")] == ["after"]
    assert logged.pid == pid
    logged.reload()
    wait_for(lambda: logged.pid not in (None, pid), what="reload")
    logged.wait_ready()
    logged.get("/", {"X-Request-Id": "reloaded"})
    # All of it is written at the end.
    logged.stop()
    assert path.read_text("ascii").endswith(" request=reloaded\n")
    assert len(lines(path, "reloaded")) == 2


def test_an_access_log_that_cannot_be_written_is_said_at_the_start(tmp_path):
    service = Service(tmp_path, LEASE_ACCESS_LOG=f"{tmp_path}/no/access.log")
    service.start()
    assert service.process.wait(10) != 0
    assert "no/access.log" in service.log()
    service.end(signal.SIGTERM)
