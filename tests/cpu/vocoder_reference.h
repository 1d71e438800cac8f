/* SPDX-License-Identifier: Apache-2.0
 * The vocoder written down once more, whole file at a time, in double, without any state: what the
 * streaming one must come to. Its rules can be bent, to show that a wrong version would be seen. */
#ifndef TESTS_CPU_VOCODER_REFERENCE_H
#define TESTS_CPU_VOCODER_REFERENCE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"

struct reference_rules {
    int window;       /* keys that a query sees */
    bool empty_slots; /* the slots of the window that hold nothing yet take part, as zeros */
    double stack_eps, layer_norm_eps, usage_least, snake_least;
    bool snake_exp;      /* alpha and beta are logarithms */
    bool scaled;         /* the transformer's branches are scaled by channel */
    bool tanh_gelu;      /* the approximation of gelu */
    bool cut_left;       /* transposed convolutions lose their surplus on the left */
    bool swapped_tables; /* tables 1 and 2 of the rest */
    bool stack_only;     /* stop after the transformer: no samples */
};

static inline struct reference_rules reference_rules_of(const struct model *model)
{
    const struct stack_config *s = &model->config->codec.stack;
    return (struct reference_rules){.window = s->window,
        .stack_eps = (double)s->norm_eps,
        .layer_norm_eps = 1e-6,
        .usage_least = 1e-5,
        .snake_least = 1e-9,
        .snake_exp = true,
        .scaled = true};
}

struct reference_out {
    double *stack; /* [frames][latent] after the transformer */
    double *pcm;   /* [frames * frame_samples] before the clamp, or NULL */
};

/* Rows of channels, [n_rows][n]. */
struct reference_rows {
    double *at;
    int64_t n_rows, n;
};

static inline struct reference_rows reference_rows_new(int64_t n_rows, int64_t n)
{
    return (struct reference_rows){calloc((size_t)(n_rows * n) + 1, sizeof(double)), n_rows, n};
}

static inline double reference_at(const struct weight *w, int64_t i)
{
    return (double)((const float *)w->data)[i];
}

/* Replaces x by its causal convolution (`groups`: each row by itself). */
static inline void reference_conv(
    struct reference_rows *x, const struct conv_weights *w, int taps, int dilation, bool groups)
{
    struct reference_rows y = reference_rows_new(w->w.rows, x->n);
    int64_t n_in = groups ? 1 : x->n_rows;
    for (int64_t o = 0; o < y.n_rows; o++) {
        for (int64_t t = 0; t < x->n; t++) {
            double sum = w->bias ? (double)w->bias[o] : 0;
            for (int64_t c = 0; c < n_in; c++) {
                const double *row = x->at + (groups ? o : c) * x->n;
                for (int j = 0; j < taps; j++) {
                    int64_t from = t - (int64_t)(taps - 1 - j) * dilation;
                    sum += from >= 0 ? reference_at(&w->w, (o * n_in + c) * taps + j) * row[from] : 0;
                }
            }
            y.at[o * y.n + t] = sum;
        }
    }
    free(x->at);
    *x = y;
}

static inline void reference_upconv(
    struct reference_rows *x, const struct conv_weights *w, int stride, int taps, bool cut_left)
{
    int64_t n_out = w->w.cols / taps, surplus = cut_left ? taps - stride : 0;
    struct reference_rows y = reference_rows_new(n_out, x->n * stride);
    for (int64_t o = 0; o < n_out; o++) {
        for (int64_t at = 0; at < y.n; at++) {
            y.at[o * y.n + at] = (double)w->bias[o];
        }
        for (int64_t t = 0; t < x->n; t++) {
            for (int j = 0; j < taps; j++) {
                int64_t at = t * stride + j - surplus;
                for (int64_t c = 0; at >= 0 && at < y.n && c < x->n_rows; c++) {
                    y.at[o * y.n + at] +=
                        x->at[c * x->n + t] * reference_at(&w->w, (c * n_out + o) * taps + j);
                }
            }
        }
    }
    free(x->at);
    *x = y;
}

