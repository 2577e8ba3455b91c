"""www/openapi.json: a sound OpenAPI 3.1 document, and true: the routes, the
bounds, the codes and the examples are those of the running service."""

import copy
import itertools
import json
import re
import sqlite3
import urllib.parse
from pathlib import Path

import jsonschema
import pytest

import openapi
import support
from service import wait_for

API = openapi.Api()
OPERATIONS = [pytest.param(op, id=op.id) for op in API.operations]
WRITES = [pytest.param(op, id=op.id) for op in API.operations if op.body]
COMPONENTS = API.doc["components"]


# --- the document by itself -----------------------------------------------------

def structure_3_1():
    """The JSON schema of OpenAPI 3.0 as Debian ships it, with what 3.1 has
    more. Schemas are left out: 3.1 says that they are plain JSON Schema."""
    schema = json.loads(Path("/usr/share/openapi-specification/schemas/v3.0/"
                             "schema.json").read_text())
    text = {"type": "string"}
    schema["properties"]["openapi"]["pattern"] = r"^3\.1\.\d+$"
    schema["properties"]["jsonSchemaDialect"] = text
    schema["definitions"]["Info"]["properties"]["summary"] = text
    schema["definitions"]["License"]["properties"]["identifier"] = text
    schema["definitions"]["Schema"] = {"not": {"required": ["$ref"]}}
    return schema


def test_the_document_has_the_shape_of_openapi_3_1():
    validator = jsonschema.Draft4Validator(structure_3_1())
    wrong = [f"{'/'.join(map(str, e.path))}: {e.message[:200]}"
             for e in validator.iter_errors(API.doc)]
    assert wrong == []


def test_every_schema_is_valid_json_schema():
    def is_schema(path):
        return path[-1:] == ("schema",) or path[:2] == ("components",
                                                       "schemas") == path[:-1]
    schemas = [value for path, value in openapi.walk(API.doc)
               if is_schema(path)]
    assert len(schemas) > 50
    for schema in schemas:
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_reference_leads_somewhere_and_every_component_is_used():
    used = {value["$ref"] for _, value in openapi.walk(API.doc)
            if isinstance(value, dict) and "$ref" in value}
    for target in used:
        assert API.resolver.resolve(target)[1] is not None
    # 404 and 405 are of paths and methods that are no operations.
    spoken_of = {"NotFound", "MethodNotAllowed"}
    for kind, things in COMPONENTS.items():
        if kind == "securitySchemes":
            continue
        for name in things:
            assert f"#/components/{kind}/{name}" in used \
                or name in spoken_of, name


def test_operations_have_names_of_their_own_a_tag_and_words():
    ids = [op.id for op in API.operations]
    assert len(set(ids)) == len(ids)
    tags = {tag["name"] for tag in API.doc["tags"]}
    for op in API.operations:
        assert set(op.it["tags"]) <= tags
        assert op.it["summary"] and op.it["description"]


def test_every_example_is_as_its_schema_says():
    seen = 0
    for path, media in openapi.walk(API.doc):
        if not isinstance(media, dict) or "schema" not in media:
            continue
        for name, example in media.get("examples", {}).items():
            seen += 1
            if name != "invalid" or "responses" in path:
                API.valid(media["schema"], example["value"], f"{path} {name}")
    assert seen > 50


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_status_and_every_code_has_an_example(op):
    for status, response in op.responses.items():
        examples = API.examples(response)
        assert len(examples) >= len(response["content"]), (op.id, status)
        if status == "default" or status < "400":
            continue
        shown = {example["value"]["code"] for example in examples.values()}
        missing = API.codes(response) - shown
        # How a lease ended: one example shows the shape of all.
        assert missing <= {"expired", "released", "revoked"}, (status, missing)


def test_every_code_is_explained_and_answered_somewhere():
    schema = COMPONENTS["schemas"]["ProblemCode"]
    assert list(schema["x-enumDescriptions"]) == schema["enum"]
    responses = [*COMPONENTS["responses"].values(),
                 *(r for op in API.operations for r in op.responses.values())]
    assert set().union(*map(API.codes, responses)) == set(schema["enum"])


# --- the document and the service's sources -------------------------------------

