/*
 * judge.h: what a database holds, in one number, and whether it may hold that.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef JUDGE_H
#define JUDGE_H

#include <sqlite3.h>
#include <stdint.h>

#include "crash.h"

/* A state that was acknowledged, when `position` operations had happened. */
struct state {
    uint64_t digest;
    int position;
    int64_t told; /* the highest token answered up to then */
};

struct book {
    struct state *states;
    int n, room;
};

void book_add(struct book *book, uint64_t digest, int position, int64_t told);

/* All rows of all tables and the schema. Ends the program when the database
 * cannot be read: for one that must be whole. */
uint64_t judge_digest(sqlite3 *db);

/* A statement's first column as a number; 0 for NULL and no row. */
int64_t judge_number(sqlite3 *db, const char *sql, int *rc);

enum judge_rc {
    JUDGE_FINE,
    JUDGE_DAMAGED, /* cannot be opened or read, or integrity_check says so */
    JUDGE_LOST,    /* a state from before the last acknowledged one */
    JUDGE_HALF,    /* no state that there ever was */
    JUDGE_REUSED,  /* fine or lost, and a token is issued again */
    JUDGE_RCS
};
extern const char *const judge_text[JUDGE_RCS];

/*
 * Open what a crash after `position` operations left and look at it; vfs as
 * for sqlite3_open_v2(). It must be the last state acknowledged by then, or
 * the next, which was under way; and its next token must be above all told,
 * by its counter or, with grants, by a grant of the engine. *after gets the
 * digest found and that after the grant.
 */
enum judge_rc judge_look(const char *path, const char *vfs,
                         const struct book *book, int position, bool grants,
                         uint64_t after[2]);

#endif
