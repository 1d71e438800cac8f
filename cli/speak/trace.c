/* SPDX-License-Identifier: Apache-2.0
 * Writes what a speech did when, in the trace format of browsers. */
#include "cli/speak/trace.h"

#include "base/clock.h"
#include "cli/report.h"

enum { CALLS = 1, STAGES = 2, WAITS = 3 }; /* lines of the trace */

int trace_open(struct trace *t, const char *path)
{
    *t = (struct trace){.begin_s = clock_seconds()};
    int code = text_file_open(&t->file, path);
    if (code) {
        return code;
    }
    fprintf(t->file.lines,
        "[{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"calls\"}},\n"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"stages\"}},\n"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"waits\"}}",
        CALLS, STAGES, WAITS);
    return 0;
}

static void event(struct trace *t, const char *name, int line, double from_s, double length_s)
{
    fprintf(t->file.lines,
        ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}", name, line,
        1e6 * (from_s - t->begin_s), 1e6 * length_s);
}

void trace_call(struct trace *t, const utter_reading_stats *now, double from_s, double to_s)
{
    if (!t->file.lines) {
        return;
    }
    const utter_reading_stats *before = &t->before;
    const struct {
        const char *name;
        double length_s;
    } stages[] = {
        {"prompt", now->prompt_s - before->prompt_s},
        {"prefill", now->prefill_s - before->prefill_s},
        {"talker", now->talker_s - before->talker_s},
        {"predictor", now->predictor_s - before->predictor_s},
        {"vocoder", now->vocoder_s - before->vocoder_s},
    };
    double at = to_s;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        at -= stages[i].length_s;
    }
    event(t, now->n_frames > before->n_frames ? "frame" : "call", CALLS, from_s, to_s - from_s);
    if (now->wait_s > before->wait_s) {
        double waited_s = now->wait_s - before->wait_s;
        event(t, "wait for the device", WAITS, to_s - waited_s, waited_s);
    }
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        if (stages[i].length_s > 0) {
            event(t, stages[i].name, STAGES, at, stages[i].length_s);
        }
        at += stages[i].length_s;
    }
    t->before = *now;
}

int trace_close(struct trace *t)
{
    if (!t->file.lines) {
        return 0;
    }
    fputs("]\n", t->file.lines);
    return text_file_close(&t->file);
}

void trace_abort(struct trace *t)
{
    text_file_abort(&t->file);
}
