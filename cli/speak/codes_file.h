/* SPDX-License-Identifier: Apache-2.0
 * The codes of an utterance as JSON:
 * {"codebooks":16,"frames":N,"finish":"eos","codes":[[16 integers], ...]} */
#ifndef CLI_CODES_FILE_H
#define CLI_CODES_FILE_H

#include <stdint.h>

#include "cli/text_file.h"
#include "utter.h"

/* Writes the codes and closes the file. 0, or an exit code after a message. */
int codes_file_finish(
    struct text_file *out, const int32_t *codes, size_t n_frames, int n_codebooks, utter_finish finish);

/* Reads the codes of a model with these codebooks. *codes is the caller's, to be freed. */
int codes_file_read(
    int32_t **codes, size_t *n_frames, const char *path, int n_codebooks, int codebook_size);

#endif
