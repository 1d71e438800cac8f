/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as what a client sends: through the whole front end, from the socket to the answer or into the queue, with
 * a worker that is being replaced. In two pieces, then the client leaves: of it nothing may be left. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/front/route.h"
#include "server/loop/link.h"
#include "server/speech/voices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct serve_options options = {
    .model = "fuzz", .host = "localhost", .queue = 4, .lanes = 2, .format = "pcm", .quiet = true};
static struct server front = {.options = &options,
    .most_conns = 4,
    .was_ready = true,
    .boot = "fuzz",
    .model_id = "fuzz",
    .ready = {.kind_name = "custom_voice",
        .size_name = "0b6",
        .device = "cpu",
        .weights = "fp32",
        .lanes = 2,
        .sample_rate = 24000,
        .frame_samples = 1920,
        .takes_instructions = true}};

/* The library is not here: what the front end says of it, and what only the worker and the maker of voices call, which
 * are in the same archive. */
__attribute__((used)) static void nobody_comes_here(void)
{
    abort();
}
#define ABSENT(name) __asm__(".globl " #name "\n.set " #name ", nobody_comes_here")
ABSENT(utter_clone_options_init_sized);
ABSENT(utter_model_close);
ABSENT(utter_model_get_info);
ABSENT(utter_model_language_name);
ABSENT(utter_model_open);
ABSENT(utter_model_options_init_sized);
ABSENT(utter_model_step);
ABSENT(utter_model_voice_name);
ABSENT(utter_stream_finish);
ABSENT(utter_stream_free);
ABSENT(utter_stream_get_stats);
ABSENT(utter_stream_hold);
ABSENT(utter_stream_open);
ABSENT(utter_stream_options_init_sized);
ABSENT(utter_stream_take);
ABSENT(utter_stream_text);
ABSENT(utter_voice_clone);
ABSENT(utter_voice_free);
ABSENT(utter_voice_get_info);
ABSENT(utter_voice_load);
ABSENT(utter_voice_preset);
ABSENT(utter_voice_save);

const char *utter_version_text(void)
{
    return "0";
}

const char *utter_finish_text(utter_finish finish)
{
    return finish == UTTER_FINISH_EOS ? "eos" : "other";
}

static void close_front(void)
{
    voices_close(&front);
    origins_end(&front.origins);
    event_base_free(front.base);
}

static void open_front(void)
{
    static struct link none; /* where the list of no worker begins */
    if (front.base) {
        return;
    }
    front.links = &none;
    signal(SIGPIPE, SIG_IGN); /* as the program does: a client leaves while it is answered */
    conn_places(&front);
    TAILQ_INIT(&front.queued);
    TAILQ_INIT(&front.background.queued);
    front.ready.languages[front.ready.n_languages++] = "english";
    front.ready.languages[front.ready.n_languages++] = "chinese";
    front.ready.voices[front.ready.n_voices++] = "clara";
    front.base = event_base_new();
    if (!front.base || event_base_priority_init(front.base, SERVER_PRIORITIES) != 0 ||
        !voices_open(&front)) {
        exit(1);
    }
    atexit(close_front);
}

/* Lets the front end work until it has nothing to do, and looks at how what it sends begins. */
static void turn(int client, bool *begun)
{
    char answer[65536];
    ssize_t n;
    for (int i = 0; i < 4; i++) {
        event_base_loop(front.base, EVLOOP_NONBLOCK);
        while ((n = recv(client, answer, sizeof answer, 0)) > 0) {
            if (!*begun && (n < 9 || memcmp(answer, "HTTP/1.1 ", 9) != 0)) {
                abort();
            }
            *begun = true;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct sockaddr from = {.sa_family = AF_UNIX};
    int ends[2];
    bool begun = false;
    open_front();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0 ||
        !conn_new(&front, &route_service, ends[0], &from)) {
        exit(1);
    }
    size_t cut = bytes ? data[bytes - 1] % bytes : 0;
    for (size_t at = 0, to = cut; at < bytes; at = to, to = bytes) {
        if (send(ends[1], data + at, to - at, MSG_NOSIGNAL) < 0) {
            break; /* it has closed already */
        }
        turn(ends[1], &begun);
    }
    close(ends[1]);
    for (int i = 0; i < 8 && front.n_conns > 0; i++) {
        event_base_loop(front.base, EVLOOP_NONBLOCK);
    }
    if (front.n_conns != 0 || front.n_queued != 0 || front.n_running != 0 || front.held_bytes != 0 ||
        front.unsent_bytes != 0) {
        abort();
    }
    origins_end(&front.origins); /* what came before is no fault of the next one */
    return 0;
}
