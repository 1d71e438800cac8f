/* SPDX-License-Identifier: Apache-2.0
 * The end of the encoder: a convolution that halves the rate, with the edge rows repeated on both sides,
 * and the residual quantizer: one table for the first code; for the others, each on what the tables before
 * have left over. */
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "base/threads.h"
#include "cpu/encoders/encoder_parts.h"

enum {
    DOWN_TAPS = 4,
    DOWN_RATE = 2,
    FRAME_GRAIN = 4,
    LANES = 8,  /* of a sum of squares: as many as the official program's, on a machine with AVX2 */
    CHAINS = 4, /* side by side in that sum */
    LONGEST_CHAIN = 256, /* terms of a product that its library sums in one chain */
};

static const float least_usage = 1e-5f;

float encoder_sum_of_squares(const float *x, int n)
{
    float sums[CHAINS][LANES] = {{0}}, tail = 0;
    int i = 0;
    for (; i + CHAINS * LANES <= n; i += CHAINS * LANES) {
        for (int j = 0; j < CHAINS * LANES; j++) {
            sums[j / LANES][j % LANES] += x[i + j] * x[i + j];
        }
    }
    for (; i + LANES <= n; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            sums[0][j] += x[i + j] * x[i + j];
        }
    }
    for (; i < n; i++) {
        tail += x[i] * x[i];
    }
    for (int j = 0; j < LANES; j++) {
        tail += sums[0][j] + sums[1][j] + sums[2][j] + sums[3][j];
    }
    return tail;
}

struct quantizer {
    const struct encoder_run *run;
    int dim, n_codebooks, n_frames;
    float *table, *norms; /* of the codebook in use, as struct kern_nearest has them */
    float *rows;          /* [codebook_size][dim], the same as rows */
    float *left;          /* [n_frames][dim]: what is to be coded */
    float *left_norm;     /* [n_frames] */
    int32_t *chosen;      /* [n_frames] */
};

static void make_table_part(void *arg, int part, int n_parts)
{
    const struct quantizer *q = arg;
    int64_t begin, end, size = q->run->model->config->codec.codebook_size;
    pool_slice(size, KERN_NEAREST_BLOCK, part, n_parts, &begin, &end);
    for (int64_t e = begin; e < end; e++) {
        const float *row = q->rows + e * q->dim;
        float *to =
            q->table + e / KERN_NEAREST_BLOCK * KERN_NEAREST_BLOCK * q->dim + e % KERN_NEAREST_BLOCK;
        for (int i = 0; i < q->dim; i++) {
            to[(int64_t)i * KERN_NEAREST_BLOCK] = row[i];
        }
        q->norms[e] = encoder_sum_of_squares(row, q->dim);
    }
}

static void make_table(struct quantizer *q, int g)
{
    const struct encoder_weights *w = &q->run->model->encoder;
    int64_t size = w->table_sum[g].rows;
    for (int64_t e = 0; e < size; e++) {
        float usage = w->table_usage[g][e], *row = q->rows + e * q->dim;
        usage = max(usage, least_usage);
        weight_row(&w->table_sum[g], e, row);
        for (int i = 0; i < q->dim; i++) {
            row[i] /= usage;
        }
    }
    pool_run(q->run->pool, make_table_part, q, pool_size(q->run->pool));
}

static void nearest_part(void *arg, int part, int n_parts)
{
    const struct quantizer *q = arg;
    int64_t begin, end;
    pool_slice(q->n_frames, FRAME_GRAIN, part, n_parts, &begin, &end);
    if (begin >= end) {
        return;
    }
    int n_terms = q->dim + 2, n_chains = (n_terms + LONGEST_CHAIN - 1) / LONGEST_CHAIN;
    struct kern_nearest table = {.table = q->table,
        .norms = q->norms,
        .n = q->run->model->config->codec.codebook_size,
        .dim = q->dim,
        .terms = (n_terms + n_chains - 1) / n_chains};
    for (int64_t f = begin; f < end; f++) {
        q->left_norm[f] = encoder_sum_of_squares(q->left + f * q->dim, q->dim);
    }
    q->run->kern->nearest(&table, q->left + begin * q->dim, q->dim, q->left_norm + begin,
        (int)(end - begin), q->chosen + begin);
}

