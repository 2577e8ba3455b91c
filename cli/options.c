/*
 * options.c: the command line and the environment, read and checked.
 *
 * SPDX-License-Identifier: MIT
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "say.h"

enum kind { TEXT, SECONDS, NUMBER, FLAG };

enum {
    OPT_FIELD = 1000, /* and the field */
    OPT_NOW = 2000,
    OPT_GRACE,
    OPT_DIE_WITH_PARENT,
    OPT_URL,
    OPT_DB,
    OPT_USER,
    OPT_PASSWORD_FILE,
    OPT_CACERT,
    OPT_TIMEOUT,
    OPT_JSON,
    OPT_HELP
};

static const struct option_row {
    const char *name;
    char letter;
    enum kind kind;
    int id;
    const char *value;
    const char *help;
} ROWS[] = {
    {"resource", 'r', TEXT, OPT_FIELD + FIELD_RESOURCE, "NAME",
     "what is leased"},
    {"prefix", 'p', TEXT, OPT_FIELD + FIELD_PREFIX, "TEXT",
     "only resources that begin so"},
    {"holder", 'o', TEXT, OPT_FIELD + FIELD_HOLDER, "NAME",
     "who has it (run, grant: host and process number by default)"},
    {"token", 'k', NUMBER, OPT_FIELD + FIELD_TOKEN, "NUMBER",
     "proof of the lease"},
    {"ttl", 't', SECONDS, OPT_FIELD + FIELD_TTL, "SECONDS",
     "how long (default 30; renew: as before)"},
    {"capacity", 'c', NUMBER, OPT_FIELD + FIELD_CAPACITY, "NUMBER",
     "holders accepted at once, itself included (default 1)"},
    {"data", 'd', TEXT, OPT_FIELD + FIELD_DATA, "TEXT", "for others to see"},
    {"wait", 'w', SECONDS, OPT_FIELD + FIELD_WAIT, "SECONDS",
     "wait so long while others hold it (default 0)"},
    {"nonblock", 'n', FLAG, OPT_NOW, NULL, "do not wait: --wait 0"},
    {"grace", 'g', SECONDS, OPT_GRACE, "SECONDS",
     "SIGTERM so long before the deadline (default ttl/5, at most 10)"},
    {"die-with-parent", 0, FLAG, OPT_DIE_WITH_PARENT, NULL,
     "end when the process that started this one ends"},
    {"request-id", 0, TEXT, OPT_FIELD + FIELD_REQUEST_ID, "TEXT",
     "asked again with the same, the answer is the same lease"},
    {"min-remaining", 'm', SECONDS, OPT_FIELD + FIELD_MIN_REMAINING, "SECONDS",
     "it must have so much time left"},
    {"reason", 0, TEXT, OPT_FIELD + FIELD_REASON, "TEXT", "for the log"},
    {"after", 'a', NUMBER, OPT_FIELD + FIELD_AFTER, "NUMBER",
     "only events behind this one"},
    {"limit", 'l', NUMBER, OPT_FIELD + FIELD_LIMIT, "NUMBER",
     "at most so many (default: all)"},
    {"json", 'j', FLAG, OPT_JSON, NULL, "print JSON, one value a line"},
    {"url", 'u', TEXT, OPT_URL, "URL",
     "the service (LEASE_URL, default http://127.0.0.1:8184)"},
    {"db", 'f', TEXT, OPT_DB, "FILE", "a database instead (LEASE_DB)"},
    {"user", 0, TEXT, OPT_USER, "NAME", "for the service (LEASE_USER)"},
    {"password-file", 0, TEXT, OPT_PASSWORD_FILE, "FILE",
     "its first line is the password (LEASE_PASSWORD_FILE)"},
    {"cacert", 0, TEXT, OPT_CACERT, "FILE",
     "certificates to trust for https (LEASE_CACERT)"},
    {"timeout", 0, SECONDS, OPT_TIMEOUT, "SECONDS",
     "no single question takes longer, --wait aside (default 10)"},
    {"help", 'h', FLAG, OPT_HELP, NULL, "this page"},
};

enum { ROWS_N = sizeof ROWS / sizeof *ROWS };

static const char COMMON[] =
    " json url db user password-file cacert timeout help ";

static bool listed(const char *list, const char *name)
{
    char spaced[64];
    snprintf(spaced, sizeof spaced, " %s ", name);
    return strstr(list, spaced) != NULL;
}

static bool takes(const struct verb *verb, const struct option_row *row)
{
    if (row->id == OPT_JSON && verb->kind == VERB_RUN)
        return false;
    return listed(COMMON, row->name) || listed(verb->takes, row->name);
}

