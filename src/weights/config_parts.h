/* SPDX-License-Identifier: Apache-2.0
 * What the readers of config files share, inside the room. */
#ifndef WEIGHTS_CONFIG_PARTS_H
#define WEIGHTS_CONFIG_PARTS_H

#include "base/json.h"
#include "weights/config.h"

enum { CONFIG_MAX_WIDTH = 1 << 16 };

/* The fields that all stacks share; only the key of the norm's epsilon differs between the files. */
utter_status config_read_stack(struct stack_config *s, const json_t *object, const char *where,
    const char *eps_key, utter_error *error);
/* A list of factors; multiplies *product. */
utter_status config_read_rates(
    int *rates, int *n, int *product, struct json_fields *f, const char *key);

/* `encoder_config` of the codec; `top` reads the object around it. The decoder's part of *d is complete. */
utter_status config_read_encoder(struct codec_config *d, const json_t *object, struct json_fields *top);
/* `speaker_encoder_config`; what it leaves out is what the official class says. */
utter_status config_read_speaker(struct speaker_config *s, struct json_fields *f);

#endif
