/* SPDX-License-Identifier: Apache-2.0
 * Memory first, then a file. */
#include "server/loop/conn/conn_whole.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "server/loop/jobs.h"

enum { FREED_AT_ONCE = 16 << 20 }; /* bytes of a file: some milliseconds */

/* A long file that nobody needs any more. It takes half a second to free a GiB, so a thread cuts off piece by piece. */
struct unneeded {
    struct job job;
    struct server *server;
    int file;
    off_t left;
};

static void cut_off(struct job *job)
{
    struct unneeded *u = (struct unneeded *)(void *)job;
    u->left -= FREED_AT_ONCE;
    if (ftruncate(u->file, u->left) != 0) {
        u->left = 0;
    }
}

static void was_cut_off(struct job *job)
{
    struct unneeded *u = (struct unneeded *)(void *)job;
    if (u->left <= FREED_AT_ONCE || !jobs_submit(u->server->jobs, job)) {
        close(u->file);
        u->server->n_files--;
        memory_free(u);
    }
}

static void end_file(struct server *s, int file, size_t bytes)
{
    struct unneeded *u = bytes > FREED_AT_ONCE ? memory_new(1, sizeof *u) : NULL;
    if (u) {
        *u = (struct unneeded){{cut_off, was_cut_off}, s, file, (off_t)bytes};
    }
    if (!u || !jobs_submit(s->jobs, &u->job)) {
        close(file);
        s->n_files--;
        memory_free(u);
    }
}

/* Who can do it gets a file that never has a name. */
static int open_nameless(const char *folder)
{
    char path[4096];
    int file = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (file < 0 && (size_t)snprintf(path, sizeof path, "%s/utter-XXXXXX", folder) < sizeof path) {
        file = mkostemp(path, O_CLOEXEC);
        if (file >= 0) {
            unlink(path);
        }
    }
    return file;
}

/* A file that so many bytes more fit in. */
static bool open_file(struct conn_whole *w, double bytes)
{
    struct statvfs about;
    const char *folder = getenv("TMPDIR");
    struct server *s = w->server;
    bool fits = s->n_files < s->most_files && (double)s->filed_bytes + bytes <= (double)LIMIT_FILED;
    w->file = fits ? open_nameless(folder && folder[0] ? folder : "/tmp") : -1;
    if (w->file >= 0 && fstatvfs(w->file, &about) == 0 &&
        (double)about.f_bavail * (double)about.f_frsize < bytes) {
        close(w->file);
        w->file = -1;
    }
    w->has_file = w->file >= 0;
    s->n_files += w->has_file;
    return w->has_file;
}

static bool refuse_room(struct refusal *r)
{
    refuse(r, 503, "stream",
        "so long a sound has no room here until all of it is made (ask for a stream)");
    r->retry_ms = RETRY_MS;
    return false;
}

bool conn_whole_begin(struct conn_whole *w, struct server *s, double expected, struct refusal *refusal)
{
    *w = (struct conn_whole){.server = s};
    return expected <= LIMIT_WHOLE || open_file(w, expected) ||
           (double)s->unsent_bytes + expected <= LIMIT_UNSENT_ALL || refuse_room(refusal);
}

static bool put_in_file(struct conn_whole *w, const char *bytes, size_t n)
{
    if (w->server->filed_bytes + n > LIMIT_FILED || (!w->has_file && !open_file(w, (double)n))) {
        return false;
    }
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(w->file, bytes + done, n - done, (off_t)(w->n - w->memory.n + done));
        if (put <= 0) {
            return false;
        }
        done += (size_t)put;
    }
    w->server->filed_bytes += n;
    return true;
}

bool conn_whole_put(struct conn_whole *w, const void *bytes, size_t n, struct refusal *refusal)
{
    struct server *s = w->server;
    bool in_file = w->n > w->memory.n;
    bool small = w->memory.n + n <= LIMIT_WHOLE &&
                 (s->unsent_bytes + n <= LIMIT_UNSENT_ALL || w->memory.n + n <= LIMIT_WHOLE_SMALL);
    if (in_file || !small) {
        /* Without a file memory takes what it has. */
        if (put_in_file(w, bytes, n)) {
            w->n += n;
            return true;
        }
        if (in_file || s->unsent_bytes + n > LIMIT_UNSENT_ALL) {
            return refuse_room(refusal);
        }
    }
    wire_put(&w->memory, bytes, n);
    if (w->memory.failed) {
        refuse(refusal, 503, NULL, "out of memory");
        return false;
    }
    w->n += n;
    s->unsent_bytes += n;
    return true;
}

bool conn_whole_beside(struct conn_whole *w, size_t bytes, struct refusal *refusal)
{
    struct server *s = w->server;
    size_t without = s->unsent_bytes - w->beside;
    if (bytes > w->beside && bytes > LIMIT_WHOLE_SMALL && without + bytes > LIMIT_UNSENT_ALL) {
        return refuse_room(refusal);
    }
    s->unsent_bytes = without + bytes;
    w->beside = bytes;
    return true;
}

void conn_whole_fini(struct conn_whole *w)
{
    if (w->server) {
        w->server->unsent_bytes -= w->memory.n + w->beside;
        w->server->filed_bytes -= w->n - w->memory.n;
    }
    if (w->has_file) {
        end_file(w->server, w->file, w->n - w->memory.n);
    }
    wire_fini(&w->memory);
    *w = (struct conn_whole){0};
}

bool conn_whole_take(const struct conn_whole *w, size_t at, uint8_t *bytes, size_t n)
{
    size_t here = at < w->memory.n ? min(w->memory.n - at, n) : 0;
    if (here > 0) {
        memcpy(bytes, w->memory.bytes + at, here);
    }
    for (ssize_t got; here < n; here += (size_t)got) {
        got = pread(w->file, bytes + here, n - here, (off_t)(at + here - w->memory.n));
        if (got <= 0) {
            return false;
        }
    }
    return true;
}
