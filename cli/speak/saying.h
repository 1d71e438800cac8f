/* SPDX-License-Identifier: Apache-2.0
 * One text, of any length, spoken to where the settings say: sound, codes, trace. Owns the reading and its files; text
 * comes in through saying_give, as it arrives. */
#ifndef CLI_SAYING_H
#define CLI_SAYING_H

#include "cli/options.h"
#include "cli/speak/codes_file.h"
#include "cli/speak/markup.h"
#include "cli/speak/output.h"
#include "cli/speak/times_file.h"
#include "cli/speak/trace.h"
#include "utter.h"

/* The exit code of a speech that lacks words of its text. */
enum { EXIT_NOT_WHOLE = 3 };

/* A place of the text, as people find it. */
struct text_place {
    size_t line, byte; /* from 1, from 0 */
    char words[48];    /* its first ones */
};

/* Zero it before use. */
struct saying {
    struct markup markup;
    const struct settings *settings;
    utter_model *model;
    utter_model_info info;
    utter_reading *reading;
    struct output output;
    struct codes_file codes;
    struct trace trace;
    struct times_file times;
    /* The text that has not been spoken: what is before text_at in the source is done with. */
    char *text;
    size_t text_n, text_room, text_at, text_line;
    bool ended;       /* no more text will come */
    uint64_t total;   /* bytes that the text will have; 0: not known */
    uint64_t n_given; /* that have come */
    uint64_t n_broken;
    struct text_place broken; /* the first piece that lacks words */
    struct text_place last;   /* the last piece */
    utter_finish broken_finish;
    double begin_s, end_s, told_s; /* on the clock: the first text, the end, the last progress line */
};

/* Opens the reading and what it is written to. 0, or an exit code after a message. */
int saying_open(struct saying *saying, const struct settings *settings, utter_model *model,
    const utter_stream_options *voice);
/* The next piece of text; `last`: no more will come. */
int saying_give(struct saying *saying, const char *text, size_t bytes, bool last);
/* Makes sound and writes it. *status: UTTER_OK, UTTER_AGAIN where text is needed, UTTER_END. */
int saying_move(struct saying *saying, utter_status *status);
/* How many bytes of text wait. */
size_t saying_waiting(const struct saying *saying);
/* Completes what was asked for and tells how it went: 0, EXIT_NOT_WHOLE, or another exit code after a message. */
int saying_finish(struct saying *saying);
void saying_close(struct saying *saying);

#endif
