"""lease_active answers every query as a plain table with the same rows would,
whichever plan it takes.

LEASE_QUERIES sets how many random ones (default 10,000), LEASE_QUERY_SEED
where they begin.
"""

import itertools
import os
import random
import re
import sqlite3

import pytest

import support
from support import one

QUERIES = support.scaled(int(os.environ.get("LEASE_QUERIES", "10000")))
SEED = os.environ.get("LEASE_QUERY_SEED", "1")

COLUMNS = ("resource TEXT, holder TEXT, token INTEGER, epoch INTEGER, "
           "capacity INTEGER, ttl REAL, granted_at REAL, renewed_at REAL, "
           "expires_at REAL, remaining REAL, data TEXT")
NAMES = [c.split()[0] for c in COLUMNS.split(", ")]
RESOURCES = ["a", "A", "ab", "abc", "aB", "b", "shard/0", "shard/1",
             "shard/10", "Shard/1", "*", "a*", "a?", "[a]", "_", "%", "5",
             "5.0", "é", "É", "éa", "\uffff", "\U0010ffff", "\U0010ffffa",
             "a\U0010ffff", "\U00010000", "ï¿¿", " ", "~"]
HOLDERS = ["h1", "h2", "H1", "5", "é"]
TEXTS = RESOURCES + HOLDERS + ["", "zz", "shard", "a%", "shard/*", "s%",
                               "*a", "[a-c]*", "a_", "é*", "\U0010ffff*",
                               "a\U0010ffff*", "5*", "\u00ff", "[", "a["]


