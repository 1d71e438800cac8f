/* SPDX-License-Identifier: Apache-2.0
 * What the worker says arrives whole and in order, whether or not somebody reads just then. */
#include "tests/support.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/worker/outbox.h"

enum { PIECE = 10007, SLOW = 300 }; /* bytes; pieces that come while nobody reads: 3 MB */

/* Piece i: its bytes count on from those of the one before. */
static void put_piece(struct wire_out *out, int i, size_t n)
{
    uint8_t bytes[PIECE];
    for (size_t k = 0; k < n; k++) {
        bytes[k] = (uint8_t)(((size_t)i * PIECE + k) % 251);
    }
    wire_put(out, bytes, n);
}

struct reader {
    int socket;
    size_t n;
    bool good;
};

static void *read_all(void *user)
{
    struct reader *r = user;
    uint8_t bytes[5000];
    r->good = true;
    for (ssize_t n; (n = recv(r->socket, bytes, sizeof bytes, 0)) > 0; r->n += (size_t)n) {
        for (size_t k = 0; k < (size_t)n; k++) {
            r->good = r->good && bytes[k] == (uint8_t)((r->n + k) % 251);
        }
    }
    return NULL;
}

static void nobody_waits_for_the_reader(void **state)
{
    int ends[2];
    struct wire_out out = {0};
    pthread_t thread;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct outbox *box = outbox_new(ends[0]);
    assert_non_null(box);
    for (int i = 0; i < SLOW; i++) { /* would never return if it waited */
        put_piece(&out, i, PIECE);
        assert_true(outbox_send(box, &out));
        assert_int_equal(out.n, 0);
    }
    struct reader reader = {.socket = ends[1]};
    assert_int_equal(pthread_create(&thread, NULL, read_all, &reader), 0);
    for (int i = SLOW; i < 4 * SLOW; i++) { /* more than is kept: now it does */
        put_piece(&out, i, PIECE);
        assert_true(outbox_send(box, &out));
        if (i % 100 == 0) {
            usleep(20000); /* empty again: the next goes past the thread */
        }
    }
    put_piece(&out, 4 * SLOW, 1);
    assert_true(outbox_send(box, &out));
    outbox_free(box);
    close(ends[0]);
    pthread_join(thread, NULL);
    assert_int_equal(reader.n, (size_t)4 * SLOW * PIECE + 1);
    assert_true(reader.good);
    close(ends[1]);
    wire_fini(&out);
}

/* Whoever goes on speaking does not keep what one long sound took. */
static void a_long_message_leaves_no_room_behind(void **state)
{
    enum { LONG = 16 << 20, LITTLE = 1 << 20 };
    int ends[2];
    struct wire_out out = {0};
    pthread_t thread;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct outbox *box = outbox_new(ends[0]);
    for (int i = 0; i < LITTLE / PIECE; i++) {
        put_piece(&out, i, PIECE);
    }
    size_t room = out.room;
    assert_true(outbox_send(box, &out));
    assert_int_equal(out.room, room); /* as the next step needs as much again */
    for (int i = LITTLE / PIECE; i < LONG / PIECE; i++) {
        put_piece(&out, i, PIECE);
    }
    assert_true(out.room >= LONG && outbox_send(box, &out));
    assert_true(out.room <= LONG / 4);
    struct reader reader = {.socket = ends[1]};
    assert_int_equal(pthread_create(&thread, NULL, read_all, &reader), 0);
    outbox_free(box);
    close(ends[0]);
    pthread_join(thread, NULL);
    assert_true(reader.good && reader.n == (size_t)LONG / PIECE * PIECE);
    close(ends[1]);
    wire_fini(&out);
}

