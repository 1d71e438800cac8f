/* SPDX-License-Identifier: Apache-2.0
 * Lanes in one launch of the frame kernel against each of them alone: prompts of different lengths and places in the
 * cache, other settings and seeds for each, one with forced codes; every code, score, state and cache must be the
 * same to the last bit. */
#ifndef TESTS_CUDA_FRAME_TOGETHER_H
#define TESTS_CUDA_FRAME_TOGETHER_H

#include <stddef.h>

#include "tests/cuda/frame_compare.h"

/* What kernels write of a lane's state. They only read its settings, which stand in front of it and may have bytes
 * that nobody sets, as structs do. */
enum { WRITTEN_AT = offsetof(struct cuda_lane, position) };

/* Between places of lanes in the cache, and how far the farthest of them comes: pages beyond the 8th and beyond the
 * 16th are attended to later. */
enum { TOGETHER_FAR = 125, TOGETHER_POSITIONS = 3 * TOGETHER_FAR + 20 };

/* What frames of n lanes have left, in one buffer. */
struct left {
    unsigned char *bytes;
    size_t n, room;
};

static void left_add(struct left *left, const void *device, size_t bytes)
{
    if (left->n + bytes > left->room) {
        left->room = 2 * (left->n + bytes);
        left->bytes = (unsigned char *)realloc(left->bytes, left->room);
    }
    machine_read(left->bytes + left->n, device, bytes);
    left->n += bytes;
}

static struct lane_settings together_settings(int lane)
{
    struct lane_settings s = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 7, 2};
    s.seed = (uint64_t)lane * 31 + 5;
    s.talker.top_p = lane % 3 == 1 ? 0.9f : 1;
    s.talker.temperature = lane % 4 == 3 ? 0 : 0.9f;
    return s;
}

/* A prompt of this lane: all but the last row end after their layers. */
static int together_prompt(struct rig *rig, int lane, int n_rows)
{
    const int width = rig->model->config->talker.width;
    float *row = (float *)malloc((size_t)width * sizeof *row);
    int bad = 0;
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < width; i++) {
            row[i] = (float)(((i + lane * 13 + r * 5) * 7919) % 997) * 1e-4f - 0.05f;
        }
        bad += rig_run_lane(rig, lane, r, row, NULL,
            FRAME_STEP | FRAME_ROW | (r + 1 < n_rows ? FRAME_NO_HEAD : FRAME_NO_CODES));
    }
    free(row);
    return bad;
}

/* The first position behind a lane's prompt and, for most, behind a cache as if there were more. */
static int together_position(int lane)
{
    return 1 + lane * 11 % 20 + lane % 4 * TOGETHER_FAR;
}

/* A lane's cache: numbers that are others in each page. */
static void together_fill(struct rig *rig, int lane)
{
    const struct cuda_lanes *l = &rig->lanes;
    const size_t n = (size_t)l->page_floats;
    float *page = (float *)malloc((n + (size_t)l->pages_stride) * sizeof *page);
    for (size_t i = 0; i < n + (size_t)l->pages_stride; i++) {
        page[i] = (float)((i + (size_t)lane * 13) * 7919 % 1999) * 1e-3f - 1;
    }
    for (int i = 0; i < l->pages_stride; i++) {
        machine_write(l->cache + ((size_t)lane * l->pages_stride + i) * n, page + i, n * sizeof *page);
    }
    free(page);
}

/* The pages of a lane that frames up to `position` have written. */
static void together_pages(struct rig *rig, struct left *left, int lane, int position)
{
    const struct cuda_lanes *l = &rig->lanes;
    for (int p = position / CUDA_PAGE, n = 0; p >= 0 && n < 2; p--, n++) {
        int32_t page;
        machine_read(&page, l->pages + (size_t)lane * l->pages_stride + p, sizeof page);
        left_add(left, l->cache + (size_t)page * l->page_floats, l->page_floats * sizeof *l->cache);
    }
}

