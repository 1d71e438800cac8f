/* SPDX-License-Identifier: Apache-2.0
 * What one utterance changes: caches, position, history, the frame that waits, its sound. */
#ifndef CPU_TALKER_LANE_H
#define CPU_TALKER_LANE_H

#include "cpu/vocoder/vocoder.h"

struct cpu_lane {
    struct lane_settings settings;
    struct cpu_cache talker;    /* address space for all positions; memory as it is used */
    struct cpu_cache predictor; /* one frame's positions, written anew for each frame */
    int64_t position;           /* the talker's next */
    float *hidden;              /* [talker width], of the last position, after the final norm */
    float *logits;              /* [codec_vocabulary], of the last position */
    bool ready;                 /* hidden and logits wait for the choice of code 0 */
    uint8_t *seen;              /* [codec_vocabulary]: 1 for what was noted, see cpu_lane_note_code */
    uint32_t n_frames;          /* chosen so far */
    int32_t *taken;             /* [n_codebooks]: the last frame as the lane goes on with it */
    struct lane_out out;        /* what collect hands out; codes point to `codes` */
    int32_t *codes;             /* [BACKEND_MAX_FEED][n_codebooks], as chosen or fed */
    int32_t *spoken;            /* the same, as the vocoder gets them */
    int n_waiting;              /* frames of `spoken` that vocode has not seen */
    float *pcm;                 /* [BACKEND_MAX_FEED * frame_samples] */
    struct cpu_vocoder_lane *vocoder;
    struct cpu_look look; /* begin == end: it looks at nothing */
    size_t look_room;     /* floats at look.scores */
};

/* All-zero lane in, ready for cpu_lane_reset out. */
utter_status cpu_lane_init(struct cpu_lane *lane, const struct model *model,
    const struct cpu_vocoder *vocoder, int n_positions, utter_error *error);
void cpu_lane_fini(struct cpu_lane *lane, const struct model *model);
void cpu_lane_reset(struct cpu_lane *lane, const struct model *model, const struct cpu_vocoder *vocoder,
    const struct lane_settings *settings);

/* From here to the next reset the lane looks at these rows with these heads, which stay the caller's. */
utter_status cpu_lane_look(struct cpu_lane *lane, const struct talker_head *heads, int n_heads,
    int begin, int end, utter_error *error);

/* Notes a code 0 that the lane goes on with: the only place that adds to the history that the repetition penalty
 * sees (struct sample_in). A reset forgets it; a snapshot holds none, since it is taken before the first frame. */
void cpu_lane_note_code(struct cpu_lane *lane, int32_t code);

/* What a lane holds after its first n_rows positions, and its vocoder's state with `vocoder`. NULL: no memory. */
struct backend_snapshot *cpu_snapshot_new(const struct cpu_lane *lane, const struct model *model,
    const struct cpu_vocoder *vocoder, int n_rows, bool with_vocoder);
/* Into a lane that was just reset and has room for the rows. */
void cpu_snapshot_put(const struct backend_snapshot *snapshot, struct cpu_lane *lane,
    const struct model *model, const struct cpu_vocoder *vocoder);
int cpu_snapshot_rows(const struct backend_snapshot *snapshot);
void cpu_snapshot_free(struct backend_snapshot *snapshot);

/* Bytes of keys and values for one position of the talker. */
uint64_t cpu_lane_position_bytes(const struct config *config);
/* Bytes of a lane beside those, without its vocoder state. */
uint64_t cpu_lane_fixed_bytes(const struct config *config);

#endif