class Query:
    """A random query; {T} stands for the table under test."""

    def __init__(self, rng):
        self.rng = rng
        self.args = []
        self.ordered = False

    def pick(self, *choices):
        return self.rng.choice(choices)

    def literal(self):
        value = self.rng.choice(
            [self.rng.choice(TEXTS)] * 6
            + [5, 5.0, None, b"a", b"\xff", 1e300, -1, self.rng.randrange(60)])
        self.args.append(value)
        return "?"

    def number(self):
        self.args.append(self.rng.choice(
            [0, 1, 7, 20, 30.5, 1e9, 1_700_000_000, 1_700_000_050.5, None,
             "20", "x"]))
        return "?"

    def key(self, t):
        return f"{t}.{self.pick('resource', 'resource', 'holder')}"

    def comparison(self, t):
        op = self.pick("=", "=", "=", "==", "<", "<=", ">", ">=", "<>", "IS",
                       "IS NOT", "GLOB", "LIKE", "NOT LIKE", "NOT GLOB")
        left, right = self.key(t), self.literal()
        if self.rng.random() < 0.1:
            left = "+" + left
        if self.rng.random() < 0.1:
            right += self.pick(" COLLATE NOCASE", " COLLATE RTRIM",
                               " COLLATE BINARY")
        if self.rng.random() < 0.1 and op in ("=", "<", ">", "<=", ">="):
            left, right = right, left
        return f"{left} {op} {right}"

    def atom(self, t, depth=0):
        kind = self.rng.randrange(12)
        if kind < 6:
            return self.comparison(t)
        if kind == 6:
            many = ", ".join(self.literal()
                             for _ in range(self.rng.randrange(4)))
            return f"{self.key(t)} {self.pick('IN', 'NOT IN')} ({many})"
        if kind == 7:
            return (f"{self.key(t)} BETWEEN {self.literal()} "
                    f"AND {self.literal()}")
        if kind == 8:
            column = self.pick(*NAMES[2:10])
            return f"{t}.{column} {self.pick('=', '<', '>', '<=', '>=')} " \
                   f"{self.number()}"
        if kind == 9:
            # A number in there equals no text in a plain table; a virtual
            # table cannot tell it from = 5, where '5' is meant.
            column = self.pick("r", "h")
            return (f"{self.key(t)} IN (SELECT {column} FROM n "
                    f"WHERE {column} IS NOT 5)")
        if kind == 10 and depth < 2:
            return (f"EXISTS (SELECT 1 FROM {{T}} AS e{depth} WHERE "
                    f"e{depth}.{self.pick('resource', 'holder')} = "
                    f"{self.key(t)} AND {self.atom(f'e{depth}', depth + 1)})")
        if kind == 11:
            op = self.pick("<", ">", "<=", ">=", "=")
            return (f"({t}.resource, {t}.holder) {op} "
                    f"({self.literal()}, {self.literal()})")
        return f"{self.key(t)} IS {self.pick('NULL', 'NOT NULL')}"

    def where(self, *tables):
        atoms = [self.atom(self.rng.choice(tables))
                 for _ in range(self.rng.randrange(1, 4))]
        text = atoms[0]
        for atom in atoms[1:]:
            text += f" {self.pick('AND', 'AND', 'OR')} {atom}"
        return f"NOT ({text})" if self.rng.random() < 0.05 else text

    def source(self):
        kind = self.rng.randrange(10)
        join = self.pick("JOIN", "LEFT JOIN", "CROSS JOIN")
        on = self.pick("a.resource = n.r", "n.r = a.resource",
                       "a.holder = n.h", "a.resource = n.r AND a.holder = n.h",
                       "a.resource GLOB n.r", "a.resource LIKE n.r",
                       "a.resource > n.r", "a.resource = n.r COLLATE NOCASE",
                       "a.token = n.i")
        if kind < 4:
            return "{T} AS a", ["a"]
        if kind < 6:
            return f"n {join} {{T}} AS a ON {on}", ["a"]
        if kind < 8:
            return f"{{T}} AS a {join} n ON {on}", ["a"]
        if kind == 8:
            return (f"{{T}} AS a {join} {{T}} AS b ON a.resource = "
                    f"b.{self.pick('resource', 'holder')}"), ["a", "b"]
        return ("{T} AS a LEFT JOIN {T} AS b ON b.holder = a.holder AND "
                "b.resource > a.resource"), ["a", "b"]

    def build(self):
        source, tables = self.source()
        what = self.pick("a.*", "a.*", "a.rowid, a.resource, a.holder",
                         "a.resource, a.remaining", "DISTINCT a.holder",
                         "count(*), min(a.expires_at), max(a.token)",
                         "a.resource, (SELECT count(*) FROM {T} AS s "
                         "WHERE s.holder = a.holder)",
                         "a.resource, (SELECT s.token FROM {T} AS s WHERE "
                         "s.resource = a.resource ORDER BY s.holder LIMIT 1)")
        sql = f"SELECT {what} FROM {source}"
        if self.rng.random() < 0.85:
            sql += f" WHERE {self.where(*tables)}"
        if what.startswith(("DISTINCT", "count")):
            if what.startswith("count") and self.rng.random() < 0.5:
                sql += " GROUP BY a." + self.pick("holder", "resource", "ttl")
            return sql
        return sql + self.order(tables, " n " in f" {source} ")

    def order(self, tables, with_n):
        """An order and a limit, made total so that both must answer alike."""
        if self.rng.random() < 0.4:
            return ""
        first = [f"a.{self.pick(*NAMES[:10])}{self.pick('', '', ' DESC')}"
                 f"{self.pick('', '', ' NULLS LAST')}"
                 for _ in range(self.rng.randrange(1, 3))]
        if self.rng.random() < 0.15:
            first = ["a.resource COLLATE NOCASE" + self.pick("", " DESC")]
        if self.rng.random() < 0.3:
            self.keyed = True
            return " ORDER BY " + ", ".join(first)
        rest = [f"{t}.{c}" for t in tables for c in ("resource", "holder")]
        rest += ["n.i"] if with_n else []
        self.ordered = True
        sql = " ORDER BY " + ", ".join(
            first + [c for c in rest if c not in first])
        if self.rng.random() < 0.5:
            sql += f" LIMIT {self.rng.randrange(-1, 12)}"
            if self.rng.random() < 0.5:
                sql += f" OFFSET {self.rng.randrange(5)}"
        return sql


def run(con, sql, args):
    try:
        return con.execute(sql, args).fetchall()
    except sqlite3.Error as error:
        return str(error)


def in_any_order(rows):
    return rows if isinstance(rows, str) else sorted(map(repr, rows))


