/* SPDX-License-Identifier: Apache-2.0
 * From the options of utter job to the lines of a manifest: which model, which voices, what a line gets that says
 * nothing. */
#ifndef CLI_JOB_LINES_H
#define CLI_JOB_LINES_H

#include "cli/options.h"
#include "job/submit.h"

enum { MODEL_NAME = 48, N_JOB_VOICES = 256 };

struct job_voice {
    char *name;
    char hash[IDENTITY_SIZE];
};

struct job_lines {
    struct job job;
    const struct settings *settings;
    utter_model *model; /* looked into, for its voices */
    char model_name[MODEL_NAME];
    struct job_voice voices[N_JOB_VOICES]; /* that were asked for, the oldest goes first */
    size_t n_voices;
    double told_s;
};

/* Opens the manifest and, where --results is given, the results; `make` them. 0, or an exit code after a message. */
int job_lines_open(struct job_lines *lines, const struct invocation *invocation, bool make);
void job_lines_close(struct job_lines *lines);
/* After a pass: 0, or an exit code after a message. */
int job_lines_told(utter_status status, const utter_error *error);

/* What a line says of its model: which files, and how they are held. */
utter_status job_model_name(char name[MODEL_NAME], const struct settings *settings, utter_error *error);
/* The voice called `name`, "" for the model's first, with what it is. */
utter_status job_find_voice(const utter_model *model, const struct settings *settings, const char *name,
    utter_voice **voice, char hash[IDENTITY_SIZE], utter_error *error);
/* What the voices are that the line's text calls for. */
utter_status job_hash_called(const struct settings *settings, const struct line *line,
    char hash[IDENTITY_SIZE], utter_error *error);

#endif
