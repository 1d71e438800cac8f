/* SPDX-License-Identifier: Apache-2.0
 * How many cores this process may use: what the scheduler allows, and what the control groups (version
 * 1 and 2) pay for. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "base/threads.h"

/* Cores in the affinity mask, which may be wider than cpu_set_t; 0 when unknown. */
static int affinity_count(void)
{
    for (int n_bits = 1024; n_bits <= 1 << 20; n_bits *= 4) {
        size_t bytes = CPU_ALLOC_SIZE(n_bits);
        cpu_set_t *set = memory_new(bytes, 1);
        if (!set) {
            return 0;
        }
        int failed = sched_getaffinity(0, bytes, set) != 0 ? errno : 0;
        int n = failed ? 0 : CPU_COUNT_S(bytes, set);
        memory_free(set);
        if (failed != EINVAL) {
            return n;
        }
    }
    return 0;
}

/* The whole small file folder/name, or NULL. */
static char *small_file(const char *folder, const char *name)
{
    char path[PATH_MAX], *text = NULL;
    size_t bytes;
    if (file_join(path, sizeof path, folder, name, NULL) == UTTER_OK) {
        file_read(path, 1 << 16, &text, &bytes, NULL);
    }
    return text;
}

static int whole_cores(long long quota, long long period)
{
    if (quota <= 0 || period <= 0 || quota > LLONG_MAX / 4 || period > LLONG_MAX / 4) {
        return 0;
    }
    long long n = (2 * quota + period) / (2 * period);
    return n < 1 ? 1 : n > INT_MAX ? INT_MAX : (int)n;
}

/* The quota that one folder of the hierarchy sets; 0: none. */
static int folder_quota(const char *folder, bool is_v2)
{
    long long quota = 0, period = 0;
    char *first = small_file(folder, is_v2 ? "cpu.max" : "cpu.cfs_quota_us");
    if (first && is_v2) {
        if (sscanf(first, "%lld %lld", &quota, &period) != 2) { /* "max 100000" */
            quota = 0;
        }
    } else if (first) {
        char *second = small_file(folder, "cpu.cfs_period_us");
        quota = strtoll(first, NULL, 10);
        period = second ? strtoll(second, NULL, 10) : 0;
        memory_free(second);
    }
    memory_free(first);
    return whole_cores(quota, period);
}

static int smaller_quota(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The smallest quota from the group's folder up to the root of the hierarchy: each one binds. In a
 * container the group's path may be the host's; then only the root exists. */
static int hierarchy_quota(const char *root, const char *group, bool is_v2)
{
    char folder[PATH_MAX];
    int n = snprintf(folder, sizeof folder, "%s%s", root, group);
    if (n < 0 || (size_t)n >= sizeof folder) {
        return 0;
    }
    int least = 0;
    size_t root_length = strlen(root);
    for (;;) {
        least = smaller_quota(least, folder_quota(folder, is_v2));
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < root_length) {
            return least;
        }
        *slash = 0;
    }
}

/* True when the comma-separated list has `name`. */
static bool list_has(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == 0)) {
            return true;
        }
    }
    return false;
}

int threads_quota(const char *cgroups, const char *mount)
{
    char *text = small_file("", cgroups);
    int least = 0;
    /* Lines are "number:controllers:path"; version 2 has no controllers. */
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = 0;
        }
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) {
            continue;
        }
        controllers++;
        *group++ = 0;
        bool is_v2 = *controllers == 0;
        if (is_v2) {
            least = smaller_quota(least, hierarchy_quota(mount, group, true));
        } else if (list_has(controllers, "cpu")) {
            char root[PATH_MAX];
            if (file_join(root, sizeof root, mount, "cpu", NULL) == UTTER_OK) {
                least = smaller_quota(least, hierarchy_quota(root, group, false));
            }
        }
    }
    memory_free(text);
    return least;
}

int threads_available(void)
{
    int n = affinity_count(), quota = threads_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota > 0 && quota < n) {
        n = quota;
    }
    return max(n, 1);
}
