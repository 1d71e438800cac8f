/* SPDX-License-Identifier: Apache-2.0
 * Streams and descriptors: what is read and written, and who waits for it. */
#include "tests/sim/kernel_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct kernel kernel;

void kernel_begin(void)
{
    kernel = (struct kernel){.run_worker = kernel.run_worker, .next_pid = 70000};
}

void kernel_end(void)
{
    for (int i = 0; i < KERNEL_FILES; i++) {
        if (kernel.files[i]) {
            world_fail("descriptor %d was never closed", KERNEL_FIRST + i);
        }
    }
    for (int i = 0; i < KERNEL_WORKERS; i++) {
        if (task_count() != 0 || kernel.workers[i]) {
            world_fail("a thread or a process is left behind");
        }
    }
    if (kernel.n_ends != 0) {
        world_fail("%d ends of streams are left", kernel.n_ends);
    }
}

void kernel_on_idle(void (*look)(void))
{
    kernel.look = look;
}

void kernel_set_costs(double call_s, double kib_s)
{
    kernel.call_s = call_s;
    kernel.kib_s = kib_s;
}

/* ---- Calls that fail ---- */

void kernel_fail_calls(double of_one)
{
    kernel.fails = of_one;
    kernel.fails_until = 0;
}

void kernel_count_failed(struct failed_calls *all)
{
    for (int i = 0; i < N_FAILING; i++) {
        all->n[i] += kernel.n_failed[i];
    }
    all->n_lasting += kernel.n_lasting;
}

bool call_fails(enum failing what)
{
    if (kernel.fails <= 0 || task_owner()) {
        return false;
    }
    bool lasts = kernel.fails_now == what && world_now_ns() < kernel.fails_until;
    if (!lasts && !draw_chance(kernel.fails)) {
        return false;
    }
    if (!lasts) {
        kernel.n_failed[what]++;
    }
    if (!lasts && draw_chance(0.2)) {
        kernel.fails_now = what;
        kernel.fails_until = world_now_ns() + (int64_t)(1e9 * draw_unit());
        kernel.n_lasting++;
    }
    return true;
}

/* ---- Bytes ---- */

static void bytes_put(struct bytes *b, const uint8_t *from, size_t n)
{
    if (b->at > 0 && (b->at == b->n || b->n + n > b->room)) {
        memmove(b->bytes, b->bytes + b->at, b->n - b->at);
        b->n -= b->at;
        b->at = 0;
    }
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n);
        b->bytes = world_grow(b->bytes, b->room);
    }
    memcpy(b->bytes + b->n, from, n);
    b->n += n;
}

static size_t bytes_take(struct bytes *b, uint8_t *to, size_t n)
{
    size_t have = b->n - b->at;
    n = n < have ? n : have;
    if (n > 0) {
        memcpy(to, b->bytes + b->at, n);
        b->at += n;
    }
    return n;
}

size_t end_waiting(const struct end *e)
{
    return e->in.n - e->in.at;
}

/* ---- Ends ---- */

struct end *end_new(void)
{
    struct end *e = world_new(sizeof *e);
    e->low_water = 1;
    e->most = STREAM_BYTES;
    kernel.n_ends++;
    return e;
}

void ends_join(struct end *a, struct end *b)
{
    a->peer = b;
    b->peer = a;
}

static bool can_read(const struct end *e)
{
    return e->listens ? kernel.n_pending > 0 : e->ended || end_waiting(e) >= (size_t)e->low_water;
}

size_t end_room(const struct end *e)
{
    const struct end *to = e->peer;
    return !to ? 0 : end_waiting(to) < to->most ? to->most - end_waiting(to) : 0;
}

uint32_t end_ready(const struct end *e)
{
    return (can_read(e) ? EPOLLIN : 0u) |
           (!e->listens && (!e->peer || end_room(e) > 0) ? EPOLLOUT : 0u);
}

static void wake_all(struct end *e)
{
    for (int i = 0; i < MOST_WAITING; i++) {
        task_wake(e->waiting[i]);
    }
}

/* Something is so now that was not before. */
void end_touch(struct end *e)
{
    if (e->asked && !e->listed && (end_ready(e) & e->asked)) {
        e->listed = true;
        kernel.listed[kernel.n_listed++] = e;
        task_wake(kernel.poller);
    }
    wake_all(e);
}

void end_wait(struct end *e, int64_t at_ns)
{
    int i = 0;
    while (i < MOST_WAITING && e->waiting[i]) {
        i++;
    }
    if (i == MOST_WAITING) {
        world_fail("too many wait for one stream");
    }
    e->waiting[i] = task_self();
    at_ns < 0 ? task_wait() : task_wait_until(at_ns);
    e->waiting[i] = NULL;
}

