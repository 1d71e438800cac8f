/* SPDX-License-Identifier: Apache-2.0
 * Where the time of a speech went, as a trace file that browsers show (chrome://tracing, Perfetto). */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include "cli/text_file.h"
#include "utter.h"

/* Zero it before use; without a file every call does nothing. */
struct trace {
    struct text_file file;
    double begin_s;
    utter_reading_stats before; /* when the last call was traced */
};

/* 0, or an exit code after a message. */
int trace_open(struct trace *trace, const char *path);
/* One call that took from from_s to to_s on the clock, after which the reading's statistics are `now`: the call on one
 * line, the stages that it went through on another, one behind the other up to the end of the call. A third line has
 * what the call waited for a device, in one piece: in front of it the call only queued. */
void trace_call(struct trace *trace, const utter_reading_stats *now, double from_s, double to_s);
/* Completes the file: 0, or an exit code after a message. */
int trace_close(struct trace *trace);
void trace_abort(struct trace *trace);

#endif
