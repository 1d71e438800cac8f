/* SPDX-License-Identifier: Apache-2.0
 * How loud sound is (EBU R 128), by libebur128, which is loaded when it is asked for. */
#ifndef BOOK_LOUDNESS_H
#define BOOK_LOUDNESS_H

#include <stdbool.h>
#include <stddef.h>

struct loudness;

bool loudness_is_here(void);
struct loudness *loudness_new(int rate); /* NULL when out of memory, or the library is not here */
bool loudness_add(struct loudness *l, const float *pcm, size_t n);
/* The factor that makes what was added as loud as `lufs`, its peaks at most 1 dB below full scale; *short_lu, what it
 * then lacks. 1 of silence. */
double loudness_gain(struct loudness *l, double lufs, double *short_lu);
void loudness_free(struct loudness *l); /* accepts NULL */

#endif
