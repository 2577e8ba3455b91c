"""What the service does with input that is wrong: the right refusal, at once,
and the same process goes on."""

import json
import socket
import subprocess

import pytest

import service as service_module

GOOD = b'{"resource":"r","holder":"h","ttl":30}'
JSON_TYPE = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def service(build, tmp_path_factory):
    """One for all of this file; it must outlive every request."""
    with service_module.Service(tmp_path_factory.mktemp("input")) as running:
        pid = running.pid
        yield running
        assert running.pid == pid
        assert running.get("/v1/leases").json["leases"] == []
        assert "level=error" not in running.log()


def body(**fields):
    return json.dumps(
        {"resource": "r", "holder": "h", "ttl": 30} | fields).encode()


# --- the body is no JSON that we take -------------------------------------------

NOT_JSON = {
    "empty": b"", "blank": b" \n ", "null": b"null", "true": b"true",
    "number": b"0", "text": b'"x"', "list": b"[]", "words": b"resource=r",
    "truncated": GOOD[:-1], "trailing": GOOD + b"x",
    "two documents": GOOD + GOOD, "trailing NUL": GOOD + b"\0",
    "NUL first": b"\0" + GOOD, "BOM": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "comment": b"/**/" + GOOD, "single quotes": GOOD.replace(b'"', b"'"),
    "trailing comma": GOOD[:-1] + b",}", "no colon": b'{"resource" "r"}',
    "no comma": b'{"resource":"r" "holder":"h"}', "bare key": b"{a:1}",
    "number as key": b"{1:1}", "only a comma": b"{,}",
    "raw newline in text": b'{"resource":"a\nb","holder":"h"}',
    "raw NUL in text": b'{"resource":"a\0b","holder":"h"}',
    "escaped NUL": b'{"resource":"a\\u0000b","holder":"h"}',
    "lone high surrogate": b'{"resource":"\\ud83d","holder":"h"}',
    "high surrogate and text": b'{"resource":"\\ud83dx","holder":"h"}',
    "two high surrogates": b'{"resource":"\\ud83d\\ud83d","holder":"h"}',
    "lone low surrogate": b'{"resource":"\\udd12","holder":"h"}',
    "bad escape": b'{"resource":"\\x41","holder":"h"}',
    "short escape": b'{"resource":"\\u12","holder":"h"}',
    "escape at the end": b'{"resource":"\\',
    "escape u at the end": b'{"resource":"\\u',
    "half a pair at the end": b'{"resource":"\\ud83d\\',
    "invalid UTF-8": b'{"resource":"\xff","holder":"h"}',
    "overlong UTF-8": b'{"resource":"\xc0\xaf","holder":"h"}',
    "surrogate in UTF-8": b'{"resource":"\xed\xa0\x80","holder":"h"}',
    "beyond Unicode": b'{"resource":"\xf5\x80\x80\x80","holder":"h"}',
    "cut UTF-8": b'{"resource":"\xf0\x9f\x94","holder":"h"}',
    "NaN": b'{"ttl":NaN}', "Infinity": b'{"ttl":-Infinity}',
    "hex": b'{"ttl":0x10}', "leading zero": b'{"ttl":030}',
    "no whole part": b'{"ttl":.5}', "no fraction": b'{"ttl":5.}',
    "plus": b'{"ttl":+5}', "no exponent": b'{"ttl":1e}', "minus": b'{"ttl":-}',
    "deep list": b"[" * 50_000, "deep value": b'{"a":' * 10_000,
    "closed deep": b'{"a":' + b"[" * 40 + b"]" * 40 + b"}",
    "field twice": b'{"resource":"a","resource":"b","holder":"h"}',
    "field twice, once null": b'{"resource":"a","holder":"h","ttl":null,'
                              b'"ttl":5}',
    "field twice, escaped": b'{"resource":"a","holder":"h","ttl":30,'
                            b'"\\u0074tl":-1}',
}


@pytest.mark.parametrize("data", NOT_JSON.values(), ids=NOT_JSON)
def test_a_body_that_is_no_strict_json_object_is_400(service, data):
    """C095, C137, C140, C142, C144, C146"""
    answer = service.post_raw("grant", data)
    assert answer.status == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.code in ("malformed", "duplicate_key")


def test_every_cut_of_a_body_is_refused(service):
    """C144"""
    whole = body(data='\\u00e9 \\ud83d\\udd12 é').replace(b"\\\\", b"\\")
    with_connection = service.connect()
    for end in range(len(whole)):
        answer = service.post_raw("grant", whole[:end], con=with_connection)
        assert (answer.status, answer.code) == (400, "malformed"), end
    with_connection.close()