/* The codes of table g, and what they leave over. */
static void quantize(struct quantizer *q, int g, int32_t *codes)
{
    make_table(q, g);
    pool_run(q->run->pool, nearest_part, q, 4 * pool_size(q->run->pool));
    for (int64_t f = 0; f < q->n_frames; f++) {
        const float *row = q->rows + (int64_t)q->chosen[f] * q->dim;
        codes[f * q->n_codebooks + g] = q->chosen[f];
        for (int i = 0; i < q->dim; i++) {
            q->left[f * q->dim + i] -= row[i];
        }
    }
}

static bool quantizer_init(struct quantizer *q, int64_t n_frames)
{
    const struct codec_config *c = &q->run->model->config->codec;
    size_t dim = (size_t)c->encoder.codebook_dim, size = (size_t)c->codebook_size,
           padded = (size_t)(c->codebook_size + KERN_NEAREST_BLOCK - 1) / KERN_NEAREST_BLOCK *
                    KERN_NEAREST_BLOCK;
    q->dim = c->encoder.codebook_dim;
    q->n_codebooks = c->n_codebooks;
    q->n_frames = (int)n_frames;
    q->table = memory_new(padded, dim * sizeof(float));
    q->norms = memory_new(padded, sizeof(float));
    q->rows = memory_new(size, dim * sizeof(float));
    q->left = memory_new((size_t)n_frames, dim * sizeof(float));
    q->left_norm = memory_new((size_t)n_frames, sizeof(float));
    q->chosen = memory_new((size_t)n_frames, sizeof *q->chosen);
    return q->table && q->norms && q->rows && q->left && q->left_norm && q->chosen;
}

static void quantizer_fini(struct quantizer *q)
{
    memory_free(q->table);
    memory_free(q->norms);
    memory_free(q->rows);
    memory_free(q->left);
    memory_free(q->left_norm);
    memory_free(q->chosen);
}

/* x[n][width] -> new memory [ceil(n / 2)][width]; NULL when there is none. */
static float *halve_rate(const struct encoder_run *run, const float *x, int64_t n)
{
    int64_t width = run->model->config->codec.encoder.stack.width, n_out = (n + 1) / 2,
            front = DOWN_TAPS - DOWN_RATE;
    struct conv_weights weights = {run->model->encoder.down, NULL};
    struct encoder_conv down = {0};
    float *edged = memory_new((size_t)(front + n_out * DOWN_RATE), (size_t)width * sizeof *edged),
          *y = memory_new((size_t)n_out, (size_t)width * sizeof *y);
    if (edged && y && encoder_conv_init(&down, &weights, DOWN_TAPS)) {
        for (int64_t t = 0; t < front + n_out * DOWN_RATE; t++) {
            int64_t from = t < front ? 0 : t - front < n ? t - front : n - 1;
            memcpy(edged + t * width, x + from * width, (size_t)width * sizeof *x);
        }
        struct encoder_conv_pass conv = {
            .y = y, .x = edged, .x_stride = DOWN_RATE * width, .n_t = n_out};
        encoder_conv_run(&down, run->kern, run->pool, &conv);
    } else {
        memory_free(y);
        y = NULL;
    }
    encoder_conv_fini(&down);
    memory_free(edged);
    return y;
}

utter_status encoder_codes(const struct encoder_run *run, const float *x, int64_t n, int32_t *codes)
{
    const struct codec_config *c = &run->model->config->codec;
    int64_t n_frames = (n + 1) / 2, width = c->encoder.stack.width;
    struct quantizer q = {.run = run};
    float *z = halve_rate(run, x, n);
    utter_status status = UTTER_OK;
    if (!z || !quantizer_init(&q, n_frames)) {
        status = error_memory(run->error, "the encoder");
    }
    for (int g = 0; !status && g < c->n_codebooks; g++) {
        if (g == 0 ||
            g == c->n_semantic) { /* the two kinds are coded from the same row, independently */
            kern_matmul(run->kern, run->pool, q.left, q.dim,
                g == 0 ? &run->model->encoder.first_projection : &run->model->encoder.rest_projection,
                z, width, (int)n_frames, NULL);
        }
        quantize(&q, g, codes);
        status = encoder_report(run, 0.95 + 0.05 * (g + 1) / c->n_codebooks);
    }
    quantizer_fini(&q);
    memory_free(z);
    return status;
}
