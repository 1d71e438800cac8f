/* SPDX-License-Identifier: Apache-2.0
 * The heads of a talker that look at the word which is being said: a small file beside the checkpoint, or of its
 * own. */
#ifndef WORDS_HEADS_H
#define WORDS_HEADS_H

#include "model/backend.h"

enum { HEADS_MOST = 8 };

/* The file's name in a checkpoint's folder. */
#define HEADS_FILE "alignment_heads.json"

struct heads {
    struct talker_head at[HEADS_MOST];
    int n;          /* 0: none are known */
    double lead_ms; /* so much later is heard what they look at */
};

/* Reads {"alignment_heads": [[layer, head], ...], "lead_ms": L} from a path as checkpoints have them. */
utter_status heads_read(
    struct heads *heads, const struct config *config, const char *path, utter_error *error);
utter_status heads_write(const struct heads *heads, const char *path, utter_error *error);

#endif