# --- fields that do not fit -----------------------------------------------------

WRONG = {
    "resource": [5, 1.5, True, [], {}, "", "x" * 513, "ü" * 257, "a\nb",
                 "a\rSet-Cookie: x=1", "\x7f", "\x1b[31m"],
    "holder": [5, False, ["h"], "", "h" * 257, "a\tb"],
    "ttl": ["30", "30abc", " 30", "", True, False, [30], {"s": 30}, 0, -1,
            0.0994, 86400.001, 1e15, 9223372036854775807,
            9223372036854775808, 4294967296000, -9223372036854775809,
            10 ** 1000, 0.0004],
    "capacity": ["1", True, 0, -1, 10001, 1.5, 2 ** 63, [1]],
    "data": [5, True, [], {"a": 1}, "x" * 4097, "ü" * 2049],
    "wait": ["1", True, -1, 61, [0]],
    "token": [7],
    "Resource": ["r"],
    "": ["x"],
    "resource holder": ["x"],
}


@pytest.mark.parametrize("name, value", [
    (name, value) for name, values in WRONG.items() for value in values],
    ids=lambda value: repr(value)[:30])
def test_a_field_that_does_not_fit_is_422(service, name, value):
    """C031, C042, C149"""
    answer = service.post_raw("grant", body(**{name: value}))
    assert (answer.status, answer.code) == (422, "invalid")
    error, = answer.json["errors"]
    assert error["loc"] == ["body", name]
    assert error["msg"] and error["type"] in ("type", "value", "unknown")
    assert len(answer.body) < 500


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1e-400", "-0",
                                    "1" + "0" * 1000, "0." + "0" * 400 + "1"])
def test_numbers_beyond_a_double_are_422(service, number):
    """C031, C140"""
    answer = service.post_raw("grant", GOOD.replace(b"30", number.encode()))
    assert (answer.status, answer.code) == (422, "invalid")


def test_every_violated_field_is_told_at_once(service):
    """C147"""
    answer = service.post_raw("grant", json.dumps(
        {"ttl": "30", "capacity": 0, "data": 1, "colour": "red"}))
    assert answer.status == 422
    told = {tuple(e["loc"]): e["type"] for e in answer.json["errors"]}
    assert told == {
        ("body", "resource"): "missing", ("body", "holder"): "missing",
        ("body", "ttl"): "type", ("body", "capacity"): "value",
        ("body", "data"): "type", ("body", "colour"): "unknown"}


def test_a_thousand_unknown_fields_get_a_bounded_answer(service):
    answer = service.post_raw("grant", body(**{f"f{i}": i
                                               for i in range(1000)}))
    assert answer.status == 422
    assert len(answer.json["errors"]) == 100


@pytest.mark.parametrize("token", [0, -1, 7.0, 7.5, "7", "7 ", True, None, [7],
                                   2 ** 53, 2 ** 63 - 1, 2 ** 64])
@pytest.mark.parametrize("route", ["renew", "release", "check", "fence"])
def test_a_token_that_cannot_be_one_is_422(service, route, token):
    """C010"""
    answer = service.post(route, resource="r", token=token)
    assert (answer.status, answer.code) == (422, "invalid")
    assert answer.json["errors"][0]["loc"] == ["body", "token"]


@pytest.mark.parametrize("key", ["", "k" * 129, "a\tb", "\xff"])
def test_an_idempotency_key_that_does_not_fit_is_422(service, key):
    answer = service.post_raw("grant", GOOD, {"Idempotency-Key": key})
    if key == "":
        # As good as none: lighttpd drops empty headers.
        assert answer.status == 200
        service.post("revoke", resource="r")
        return
    assert (answer.status, answer.code) == (422, "invalid")
    assert answer.json["errors"][0]["loc"] == ["header", "Idempotency-Key"]


# --- queries --------------------------------------------------------------------

@pytest.mark.parametrize("query, status", [
    ("?limit=0", 422), ("?limit=1001", 422), ("?limit=ten", 422),
    ("?limit=1.5", 422), ("?limit=-1", 422), ("?limit=", 422),
    ("?limit=99999999999999999999", 422), ("?colour=red", 422),
    ("?resource=", 422), ("?resource=" + "x" * 513, 422),
    ("?after=nonsense", 422), ("?after=9", 422), ("?after=%20:", 422),
    ("?resource=a&resource=b", 400), ("?resource=%zz", 400),
    ("?resource=%", 400), ("?resource=%2", 400), ("?resource=%u0041", 400),
    ("?resource=%ff", 400), ("?resource=%ed%a0%80", 400),
    ("?resource=%c0%af", 400), ("?resource=%00", 400),
    ("?resource=a%0db", 400), ("?resource=a%0ab", 400),
    ("", 200), ("?", 200), ("?&&", 200), ("?prefix", 200),
    ("?after=99999999999999999999:x", 200), ("?resource=a+b", 200)])