def test_the_routes_of_the_service_are_those_of_the_document():
    routes = openapi.routes()
    assert {op.path: op.method for op in API.operations} == {
        path: method for path, (method, *_) in routes.items()}
    for op in API.operations:
        _, fields, required = routes[op.path]
        if op.body:
            schema = API.look(op.body["schema"])
            assert list(schema["properties"]) == fields
            assert schema["required"] == fields[:required]
        else:
            query = [p for p in op.parameters if p["in"] == "query"]
            assert [p["name"] for p in query] == fields
            assert [p["name"] for p in query if p.get("required")] \
                == fields[:required]


def test_the_list_of_codes_is_closed():
    assert set(API.all_codes) == openapi.service_codes()


def test_general_problems_are_told_as_the_service_tells_them():
    statement = (support.ROOT / "sql" / "http_problem.sql").read_text()
    con = sqlite3.connect(":memory:")
    told = 0
    for response in COMPONENTS["responses"].values():
        for example in API.examples(response).values():
            value = example["value"]
            row = con.execute(statement, {
                "code": value["code"], "detail": None,
                "errors": json.dumps(value.get("errors"))
                if "errors" in value else None}).fetchone()
            if row is None:
                continue            # the web server's own
            status, body, retry_after = row
            real = json.loads(body)
            if value["code"] == "malformed":
                real["detail"] = value["detail"]
            assert (status, real) == (value["status"], value)
            if retry_after:
                assert "Retry-After" in response["headers"]
            told += 1
    assert told > 15


# --- the document and the running service ---------------------------------------

def ask(service, op, query=None, headers=None, body=None):
    path = op.path
    if query:
        path += "?" + urllib.parse.urlencode(query)
    if op.body is None:
        return service.get(path, headers)
    return service.post_raw(op.path.removeprefix("/v1/"), json.dumps(body),
                            headers)


def ask_example(service, op, name):
    return ask(service, op, *op.example(name))


# Time that passes, and examples in the order in which they happen. What has
# a dot before it is needed in between, and no example.
STORY = """
    grant:granted  4  grant:held  6  renew:renewed  10
    check:active  check:expiring  fence:accepted  fence:stale
    grant:shared  grant:keyed  2  grant:repeated  grant:mismatched
    grant:invalid
    leases:all  leases:page  leases:next_page  leases:invalid
    waiters:nobody  waiters:invalid
    events:page  events:resumed  events:nothing  events:stream
    events:trimmed  events:invalid
    status:status  healthz:ok
    release:released  release:again  release:unknown
    renew:released  renew:unknown  check:unknown
    revoke:revoked  revoke:nothing  renew:revoked  check:revoked
    .grant-mail  10  renew:expired
    .release-report  grant:ended
    batch:mixed  5  batch:renewals  batch:refused  batch:atomic  batch:invalid
    metrics:metrics
""".split()

BETWEEN = {
    ".grant-mail": ("grant", {"resource": "example/mail",
                              "holder": "postman-1", "ttl": 10}),
    ".release-report": ("release", {"resource": "example/report",
                                    "token": 4}),
}


def example_of(op, name):
    """(status, example) of the answer with this name."""
    for status, response in op.responses.items():
        if name in API.examples(response):
            return status, API.examples(response)[name]
    raise AssertionError(f"{op.id} has no example of an answer: {name}")


def stream_text(service, op, name, events=2):
    """The beginning of a stream, as it comes. The time after which to come
    back differs from client to client."""
    query, headers, _ = op.example(name)
    con = service.connect()
    con.request("GET", f"{op.path}?{urllib.parse.urlencode(query)}",
                headers=headers | {"Accept": "text/event-stream"})
    answer = con.getresponse()
    assert (answer.status, answer.headers["Content-Type"]) == (
        200, "text/event-stream")
    text = ""
    while text.count("\ndata: ") < events or not text.endswith("\n\n"):
        text += answer.readline().decode()
    con.close()
    answer.close()
    return re.sub(r"^retry: [12]\d\d\d$", "retry: 1500", text, flags=re.M)


def steady(value):
    """Without what differs from run to run, and from machine to machine."""
    value = copy.deepcopy(value)
    for name in ("version", "sqlite", "uptime", "clock", "queue",
                 "checkpoint"):
        if "durability" in value:
            value.pop(name)
    if "parked" in value:
        value["parked"].pop("most")
    return value


