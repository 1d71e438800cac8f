/* SPDX-License-Identifier: Apache-2.0
 * A queue in a folder, for the processes of one machine. Lines stand in segments, files of up to 32,768 that never
 * change: TIME-NAME-NUMBER.lines. Beside each lies a .state, with four bytes for each line. A claim is a lock on a
 * line's bytes there: the system takes it back when the process ends, however it does. A second lock, on the file
 * `making` at a place that the key names, keeps lines of one sound from being made twice at a time. */
#include "job/queue_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/minmax.h"

static struct folder_queue *of(struct queue *queue)
{
    return (struct folder_queue *)queue;
}

/* ---- Locks ---- */

static int set_lock(int fd, short type, uint64_t at)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

/* UTTER_AGAIN: another process has it. */
static utter_status take_lock(const struct folder_queue *q, int fd, uint64_t at, utter_error *error)
{
    int reason = set_lock(fd, F_WRLCK, at);
    return reason == 0                            ? UTTER_OK
           : reason == EAGAIN || reason == EACCES ? UTTER_AGAIN
                                                  : file_error(error, q->folder, "lock in", reason);
}

/* How many bytes of [from, to), one at least, somebody holds; `fd` was opened for this question. */
static uint64_t count_locks(int fd, uint64_t from, uint64_t to)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)from, .l_len = (off_t)(to - from)};
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) {
        return 0;
    }
    if (to - from == 1) {
        return 1;
    }
    uint64_t middle = from + (to - from) / 2;
    return count_locks(fd, from, middle) + count_locks(fd, middle, to);
}

static uint64_t making_place(const char *key)
{
    char first[16];
    snprintf(first, sizeof first, "%.15s", key);
    return strtoull(first, NULL, 16);
}

/* ---- Segments ---- */

void segment_path(
    const struct folder_queue *q, char path[PATH_MAX], const char *name, const char *ending)
{
    snprintf(path, PATH_MAX, "%.*s/%.64s%.8s", PATH_MAX - 128, q->folder, name, ending);
}

static void segment_free(struct segment *s)
{
    if (s) {
        file_map_close(&s->lines);
        if (s->state >= 0) {
            close(s->state);
        }
        memory_free(s->starts);
        memory_free(s);
    }
}

/* Where each line begins. */
static utter_status segment_cut(struct segment *s, utter_error *error)
{
    const char *text = (const char *)s->lines.data;
    if (s->lines.size > SEGMENT_BYTES) {
        return error_set(error, UTTER_E_FILE, "%s.lines: is no part of a queue", s->name);
    }
    s->starts = memory_new(SEGMENT_LINES + 1, sizeof *s->starts);
    if (!s->starts) {
        return error_memory(error, "a part of the queue");
    }
    for (size_t at = 0; at < s->lines.size && s->n < SEGMENT_LINES;) {
        const char *end = memchr(text + at, '\n', s->lines.size - at);
        if (!end) {
            break;
        }
        at = (size_t)(end - text) + 1;
        s->starts[++s->n] = (uint32_t)at;
    }
    return UTTER_OK;
}

/* UTTER_AGAIN: it is gone by now. */
static utter_status segment_open(
    const struct folder_queue *q, struct segment **segment, const char *name, utter_error *error)
{
    char path[PATH_MAX];
    struct segment *s = memory_new(1, sizeof *s);
    if (!s) {
        return error_memory(error, "a part of the queue");
    }
    s->state = -1;
    snprintf(s->name, sizeof s->name, "%s", name);
    segment_path(q, path, name, ".state");
    s->state = open(path, O_RDWR | O_CLOEXEC);
    utter_status status = s->state >= 0     ? UTTER_OK
                          : errno == ENOENT ? UTTER_AGAIN
                                            : file_error(error, path, "open", errno);
    segment_path(q, path, name, ".lines");
    status = status ? status : file_map_open(&s->lines, path, error);
    if (status < 0 && access(path, F_OK) != 0) {
        status = UTTER_AGAIN;
    }
    status = status ? status : segment_cut(s, error);
    if (status) {
        segment_free(s);
        return status;
    }
    *segment = s;
    return UTTER_OK;
}

/* It was taken out of the queue: submitted again, or deleted. */
static bool segment_is_gone(const struct segment *s)
{
    struct stat about;
    return s->n == 0 || fstat(s->lines.descriptor, &about) != 0 || about.st_nlink == 0;
}

