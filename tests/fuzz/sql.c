/*
 * sql.c: fuzz target: the SQL functions with arbitrary values.
 *
 * The input is a sequence of steps: calls of functions with values that fit or
 * do not, savepoints, the clock, reading lease_active. All of it is one
 * transaction on a connection that stays. After the steps what must hold is
 * asked of the tables: the projection is what the log says, nowhere are more
 * holders than all of them accept, tokens only grew.
 *
 * SPDX-License-Identifier: MIT
 */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "../../ext/lease.h"
#include "fuzz.h"

enum { ARGS_MAX = 8, STEPS_MAX = 12, MARKS_MAX = 4 };

/* Each function with what its arguments are: a letter each, see fit_bind(). */
static const struct {
    const char *name, *args;
} FUNCTIONS[] = {
    {"lease_grant", "rhscdia"}, {"lease_renew", "rtsa"},
    {"lease_grant", "rhscdi"},  {"lease_release", "rta"},
    {"lease_revoke", "rhda"},   {"lease_check", "rts"},
    {"lease_why", "rt"},        {"lease_fence", "rt"},
    {"lease_config", "ns"},     {"lease_sweep", "c"},
    {"lease_restore", "c"},     {"lease_problem", "ns"},
    {"lease_now", ""},          {"lease_version", ""},
    {"lease_guard", "glo"},     {"lease_init", ""},
};
/* The last two look at the whole schema, which takes long: less often. */
enum { FUNCTIONS_N = sizeof FUNCTIONS / sizeof *FUNCTIONS, QUICK_N = 14 };

static const char *const READS[] = {
    "SELECT * FROM lease_active WHERE resource = ?1",
    "SELECT * FROM lease_active WHERE resource GLOB ?1",
    "SELECT * FROM lease_active WHERE resource LIKE ?1 ORDER BY expires_at",
    "SELECT * FROM lease_active WHERE resource > ?1 AND resource <= ?2",
    "SELECT * FROM lease_active WHERE holder = ?1 AND token IS NOT ?2",
    "SELECT * FROM lease_active WHERE remaining < ?1 OR data = ?2",
    "SELECT * FROM lease_active WHERE resource IN (?1, ?2)",
    "SELECT lease_check(resource, token, ?1) FROM lease_active",
    "INSERT INTO guarded VALUES (?1, ?2)",
    "UPDATE guarded SET r = ?1, t = ?2",
    "INSERT INTO guarded SELECT ?1, lease_grant(?1, ?2, 5)",
    "SELECT lease_grant('n' || token, ?1, ttl) FROM lease_active",
};
enum { READS_N = sizeof READS / sizeof *READS };

/* One row a violation. A trimmed log has holes: then only what is there. */
static const char INVARIANTS[] =
    "SELECT 'projection', * FROM ("
    " SELECT l.epoch, l.token, l.resource, l.holder, l.ttl, l.expires_at,"
    "  l.data, l.capacity FROM lease AS l EXCEPT"
    " SELECT g.token, n.token, g.resource, g.holder, n.ttl, n.expires_at,"
    "  g.data, g.capacity FROM lease_event AS g JOIN (SELECT epoch,"
    "   max(token) AS token, ttl, expires_at FROM lease_event"
    "   WHERE event IN ('granted', 'renewed') GROUP BY epoch) AS n"
    "  ON n.epoch = g.token WHERE g.event = 'granted')"
    "UNION ALL SELECT 'not in the projection', token, 0, resource, 0, 0, 0,"
    " 0, 0 FROM lease_event AS g WHERE event = 'granted'"
    " AND NOT EXISTS (SELECT 1 FROM lease WHERE epoch = g.token)"
    " AND NOT EXISTS (SELECT 1 FROM lease_event WHERE grant_token = g.token"
    "  AND event IN ('released', 'expired', 'revoked'))"
    " AND (SELECT trimmed FROM lease_config) = 0 "
    "UNION ALL SELECT 'ended twice', grant_token, count(*), 0, 0, 0, 0, 0, 0"
    " FROM lease_event WHERE event IN ('released', 'expired', 'revoked')"
    " GROUP BY grant_token HAVING count(*) > 1 "
    "UNION ALL SELECT 'capacity', resource, count(*), 0, 0, 0, 0, 0, 0"
    " FROM lease_active GROUP BY resource HAVING count(*) > min(capacity) "
    "UNION ALL SELECT 'active', 0, 0, 0, 0, 0, 0, 0, 0 WHERE"
    " (SELECT count(*) FROM lease_active) <> (SELECT count(*) FROM lease"
    "  WHERE expires_at > CAST(round(lease_now() * 1000) AS INTEGER)) "
    "UNION ALL SELECT 'order', token, at, 0, 0, 0, 0, 0, 0 FROM (SELECT token,"
    " at, lag(at) OVER (ORDER BY token) AS before FROM lease_event)"
    " WHERE at < before";

