/* SPDX-License-Identifier: Apache-2.0
 * A text that the program writes itself: it is gathered in memory and written when it is complete, so that a file
 * appears under its name then, and what was there before stays until then. */
#ifndef CLI_TEXT_FILE_H
#define CLI_TEXT_FILE_H

#include <stdio.h>

/* Zero it before use. */
struct text_file {
    FILE *lines; /* to print to; NULL: it is not open */
    char *text;  /* what was printed */
    size_t bytes;
    struct file_out *out;
};

/* `path` "-" is standard output. 0, or an exit code after a message. After a failure nothing is left behind. */
int text_file_open(struct text_file *file, const char *path);
int text_file_close(struct text_file *file);
void text_file_abort(struct text_file *file); /* accepts a zeroed or closed one */

#endif
