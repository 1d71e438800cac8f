/* SPDX-License-Identifier: Apache-2.0
 * utter read: a book in, an audiobook out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "book/book.h"
#include "book/loudness.h"
#include "cli/interrupt.h"
#include "cli/model/checkpoint.h"
#include "cli/overwrite.h"
#include "cli/report.h"
#include "cli/speak/markup.h"
#include "cli/speak/output.h"
#include "cli/speak/read_chapters.h"
#include "cli/speak/read_plan.h"
#include "cli/speak/saying.h"

/* What a run owns. */
struct run {
    const struct invocation *invocation;
    const struct settings *settings;
    struct book book;
    struct read_place place;
    utter_model *model;
    utter_voice *voice;
    utter_stream_options options;
    utter_reading_options reading;
    struct markup markup;
    struct read_plan plan;
    struct speaker *speaker;
    struct sink sink;
    struct joiner joiner;
    size_t n_ready;  /* of the first sections, without a gap */
    size_t n_before; /* the same, as an earlier run has left them */
    double begin_s, told_s;
};

static bool is_stopped(void)
{
    return interrupt_signal() != 0;
}

/* ---- Life ---- */

static int check_settings(const struct settings *s)
{
    if (s->output.given && strcmp(s->output.text, "-") == 0) {
        return fail(1, "read: a book goes to files (-o FILE; utter say takes -o -)");
    }
    if (s->loudness.given && !loudness_is_here()) {
        return fail(
            1, "--loudness: needs libebur128, which is not here (apt-get install libebur128-1)");
    }
    return 0;
}

static int open_speech(struct run *r)
{
    const struct settings *s = r->settings;
    memory_keep_little();
    int code = checkpoint_open(
        &r->model, s, (int)s->reading_lanes.integer); /* 0: as many as suit the device */
    code = code ? code : checkpoint_stream_options(&r->options, &r->voice, r->model, s);
    r->options.plain = true; /* whatever stands in a book */
    if (code) {
        return code;
    }
    r->options.language = read_language(r->model, s, &r->book);
    utter_reading_options_init(&r->reading);
    r->reading.retries = (int)s->retries.integer;
    if ((code = markup_open(&r->markup, &r->reading, s, r->model))) {
        return code;
    }
    utter_error error = {0};
    utter_status status =
        read_plan_open(&r->plan, &r->book, &r->place, r->model, &r->options, &r->reading, s, &error);
    if (status) {
        return status == UTTER_E_IO ? fail_output(status, &error) : fail_status(status, &error);
    }
    return 0;
}

static int open_output(struct run *r)
{
    const struct settings *s = r->settings;
    utter_error error = {0};
    int rate = checkpoint_info(r->model).sample_rate;
    struct effects_settings effects = {s->speed.number, s->volume.number, (int)s->rate.integer};
    struct sink_settings sink = {.path = r->place.output,
        .format = r->place.m4b ? "m4b" : s->format.text,
        .split = r->place.split,
        .rate = effects.sample_rate ? effects.sample_rate : rate,
        .folder = r->plan.store.folder};
    utter_status status = sink_open(&r->sink, &sink, &r->book, &error);
    if (status) {
        return fail_output(status, &error);
    }
    r->joiner = (struct joiner){
        .settings = {effects, s->loudness.given ? s->loudness.number : 0, s->fit.number, rate},
        .book = &r->book,
        .tasks = r->plan.tasks,
        .n_tasks = r->plan.n_tasks,
        .store = &r->plan.store,
        .sink = &r->sink,
        .stop = is_stopped};
    if (!interrupt_watch(NULL)) {
        return fail(2, "the system refuses a signal handler");
    }
    struct speaker_settings speaker = {
        r->model, &r->options, &r->reading, checkpoint_lanes(r->model, (int)s->reading_lanes.integer)};
    status =
        speaker_start(&r->speaker, &speaker, r->plan.tasks, r->plan.n_tasks, &r->plan.store, &error);
    return status ? fail_status(status, &error) : 0;
}

