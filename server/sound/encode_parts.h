/* SPDX-License-Identifier: Apache-2.0
 * The coded formats, shared by the two halves of the encoder. */
#ifndef SERVER_ENCODE_PARTS_H
#define SERVER_ENCODE_PARTS_H

#include <stdint.h>

#include "server/sound/encode.h"

struct encode_coder;

bool encode_is_coded(enum encode_format format); /* else it is samples as they are */
bool encode_has_any_rate(enum encode_format format);
int encode_delay_samples(enum encode_format format);

/* Of a coded format; rate: of the output. NULL where it cannot be had. */
struct encode_coder *encode_coder_new(const struct encode_settings *settings, int rate);
bool encode_coder_feed(
    struct encode_coder *c, const float *pcm, size_t n, bool final, struct wire_out *out);
void encode_coder_free(struct encode_coder *c); /* accepts NULL */

#endif
