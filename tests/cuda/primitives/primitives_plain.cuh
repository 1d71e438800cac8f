/* SPDX-License-Identifier: Apache-2.0
 * Checks of instructions of one thread by itself (lib/ptx.cuh), and of arithmetic that is rounded as written. */
#ifndef TESTS_CUDA_PRIMITIVES_PRIMITIVES_PLAIN_CUH
#define TESTS_CUDA_PRIMITIVES_PRIMITIVES_PLAIN_CUH

#include "tests/cuda/primitives/primitives.h"

enum { PLAIN_THREADS = 256 };

static __global__ void load_once_kernel(struct words w)
{
    ptx_need(w.in);
    ptx_need((int64_t)1);
    ptx_need(1);
    ptx_prefetch(w.in + N_WORDS - 32);
    const uint4 v = ptx_load_once(w.in + 4 * (255 - threadIdx.x));
    ((uint4 *)w.out)[threadIdx.x] = v;
}

static void load_once_expect(const uint32_t *in, uint32_t *out)
{
    for (int i = 0; i < PLAIN_THREADS; i++) {
        memcpy(out + 4 * i, in + 4 * (255 - i), 16);
    }
}

/* Bits of words, and who a thread is. */
static __global__ void bits_kernel(struct words w)
{
    uint32_t v = w.in[threadIdx.x], *out = w.out + 8 * threadIdx.x;
    uint64_t wide = v;
    ptx_hold(v);
    ptx_hold(wide);
    out[0] = v;
    out[1] = (uint32_t)wide;
    out[2] = ptx_lowest(v) != 0;
    out[3] = (uint32_t)ptx_thread();
    out[4] = (uint32_t)__popc(v);
    out[5] = (uint32_t)__ffs((int)v);
    out[6] = __float_as_uint(__uint_as_float(v & 0x7fffffffu));
    out[7] = blockDim.x * 1000 + gridDim.x * 100 + blockIdx.x;
}

static void bits_expect(const uint32_t *in, uint32_t *out)
{
    for (uint32_t i = 0; i < PLAIN_THREADS; i++) {
        const uint32_t v = in[i], first = v & (0u - v);
        uint32_t n = 0, at = 0;
        for (int bit = 0; bit < 32; bit++) {
            n += v >> bit & 1;
            at = first >> bit & 1 ? (uint32_t)bit + 1 : at;
        }
        const uint32_t want[8] = {v, v, v & 1, i, n, at, v & 0x7fffffffu, 256 * 1000 + 100};
        memcpy(out + 8 * i, want, sizeof want);
    }
}

/* A float of a word, from tiny to huge and of both signs; for the first words the borders of what there is. */
static inline __host__ __device__ float some_float(uint32_t word, int i)
{
    const uint32_t borders[] = {0, 0x80000000u, 0x3f800000u, 0x7f800000u, 0xff800000u, 0x3f808000u,
        0x3f818000u, 0x3f807fffu, 0x3f808001u, 0x7f7fffffu, 0x00800000u, 0x00000001u};
    return numeric_from_bits(
        i < 12 ? borders[i] : (word & 0x807fffffu) | ((word >> 23 & 63) + 96) << 23);
}

static __global__ void pack_kernel(struct words w)
{
    const int i = (int)threadIdx.x;
    w.out[i] = pack_bf16(some_float(w.in[i], i), some_float(w.in[256 + i], 255 - i));
}

static void pack_expect(const uint32_t *in, uint32_t *out)
{
    for (int i = 0; i < PLAIN_THREADS; i++) {
        out[i] = bf16_from_float(some_float(in[i], i)) |
                 (uint32_t)bf16_from_float(some_float(in[256 + i], 255 - i)) << 16;
    }
}

/* A product and a sum that are not fused, one that is; roots, quotients, whole numbers. */
static __global__ void rounded_kernel(struct words w)
{
    const int i = (int)threadIdx.x;
    const float a = some_float(w.in[i], 99), b = some_float(w.in[256 + i], 99);
    uint32_t *out = w.out + 8 * i;
    out[0] = __float_as_uint(ptx_add(ptx_mul(a, b), -1.0f));
    out[1] = __float_as_uint(__fadd_rn(__fmul_rn(a, b), -1.0f));
    out[2] = __float_as_uint(__fmaf_rn(a, b, -1.0f));
    out[3] = __float_as_uint(__fsqrt_rn(fabsf(a)));
    out[4] = __float_as_uint(__fdiv_rn(a, b));
    out[5] = (uint32_t)__float2ll_rn(a * 0.001f);
    out[6] = (uint32_t)min((int)w.in[i], (int)w.in[256 + i]);
    out[7] = max(w.in[i], w.in[256 + i]);
}