static sqlite3 *db;
static sqlite3_stmt *call[FUNCTIONS_N][ARGS_MAX + 1];
static sqlite3_stmt *read_stmt[READS_N], *invariants, *newest, *changes;

/* What is known of the run so far, also at each savepoint. */
static struct known {
    int64_t highest; /* token answered */
} known, mark[MARKS_MAX];
static int marks, boots;

/* --- values -----------------------------------------------------------------
 */

static void text_bind(sqlite3_stmt *stmt, int i, const char *text)
{
    sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC);
}

/* A value that fits an argument of the kind, mostly. */
static void fit_bind(sqlite3_stmt *stmt, int i, char kind, unsigned which)
{
    static const char *const TEXTS[][8] = {
        {"r0", "r1", "r2", "r", "q/1", "q/2", "R0", "\xc3\xa9"},
        {"a", "b", "c", "d", "a", "b", "e", "A"},
        {"", "data", "{\"x\":1}", "\xe2\x82\xac", "\n", "a", "b", "c"},
        {"k0", "k1", "k2", "k3", "k0", "k1", "k2", "k3"},
        {"min_ttl", "max_ttl", "event_rows", "ttl", "token", "resource", "data",
         "margin"},
        {"guarded", "odd \"name'", "lease", "lease_event", "none", "Guarded",
         "lease_active", "sqlite_schema"},
        {"r", "t", "x", "R", "T", "rowid", "\"", "r\"t'"},
    };
    static const double SECONDS[] = {1, 0.1, 5, 10.0005, 30, 0.2, 86400, 3};
    const char *at = strchr("rhdingl", kind);
    which %= 8;
    if (kind == 's' && which & 1)
        sqlite3_bind_double(stmt, i, SECONDS[which]);
    else if (kind == 's')
        sqlite3_bind_int64(stmt, i, (sqlite3_int64)SECONDS[which]);
    else if (kind == 't')
        sqlite3_bind_int64(
            stmt, i, known.highest > (int)which ? known.highest - which : 1);
    else if (kind == 'c')
        sqlite3_bind_int64(stmt, i, 1 + which % 4);
    else if (kind == 'a')
        text_bind(stmt, i, TEXTS[1][which]);
    else if (kind == 'o')
        text_bind(stmt, i, TEXTS[6][(which + 1) % 8]);
    else
        text_bind(stmt, i, TEXTS[at - "rhdingl"][which]);
}

/* Bytes of the input, or one of them over and over. */
static void bytes_bind(sqlite3_stmt *stmt, int i, struct input *in, bool blob)
{
    static char many[5000];
    size_t n = input_byte(in);
    const char *bytes = many;
    if (n < 128) {
        bytes = input_bytes(in, n, &n);
    } else {
        n = input_number(in, 2) % sizeof many;
        memset(many, (int)input_byte(in), n);
    }
    if (blob)
        sqlite3_bind_blob(stmt, i, bytes, (int)n, SQLITE_TRANSIENT);
    else
        sqlite3_bind_text(stmt, i, bytes, (int)n, SQLITE_TRANSIENT);
}