void options_print(const struct verb *verb)
{
    for (int i = 0; i < ROWS_N; i++) {
        const struct option_row *row = &ROWS[i];
        char left[40];
        if (!takes(verb, row))
            continue;
        snprintf(left, sizeof left, "--%s%s%s", row->name,
                 row->value ? " " : "", row->value ? row->value : "");
        if (row->letter)
            printf("  -%c, %-24s %s\n", row->letter, left, row->help);
        else
            printf("      %-24s %s\n", left, row->help);
    }
}

/* --- values --------------------------------------------------------------- */

/* Plain decimals: what strtod() takes besides is a mistake here. */
static bool seconds_read(const char *text, double *seconds)
{
    char *end;
    *seconds = strtod(text, &end);
    return end != text && !*end && *seconds < 1e9 &&
           strspn(text, "0123456789.") == strlen(text);
}

static bool number_read(const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return end != text && !*end && !errno &&
           strspn(text, "-0123456789") == strlen(text);
}

static void special_take(struct options *o, int id, const char *text,
                         double seconds)
{
    switch (id) {
    case OPT_NOW:
        value_set_real(&o->fields.v[FIELD_WAIT], 0);
        break;
    case OPT_GRACE:
        o->grace_ms = llround(seconds * 1000);
        break;
    case OPT_DIE_WITH_PARENT:
        o->die_with_parent = true;
        break;
    case OPT_URL:
        o->http.url = text;
        break;
    case OPT_DB:
        o->db = text;
        break;
    case OPT_USER:
        o->http.user = text;
        break;
    case OPT_PASSWORD_FILE:
        o->http.password = text; /* its file; read later */
        break;
    case OPT_CACERT:
        o->http.cacert = text;
        break;
    case OPT_TIMEOUT:
        o->timeout_ms = llround(seconds * 1000);
        break;
    case OPT_JSON:
        o->json = true;
        break;
    default:
        o->help = true;
    }
}

/* Take one option. False after saying what is wrong. */
static bool option_take(struct options *o, const struct option_row *row,
                        const char *text)
{
    double seconds = 0;
    int64_t number = 0;
    if (row->kind == SECONDS && !seconds_read(text, &seconds)) {
        say("--%s must be a number of seconds, it is '%s'", row->name, text);
        return false;
    }
    if (row->kind == NUMBER && !number_read(text, &number)) {
        say("--%s must be a whole number, it is '%s'", row->name, text);
        return false;
    }
    if (row->id == OPT_FIELD + FIELD_LIMIT && number < 1) {
        say("--%s must be 1 or more, it is '%s'", row->name, text);
        return false;
    }
    if (row->id >= OPT_NOW) {
        special_take(o, row->id, text, seconds);
        return true;
    }
    struct value *value = &o->fields.v[row->id - OPT_FIELD];
    if (row->kind == TEXT)
        value_set_text(value, text);
    else if (row->kind == SECONDS)
        value_set_real(value, seconds);
    else
        value_set_integer(value, number);
    return true;
}

/* --- the command line -------------------------------------------------------
 */

