/*
 * file.c: fuzz target: arbitrary database files.
 *
 * The input says which file to begin with (ours, an older one of ours, one
 * with a write-ahead log, one in UTF-16, a foreign one, none) and what is
 * changed in it; or it is the file. Then every function is called and
 * lease_active is read. Nothing may come of it but results and errors, in
 * bounded time.
 *
 * HOW IT WORKS: opening a file and preparing every statement is slow. So most
 * inputs change only what is behind the schema, and are run on a connection
 * that stays: the bytes of the file are exchanged below it, between two
 * transactions, with another change counter, as another process would. One in
 * 128 gets a connection of its own, and may change or be anything.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../ext/lease.h"
#include "fuzz.h"

enum {
    IMAGE_MAX = 64 << 10,
    IMAGES_MAX = 8,
    STEPS = 2000000,
    PATCHES_MAX = 16
};

struct image {
    unsigned char bytes[IMAGE_MAX];
    size_t n;
};

static struct image images[IMAGES_MAX], logs[IMAGES_MAX], image, wal;
static int images_n;
static size_t data_from; /* in images[0]: behind the pages of the schema */
static char path[128], path_wal[128], path_journal[136], path_stays[128];

/* --- files ------------------------------------------------------------------
 */

static void image_read(const char *from, struct image *to)
{
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, to->bytes, sizeof to->bytes);
    REQUIRE(n >= 0 && n < (ssize_t)sizeof to->bytes);
    to->n = (size_t)n;
    if (fd >= 0)
        close(fd);
}