static void any_bind(sqlite3_stmt *stmt, int i, unsigned kind, struct input *in)
{
    char text[40];
    uint64_t bits;
    double real;
    switch (kind % 8) {
    case 0:
        sqlite3_bind_null(stmt, i);
        break;
    case 1:
        sqlite3_bind_int64(stmt, i, (int8_t)input_byte(in));
        break;
    case 2:
        sqlite3_bind_int64(stmt, i, (sqlite3_int64)input_number(in, 8));
        break;
    case 3:
        bits = input_number(in, 8);
        memcpy(&real, &bits, sizeof real);
        sqlite3_bind_double(stmt, i, real);
        break;
    case 4:
        snprintf(text, sizeof text, "%.*f", (int)input_byte(in) % 5,
                 (double)(int32_t)input_number(in, 4) / 1000);
        sqlite3_bind_text(stmt, i, text, -1, SQLITE_TRANSIENT);
        break;
    default:
        bytes_bind(stmt, i, in, kind % 8 == 5);
    }
}

static void arg_bind(sqlite3_stmt *stmt, int i, char kind, struct input *in)
{
    unsigned how = input_byte(in);
    if (how < 192 && kind)
        fit_bind(stmt, i, kind, how);
    else
        any_bind(stmt, i, how, in);
}

/* --- steps ------------------------------------------------------------------
 */

static void prepare(const char *sql, sqlite3_stmt **stmt)
{
    int rc =
        sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL);
    REQUIRE_BUT(rc == SQLITE_OK, sqlite3_errmsg(db));
}

static int64_t number_of(sqlite3_stmt *stmt)
{
    REQUIRE_BUT(sqlite3_step(stmt) == SQLITE_ROW, sqlite3_errmsg(db));
    int64_t number = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return number;
}

/* What misuse may lead to; anything else is a fault of ours. */
static bool is_misuse(int rc)
{
    return (rc & 0xff) == SQLITE_ERROR || (rc & 0xff) == SQLITE_CONSTRAINT ||
           rc == SQLITE_MISMATCH;
}

static void token_judge(const char *name, int64_t token, int64_t before)
{
    bool issues = strcmp(name, "lease_renew") == 0 ||
                  strcmp(name, "lease_restore") == 0 ||
                  strcmp(name, "lease_grant") == 0;
    if (!issues)
        return;
    int64_t now = number_of(newest);
    /* A repeated grant answers the newest of its tenure. */
    REQUIRE(token <= now);
    REQUIRE(now == before || (token == now && token > known.highest));
    if (now != before)
        known.highest = token;
}

static void step_call(struct input *in, unsigned which)
{
    const char *name = FUNCTIONS[which].name, *args = FUNCTIONS[which].args;
    size_t fit = strlen(args), n = input_byte(in);
    n = n < 224 ? (fit ? fit - n % 3 % fit : 0) : n % (ARGS_MAX + 1);
    sqlite3_stmt **stmt = &call[which][n];
    if (!*stmt) {
        char sql[80];
        snprintf(sql, sizeof sql, "SELECT %s(%.*s)", name,
                 n ? (int)(2 * n - 1) : 0, "?,?,?,?,?,?,?,?,?");
        prepare(sql, stmt);
    }
    for (size_t i = 0; i < n; i++)
        arg_bind(*stmt, (int)i + 1, i < fit ? args[i] : 0, in);
    int64_t before = number_of(newest);
    int64_t rowid = sqlite3_last_insert_rowid(db);
    int rc = sqlite3_step(*stmt);
    REQUIRE(sqlite3_last_insert_rowid(db) == rowid);
    if (rc == SQLITE_ROW) {
        if (sqlite3_column_type(*stmt, 0) == SQLITE_INTEGER)
            token_judge(name, sqlite3_column_int64(*stmt, 0), before);
    } else {
        REQUIRE_BUT(is_misuse(rc), sqlite3_errmsg(db));
        REQUIRE(number_of(newest) == before);
    }
    sqlite3_reset(*stmt);
    sqlite3_clear_bindings(*stmt);
}

