/* SPDX-License-Identifier: Apache-2.0
 * The worker's samples, through the encoder, to who asked; and its words, at the times of the sound that leaves. */
#include <stddef.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "server/speech/speech_parts.h"
#include "server/speech/words.h"

enum { LIMIT_UNCODED = 512 << 10 }; /* bytes of samples that wait for the encoder */

static void run_encoder(struct job *job)
{
    struct speech *p = (struct speech *)((char *)job - offsetof(struct speech, job));
    p->job_failed = !encode_feed(p->encoder, (float *)(void *)p->job_in.bytes,
        p->job_in.n / sizeof(float), p->job_final, &p->job_out);
}

static void take_encoded(struct job *job)
{
    struct speech *p = (struct speech *)((char *)job - offsetof(struct speech, job));
    bool failed = p->job_failed || p->job_out.failed, final = p->job_final;
    p->job_in.n = 0;
    if (speech_is_wanted(p) && !failed && p->job_out.n) {
        if (p->end.first_s <= 0) {
            p->end.first_s = clock_seconds() - p->read_at;
            if (!p->background) {
                histogram_add(&p->server->metrics.ttfa, p->end.first_s);
            }
        }
        p->sink->bytes(
            p->user, p->job_out.bytes, p->job_out.n); /* may cancel; the job keeps the speech */
    }
    p->job_out.n = 0;
    p->job_runs = false;
    if (!speech_is_wanted(p)) {
        speech_free_if_done(p);
    } else if (p->job_out.failed) {
        speech_fail_running(p, 503, "out of memory");
    } else if (failed) {
        speech_fail_running(p, 500, "the encoder failed");
    } else if (final) {
        p->end.good = true;
        speech_tell_end(p);
    } else {
        speech_pump(p);
    }
}

/* Gives what has come to the encoder, unless it is at work. */
void speech_pump(struct speech *p)
{
    if (p->job_runs || !speech_is_wanted(p) || (p->samples.n == 0 && !(p->ended && !p->final_done))) {
        return;
    }
    struct wire_out empty = p->job_in;
    p->job_in = p->samples;
    p->samples = empty;
    p->job_final = p->final_done = p->ended;
    p->job = (struct job){run_encoder, take_encoded};
    p->job_runs = true;
    p->behind = false;
    speech_steer(p);
    if (encode_is_light(p->encoder) || !jobs_submit(p->server->jobs, &p->job)) {
        run_encoder(&p->job);
        take_encoded(&p->job);
    }
}

void speech_samples(struct speech *p, const struct wire_message *m)
{
    double now = clock_seconds(),
           seconds = (double)(m->bytes / sizeof(float)) / p->server->ready.sample_rate / p->speed;
    if (!speech_is_wanted(p)) {
        return;
    }
    p->link->audio_s += seconds;
    if (p->first_samples <= 0) {
        p->first_samples = p->heard_until = now;
        wire_fini(&p->text);
    }
    if (p->live && now - p->heard_until > p->end.worst_gap_s && !p->held) {
        p->end.worst_gap_s = now - p->heard_until;
    }
    p->heard_until = max(now, p->heard_until) + seconds;
    p->made_s += seconds;
    p->moved_at = now;
    wire_put(&p->samples, m->body, m->bytes);
    p->behind = p->job_runs && p->samples.n > LIMIT_UNCODED;
    speech_steer(p);
    if (p->samples.failed) {
        speech_fail_running(p, 503, "out of memory");
        return;
    }
    speech_pump(p);
}

void speech_take_words(struct speech *p, const struct wire_message *m)
{
    struct wire_words told;
    if (!speech_is_wanted(p) || !p->words) {
        return;
    }
    if (!wire_get_words(&told, m)) {
        speech_fail_running(p, 500, "the worker sent what is no message");
        return;
    }
    struct speech_word *at = memory_new(told.n + 1, sizeof *at);
    if (!at) {
        speech_fail_running(p, 503, "out of memory");
        return;
    }
    double scale = 1 / p->speed / p->server->ready.sample_rate, delay_s = encode_delay(p->encoder);
    for (size_t i = 0; i < told.n; i++) {
        const utter_word word = wire_word(&told, i);
        at[i] = (struct speech_word){.at = (size_t)word.at,
            .bytes = (size_t)word.bytes,
            .start_s = delay_s + scale * (double)word.start,
            .end_s = delay_s + scale * (double)word.end,
            .certainty = word.certainty,
            .final = word.final,
            .skipped = word.skipped};
    }
    const struct speech_words words = {told.first, at, told.n, told.approximate};
    p->sink->words(p->user, &words);
    memory_free(at);
}
