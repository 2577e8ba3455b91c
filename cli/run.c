/*
 * run.c: `lease run`: a command under a lease.
 *
 * HOW IT WORKS: this process asks for the lease and renews it; the guard
 * (guard.h) has the command and kills it in time. The deadline counts from
 * before the request was sent that the lease was answered to. Should the
 * guard itself not act, for someone has stopped it, this process kills at the
 * deadline, so nothing between the two may make it wait; should the guard die,
 * the command dies with it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acquire.h"
#include "clock.h"
#include "guard.h"
#include "say.h"
#include "signals.h"
#include "tokenfile.h"
#include "verbs.h"

enum {
    MARGIN_LEAST_MS = 10,
    MARGIN_MOST_MS = 250,
    GRACE_MOST_MS = 10000,
    RELEASE_MS = 5000,
    RELEASE_LOST_MS = 1000,
    AGAIN_MS = 50,
    BURY_MS = 5000,
    BURY_STEP_MS = 5
};

struct run {
    const struct options *options;
    struct client client;
    struct guard_task task;
    struct tenure tenure;
    struct tokenfile file;
    pid_t guard;
    int fd; /* to the guard */
    int timer_fd;
    int signal_fd;
    pid_t group; /* of the command, when it is known */
    int64_t next_ms;
    bool over;    /* we were told that the lease is over */
    bool behind;  /* the guard does not know the newest yet */
    bool ended;   /* the command and all of its group */
    bool remains; /* ended, but some of the group does not go */
    bool lost;
    int status;
    char why[512]; /* the last renewal failed because */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t between(int64_t least, int64_t value, int64_t most)
{
    return value < least ? least : smaller(value, most);
}

/* --- renewing ---------------------------------------------------------------
 */

/* When the guard gives the command up. */
static int64_t stop_ms(const struct run *run)
{
    return run->tenure.deadline_ms - run->task.grace_ms;
}

/* A third of the ttl after the one before, not all at the same time. */
static void next_set(struct run *run)
{
    int64_t third = run->tenure.ttl_ms / 3;
    run->next_ms =
        run->tenure.sent_ms + chance_between(third - third / 5, third);
}

/* False when the guard is gone, or stopped with more orders than it can hold.
 * That must not hold us up. */
static bool order_send(struct run *run, struct order *order)
{
    order->deadline_ms = run->tenure.deadline_ms;
    return send(run->fd, order, sizeof *order, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)sizeof *order;
}

static void guard_tell(struct run *run)
{
    struct order order = {.kind = run->over ? ORDER_LOST : ORDER_DEADLINE};
    run->behind = !order_send(run, &order);
}

static void complain_once(struct run *run, const struct answer *answer)
{
    struct problem problem;
    json_problem(run->client.json, answer, &problem);
    if (strncmp(run->why, problem.text, sizeof run->why - 1) != 0)
        say("cannot renew '%s': %s", run->task.resource, problem.text);
    snprintf(run->why, sizeof run->why, "%s", problem.text);
}

static void renewed(struct run *run)
{
    guard_tell(run); /* first, for the file may take its time */
    if (!tokenfile_write(&run->file, run->tenure.lease.token))
        say("cannot write %s: %s", run->file.path, strerror(errno));
    run->why[0] = 0;
    next_set(run);
}

/* The guard stops the command now and kills it after the grace; if not, we do
 * soon after. */
static void told_over(struct run *run)
{
    int64_t soon = clock_ms();
    if (run->group) /* it has been started */
        soon += run->task.grace_ms + run->task.margin_ms;
    run->over = true;
    run->next_ms = INT64_MAX;
    run->tenure.deadline_ms = smaller(run->tenure.deadline_ms, soon);
    guard_tell(run);
}

static void renew(struct run *run)
{
    struct answer answer = {0};
    int64_t ttl_ms = run->tenure.ttl_ms;
    int64_t left_ms = stop_ms(run) - clock_ms();
    if (left_ms <= 0) {
        run->next_ms = INT64_MAX; /* the guard is ending it */
        return;
    }
    switch (tenure_renew(&run->client, &run->tenure,
                         smaller(left_ms, ttl_ms / 4), run->fd, &answer)) {
    case RENEWED:
        renewed(run);
        break;
    case RENEW_OVER:
        told_over(run);
        complain_once(run, &answer); /* last, for it may take its time */
        break;
    case RENEW_FAILED:
        if (!answer.woken)
            complain_once(run, &answer);
        run->next_ms = clock_ms() + chance_between(ttl_ms / 20, ttl_ms / 10);
        break;
    }
    answer_clear(&answer);
}

/* --- the guard --------------------------------------------------------------
 */

