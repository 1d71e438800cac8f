/* SPDX-License-Identifier: Apache-2.0
 * What a text asks for besides its words: the options of markup, cast, dictionary and numbers, and their files. */
#ifndef CLI_MARKUP_H
#define CLI_MARKUP_H

#include "cli/options.h"
#include "utter.h"

/* Zero it; it must stay where it is while the reading lives. */
struct markup {
    const struct settings *settings;
    const utter_model *model; /* whose voices a text may call */
    char *cast, *lexicon;     /* what the files hold */
};

/* Reads the files and fills the options of a reading. 0, or an exit code after a message. */
int markup_open(struct markup *markup, utter_reading_options *options, const struct settings *settings,
    const utter_model *model);
void markup_close(struct markup *markup);
/* Whether a text that is taken as plain begins like SSML, so that its tags would be spoken. */
bool markup_is_forgotten(const char *text, size_t n);

#endif
