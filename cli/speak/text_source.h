/* SPDX-License-Identifier: Apache-2.0
 * Where the text comes from: the command line, a file, or standard input while it arrives. */
#ifndef CLI_TEXT_SOURCE_H
#define CLI_TEXT_SOURCE_H

#include "cli/options.h"

struct text_source {
    char *text; /* the whole text from the command line, or what has been read to be kept; or NULL */
    size_t bytes, room; /* in it */
    int descriptor;     /* -1: none, or read to its end */
    const char *name;
    size_t line_at; /* of `text`: where the next line begins */
};

/* Finds out where the text is. 0, or an exit code after a message. */
int text_source_open(struct text_source *source, const struct invocation *invocation);
/* Reads everything into `text`. */
int text_source_read_all(struct text_source *source);
/* The next piece from the descriptor, at most `capacity` bytes; *n 0 at its end, and the descriptor is closed
 * then. Waits until there is something. */
int text_source_read(struct text_source *source, char *piece, size_t capacity, size_t *n);
/* The next line without its end, NULL behind the last one; valid until the next call. Waits for it, and gives NULL when
 * a signal comes first. */
int text_source_line(struct text_source *source, char **line, size_t *bytes);
void text_source_close(struct text_source *source);

#endif