static void image_write(const struct image *from, const char *to)
{
    int fd = open(to, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    REQUIRE(pwrite(fd, from->bytes, from->n, 0) == (ssize_t)from->n);
    REQUIRE(ftruncate(fd, (off_t)from->n) == 0);
    close(fd);
}

static sqlite3 *db_open(const char *name)
{
    sqlite3 *db;
    char *why = NULL;
    REQUIRE(sqlite3_open(name, &db) == SQLITE_OK);
    REQUIRE(sqlite3_lease_init(db, &why, NULL) == SQLITE_OK);
    return db;
}

/* What becomes of the script as a file, or as a file and its log. */
static void image_make(const char *script)
{
    sqlite3 *db;
    char *why = NULL, *said = NULL;
    unlink(path);
    unlink(path_wal);
    REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
    REQUIRE(sqlite3_lease_init(db, &why, NULL) == SQLITE_OK);
    int rc = sqlite3_exec(db, script, NULL, NULL, &said);
    REQUIRE_BUT(rc == SQLITE_OK, said ? said : "");
    image_read(path, &images[images_n]);
    image_read(path_wal, &logs[images_n]);
    REQUIRE(sqlite3_close(db) == SQLITE_OK);
    images_n++;
}

static const char CONTENT[] =
    "SELECT lease_grant('r', 'a', 10, 1, 'old'), lease_fence('r', 1),"
    " lease_grant('s', 'b', 60, 3, 'data', 'k-1'), lease_renew('s', 2),"
    " lease_grant('s', 'c', 90, 3), lease_grant('t', 'a', 0.2),"
    " lease_grant('u', 'a', 9), lease_release('u', 6);"
    "CREATE TABLE guarded(r, t); SELECT lease_guard('guarded', 'r', 't')";

/* SQLite keeps the text of the schema in the pages that come first. */
static size_t schema_end(const struct image *of)
{
    size_t end = 0;
    for (size_t i = 0; i + 7 < of->n; i++)
        if (memcmp(of->bytes + i, "lease_e", 7) == 0 ||
            memcmp(of->bytes + i, "expires", 7) == 0)
            end = i;
    return (end / 512 + 1) * 512;
}

static void images_make(void)
{
    char script[1024];
    static const char *const HEADS[] = {
        "PRAGMA page_size = 512; SELECT lease_init();",
        "PRAGMA page_size = 512; PRAGMA journal_mode = WAL;",
        "PRAGMA page_size = 512; PRAGMA encoding = 'UTF-16le';",
        "PRAGMA page_size = 1024; PRAGMA auto_vacuum = 1;",
    };
    for (size_t i = 0; i < sizeof HEADS / sizeof *HEADS; i++) {
        snprintf(script, sizeof script, "%s %s", HEADS[i], CONTENT);
        image_make(script);
    }
    image_make("PRAGMA page_size = 512; CREATE TABLE lease(a, b);"
               "CREATE VIEW lease_event AS SELECT * FROM lease;"
               "CREATE TABLE lease_config(id, schema);"
               "INSERT INTO lease_config VALUES (1, 7)");
    image_make("PRAGMA page_size = 512; CREATE TABLE mine(a);");
    data_from = schema_end(&images[0]);
    REQUIRE(data_from < images[0].n);
}

/* --- changing them ----------------------------------------------------------
 */

/* Changes behind the first bytes. */
static void image_patch(struct image *of, struct input *in, size_t first)
{
    for (int i = 0; i < PATCHES_MAX && input_left(in) && of->n > first; i++) {
        size_t at = first + (size_t)input_number(in, 2) % (of->n - first), n;
        unsigned how = input_byte(in);
        const char *bytes = input_bytes(in, how % 16 + 1, &n);
        if (how >= 250) /* cut it off */
            of->n = at;
        for (size_t j = 0; j < n && at + j < of->n; j++)
            of->bytes[at + j] = (unsigned char)bytes[j];
    }
}

static uint32_t number_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

static void number_put(unsigned char *bytes, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(number >> (24 - 8 * i));
}

/* The sums of a write-ahead log made right again: frames are believed. */
static void sum_add(const struct image *log, size_t from, size_t n, bool big,
                    uint32_t sum[2])
{
    for (size_t i = from; i < from + n; i += 8) {
        uint32_t a, b;
        memcpy(&a, log->bytes + i, 4);
        memcpy(&b, log->bytes + i + 4, 4);
        if (big) {
            a = number_at(log->bytes + i);
            b = number_at(log->bytes + i + 4);
        }
        sum[0] += a + sum[1];
        sum[1] += b + sum[0];
    }
}

static void wal_mend(struct image *log)
{
    enum { HEAD = 32, FRAME_HEAD = 24, PAGE = 512 };
    uint32_t sum[2] = {0, 0};
    if (log->n < HEAD)
        return;
    bool big = log->bytes[3] & 1;
    sum_add(log, 0, 24, big, sum);
    number_put(log->bytes + 24, sum[0]);
    number_put(log->bytes + 28, sum[1]);
    for (size_t at = HEAD; at + FRAME_HEAD + PAGE <= log->n;
         at += FRAME_HEAD + PAGE) {
        memcpy(log->bytes + at + 8, log->bytes + 16, 8);
        sum_add(log, at, 8, big, sum);
        sum_add(log, at + FRAME_HEAD, PAGE, big, sum);
        number_put(log->bytes + at + 16, sum[0]);
        number_put(log->bytes + at + 20, sum[1]);
    }
}

/* --- using them -------------------------------------------------------------
 */

static const char *const CALLS[] = {
    "SELECT lease_check('s', 3), lease_check('s', 2, 5), lease_why('s', 3)",
    "SELECT lease_why('r', 1), lease_why('u', 6), lease_now()",
    "SELECT lease_problem('ttl', 30)",
    "SELECT * FROM lease_active WHERE resource = 's'",
    "SELECT * FROM lease_active WHERE holder = 'a'",
    "SELECT * FROM lease_active WHERE resource GLOB 's*'",
    "SELECT * FROM lease_active ORDER BY expires_at",
    "SELECT * FROM lease_active",
    "SELECT lease_config('max_ttl'), lease_config('event_rows', 1000)",
    "SELECT lease_grant('r', 'b', 30, 2, 'x', 'k-1')",
    "SELECT lease_grant('s', 'd', 30, 9)",
    "SELECT lease_grant('s', 'b', 60, 3, 'data', 'k-1')",
    "SELECT lease_renew('s', 3)",
    "SELECT lease_fence('r', 5)",
    "SELECT lease_release('s', 4)",
    "SELECT lease_revoke('s')",
    "SELECT lease_sweep()",
    "SELECT lease_restore()",
    "INSERT INTO guarded VALUES ('r', 9)",
    "SELECT lease_init()",
    "SELECT lease_guard('guarded', 'r', 't')",
};
/* The last two look at the whole schema, which takes long. */
enum { CALLS_N = sizeof CALLS / sizeof *CALLS, SOME_N = 5 };

/* What the file holds may be a loop to SQLite: it is ended, with an error. */
static int left;

static int progress(void *context)
{
    (void)context;
    return --left <= 0;
}

static void call_run(sqlite3 *db, const char *sql, sqlite3_stmt **kept)
{
    sqlite3_stmt *stmt = kept ? *kept : NULL;
    if (!stmt && sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                    &stmt, NULL) != SQLITE_OK)
        return;
    for (int rows = 0; rows < 1000 && sqlite3_step(stmt) == SQLITE_ROW; rows++)
        for (int i = 0; i < sqlite3_column_count(stmt); i++)
            sqlite3_column_text(stmt, i);
    sqlite3_reset(stmt);
    if (kept)
        *kept = stmt;
    else
        sqlite3_finalize(stmt);
}