static void unlist(struct end *e)
{
    for (int i = 0; e->listed && i < kernel.n_listed; i++) {
        if (kernel.listed[i] == e) {
            memmove(&kernel.listed[i], &kernel.listed[i + 1],
                sizeof *kernel.listed * (size_t)(kernel.n_listed - i - 1));
            kernel.n_listed--;
            e->listed = false;
        }
    }
}

/* The other one sees that no more comes. */
static void tell_end(struct end *e, bool reset)
{
    struct end *peer = e->peer;
    if (!peer) {
        return;
    }
    e->peer = peer->peer = NULL;
    peer->ended = true;
    peer->reset = reset;
    if (peer->watch) {
        peer->watch->came(peer->user);
    } else {
        end_touch(peer);
    }
}

void end_excuse(struct end *e)
{
    e->lost = true;
    if (e->peer) {
        e->peer->lost = true;
    }
}

void end_lose(struct end *e)
{
    end_excuse(e);
    e->ended = e->reset = true;
    tell_end(e, true);
}

void end_cut(struct end *e)
{
    tell_end(e, false);
    e->ended = true;
    e->in.at = e->in.n;
    wake_all(e);
}

void end_free(struct end *e, bool reset)
{
    unlist(e);
    tell_end(e, reset);
    free(e->in.bytes);
    kernel.n_unread -= e->unread;
    free(e);
    kernel.n_ends--;
}

size_t end_put(struct end *e, const uint8_t *bytes, size_t n)
{
    struct end *to = e->peer;
    size_t room = end_room(e);
    n = n < room ? n : room;
    if (n > 0) {
        bytes_put(&to->in, bytes, n);
        world_note(n);
        world_note((uint64_t)world_now_ns());
        to->watch ? to->watch->came(to->user) : end_touch(to);
    }
    return n;
}

size_t end_get(struct end *e, uint8_t *bytes, size_t n)
{
    bool was_full = e->peer && end_room(e->peer) == 0;
    size_t got = bytes_take(&e->in, bytes, n);
    struct end *peer = e->peer;
    if (peer && got > 0 && !peer->watch) {
        end_touch(peer);
    } else if (was_full && got > 0) {
        peer->watch->room(peer->user);
    }
    return got;
}

/* ---- Clients ---- */

struct end *kernel_connect(
    const struct end_watch *watch, void *user, uint32_t address, struct end **theirs)
{
    const struct end *listening = kernel.listening;
    if (!listening || listening->shuts_out || kernel.n_pending == MOST_PENDING) {
        return NULL;
    }
    struct end *ours = end_new();
    *theirs = end_new();
    ends_join(ours, *theirs);
    ours->watch = watch;
    ours->user = user;
    (*theirs)->address = address;
    return ours;
}

void kernel_end_handshake(struct end *theirs)
{
    if (!kernel.listening || kernel.n_pending == MOST_PENDING) {
        end_free(theirs, true);
        return;
    }
    kernel.pending[kernel.n_pending++] = theirs;
    end_touch(kernel.listening);
}

size_t end_take(struct end *e, uint8_t *bytes, size_t n, bool *ended)
{
    size_t got = end_get(e, bytes, n);
    *ended = e->ended && end_waiting(e) == 0;
    return got;
}

size_t end_send(struct end *e, const void *bytes, size_t n)
{
    return e->shut ? 0 : end_put(e, bytes, n);
}

bool end_is_cut(const struct end *e)
{
    return !e->peer;
}

bool end_is_lost(const struct end *e)
{
    return e->lost;
}

bool end_is_unwatched(const struct end *e)
{
    return e->peer && e->peer->unwatched;
}

void end_shut(struct end *e)
{
    e->shut = true;
    if (e->peer) {
        e->peer->ended = true;
        end_touch(e->peer);
    }
}

void end_close(struct end *e, bool reset)
{
    end_free(e, reset);
}

/* ---- Descriptors ---- */

int file_new(struct end *e)
{
    for (int i = 0; i < KERNEL_FILES; i++) {
        if (!kernel.files[i]) {
            kernel.files[i] = e;
            e->n_files++;
            return KERNEL_FIRST + i;
        }
    }
    errno = EMFILE;
    return -1;
}

struct end *file_end(int file)
{
    return file >= KERNEL_FIRST && file < KERNEL_FIRST + KERNEL_FILES
               ? kernel.files[file - KERNEL_FIRST]
               : NULL;
}

void file_close(int file)
{
    struct end *e = file_end(file);
    kernel.files[file - KERNEL_FIRST] = NULL;
    if (--e->n_files > 0) {
        return;
    }
    if (kernel.listening == e) {
        kernel.listening = NULL;
        while (kernel.n_pending > 0) {
            struct end *waiting = kernel.pending[--kernel.n_pending];
            if (kernel.refuses) { /* nobody could tell it anything */
                end_excuse(waiting);
            }
            end_free(waiting, true);
        }
    }
    end_free(e, end_waiting(e) > 0);
}

void end_is_of(struct end *e, void *user)
{
    e->user = user;
}