static void leave_segment(struct folder_queue *q)
{
    struct segment *s = q->current;
    q->current = NULL;
    if (s && s->n_claims == 0) {
        segment_free(s);
    } else if (s) {
        s->left = true;
    }
}

/* ---- Which segments there are ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void names_free(struct segment_names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        memory_free(names->names[i]);
    }
    memory_free(names->names);
    *names = (struct segment_names){0};
}

utter_status names_list(
    struct segment_names *names, const struct folder_queue *q, const char *ending, utter_error *error)
{
    *names = (struct segment_names){0};
    DIR *dir = opendir(q->folder);
    size_t room = 0;
    utter_status status = UTTER_OK;
    for (const struct dirent *entry; dir && status == UTTER_OK && (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name), m = strlen(ending);
        if (n <= m || n - m >= SEGMENT_NAME || strcmp(entry->d_name + n - m, ending) != 0 ||
            entry->d_name[0] == '.') {
            continue;
        }
        if (names->n == room) {
            size_t grown = room ? 2 * room : 64;
            char **more = memory_resize(names->names, room, grown, sizeof *more);
            names->names = more ? more : names->names;
            room = more ? grown : room;
        }
        char *name = names->n < room ? memory_string_n(entry->d_name, n - m) : NULL;
        if (name) {
            names->names[names->n++] = name;
        } else {
            status = error_memory(error, "the list of the queue");
        }
    }
    if (dir) {
        closedir(dir);
    }
    if (names->n > 0) {
        qsort(names->names, names->n, sizeof *names->names, compare_names);
    }
    return status;
}

/* ---- Claims ---- */

static utter_status read_record(const struct folder_queue *q, const struct segment *s, size_t i,
    struct record *record, utter_error *error)
{
    ssize_t n = pread(s->state, record, sizeof *record, (off_t)(i * sizeof *record));
    return n == (ssize_t)sizeof *record ? UTTER_OK
                                        : file_error(error, q->folder, "read", n < 0 ? errno : EIO);
}

static utter_status write_record(const struct folder_queue *q, const struct segment *s, size_t i,
    const struct record *record, utter_error *error)
{
    ssize_t n = pwrite(s->state, record, sizeof *record, (off_t)(i * sizeof *record));
    return n == (ssize_t)sizeof *record ? UTTER_OK
                                        : file_error(error, q->folder, "write", n < 0 ? errno : EIO);
}

/* A line of this key, whichever: they are made one after the other. */
static bool is_mine(const struct folder_queue *q, const char *key)
{
    const struct held *h = q->held;
    while (h && strncmp(h->key, key, IDENTITY_SIZE - 1) != 0) {
        h = h->next;
    }
    return h != NULL;
}

static const char *line_key(const struct segment *s, size_t i)
{
    return queue_line_key((const char *)s->lines.data + s->starts[i], s->starts[i + 1] - s->starts[i]);
}

/* Both locks are held: the line is this process's, if nobody was faster. */
static utter_status claim_record(
    struct folder_queue *q, struct segment *s, size_t i, struct claim *claim, utter_error *error)
{
    struct record record;
    utter_status status = read_record(q, s, i, &record, error);
    if (status || record.state != RECORD_WAITS) {
        return status ? status : UTTER_AGAIN;
    }
    struct held *held = memory_new(1, sizeof *held);
    if (!held) {
        return error_memory(error, "a claim");
    }
    *claim = (struct claim){.wire = (const char *)s->lines.data + s->starts[i],
        .bytes = s->starts[i + 1] - s->starts[i] - 1,
        .tries = record.tries,
        .deaths = record.deaths,
        .record = i,
        .place = held};
    memcpy(claim->key, line_key(s, i), IDENTITY_SIZE - 1);
    *held = (struct held){.segment = s, .record = i, .next = q->held};
    memcpy(held->key, claim->key, sizeof held->key);
    q->held = held;
    s->n_claims++;
    record.deaths += record.deaths < UINT8_MAX;
    return write_record(q, s, i, &record, error);
}