def fill(con, clock, leases, rng):
    """So many leases, a fifth of them run out; and a table n to join."""
    one(con, "SELECT lease_init()")
    for i in range(leases):
        resource = RESOURCES[i] if i < len(RESOURCES) else \
            rng.choice(RESOURCES) + str(i)
        for holder in rng.sample(HOLDERS, rng.randrange(1, 4)):
            one(con, "SELECT lease_grant(?, ?, ?, 10, ?)", resource, holder,
                rng.choice([5, 20.5, 20.5, 60, 100]), rng.choice([None, "d"]))
        clock.advance(0.25)
    clock.advance(5)
    con.execute(f"CREATE TABLE copy({COLUMNS})")
    con.execute("INSERT INTO copy(rowid, " + ", ".join(NAMES) + ") "
                "SELECT token, * FROM lease_active")
    con.execute("CREATE TABLE n(i INTEGER PRIMARY KEY, r, h)")
    con.executemany("INSERT INTO n(r, h) VALUES(?, ?)",
                    [(rng.choice(RESOURCES + ["zz", None, 5]),
                      rng.choice(HOLDERS + ["zz", None, 5]))
                     for _ in range(7)])


@pytest.mark.limit(300)
@pytest.mark.parametrize("leases, encoding, share", [
    (0, "UTF-8", 0.05), (1, "UTF-8", 0.05), (40, "UTF-8", 0.6),
    (40, "UTF-16le", 0.2), (40, "UTF-16be", 0.1)])
def test_random_queries_answer_as_a_plain_table(db, clock, leases, encoding,
                                                share):
    """C102, C104"""
    con = db()
    con.execute(f"PRAGMA encoding = '{encoding}'")
    rng = random.Random(f"{leases} {encoding} {SEED}")
    fill(con, clock, leases, rng)
    assert one(con, "PRAGMA encoding") == encoding
    assert one(con, "SELECT count(*) FROM copy") >= leases * 0.8
    for _ in range(int(QUERIES * share)):
        query = Query(rng)
        sql = query.build()
        got = run(con, sql.replace("{T}", "lease_active"), query.args)
        want = run(con, sql.replace("{T}", "copy"), query.args)
        if not query.ordered:
            got, want = in_any_order(got), in_any_order(want)
        assert got == want, (sql, query.args)


@pytest.mark.parametrize("kind", ["INTEGER", "REAL", "NUMERIC", "TEXT", ""])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
def test_a_range_up_to_a_number_is_that_of_a_plain_table(db, kind, op):
    """A column of numbers makes numbers of names that look like them."""
    con = db()
    for name in ("8", "10", "007", "7.0", " 9", "-1", "a"):
        assert one(con, "SELECT lease_grant(?, 'h', 30)", name)
    con.execute("CREATE TABLE plain AS SELECT * FROM lease_active")
    con.execute(f"CREATE TABLE n(x {kind})")
    con.executemany("INSERT INTO n VALUES(?)",
                   [(7,), (70,), (8.5,), (-2,), ("7",), (None,), (b"7",)])
    virtual, plain = (
        con.execute(f"SELECT resource, x FROM n CROSS JOIN {table} "
                   f"ON resource {op} x ORDER BY resource, quote(x)"
                   ).fetchall() for table in ("lease_active", "plain"))
    assert virtual == plain


def test_an_order_that_is_not_total_is_kept_all_the_same(db, clock):
    con = db()
    fill(con, clock, 40, random.Random(5))
    for column, way, where in itertools.product(
            NAMES[:10], ("", "DESC"),
            ("1", "holder = 'h1'", "resource = 'a'", "resource GLOB 'a*'",
             "resource > 'a'", "resource IN ('b', 'a')",
             "holder IN ('h2', 'h1')")):
        sql = f"SELECT {column} FROM {{T}} WHERE {where} " \
              f"ORDER BY {column} {way}"
        assert con.execute(sql.format(T="lease_active")).fetchall() == \
            con.execute(sql.format(T="copy")).fetchall(), sql


# --- plans ------------------------------------------------------------------