static void run_close(struct run *r)
{
    speaker_free(r->speaker);
    joiner_fini(&r->joiner);
    sink_fini(&r->sink);
    read_plan_close(&r->plan);
    markup_close(&r->markup);
    utter_voice_free(&r->voice);
    utter_model_close(&r->model);
    read_place_fini(&r->place);
    book_close(&r->book);
}

/* ---- The work ---- */

static void show_progress(struct run *r, const struct speaker_state *state)
{
    double now = clock_seconds(), took = now - r->begin_s;
    if (r->settings->quiet.given || !progress_shown() || now - r->told_s < 0.2) {
        return;
    }
    r->told_s = now;
    size_t at = min(r->n_ready, r->plan.n_tasks - 1);
    size_t chapter = r->plan.tasks[at].section->chapter;
    double all = (double)r->plan.sections.bytes, part = 100 * (double)state->ready_bytes / all;
    if (state->spoken_bytes == 0) {
        progress("chapter %zu of %zu, %.0f %% of the text", chapter + 1, r->book.n_chapters, part);
        return;
    }
    long left = lround((all - (double)state->ready_bytes) / (double)state->spoken_bytes * took);
    progress("chapter %zu of %zu, %.0f %% of the text, %.1f x real time, %ld:%02ld:%02ld left",
        chapter + 1, r->book.n_chapters, part, state->spoken_s / took, left / 3600, left / 60 % 60,
        left % 60);
}

/* Speaks and writes until the end, a failure or a signal. 0, or an exit code after a message. */
static int work(struct run *r)
{
    utter_error error = {0};
    r->begin_s = clock_seconds();
    while (r->joiner.next < r->plan.n_tasks && !interrupt_signal()) {
        struct speaker_state state = speaker_look(r->speaker);
        while (r->n_ready < r->plan.n_tasks && speaker_is_ready(r->speaker, r->n_ready)) {
            r->n_ready++;
        }
        show_progress(r, &state);
        if (joiner_reach(&r->joiner, r->n_ready) > r->joiner.next) {
            utter_status status = joiner_move(&r->joiner, &error);
            if (status < 0) {
                return fail_output(status, &error);
            }
        } else if (state.ended && state.status) {
            return fail_status(state.status, &state.error);
        } else {
            interrupt_poll(speaker_descriptor(r->speaker), true);
        }
    }
    return 0;
}

/* ---- The end ---- */

static double seconds_written(const struct run *r)
{
    return (double)r->sink.n_samples / r->sink.settings.rate;
}

static void say_time(char *text, size_t size, double seconds)
{
    long s = lround(seconds);
    snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
}

/* A signal: what was made so far is a whole file, and the process ends without waiting for the model. `closed`: it came
 * while the file was completed. */
static void stop_here(struct run *r, bool closed)
{
    utter_error error = {0};
    char time[32];
    int code = 128 + interrupt_signal();
    progress_clear();
    if (!closed && (r->sink.n_samples == 0 || r->joiner.next < joiner_reach(&r->joiner, r->n_before))) {
        sink_fini(&r->sink);
        fail(code,
            "interrupted; what was spoken is kept in %s, and the same command goes on from there",
            r->plan.store.folder);
    } else if (!closed && sink_close(&r->sink, is_stopped, &error) < 0) {
        fail(code, "interrupted: %s", error.text);
    } else {
        say_time(time, sizeof time, seconds_written(r));
        fail(code, "interrupted; the first %s are in %s, and the same command goes on from there", time,
            r->place.shown);
    }
    fflush(stdout);
    _exit(code);
}

static int print_json(const struct run *r, uint64_t n_broken)
{
    return report_json(json_pack("{s:o,s:I,s:f,s:I,s:I,s:I,s:I}", "output", json_name(r->place.output),
        "files", (json_int_t)r->sink.n_files, "seconds", seconds_written(r), "chapters",
        (json_int_t)read_plan_chapters(&r->plan), "sections", (json_int_t)r->plan.n_tasks, "kept",
        (json_int_t)r->plan.n_found, "not_whole", (json_int_t)n_broken));
}

