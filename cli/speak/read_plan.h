/* SPDX-License-Identifier: Apache-2.0
 * Before a book is spoken: where it goes, its sections, and which of them an earlier run has left. */
#ifndef CLI_READ_PLAN_H
#define CLI_READ_PLAN_H

#include "book/joiner.h"
#include "cli/options.h"

/* Where the sound goes. */
struct read_place {
    char *output; /* -o, or the book's name with another ending */
    char *first;  /* the first file that is written */
    char *shown;  /* for people */
    char *folder; /* of what is kept between runs */
    bool m4b, split;
};

/* 0, or an exit code after a message. Gives the book its file's name where it has no title. */
int read_place_find(struct read_place *place, const struct invocation *invocation, struct book *book);
void read_place_fini(struct read_place *place);

struct read_plan {
    struct sections sections;
    struct task *tasks; /* one for each section */
    size_t n_tasks;
    size_t n_found; /* that an earlier run has left */
    size_t n_first; /* of those, the ones before the first that is missing */
    struct store store;
};

/* The language to speak: the book's own, where nobody has asked for another and the model has it. */
const char *read_language(
    const utter_model *model, const struct settings *settings, const struct book *book);

utter_status read_plan_open(struct read_plan *plan, const struct book *book,
    const struct read_place *place, const utter_model *model, const utter_stream_options *options,
    const utter_reading_options *reading, const struct settings *settings, utter_error *error);
size_t read_plan_chapters(const struct read_plan *plan);
void read_plan_close(struct read_plan *plan);

#endif
