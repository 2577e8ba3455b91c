"""What an attacker tries: on the port, from a web page, and on the socket
behind lighttpd."""

import concurrent.futures
import contextlib
import fcntl
import http.client
import io
import json
import os
import random
import re
import socket
import stat
import struct
import termios
import threading
import time

import pytest

import openapi
import service as service_module
import support

GOOD = b'{"resource":"r","holder":"h","ttl":30}'
JSON = {"Content-Type": "application/json"}
HEADERS = {
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin"}


@pytest.fixture(scope="module")
def service(build, tmp_path_factory):
    """One for all of this file; it must outlive every request."""
    with service_module.Service(tmp_path_factory.mktemp("security")) as running:
        pid = running.pid
        yield running
        assert running.pid == pid
        assert "level=error" not in running.log()


def guarded(answer):
    for name, value in HEADERS.items():
        assert answer.headers.get_all(name) == [value], name
    policy = answer.headers["Content-Security-Policy"]
    for part in ("default-src 'self'", "frame-ancestors 'none'",
                 "object-src 'none'", "base-uri 'none'"):
        assert part in policy
    assert "unsafe" not in policy
    assert not [name for name in answer.headers
                if name.startswith("Access-Control")]
    assert answer.headers["Server"] == "leasehold"
    assert re.fullmatch(r"[\w.:-]{1,64}", answer.headers["X-Request-Id"])


# --- what every answer carries ----------------------------------------------------

@pytest.mark.parametrize("path", sorted({
    "/", "/index.htm", "/docs", "/docs/", "/js/main.js", "/js", "/js/",
    "/nothing", "/error", "/.hidden", "/v1", "/v1/", "/v1/nothing",
    *openapi.Api().doc["paths"]}))
def test_every_answer_carries_the_security_headers(service, path):
    """C121, C158"""
    for method in ("GET", "HEAD", "POST", "OPTIONS", "DELETE", "TRACE"):
        for headers in ({}, JSON, {"Host": "evil.example"},
                        {"Origin": "http://evil.example"},
                        {"Range": "bytes=99999999-"}):
            answer = service.request(
                method, path, "{}" if method == "POST" else None, headers)
            guarded(answer)
            location = answer.headers.get("Location", "/")
            assert location.startswith("/") and "//" not in location


def test_a_refused_and_a_full_service_carry_them_too(service):
    grant = service.post("grant", resource="h", holder="h")
    for answer in (grant, service.post("grant", resource="h", holder="g"),
                   service.post("renew", resource="h", token=2 ** 40),
                   service.post("check", resource="h", token="x"),
                   service.post_raw("grant", b" " * 70_000)):
        guarded(answer)
    service.post("revoke", resource="h")


UNREADABLE = {
    "no HTTP": (b"\x00\x01\x02\r\n\r\n", 400),
    "no version": (b"GET /\r\n\r\n", 400),
    "a version to come": (b"GET / HTTP/9.1\r\nHost: localhost\r\n\r\n", 505),
    "a break in the path": (b"GET /%0d%0aX:1 HTTP/1.1\r\nHost: localhost\r\n"
                            b"\r\n", 400),
    "NUL in the path": (b"GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "an unknown method": (b"FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
    "an unknown encoding": (
        b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n"
        b"Transfer-Encoding: foo\r\n\r\n", 501),
    "length and chunks": (
        b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "a long header": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "
                      + b"a" * 20_000 + b"\r\n\r\n", 431),
    "a long path": (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
    "a long body": (b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Length: 2000000\r\n\r\n", 413),
    "a control character": (b"GET / HTTP/1.1\r\nHost: localhost\r\n"
                            b"X-Request-Id: a\x0bb\r\n\r\n", 400),
    "a tunnel": (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "a tunnel to a path": (b"CONNECT / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    "HTTP/2 at once": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_lighttpd_cannot_read_is_refused_in_json_and_at_once(
        service, name):
    """C114, C132, C135"""
    data, status = UNREADABLE[name]
    start = time.monotonic()
    head, _, body = service.raw(data, timeout=5).partition(b"\r\n\r\n")
    assert time.monotonic() - start < support.patience(4)
    assert int(head.split()[1]) == status
    answer = service_module.Answer(status, http.client.parse_headers(
        io.BytesIO(head.partition(b"\r\n")[2] + b"\r\n\r\n")), body)
    guarded(answer)
    # One whole answer, and nothing after it.
    openapi.Api().judge_web_server(answer)
    assert "Set-Cookie" not in answer.headers and "X" not in answer.headers
    assert ("Allow" in answer.headers) == (status == 405)


def test_the_options_of_all_paths_are_told(service):
    answer = service.request("OPTIONS", "*")
    guarded(answer)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    answer = service.request("OPTIONS", "*", headers={"Host": "evil.example"})
    assert (answer.status, answer.code) == (421, "foreign_host")


@pytest.mark.parametrize("path", ["/", "/docs", "/js/", "/nothing", "/v1"])
def test_a_page_is_for_its_own_hosts_and_for_reading(service, path):
    for host in ("evil.example", "localhost.evil", "[::1]", "10.0.0.1"):
        answer = service.get(path, {"Host": host})
        assert (answer.status, answer.code) == (421, "foreign_host")
    for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE"):
        answer = service.request(method, path, "{}", JSON)
        if path in ("/nothing", "/v1"):
            assert (answer.status, answer.code) == (404, "not_found")
            continue
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
        answer = service.request("OPTIONS", path)
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    for name in ("my-1.2:3_x", "a" * 65, "a b", "\u00e9"):
        told = service.get(path, {"X-Request-Id": name}).headers["X-Request-Id"]
        assert (told == name) == (name == "my-1.2:3_x")


# --- web pages --------------------------------------------------------------------

HOSTS = {
    "evil.example:{port}": 421, "evil.example": 421, "localhost.evil": 421,
    "127.0.0.1.evil.example": 421, "localhost@evil.example": 400,
    "evil.example.": 421, "xlocalhost": 421, "[::1]": 421, "[::1]:{port}": 421,
    "[127.0.0.1]": 400, "::1": 400, "0.0.0.0": 421, "2130706433": 400,
    "0x7f.1": 400, "127.0.0.1,evil.example": 400, "evil.example#localhost": 400,
    "localhost/": 400, " ": 400, "localhost:x": 400, "localhost..": 400,
    "localhost": 200, "LocalHost:{port}": 200, "localhost.": 200,
    "localhost.:{port}": 200, "localhost:1": 200, "127.0.0.1": 200,
    "127.0.0.1:{port}": 200}


@pytest.mark.parametrize("host", HOSTS)
def test_a_foreign_host_gets_nothing(service, host):
    """C152"""
    headers = {"Host": host.format(port=service.port)}
    for path in ("/", *openapi.routes()):
        answer = service.get(path, headers)
        wanted = HOSTS[host]
        if wanted != 200:
            assert answer.status in (wanted, 400), (path, answer.body)
            assert answer.code in ("foreign_host", "malformed")
        else:
            assert answer.status in (200, 405, 422), path
    answer = service.post_raw("grant", GOOD, headers)
    assert (answer.status == 200) == (HOSTS[host] == 200)
    service.post("revoke", resource="r")


ORIGINS = [
    "null", "*", "http://evil.example", "http://localhost",
    "http://localhost:{port}.evil.example", "http://localhost:{port}/",
    "http://localhost:{port}@evil.example", "http://evil.example:{port}",
    "http://xlocalhost:{port}", "http://localhost:{port}0", "//localhost:{port}",
    "localhost:{port}", "ftp://localhost:{port}", "http:/localhost:{port}",
    "http://localhost:{port} http://evil.example", "http://127.0.0.1:{port}",
    "http://localhost.:{port}", "chrome-extension://localhost:{port}"]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_page_of_another_origin_gets_nothing(service, origin):
    """C153, C158: A browser says where a page is from; it must be exactly here."""
    headers = {"Host": f"localhost:{service.port}",
               "Origin": origin.format(port=service.port)}
    for path, (method, *_) in openapi.routes().items():
        answer = service.request(method, path, GOOD if method == "POST"
                                 else None, JSON | headers)
        assert (answer.status, answer.code) == (403, "foreign_origin"), path
        guarded(answer)


def test_a_preflight_permits_nothing(service):
    """C153"""
    for path in openapi.routes():
        for origin in ("http://evil.example", "null"):
            answer = service.request("OPTIONS", path, None, {
                "Host": f"localhost:{service.port}", "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type",
                "Access-Control-Request-Private-Network": "true"})
            assert answer.status == 403
            guarded(answer)


@pytest.mark.parametrize("kind", [
    "text/plain", "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x", "application/json, text/plain",
    "text/plain; application/json", "application/jsonp", ""])
def test_what_a_form_can_send_writes_nothing(service, kind):
    """C146, C158: Forms need no preflight; what they can send must not be taken."""
    for path, (method, *_) in openapi.routes().items():
        if method == "POST":
            answer = service.post_raw(path.removeprefix("/v1/"), GOOD,
                                      {"Content-Type": kind})
            assert answer.status == 415, path


def test_no_get_changes_anything(service):
    """C132, C158"""
    newest = service.get("/v1/status").json["leases"]["newest_token"]
    for path in openapi.routes():
        for method in ("GET", "HEAD", "OPTIONS"):
            for headers in ({}, {"X-HTTP-Method-Override": "POST",
                                 "X-HTTP-Method": "POST"}):
                answer = service.request(
                    method, path + "?resource=r&holder=h&ttl=30&token=1",
                    None, headers)
                assert answer.status in (200, 204, 405, 422)
    status = service.get("/v1/status").json
    assert status["leases"]["newest_token"] == newest


# --- the log and the headers ------------------------------------------------------

def test_nothing_of_a_client_reaches_the_log_or_a_header_raw(service):
    """C156"""
    before = len(service.log())
    for text in ("a\r\nSet-Cookie: x=1", "a\nlevel=error event=forged",
                 "\x1b[2J", "\u2028level=error", "\x7f\x85", "%n%s%s"):
        for answer in (
                service.post("grant", resource=text, holder="h", ttl=1),
                service.post("grant", resource="r", holder=text, ttl=1),
                service.post("grant", resource="l", holder="h", ttl=1,
                             data=text),
                service.post("revoke", resource="l", reason=text)):
            raw = "".join(answer.headers.values())
            assert "Set-Cookie" not in answer.headers
            assert text not in raw and "level" not in raw
        plain = text.encode("ascii", "ignore").decode()
        if plain.isprintable() and plain:
            for name in ("User-Agent", "Referer", "X-Request-Id",
                         "Idempotency-Key", "Accept", "Cookie"):
                answer = service.get("/v1/leases", {name: plain})
                assert plain not in "".join(answer.headers.values())
    said = service.log()[before:]
    assert not [line for line in said.splitlines()
                if not re.match(r"\d{4}-\d\d-\d\d[T ]", line)]
    for forged in ("Set-Cookie", "forged", "\x1b", "\u2028"):
        assert forged not in said


def test_what_is_refused_by_lighttpd_forges_no_line_in_its_log(service):
    before = len(service.log())
    for path in (b"/%0alevel=error", b"/\x1b[2J", b"/v1/\xff", b"/" + b"a" * 20_000,
                 b"/../../etc/passwd\x07"):
        service.raw(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n"
                    b"Connection: close\r\n\r\n")
    said = service.log()[before:]
    assert not [line for line in said.splitlines()
                if not re.match(r"\d{4}-\d\d-\d\d[T ]", line)]
    assert "\x1b" not in said and "\x07" not in said


# --- bounds -----------------------------------------------------------------------

def test_a_client_that_stalls_is_left_within_the_time_limit(service):
    """C118: Without a word, in the header, in the body: 15 s, then it is over."""
    def stall(said):
        with socket.create_connection(("127.0.0.1", service.port), 25) as con:
            con.sendall(said)
            start = time.monotonic()
            while con.recv(4096):
                pass
            return time.monotonic() - start

    with concurrent.futures.ThreadPoolExecutor() as pool:
        took = list(pool.map(stall, [
            b"", b"GET / HTTP/1.1\r\nHost: loc",
            b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"]))
    assert max(took) < 20, took


def test_five_hundred_idle_connections_keep_nobody_out(service):
    idle = [socket.create_connection(("127.0.0.1", service.port), 10)
            for _ in range(500)]
    start = time.monotonic()
    for _ in range(20):
        assert service.post_raw("grant", GOOD).status == 200
        service.post("revoke", resource="r")
    assert time.monotonic() - start < support.patience(10)
    for con in idle:
        con.close()


# --- the socket behind lighttpd ---------------------------------------------------

def record(kind, content=b"", number=1):
    return struct.pack(">BBHHBx", 1, kind, number, len(content), 0) + content


def param(name, value):
    def length(n):
        return bytes([n]) if n < 128 else struct.pack(">I", n | 1 << 31)
    return length(len(name)) + length(len(value)) + name + value


def begin(keep=False):
    return record(1, struct.pack(">HB5x", 1, keep))


def question(keep=False, **params):
    """A whole request for /healthz."""
    given = {"REQUEST_METHOD": "GET", "REQUEST_URI": "/healthz",
             "HTTP_HOST": "localhost"} | params
    return begin(keep) + record(4, b"".join(
        param(k.encode(), v.encode()) for k, v in given.items())) \
        + record(4) + record(5)


def say(service, data, timeout=10, end=True):
    """Bytes to the socket; what comes back until it is closed."""
    with socket.socket(socket.AF_UNIX) as con:
        con.settimeout(support.patience(timeout))
        con.connect(service.socket)
        parts = []
        try:
            con.sendall(data)
            if end:
                con.shutdown(socket.SHUT_WR)
            while part := con.recv(65536):
                parts.append(part)
        except (ConnectionError, BrokenPipeError):
            pass
        return b"".join(parts)


def unread(con):
    """Bytes that the other side has not read."""
    return struct.unpack("i", fcntl.ioctl(con, termios.TIOCOUTQ, b"\0" * 4))[0]


def test_the_socket_is_for_the_user_of_the_service_alone(service):
    """C122"""
    assert stat.S_IMODE(os.stat(service.run).st_mode) == 0o700
    mode = os.stat(service.socket).st_mode
    assert stat.S_ISSOCK(mode) and not mode & (stat.S_IWGRP | stat.S_IWOTH)
    # And no port but the one.
    inodes = {os.readlink(f"/proc/{service.pid}/fd/{fd}")
              for fd in os.listdir(f"/proc/{service.pid}/fd")}
    with open(f"/proc/{service.pid}/net/tcp", encoding="ascii") as lines:
        assert not [line for line in list(lines)[1:]
                    if f"socket:[{line.split()[9]}]" in inodes]


HUGE = struct.pack(">I", 0xffffffff)        # a length of 0x7fffffff


@pytest.mark.parametrize("lengths", [
    HUGE + HUGE, HUGE + b"\0", b"\0" + HUGE, HUGE + b"\x01",
    b"\x01" + HUGE, struct.pack(">II", 0xfffffffc, 0x80000001),
    struct.pack(">II", 0xbfffffff, 0xbffffffe),
    struct.pack(">II", 0x80000000, 0x80000000),
    struct.pack(">II", 0xffffffff, 0x80000003), HUGE[:3], HUGE + HUGE[:2]])
def test_parameters_longer_than_can_be_do_no_harm(service, lengths):
    """C122: CVE-2025-23016: the sum of two lengths ran over to 0."""
    pid = service.pid
    for content in (lengths, lengths + b"A" * 60_000, lengths * 20):
        say(service, begin() + record(4, content) + record(4) + record(5))
    said = say(service, begin() + record(4, lengths)
               + record(4, b"A" * 65_535) * 20 + record(4) + record(5))
    assert b"200 OK" not in said
    assert service.get("/healthz").status == 200
    assert service.pid == pid


def test_where_libfcgi_gives_up_another_service_takes_over(build, tmp_path):
    """C122: Two lengths that add up to 2^31 - 2 or more and are not the greatest
    end the process, without harm to its memory; lighttpd, which never sends
    them, starts it anew."""
    if support.SAN:
        return      # a sanitizer reports so large a request for memory
    with service_module.Service(tmp_path) as service:
        token = service.post_raw("grant", GOOD).json["token"]
        pid = service.pid
        say(service, begin() + record(4, struct.pack(
            ">II", 0xc0000000, 0xc0000000)) + record(4) + record(5))
        service_module.wait_for(lambda: not service_module.alive(pid),
                                what="libfcgi gives up")
        service.wait_ready()
        assert service.post("check", resource="r", token=token).status == 200
        assert "Assertion" in service.log()


def test_noise_on_the_socket_does_no_harm(service):
    """C121"""
    pid, random_bytes = service.pid, random.Random(8184)
    good = question() + record(5)
    for _ in range(support.scaled(300)):
        data = bytearray(good)
        for _ in range(random_bytes.randrange(1, 6)):
            data[random_bytes.randrange(len(data))] = \
                random_bytes.randrange(256)
        say(service, bytes(data[:random_bytes.randrange(len(data)) + 1]))
    assert service.get("/healthz").status == 200
    assert service.pid == pid


def test_a_connection_is_closed_after_its_answer_whatever_was_asked(service):
    """C131: FCGI_KEEP_CONN of another web server must not hold a thread."""
    said = say(service, question(keep=True), end=False)
    assert b"200 OK" in said

    def ask(_):
        return b"200 OK" in say(service, question(keep=True), end=False)

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        assert all(pool.map(ask, range(200)))


def test_who_speaks_late_is_answered_though_nobody_else_comes(service):
    """C118: A thread that waited for its peer must not wait for its turn as
    well: those who have one wait for the next connection."""
    with contextlib.ExitStack() as stack:
        late = [stack.enter_context(socket.socket(socket.AF_UNIX))
                for _ in range(6)]
        for con in late:
            con.settimeout(support.patience(10))
            con.connect(service.socket)
            con.sendall(question()[:20])
        # More than have a turn at a time.
        service_module.wait_for(lambda: not any(map(unread, late)),
                                what="all are read so far")
        for con in late:
            con.sendall(question()[20:])
            assert b"200 OK" in con.recv(65536)


def test_who_does_not_say_all_of_it_holds_a_thread_for_two_seconds(service):
    """C118: be it by silence or byte by byte, as many as there are threads."""
    def drip(said):
        with socket.socket(socket.AF_UNIX) as con:
            con.connect(service.socket)
            start = time.monotonic()
            con.settimeout(0.2)
            with contextlib.suppress(ConnectionError):
                while time.monotonic() < start + support.patience(10):
                    with contextlib.suppress(TimeoutError):
                        if said:
                            con.sendall(said.pop(0))
                        if not con.recv(1):
                            break
            return time.monotonic() - start

    whole = question()
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        start = time.monotonic()
        took = [pool.submit(drip, said) for said in (
            [[whole[:20]] for _ in range(4)]
            + [[whole[i:i + 1] for i in range(len(whole) - 1)]
               for _ in range(4)])]
        assert service.get("/v1/leases").status == 200
        assert time.monotonic() - start < support.patience(4)
        took = [one.result() for one in took]
    assert max(took) < support.patience(4), took


def test_a_second_request_on_a_connection_is_not_done(service):
    """Nothing hides behind another request."""
    body = GOOD.replace(b'"r"', b'"hidden"')
    hidden = begin() + record(4, b"".join(param(k, v) for k, v in (
        (b"REQUEST_METHOD", b"POST"), (b"REQUEST_URI", b"/v1/grant"),
        (b"HTTP_HOST", b"localhost"), (b"CONTENT_TYPE", b"application/json"),
        (b"CONTENT_LENGTH", str(len(body)).encode())))) + record(4) \
        + record(5, body) + record(5)
    said = say(service, question(keep=True) + hidden)
    assert said.count(b"Status:") == 1
    assert service.get("/v1/leases?resource=hidden").json["leases"] == []


def test_a_broken_pipe_is_no_end(service):
    """Whoever asks and leaves at once takes nobody along."""
    pid = service.pid
    for _ in range(50):
        with socket.socket(socket.AF_UNIX) as con:
            con.connect(service.socket)
            con.sendall(question())
    threads = [threading.Thread(target=say, args=(service, question()))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert service.pid == pid
    assert service.get("/healthz").status == 200
