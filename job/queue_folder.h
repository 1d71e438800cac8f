/* SPDX-License-Identifier: Apache-2.0
 * What the two files of a queue in a folder share: queue_folder.c takes lines out, queue_put.c brings them in. */
#ifndef JOB_QUEUE_FOLDER_H
#define JOB_QUEUE_FOLDER_H

#include <limits.h>

#include "base/file.h"
#include "job/queue.h"

enum { SEGMENT_LINES = 32768, SEGMENT_BYTES = 32 << 20, SEGMENT_NAME = 64 };

/* Of a line, in a .state. */
struct record {
    uint8_t state, tries, deaths, unused;
};
enum { RECORD_WAITS = ' ', RECORD_DONE = 'd', RECORD_FAILED = 'f' };

struct segment {
    char name[SEGMENT_NAME];
    struct file_map lines;
    uint32_t *starts; /* [n + 1] of each line */
    size_t n;
    int state; /* the file that locks are held on */
    size_t n_claims;
    bool left; /* no longer the queue's current one: it goes with its last claim */
};

/* A claim of this process, by which it knows its own: locks of one file do not keep their owner out. */
struct held {
    struct segment *segment;
    size_t record;
    char key[IDENTITY_SIZE];
    struct held *next;
};

struct segment_names {
    char **names;
    size_t n;
};

struct folder_queue {
    struct queue base;
    char folder[PATH_MAX];
    int making;
    /* Lines are taken from `current` at `cursor`; names[next] comes after it. */
    struct segment_names names;
    size_t next;
    struct segment *current;
    size_t cursor;
    bool all_ended; /* of what was seen of `current`, which is all of it behind its end */
    struct held *held;
    /* Of a submission. */
    int submitting; /* a lock */
    char submission[SEGMENT_NAME];
    unsigned number;
    char *lines; /* [n_bytes] of the segment that grows */
    struct record *records;
    size_t n_bytes, room, n_records;
};

void segment_path(
    const struct folder_queue *queue, char path[PATH_MAX], const char *name, const char *ending);
/* The names of the files with this ending, in order, without it. A folder that is gone has none. */
utter_status names_list(struct segment_names *names, const struct folder_queue *queue,
    const char *ending, utter_error *error);
void names_free(struct segment_names *names);

utter_status folder_begin(struct queue *queue, const char *name, utter_error *error);
utter_status folder_put(struct queue *queue, const char *key, const char *wire, utter_error *error);
utter_status folder_flush(struct queue *queue, utter_error *error);
void folder_put_fini(struct folder_queue *queue);

#endif
