/* SPDX-License-Identifier: Apache-2.0
 * Parts by the first bits of a hash; each is sorted alone. */
#include "job/ids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "book/identity.h"

enum { N_PARTS = 64 };

struct id_seen {
    uint64_t hash[2], line;
};

struct ids {
    FILE *parts[N_PARTS];
};

utter_status ids_new(struct ids **ids, utter_error *error)
{
    *ids = memory_new(1, sizeof **ids);
    return *ids ? UTTER_OK : error_memory(error, "the ids of a manifest");
}

static utter_status fail_file(utter_error *error)
{
    return error_set(error, UTTER_E_IO,
        "a temporary file of ids cannot be written: %s (TMPDIR names another folder)", strerror(errno));
}

/* A file that has no name, in TMPDIR, or where files may be large: /tmp is memory on many machines. */
static FILE *open_part(void)
{
    const char *named = getenv("TMPDIR");
    const char *const folders[] = {
        named && named[0] ? named : "/var/tmp", named && named[0] ? named : "/tmp"};
    int fd = -1;
    for (int i = 0; i < 2 && fd < 0; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/utter-ids-XXXXXX", folders[i]);
        fd = mkstemp(path);
        if (fd >= 0) {
            remove(path);
        }
    }
    return fd >= 0 ? fdopen(fd, "w+b") : NULL;
}

utter_status ids_add(struct ids *ids, const char *id, uint64_t line, utter_error *error)
{
    char hex[IDENTITY_SIZE];
    unsigned long long first, second;
    identity_of_bytes(hex, id, strlen(id));
    sscanf(hex, "%16llx%16llx", &first, &second);
    struct id_seen seen = {{first, second}, line};
    FILE **part = &ids->parts[first % N_PARTS];
    if (!*part && !(*part = open_part())) {
        return fail_file(error);
    }
    return fwrite(&seen, sizeof seen, 1, *part) == 1 ? UTTER_OK : fail_file(error);
}

static int compare(const void *a, const void *b)
{
    return memcmp(
        ((const struct id_seen *)a)->hash, ((const struct id_seen *)b)->hash, sizeof(uint64_t[2]));
}

static utter_status check_part(FILE *part, utter_error *error)
{
    long bytes = fseek(part, 0, SEEK_END) == 0 ? ftell(part) : -1;
    if (bytes < 0 || ferror(part)) {
        return fail_file(error);
    }
    size_t n = (size_t)bytes / sizeof(struct id_seen);
    struct id_seen *seen = memory_new(n + 1, sizeof *seen);
    if (!seen) {
        return error_memory(error, "the ids of a manifest");
    }
    rewind(part);
    utter_status status = fread(seen, sizeof *seen, n, part) == n ? UTTER_OK : fail_file(error);
    if (status == UTTER_OK) {
        qsort(seen, n, sizeof *seen, compare);
    }
    for (size_t i = 1; i < n && status == UTTER_OK; i++) {
        if (compare(&seen[i - 1], &seen[i]) == 0) {
            uint64_t a = seen[i - 1].line, b = seen[i].line;
            status = error_set(error, UTTER_E_ARGUMENT, "lines %llu and %llu have one \"id\"",
                (unsigned long long)(a < b ? a : b), (unsigned long long)(a < b ? b : a));
        }
    }
    memory_free(seen);
    return status;
}

utter_status ids_check(struct ids *ids, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (int i = 0; i < N_PARTS && status == UTTER_OK; i++) {
        status = ids->parts[i] ? check_part(ids->parts[i], error) : UTTER_OK;
    }
    return status;
}

void ids_free(struct ids *ids)
{
    for (int i = 0; ids && i < N_PARTS; i++) {
        if (ids->parts[i]) {
            fclose(ids->parts[i]);
        }
    }
    memory_free(ids);
}
