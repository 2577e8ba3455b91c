/*
 * metrics.c: what GET /metrics counts, and how it is told.
 *
 * HOW IT WORKS: a histogram keeps no total; the text adds up what it reads, so
 * that its lines agree with each other while others count on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "metrics.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "store.h"

enum { CLOCK_STEP_MS = 500 };

static const int64_t TIMES_US[HISTOGRAM_BOUNDS] = {
    100,   250,    500,    1000,   2500,    5000,    10000,   25000,
    50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
};
static const int64_t SIZES[HISTOGRAM_BOUNDS] = {
    1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768,
};

void metrics_init(struct metrics *metrics)
{
    pthread_mutex_init(&metrics->mutex, NULL);
}

void metrics_destroy(struct metrics *metrics)
{
    pthread_mutex_destroy(&metrics->mutex);
}

/* --- counting ------------------------------------------------------------- */

static void add(_Atomic int64_t *to, int64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static int64_t get(const _Atomic int64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static void histogram_add(struct histogram *histogram, const int64_t *bounds,
                          int64_t value)
{
    int i = 0;
    while (i < HISTOGRAM_BOUNDS && value > bounds[i])
        i++;
    add(&histogram->n[i], 1);
    add(&histogram->sum, value);
}

void metrics_commit(struct metrics *metrics, int64_t us)
{
    histogram_add(&metrics->commit, TIMES_US, us);
}

void metrics_batch(struct metrics *metrics, int64_t operations)
{
    histogram_add(&metrics->batch, SIZES, operations);
}

static enum result result_of(int status)
{
    switch (status) {
    case 409:
        return RESULT_HELD;
    case 410:
        return RESULT_OVER;
    case 404:
        return RESULT_UNKNOWN;
    case 412:
        return RESULT_STALE;
    case 503:
        return RESULT_BUSY;
    case 507:
        return RESULT_FULL;
    default:
        return status >= 500   ? RESULT_FAILED
               : status >= 400 ? RESULT_REJECTED
                               : RESULT_OK;
    }
}

static void result_count(struct metrics *metrics, const struct op *op)
{
    ptrdiff_t i = op->route ? op->route - ROUTES : METRIC_OPS_N;
    if (i < METRIC_OPS_N && op->outcome.status)
        add(&metrics->result[i][result_of(op->outcome.status)], 1);
}

void metrics_answered(const struct op *op)
{
    if (!op->stats)
        return;
    struct metrics *metrics = &op->stats->metrics;
    ptrdiff_t i = op->route ? op->route - ROUTES : ROUTES_N - 1;
    histogram_add(&metrics->request[i], TIMES_US, clock_us() - op->began_us);
    result_count(metrics, op);
    /* Of one that came to nothing only the refusals happened. */
    for (const struct op *part = op->parts; part; part = part->next)
        if (!op->outcome.status || part->outcome.status >= 400)
            result_count(metrics, part);
}

/* --- the log and the clock ------------------------------------------------ */

static bool look_take(void *context, const struct value *columns)
{
    struct metrics *metrics = context;
    int64_t lead_ms = columns[1].as.integer;
    int64_t moved = lead_ms - metrics->lead_ms;
    metrics->seen = columns[0].as.integer;
    metrics->lead_ms = lead_ms;
    for (int i = 0; i < EVENTS_N; i++)
        metrics->event[i] += columns[2 + i].as.integer;
    if (metrics->looked && (moved > CLOCK_STEP_MS || moved < -CLOCK_STEP_MS))
        metrics->clock_steps++;
    metrics->looked = true;
    return true;
}

void metrics_look(struct store *store)
{
    struct metrics *metrics = &store_stats(store)->metrics;
    pthread_mutex_lock(&metrics->mutex);
    struct param after = {":after", {0}};
    if (metrics->looked)
        after.value = value_integer(metrics->seen);
    store_query(store, QUERY_TALLY, &after, 1, look_take, metrics);
    pthread_mutex_unlock(&metrics->mutex);
}

/* --- telling -------------------------------------------------------------- */

static void head(FILE *out, const char *name, const char *type,
                 const char *help)
{
    fprintf(out, "# HELP leasehold_%s %s\n# TYPE leasehold_%s %s\n", name, help,
            name, type);
}

static void results_write(FILE *out, const struct metrics *metrics)
{
    static const struct {
        const char *name, *help;
    } OPS[METRIC_OPS_N] = {
        {"grants_total", "Grants asked for, by result."},
        {"renewals_total", "Renewals asked for, by result."},
        {"releases_total", "Releases asked for, by result."},
        {"checks_total", "Checks asked for, by result."},
        {"fences_total", "Tokens shown to the fence, by result."},
        {"revocations_total", "Revocations asked for, by result."},
    };
    static const char *const RESULTS[RESULTS_N] = {
        "ok",       "held", "over", "unknown", "stale",
        "rejected", "busy", "full", "failed"};
    for (int i = 0; i < METRIC_OPS_N; i++) {
        head(out, OPS[i].name, "counter", OPS[i].help);
        for (int k = 0; k < RESULTS_N; k++)
            fprintf(out, "leasehold_%s{result=\"%s\"} %lld\n", OPS[i].name,
                    RESULTS[k], (long long)get(&metrics->result[i][k]));
    }
    int fence = (int)(route_find("/v1/fence", 9) - ROUTES);
    head(out, "fence_rejections_total", "counter",
         "Tokens that the fence refused as stale.");
    fprintf(out, "leasehold_fence_rejections_total %lld\n",
            (long long)get(&metrics->result[fence][RESULT_STALE]));
}

static void looked_write(FILE *out, struct metrics *metrics)
{
    static const char *const EVENTS[EVENTS_N] = {
        "granted", "renewed", "released", "expired", "revoked"};
    enum { EXPIRED = 3 };
    int64_t n[EVENTS_N], steps, lead_ms;
    pthread_mutex_lock(&metrics->mutex);
    memcpy(n, metrics->event, sizeof n);
    steps = metrics->clock_steps;
    lead_ms = metrics->lead_ms;
    pthread_mutex_unlock(&metrics->mutex);
    head(out, "events_total", "counter",
         "Events in the log since the service began, whoever caused them.");
    for (int i = 0; i < EVENTS_N; i++)
        fprintf(out, "leasehold_events_total{event=\"%s\"} %lld\n", EVENTS[i],
                (long long)n[i]);
    head(out, "expirations_total", "counter", "Leases that ran out.");
    fprintf(out, "leasehold_expirations_total %lld\n", (long long)n[EXPIRED]);
    head(out, "clock_steps_total", "counter",
         "Times that the wall clock was seen to jump by more than 0.5 s.");
    fprintf(out, "leasehold_clock_steps_total %lld\n", (long long)steps);
    head(out, "clock_lead_seconds", "gauge",
         "How far the lease clock is ahead of the wall clock.");
    fprintf(out, "leasehold_clock_lead_seconds %.3f\n", (double)lead_ms / 1000);
}

static void stats_write(FILE *out, const struct stats *stats)
{
    static const struct {
        const char *name, *type, *help;
        enum stat_name stat;
        int scale;
    } FIGURES[] = {
        {"queue_depth", "gauge", "Requests taken and not yet answered.",
         STAT_queued, 1},
        {"waiters", "gauge", "Grants that wait for their resource.", STAT_waits,
         1},
        {"streams", "gauge", "Event streams that are open.", STAT_streams, 1},
        {"long_polls", "gauge", "Requests that wait for an event.", STAT_polls,
         1},
        {"busy_seconds_total", "counter",
         "Time spent waiting for another process to unlock the database.",
         STAT_busy_ms, 1000},
        {"write_error", "gauge",
         "SQLite's result code if the last write failed, else 0.",
         STAT_write_error, 1},
        {"wal_pages", "gauge", "Pages in the write-ahead log.", STAT_wal_pages,
         1},
        {"checkpoints_total", "counter", "Checkpoints tried.", STAT_checkpoints,
         1},
        {"checkpoints_blocked_total", "counter",
         "Those that did not get to their end: a reader, a lock, a fault.",
         STAT_checkpoints_cut, 1},
        {"checkpoint_blocked", "gauge",
         "1 while the write-ahead log grows for that reason.",
         STAT_checkpoint_blocked, 1},
        {"process_start_time_seconds", "gauge",
         "When the service began, in Unix seconds.", STAT_started_at_ms, 1000},
    };
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++) {
        int64_t value = stat_get(stats, FIGURES[i].stat);
        head(out, FIGURES[i].name, FIGURES[i].type, FIGURES[i].help);
        fprintf(out, "leasehold_%s %.*f\n", FIGURES[i].name,
                FIGURES[i].scale > 1 ? 3 : 0, (double)value / FIGURES[i].scale);
    }
}

/* scale: units of the bounds in one of what is told. label: `route="/"`, or
 * NULL. */
static void histogram_write(FILE *out, const struct histogram *histogram,
                            const char *name, const char *label,
                            const int64_t *bounds, double scale)
{
    const char *comma = label ? "," : "", *open = label ? "{" : "";
    const char *close = label ? "}" : "";
    int64_t n = 0;
    label = label ? label : "";
    for (int i = 0; i < HISTOGRAM_BOUNDS; i++) {
        n += get(&histogram->n[i]);
        fprintf(out, "leasehold_%s_bucket{%s%sle=\"%g\"} %lld\n", name, label,
                comma, (double)bounds[i] / scale, (long long)n);
    }
    n += get(&histogram->n[HISTOGRAM_BOUNDS]);
    fprintf(out, "leasehold_%s_bucket{%s%sle=\"+Inf\"} %lld\n", name, label,
            comma, (long long)n);
    fprintf(out, "leasehold_%s_sum%s%s%s %.15g\n", name, open, label, close,
            (double)get(&histogram->sum) / scale);
    fprintf(out, "leasehold_%s_count%s%s%s %lld\n", name, open, label, close,
            (long long)n);
}

static void histograms_write(FILE *out, const struct metrics *metrics)
{
    char label[64];
    head(out, "request_seconds", "histogram",
         "From a request's arrival to its answer, by route.");
    for (int i = 0; i < ROUTES_N; i++) {
        const char *path = *ROUTES[i].path ? ROUTES[i].path : "other";
        snprintf(label, sizeof label, "route=\"%s\"", path);
        histogram_write(out, &metrics->request[i], "request_seconds", label,
                        TIMES_US, 1e6);
    }
    head(out, "commit_seconds", "histogram",
         "How long a commit to the disk takes.");
    histogram_write(out, &metrics->commit, "commit_seconds", NULL, TIMES_US,
                    1e6);
    head(out, "batch_operations", "histogram",
         "Operations in one transaction.");
    histogram_write(out, &metrics->batch, "batch_operations", NULL, SIZES, 1);
}

/* Memory in use, in pages; the kernel says: "all resident …". */
static long process_pages(void)
{
    char line[128] = "";
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    const char *resident = fgets(line, sizeof line, file);
    fclose(file);
    resident = resident ? strchr(line, ' ') : NULL;
    return resident ? strtol(resident, NULL, 10) : 0;
}

static long process_descriptors(void)
{
    long n = -1; /* the one that looks is none of ours */
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        n += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return n;
}

static void process_write(FILE *out)
{
    head(out, "process_resident_memory_bytes", "gauge",
         "Memory of the service that is in use.");
    fprintf(out, "leasehold_process_resident_memory_bytes %lld\n",
            (long long)process_pages() * sysconf(_SC_PAGESIZE));
    head(out, "process_open_fds", "gauge",
         "Descriptors that the service has open.");
    fprintf(out, "leasehold_process_open_fds %ld\n", process_descriptors());
}

/* Put the rest behind what the statement has told. */
static int rest_add(struct outcome *outcome, struct stats *stats)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return SQLITE_NOMEM;
    fwrite(outcome->body, 1, outcome->length, out);
    results_write(out, &stats->metrics);
    looked_write(out, &stats->metrics);
    stats_write(out, stats);
    histograms_write(out, &stats->metrics);
    process_write(out);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return SQLITE_NOMEM;
    }
    free(outcome->body);
    outcome->body = text;
    outcome->length = length;
    outcome->type = "text/plain; version=0.0.4; charset=utf-8";
    return SQLITE_OK;
}

int metrics_tell(struct store *store, struct op *op)
{
    metrics_look(store);
    int rc = store_run(store, op);
    return rc ? rc : rest_add(&op->outcome, store_stats(store));
}
