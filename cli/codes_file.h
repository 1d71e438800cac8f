/* SPDX-License-Identifier: Apache-2.0
 * The codes of an utterance as JSON:
 * {"codebooks":16,"frames":N,"finish":"eos","codes":[[16 integers], ...]} */
#ifndef CLI_CODES_FILE_H
#define CLI_CODES_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "utter.h"

/* A file that appears under its name when it is complete. `path` "-" is standard output. */
struct codes_file {
    const char *path;
    char *written_path; /* where it is written until then; NULL: at `path` itself */
    FILE *file;
};

/* 0, or an exit code after a message. After a failure nothing is left behind. */
int codes_file_create(struct codes_file *out, const char *path);
int codes_file_finish(struct codes_file *out, const int32_t *codes, size_t n_frames, int n_codebooks,
    utter_finish finish);
void codes_file_abort(struct codes_file *out); /* accepts a zeroed or finished one */

/* Reads the codes of a model with these codebooks. *codes is the caller's, to be freed. */
int codes_file_read(
    int32_t **codes, size_t *n_frames, const char *path, int n_codebooks, int codebook_size);

#endif