def plan(con, sql):
    detail = " ".join(row[3] for row in
                      con.execute("EXPLAIN QUERY PLAN " + sql))
    number = int(re.search(r"VIRTUAL TABLE INDEX (\d+)", detail).group(1))
    return number, "TEMP B-TREE" in detail


ALL, RESOURCE, HOLDER, EXPIRY, RANGE = range(5)


@pytest.mark.parametrize("sql, number, sorts", [
    ("", ALL, False),
    ("WHERE resource = 'a'", RESOURCE, False),
    ("WHERE resource = 'a' AND holder = 'h'", RESOURCE, False),
    ("WHERE resource = 'a' COLLATE NOCASE", ALL, False),
    ("WHERE +resource = 'a'", ALL, False),
    ("WHERE resource IN ('a', 'b')", RESOURCE, False),
    ("WHERE holder = 'h'", HOLDER, False),
    ("WHERE holder = 'h' ORDER BY resource", HOLDER, False),
    ("WHERE resource GLOB 'a*'", RANGE | 8 | 16 | 32, False),
    ("WHERE resource GLOB lower('a*')", RANGE | 32, False),
    ("WHERE resource LIKE 'a%'", RANGE | 64, False),
    ("WHERE resource >= 'a' AND resource < 'b'", RANGE | 24, False),
    ("WHERE resource > 'a'", RANGE | 8, False),
    ("WHERE resource > 'a' ORDER BY resource, holder", RANGE | 8, False),
    ("ORDER BY expires_at", EXPIRY, False),
    ("ORDER BY remaining LIMIT 1", EXPIRY, False),
    ("ORDER BY expires_at DESC", ALL, True),
    ("ORDER BY resource", ALL, False),
    ("ORDER BY resource DESC", ALL, True),
    ("ORDER BY holder", ALL, True)])
def test_a_query_takes_the_plan_made_for_it(db, sql, number, sorts):
    con = db()
    one(con, "SELECT lease_init()")
    assert plan(con, "SELECT * FROM lease_active " + sql) == (number, sorts)


@pytest.mark.parametrize("join", [
    "n JOIN lease_active AS a ON a.resource = n.r",
    "lease_active AS a JOIN n ON a.resource = n.r",
    "n LEFT JOIN lease_active AS a ON a.resource = n.r"])
def test_a_join_looks_each_resource_up(db, join):
    con = db()
    con.execute("CREATE TABLE n(r)")
    assert plan(con, f"SELECT * FROM {join}")[0] == RESOURCE


def test_one_resource_among_many_is_found_without_a_scan(db, clock):
    con = db()
    con.execute("BEGIN IMMEDIATE")
    for i in range(2000):
        one(con, "SELECT lease_grant(?, 'h', 100)", f"r{i}")
    con.execute("COMMIT")
    steps = [0]
    con.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + 1), 100)
    assert one(con, "SELECT holder FROM lease_active "
                    "WHERE resource = 'r1500'") == "h"
    assert one(con, "SELECT count(*) FROM lease_active "
                    "WHERE resource GLOB 'r150?'") == 10
    assert steps[0] < 20


# --- one instant --------------------------------------------------------------

def test_a_scan_has_one_instant_however_long_it_takes(db, clock):
    con = db()
    for name, ttl in (("a", 100), ("b", 1), ("c", 100)):
        one(con, "SELECT lease_grant(?, 'h', ?)", name, ttl)
    rows = con.execute("SELECT resource, remaining FROM lease_active")
    assert next(rows) == ("a", 100)
    clock.advance(50)
    assert rows.fetchall() == [("b", 1), ("c", 100)]
    assert con.execute("SELECT resource, remaining FROM lease_active"
                       ).fetchall() == [("a", 50), ("c", 50)]