static void calls_run(sqlite3 *db, sqlite3_stmt **kept, unsigned from,
                      unsigned n, bool commit)
{
    left = STEPS / 1000;
    sqlite3_progress_handler(db, 1000, progress, NULL);
    fuzz_clock_set(1000000, 1700000006000, 1);
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    for (unsigned i = from; i < from + n; i++)
        call_run(db, CALLS[i % CALLS_N], kept ? &kept[i % CALLS_N] : NULL);
    sqlite3_exec(db, commit ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL);
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

/* --- a run ------------------------------------------------------------------
 */

static struct {
    sqlite3 *db;
    sqlite3_stmt *stmt[CALLS_N];
    uint32_t counter;
} stays;

static void file_exchange(unsigned from, bool commit)
{
    number_put(image.bytes + 24, ++stays.counter);
    number_put(image.bytes + 92, stays.counter);
    image_write(&image, path_stays);
    if (!stays.db) {
        stays.db = db_open(path_stays);
        sqlite3_exec(stays.db,
                     "PRAGMA journal_mode = MEMORY;"
                     "PRAGMA synchronous = OFF",
                     NULL, NULL, NULL);
    }
    calls_run(stays.db, stays.stmt, from, SOME_N, commit);
}

static void file_open(unsigned from, bool commit)
{
    image_write(&image, path);
    unlink(path_journal);
    unlink(path_wal);
    if (wal.n)
        image_write(&wal, path_wal);
    sqlite3 *db = db_open(path);
    calls_run(db, NULL, from, SOME_N, commit);
    REQUIRE(sqlite3_close(db) == SQLITE_OK);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    snprintf(path, sizeof path, "%s", fuzz_path("lease.db"));
    snprintf(path_stays, sizeof path_stays, "%s", fuzz_path("stays.db"));
    snprintf(path_wal, sizeof path_wal, "%s", fuzz_path("lease.db-wal"));
    snprintf(path_journal, sizeof path_journal, "%s-journal", path);
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    fuzz_clock_set(1000000, 1700000000000, 1);
    images_make();
    return 0;
}

/* Is this one of the few inputs that get a connection of their own? */
static bool is_chosen(const uint8_t *data, size_t size)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 16777619u;
    return (hash >> 16) % 128 == 0;
}

/* What a chosen one is: a whole file, a log, or changes anywhere in one. */
static void file_choose(struct input *in, unsigned how, unsigned which)
{
    if (how % 8 == 0) {
        image.n = (size_t)(in->end - in->at) % sizeof image.bytes;
        memcpy(image.bytes, in->at, image.n);
    } else if (how % 8 < 4) {
        image = images[1];
        wal = logs[1];
        image_patch(&wal, in, 0);
        if (how % 8 > 1)
            wal_mend(&wal);
    } else {
        image = images[which % (unsigned)images_n];
        image_patch(&image, in, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, data + size};
    unsigned how = input_byte(&in), which = input_byte(&in);
    bool commit = how & 128;
    wal.n = 0;
    if (is_chosen(data, size)) {
        file_choose(&in, how, which);
        file_open(which, commit);
    } else { /* the data of ours, the schema stays */
        image = images[0];
        image_patch(&image, &in, data_from);
        file_exchange(which % (CALLS_N - 2 - SOME_N + 1), commit);
    }
    return 0;
}