def test_a_query_is_judged_as_a_body_is(service, query, status):
    """C114"""
    answer = service.get("/v1/leases" + query)
    assert answer.status == status, answer.body
    if status != 200:
        assert answer.headers["Content-Type"] == "application/problem+json"


# --- methods, types, sizes ------------------------------------------------------

ACTIONS = ["grant", "renew", "release", "check", "fence", "revoke"]
VIEWS = ["/v1/leases", "/v1/status", "/healthz"]


@pytest.mark.parametrize("text, kind", [
    ("0", "value"), ("-1", "value"), ("1001", "value"), ("99999", "value"),
    ("2.5", "value"), ("x", "type"), ("", "type"), ("-", "type"),
    ("1e2", "type")])
def test_a_number_in_a_query_is_of_the_right_type(service, text, kind):
    answer = service.get("/v1/leases?limit=" + text)
    assert answer.status == 422
    error, = answer.json["errors"]
    assert (error["loc"], error["type"]) == (["query", "limit"], kind)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH",
                                    "PROPFIND", "TRACE"])
@pytest.mark.parametrize("route", ACTIONS)
def test_an_action_takes_only_post(service, route, method):
    """C132"""
    answer = service.request(method, f"/v1/{route}?resource=r&token=1",
                             None, {"X-HTTP-Method-Override": "POST"})
    assert answer.status == 405
    assert answer.headers["Allow"] == "OPTIONS, POST"
    if method != "HEAD":
        assert answer.code == "method_not_allowed"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", VIEWS)
def test_a_view_takes_only_get(service, path, method):
    """C132"""
    answer = service.request(method, path, GOOD, JSON_TYPE)
    assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", VIEWS)
def test_head_is_get_without_the_body(service, path):
    """C132"""
    get, head = service.get(path), service.request("HEAD", path)
    assert head.status == get.status and head.body == b""
    assert head.headers["Content-Type"] == get.headers["Content-Type"]


@pytest.mark.parametrize("path", VIEWS + ["/v1/grant"])
def test_options_tells_the_methods_and_permits_no_other_origin(service, path):
    """C153"""
    answer = service.request("OPTIONS", path, None, {
        "Access-Control-Request-Method": "POST"})
    assert (answer.status, answer.body) == (204, b"")
    assert "OPTIONS" in answer.headers["Allow"]
    assert not [h for h in answer.headers if h.startswith("Access-Control")]


@pytest.mark.parametrize("kind, status", [
    ("text/plain", 415), ("application/x-www-form-urlencoded", 415),
    ("multipart/form-data", 415), ("application/vnd.api+json", 415),
    ("application/json; charset=latin1", 415), ("application/jsonx", 415),
    ("application/json, text/plain", 415), ("", 415),
    ("application/JSON", 200), ("application/json;charset=UTF-8", 200),
    ('application/json; charset="utf-8"', 200), ("application/json;", 200)])
def test_only_json_may_write(service, kind, status):
    """C146"""
    answer = service.post_raw("grant", GOOD, {"Content-Type": kind})
    assert answer.status == status, answer.body
    if status == 415:
        assert answer.code == "unsupported_type"
    service.post("revoke", resource="r")


def test_a_missing_content_type_is_415(service):
    """C146"""
    answer = service.request("POST", "/v1/grant", GOOD)
    assert (answer.status, answer.code) == (415, "unsupported_type")


def test_a_body_of_no_known_length_is_411_in_json(service):
    """C116"""
    said = service.raw(b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n"
                       b"Content-Type: application/json\r\n\r\n")
    assert b" 411 " in said and b"application/problem+json" in said
    assert b'"code":"length_required"' in said


def test_a_chunked_body_is_as_good_as_one_with_a_length(service):
    """C116"""
    said = service.raw(
        b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD))
    assert b" 200 OK" in said
    service.post("revoke", resource="r")


@pytest.mark.parametrize("size", [65_537, 900_000, 3_000_000])
def test_a_large_body_is_413_in_json(service, size):
    padded = GOOD[:-1] + b" " * (size - len(GOOD)) + b"}"
    answer = service.post_raw("grant", padded)
    assert (answer.status, answer.code) == (413, "too_large")


