/* SPDX-License-Identifier: Apache-2.0
 * A whole front end, with a worker that a test poses (this program once more): it makes a frame of sound for each byte
 * of a text, in which every sample is the number of the byte, and tells its words. Of some texts it does something
 * else: see posed_text. */
#ifndef TESTS_SERVER_POSED_FRONT_H
#define TESTS_SERVER_POSED_FRONT_H

#include "base/clock.h"
#include "tests/support.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/dialects/wyoming/wyoming.h"
#include "server/front/keys.h"
#include "server/front/route.h"
#include "server/loop/jobs.h"
#include "server/loop/links.h"
#include "server/loop/spare.h"
#include "server/loop/spawn.h"
#include "server/speech/admission.h"
#include "server/speech/speech.h"
#include "server/speech/voices_parts.h"
#include "tests/server/posed_worker.h"
#include "voice/voice.h"

enum { POSED_RATE = 24000, POSED_FRAME = 1920, POSED_SPEECHES = 8, POSED_WIDTH = 8 };

/* ---- The worker ---- */

struct posed_speech {
    uint32_t id; /* 0: free */
    char open[600], text[4000];
};
static struct posed_speech posed_speeches[POSED_SPEECHES];

static inline struct posed_speech *posed_find(uint32_t id)
{
    struct posed_speech *p = posed_speeches;
    while (p < posed_speeches + POSED_SPEECHES - 1 && p->id != id) {
        p++;
    }
    return p;
}

static inline const char *posed_word(const char *text)
{
    return text ? text : "-";
}

static inline void posed_open(const struct wire_message *m)
{
    struct wire_open o;
    struct posed_speech *p = posed_find(0);
    if (!wire_get_open(&o, m)) {
        abort();
    }
    *p = (struct posed_speech){.id = m->id};
    int n = snprintf(p->open, sizeof p->open,
        "voice %s, file %s, language %s, instruct %s, layout %d, seed %llu, frames %d, live %d, markup "
        "%d, spell %d, carry %d, plain %d, words %d, background %d, sampling",
        posed_word(o.voice_name), posed_word(o.voice_file), posed_word(o.language),
        posed_word(o.instruct), o.layout, (unsigned long long)o.seed, o.max_frames, o.live, o.markup,
        o.spell_out, o.carry, o.plain, o.words, o.background);
    for (int i = 0; i < parameter_count; i++) {
        n += snprintf(p->open + n, sizeof p->open - (size_t)n, " %g", o.sampling[i]);
    }
}

static inline void posed_words(struct wire_out *out, uint32_t id, const char *text)
{
    static utter_word words[1000];
    size_t n = 0;
    for (size_t at = strspn(text, " \n"), bytes; text[at];
         at += bytes + strspn(text + at + bytes, " \n")) {
        bytes = strcspn(text + at, " \n");
        words[n++] = (utter_word){.at = at,
            .bytes = bytes,
            .start = at * POSED_FRAME,
            .end = (at + bytes) * POSED_FRAME,
            .certainty = 0.5F,
            .final = !strstr(text, "draft")};
    }
    wire_put_words(out, id, 0, words, n, strstr(text, "about") != NULL);
}

/* All of a text is there. "wait": it is never through; "fail": it fails, and says how it was opened; "none": it has no
 * sound; "about": its words are about where they are; "draft": they may still change; "cut": it ends as it is too long,
 * and one piece is not whole. */
static inline void posed_text(struct wire_out *out, struct posed_speech *p)
{
    static float pcm[POSED_FRAME];
    const bool is_cut = strstr(p->text, "cut") != NULL;
    const size_t n = strncmp(p->text, "none", 4) == 0 ? 0 : strlen(p->text);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < POSED_FRAME; k++) {
            pcm[k] = (float)(i + 1) / 32768;
        }
        wire_message(out, WIRE_PCM, p->id, pcm, sizeof pcm);
    }
    if (strstr(p->open, "words 1") && n > 0) {
        posed_words(out, p->id, p->text);
    }
    if (strncmp(p->text, "wait", 4) == 0) {
        return;
    }
    if (strncmp(p->text, "fail", 4) == 0) {
        wire_put_failed(out, p->id, UTTER_E_ARGUMENT, p->open);
    } else {
        const struct wire_done done = {.finish = is_cut ? UTTER_FINISH_MAX_FRAMES : UTTER_FINISH_EOS,
            .n_frames = (int)n,
            .n_text_tokens = (int)n + 100,
            .prefill_s = 1,
            .talker_s = 2,
            .predictor_s = 3,
            .vocoder_s = 4,
            .n_pieces = is_cut ? 3 : 1,
            .n_retries = is_cut ? 2 : 0,
            .n_broken = is_cut};
        wire_put_done(out, p->id, &done);
    }
    p->id = 0;
}

