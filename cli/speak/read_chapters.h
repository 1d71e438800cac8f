/* SPDX-License-Identifier: Apache-2.0
 * Which chapters of a book were asked for, and what `utter read --list` shows of them. */
#ifndef CLI_READ_CHAPTERS_H
#define CLI_READ_CHAPTERS_H

#include "book/book.h"
#include "cli/options.h"

/* Whether --chapters can be understood and names chapters that there are: 0, or an exit code after a message. */
int read_chapters_check(const struct settings *settings, const struct book *book);
/* Whether it names chapter i, from 0. */
bool read_chapters_have(const struct settings *settings, size_t i);
int read_list(const struct book *book, const struct settings *settings);

#endif