def test_the_largest_body_is_read(service):
    padded = GOOD[:-1] + b" " * (65_536 - len(GOOD)) + b"}"
    assert service.post_raw("grant", padded).status == 200
    service.post("revoke", resource="r")


@pytest.mark.parametrize("lengths", ["3\r\nContent-Length: 38", "-1", "+5",
                                     "9" * 20, "38, 38", "0x26"])
def test_a_length_that_cannot_be_is_400(service, lengths):
    """C135"""
    said = service.raw(
        b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nConnection: close\r\n"
        b"Content-Length: " + lengths.encode() + b"\r\n\r\n" + GOOD)
    assert b" 400 " in said or b" 413 " in said
    assert b"application/problem+json" in said


def test_a_shorter_length_cuts_the_body_and_nothing_of_the_rest_acts(service):
    """C135"""
    said = service.raw(
        b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nConnection: close\r\n"
        b"Content-Length: 3\r\n\r\n" + GOOD)
    assert b" 400 " in said and said.count(b"HTTP/1.1") == 1


# --- where it came from, where it goes ------------------------------------------

@pytest.mark.parametrize("host, status", [
    ("evil.example", 421), ("evil.example:8184", 421),
    ("127.0.0.1.evil.example", 421), ("localhost.evil.example", 421),
    ("[::1]", 421), ("0.0.0.0", 421), ("127.1", 400), ("10.0.0.1", 421),
    ("localhost", 200), ("LOCALHOST:8184", 200), ("localhost.", 200),
    ("127.0.0.1", 200), ("127.0.0.1:1", 200)])
def test_only_known_hosts_are_answered(service, host, status):
    """C152"""
    for path in VIEWS:
        assert service.get(path, {"Host": host}).status == status
    answer = service.post_raw("grant", GOOD, {"Host": host})
    assert answer.status == status
    if status >= 400:
        assert answer.code == {421: "foreign_host", 400: "malformed"}[status]
    service.post("revoke", resource="r")


def test_a_request_of_two_hosts_or_none_is_refused(service):
    """C152"""
    for hosts in (b"Host: localhost\r\nHost: evil.example\r\n", b""):
        said = service.raw(b"GET /v1/leases HTTP/1.1\r\n" + hosts
                           + b"Connection: close\r\n\r\n")
        assert b" 400 " in said
    said = service.raw(b"GET /v1/leases HTTP/1.0\r\n\r\n")
    assert b" 421 " in said


def test_further_hosts_are_named_by_the_environment(build, tmp_path):
    with service_module.Service(
            tmp_path, LEASE_HOSTS="lease.example, Other.example") as other:
        for host in ("lease.example", "other.EXAMPLE:8184", "localhost"):
            assert other.get("/healthz", {"Host": host}).status == 200
        assert other.get("/healthz", {"Host": "example"}).status == 421


@pytest.mark.parametrize("bind, address", [
    ("", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "0.0.0.0")])
def test_where_nobody_told_it_to_it_does_not_listen(
        build, tmp_path, bind, address):
    with service_module.Service(tmp_path, bind=bind) as service:
        said = subprocess.run(
            ["ss", "-Hltn", f"sport = :{service.port}"], text=True, check=True,
            stdout=subprocess.PIPE).stdout
        assert [line.split()[3] for line in said.splitlines()] == [
            f"{address}:{service.port}"]


@pytest.mark.parametrize("bind, good, bad", [
    ("0.0.0.0", "127.0.0.1", "0.0.0.0"), ("[::1]", "[::1]", "127.0.0.1"),
    ("[::]", "[::1]", "[::2]"), ("127.0.0.2", "127.0.0.2", "127.0.0.1")])
def test_wherever_it_listens_it_knows_the_address_it_was_reached_at(
        build, tmp_path, bind, good, bad):
    try:
        with socket.socket(socket.AF_INET6 if "[" in bind else socket.AF_INET
                           ) as probe:
            probe.bind((bind.strip("[]"), 0))
    except OSError:
        pytest.skip(f"cannot listen on {bind} here")
    other = service_module.Service(tmp_path, bind=bind)
    other.host = good.strip("[]")
    with other:
        for host, status in ((good, 200), (f"{good}:1", 200), (bad, 421),
                             ("localhost", 200), ("evil.example", 421)):
            assert other.get("/healthz", {"Host": host}).status == status


