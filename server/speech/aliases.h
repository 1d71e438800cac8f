/* SPDX-License-Identifier: Apache-2.0
 * Names that clients of other servers send, and what they stand for here. Pure. */
#ifndef SERVER_ALIASES_H
#define SERVER_ALIASES_H

#include <stdbool.h>

/* Whether the name stands for the model that is served, whichever that is. */
bool alias_is_model(const char *name);
/* The i-th of those that clients are told of; NULL after the last. */
const char *alias_model(int i);

/* The i-th of OpenAI's 13 voices, NULL after the last. */
const char *alias_voice(int i);
/* The preset among `voices` that one of them stands for, or NULL when `name` is none of theirs. */
const char *alias_preset(const char *name, const char *const *voices, int n_voices);

#endif
