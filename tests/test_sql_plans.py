"""Every file of sql/: it compiles against the schema, does what its header
says it binds, and scans no table that grows.
"""

import re
import sqlite3

import pytest

import support

SQL = support.ROOT / "sql"
FILES = sorted(p for p in SQL.glob("*.sql"))

# Whole tables read on purpose, and why that is fine.
ALLOWED = {
    "active_all": "is asked for every lease there is",
    "lease_boot": "reads the newest event from the end, one row",
    "lease_now": "reads the newest event from the end, one row",
    "cli_status": "counts the events, whose number is bounded",
    "http_metrics": "counts the leases, page by page",
    "http_status": "counts the events, whose number is bounded, and the leases",
}

GROWS = ("lease", "lease_event", "lease_fence")


def makes_schema(path):
    """Files of many statements, on a schema that they make or change."""
    return path.stem == "schema" or path.stem.startswith("test_")


PLAIN = [p for p in FILES if not makes_schema(p)]


def bare(text):
    """The statement without its comments."""
    return re.sub(r"--[^\n]*", "", text).strip()


def statements(text):
    """Each statement of a file that SQLite can plan."""
    piece = ""
    for part in re.split(r"(;)", bare(text)):
        piece += part
        if sqlite3.complete_statement(piece):
            if not re.match(r"\s*PRAGMA\b", piece):
                yield piece.strip().rstrip(";")
            piece = ""
    assert not piece.strip(), f"no end: {piece}"


def parameters(statement):
    return sorted(set(re.findall(r"[:@$][a-z_]\w*",
                                 re.sub(r"'[^']*'", "", statement))))


def plan(con, statement):
    """The steps of a plan. Functions that a statement has from the inside of
    the extension are put in its place by name."""
    values = {p[1:]: None for p in parameters(statement)}
    while True:
        try:
            rows = con.execute("EXPLAIN QUERY PLAN " + statement, values)
            return [row[3] for row in rows]
        except sqlite3.OperationalError as error:
            found = re.fullmatch("no such function: (.*)", str(error))
            if not found:
                raise
            con.create_function(found[1], -1, lambda *_: None)


def scans(steps, statement):
    """The steps that read all of a table that grows, by name or alias."""
    names = {alias or table: table for table, alias in re.findall(
        r"\bmain\.(\w+)(?:\s+AS\s+(\w+))?", statement)}
    for step in steps:
        found = re.match(r"SCAN (?:main\.)?(\w+)", step)
        if found and names.get(found[1], found[1]) in GROWS:
            yield step


@pytest.fixture
def schema(db, clock):
    con = db()
    con.execute("SELECT lease_init()").fetchall()
    return con


@pytest.mark.parametrize("path", PLAIN, ids=lambda p: p.stem)
def test_sql_file_compiles_and_scans_no_table_that_grows(path, schema):
    found = [step for statement in statements(path.read_text())
             for step in scans(plan(schema, statement), statement)]
    assert bool(found) == (path.stem in ALLOWED), found


def test_the_triggers_scan_no_table_that_grows(schema, tmp_path):
    said = support.shell(
        ".dbconfig trigger_eqp on\nEXPLAIN QUERY PLAN "
        "INSERT INTO lease_event(at, event) VALUES(1, 'granted');\n",
        tmp_path / "lease.db", clocked=True)
    steps = re.findall(r"(?:SCAN|SEARCH) [^\n]*", said)
    assert len(steps) > 5, said
    assert not list(scans(steps, ""))


@pytest.mark.parametrize("path", PLAIN, ids=lambda p: p.stem)
def test_sql_file_says_what_it_binds(path):
    text = path.read_text()
    head = text[:re.search(r"^(?!--)", text, re.M).start()]
    missing = [p for p in parameters(bare(text)) if p not in head]
    assert not missing, f"the header of {path.name} does not name {missing}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_sql_file_names_its_tables_with_main(path):
    statement = re.sub(r"'[^']*'", "", bare(path.read_text()))
    unnamed = re.findall(
        r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(lease(?:_event|_fence|_clock|"
        r"_config|_proof)?)\b(?!\s*\()", statement)
    assert makes_schema(path) or not unnamed
