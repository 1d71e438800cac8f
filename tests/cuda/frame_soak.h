/* SPDX-License-Identifier: Apache-2.0
 * Lanes in launches of the frame kernel, any number of them, with random settings, prompts and lengths, everything
 * spoken twice: every code and every score of code 0 must be the same again. */
#ifndef TESTS_CUDA_FRAME_SOAK_H
#define TESTS_CUDA_FRAME_SOAK_H

#include "tests/cuda/frame_together.h"

enum { SOAK_FRAMES = 90 };

struct group {
    struct lane_settings settings[FRAME_MOST_LANES];
    int n_rows[FRAME_MOST_LANES], n, n_frames;
};

static uint32_t soak_below(uint64_t *random, uint32_t n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*random >> 33) % n);
}

/* Most likely ones by mass, of all, take the GPU milliseconds for each code: seldom. */
static utter_sampling soak_sampling(uint64_t *random)
{
    const int ks[] = {0, 1, 5, 50, 50, 300};
    const float ps[] = {1, 1, 1, 0.95f, 0.5f}, temperatures[] = {0, 0.6f, 0.9f, 1.3f};
    utter_sampling s = {};
    s.top_k = ks[soak_below(random, 6)];
    s.top_p = ps[soak_below(random, 5)];
    s.temperature = temperatures[soak_below(random, 4)];
    s.repetition_penalty = 1 + (float)soak_below(random, 8) * 0.02f;
    if (s.top_p < 1 && (s.top_k == 0 || s.top_k > 50) && soak_below(random, 64) > 0) {
        s.top_k = 50;
    }
    return s;
}

static void soak_draw(struct group *g, uint64_t *random, int most_lanes)
{
    g->n = soak_below(random, 3) == 0 ? most_lanes : 1 + (int)soak_below(random, (uint32_t)most_lanes);
    g->n_frames = 20 + (int)soak_below(random, SOAK_FRAMES - 19);
    for (int l = 0; l < g->n; l++) {
        struct lane_settings *s = &g->settings[l];
        *s = (struct lane_settings){soak_sampling(random), soak_sampling(random), 0, 2};
        s->seed = soak_below(random, 1u << 30);
        g->n_rows[l] = 1 + (int)soak_below(random, soak_below(random, 4) == 0 ? 100 : 20);
    }
}

static uint64_t soak_sum(uint64_t sum, const void *data, size_t bytes)
{
    const uint32_t *words = (const uint32_t *)data;
    for (size_t i = 0; i < bytes / 4; i++) {
        sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15u;
    }
    return sum;
}

/* What each frame of a group gives, as a number. The number of frames that failed. */
static int soak_speak(struct rig *rig, const struct group *g, uint64_t (&sums)[SOAK_FRAMES])
{
    const size_t each = (size_t)rig->model->config->codec_vocabulary * 4;
    const int width = rig->model->config->talker.width;
    static unsigned char scores[FRAME_MOST_LANES * 3072 * 4];
    struct frame_ask asks[FRAME_MOST_LANES];
    utter_error error;
    int bad = 0;
    for (int l = 0; l < g->n; l++) {
        rig_reset_lane(rig, l, &g->settings[l]);
        bad += together_prompt(rig, l, g->n_rows[l]);
        asks[l] = (struct frame_ask){
            l, g->n_rows[l], rig->row + (size_t)l * (size_t)width, NULL, rig->out_device + l};
    }
    for (int f = 0; f < g->n_frames; f++) {
        uint32_t errors;
        const uint64_t sequence = ++rig->sequence;
        machine_check("frame",
            frame_kernel_run(rig->kernel, asks, g->n, f > 0 ? FRAME_STEP : 0, sequence, &error),
            &error);
        machine_check("wait", frame_kernel_errors(rig->kernel, &errors, &error), &error);
        machine_read(scores, rig->lanes.logits, (size_t)g->n * each);
        bad += errors != 0;
        sums[f] = soak_sum(1, scores, (size_t)g->n * each);
        for (int l = 0; l < g->n; l++) {
            const struct cuda_frame_out *out = &rig->out[l];
            asks[l].position += f > 0;
            bad += out->sequence != sequence || out->failed;
            sums[f] = soak_sum(sums[f] + out->end, out->codes,
                out->end ? 4 : (size_t)rig->model->config->n_codebooks * 4);
        }
    }
    return bad;
}

/* At least n_frames frames, each twice. The number of groups that differ or fail. */
static int soak_run(struct rig *rig, long n_frames, uint64_t seed)
{
    const int most = frame_kernel_lanes(rig->kernel);
    uint64_t random = seed, first[SOAK_FRAMES], second[SOAK_FRAMES];
    long done = 0, launches = 0, of_lanes[FRAME_MOST_LANES + 1] = {};
    int bad = 0;
    while (done < n_frames && bad < 20) {
        struct group g;
        int at = 0;
        soak_draw(&g, &random, most);
        const int failed = soak_speak(rig, &g, first) + soak_speak(rig, &g, second);
        while (at < g.n_frames && first[at] == second[at]) {
            at++;
        }
        if (failed > 0 || at < g.n_frames) {
            printf("  %d lanes, %d frames: differ from frame %d on, %d failures\n", g.n, g.n_frames, at,
                failed);
            bad++;
        }
        done += (long)g.n * g.n_frames;
        launches += 2 * g.n_frames;
        of_lanes[g.n] += (long)g.n * g.n_frames;
    }
    printf("%ld frames with random settings, each twice, %ld launches: %d groups differ or fail; of 1 "
           "to %d lanes:",
        done, launches, bad, most);
    for (int n = 1; n <= most; n++) {
        printf(" %ld", of_lanes[n]);
    }
    printf("\n");
    return bad;
}

#endif
