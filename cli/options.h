/*
 * options.h: the command line and the environment, read and checked.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "ask.h"
#include "http.h"

/* What the program says with its exit status; `lease run` passes its
 * command's own status on. */
enum exit_status {
    EXIT_DONE = 0,
    EXIT_USAGE = 64,  /* wrong options or input */
    EXIT_BROKEN = 69, /* the service or the file did not do it */
    EXIT_HELD = 75,   /* refused: others hold it */
    EXIT_OVER = 76,   /* refused: the lease is over, lost or unknown */
};

struct options {
    struct http_options http; /* used when db is NULL */
    char password[512];
    const char *password_file; /* where it is from, or NULL */
    const char *db;
    struct fields fields;
    int64_t ttl_ms;
    int64_t wait_ms;
    int64_t grace_ms; /* SIGTERM so long before the deadline; -1: not said */
    int64_t timeout_ms;
    bool json;
    bool die_with_parent;
    bool help;
    char **command; /* what stands behind the options, or an empty list */
};

enum verb_kind { VERB_RUN, VERB_GRANT, VERB_ONCE, VERB_LIST, VERB_WATCH };

struct verb {
    const char *name;
    enum verb_kind kind;
    enum route_id route;
    const char *view;    /* sql/cli_view_*.sql */
    const char *takes;   /* the names of its options: " resource ttl " */
    const char *needs;   /* of these it must have */
    const char *usage;   /* behind the options */
    const char *summary; /* for --help */
};

/*
 * Read argv behind the verb, then the environment for what it left open.
 * Returns EXIT_DONE, or EXIT_USAGE after saying on stderr what is wrong.
 */
int options_read(struct options *options, const struct verb *verb, int argc,
                 char **argv);

/* Print the options that the verb takes. */
void options_print(const struct verb *verb);

#endif