def test_the_examples_are_answers_of_the_running_service(
        service, clock, request):
    rewrite = request.config.getoption("--rewrite")
    told = set()
    for step in STORY:
        if step.isdigit():
            clock.advance(int(step))
            continue
        if step in BETWEEN:
            route, fields = BETWEEN[step]
            assert service.post(route, **fields).status == 200
            continue
        op, name = API.by_id[step.split(":")[0]], step.split(":")[1]
        status, example = example_of(op, name)
        told.add(step)
        if name == "stream":
            text = stream_text(service, op, name)
            if rewrite:
                example["value"] = text
            assert example["value"] == text
            wait_for(lambda: not service.get(
                "/v1/status").json["parked"]["streams"], what="it is over")
            continue
        answer = ask_example(service, op, name)
        API.judge(op, answer)
        if name == "metrics":       # an excerpt
            lines = answer.body.decode().splitlines()
            assert set(example["value"].splitlines()) <= set(lines)
            continue
        if rewrite:
            example["value"] = answer.json
            if op.id == "status":   # the wall clock is not the test's
                example["value"]["clock"]["lead"] = 0.0
        assert str(answer.status) == status, (step, answer.json)
        assert steady(example["value"]) == steady(answer.json), step
    if rewrite:
        openapi.FILE.write_text(
            json.dumps(API.doc, indent=2, ensure_ascii=False) + "\n")
    shown = {f"{op.id}:{name}" for op in API.operations
             for status, response in op.it["responses"].items()
             if "$ref" not in response for name in API.examples(response)}
    requests = {f"{op.id}:{name}" for op in API.operations
                for name in (op.body["examples"] if op.body else ())}
    ill = {f"healthz:{name}" for name in ("busy", "storage_full", "write_failed",
                                          "database_moved", "unavailable")}
    # It takes two at once: tests/test_http_wait.py has them.
    assert shown | requests == told | ill | {
        "grant:taken_over", "waiters:waiting"}


PROVOKED = {
    "malformed": dict(body='{"resource": '),
    "duplicate_key": dict(body='{"%s": "a", "%s": "b"}'),
    "foreign_origin": dict(headers={"Origin": "http://evil.example"}),
    "foreign_host": dict(headers={"Host": "evil.example"}),
    "unsupported_type": dict(headers={"Content-Type": "text/plain"}),
    "too_large": dict(body=" " * 1_100_000 + "{}"),
    "invalid": dict(body='{"nothing": 1}'),
}


@pytest.mark.parametrize("op", OPERATIONS)
def test_refusals_before_anything_is_looked_up(service, op):
    for code, how in PROVOKED.items():
        headers = {"Content-Type": "application/json"} | how.get("headers", {})
        path, body = op.path, how.get("body", "{}")
        if op.body and code == "duplicate_key":
            body %= (API.look(op.body["schema"])["required"][0],) * 2
        if op.body is None:
            if code in ("unsupported_type", "too_large"):
                continue
            body = None
            names = [p["name"] for p in op.parameters if p["in"] == "query"]
            if code == "duplicate_key" and not names:
                continue
            path += {"malformed": "?a=%zz", "invalid": "?nothing=1",
                     "duplicate_key": "?{0}=1&{0}=2".format(*names, "")
                     }.get(code, "")
        answer = service.request(op.method, path, body, headers)
        assert answer.code == code, answer.body
        API.judge(op, answer)


def test_a_body_without_a_length_is_refused_as_the_document_says(service):
    head = (f"POST /v1/grant HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\n"
            "Content-Type: application/json\r\nConnection: close\r\n\r\n")
    said = service.raw(head.encode())
    status = int(said.split()[1])
    problem = json.loads(said.partition(b"\r\n\r\n")[2])
    assert (status, problem["code"]) == (411, "length_required")
    response = COMPONENTS["responses"]["WebServer"]
    API.valid(response["content"]["application/problem+json"]["schema"],
              problem)


@pytest.mark.parametrize("op", OPERATIONS)
def test_head_is_answered_like_get_without_the_body(service, op):
    needed = "&".join(p["name"] + "=x" for p in op.parameters
                      if p["in"] == "query" and p.get("required"))
    answer = service.request("HEAD", f"{op.path}?{needed}")
    assert answer.body == b""
    if op.method == "GET":
        assert answer.status == 200
        assert int(answer.headers["Content-Length"]) > 0
        assert answer.headers["Content-Type"] in op.responses["200"]["content"]
    else:
        assert answer.status == 405