def test_what_has_run_out_shows_nowhere_and_remaining_is_never_below_0(
        db, clock):
    """C007, C038, C040"""
    con = db()
    token = one(con, "SELECT lease_grant('r', 'h', 10)")
    for passed, remaining in ((9.6, 0.4), (0.399, 0.001), (0.001, None),
                              (0.001, None), (3600, None)):
        clock.advance(passed)
        rows = con.execute("SELECT remaining FROM lease_active").fetchall()
        assert rows == ([] if remaining is None else [(remaining,)])
        held = one(con, "SELECT count(*) FROM lease_active "
                        "WHERE resource = 'r'")
        assert held == (remaining is not None)
        assert one(con, "SELECT lease_check('r', ?)", token) == held
        assert one(con, "SELECT count(*) FROM lease_active "
                        "WHERE remaining <= 0") == 0
        if held:
            assert one(con, "SELECT lease_grant('r', 'other', 10)") is None


def test_each_view_counts_the_same(db, clock):
    """C016"""
    con = db()
    tokens = [one(con, "SELECT lease_grant(?, 'h', ?)", f"r{i}",
                  1 if i < 2 else 60) for i in range(10)]
    for i in (2, 3, 4):
        assert one(con, "SELECT lease_release(?, ?)", f"r{i}", tokens[i]) == 1
        assert one(con, "SELECT lease_release(?, ?)", f"r{i}", tokens[i]) == 0
    one(con, "SELECT lease_renew('r5', ?)", tokens[5])
    clock.advance(1)
    assert one(con, "SELECT count(*) FROM lease_active") == 5
    assert one(con, "SELECT count(*) FROM lease_active "
                    "WHERE holder = 'h'") == 5
    assert one(con, "SELECT sum(lease_check(resource, token)) "
                    "FROM lease_active") == 5
    one(con, "SELECT lease_sweep()")
    assert one(con, "SELECT count(*) FROM main.lease") == 5


# --- two scans at a time --------------------------------------------------------

def test_scans_of_one_statement_do_not_disturb_each_other(db):
    con = db()
    for i in range(5):
        one(con, "SELECT lease_grant(?, ?, 100)", f"r{i}", f"h{i}")
    con.execute("CREATE TABLE t(r, q)")
    con.executemany("INSERT INTO t VALUES(?, ?)", [
        ("r1", "r2"), ("zz", "r3"), ("r0", "r4"), ("zz", "r0"), ("r3", "r1")])
    # The outer scan ends on a resource that nobody has, while the subquery
    # stops in the middle of its own.
    assert con.execute(
        "SELECT t.r, a.holder, (SELECT holder FROM lease_active AS b "
        "WHERE b.resource = t.q LIMIT 1) FROM t "
        "LEFT JOIN lease_active AS a ON a.resource = t.r").fetchall() == [
            ("r1", "h1", "h2"), ("zz", None, "h3"), ("r0", "h0", "h4"),
            ("zz", None, "h0"), ("r3", "h3", "h1")]


def test_scans_of_two_statements_do_not_disturb_each_other(db):
    con = db()
    for i in range(20):
        one(con, "SELECT lease_grant(?, 'h', 100)", f"r{i:02}")
    names = [f"r{i:02}" for i in range(20)]
    first = con.execute("SELECT resource FROM lease_active")
    got = [next(first)[0]]
    second = con.execute("SELECT resource FROM lease_active")
    for _ in range(10):
        got.append(next(first)[0])
        next(second)
    second.close()
    assert got + [r for r, in first] == names


def test_a_failing_call_leaves_a_scan_under_way_alone(db):
    con = db()
    for i in range(5):
        one(con, "SELECT lease_grant(?, 'h', 100)", f"r{i}")
    rows = con.execute("SELECT resource FROM lease_active")
    got = [next(rows)[0]]
    with pytest.raises(sqlite3.OperationalError, match="ttl"):
        one(con, "SELECT lease_grant('x', 'h', 1000000)")
    assert got + [r for r, in rows] == [f"r{i}" for i in range(5)]


def test_every_lease_of_a_scan_can_be_released_by_it(db):
    con = db()
    for i in range(50):
        one(con, "SELECT lease_grant(?, 'h', 100)", f"r{i}")
    assert con.execute("SELECT lease_release(resource, token) "
                       "FROM lease_active").fetchall() == [(1,)] * 50
    assert one(con, "SELECT count(*) FROM lease_active") == 0