static void tell_notes(const struct run *r)
{
    const struct joiner *j = &r->joiner;
    if (j->n_quiet > 0) {
        note("%zu chapters stay up to %.1f LU below %g LUFS: louder, their peaks would be cut",
            j->n_quiet, j->most_short_lu, j->settings.lufs);
    }
    if (j->n_hurried > 0) {
        note("%zu of %zu subtitles are spoken faster to fit, at most %g times (--fit)", j->n_hurried,
            j->n_tasks, j->settings.fit);
    }
    if (j->n_late > 0) {
        note("%zu of %zu subtitles begin late, up to %.1f s: those before are too long for their time",
            j->n_late, j->n_tasks, j->most_late_s);
    }
}

static int tell_end(struct run *r)
{
    const struct settings *s = r->settings;
    char time[32];
    uint64_t n_broken = 0, n_pieces = 0;
    const struct task *first = NULL;
    for (size_t i = 0; i < r->plan.n_tasks; i++) {
        const struct task *task = &r->plan.tasks[i];
        n_broken += task->entry.n_broken;
        n_pieces += task->entry.n_pieces;
        first = !first && task->entry.n_broken ? task : first;
    }
    say_time(time, sizeof time, seconds_written(r));
    if (!s->quiet.given) {
        tell_notes(r);
        note("%s of speech are in %s", time, r->place.shown);
    }
    int code = s->json.given ? print_json(r, n_broken) : 0;
    if (code == 0 && first) {
        char words[48];
        const struct section *at = first->section;
        error_quote(words, sizeof words, at->text, min(at->bytes, 40));
        code = fail(EXIT_NOT_WHOLE,
            "%llu of %llu pieces of the text may lack words, the first in chapter %zu, after \"%s\"",
            (unsigned long long)n_broken, (unsigned long long)n_pieces, at->chapter + 1, words);
    }
    return code;
}

static int speak_book(struct run *r)
{
    utter_error error = {0};
    int code = open_speech(r);
    if (code) {
        return code;
    }
    code = output_check(r->place.first);
    code = code ? code : open_output(r);
    if (code) {
        if (r->plan.store.n == 0) {
            store_remove(&r->plan.store); /* a wrong name leaves no folder behind */
        }
        return code;
    }
    r->n_before = r->plan.n_first;
    if (r->plan.n_found > 0 && !r->settings->quiet.given) {
        note("%zu of %zu sections were spoken before (--fresh begins anew)", r->plan.n_found,
            r->plan.n_tasks);
    }
    code = work(r);
    if (code == 0 && interrupt_signal()) {
        stop_here(r, false);
    }
    if (code == 0) {
        utter_status status = sink_close(&r->sink, is_stopped, &error);
        if (status == UTTER_AGAIN) {
            stop_here(r, true);
        }
        code = status ? fail_output(status, &error) : 0;
    }
    progress_clear();
    if (code == 0) {
        store_remove(&r->plan.store);
        code = tell_end(r);
    }
    return code;
}

int command_read(const struct invocation *invocation)
{
    struct run run = {
        .invocation = invocation, .settings = &invocation->settings, .plan.store.manifest = -1};
    utter_error error = {0};
    int code = check_settings(run.settings);
    if (code == 0) {
        utter_status status = book_open(&run.book, invocation->words[0], &error);
        code = status ? fail_status(status, &error) : 0;
    }
    if (code == 0) {
        code = read_chapters_check(run.settings, &run.book);
    }
    if (code == 0 && run.settings->list.given) {
        code = read_list(&run.book, run.settings);
    } else if (code == 0) {
        code = read_place_find(&run.place, invocation, &run.book);
        code = code ? code : speak_book(&run);
    }
    run_close(&run);
    return code;
}