/* n_frames frames of lanes 0 .. n - 1, in launches of `each` lanes. The number of faults. */
static int together_speak(struct rig *rig, int n, int each, int n_frames, struct left *left)
{
    const struct config *c = rig->model->config;
    const size_t scores = (size_t)c->n_codebooks * (size_t)c->predictor_vocabulary;
    struct frame_ask asks[FRAME_MOST_LANES];
    utter_error error;
    uint32_t errors;
    int bad = 0;
    for (int l = 0; l < n; l++) {
        const struct lane_settings settings = together_settings(l);
        const int n_rows = 1 + l * 11 % 20;
        rig_reset_lane(rig, l, &settings);
        together_fill(rig, l);
        bad += together_prompt(rig, l, n_rows);
        asks[l] = (struct frame_ask){
            l, together_position(l), rig->row + (size_t)l * c->talker.width, NULL, rig->out_device + l};
        if (l == 2) {
            int32_t codes[DRIVER_CODEBOOKS];
            for (int j = 0; j < c->n_codebooks; j++) {
                codes[j] = (j * 517 + 3) % c->predictor_vocabulary;
            }
            machine_write(rig->forced, codes, (size_t)c->n_codebooks * sizeof *codes);
            asks[l].forced = rig->forced;
        }
    }
    for (int f = 0; f < n_frames; f++) {
        for (int l = 0; l < n; l += each) {
            const uint64_t sequence = ++rig->sequence;
            machine_check("frames of lanes",
                frame_kernel_run(rig->kernel, asks + l, each, f > 0 ? FRAME_STEP : 0, sequence, &error),
                &error);
            machine_check("wait", frame_kernel_errors(rig->kernel, &errors, &error), &error);
            for (int i = l; i < l + each; i++) {
                asks[i].position += f > 0;
                bad += errors != 0 || rig->out[i].sequence != sequence || rig->out[i].failed;
                rig->out[i].sequence = 0;
                left_add(
                    left, rig->logits + (size_t)(i - l) * scores, rig->out[i].end ? 0 : scores * 4);
            }
        }
        for (int l = 0; l < n; l++) {
            left_add(left, rig->out_device + l, sizeof *rig->out);
            left_add(left, (unsigned char *)(rig->lanes.state + l) + WRITTEN_AT,
                sizeof *rig->lanes.state - WRITTEN_AT);
        }
    }
    const size_t width = (size_t)c->talker.width, codes = (size_t)c->codec_vocabulary;
    left_add(left, rig->lanes.hidden, (size_t)n * width * 4);
    left_add(left, rig->lanes.logits, (size_t)n * codes * 4);
    left_add(left, rig->lanes.sum, (size_t)n * width * 4);
    left_add(left, rig->lanes.seen, (size_t)n * codes);
    for (int l = 0; l < n; l++) {
        together_pages(rig, left, l, together_position(l) + n_frames);
    }
    return bad;
}

/* The number of faults of n lanes alone and together. */
static int together_run(struct rig *rig, int n, int n_frames)
{
    struct left alone = {NULL, 0, 0}, together = {NULL, 0, 0};
    int bad = together_speak(rig, n, 1, n_frames, &alone);
    bad += together_speak(rig, n, n, n_frames, &together);
    size_t differ = 0, first = 0;
    for (size_t i = 0; i < alone.n && i < together.n; i++) {
        if (alone.bytes[i] != together.bytes[i] && differ++ == 0) {
            first = i;
        }
    }
    bad += differ > 0 || alone.n != together.n;
    printf("%d lanes, %d frames: alone and together %s (%zu of %zu bytes differ, the first at %zu); %d "
           "faults\n",
        n, n_frames, differ ? "DIFFER" : "equal", differ, alone.n, first, bad);
    free(alone.bytes);
    free(together.bytes);
    return bad;
}

#endif