static inline void reference_snake(
    struct reference_rows *x, const struct snake_weights *w, const struct reference_rules *rules)
{
    for (int64_t c = 0; c < x->n_rows; c++) {
        double a = (double)w->alpha[c], b = (double)w->beta[c];
        a = rules->snake_exp ? exp(a) : a;
        b = 1 / ((rules->snake_exp ? exp(b) : b) + rules->snake_least);
        for (int64_t t = 0; t < x->n; t++) {
            double *v = &x->at[c * x->n + t], s = sin(*v * a);
            *v += b * s * s;
        }
    }
}

/* Columns: x[n][n_in] -> [n][n_out] in new memory, + bias where there is one. */
static inline double *reference_linear(
    const double *x, int64_t n, const struct weight *w, const float *bias)
{
    double *y = calloc((size_t)(n * w->rows), sizeof *y);
    for (int64_t t = 0; t < n; t++) {
        for (int64_t o = 0; o < w->rows; o++) {
            double sum = bias ? (double)bias[o] : 0;
            for (int64_t c = 0; c < w->cols; c++) {
                sum += reference_at(w, o * w->cols + c) * x[t * w->cols + c];
            }
            y[t * w->rows + o] = sum;
        }
    }
    return y;
}

static inline double *reference_columns(const struct reference_rows *x)
{
    double *y = malloc((size_t)(x->n * x->n_rows) * sizeof *y);
    for (int64_t t = 0; t < x->n; t++) {
        for (int64_t c = 0; c < x->n_rows; c++) {
            y[t * x->n_rows + c] = x->at[c * x->n + t];
        }
    }
    return y;
}

static inline void reference_rows_from(struct reference_rows *x, double *columns)
{
    for (int64_t t = 0; t < x->n; t++) {
        for (int64_t c = 0; c < x->n_rows; c++) {
            x->at[c * x->n + t] = columns[t * x->n_rows + c];
        }
    }
    free(columns);
}

static inline struct reference_rows reference_quantizer(
    const struct model *model, const struct reference_rules *rules, const int32_t *codes, int n)
{
    const struct codec_config *d = &model->config->codec;
    const struct vocoder_weights *w = &model->vocoder;
    int64_t half = d->codebook_dim / 2;
    double *sums[2] = {
        calloc((size_t)(n * half), sizeof(double)), calloc((size_t)(n * half), sizeof(double))};
    for (int t = 0; t < n; t++) {
        for (int g = 0; g < d->n_codebooks; g++) {
            int table = rules->swapped_tables && (g == 1 || g == 2) ? 3 - g : g;
            int64_t code = codes[t * d->n_codebooks + g];
            double usage = fmax((double)w->table_usage[table][code], rules->usage_least);
            for (int64_t i = 0; i < half; i++) {
                sums[g > 0][t * half + i] +=
                    reference_at(&w->table_sum[table], code * half + i) / usage;
            }
        }
    }
    double *first = reference_linear(sums[0], n, &w->first_projection, NULL),
           *rest = reference_linear(sums[1], n, &w->rest_projection, NULL);
    for (int64_t i = 0; i < (int64_t)n * d->codebook_dim; i++) {
        first[i] += rest[i];
    }
    struct reference_rows x = reference_rows_new(d->codebook_dim, n);
    reference_rows_from(&x, first);
    free(rest);
    free(sums[0]);
    free(sums[1]);
    return x;
}

/* ---- Transformer ---- */

static inline double *reference_norm(
    const double *x, int64_t n, const float *w, int64_t width, double eps)
{
    double *y = malloc((size_t)(n * width) * sizeof *y);
    for (int64_t t = 0; t < n; t++) {
        double squares = 0;
        for (int64_t c = 0; c < width; c++) {
            squares += x[t * width + c] * x[t * width + c];
        }
        double scale = 1 / sqrt(squares / (double)width + eps);
        for (int64_t c = 0; c < width; c++) {
            y[t * width + c] = x[t * width + c] * scale * (double)w[c];
        }
    }
    return y;
}

static inline void reference_rotate(double *x, int64_t n, int n_heads, int head, double theta)
{
    int half = head / 2;
    for (int64_t t = 0; t < n; t++) {
        for (int h = 0; h < n_heads; h++) {
            double *v = x + (t * n_heads + h) * head;
            for (int i = 0; i < half; i++) {
                double angle = (double)t * pow(theta, -2.0 * i / head), a = v[i], b = v[i + half];
                v[i] = a * cos(angle) - b * sin(angle);
                v[i + half] = b * cos(angle) + a * sin(angle);
            }
        }
    }
}

