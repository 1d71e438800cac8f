/* SPDX-License-Identifier: Apache-2.0
 * Convolution kernels of the vocoder and its activation. Contracts in cpu/kern.h. */
#include <math.h>

static void conv(const struct kern_conv *c, int o0, int o1)
{
    for (int o = o0; o < o1; o++) {
        for (int64_t t = 0; t < c->n_t; t++) {
            float sum = 0;
            for (int i = 0; i < c->n_in; i++) {
                const float *x = c->x + i * c->x_stride + t,
                            *w = c->w + ((int64_t)o * c->n_in + i) * c->taps;
                for (int j = 0; j < c->taps; j++) {
                    sum += w[j] * x[j * c->dilation];
                }
            }
            float residual = c->residual ? c->residual[o * c->y_stride + t] : 0;
            c->y[o * c->y_stride + t] = sum + (c->bias ? c->bias[o] : 0) + residual;
        }
    }
}

static void upconv(const struct kern_upconv *c, int o0, int o1)
{
    int s = c->stride;
    for (int o = o0; o < o1; o++) {
        for (int64_t t = 0; t < c->n_t; t++) {
            for (int j = 0; j < s; j++) {
                float sum = 0;
                for (int i = 0; i < c->n_in; i++) {
                    const float *x = c->x + i * c->x_stride + t,
                                *w = c->w + ((int64_t)i * c->n_out + o) * 2 * s + j;
                    sum += w[0] * x[1] + w[s] * x[0];
                }
                c->y[o * c->y_stride + t * s + j] = sum + (c->bias ? c->bias[o] : 0);
            }
        }
    }
}

static void snake(float *y, const float *x, float a, float b, int64_t n)
{
    for (int64_t t = 0; t < n; t++) {
        float s = sinf(a * x[t]);
        y[t] = x[t] + s * s * b;
    }
}
