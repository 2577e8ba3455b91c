/*
 * main.c: the service of Leasehold, a FastCGI program for one database.
 *
 *     LEASE_DB=/var/lib/leasehold/lease.db lease-fcgi
 *         as a web server starts it, with the listening socket on descriptor 0
 *         (see lighttpd.conf); LEASE_HOSTS has further names that it answers
 *         to, LEASE_GROUPS is a file that says who may do what (groups.h)
 *     LEASE_DB=… lease-fcgi check
 *         only finds out whether the service could start: says why not in one
 *         line, exit status 1
 *
 * SIGTERM and SIGINT end it: what was taken is answered first.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcgiapp.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "limits.h"
#include "log.h"
#include "service.h"

static struct service service;

/* libfcgi's own handlers would swallow SIGTERM: so blocked before FCGX_Init(),
 * and taken by sigwait(). SIGALRM alone stays, see main_loop(). */
static void signals_block(void)
{
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, SIGALRM);
    sigprocmask(SIG_SETMASK, &set, NULL);
}

/* A service without its web server gets no requests: it ends with it. False
 * when that has gone already. */
static bool parent_follow(void)
{
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return getppid() == parent;
}

static void descriptors_raise(void)
{
    struct rlimit limit;
    rlim_t want = DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < want) {
        limit.rlim_cur = want < limit.rlim_max ? want : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < want)
        log_line("warning", "event=few_descriptors have=%llu want=%llu",
                 (unsigned long long)limit.rlim_cur, (unsigned long long)want);
}

/* Until a signal says to end. Ending by force after END_S, by SIGALRM. */
static void main_loop(void)
{
    sigset_t set;
    int number = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    while (sigwait(&set, &number) != 0)
        ;
    alarm(END_S);
    log_line("info", "event=stopping signal=%d", number);
}

/* Give large pieces back to the system when they are freed. An arena for each
 * thread: most of what one of them has it frees itself. */
static void memory_bound(void)
{
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_ARENA_MAX, WORKERS + 6);
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

static int complain(const char *why)
{
    log_line("error", "event=cannot_start why=\"%s\"", why);
    return 1;
}

/* lighttpd looks a millisecond after it started a program, or later: finds it
 * gone and goes down itself, or finds it there and answers 503 until it can
 * start. So that it is always the latter, stay for a moment. */
static void linger(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigtimedwait(&set, NULL,
                 &(struct timespec){.tv_nsec = LINGER_MS * 1000000L});
}

static int serve(const char *path, bool check)
{
    char why[DBFILE_PATH_MAX + 512];
    if (!path || !*path)
        return complain("LEASE_DB names no database file");
    if (!check && (FCGX_Init() != 0 || FCGX_IsCGI()))
        return complain("a web server must start it, with a listening socket "
                        "on descriptor 0");
    if (!check && !parent_follow())
        return complain("the web server has gone");
    if (!check)
        descriptors_raise();
    memory_bound();
    store_setup();
    int failed = service_open(
        &service, path, check ? CHECK_LOCK_MS : LOCK_FILE_MS, 0,
        getenv("LEASE_HOSTS"), getenv("LEASE_GROUPS"), why, sizeof why);
    if (failed) {
        complain(why);
    } else if (!check) {
        failed = service_start(&service);
        log_line("info", "event=started database=\"%s\"", service.file.path);
        if (!failed)
            main_loop();
        service_stop(&service);
    }
    service_close(&service);
    if (!check && !failed)
        log_line("info", "event=stopped");
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    bool check = argc == 2 && strcmp(argv[1], "check") == 0;
    if (argc > 1 && !check)
        return complain("the only argument is: check");
    signals_block();
    int status = serve(getenv("LEASE_DB"), check);
    if (status && !check)
        linger();
    return status;
}
