/* SPDX-License-Identifier: Apache-2.0
 * Which speeches get a lane when the worker keeps up with one. The worker is this program once more: it says that it
 * is ready, and gives two seconds of sound for each text "sound". */
#include "tests/support.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/link.h"
#include "server/speech.h"

enum { RATE = 24000, FRAME = 1920, SOUND_S = 2, LANES = 4 };

/* ---- The worker ---- */

static void answer(int socket, const struct wire_message *m)
{
    static float pcm[SOUND_S * RATE];
    struct wire_out out = {0};
    if (m->kind == WIRE_HELLO) {
        struct wire_beat beat = {0, 0, 1, 0};
        struct wire_ready ready = {.version = WIRE_VERSION,
            .kind_name = "voice_design",
            .size_name = "",
            .device = "",
            .kernels = "",
            .weights = "",
            .sample_rate = RATE,
            .frame_samples = FRAME,
            .lanes = LANES};
        wire_put_beat(&out, &beat);
        wire_put_ready(&out, &ready);
    } else if (m->kind == WIRE_TEXT && m->bytes == 5) {
        wire_message(&out, WIRE_PCM, m->id, pcm, sizeof pcm);
    }
    for (size_t at = 0; at < out.n;) {
        ssize_t n = send(socket, out.bytes + at, out.n - at, MSG_NOSIGNAL);
        if (n <= 0) {
            exit(1);
        }
        at += (size_t)n;
    }
    wire_fini(&out);
}

static int worker(int socket)
{
    static uint8_t in[1 << 16];
    size_t n_in = 0, used;
    struct wire_message m;
    for (ssize_t n; (n = recv(socket, in + n_in, sizeof in - n_in, 0)) > 0;) {
        n_in += (size_t)n;
        while (wire_read(&m, in, n_in, &used) == WIRE_MESSAGE) {
            answer(socket, &m);
            n_in -= used;
            memmove(in, in + used, n_in);
        }
    }
    return 0;
}

/* ---- The front end ---- */

static void on_bytes(void *user, const void *bytes, size_t n)
{
    (void)bytes;
    *(size_t *)user += n;
}

static void on_end(void *user, const struct speech_end *end)
{
    (void)user, (void)end;
}

static const struct speech_sink sink = {on_bytes, on_end};

/* Lets the loop run for so long, and lanes that have come free be given away. */
static void run_for(struct server *s, double seconds)
{
    double end = server_now() + seconds;
    while (server_now() < end) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
    speech_dispatch(s);
    event_base_loop(s->base, EVLOOP_NONBLOCK);
}

static struct speech *start(struct server *s, size_t *n_bytes)
{
    struct fields fields = {.sound = {ENCODE_PCM, 1, 1, 0}, .max_frames = 100};
    struct refusal refusal;
    struct speech *p =
        speech_start(s, &fields, METRICS_SPEECH, server_now(), NULL, &sink, n_bytes, &refusal);
    assert_non_null(p);
    speech_text(p, "wait", 4);
    return p;
}

static void who_waited_long_counts_like_others(void **state)
{
    const struct serve_options options = {
        .model = "", .device = "cpu", .lanes = LANES, .queue = 8, .paced = true, .quiet = true};
    struct server s = {.options = &options, .base = event_base_new(), .was_ready = true};
    struct speech *speeches[3];
    size_t n_bytes[3] = {0};
    (void)state;
    assert_int_equal(event_base_priority_init(s.base, SERVER_PRIORITIES), 0);
    TAILQ_INIT(&s.conns);
    TAILQ_INIT(&s.queued);
    TAILQ_INIT(&s.running);
    assert_true(link_open(&s));
    for (int i = 0; i < 500 && !s.is_ready; i++) {
        run_for(&s, 0.01);
    }
    assert_true(s.is_ready);
    assert_int_equal(s.capacity, 1);
    for (int i = 0; i < 3; i++) {
        speeches[i] = start(&s, &n_bytes[i]);
    }
    speech_finish(speeches[0]);
    assert_int_equal(s.n_running, 1);
    assert_int_equal(s.n_queued, 2);
    /* The texts of those that wait get old, as those of a session between two tokens. */
    run_for(&s, 1.2);
    assert_int_equal(s.n_running, 1);
    /* The first has sound in hand: a place for one more, not for two. */
    speech_text(speeches[0], "sound", 5);
    for (int i = 0; i < 500 && n_bytes[0] == 0; i++) {
        run_for(&s, 0.01);
    }
    assert_int_equal(n_bytes[0], SOUND_S * RATE * 2);
    assert_int_equal(s.n_running, 2);
    assert_int_equal(s.n_queued, 1);
    for (int i = 0; i < 3; i++) {
        speech_cancel(speeches[i]);
    }
    link_close(&s);
    speech_worker_lost(&s);
    memory_free(s.ready_bytes);
    event_base_free(s.base);
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return worker(atoi(arguments[2]));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waited_long_counts_like_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
