/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel against the CPU backend on one checkpoint: the same rows, the same forced codes, every logit and
 * code compared. What runs the kernel is behind four functions that the including file
 * defines. */
#ifndef TESTS_CUDA_FRAME_DRIVER_H
#define TESTS_CUDA_FRAME_DRIVER_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "cuda/persistent/persistent.h"

/* `bytes` bytes of device memory, zero or as `from`. Never freed. */
static void *machine_new(size_t bytes, const void *from);
static void machine_read(void *to, const void *from, size_t bytes);
static void machine_write(void *to, const void *from, size_t bytes);
static void machine_check(const char *what, utter_status status, const utter_error *error)
{
    if (status) {
        fprintf(stderr, "%s: %s\n", what, error->text);
        exit(2);
    }
}

/* Lane l has the pages from l * pages_stride on. */
static void lanes_of(struct cuda_lanes *l, const struct config *c, int n_lanes, int n_positions)
{
    const size_t n = (size_t)n_lanes, width = (size_t)c->talker.width;
    memset(l, 0, sizeof *l);
    l->n = n_lanes;
    l->state = (struct cuda_lane *)machine_new(n * sizeof *l->state, NULL);
    l->hidden = (float *)machine_new(n * width * 4, NULL);
    l->logits = (float *)machine_new(n * (size_t)c->codec_vocabulary * 4, NULL);
    l->seen = (uint8_t *)machine_new(n * (size_t)c->codec_vocabulary, NULL);
    l->sum = (float *)machine_new(n * width * 4, NULL);
    l->codes = (int32_t *)machine_new(n * BACKEND_MAX_FEED * c->n_codebooks * 4, NULL);
    l->pages_stride = n_positions / CUDA_PAGE + 1;
    l->n_pages = n_lanes * l->pages_stride;
    l->page_floats = (uint64_t)c->talker.n_layers * FRAME_KV_HEADS * 2 * CUDA_PAGE * FRAME_HEAD;
    l->cache = (float *)machine_new(l->page_floats * (size_t)l->n_pages * 4, NULL);
    int32_t *pages = (int32_t *)calloc((size_t)l->n_pages, sizeof *pages);
    for (int i = 0; i < l->n_pages; i++) { /* in no simple order */
        pages[i] = i / l->pages_stride * l->pages_stride + l->pages_stride - 1 - i % l->pages_stride;
    }
    l->pages = (int32_t *)machine_new((size_t)l->n_pages * sizeof *pages, pages);
    free(pages);
}

/* ---- The reference ---- */

enum { DRIVER_CODEBOOKS = 16 };

struct expected {
    float *rows, *hidden, *talker; /* of the last call */
    float *predictor;              /* [n_codebooks][predictor_vocabulary] */
    int n_rows;
    const struct config *config;
};

static void expected_tap(
    void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct expected *e = (struct expected *)user;
    size_t bytes = (size_t)(rows * cols) * sizeof *data;
    if (strcmp(name, "prompt") == 0) {
        memcpy(e->rows + (size_t)index * cols, data, bytes);
    } else if (strcmp(name, "talker.hidden") == 0) {
        memcpy(e->hidden, data, bytes);
    } else if (strcmp(name, "talker.logits") == 0) {
        memcpy(e->talker, data, bytes);
    } else if (strcmp(name, "predictor.logits") == 0) {
        memcpy(e->predictor + (size_t)index * cols, data, bytes);
    }
}

/* Largest difference relative to the largest value; where. */
static double compare(
    const char *what, int index, const float *got, const float *want, int n, double limit, int *bad)
{
    double largest = 0, scale = 0;
    int where = 0;
    for (int i = 0; i < n; i++) {
        double d = fabs((double)got[i] - want[i]);
        scale = fmax(scale, fabs((double)want[i]));
        if (!(d <= largest)) {
            largest = d;
            where = i;
        }
        if (d != d) {
            largest = INFINITY;
            break;
        }
    }
    double relative = largest / (scale > 0 ? scale : 1);
    if (!(relative <= limit)) {
        (*bad)++;
        printf("  %s %d: error %.3g of %.3g at %d: %g, wanted %g\n", what, index, largest, scale, where,
            got[where], want[where]);
    }
    return relative;
}

#endif