@pytest.mark.parametrize("order", ["ORDER BY expires_at", "ORDER BY remaining",
                                   "", "WHERE holder = 'h'",
                                   "WHERE resource GLOB 'r*'"])
def test_every_lease_of_a_scan_is_renewed_by_it_once(db, clock, order):
    con = db()
    con.create_function("tick", 0, lambda: clock.advance(0.001))
    con.execute("BEGIN")
    for i in range(100):
        one(con, "SELECT lease_grant(?, 'h', ?)", f"r{i}", 50 + i * 0.001)
    con.execute("COMMIT")
    con.execute("BEGIN")
    rows = con.execute("SELECT tick(), lease_renew(resource, token, 100) "
                       f"FROM lease_active {order}")
    tokens = [t for _, t in itertools.islice(rows, 1000)]
    assert tokens == list(range(101, 201))


@pytest.mark.parametrize("where", ["", "WHERE holder = 'h'",
                                   "WHERE resource GLOB 'r*'",
                                   "ORDER BY expires_at"])
def test_what_a_scan_grants_ahead_of_itself_is_not_scanned(db, where):
    con = db()
    for i in range(3):
        one(con, "SELECT lease_grant(?, 'h', 100)", f"r{i}")
    rows = con.execute("SELECT lease_grant('r' || (token + 10), 'h', 200) "
                       f"FROM lease_active {where}")
    assert [t for t, in itertools.islice(rows, 100)] == [4, 5, 6]
    assert one(con, "SELECT count(*) FROM lease_active") == 6


# --- where there is no schema -------------------------------------------------------

def test_without_a_schema_there_are_no_rows_and_nothing_is_written(db):
    con = db()
    assert con.execute("SELECT * FROM lease_active").fetchall() == []
    assert one(con, "SELECT count(*) FROM sqlite_schema") == 0


def test_rows_come_and_go_with_the_transaction_that_makes_the_schema(db):
    con = db()
    for _ in range(3):
        con.execute("BEGIN")
        assert one(con, "SELECT lease_grant('r', 'h', 100)") == 1
        assert one(con, "SELECT count(*) FROM lease_active") == 1
        con.execute("ROLLBACK")
        assert one(con, "SELECT count(*) FROM lease_active") == 0
        assert one(con, "SELECT lease_check('r', 1)") == 0
        assert one(con, "SELECT lease_why('r', 1)") == "unknown"
        assert one(con, "SELECT lease_problem('ttl', 10)") is None
        assert one(con, "SELECT lease_now()") > 1e9
        assert one(con, "SELECT count(*) FROM sqlite_schema") == 0


@pytest.mark.parametrize("sql", ["SELECT lease_init()",
                                 "SELECT lease_config('min_ttl', 0.2)",
                                 "SELECT lease_grant('r', 'h', 100)",
                                 "SELECT lease_guard('t', 'r', 'k')"])
def test_a_schema_that_was_rolled_back_is_made_again(db, sql):
    con = db()
    con.execute("CREATE TABLE t(r TEXT, k INTEGER)")
    con.execute("BEGIN")
    one(con, "SELECT lease_grant('r', 'h', 100)")
    con.execute("ROLLBACK")
    one(con, sql)
    assert one(con, "SELECT count(*) FROM sqlite_schema "
                    "WHERE name = 'lease_event'") == 1


@pytest.mark.parametrize("name", ["resource", "holder"])
@pytest.mark.parametrize("kind", ["INTEGER", "REAL", "NUMERIC"])
def test_a_name_that_is_compared_with_a_number_is_compared_as_sqlite_does(
        db, clock, name, kind):
    con = db()
    con.execute("SELECT lease_grant('05', '05', 30), lease_grant('5', '5', 30)")
    con.execute(f"CREATE TABLE n (x {kind})")
    con.execute("INSERT INTO n VALUES (5)")
    con.execute("CREATE TABLE plain AS SELECT * FROM lease_active")
    for where in ("= x", "= x ORDER BY holder", "= 5"):
        got, plain = (con.execute(
            f"SELECT token FROM {table}, n WHERE {table}.{name} {where}"
        ).fetchall() for table in ("lease_active", "plain"))
        assert sorted(got) == sorted(plain)
