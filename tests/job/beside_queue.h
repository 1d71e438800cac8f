/* SPDX-License-Identifier: Apache-2.0
 * Lines in a queue that is a folder, for tests of it: numbered ones go in and come out. */
#ifndef TESTS_JOB_BESIDE_QUEUE_H
#define TESTS_JOB_BESIDE_QUEUE_H

#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "job/queue.h"
#include "job/queue_folder.h"

static const char name[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/* A key that begins with the number, and its line. */
static inline void make_line(char key[IDENTITY_SIZE], char wire[256], unsigned number, const char *rest)
{
    snprintf(key, IDENTITY_SIZE, "%015x%049x", number, number);
    snprintf(wire, 256, "{\"key\":\"%s\",\"text\":\"%s\"}", key, rest);
}

static inline struct queue *open_queue(const char *folder, bool make)
{
    struct queue *queue;
    utter_error error;
    assert_int_equal(queue_open(&queue, support_path(folder), make, &error), UTTER_OK);
    return queue;
}

static inline void put(struct queue *queue, unsigned number)
{
    char key[IDENTITY_SIZE], wire[256];
    make_line(key, wire, number, "Hello.");
    assert_int_equal(queue->calls->put(queue, key, wire, NULL), UTTER_OK);
}

/* Lines first .. last of a submission. */
static inline struct queue *submit(const char *folder, unsigned first, unsigned last)
{
    struct queue *queue = open_queue(folder, true);
    assert_int_equal(queue->calls->begin(queue, name, NULL), UTTER_OK);
    for (unsigned i = first; i <= last; i++) {
        put(queue, i);
    }
    assert_int_equal(queue->calls->flush(queue, NULL), UTTER_OK);
    return queue;
}

static inline utter_status claim(struct queue *queue, struct claim *claimed)
{
    utter_error error;
    return queue->calls->claim(queue, claimed, &error);
}

static inline void assert_claimed(struct queue *queue, struct claim *claimed, unsigned number)
{
    char key[IDENTITY_SIZE], wire[256];
    make_line(key, wire, number, "Hello.");
    assert_int_equal(claim(queue, claimed), UTTER_OK);
    assert_string_equal(claimed->key, key);
    assert_int_equal(claimed->bytes, strlen(wire));
    assert_memory_equal(claimed->wire, wire, claimed->bytes);
}

static inline void assert_counts(
    struct queue *queue, uint64_t waiting, uint64_t claimed, uint64_t done, uint64_t failed)
{
    struct queue_counts counts;
    assert_int_equal(queue->calls->count(queue, &counts, NULL), UTTER_OK);
    assert_int_equal(counts.waiting, waiting);
    assert_int_equal(counts.claimed, claimed);
    assert_int_equal(counts.done, done);
    assert_int_equal(counts.failed, failed);
    assert_true(counts.all);
}

/* The one file of the folder that has this ending. */
static inline const char *only_file(const char *folder, const char *ending)
{
    struct folder_queue q = {0};
    struct segment_names names;
    snprintf(q.folder, sizeof q.folder, "%s", support_path(folder));
    assert_int_equal(names_list(&names, &q, ending, NULL), UTTER_OK);
    assert_int_equal(names.n, 1);
    char file[300];
    snprintf(file, sizeof file, "%s/%s%s", folder, names.names[0], ending);
    names_free(&names);
    return support_path(file);
}

#endif
