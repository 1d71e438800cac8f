/* SPDX-License-Identifier: Apache-2.0
 * Codes -> samples on the CPU, with the whole state carried in the lane: any chunking gives the same bits. */
#ifndef CPU_VOCODER_VOCODER_H
#define CPU_VOCODER_VOCODER_H

#include "cpu/stack/stack.h"

struct cpu_vocoder;      /* prepared weights, shared by lanes */
struct cpu_vocoder_lane; /* state of one stream */

utter_status cpu_vocoder_open(struct cpu_vocoder **vocoder, const struct model *model,
    const struct kern *kern, struct pool *pool, utter_error *error);
void cpu_vocoder_close(struct cpu_vocoder **vocoder);

struct cpu_vocoder_lane *cpu_vocoder_lane_new(const struct cpu_vocoder *vocoder);
void cpu_vocoder_lane_free(struct cpu_vocoder_lane *lane);
void cpu_vocoder_lane_reset(const struct cpu_vocoder *vocoder, struct cpu_vocoder_lane *lane);

/* A lane's state to and from `state`, cpu_vocoder_state_bytes of it. */
size_t cpu_vocoder_state_bytes(const struct cpu_vocoder *vocoder);
void cpu_vocoder_state_get(
    const struct cpu_vocoder *vocoder, const struct cpu_vocoder_lane *lane, float *state);
void cpu_vocoder_state_put(
    const struct cpu_vocoder *vocoder, struct cpu_vocoder_lane *lane, const float *state);

/* n_frames (1 .. BACKEND_MAX_FEED) frames of codes [n_frames][n_codebooks], each in range, ->
 * pcm[n_frames * frame_samples], clamped to [-1, 1]. False when a sample came out NaN or infinite (then
 * it is written as 0). */
bool cpu_vocoder_run(struct cpu_vocoder *vocoder, struct cpu_vocoder_lane *lane, const int32_t *codes,
    int n_frames, float *pcm, const struct cpu_tap *tap);

/* The state that cpu_vocoder_run would leave behind n_frames (any number) of codes, without their samples. `scratch`
 * is as large as the pcm of BACKEND_MAX_FEED frames. */
void cpu_vocoder_prime(struct cpu_vocoder *vocoder, struct cpu_vocoder_lane *lane, const int32_t *codes,
    int n_frames, float *scratch);

void cpu_vocoder_memory(
    const struct cpu_vocoder *vocoder, uint64_t *shared_bytes, uint64_t *lane_bytes);

#endif
