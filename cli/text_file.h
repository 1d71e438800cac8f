/* SPDX-License-Identifier: Apache-2.0
 * A text that the program writes itself, while it is made: a file appears under its name when it is complete, and what
 * was there before stays until then; standard output gets it as it comes. */
#ifndef CLI_TEXT_FILE_H
#define CLI_TEXT_FILE_H

#include <stdio.h>

/* Zero it before use. */
struct text_file {
    FILE *lines; /* to print to; NULL: it is not open */
    struct file_out *out;
};

/* `path` "-" is standard output. 0, or an exit code after a message. After a failure no file is left behind. */
int text_file_open(struct text_file *file, const char *path);
int text_file_close(struct text_file *file);
void text_file_abort(struct text_file *file); /* accepts a zeroed or closed one */

#endif