/* out[head] of query t of one head. */
static inline void reference_attend(double *out, const double *q, const double *k, const double *v,
    int64_t t, int64_t stride, int head, const struct reference_rules *rules)
{
    int64_t first = t + 1 < rules->window ? 0 : t + 1 - rules->window;
    double sum = rules->empty_slots ? (double)(rules->window - (t + 1 - first)) : 0; /* exp(0) each */
    memset(out, 0, (size_t)head * sizeof *out);
    for (int64_t i = first; i <= t; i++) {
        double score = 0;
        for (int d = 0; d < head; d++) {
            score += q[d] * k[i * stride + d];
        }
        double p = exp(score / sqrt((double)head));
        sum += p;
        for (int d = 0; d < head; d++) {
            out[d] += p * v[i * stride + d];
        }
    }
    for (int d = 0; d < head; d++) {
        out[d] /= sum;
    }
}

static inline void reference_add(
    double *x, double *branch, const float *scale, int64_t n, int64_t width)
{
    for (int64_t i = 0; i < n * width; i++) {
        x[i] += branch[i] * (scale ? (double)scale[i % width] : 1);
    }
    free(branch);
}

static inline void reference_layer(double *x, int64_t n, const struct stack_config *s,
    const struct layer_weights *l, const struct reference_rules *rules)
{
    int64_t q_width = (int64_t)s->n_heads * s->head, kv_width = (int64_t)s->n_kv_heads * s->head;
    double *normed = reference_norm(x, n, l->input_norm, s->width, rules->stack_eps),
           *q = reference_linear(normed, n, &l->q, NULL), *k = reference_linear(normed, n, &l->k, NULL),
           *v = reference_linear(normed, n, &l->v, NULL),
           *mixed = malloc((size_t)(n * q_width) * sizeof *mixed);
    free(normed);
    reference_rotate(q, n, s->n_heads, s->head, s->rope_theta);
    reference_rotate(k, n, s->n_kv_heads, s->head, s->rope_theta);
    for (int64_t t = 0; t < n; t++) {
        for (int h = 0; h < s->n_heads; h++) {
            int64_t kv = (int64_t)(h / (s->n_heads / s->n_kv_heads)) * s->head,
                    at = t * q_width + (int64_t)h * s->head;
            reference_attend(mixed + at, q + at, k + kv, v + kv, t, kv_width, s->head, rules);
        }
    }
    reference_add(x, reference_linear(mixed, n, &l->o, NULL), rules->scaled ? l->attention_scale : NULL,
        n, s->width);
    normed = reference_norm(x, n, l->post_norm, s->width, rules->stack_eps);
    double *gate = reference_linear(normed, n, &l->gate, NULL),
           *up = reference_linear(normed, n, &l->up, NULL);
    for (int64_t i = 0; i < n * s->inner; i++) {
        gate[i] *= up[i] / (1 + exp(-gate[i]));
    }
    reference_add(
        x, reference_linear(gate, n, &l->down, NULL), rules->scaled ? l->mlp_scale : NULL, n, s->width);
    double *const done[] = {normed, q, k, v, mixed, gate, up};
    for (size_t i = 0; i < sizeof done / sizeof *done; i++) {
        free(done[i]);
    }
}

/* x[n][latent] -> [n][latent] in new memory; x is freed. */
static inline double *reference_stack(
    double *x, int64_t n, const struct model *model, const struct reference_rules *rules)
{
    const struct stack_config *s = &model->config->codec.stack;
    const struct vocoder_weights *w = &model->vocoder;
    double *narrow = reference_linear(x, n, &w->stack_in.w, w->stack_in.bias);
    for (int i = 0; i < s->n_layers; i++) {
        reference_layer(narrow, n, s, &w->stack.layers[i], rules);
    }
    double *normed = reference_norm(narrow, n, w->stack.norm, s->width, rules->stack_eps),
           *y = reference_linear(normed, n, &w->stack_out.w, w->stack_out.bias);
    free(x);
    free(narrow);
    free(normed);
    return y;
}

/* ---- The rest ---- */