/* UTTER_AGAIN: not this one. */
static utter_status try_record(
    struct folder_queue *q, struct segment *s, size_t i, struct claim *claim, utter_error *error)
{
    const char *key = line_key(s, i);
    if (!key) {
        struct record none_of_ours = {.state = RECORD_FAILED};
        utter_status written = write_record(q, s, i, &none_of_ours, error);
        return written ? written : UTTER_AGAIN;
    }
    if (is_mine(q, key)) {
        return UTTER_AGAIN;
    }
    utter_status status = take_lock(q, s->state, i * sizeof(struct record), error);
    if (status) {
        return status;
    }
    status = take_lock(q, q->making, making_place(key), error);
    if (status == UTTER_OK) {
        status = claim_record(q, s, i, claim, error);
        if (status) {
            set_lock(q->making, F_UNLCK, making_place(key));
        }
    }
    if (status) {
        set_lock(s->state, F_UNLCK, i * sizeof(struct record));
    }
    return status;
}

/* From the cursor on; UTTER_AGAIN: nothing is left here. */
static utter_status claim_here(struct folder_queue *q, struct claim *claim, utter_error *error)
{
    enum { BLOCK = 1024 };
    struct record block[BLOCK];
    struct segment *s = q->current;
    while (q->cursor < s->n) {
        size_t n = min(BLOCK, s->n - q->cursor);
        ssize_t bytes = pread(s->state, block, n * sizeof *block, (off_t)(q->cursor * sizeof *block));
        if (bytes != (ssize_t)(n * sizeof *block)) {
            return file_error(error, q->folder, "read", bytes < 0 ? errno : EIO);
        }
        size_t first = q->cursor;
        for (size_t i = 0; i < n; i++) {
            q->cursor = first + i + 1;
            if (block[i].state == RECORD_WAITS) {
                q->all_ended = false;
                utter_status status = try_record(q, s, first + i, claim, error);
                if (status != UTTER_AGAIN) {
                    return status;
                }
            }
        }
    }
    return UTTER_AGAIN;
}

/* Nobody needs the lines of a segment all of which have ended; its states stay, and are counted. */
static void drop_ended(struct folder_queue *q)
{
    char path[PATH_MAX];
    if (q->all_ended && !segment_is_gone(q->current)) {
        segment_path(q, path, q->current->name, ".lines");
        unlink(path);
    }
}

/* `making` of a folder that was deleted and is there again is another file. */
static utter_status open_making(struct folder_queue *q, utter_error *error)
{
    char path[PATH_MAX];
    struct stat about;
    if (q->making >= 0 && fstat(q->making, &about) == 0 && about.st_nlink > 0) {
        return UTTER_OK;
    }
    segment_path(q, path, "making", "");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        return errno == ENOENT ? UTTER_AGAIN : file_error(error, path, "open", errno);
    }
    if (q->making >= 0) {
        close(q->making);
    }
    q->making = fd;
    return UTTER_OK;
}

static utter_status next_segment(struct folder_queue *q, bool *listed, utter_error *error)
{
    utter_status status = UTTER_OK;
    if (q->next == q->names.n) {
        names_free(&q->names);
        q->next = 0;
        status = *listed ? UTTER_AGAIN : open_making(q, error);
        status = status ? status : names_list(&q->names, q, ".lines", error);
        *listed = true;
        if (status || q->names.n == 0) {
            return status ? status : UTTER_AGAIN;
        }
    }
    status = segment_open(q, &q->current, q->names.names[q->next++], error);
    q->cursor = 0;
    q->all_ended = true;
    return status == UTTER_AGAIN ? UTTER_OK : status;
}

static utter_status folder_claim(struct queue *queue, struct claim *claim, utter_error *error)
{
    struct folder_queue *q = of(queue);
    bool listed = false;
    for (;;) {
        utter_status status = UTTER_OK;
        if (q->current && segment_is_gone(q->current)) {
            leave_segment(q);
        }
        if (q->current) {
            status = claim_here(q, claim, error);
            if (status != UTTER_AGAIN) {
                return status;
            }
            drop_ended(q);
            leave_segment(q);
        }
        if ((status = next_segment(q, &listed, error))) {
            return status;
        }
    }
}

/* The process's own end of a claim, with what the record says from now on; NULL: what it says. */
static utter_status end_claim(
    struct folder_queue *q, struct claim *claim, const struct record *record, utter_error *error)
{
    struct held *held = claim->place, **link = &q->held;
    struct segment *s = held->segment;
    utter_status status = record ? write_record(q, s, held->record, record, error) : UTTER_OK;
    set_lock(q->making, F_UNLCK, making_place(held->key));
    set_lock(s->state, F_UNLCK, held->record * sizeof *record);
    while (*link != held) {
        link = &(*link)->next;
    }
    *link = held->next;
    memory_free(held);
    if (--s->n_claims == 0 && s->left) {
        segment_free(s);
    }
    *claim = (struct claim){0};
    return status;
}

