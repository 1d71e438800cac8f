/* SPDX-License-Identifier: Apache-2.0
 * A manifest: a file of JSON lines, read one at a time. */
#ifndef JOB_MANIFEST_H
#define JOB_MANIFEST_H

#include <limits.h>
#include <stdio.h>

#include "base/error.h"

struct manifest {
    FILE *file;
    char path[PATH_MAX];   /* in full */
    char folder[PATH_MAX]; /* that it lies in */
    char *line;
    uint64_t number; /* of the line, from 1 */
    uint64_t bytes, at;
};

utter_status manifest_open(struct manifest *manifest, const char *path, utter_error *error);
/* The next line that is not blank, in manifest->line, and how long it is; UTTER_END behind the last. */
utter_status manifest_next(struct manifest *manifest, size_t *bytes, utter_error *error);
void manifest_rewind(struct manifest *manifest);
void manifest_close(struct manifest *manifest); /* accepts a zeroed one */

#endif
