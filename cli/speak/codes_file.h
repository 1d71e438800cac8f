/* SPDX-License-Identifier: Apache-2.0
 * The codes of speech as JSON, written piece after piece, so that none are kept:
 * {"codebooks":16,"codes":[[16 integers], ...],"frames":N,"finish":"eos"} */
#ifndef CLI_CODES_FILE_H
#define CLI_CODES_FILE_H

#include <stdint.h>

#include "cli/text_file.h"
#include "utter.h"

/* Zero it before use. */
struct codes_file {
    struct text_file file;
    int n_codebooks;
    size_t n_frames; /* that are in the file */
};

/* 0, or an exit code after a message. */
int codes_file_open(struct codes_file *c, const char *path, int n_codebooks);
void codes_file_add(struct codes_file *c, const int32_t *codes, size_t n_frames);
int codes_file_finish(struct codes_file *c, utter_finish finish);
void codes_file_abort(struct codes_file *c); /* accepts a zeroed one */

/* Reads the codes of a model with these codebooks. *codes is the caller's, to be freed. */
int codes_file_read(
    int32_t **codes, size_t *n_frames, const char *path, int n_codebooks, int codebook_size);

#endif