static inline void posed_answer_all(struct wire_out *out, const struct wire_message *m)
{
    struct wire_hello hello;
    if (m->kind == WIRE_HELLO && wire_get_hello(&hello, m)) {
        const struct wire_beat beat = {.capacity = 4};
        const struct wire_ready ready = {.version = WIRE_VERSION,
            .kind_name = hello.voices ? "base" : "custom_voice",
            .size_name = "0b6",
            .device = "cuda",
            .kernels = "frame",
            .weights = "bf16",
            .takes_instructions = true,
            .sample_rate = POSED_RATE,
            .frame_samples = POSED_FRAME,
            .lanes = 4,
            .threads = 1,
            .memory_bytes = 1000,
            .width = POSED_WIDTH,
            .voices = {"clara", "miles"},
            .n_voices = hello.voices ? 0 : 2,
            .languages = {"english", "german"},
            .n_languages = 2};
        wire_put_beat(out, &beat);
        wire_put_ready(out, &ready);
    } else if (m->kind == WIRE_OPEN) {
        posed_open(m);
    } else if (m->kind == WIRE_TEXT) {
        struct posed_speech *p = posed_find(m->id);
        strncat(p->text, (const char *)m->body, m->bytes);
        if (strncmp(p->text, "now", 3) == 0) { /* does not wait for the end of its text */
            static const float pcm[POSED_FRAME];
            wire_message(out, WIRE_PCM, p->id, pcm, sizeof pcm);
        }
    } else if (m->kind == WIRE_FINISH && posed_find(m->id)->id == m->id) {
        posed_text(out, posed_find(m->id));
    } else if (m->kind == WIRE_CANCEL && posed_find(m->id)->id == m->id) {
        posed_find(m->id)->id = 0;
        wire_message(out, WIRE_FREED, m->id, NULL, 0);
    }
}

/* ---- The process that makes a voice ---- */

/* Of a recording "good" there is one; of any other a sentence says why not. */
static inline int posed_clone(char **arguments)
{
    static const float vector[POSED_WIDTH];
    char name[8000], sound[4096], told[4096], made[4096], bytes[100] = "";
    ssize_t n = read(SPAWN_SOCKET, name, sizeof name - 1);
    snprintf(sound, sizeof sound, "%s.sound", arguments[1]);
    snprintf(told, sizeof told, "%s.json", arguments[1]);
    snprintf(made, sizeof made, "%s" VOICE_ENDING, arguments[1]);
    FILE *file = fopen(sound, "r");
    utter_voice *voice;
    const bool is_read = n > 0 && file && fread(bytes, 1, sizeof bytes - 1, file) > 0;
    if (file) {
        fclose(file);
    }
    if (!is_read) {
        return 2;
    }
    if (strncmp(bytes, "good", 4) != 0) {
        fprintf(stderr, "%s is no sound\nand more\n", bytes);
        return strncmp(bytes, "bad", 3) == 0 ? 1 : 2;
    }
    if (voice_new_clone(&voice, name, vector, POSED_WIDTH, NULL, 0, 0, NULL, NULL) != UTTER_OK) {
        return 2;
    }
    bool once = strcmp(made, arguments[2]) == 0;
    utter_status status =
        once ? utter_voice_save(voice, made, NULL)
             : told_save(voice, arguments[2], access(told, F_OK) == 0 ? told : NULL, made, NULL);
    utter_voice_free(&voice);
    return status != UTTER_OK;
}

/* ---- The front end ---- */

static struct server posed;
static const char *posed_keys;   /* a file with keys, or NULL */
static const char *posed_voices; /* a folder of voices, or NULL */
static bool posed_wyoming;       /* it has a port, too */
static bool posed_tells;         /* it has a log */

static inline void posed_dispatch(struct link *l)
{
    speech_dispatch(l->server);
}

static inline void posed_turn(void)
{
    int status;
    event_base_loop(posed.base, EVLOOP_NONBLOCK);
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        voices_reap(&posed, pid, status);
        links_reap(&posed, pid, status);
    }
    links_tick(&posed, clock_seconds());
    speech_tick(&posed, clock_seconds());
    conn_tick(&posed, clock_seconds());
    usleep(100);
}

static inline void posed_begin(void)
{
    static const char *const devices[] = {"auto"};
    static const struct link_owner owner = {
        posed_dispatch, posed_dispatch, speech_message, speech_worker_lost, NULL};
    static struct serve_options options = {.model = "",
        .host = "localhost",
        .format = "pcm",
        .devices = devices,
        .n_devices = 1,
        .queue = 8,
        .patience_ms = 60000,
        .quiet = true};
    options.key_file = posed_keys;
    options.voices = posed_voices;
    options.quiet = !posed_tells;
    options.wyoming = posed_wyoming ? "tcp://127.0.0.1:0" : NULL;
    spare_begin();
    posed = (struct server){.options = &options,
        .model_id = "posed",
        .boot = "boot",
        .base = event_base_new(),
        .was_ready = true,
        .most_conns = 8};
    assert_int_equal(event_base_priority_init(posed.base, SERVER_PRIORITIES), 0);
    conn_places(&posed);
    TAILQ_INIT(&posed.queued);
    TAILQ_INIT(&posed.background.queued);
    admission_begin(&posed);
    posed.jobs = jobs_new(posed.base, 1);
    assert_non_null(posed.jobs);
    assert_true(keys_read(&posed));
    assert_true(voices_open(&posed) && wyoming_open(&posed));
    assert_true(links_open(&posed, &owner));
    for (double until = clock_seconds() + 60; clock_seconds() < until && links_ready(&posed) == 0;) {
        posed_turn();
    }
    assert_int_equal(links_ready(&posed), 1);
}

static inline void posed_end(void)
{
    for (double until = clock_seconds() + 60;
         clock_seconds() < until &&
         posed.n_conns + posed.n_wyoming + posed.n_running + posed.n_queued > 0;) {
        posed_turn();
    }
    assert_int_equal(posed.n_conns, 0);
    assert_int_equal(posed.n_running + posed.n_queued, 0);
    assert_int_equal(posed.held_bytes, 0);
    assert_int_equal(posed.unsent_bytes, 0);
    links_close(&posed);
    voices_close(&posed);
    wyoming_close(&posed);
    keys_free(&posed);
    jobs_free(posed.jobs);
    memory_free(posed.ready_bytes);
    origins_end(&posed.origins);
    event_base_free(posed.base);
    spare_end();
}

#endif