@pytest.mark.parametrize("op", OPERATIONS)
def test_other_methods_are_refused_with_those_allowed(service, op):
    for method in ("PUT", "DELETE", "PATCH",
                   "GET" if op.method == "POST" else "POST"):
        answer = service.request(method, op.path,
                                 None if method == "GET" else "{}",
                                 {"Content-Type": "application/json"})
        assert answer.status == 405, (method, answer.body)
        response = COMPONENTS["responses"]["MethodNotAllowed"]
        API.valid(response["content"]["application/problem+json"]["schema"],
                  answer.json)
        assert op.method in answer.headers["Allow"].split(", ")
    answer = service.request("OPTIONS", op.path)
    assert (answer.status, answer.body) == (204, b"")
    assert op.method in answer.headers["Allow"].split(", ")


def test_a_path_that_is_not_there_is_answered_as_the_document_says(service):
    answer = service.post("nothing", resource="r")
    assert answer.status == 404
    schema = COMPONENTS["responses"]["NotFound"]["content"][
        "application/problem+json"]["schema"]
    API.valid(schema, answer.json)


def test_a_locked_database_is_told_as_the_document_says(service):
    with support.connect(str(service.db)) as con:
        con.execute("BEGIN IMMEDIATE")
        answer = service.post("grant", resource="r", holder="a", ttl=30)
        assert (answer.status, answer.code) == (503, "busy")
        assert answer.headers["Retry-After"]
        API.judge(API.by_id["grant"], answer)
        answer = service.get("/healthz")
        API.judge(API.by_id["healthz"], answer)
        assert answer.json == example_of(API.by_id["healthz"], "busy")[1][
            "value"]
        con.execute("ROLLBACK")


@pytest.mark.parametrize("name, figures", [
    ("busy", (1001, 0)), ("storage_full", (0, 13)), ("write_failed", (0, 10))])
def test_an_ill_service_says_so_as_the_document_has_it(db, name, figures):
    con = db()
    con.execute("SELECT lease_init()")
    statement = (support.ROOT / "sql" / "http_healthz.sql").read_text()
    status, body, *_ = con.execute(statement, dict(
        zip(("locked_ms", "write_error"), figures))).fetchone()
    shown, example = example_of(API.by_id["healthz"], name)
    assert (str(status), json.loads(body)) == (shown, example["value"])


@pytest.mark.parametrize("op", WRITES)
def test_unknown_and_missing_fields_are_all_told_at_once(service, op):
    answer = ask(service, op, body={"one": 1, "two": 2})
    API.judge(op, answer)
    told = {(tuple(e["loc"]), e["type"]) for e in answer.json["errors"]}
    schema = API.look(op.body["schema"])
    assert told == {(("body", name), "missing")
                    for name in schema["required"]} | {
        (("body", "one"), "unknown"), (("body", "two"), "unknown")}


# --- bounds ---------------------------------------------------------------------

