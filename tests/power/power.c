/*
 * power.c: pulls the plug at every moment of a database's life.
 *
 *     power 0 1              each sound way once, with seed 1
 *     power 600 1            seeds 1, 2, … until 600 seconds are over
 *     power 0 7 wal 100 6    one way, a story of 100 steps, 6 random fates for
 *                            each moment
 *     power                  which ways there are
 *
 * A story is lived on a VFS that records every operation (story.h, disk.h).
 * Then, after each operation, the power fails: all that may be left of the
 * files is built (crash.h), opened and looked at (judge.h). One in RECURSE
 * images is opened on the recording VFS again, and the power fails during the
 * recovery, too.
 *
 * Prints a line a round; of the first failure what must be known to repeat it.
 * Exit 0: nothing failed; 1: something was lost, or damaged; 2: trouble.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "story.h"

enum {
    RECURSE = 500, /* one image in so many is recovered while recording */
    GRANT = 8,     /* one in so many has a grant by the engine */
    SEEN = 1 << 20,
    STEPS_SHORT = 7,
    STEPS_LONG = 60,
    DICE_SHORT = 2,
    DICE_LONG = 6
};

struct figures {
    long stories, operations, syncs, points, images, distinct, again, bad;
    long verdicts[JUDGE_RCS];
};

struct plug {
    const struct way *way;
    uint64_t seed;
    int steps, dice;
    double until; /* 0: as long as it takes */
    char folder[64];
    struct figures figures;
    uint64_t *seen; /* images looked at, by hash */
    struct image image;
};

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool plug_over(const struct plug *plug)
{
    return plug->until > 0 && seconds_now() >= plug->until;
}

static void side_path(char *path, size_t size, const char *base, int name)
{
    snprintf(path, size, "%s%s", base, disk_suffix[name]);
}

static void image_write(const struct image *image, const char *base)
{
    char path[300];
    snprintf(path, sizeof path, "%s-shm", base);
    unlink(path);
    for (int name = 0; name < DISK_NAMES; name++) {
        const struct content *content = &image->file[name];
        side_path(path, sizeof path, base, name);
        if (content->size < 0) {
            unlink(path);
            continue;
        }
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || write(fd, content->data, (size_t)content->size) !=
                          (ssize_t)content->size) {
            perror(path);
            exit(2);
        }
        close(fd);
    }
}

static void files_remove(const char *base)
{
    struct image none;
    memset(&none, 0, sizeof none);
    for (int name = 0; name < DISK_NAMES; name++)
        none.file[name].size = -1;
    image_write(&none, base);
}

/* Was this image looked at before, with as much acknowledged? */
static bool image_seen(struct plug *plug, uint64_t hash, int acknowledged)
{
    uint64_t key = (hash ^ (uint64_t)acknowledged * 0x9e3779b97f4a7c15u) | 1;
    size_t at = key % SEEN;
    if (plug->seen[at] == key)
        return true;
    plug->seen[at] = key; /* who had the place is looked at once more */
    return false;
}

static int acknowledged(const struct book *book, int position)
{
    int last = 0;
    while (last + 1 < book->n && book->states[last + 1].position <= position)
        last++;
    return last;
}

/* The first is told, and its files are kept. */
static void failure_note(struct plug *plug, const struct crash *crash,
                         const struct fate *fate, enum judge_rc verdict,
                         bool again)
{
    char text[300], base[128];
    plug->figures.verdicts[verdict]++;
    if (plug->figures.bad++ > 0)
        return;
    fate_tell(crash, fate, text, sizeof text);
    snprintf(base, sizeof base, "%s/failed.db", plug->folder);
    image_write(&plug->image, base);
    printf("%s: after operation %d%s, %s\n%s* was left; again by: power 0 "
           "%llu %s %d %d\n",
           judge_text[verdict], crash->at, again ? " of a recovery" : "", text,
           base, (unsigned long long)plug->seed, plug->way->name, plug->steps,
           plug->dice);
}

static void plug_pull(struct plug *plug, const struct disk *disk,
                      const struct book *book, bool again);

/* Recover while recording, then fail during that. */
static void plug_pull_again(struct plug *plug, const struct book *book,
                            int position)
{
    char base[128];
    struct disk *disk = disk_alloc(NULL, sizeof *disk);
    struct book second = {0};
    uint64_t after[2];
    snprintf(base, sizeof base, "%s/twice.db", plug->folder);
    image_write(&plug->image, base);
    disk_start(disk, base);
    if (judge_look(base, "disk", book, position, true, after) == JUDGE_FINE) {
        int last = acknowledged(book, position);
        book_add(&second, after[0], 0, book->states[last].told);
        book_add(&second, after[1], disk->n, book->states[last].told);
        /* Closing may write, too, but changes nothing. */
        plug_pull(plug, disk, &second, true);
    }
    disk_end(disk);
    files_remove(base);
    free(second.states);
    free(disk);
}