static void rounded_expect(const uint32_t *in, uint32_t *out)
{
    for (int i = 0; i < PLAIN_THREADS; i++) {
        const float a = some_float(in[i], 99), b = some_float(in[256 + i], 99);
        volatile float product = a * b; /* not fused by any compiler */
        const int32_t least =
            (int32_t)in[i] < (int32_t)in[256 + i] ? (int32_t)in[i] : (int32_t)in[256 + i];
        const uint32_t want[8] = {word_of(product - 1.0f), word_of(product - 1.0f),
            word_of(fmaf(a, b, -1.0f)), word_of(sqrtf(fabsf(a))), word_of(a / b),
            (uint32_t)llrintf(a * 0.001f), (uint32_t)least, in[i] > in[256 + i] ? in[i] : in[256 + i]};
        memcpy(out + 8 * i, want, sizeof want);
    }
}

/* Functions whose last bits a GPU makes in its own way. */
static __global__ void about_kernel(struct words w)
{
    const int i = (int)threadIdx.x;
    const float x = some_float(w.in[i] & 0x7fffffffu, 99), y = (float)(i - 128) * 0.11f;
    float sine, cosine;
    float *out = (float *)w.out + 12 * i;
    sincosf(y, &sine, &cosine);
    out[0] = ptx_reciprocal(x);
    out[1] = ptx_log2(x);
    out[2] = rsqrtf(x);
    out[3] = expf(y);
    out[4] = sine;
    out[5] = cosine;
    out[6] = erff(y);
    out[7] = tanhf(y);
    out[8] = expm1f(y);
    out[9] = __fdividef(y, x);
    out[10] = sinf(y * 3.0f);
    out[11] = cosf(y * 3.0f);
}

static void about_expect(const uint32_t *in, uint32_t *out)
{
    for (int i = 0; i < PLAIN_THREADS; i++) {
        const double x = some_float(in[i] & 0x7fffffffu, 99);
        const float y = (float)(i - 128) * 0.11f, thrice = y * 3.0f;
        const double want[12] = {1 / x, log2(x), 1 / sqrt(x), exp(y), sin(y), cos(y), erf(y), tanh(y),
            expm1(y), y / x, sin(thrice), cos(thrice)};
        for (int k = 0; k < 12; k++) {
            out[12 * i + k] = word_of((float)want[k]);
        }
    }
}

/* Addresses of shared memory: steps of bytes, and back. */
static __global__ void shared_kernel(struct words w)
{
    PTX_DYNAMIC_SHARED(uint32_t, dynamic, 1024);
    __shared__ uint32_t fixed[PLAIN_THREADS];
    const uint32_t i = threadIdx.x;
    dynamic[i] = w.in[i];
    fixed[i] = w.in[PLAIN_THREADS + i];
    __syncthreads();
    const uint32_t at = ptx_shared_at(dynamic + (i + 1) % PLAIN_THREADS);
    w.out[i] = *(const uint32_t *)__cvta_shared_to_generic(at);
    w.out[PLAIN_THREADS + i] = fixed[PLAIN_THREADS - 1 - i];
    w.out[2 * PLAIN_THREADS + i] = ptx_shared_at(fixed + i) - ptx_shared_at(fixed);
    w.out[3 * PLAIN_THREADS + i] = ptx_shared_at(dynamic + i) - ptx_shared_at(dynamic);
}

static void shared_expect(const uint32_t *in, uint32_t *out)
{
    for (uint32_t i = 0; i < PLAIN_THREADS; i++) {
        out[i] = in[(i + 1) % PLAIN_THREADS];
        out[PLAIN_THREADS + i] = in[2 * PLAIN_THREADS - 1 - i];
        out[2 * PLAIN_THREADS + i] = out[3 * PLAIN_THREADS + i] = 4 * i;
    }
}

#define PLAIN_CHECKS                                                                                   \
    {"load_once", load_once_kernel, load_once_expect, 1, PLAIN_THREADS},                               \
        {"bits", bits_kernel, bits_expect, 1, PLAIN_THREADS},                                          \
        {"pack_bf16", pack_kernel, pack_expect, 1, PLAIN_THREADS},                                     \
        {"rounded", rounded_kernel, rounded_expect, 1, PLAIN_THREADS},                                 \
        {"about", about_kernel, about_expect, 1, PLAIN_THREADS, ANY, 3e-6f},                           \
    {                                                                                                  \
        "shared_at", shared_kernel, shared_expect, 1, PLAIN_THREADS, ANY, 0, 0, false, 4096            \
    }

#endif
