/* SPDX-License-Identifier: Apache-2.0
 * What fits into the socket goes there at once; a thread sends the rest. The buffers stay while any lane can step:
 * beside a GPU's driver, which changes the process's memory map all the time, new pages can take milliseconds. */
#include "server/worker/outbox.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/memory.h"

/* Bytes: three steps of 200 lanes. Also what a buffer keeps, which a long sound that comes at once makes many
 * times as long. */
enum { LIMIT_WAITING = 4 << 20 };

struct outbox {
    int socket;
    pthread_t thread;
    bool has_thread, has_begun; /* has_begun: something was sent */
    pthread_mutex_t lock;       /* of what follows */
    pthread_cond_t changed;
    struct wire_out waiting, sending; /* sending: the thread's while it holds bytes */
    bool closing, failed;
};

/* Returns how many bytes are sent, fewer than n when the socket is full (with MSG_DONTWAIT) or *gone. */
static size_t send_bytes(int socket, const uint8_t *bytes, size_t n, int flags, bool *gone)
{
    size_t at = 0;
    while (at < n && !*gone) {
        ssize_t sent = send(socket, bytes + at, n - at, flags | MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            break;
        }
        *gone = sent < 0 && errno != EINTR;
        at += sent > 0 ? (size_t)sent : 0;
    }
    return at;
}

static void empty_buffer(struct wire_out *out)
{
    out->n = 0;
    if (out->room > LIMIT_WAITING) {
        wire_fini(out);
    }
}

static void *work(void *user)
{
    struct outbox *box = user;
    pthread_mutex_lock(&box->lock);
    while (true) {
        while (box->waiting.n == 0 && !box->closing) {
            pthread_cond_wait(&box->changed, &box->lock);
        }
        if (box->waiting.n == 0 || box->failed) {
            break;
        }
        struct wire_out empty = box->sending;
        box->sending = box->waiting;
        box->waiting = empty;
        pthread_mutex_unlock(&box->lock);
        bool gone = false;
        send_bytes(box->socket, box->sending.bytes, box->sending.n, 0, &gone);
        pthread_mutex_lock(&box->lock);
        empty_buffer(&box->sending);
        box->failed = box->failed || gone;
        pthread_cond_broadcast(&box->changed);
    }
    pthread_mutex_unlock(&box->lock);
    return NULL;
}

struct outbox *outbox_new(int socket)
{
    struct outbox *box = memory_new(1, sizeof *box);
    if (box) {
        box->socket = socket;
        pthread_mutex_init(&box->lock, NULL);
        pthread_cond_init(&box->changed, NULL);
    }
    return box;
}

static void make_thread(struct outbox *box)
{
    box->has_thread = box->has_thread || pthread_create(&box->thread, NULL, work, box) == 0;
}

/* Nothing is on its way; locked. */
static bool is_idle(const struct outbox *box)
{
    return box->waiting.n == 0 && box->sending.n == 0;
}

/* The thread's part of what has come; locked. */
static void leave_to_thread(struct outbox *box, const uint8_t *bytes, size_t n)
{
    make_thread(box);
    if (!box->has_thread) {
        send_bytes(box->socket, bytes, n, 0, &box->failed);
        return;
    }
    while (box->waiting.n > LIMIT_WAITING && !box->failed) {
        pthread_cond_wait(&box->changed, &box->lock);
    }
    wire_put(&box->waiting, bytes, n);
    pthread_cond_broadcast(&box->changed);
}

bool outbox_send(struct outbox *box, struct wire_out *out)
{
    /* With the first message, before anybody is spoken to; not in outbox_new, as the cage, which is closed before that
     * message, holds only for threads that are made in it. */
    if (!box->has_begun) {
        box->has_begun = true;
        make_thread(box);
    }
    pthread_mutex_lock(&box->lock);
    bool idle = is_idle(box);
    size_t at = 0; /* what has failed ends within a message */
    if (idle && !out->failed) {
        at = send_bytes(box->socket, out->bytes, out->n, MSG_DONTWAIT, &box->failed);
    }
    if (!out->failed && at < out->n && !box->failed) {
        leave_to_thread(box, out->bytes + at, out->n - at);
    }
    bool good = !box->failed && !box->waiting.failed && !out->failed;
    pthread_mutex_unlock(&box->lock);
    empty_buffer(out);
    return good;
}

void outbox_rest(struct outbox *box)
{
    pthread_mutex_lock(&box->lock);
    if (is_idle(box)) {
        wire_fini(&box->waiting);
        wire_fini(&box->sending);
    }
    pthread_mutex_unlock(&box->lock);
}

void outbox_free(struct outbox *box)
{
    if (!box) {
        return;
    }
    if (box->has_thread) {
        pthread_mutex_lock(&box->lock);
        box->closing = true;
        pthread_cond_broadcast(&box->changed);
        pthread_mutex_unlock(&box->lock);
        pthread_join(box->thread, NULL);
    }
    pthread_cond_destroy(&box->changed);
    pthread_mutex_destroy(&box->lock);
    wire_fini(&box->waiting);
    wire_fini(&box->sending);
    memory_free(box);
}