/* It has nothing more to do, or died. One that is stopped would not hear. */
static void guard_end(struct run *run)
{
    if (run->guard <= 0)
        return;
    kill(run->guard, SIGKILL);
    waitpid(run->guard, NULL, 0);
    run->guard = 0;
}

/* Kill all of the group, whose orphans are our children. False when some of
 * it is still there after a while. What has left the group is not waited for.
 */
static bool group_end(pid_t group)
{
    int64_t until_ms = clock_ms() + BURY_MS;
    while (kill(-group, SIGKILL) == 0 || errno != ESRCH) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (clock_ms() >= until_ms)
            return false;
        clock_sleep(BURY_STEP_MS, -1);
    }
    return true;
}

/* The guard is gone without a word. Its children are ours now. Without a
 * group it has started nothing: the command says its number before it is
 * executed. */
static void guard_died(struct run *run)
{
    if (!run->lost)
        say("the guard process died; the command is killed");
    guard_end(run);
    if (run->group && !group_end(run->group)) {
        say("some of it does not end; '%s' is not given back",
            run->task.resource);
        run->remains = true;
    }
    run->status = EXIT_BROKEN;
    run->ended = true;
}

static void report_take(struct run *run)
{
    struct report report;
    ssize_t n = recv(run->fd, &report, sizeof report, MSG_DONTWAIT);
    /* ECONNRESET: it ended without reading our last order. What it said
     * before comes next. */
    if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
        return;
    if (n != (ssize_t)sizeof report) {
        guard_died(run);
    } else if (report.kind == REPORT_STARTED) {
        run->group = report.pid;
    } else {
        run->status = report.status;
        run->lost = run->lost || report.lost;
        run->ended = true;
    }
}

/* The deadline is here, and the guard has not killed. One that has not even
 * started the command must not do it any more. */
static void strike(struct run *run)
{
    if (kill(run->group ? -run->group : run->guard, SIGKILL) == 0)
        run->lost = true;
}

/* When there is something to do next without a word from the guard. */
static int64_t due_ms(const struct run *run)
{
    int64_t now = clock_ms();
    int64_t at = smaller(run->next_ms, run->tenure.deadline_ms);
    if (now >= run->tenure.deadline_ms)
        return now + AGAIN_MS;
    return run->behind ? smaller(at, now + AGAIN_MS) : at;
}

/* Renew until the command has ended. */
static void keep(struct run *run)
{
    while (!run->ended) {
        struct pollfd fds[] = {{.fd = run->fd, .events = POLLIN},
                               {.fd = run->timer_fd, .events = POLLIN}};
        clock_timer_set(run->timer_fd, due_ms(run));
        poll(fds, 2, -1);
        if (fds[0].revents) {
            report_take(run);
            continue; /* all that it has said, before anything is killed */
        }
        if (run->behind)
            guard_tell(run);
        if (clock_ms() >= run->tenure.deadline_ms)
            strike(run);
        else if (clock_ms() >= run->next_ms)
            renew(run);
    }
}

/* --- begin and end ----------------------------------------------------------
 */

/* With less than most of the time left (the answer was slow, or it came after
 * a wait), count from a new question. Returns an exit status. */
static int freshen(struct run *run)
{
    int64_t ttl_ms = run->tenure.ttl_ms;
    struct answer answer = {0};
    if (run->tenure.deadline_ms - clock_ms() < ttl_ms - ttl_ms / 5) {
        int64_t timeout_ms = smaller(ttl_ms / 2, run->options->timeout_ms);
        run->over = tenure_renew(&run->client, &run->tenure, timeout_ms, -1,
                                 &answer) == RENEW_OVER;
        if (run->over)
            complain_once(run, &answer);
        answer_clear(&answer);
    }
    next_set(run);
    if (run->over) {
        say("lost '%s'; the command is not started", run->task.resource);
        return EXIT_OVER;
    }
    if (stop_ms(run) <= clock_ms()) {
        say("'%s' was granted too late to use it; take a longer --ttl",
            run->task.resource);
        return EXIT_BROKEN;
    }
    return EXIT_DONE;
}

/* Returns an exit status. */
static int start(struct run *run)
{
    struct order order = {.kind = ORDER_START,
                          .token = run->tenure.lease.token,
                          .epoch = run->tenure.lease.epoch};
    int status = freshen(run);
    if (status != EXIT_DONE)
        return status;
    order.token = run->tenure.lease.token;
    if (!tokenfile_write(&run->file, order.token)) {
        say("cannot make the file for LEASE_FILE: %s", strerror(errno));
        return EXIT_BROKEN;
    }
    memcpy(order.expires_at, run->tenure.lease.expires_at,
           sizeof order.expires_at);
    memcpy(order.file, run->file.path, sizeof order.file);
    /* The command may stop us, and the shell continue us, at once. */
    signals_pass(run->fd);
    bool sent = order_send(run, &order);
    signals_let(&run->task.mask);
    if (!sent)
        say("the guard process died; the command is not started");
    return sent ? EXIT_DONE : EXIT_BROKEN;
}

