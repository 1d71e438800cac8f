/* SPDX-License-Identifier: Apache-2.0
 * Plays samples on the default sound device. PortAudio is loaded when it is first asked for, so the program
 * runs where it is not installed. */
#ifndef CLI_PLAYER_H
#define CLI_PLAYER_H

#include <stdbool.h>
#include <stddef.h>

struct player;

/* NULL when there is no PortAudio or no device to play on. */
struct player *player_open(int sample_rate);
/* Returns when the device has taken the samples; false when it failed. */
bool player_write(struct player *player, const float *pcm, size_t n);
/* Plays what is left, or drops it, and frees. Accepts NULL. */
void player_close(struct player *player, bool play_rest);

#endif
