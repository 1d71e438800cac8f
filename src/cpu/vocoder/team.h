/* SPDX-License-Identifier: Apache-2.0
 * The vocoders of several lanes at once: each thread takes a lane and runs the whole of it alone, so that small
 * layers cost no waiting. Worth it where a vocoder's scratch is small; what a lane gets is the same, to the bit. */
#ifndef CPU_VOCODER_TEAM_H
#define CPU_VOCODER_TEAM_H

#include "cpu/vocoder/vocoder.h"

struct cpu_vocoder_team;

/* Frames of one lane that wait, as cpu_vocoder_run takes them, and what it returns. */
struct vocoder_order {
    struct cpu_vocoder_lane *lane;
    const int32_t *codes;
    int n_frames;
    float *pcm;
    bool finite;
};

/* For up to n_lanes lanes on the threads of `pool`; `alike` is the vocoder that the team does the work of. *team is
 * NULL where a team gives nothing. */
utter_status cpu_vocoder_team_open(struct cpu_vocoder_team **team, const struct cpu_vocoder *alike,
    struct pool *pool, int n_lanes, utter_error *error);
void cpu_vocoder_team_close(struct cpu_vocoder_team **team);
void cpu_vocoder_team_run(struct cpu_vocoder_team *team, struct vocoder_order *orders, int n);
uint64_t cpu_vocoder_team_bytes(const struct cpu_vocoder_team *team); /* accepts NULL */

#endif
