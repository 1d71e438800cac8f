/* SPDX-License-Identifier: Apache-2.0
 * The model, voice and device that were not typed: the environment, then the file of `utter use`. */
#ifndef CLI_DEFAULTS_H
#define CLI_DEFAULTS_H

#include "cli/options.h"

/* What may be chosen ahead, with its variable and its key in the file. */
struct default_choice {
    const char *variable, *key;
    size_t setting; /* offset in struct settings */
};
enum { N_DEFAULTS = 3 };
extern const struct default_choice default_table[N_DEFAULTS]; /* model, voice, device */

/* Fills in what the command takes and nobody typed; `rule` of the setting then says who chose it, and `given` stays
 * false. A voice of the file belongs to its model: it is left out where -m names another. 0, or an exit code after a
 * message. */
int defaults_apply(struct invocation *invocation);

/* The text without blanks around it; changes it. */
char *defaults_trim(char *text);
/* Whether `line`, as fgets reads it into size bytes, is a whole one of the file; false after a message. */
bool defaults_whole(const char *line, size_t size, const char *path, int number);
/* The program's folder for what it has learnt, whether it is there or not; NULL: no folder is named. */
const char *defaults_cache(void);

/* The file, whether it is there or not; NULL: no folder is named. */
const char *defaults_file(void);

#endif