def texts(schema):
    if schema.get("pattern", "").endswith(":"):     # a next of a page
        yield from (("1:" + "x" * 798, True), ("1:" + "x" * 799, False),
                    ("x", False), ("", False), (":x", False))
        return
    least, most = schema.get("minLength", 0), schema["maxLength"]
    yield "x" * most, True
    yield "x" * (most + 1), False
    yield "ü" * (most // 2 + 1), False      # bytes, not characters
    yield "x" * least, True
    if least:
        yield "", False
    yield "a\tb", "pattern" not in schema
    yield "a\u0085b", "pattern" not in schema
    yield 1, False
    yield ["x"], False


def numbers(schema):
    least, most = schema["minimum"], schema["maximum"]
    yield least, True
    yield most, True
    yield most + 1, False
    yield least - 1, False
    yield str(most), False
    yield True, False
    yield least + 0.5, schema["type"] == "number" and most > least


def bounds():
    for op in API.operations:
        if not op.body:
            continue
        schema = API.look(op.body["schema"])
        for name, field in schema["properties"].items():
            field = {**API.look(field), **field}
            if field["type"] in ("array", "boolean"):
                continue                # see test_http_batch.py
            kind = texts if field["type"] == "string" else numbers
            for i, (value, fits) in enumerate(kind(field)):
                yield pytest.param(op, name, field, value, fits,
                                   id=f"{op.id}-{name}-{i}")


@pytest.fixture(scope="module")
def kept(tmp_path_factory, build):
    """One service for all of them: they are many, and change nothing that
    the others look at."""
    import service as service_module
    with service_module.Service(tmp_path_factory.mktemp("kept")) as running:
        yield running


NUMBERS = itertools.count()


@pytest.mark.parametrize("op, name, field, value, fits", bounds())
def test_the_bounds_of_a_field_are_those_of_the_service(
        kept, op, name, field, value, fits):
    body = dict(next(iter(op.body["examples"].values()))["value"])
    body["resource"] = f"{op.id}/{name}/{next(NUMBERS)}"
    body[name] = value
    answer = ask(kept, op, body=body)
    API.judge(op, answer)
    wrong = [e["loc"] for e in answer.json.get("errors", ())]
    assert wrong == ([] if fits else [["body", name]]), answer.json
    if fits:
        API.valid(field, value)


def query_bounds():
    for op in API.operations:
        for parameter in op.parameters:
            schema = API.look(parameter["schema"])
            if parameter["in"] != "query":
                continue
            text = schema["type"] == "string"
            for i, (value, fits) in enumerate(
                    (texts if text else numbers)(schema)):
                # All is text there; lighttpd lets no control character in;
                # and no number beyond 2^53 was ever issued.
                if isinstance(value, str) == text and not isinstance(
                        value, bool) and str(value).isprintable() \
                        and value != 2 ** 53:
                    yield pytest.param(op, parameter["name"], value, fits,
                                       id=f"{op.id}-{parameter['name']}-{i}")


@pytest.mark.parametrize("op, name, value, fits", query_bounds())
def test_the_bounds_of_the_query_are_those_of_the_service(
        kept, op, name, value, fits):
    kept.post("grant", resource="bounds", holder="some", ttl=60)
    answer = ask(kept, op, {name: value})
    API.judge(op, answer)
    wrong = [e["loc"] for e in answer.json.get("errors", ())]
    assert wrong == ([] if fits else [["query", name]]), answer.json


def test_the_bounds_of_the_headers_are_those_of_the_service(kept):
    op = API.by_id["grant"]
    for i, (key, fits) in enumerate((("k" * 128, True), ("k" * 129, False))):
        answer = ask(kept, op, headers={"Idempotency-Key": key}, body={
            "resource": f"keyed/{i}", "holder": "a"})
        API.judge(op, answer)
        assert (answer.status == 200) == fits
        if not fits:
            assert answer.json["errors"][0]["loc"] == [
                "header", "Idempotency-Key"]
    for name, kept_as_it_is in (("a-B_1.2:3", True), ("x" * 64, True),
                                ("x" * 65, False), ("a b", False)):
        answer = kept.get("/healthz", {"X-Request-Id": name})
        told = answer.headers["X-Request-Id"]
        assert (told == name) == kept_as_it_is
        assert re.fullmatch(COMPONENTS["headers"]["X-Request-Id"]["schema"]
                            ["pattern"], told)


# --- how it is served -----------------------------------------------------------

def test_the_document_and_the_page_are_served(service):
    answer = service.get("/openapi.json")
    assert (answer.status, answer.headers["Content-Type"]) == (
        200, "application/json")
    assert answer.json == API.doc
    for path in ("/docs", "/docs/", "/docs?x=1"):
        page = service.get(path)
        assert (page.status, page.headers["Content-Type"]) == (
            200, "text/html; charset=utf-8")
        assert b"/js/docs/main.js" in page.body


def test_a_page_is_never_older_than_the_service(service):
    """Nor its modules: a browser asks each time whether they changed."""
    for path in ("/", "/docs", "/openapi.json", "/js/docs/main.js"):
        answer = service.get(path)
        assert answer.headers.get_all("Cache-Control") == ["no-cache"], path
        again = service.get(path, {"If-None-Match": answer.headers["ETag"]})
        assert (again.status, again.body) == (304, b"")
    for path in ("/healthz", "/v1/leases", "/v1/nothing"):
        assert service.get(path).headers.get_all("Cache-Control") == [
            "no-store"]
