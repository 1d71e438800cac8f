/* SPDX-License-Identifier: Apache-2.0
 * Lines come into a queue that is a folder: a segment is written whole, its states before its lines, so that who sees
 * the lines has both. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "job/queue_folder.h"

/* TIME-NAME-NUMBER: whether it is a segment of this submission. */
static bool is_of(const char *segment, const char *name)
{
    const char *dash = strchr(segment, '-');
    size_t n = strlen(name);
    return dash && strncmp(dash + 1, name, n) == 0 && dash[1 + n] == '-';
}

static utter_status drop_segments(
    struct folder_queue *q, const char *name, const char *ending, utter_error *error)
{
    struct segment_names names;
    utter_status status = names_list(&names, q, ending, error);
    for (size_t i = 0; i < names.n && status == UTTER_OK; i++) {
        char path[PATH_MAX];
        segment_path(q, path, names.names[i], ending);
        if (is_of(names.names[i], name) && unlink(path) != 0 && errno != ENOENT) {
            status = file_error(error, path, "remove", errno);
        }
    }
    names_free(&names);
    return status;
}

utter_status folder_begin(struct queue *queue, const char *name, utter_error *error)
{
    struct folder_queue *q = (struct folder_queue *)queue;
    char path[PATH_MAX];
    struct timespec now;
    segment_path(q, path, "submitting", "");
    q->submitting = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (q->submitting < 0) {
        return file_error(error, path, "open", errno);
    }
    if (flock(q->submitting, LOCK_EX | LOCK_NB) != 0) {
        return error_set(error, UTTER_E_IO,
            "%s: another utter job submit writes there (wait for it, or end it)", q->folder);
    }
    file_out_sweep(q->folder);
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(q->submission, sizeof q->submission, "%010lld%09ld-%.16s", (long long)now.tv_sec,
        now.tv_nsec, name);
    q->lines = memory_new(SEGMENT_BYTES, 1);
    q->records = memory_new(SEGMENT_LINES, sizeof *q->records);
    if (!q->lines || !q->records) {
        return error_memory(error, "a part of the queue");
    }
    char first[17];
    snprintf(first, sizeof first, "%.16s", name);
    utter_status status = drop_segments(q, first, ".state", error);
    return status ? status : drop_segments(q, first, ".lines", error);
}

static utter_status write_file(const struct folder_queue *q, const char *name, const char *ending,
    const void *data, size_t bytes, utter_error *error)
{
    char path[PATH_MAX];
    struct file_out *out;
    segment_path(q, path, name, ending);
    utter_status status = file_out_open(&out, path, error);
    if (status) {
        return status;
    }
    status = file_out_write(out, data, bytes, error);
    if (status) {
        file_out_abort(&out);
    }
    return status ? status : file_out_close(&out, error);
}

utter_status folder_flush(struct queue *queue, utter_error *error)
{
    struct folder_queue *q = (struct folder_queue *)queue;
    char name[SEGMENT_NAME + 16];
    if (q->n_records == 0) {
        return UTTER_OK;
    }
    snprintf(name, sizeof name, "%s-%06u", q->submission, q->number++);
    utter_status status =
        write_file(q, name, ".state", q->records, q->n_records * sizeof *q->records, error);
    status = status ? status : write_file(q, name, ".lines", q->lines, q->n_bytes, error);
    if (status) {
        char path[PATH_MAX];
        segment_path(q, path, name, ".state");
        unlink(path);
    }
    q->n_bytes = 0;
    q->n_records = 0;
    return status;
}

utter_status folder_put(struct queue *queue, const char *key, const char *wire, utter_error *error)
{
    struct folder_queue *q = (struct folder_queue *)queue;
    size_t n = strlen(wire);
    (void)key; /* the line begins with it */
    utter_status status = UTTER_OK;
    if (q->n_records == SEGMENT_LINES || q->n_bytes + n + 1 > SEGMENT_BYTES) {
        status = folder_flush(queue, error);
    }
    if (status == UTTER_OK) {
        memcpy(q->lines + q->n_bytes, wire, n);
        q->lines[q->n_bytes + n] = '\n';
        q->n_bytes += n + 1;
        q->records[q->n_records++] = (struct record){RECORD_WAITS, 0, 0, 0};
    }
    return status;
}

void folder_put_fini(struct folder_queue *q)
{
    if (q->submitting >= 0) {
        close(q->submitting);
    }
    memory_free(q->lines);
    memory_free(q->records);
}
