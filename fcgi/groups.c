/*
 * groups.c: who may do what.
 *
 * SPDX-License-Identifier: MIT
 */
#include "groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20 };

static const char BLANK[] = " \t\r";

static int member_compare(const void *a, const void *b)
{
    return strcmp(((const struct member *)a)->name,
                  ((const struct member *)b)->name);
}

/* The whole file as a text, or NULL with errno. */
static char *text_read(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(TEXT_MAX + 1) : NULL;
    size_t n = text ? fread(text, 1, TEXT_MAX + 1, file) : 0;
    if (text && (ferror(file) || n > TEXT_MAX)) {
        errno = n > TEXT_MAX ? EFBIG : errno;
        free(text);
        text = NULL;
    }
    if (text)
        text[n] = 0;
    if (file)
        fclose(file);
    return text;
}

static enum group group_named(const char *name, size_t n)
{
    static const char *const NAMES[] = {"", "viewers", "workers", "admins"};
    for (int i = GROUP_VIEWERS; i <= GROUP_ADMINS; i++)
        if (strlen(NAMES[i]) == n && strncmp(NAMES[i], name, n) == 0)
            return (enum group)i;
    return GROUP_NONE;
}

static int member_add(struct groups *groups, const char *name, enum group group)
{
    void *grown =
        realloc(groups->member, (groups->n + 1) * sizeof *groups->member);
    if (!grown)
        return -1;
    groups->member = grown;
    groups->member[groups->n++] = (struct member){name, group};
    return 0;
}

/* One line: "group: user user". NULL, or what is wrong with it. */
static const char *line_read(struct groups *groups, char *line)
{
    char *rest = NULL;
    line[strcspn(line, "#")] = 0;
    line += strspn(line, BLANK);
    if (!*line)
        return NULL;
    size_t n = strcspn(line, ":");
    enum group group = group_named(line, n);
    if (group == GROUP_NONE || !line[n])
        return "must begin with viewers:, workers: or admins:";
    for (char *name = strtok_r(line + n + 1, BLANK, &rest); name;
         name = strtok_r(NULL, BLANK, &rest))
        if (member_add(groups, name, group))
            return "is too much for the memory";
    return NULL;
}

/* A name that stands twice, or NULL. */
static const char *name_twice(const struct groups *groups)
{
    for (size_t i = 1; i < groups->n; i++)
        if (member_compare(&groups->member[i - 1], &groups->member[i]) == 0)
            return groups->member[i].name;
    return NULL;
}

int groups_open(struct groups *groups, const char *path, char *why,
                size_t why_size)
{
    memset(groups, 0, sizeof *groups);
    if (!path || !*path)
        return 0;
    groups->limited = true;
    groups->text = text_read(path);
    if (!groups->text) {
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
        return -1;
    }
    int number = 0;
    for (char *line = groups->text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        number++;
        const char *wrong = line_read(groups, line);
        if (wrong) {
            snprintf(why, why_size, "%s: line %d %s", path, number, wrong);
            return -1;
        }
    }
    if (groups->n)
        qsort(groups->member, groups->n, sizeof *groups->member,
              member_compare);
    const char *twice = name_twice(groups);
    if (twice)
        snprintf(why, why_size, "%s: %s stands in it twice", path, twice);
    return twice ? -1 : 0;
}

void groups_close(struct groups *groups)
{
    free(groups->member);
    free(groups->text);
    memset(groups, 0, sizeof *groups);
}

enum group groups_of(const struct groups *groups, const char *user)
{
    if (!groups->limited)
        return GROUP_ADMINS;
    if (!user || !*user)
        return GROUP_NONE;
    const struct member key = {user, GROUP_NONE}, *found = NULL;
    if (groups->n)
        found = bsearch(&key, groups->member, groups->n, sizeof key,
                        member_compare);
    return found ? found->group : GROUP_VIEWERS;
}