static void give_back(struct run *run)
{
    int64_t timeout_ms = run->lost ? RELEASE_LOST_MS : RELEASE_MS;
    if (run->over || run->remains)
        return;
    int status = tenure_release(&run->client, &run->tenure, timeout_ms);
    if (status != 200 && !run->lost)
        say("cannot give '%s' back; it runs out by itself", run->task.resource);
}

/* Get the lease, run the command under it, give it back. */
static int run_under_lease(struct run *run)
{
    struct answer answer;
    int status = acquire(&run->client, run->signal_fd, &run->tenure, &answer);
    if (status == ACQUIRE_WOKEN)
        status = 128 + signals_take(run->signal_fd);
    else if (status != EXIT_DONE)
        client_complain(&run->client, &answer, false);
    answer_clear(&answer);
    if (status != EXIT_DONE)
        return status;
    status = start(run);
    if (status != EXIT_DONE) {
        run->lost = true;
        tokenfile_remove(&run->file);
        give_back(run);
        return status;
    }
    keep(run);
    tokenfile_remove(&run->file);
    give_back(run);
    if (!run->lost)
        return run->status;
    say("lost '%s'%s%s; the command was stopped", run->task.resource,
        run->why[0] ? ": " : "", run->why);
    return EXIT_OVER;
}

/* Check the times and fill the task. Returns an exit status. */
static int task_prepare(struct run *run, struct options *options)
{
    int64_t ttl_ms = options->ttl_ms;
    int64_t margin_ms = between(MARGIN_LEAST_MS, ttl_ms / 100, MARGIN_MOST_MS);
    int64_t grace_ms = options->grace_ms < 0
                           ? smaller(ttl_ms / 5, GRACE_MOST_MS)
                           : options->grace_ms;
    if (!options->command[0]) {
        say("run needs a command: lease run --resource NAME -- COMMAND …");
        return EXIT_USAGE;
    }
    if (grace_ms > ttl_ms / 2) {
        say("--grace must be at most half of the ttl");
        return EXIT_USAGE;
    }
    value_set_real(&options->fields.v[FIELD_TTL], (double)ttl_ms / 1000);
    run->task.command = options->command;
    run->task.resource = options->fields.v[FIELD_RESOURCE].text;
    run->task.holder = options->fields.v[FIELD_HOLDER].text;
    run->task.margin_ms = margin_ms;
    run->task.grace_ms = grace_ms < margin_ms ? margin_ms : grace_ms;
    return EXIT_DONE;
}

static void pass_on(const char *name, const char *text)
{
    if (text)
        setenv(name, text, 1);
}

/* The same for a file, wherever the command goes. */
static void file_pass_on(const char *name, const char *path)
{
    char folder[PATH_MAX];
    char whole[2 * PATH_MAX];
    if (path && path[0] != '/' && getcwd(folder, sizeof folder)) {
        snprintf(whole, sizeof whole, "%s/%s", folder, path);
        path = whole;
    }
    pass_on(name, path);
}

/* A lease run inside of this one, or a lease check, asks the same place as the
 * same user. */
static void place_pass_on(const struct options *options)
{
    unsetenv(options->db ? "LEASE_URL" : "LEASE_DB");
    if (options->db) {
        file_pass_on("LEASE_DB", options->db);
        return;
    }
    pass_on("LEASE_URL", options->http.url);
    pass_on("LEASE_USER", options->http.user);
    file_pass_on("LEASE_PASSWORD_FILE", options->password_file);
    file_pass_on("LEASE_CACERT", options->http.cacert);
}

/* False when the parent is gone already. */
static bool parent_follow(void)
{
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return getppid() == parent;
}

int verb_run(const struct verb *verb, struct options *options)
{
    struct run run = {.options = options, .fd = -1};
    (void)verb;
    if (options->die_with_parent && !parent_follow())
        return 128 + SIGTERM;
    int status = task_prepare(&run, options);
    if (status != EXIT_DONE)
        return status;
    place_pass_on(options);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    run.signal_fd = signals_hold(&run.task.mask);
    run.timer_fd = clock_timer_open();
    run.guard = guard_start(&run.task, &run.fd);
    if (run.guard < 0 || run.signal_fd < 0 || run.timer_fd < 0) {
        say("cannot start: %s", strerror(errno));
        return EXIT_BROKEN;
    }
    status = EXIT_BROKEN;
    if (client_open(&run.client, options))
        status = run_under_lease(&run);
    client_close(&run.client);
    close(run.fd);
    guard_end(&run);
    return status;
}