@pytest.mark.parametrize("origin, status", [
    ("null", 403), ("http://evil.example", 403), ("http://localhost", 403),
    ("http://localhost:{port}.evil.example", 403), ("", 200),
    ("http://localhost:{port}x", 403), ("file://", 403),
    ("http://localhost:{port}", 200), ("https://localhost:{port}", 200),
    ("HTTP://LOCALHOST:{port}", 200)])
def test_pages_of_other_origins_may_not_ask(service, origin, status):
    """C153"""
    headers = {"Host": f"localhost:{service.port}",
               "Origin": origin.format(port=service.port)}
    answer = service.post_raw("grant", GOOD, headers)
    assert answer.status == status
    if status == 403:
        assert answer.code == "foreign_origin"
    assert not [h for h in answer.headers if h.startswith("Access-Control")]
    service.post("revoke", resource="r")


@pytest.mark.parametrize("path", [
    "/v1/", "/v1/nothing", "/v1/grant/", "/v1//grant", "/v1/./grant",
    "/v1/x/../grant", "/v1/%67rant", "/v1/grant%3F", "/v1/GRANT",
    "/v1/leases/r", "/v1/sweep", "/healthz/", "/nothing"])
def test_no_other_spelling_of_a_path_reaches_a_route(service, path):
    """C113"""
    answer = service.post_raw("", GOOD)
    assert answer.status == 404
    answer = service.request("POST", path, GOOD, JSON_TYPE)
    assert (answer.status, answer.code) == (404, "not_found")


# --- what every answer carries --------------------------------------------------

@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/leases", "/v1/grant",
                                  "/v1/nothing", "/nothing"])
def test_every_answer_carries_the_security_headers(service, path):
    headers = service.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_a_request_id_comes_back_or_is_made(service):
    given = service.get("/healthz", {"X-Request-Id": "my-1.2:3_x"})
    assert given.headers["X-Request-Id"] == "my-1.2:3_x"
    made = {service.get("/healthz", {"X-Request-Id": bad})
            .headers["X-Request-Id"]
            for bad in ("a b", "x" * 65, "é", '"', "a;b")}
    assert len(made) == 5 and all(len(name) == 16 for name in made)


def test_nothing_of_a_name_reaches_a_header_or_the_log(service):
    """C156"""
    before = len(service.log())
    answer = service.post("grant", resource="a\r\nSet-Cookie: x=1",
                          holder="h\nlevel=error", ttl=30)
    assert answer.status == 422 and "Set-Cookie" not in answer.headers
    assert len(service.log()) == before


# --- clients that behave badly --------------------------------------------------

def test_fifty_stalled_bodies_hold_nobody_up(service):
    """C118"""
    stalled = []
    for _ in range(50):
        con = socket.create_connection(("127.0.0.1", service.port), 10)
        con.sendall(b"POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Type: application/json\r\n"
                    b"Content-Length: 1000\r\n\r\n{\"resource")
        stalled.append(con)
    con = service.connect(timeout=1)
    for _ in range(20):
        assert service.get("/healthz", con=con).status == 200
        assert service.post_raw("grant", GOOD, con=con).status == 200
        service.post("revoke", con=con, resource="r")
    con.close()
    for con in stalled:
        con.close()


def test_connections_to_the_socket_that_say_nothing_hold_nobody_up(service):
    """C118"""
    path = service.socket
    begin = bytes([1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    stalled = []
    for said in (b"", begin[:5], begin, b"\xff" * 64, b"GET / HTTP/1.0\r\n\r\n"):
        con = socket.socket(socket.AF_UNIX)
        con.connect(path)
        con.sendall(said)
        stalled.append(con)
    con = service.connect(timeout=5)
    for _ in range(20):
        assert service.get("/healthz", con=con).status == 200
    con.close()
    for con in stalled:
        con.close()


@pytest.mark.parametrize("query, wrong", [
    ("ttl=1", ["ttl"]), ("resource=r&x&x", ["resource", "x", "x"]), ("=", [""])])
def test_a_post_has_its_fields_in_its_body_alone(service, query, wrong):
    for route in ("grant", "check", "batch"):
        answer = service.post_raw(f"{route}?{query}", GOOD)
        assert (answer.status, answer.code) == (422, "invalid")
        assert [(e["loc"], e["type"]) for e in answer.json["errors"]] \
            == [(["query", name], "unknown") for name in wrong]
    assert service.post_raw("grant?a=%zz", GOOD).code == "malformed"
    assert service.post_raw("check?&", "{}").json["errors"][0]["loc"] \
        == ["body", "resource"]
