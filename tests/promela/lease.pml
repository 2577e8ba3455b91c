/*
 * lease.pml: the protocol of a lease, for spin to walk through all of it.
 *
 *     spin -a lease.pml && cc -O2 -o pan pan.c && ./pan -m100000
 *     spin -DNO_FENCE -a lease.pml && …       finds a run that goes wrong
 *
 * Workers take one resource in turn, renew, write with their token to a store
 * of its own, stop at any point for any time, and never look at a clock. Time
 * passes, the engine's process dies at any point, a backup is made and put
 * back. What must hold, as assertions:
 *
 *   order     a token is higher than each one that was told before
 *   fence     no write of a token is accepted after one of a later token
 *   one       a lease is granted only when no other one is in force
 *   over      a tenure that somebody saw to be over, in a transaction, is not
 *             renewed
 *
 * Each of these takes away what one of them rests on, and must fail:
 *
 *   NO_FENCE        the store takes every write
 *   EARLY_TIME      time is read before the write lock is waited for
 *   MEMORY_COUNTER  tokens are counted in memory, a crash loses the count
 *   NOT_DURABLE     an answer comes before its commit is on disk
 *   NO_RESTORE      a backup is put back without lease_restore()
 *
 * REACH fails where the last token is written with after a crash, a restore
 * and an expiry that somebody saw: all of it is walked through.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef TOKENS
#define TOKENS 3 /* issued, in all */
#endif
#ifndef END_OF_TIME
#define END_OF_TIME 3
#endif
#define TTL 2
#define MARGIN 16 /* of lease_restore(): more than events since the backup */

typedef File {
    byte last;    /* number of the newest event */
    byte epoch;   /* of the lease that is kept, or 0 */
    byte token;   /* its newest */
    byte expires
}

File db;     /* as committed */
File disk;   /* what a crash leaves of it */
File backup;
File none;

byte now = 1;
byte lock;   /* the worker in a write transaction, or 0 */
bool dead;   /* the process died once */
bool called[WORKERS + 1]; /* by whom, and the answer may still come */
byte seen;   /* the store's fence: highest token */
byte memory; /* tokens counted in memory */

/* What nobody in the protocol knows: for the assertions. */
byte issued;  /* how many tokens */
byte told;    /* the highest token that was told */
byte written; /* how many tokens were issued when that of the newest write was */
byte over;    /* an epoch that was seen to be over */
bool put_back; /* the backup was */

#ifdef REACH
#define REACHED (written == TOKENS && dead && put_back && over)
#else
#define REACHED false
#endif

inline file_copy(to, from) {
    to.last = from.last;
    to.epoch = from.epoch;
    to.token = from.token;
    to.expires = from.expires
}

inline file_sync() {
    file_copy(disk, db)
}

/* The number of the next event, into db.last. */
inline token_next() {
#ifdef MEMORY_COUNTER
    memory++;
    db.last = memory
#else
    db.last++
#endif
}

/* A grant or a renewal is written. */
inline token_write() {
    token_next();
    issued++;
    assert(db.last > told);      /* order */
    db.token = db.last;
    db.expires = time + TTL;
    new = db.last;
    rank = issued
}

inline forget() {
    token = 0;
    token_rank = 0;
    epoch = 0
}

proctype worker(byte me) {
    byte token, token_rank, epoch; /* that it has, or 0 */
    byte new, rank, time;

    do
    :: issued < TOKENS ->
        /* Ask for a grant, or with a token for a renewal. */
#ifdef EARLY_TIME
        time = now;
#endif
        atomic { lock == 0 -> lock = me; called[me] = true }
#ifndef EARLY_TIME
        time = now;
#endif
        /* From here to the commit it takes time, and the process may die. */
        atomic {
            if
            :: lock != me -> skip
            :: lock == me && token == 0 && issued < TOKENS &&
               (db.epoch == 0 || db.expires <= time) ->
                assert(db.epoch == 0 || db.expires <= now); /* one */
                token_write();
                db.epoch = new;
                epoch = new
            :: lock == me && token != 0 && issued < TOKENS &&
               db.epoch == epoch && db.expires > time ->
                assert(over != epoch); /* over */
                token_write()
            :: else -> /* refused */
                forget()
            fi;
            if
            :: lock == me ->
#ifndef NOT_DURABLE
                file_sync();
#endif
                lock = 0
            :: else
            fi;
            time = 0
        }
        /* The answer; it is lost when the process died before it. */
        atomic {
            if
            :: new != 0 && called[me] ->
                token = new;
                token_rank = rank;
                told = (new > told -> new : told)
            :: new != 0 && !called[me] && token == 0 ->
                epoch = 0 /* who waits is told by the lease's end */
            :: else
            fi;
            new = 0;
            rank = 0;
            called[me] = false
        }
    :: atomic { token != 0 ->
            /* Write to the store, however much later. */
            if
#ifndef NO_FENCE
            :: token < seen -> forget() /* refused: it gives up */
#endif
            :: else ->
                seen = token;
                assert(token_rank >= written); /* fence */
                written = token_rank;
                assert(!REACHED)
            fi
        }
    :: atomic { token != 0 && lock == 0 ->
            /* Release, in one short transaction. */
            if
            :: db.epoch == epoch && db.expires > now ->
                db.epoch = 0;
                db.last++;
                file_sync()
            :: else
            fi;
            forget()
        }
    :: issued >= TOKENS -> break
    od
}

proctype world() {
    byte i;

    do
    :: atomic { now < END_OF_TIME -> now++ }
    :: atomic { !dead ->
            /* The process dies: what is not on disk is gone, and what it was
             * asked is not answered. */
            dead = true;
            lock = 0;
            memory = 0;
            file_copy(db, disk);
            i = 1;
            do
            :: i <= WORKERS -> called[i] = false; i++
            :: i > WORKERS -> break
            od;
            i = 0
        }
    :: atomic { lock == 0 && db.epoch != 0 && db.expires <= now ->
            over = db.epoch
        }
#ifdef NOT_DURABLE
    :: atomic { file_sync() }
#endif
    :: now >= END_OF_TIME -> break
    od
}

/* A backup is made, and put back at any time after; or there is none. */
proctype keeper() {
    if
    :: skip
    :: atomic { lock == 0 -> file_copy(backup, db) };
        atomic { lock == 0 ->
            file_copy(db, backup);
            file_copy(backup, none);
#ifndef NO_RESTORE
            db.last = db.last + MARGIN;
#endif
            file_sync();
            over = 0;
            put_back = true
        }
    fi
}

init {
    byte i = 1;
    atomic {
        run world();
        run keeper();
        do
        :: i <= WORKERS -> run worker(i); i++
        :: i > WORKERS -> break
        od
    }
}
