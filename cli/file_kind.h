/* SPDX-License-Identifier: Apache-2.0
 * What a file holds, by its first bytes. */
#ifndef CLI_FILE_KIND_H
#define CLI_FILE_KIND_H

enum file_kind {
    FILE_NONE,    /* not there, empty, or no regular file */
    FILE_SOUND,   /* a recording */
    FILE_TENSORS, /* voice files, models */
    FILE_TEXT,    /* JSON and other text */
    FILE_OTHER,
};

enum file_kind file_kind(const char *path);
/* "a recording", for a sentence about the file. */
const char *file_kind_text(enum file_kind kind);

#endif