static utter_status folder_extend(struct queue *queue, struct claim *claim, utter_error *error)
{
    (void)queue, (void)claim, (void)error; /* the locks last */
    return UTTER_OK;
}

static utter_status folder_done(
    struct queue *queue, struct claim *claim, bool failed, utter_error *error)
{
    struct record record = {failed ? RECORD_FAILED : RECORD_DONE, (uint8_t)claim->tries, 0, 0};
    return end_claim(of(queue), claim, &record, error);
}

static utter_status folder_back(
    struct queue *queue, struct claim *claim, bool failed, utter_error *error)
{
    struct record record = {RECORD_WAITS, (uint8_t)min(claim->tries + failed, UINT8_MAX),
        (uint8_t)min(claim->deaths, UINT8_MAX), 0};
    return end_claim(of(queue), claim, &record, error);
}

/* ---- Counts ---- */

static utter_status count_segment(
    const struct folder_queue *q, const char *name, struct queue_counts *counts, utter_error *error)
{
    enum { BLOCK = 4096 };
    struct record block[BLOCK];
    char path[PATH_MAX];
    segment_path(q, path, name, ".state");
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? UTTER_OK : file_error(error, path, "open", errno);
    }
    uint64_t waiting = 0, n_records = 0;
    ssize_t n;
    while ((n = read(fd, block, sizeof block)) > 0) {
        for (size_t i = 0; i < (size_t)n / sizeof *block; i++) {
            waiting += block[i].state == RECORD_WAITS;
            counts->done += block[i].state == RECORD_DONE;
            counts->failed += block[i].state == RECORD_FAILED;
        }
        n_records += (size_t)n / sizeof *block;
    }
    utter_status status = n < 0 ? file_error(error, path, "read", errno) : UTTER_OK;
    segment_path(q, path, name, ".lines");
    waiting = access(path, F_OK) == 0 ? waiting : 0; /* what has no lines cannot be waited for */
    uint64_t claimed = waiting ? count_locks(fd, 0, n_records * sizeof *block) : 0;
    claimed = min(claimed, waiting);
    counts->claimed += claimed;
    counts->waiting += waiting - claimed;
    close(fd);
    return status;
}

static utter_status folder_count(struct queue *queue, struct queue_counts *counts, utter_error *error)
{
    struct folder_queue *q = of(queue);
    struct segment_names names;
    *counts = (struct queue_counts){.all = true};
    utter_status status = names_list(&names, q, ".state", error);
    for (size_t i = 0; i < names.n && status == UTTER_OK; i++) {
        status = count_segment(q, names.names[i], counts, error);
    }
    names_free(&names);
    return status;
}

/* ---- Life ---- */

static void folder_close(struct queue *queue)
{
    struct folder_queue *q = of(queue);
    while (q->held) {
        struct claim claim = {.place = q->held};
        struct record record = {0};
        bool is_read = read_record(q, q->held->segment, q->held->record, &record, NULL) == UTTER_OK;
        record.deaths -= record.deaths > 0;
        end_claim(q, &claim, is_read ? &record : NULL, NULL);
    }
    leave_segment(q);
    names_free(&q->names);
    folder_put_fini(q);
    if (q->making >= 0) {
        close(q->making);
    }
    memory_free(q);
}

static const struct queue_calls folder_calls = {folder_begin, folder_put, folder_flush, folder_claim,
    folder_extend, folder_done, folder_back, folder_count, folder_close};

utter_status queue_folder_open(struct queue **queue, const char *folder, bool make, utter_error *error)
{
    if (!make && !file_is_folder(folder)) {
        return error_set(error, UTTER_E_FILE,
            "--queue %s: there is no such folder (utter job submit makes it)", folder);
    }
    utter_status status = make ? file_make_folder(folder, error) : UTTER_OK;
    struct folder_queue *q = status ? NULL : memory_new(1, sizeof *q);
    if (!q) {
        return status ? status : error_memory(error, "a queue");
    }
    q->base.calls = &folder_calls;
    q->base.pause_s = 0.2;
    q->making = q->submitting = -1;
    if (snprintf(q->folder, sizeof q->folder, "%s", folder) >= (int)sizeof q->folder - 128) {
        status = error_set(error, UTTER_E_FILE, "--queue: the name is too long");
    }
    status = status ? status : open_making(q, error);
    *queue = &q->base;
    if (status) {
        queue_close(queue);
    }
    return status;
}
