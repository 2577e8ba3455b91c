/*
 * groups.h: who may do what.
 *
 *     # alice may do everything, w1 and w2 all but revoke, others only look
 *     admins: alice
 *     workers: w1 w2
 *
 * That is the whole of the file named by LEASE_GROUPS: "group: user user", as
 * often as needed. The web server has asked for passwords and passes the name
 * (REMOTE_USER); a name that stands nowhere is a viewer. Without a file
 * everybody may do everything.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef GROUPS_H
#define GROUPS_H

#include <stdbool.h>
#include <stddef.h>

/* Each may do what those before it may. */
enum group { GROUP_NONE, GROUP_VIEWERS, GROUP_WORKERS, GROUP_ADMINS };

struct groups {
    bool limited; /* there is a file */
    char *text;   /* of it, cut into names */
    size_t n;
    struct member {
        const char *name;
        enum group group;
    } * member; /* in order of their names */
};

/*
 * Read the file at path; NULL or "": there is none. Returns 0, or -1 with one
 * line in why. End with groups_close(), also after a failure.
 */
int groups_open(struct groups *groups, const char *path, char *why,
                size_t why_size);
void groups_close(struct groups *groups);

/* The group of a user; NULL or "" is somebody without a name. */
enum group groups_of(const struct groups *groups, const char *user);

#endif