static inline void reference_layer_norm(
    double *x, const struct convnext_weights *w, int64_t n, double eps)
{
    double mean = 0, squares = 0;
    for (int64_t c = 0; c < n; c++) {
        mean += x[c] / (double)n;
    }
    for (int64_t c = 0; c < n; c++) {
        squares += (x[c] - mean) * (x[c] - mean) / (double)n;
    }
    for (int64_t c = 0; c < n; c++) {
        x[c] = (x[c] - mean) / sqrt(squares + eps) * (double)w->norm[c] + (double)w->norm_bias[c];
    }
}

static inline double reference_gelu(double x, bool by_tanh)
{
    return by_tanh ? 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
                   : 0.5 * x * (1 + erf(x * 0.7071067811865476));
}

static inline void reference_convnext(
    struct reference_rows *x, const struct convnext_weights *w, const struct reference_rules *rules)
{
    struct reference_rows y = reference_rows_new(x->n_rows, x->n);
    memcpy(y.at, x->at, (size_t)(x->n * x->n_rows) * sizeof *y.at);
    reference_conv(&y, &w->depthwise, 7, 1, true);
    double *columns = reference_columns(&y);
    for (int64_t t = 0; t < y.n; t++) {
        reference_layer_norm(columns + t * y.n_rows, w, y.n_rows, rules->layer_norm_eps);
    }
    double *wide = reference_linear(columns, y.n, &w->widen.w, w->widen.bias);
    for (int64_t i = 0; i < y.n * w->widen.w.rows; i++) {
        wide[i] = reference_gelu(wide[i], rules->tanh_gelu);
    }
    reference_rows_from(&y, reference_linear(wide, y.n, &w->narrow.w, w->narrow.bias));
    for (int64_t i = 0; i < y.n * y.n_rows; i++) {
        x->at[i] += (double)w->gamma[i / y.n] * y.at[i];
    }
    free(columns);
    free(wide);
    free(y.at);
}

static inline void reference_unit(struct reference_rows *x, const struct unit_weights *u, int dilation,
    const struct reference_rules *rules)
{
    struct reference_rows y = reference_rows_new(x->n_rows, x->n);
    memcpy(y.at, x->at, (size_t)(x->n * x->n_rows) * sizeof *y.at);
    reference_snake(&y, &u->snake1, rules);
    reference_conv(&y, &u->conv1, 7, dilation, false);
    reference_snake(&y, &u->snake2, rules);
    reference_conv(&y, &u->conv2, 1, 1, false);
    for (int64_t i = 0; i < y.n * y.n_rows; i++) {
        x->at[i] += y.at[i];
    }
    free(y.at);
}

static inline struct reference_out reference_run(
    const struct model *model, const struct reference_rules *rules, const int32_t *codes, int n)
{
    const struct codec_config *d = &model->config->codec;
    const struct vocoder_weights *w = &model->vocoder;
    struct reference_out out;
    struct reference_rows x = reference_quantizer(model, rules, codes, n);
    reference_conv(&x, &w->pre_conv, 3, 1, false);
    reference_rows_from(&x, reference_stack(reference_columns(&x), n, model, rules));
    out.stack = reference_columns(&x);
    out.pcm = NULL;
    if (rules->stack_only) {
        free(x.at);
        return out;
    }
    for (int i = 0; i < d->n_ratios; i++) {
        reference_upconv(&x, &w->upsample[i].up, d->ratios[i], d->ratios[i], false);
        reference_convnext(&x, &w->upsample[i], rules);
    }
    reference_conv(&x, &w->first, 7, 1, false);
    for (int i = 0; i < d->n_rates; i++) {
        const struct block_weights *b = &w->blocks[i];
        reference_snake(&x, &b->snake, rules);
        reference_upconv(&x, &b->up, d->rates[i], 2 * d->rates[i], rules->cut_left);
        for (int k = 0, dilation = 1; k < 3; k++, dilation *= 3) {
            reference_unit(&x, &b->units[k], dilation, rules);
        }
    }
    reference_snake(&x, &w->last_snake, rules);
    reference_conv(&x, &w->last, 7, 1, false);
    out.pcm = x.at;
    return out;
}

static inline void reference_free(struct reference_out *out)
{
    free(out->stack);
    free(out->pcm);
}

#endif
