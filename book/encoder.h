/* SPDX-License-Identifier: Apache-2.0
 * ffmpeg, as a child: samples go in while they are made, and an m4b with chapters and cover comes out. */
#ifndef BOOK_ENCODER_H
#define BOOK_ENCODER_H

#include "book/book.h"

struct encoder;

/* A chapter of the file that is written. */
struct encoder_mark {
    const char *title;
    uint64_t begin, end; /* in samples */
};

bool encoder_is_here(void); /* ffmpeg is installed */

/* `folder` takes what is made on the way. */
utter_status encoder_open(
    struct encoder **e, const struct book *book, const char *folder, int rate, utter_error *error);
utter_status encoder_write(struct encoder *e, const float *pcm, size_t n, utter_error *error);
/* Completes the file under its name and frees the encoder, also when it fails. The chapters cost a copy of the file,
 * for which nobody waits once `stop` says so: UTTER_AGAIN, and the file has all of the sound and the title. */
utter_status encoder_close(struct encoder **e, const char *path, const struct book *book,
    const struct encoder_mark *marks, size_t n_marks, bool (*stop)(void), utter_error *error);
void encoder_abort(struct encoder **e);

#endif