static void step_read(struct input *in)
{
    unsigned which = input_byte(in) % READS_N;
    sqlite3_stmt *stmt = read_stmt[which];
    arg_bind(stmt, 1, 'r', in);
    arg_bind(stmt, 2, which < 8 ? 'r' : which == 10 ? 'h' : 't', in);
    int rc;
    for (int rows = 0; (rc = sqlite3_step(stmt)) == SQLITE_ROW; rows++)
        REQUIRE(rows < 1000);
    REQUIRE_BUT(rc == SQLITE_DONE || is_misuse(rc), sqlite3_errmsg(db));
    sqlite3_reset(stmt);
    if (number_of(newest) > known.highest)
        known.highest = number_of(newest);
}

static void run(const char *sql)
{
    REQUIRE_BUT(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK,
                sqlite3_errmsg(db));
}

static void step_savepoint(unsigned what)
{
    if (what == 0 && marks < MARKS_MAX) {
        mark[marks++] = known;
        run("SAVEPOINT mark");
    } else if (what == 1 && marks > 0) {
        run("ROLLBACK TO mark");
        known = mark[marks - 1]; /* told, and issued again: see the README */
    } else if (what == 2 && marks > 0) {
        run("RELEASE mark");
        marks--;
    }
}

static void step(struct input *in)
{
    static const int64_t MS[] = {1, 50, 100, 1000, 5000, 10000, 30000, 3600000};
    unsigned what = input_byte(in);
    if (what < 154)
        step_call(in, what % QUICK_N);
    else if (what < 156)
        step_call(in, QUICK_N + what % 2);
    else if (what < 192)
        step_read(in);
    else if (what < 224)
        fuzz_clock_advance(MS[what % 8]);
    else if (what < 232)
        fuzz_clock_set(input_byte(in) * 10, 1700000000000 + input_byte(in) * 50,
                       ++boots);
    else
        step_savepoint(what % 3);
}

/* --- a run ------------------------------------------------------------------
 */

static void judge(void)
{
    char seen[256] = "";
    if (sqlite3_step(invariants) == SQLITE_ROW)
        snprintf(seen, sizeof seen, "%s: %s, %s, %s",
                 sqlite3_column_text(invariants, 0),
                 sqlite3_column_text(invariants, 1),
                 sqlite3_column_text(invariants, 2),
                 sqlite3_column_text(invariants, 3));
    REQUIRE_BUT(!*seen, seen);
    int rc = sqlite3_reset(invariants);
    REQUIRE_BUT(rc == SQLITE_OK, sqlite3_errmsg(db));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char *why = NULL;
    (void)argc;
    (void)argv;
    fuzz_clock_set(1000000, 1700000000000, 1);
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
    REQUIRE(sqlite3_lease_init(db, &why, NULL) == SQLITE_OK);
    run("SELECT lease_init();"
        "CREATE TABLE guarded(r TEXT, t INTEGER);"
        "CREATE TABLE \"odd \"\"name'\"(\"r\"\"t'\", x, t);"
        "SELECT lease_grant('r0', 'a', 5), lease_grant('r2', 'b', 60, 3);"
        "SELECT lease_guard('guarded', 'r', 't')");
    for (int i = 0; i < READS_N; i++)
        prepare(READS[i], &read_stmt[i]);
    prepare(INVARIANTS, &invariants);
    prepare("SELECT max(token) FROM lease_event", &newest);
    prepare("SELECT total_changes()", &changes);
    judge();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, data + size};
    fuzz_clock_set(1000000, 1700000001000, 1);
    marks = 0;
    boots = 1;
    known.highest = number_of(newest);
    run("BEGIN");
    int64_t before = number_of(changes);
    for (int i = 0; i < STEPS_MAX && input_left(&in); i++)
        step(&in);
    if (number_of(changes) != before)
        judge();
    run("ROLLBACK");
    return 0;
}