/* What is on its way is not given back: it comes whole. */
static void it_rests_only_when_all_has_gone(void **state)
{
    int ends[2];
    struct wire_out out = {0};
    pthread_t thread;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct outbox *box = outbox_new(ends[0]);
    for (int i = 0; i < SLOW; i++) {
        put_piece(&out, i, PIECE);
        assert_true(outbox_send(box, &out));
        outbox_rest(box);
    }
    struct reader reader = {.socket = ends[1]};
    assert_int_equal(pthread_create(&thread, NULL, read_all, &reader), 0);
    outbox_free(box);
    close(ends[0]);
    pthread_join(thread, NULL);
    assert_true(reader.good && reader.n == (size_t)SLOW * PIECE);
    close(ends[1]);
    wire_fini(&out);
}

static int n_refused, n_made; /* threads that the system does not make, and those that it does */

int __real_pthread_create(
    pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *user);
int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *user);

int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *user)
{
    n_made += n_refused == 0;
    return n_refused > 0 ? (n_refused--, EAGAIN) : __real_pthread_create(thread, how, work, user);
}

/* Without its thread it sends by itself, however long that takes; and makes the thread as soon as it can. */
static void a_thread_that_cannot_be_made_is_tried_again(void **state)
{
    (void)state;
    for (int n = 1; n <= 2; n++) {
        int ends[2];
        struct wire_out out = {0};
        struct reader reader;
        pthread_t thread;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        struct outbox *box = outbox_new(ends[0]);
        reader = (struct reader){.socket = ends[1]};
        if (n == 2) {
            assert_int_equal(pthread_create(&thread, NULL, read_all, &reader), 0);
        }
        n_refused = n;
        for (int i = 0; i < SLOW; i++) {
            put_piece(&out, i, PIECE);
        }
        assert_true(
            outbox_send(box, &out)); /* more than a socket holds, which the thread or a reader takes */
        assert_int_equal(n_refused, 0);
        if (n == 1) {
            assert_int_equal(pthread_create(&thread, NULL, read_all, &reader), 0);
        }
        outbox_free(box);
        close(ends[0]);
        pthread_join(thread, NULL);
        assert_true(reader.good && reader.n == (size_t)SLOW * PIECE);
        close(ends[1]);
        wire_fini(&out);
    }
}

static void all_messages_have_one_thread(void **state)
{
    int ends[2], before = n_made;
    struct wire_out out = {0};
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct outbox *box = outbox_new(ends[0]);
    assert_int_equal(n_made, before);
    for (int i = 0; i < 3; i++) {
        put_piece(&out, i, 10);
        assert_true(outbox_send(box, &out));
        assert_int_equal(n_made, before + 1);
    }
    outbox_free(box);
    close(ends[0]), close(ends[1]);
    wire_fini(&out);
}

static void who_is_gone_is_noticed(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) { /* before anything was said; while the thread sends */
        int ends[2], i = 0;
        struct wire_out out = {0};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        struct outbox *box = outbox_new(ends[0]);
        for (; full && i < SLOW; i++) {
            put_piece(&out, i, PIECE);
            assert_true(outbox_send(box, &out));
        }
        close(ends[1]);
        do {
            assert_true(i++ < 2 * SLOW);
            usleep(1000);
            put_piece(&out, i, PIECE);
        } while (outbox_send(box, &out));
        put_piece(&out, i, 1);
        assert_false(outbox_send(box, &out));
        outbox_free(box);
        close(ends[0]);
        wire_fini(&out);
    }
}

static void a_message_that_found_no_memory_is_told(void **state)
{
    int ends[2];
    struct wire_out out = {.failed = true};
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct outbox *box = outbox_new(ends[0]);
    assert_false(outbox_send(box, &out));
    outbox_free(box);
    outbox_free(NULL);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_for_the_reader),
        cmocka_unit_test(a_long_message_leaves_no_room_behind),
        cmocka_unit_test(it_rests_only_when_all_has_gone),
        cmocka_unit_test(a_thread_that_cannot_be_made_is_tried_again),
        cmocka_unit_test(all_messages_have_one_thread),
        cmocka_unit_test(who_is_gone_is_noticed),
        cmocka_unit_test(a_message_that_found_no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
