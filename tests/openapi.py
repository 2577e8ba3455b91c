"""openapi.py: www/openapi.json for the tests: what it is made of, and whether
an answer is as it says.

    api = Api()
    for op in api.operations: op.id, op.method, op.path, op.responses …
    api.judge(op, answer)        fails when the document says otherwise

An answer is what tests/service.py gives.
"""

import dataclasses
import json
import re

import jsonschema

import support

FILE = support.ROOT / "www" / "openapi.json"
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


def walk(value, path=()):
    """Every value inside a JSON value, with the way to it."""
    yield path, value
    inside = value.items() if isinstance(value, dict) else \
        enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from walk(inner, (*path, key))


@dataclasses.dataclass
class Operation:
    path: str
    method: str
    it: dict            # as in the document, references followed one step
    parameters: list
    responses: dict     # by status, as text, or "default"

    @property
    def id(self):
        return self.it["operationId"]

    @property
    def body(self):
        """Of the body: its media type object, or None."""
        content = self.it.get("requestBody", {}).get("content", {})
        return content.get("application/json")

    def example(self, name):
        """An example of a request: query, headers, body."""
        query, headers, body = {}, {}, None
        for parameter in self.parameters:
            given = parameter.get("examples", {}).get(name)
            if given:
                place = query if parameter["in"] == "query" else headers
                place[parameter["name"]] = str(given["value"])
        if self.body:
            body = self.body["examples"][name]["value"]
        return query, headers, body


class Api:
    def __init__(self):
        self.doc = json.loads(FILE.read_text())
        self.resolver = jsonschema.RefResolver.from_schema(self.doc)
        self.operations = [
            self._operation(path, method, item)
            for path, item in self.doc["paths"].items()
            for method in item if method in METHODS]
        self.by_id = {op.id: op for op in self.operations}

    def _operation(self, path, method, item):
        it = item[method]
        given = item.get("parameters", []) + it.get("parameters", [])
        return Operation(
            path, method.upper(), it, [self.look(p) for p in given],
            {status: self.look(r) for status, r in it["responses"].items()})

    def look(self, value):
        """A value, or what it refers to."""
        if isinstance(value, dict) and "$ref" in value:
            return self.resolver.resolve(value["$ref"])[1]
        return value

    def validator(self, schema):
        return jsonschema.Draft202012Validator(
            schema, resolver=self.resolver,
            format_checker=jsonschema.FormatChecker())

    def valid(self, schema, value, where=""):
        """Fails, and says why, when the value is not as the schema says."""
        wrong = [f"{'/'.join(map(str, e.path))}: {e.message}"
                 for e in self.validator(schema).iter_errors(value)]
        assert not wrong, (where, value, wrong)

    def judge(self, op, answer):
        """Is the answer one that the document has for the operation?"""
        status = str(answer.status)
        response = op.responses.get(status, op.responses["default"])
        content = answer.headers["Content-Type"]
        media = response["content"].get(content)
        assert media, f"{op.id} {status} answered {content}"
        value = answer.json if "json" in content else answer.body.decode()
        self.valid(media["schema"], value, f"{op.id} {status}")
        for name, header in response.get("headers", {}).items():
            self._judge_header(answer, name, self.look(header))
        if status >= "400":
            assert answer.json["status"] == answer.status

    def _judge_header(self, answer, name, header):
        text = answer.headers[name]
        assert text is not None or not header.get("required"), name
        if text is not None:
            kind = header["schema"]["type"]
            value = int(text) if kind == "integer" else text
            self.valid(header["schema"], value, name)

    def judge_web_server(self, answer):
        """The same for what the web server says by itself."""
        media = self.doc["components"]["responses"]["WebServer"]["content"]
        assert answer.json["status"] == answer.status
        self.valid(media[answer.headers["Content-Type"]]["schema"],
                   answer.json)

    def codes(self, response):
        """The problem codes that a response may have."""
        found = set()
        for media in response.get("content", {}).values():
            for path, value in walk(media["schema"]):
                if path[-2:] == ("properties", "code"):
                    found |= set(value.get("enum", [value.get("const")]))
        return found

    def examples(self, response):
        """Examples of all its bodies, by name."""
        return {name: example for media in response["content"].values()
                for name, example in media["examples"].items()}

    @property
    def all_codes(self):
        return self.doc["components"]["schemas"]["ProblemCode"]["enum"]


def routes():
    """The service's own route table: {path: (method, fields, required)}."""
    source = (support.ROOT / "fcgi" / "route.c").read_text()
    line = re.compile(r'\{"(/[^"]*)",\s*(GET|POST)\w*,\s*(?:SQL_\w+|NULL),\s*'
                      r'"([^"]*)",\s*(\d+)\}')
    return {path: (method, fields.split(), int(required))
            for path, method, fields, required in line.findall(source)}


def service_codes():
    """Every problem code that the service and its web server can answer."""
    text = (support.ROOT / "sql" / "http_problem.sql").read_text()
    general = re.findall(r"^\s*\('(\w+)', [45]\d\d, ", text, re.M)
    by_routes = re.search(r"codes in the route files \(([^)]*)\)",
                          text.replace("\n-- ", " ")).group(1).split(", ")
    pages = re.findall(r'\[\d+\] = \{"[^"]*", "(\w+)"',
                       (support.ROOT / "lighttpd.lua").read_text())
    assert len(general) == len(set(general)) > 10 < len(pages)
    return set(general) | set(by_routes) | set(pages)
