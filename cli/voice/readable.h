/* SPDX-License-Identifier: Apache-2.0
 * A recording as a file that the library reads: itself, or what ffmpeg makes of the kinds of phones and browsers. */
#ifndef CLI_READABLE_H
#define CLI_READABLE_H

#include "utter.h"

struct readable {
    const char *path;
    char folder[4096]; /* made for the file, and taken away again; "": none was made */
    char made[4352];   /* what ffmpeg makes, in that folder */
};

/* 0, or an exit code after a message. Where ffmpeg is not to be had, the library says what it thinks of the file. */
int readable_open(struct readable *readable, const char *path);
/* Gives a message about what ffmpeg made the name of the file that was given. */
void readable_name_given(const struct readable *readable, const char *given, utter_error *error);
void readable_close(struct readable *readable);

#endif
