/* SPDX-License-Identifier: Apache-2.0
 * Where the sound goes: a file, standard output, or the sound device. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli/options.h"
#include "cli/speak/player.h"
#include "effects/effects.h"
#include "utter.h"

struct output {
    utter_sound *sound;
    struct player *player;
    const char *path;        /* of the file; "-" standard output; NULL: it is played */
    struct effects *effects; /* --speed, --volume, --rate */
    int rate;
    size_t n_samples; /* that were written, at this rate */
};

/* Whether a file can be written there, before long work is done for it: 0, or an exit code after a message. */
int output_check(const char *path);
/* Somebody listens while it is made: it is a pipe. */
bool output_is_heard(const char *path);
/* 0, or an exit code after a message. With `may_play` and no -o it plays where it can. */
int output_open(struct output *output, const struct settings *settings, bool may_play, int sample_rate);
int output_write(struct output *output, const float *pcm, size_t n);
/* Completes the file, or plays to the end, where that is wanted. */
int output_close(struct output *output, bool play_rest);
/* Leaves nothing behind. Accepts a zeroed or closed one. */
void output_abort(struct output *output);

#endif