static void plug_look(struct plug *plug, const struct crash *crash,
                      const struct fate *fate, const struct book *book,
                      bool again)
{
    char base[128];
    uint64_t after[2];
    struct figures *figures = &plug->figures;
    figures->images++;
    crash_image(crash, fate, &plug->image);
    if (image_seen(plug, plug->image.hash, acknowledged(book, crash->at)))
        return;
    figures->distinct++;
    figures->again += again;
    snprintf(base, sizeof base, "%s/left.db", plug->folder);
    image_write(&plug->image, base);
    enum judge_rc verdict = judge_look(base, NULL, book, crash->at,
                                       figures->distinct % GRANT == 0, after);
    if (verdict != JUDGE_FINE)
        failure_note(plug, crash, fate, verdict, again);
    else if (!again && figures->distinct % RECURSE == 0)
        plug_pull_again(plug, book, crash->at);
}

static void plug_pull(struct plug *plug, const struct disk *disk,
                      const struct book *book, bool again)
{
    struct crash crash;
    struct fate fate;
    crash_start(&crash, disk, plug->seed);
    crash.dice = again ? DICE_SHORT : plug->dice;
    crash.whole = plug->dice == DICE_SHORT ? 2 : 5;
    do {
        plug->figures.points++;
        for (int i = 0; crash_fate(&crash, i, &fate); i++)
            plug_look(plug, &crash, &fate, book, again);
    } while (crash_step(&crash) && !plug_over(plug));
    crash_end(&crash);
}

static void plug_story(struct plug *plug)
{
    char base[128];
    struct disk *disk = disk_alloc(NULL, sizeof *disk);
    struct book book = {0};
    snprintf(base, sizeof base, "%s/live.db", plug->folder);
    memset(plug->seen, 0, SEEN * sizeof *plug->seen);
    story_live(plug->way, plug->seed, plug->steps, base, disk, &book);
    plug->figures.stories++;
    plug->figures.operations += disk->n;
    for (int i = 0; i < disk->n; i++)
        plug->figures.syncs += disk->ops[i].kind == DISK_SYNC;
    struct disk *copy = disk_alloc(NULL, sizeof *copy);
    *copy = *disk;
    plug_pull(plug, copy, &book, false);
    disk_end(copy);
    files_remove(base);
    free(book.states);
    free(copy);
    free(disk);
}

static void figures_tell(const struct plug *plug, const char *name)
{
    const struct figures *f = &plug->figures;
    printf("%s: %ld stories, %ld operations, %ld syncs, %ld crash points, "
           "%ld images, %ld of them distinct, %ld of a second failure: %ld "
           "bad",
           name, f->stories, f->operations, f->syncs, f->points, f->images,
           f->distinct, f->again, f->bad);
    for (int rc = JUDGE_FINE + 1; rc < JUDGE_RCS; rc++)
        if (f->verdicts[rc])
            printf(", %ld %s", f->verdicts[rc], judge_text[rc]);
    printf("\n");
    fflush(stdout);
}

static void folder_make(struct plug *plug)
{
    const char *under = getenv("TMPDIR");
    char clock[128];
    if (!under || strlen(under) > 40)
        under = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(plug->folder, sizeof plug->folder, "%s/power.XXXXXX", under);
    if (mkdtemp(plug->folder) == NULL) {
        perror(plug->folder);
        exit(2);
    }
    snprintf(clock, sizeof clock, "%s/clock", plug->folder);
    setenv("LEASE_TEST_CLOCK", clock, 1);
}

static void folder_remove(struct plug *plug)
{
    char base[128];
    static const char *const names[] = {"live.db", "left.db", "twice.db"};
    for (int i = 0; i < 3; i++) {
        snprintf(base, sizeof base, "%s/%s", plug->folder, names[i]);
        files_remove(base);
    }
    unlink(getenv("LEASE_TEST_CLOCK"));
    if (!plug->figures.bad)
        rmdir(plug->folder);
}

/* Every sound way once, or the only one. */
static void plug_round(struct plug *plug, const struct way *only, bool once)
{
    for (const struct way *way = ways; way->name; way++) {
        if ((only ? way != only : !way->sound) || plug_over(plug))
            continue;
        plug->way = way;
        plug_story(plug);
        if (once)
            figures_tell(plug, way->name);
    }
    if (!once)
        figures_tell(plug, "so far");
}

static int usage(void)
{
    fprintf(stderr, "power SECONDS SEED [WAY [STEPS [DICE]]]\n");
    for (const struct way *way = ways; way->name; way++)
        fprintf(stderr, "  %-12s %s%s\n", way->name, way->what,
                way->sound ? "" : " (must fail)");
    return 2;
}

int main(int argc, char **argv)
{
    static struct plug plug;
    const struct way *only = argc > 3 ? way_find(argv[3]) : NULL;
    if (argc < 3 || (argc > 3 && only == NULL))
        return usage();
    double seconds = atof(argv[1]);
    bool once = seconds <= 0;
    plug.until = once ? 0 : seconds_now() + seconds;
    plug.seed = strtoull(argv[2], NULL, 10);
    plug.steps = argc > 4 ? atoi(argv[4]) : once ? STEPS_SHORT : STEPS_LONG;
    plug.dice = argc > 5 ? atoi(argv[5]) : once ? DICE_SHORT : DICE_LONG;
    plug.seen = disk_alloc(NULL, SEEN * sizeof *plug.seen);
    folder_make(&plug);
    do {
        plug_round(&plug, only, once);
        plug.seed++;
    } while (!plug.figures.bad && !once && !plug_over(&plug));
    image_free(&plug.image);
    free(plug.seen);
    folder_remove(&plug);
    return plug.figures.bad ? 1 : 0;
}
