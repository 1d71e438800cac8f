/* SPDX-License-Identifier: Apache-2.0
 * A queue of lines, as the rest sees it: a folder (queue_folder.c) or a NATS server (queue_nats.c). It is a hint: which
 * lines have a result, the results say, and a queue that was lost is made anew from the manifest. A claim is a line
 * that a worker has; whose worker dies, it waits again. */
#ifndef JOB_QUEUE_H
#define JOB_QUEUE_H

#include "base/error.h"
#include "book/identity.h"

struct queue_counts {
    uint64_t waiting, claimed;
    uint64_t done, failed; /* of all submissions that it knows of; 0 where it keeps nothing of them */
    bool all;              /* done and failed are known */
};

struct claim {
    char key[IDENTITY_SIZE];
    const char *wire; /* the line: the queue's, until the claim ends */
    size_t bytes;
    int tries;  /* that have failed */
    int deaths; /* of workers that had it, or gave it back */
    size_t record;
    void *place; /* the queue's */
};

struct queue {
    const struct queue_calls *calls;
    double pause_s; /* after a claim found nothing: asking takes time that lanes speak in */
};

struct queue_calls {
    /* A submission begins: what waits of an earlier one of this name goes; put and flush bring what is to be done. */
    utter_status (*begin)(struct queue *queue, const char *name, utter_error *error);
    utter_status (*put)(struct queue *queue, const char *key, const char *wire, utter_error *error);
    /* What was put will be there after a crash. */
    utter_status (*flush)(struct queue *queue, utter_error *error);
    /* UTTER_AGAIN: nothing waits now. */
    utter_status (*claim)(struct queue *queue, struct claim *claim, utter_error *error);
    /* The claim is still being worked on: asked for every few seconds. */
    utter_status (*extend)(struct queue *queue, struct claim *claim, utter_error *error);
    /* A claim ends: there is a result, good or `failed`. */
    utter_status (*done)(struct queue *queue, struct claim *claim, bool failed, utter_error *error);
    /* A claim ends: the line waits again at once; `failed` counts a try. */
    utter_status (*back)(struct queue *queue, struct claim *claim, bool failed, utter_error *error);
    /* UTTER_AGAIN: the queue cannot be asked now; *error says why. */
    utter_status (*count)(struct queue *queue, struct queue_counts *counts, utter_error *error);
    void (*close)(struct queue *queue);
};

/* A folder, or nats://HOST[:PORT][/NAME]. `make`: for submissions, which make what there is not. */
utter_status queue_open(struct queue **queue, const char *address, bool make, utter_error *error);
void queue_close(struct queue **queue); /* accepts NULL; claims that are left wait again */

/* The key that a waiting line begins with, which names files and objects; NULL where it is none, as others may write
 * into a queue too. */
const char *queue_line_key(const char *wire, size_t bytes);

utter_status queue_folder_open(struct queue **queue, const char *folder, bool make, utter_error *error);
utter_status queue_nats_open(struct queue **queue, const char *url, bool make, utter_error *error);

#endif