static bool argv_read(struct options *o, const struct verb *verb, int argc,
                      char **argv)
{
    struct option longs[ROWS_N + 1] = {{0}};
    char shorts[2 * ROWS_N + 2] = "+";
    size_t n = 1;
    int index;
    for (int i = 0; i < ROWS_N; i++) {
        int has = ROWS[i].kind == FLAG ? no_argument : required_argument;
        longs[i] = (struct option){ROWS[i].name, has, NULL, ROWS[i].id};
        if (!ROWS[i].letter)
            continue;
        shorts[n++] = ROWS[i].letter;
        if (has)
            shorts[n++] = ':';
    }
    while ((index = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const struct option_row *row = NULL;
        for (int i = 0; i < ROWS_N; i++)
            if (index == ROWS[i].id || index == ROWS[i].letter)
                row = &ROWS[i];
        if (index == '?' || !row)
            return false;
        if (!takes(verb, row)) {
            say("%s takes no --%s", verb->name, row->name);
            return false;
        }
        if (!option_take(o, row, optarg))
            return false;
    }
    o->command = argv + optind;
    return true;
}

/* What the environment says; empty is as good as not set. */
static const char *environment(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* An address without a scheme is one of HTTP. */
static bool url_fits(const char *url)
{
    return *url &&
           (!strstr(url, "://") || strncasecmp(url, "http://", 7) == 0 ||
            strncasecmp(url, "https://", 8) == 0);
}

/* Where to ask: options before the environment, and never two at once. */
static bool place_read(struct options *o)
{
    if (o->db && o->http.url) {
        say("--url and --db exclude each other");
        return false;
    }
    if (!o->db && !o->http.url) {
        o->db = environment("LEASE_DB");
        o->http.url = environment("LEASE_URL");
        if (o->db && o->http.url) {
            say("LEASE_URL and LEASE_DB are both set: say --url or --db");
            return false;
        }
    }
    if (!o->http.url)
        o->http.url = "http://127.0.0.1:8184";
    if (o->db && !*o->db) {
        say("the database needs a name");
        return false;
    }
    if (!url_fits(o->http.url)) {
        say("the URL must begin with http:// or https://, not: %s",
            o->http.url);
        return false;
    }
    if (!o->http.user)
        o->http.user = environment("LEASE_USER");
    if (!o->http.password)
        o->http.password = environment("LEASE_PASSWORD_FILE");
    if (!o->http.cacert)
        o->http.cacert = environment("LEASE_CACERT");
    return true;
}

/* The first line of the file. */
static bool password_read(struct options *o)
{
    const char *path = o->password_file = o->http.password;
    if (o->db || !path)
        return true;
    FILE *file = fopen(path, "re");
    bool good = file && fgets(o->password, sizeof o->password, file);
    if (!good)
        say("cannot read the password in %s: %s", path,
            file ? "it is empty" : strerror(errno));
    if (file)
        fclose(file);
    o->password[strcspn(o->password, "\r\n")] = 0;
    o->http.password = o->password;
    return good;
}

/* A command under `lease run` may ask about its own lease without a word. */
static void lease_from_environment(struct options *o)
{
    const char *path = getenv("LEASE_FILE");
    const char *text = getenv("LEASE_TOKEN");
    char newest[32] = "";
    int64_t token;
    if (o->fields.v[FIELD_RESOURCE].type || o->fields.v[FIELD_TOKEN].type)
        return;
    FILE *file = path ? fopen(path, "re") : NULL;
    if (file) {
        if (fgets(newest, sizeof newest, file))
            newest[strcspn(newest, "\n")] = 0;
        fclose(file);
    }
    if (newest[0])
        text = newest;
    value_set_text(&o->fields.v[FIELD_RESOURCE], getenv("LEASE_RESOURCE"));
    if (text && number_read(text, &token))
        value_set_integer(&o->fields.v[FIELD_TOKEN], token);
}

static void holder_default(struct options *o, const struct verb *verb)
{
    static char name[256 + 1];
    char host[200] = "";
    if (o->fields.v[FIELD_HOLDER].type)
        return;
    if (gethostname(host, sizeof host - 1) != 0 || !host[0])
        snprintf(host, sizeof host, "localhost");
    /* A single grant belongs to the script that asked for it. */
    int pid = verb->kind == VERB_RUN ? getpid() : getppid();
    snprintf(name, sizeof name, "%s:%d", host, pid);
    value_set_text(&o->fields.v[FIELD_HOLDER], name);
}

static bool needs_check(const struct options *o, const struct verb *verb)
{
    bool good = true;
    for (int i = 0; i < FIELD_N; i++)
        if (listed(verb->needs, FIELD_NAMES[i]) && !o->fields.v[i].type) {
            say("%s needs --%s", verb->name, FIELD_NAMES[i]);
            good = false;
        }
    return good;
}

int options_read(struct options *o, const struct verb *verb, int argc,
                 char **argv)
{
    *o = (struct options){.grace_ms = -1, .timeout_ms = 10000};
    if (!argv_read(o, verb, argc, argv))
        return EXIT_USAGE;
    if (o->help)
        return EXIT_DONE;
    if (listed(verb->needs, "token"))
        lease_from_environment(o);
    if (listed(verb->takes, "holder") && listed(verb->takes, "ttl"))
        holder_default(o, verb);
    if (!place_read(o) || !needs_check(o, verb) || !password_read(o))
        return EXIT_USAGE;
    if (o->command[0] && verb->kind != VERB_RUN) {
        say("%s takes no '%s'", verb->name, o->command[0]);
        return EXIT_USAGE;
    }
    const struct value *ttl = &o->fields.v[FIELD_TTL];
    o->ttl_ms = ttl->type ? llround(ttl->real * 1000) : 30000;
    o->wait_ms = llround(o->fields.v[FIELD_WAIT].real * 1000);
    if (o->timeout_ms < 1)
        o->timeout_ms = 1;
    return EXIT_DONE;
}
