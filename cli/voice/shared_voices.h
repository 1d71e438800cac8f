/* SPDX-License-Identifier: Apache-2.0
 * Voices in a store that machines share: the folder that is a copy of it takes the store's place. */
#ifndef CLI_SHARED_VOICES_H
#define CLI_SHARED_VOICES_H

#include "cli/options.h"

/* Where --voices names a store. What is here already is enough where the store is away, which is told. An exit code. */
int shared_voices_open(struct settings *settings);
/* Looks again, for a voice that was not there before; false: nothing has come. */
bool shared_voices_look(void);

#endif
