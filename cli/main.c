/*
 * main.c: lease, Leasehold on the command line: verbs and help.
 *
 *     lease run --resource nightly --ttl 30 -- backup /srv
 *     token=$(lease grant --resource shard/0 --ttl 60) || exit
 *
 * The manual is cli/lease.1.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "../ext/lease.h"
#include "say.h"
#include "sql.h"
#include "verbs.h"

#define LEASE_OPTIONS " resource holder ttl capacity data wait nonblock "

static const struct verb VERBS[] = {
    {"run", VERB_RUN, ROUTE_GRANT, NULL, LEASE_OPTIONS "grace die-with-parent ",
     " resource ", " [--] COMMAND [ARGUMENT…]",
     "run a command while holding a lease"},
    {"grant", VERB_GRANT, ROUTE_GRANT, SQL_CLI_VIEW_TOKEN,
     LEASE_OPTIONS "request-id ", " resource ", "",
     "take a lease; prints its token"},
    {"renew", VERB_ONCE, ROUTE_RENEW, SQL_CLI_VIEW_TOKEN,
     " resource token ttl ", " resource token ", "",
     "extend it; prints the new token"},
    {"release", VERB_ONCE, ROUTE_RELEASE, SQL_CLI_VIEW_RELEASE,
     " resource token ", " resource token ", "",
     "give it back; prints how it ended"},
    {"check", VERB_ONCE, ROUTE_CHECK, SQL_CLI_VIEW_CHECK,
     " resource token min-remaining ", " resource token ", "",
     "is it in force? prints the seconds left"},
    {"revoke", VERB_ONCE, ROUTE_REVOKE, SQL_CLI_VIEW_REVOKE,
     " resource holder reason ", " resource ", "",
     "take leases away by force; prints how many"},
    {"list", VERB_LIST, ROUTE_LEASES, SQL_CLI_VIEW_LIST,
     " resource prefix holder limit ", " ", "",
     "print the leases in force, one a line"},
    {"events", VERB_LIST, ROUTE_EVENTS, SQL_CLI_VIEW_EVENTS,
     " resource after limit ", " ", "", "print what happened, one a line"},
    {"watch", VERB_WATCH, ROUTE_EVENTS, SQL_CLI_VIEW_EVENTS, " resource after ",
     " ", "", "print what happens, until ended"},
    {"status", VERB_ONCE, ROUTE_STATUS, SQL_CLI_VIEW_STATUS, " ", " ", "",
     "print version, clock and counts"},
};

enum { VERBS_N = sizeof VERBS / sizeof *VERBS };

static void help(void)
{
    printf("Usage: lease VERB [OPTION…]\n\n");
    for (int i = 0; i < VERBS_N; i++)
        printf("  %-9s%s\n", VERBS[i].name, VERBS[i].summary);
    printf("\n`lease VERB --help` tells its options, `man lease` the rest.\n"
           "Exit status: 0 done, 64 wrong input, 69 did not work, 75 held by "
           "others,\n76 the lease is over; run: the command's own.\n");
}

static void verb_help(const struct verb *verb)
{
    printf("Usage: lease %s [OPTION…]%s\n\n%s.\n\n", verb->name, verb->usage,
           verb->summary);
    options_print(verb);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    struct options options;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        strcmp(name, "help") == 0) {
        help();
        return EXIT_DONE;
    }
    if (strcmp(name, "--version") == 0) {
        printf("lease %s\n", LEASE_VERSION);
        return EXIT_DONE;
    }
    for (int i = 0; i < VERBS_N; i++) {
        const struct verb *verb = &VERBS[i];
        if (strcmp(name, verb->name) != 0)
            continue;
        argv[1] = argv[0]; /* by this name getopt() complains */
        int status = options_read(&options, verb, argc - 1, argv + 1);
        if (status != EXIT_DONE)
            return status;
        if (options.help)
            verb_help(verb);
        else if (verb->kind == VERB_RUN)
            return verb_run(verb, &options);
        else
            return verb_ask(verb, &options);
        return EXIT_DONE;
    }
    say("%s%s; see lease --help", argc > 1 ? "no such verb: " : "what to do?",
        name);
    return EXIT_USAGE;
}
