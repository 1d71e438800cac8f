/* SPDX-License-Identifier: Apache-2.0
 * Products of a warp (mma) and the loads of their operands (ldmatrix). What a register of a lane holds is as in the
 * PTX manual, "Matrix fragments for mma.m16n8k16" and "ldmatrix": g is lane / 4, t lane % 4. */
#include "tests/cuda/host/ptx/ptx_matrix.h"

#include <string.h>

/* ---- bf16 ---- */

static float bf16_value(uint32_t bits)
{
    float f;
    bits <<= 16;
    memcpy(&f, &bits, 4);
    return f;
}

/* Two numbers of a register. */
static void open_two(uint32_t word, float *first, float *second)
{
    *first = bf16_value(word & 0xffff);
    *second = bf16_value(word >> 16);
}

void matrix_rows(uint32_t a[HOST_WARP][4], float rows[16][16])
{
    for (int lane = 0; lane < HOST_WARP; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4; i++) {
            float *at = &rows[g + i % 2 * 8][i / 2 * 8 + 2 * t];
            open_two(a[lane][i], at, at + 1);
        }
    }
}

/* Eight sums; the compiler makes vector instructions of it, the widest that the machine has. */
typedef float eight __attribute__((vector_size(32), aligned(4)));
enum { AT_ONCE = 4 /* rows: sums that do not wait for each other */ };

#if defined(__x86_64__)
__attribute__((target_clones("avx2", "default")))
#endif
void matrix_product(float rows[16][16], const float *columns, int n, float *sums)
{
    for (int row = 0; row < 16; row += AT_ONCE) {
        for (int first = 0; first < n; first += 8) {
            eight sum[AT_ONCE];
            for (int i = 0; i < AT_ONCE; i++) {
                sum[i] = *(const eight *)(sums + (row + i) * n + first);
            }
            for (int k = 0; k < 16; k++) {
                const eight b = *(const eight *)(columns + k * n + first);
                for (int i = 0; i < AT_ONCE; i++) {
                    sum[i] += rows[row + i][k] * b;
                }
            }
            for (int i = 0; i < AT_ONCE; i++) {
                *(eight *)(sums + (row + i) * n + first) = sum[i];
            }
        }
    }
}

struct mma_in {
    uint32_t a[4], b[2];
    float d[4];
};

static void multiply(uint32_t mask, const void *in, void *out, const void *same)
{
    const struct mma_in *lanes = (const struct mma_in *)in;
    float(*d)[4] = (float(*)[4])out;
    float rows[16][16], columns[16][8];
    uint32_t a[HOST_WARP][4];
    float sums[16][8];
    (void)mask, (void)same;
    for (int lane = 0; lane < HOST_WARP; lane++) {
        const int g = lane / 4, t = lane % 4;
        memcpy(a[lane], lanes[lane].a, sizeof a[lane]);
        for (int i = 0; i < 2; i++) {
            open_two(lanes[lane].b[i], &columns[i * 8 + 2 * t][g], &columns[i * 8 + 2 * t + 1][g]);
        }
        for (int i = 0; i < 4; i++) {
            sums[g + i / 2 * 8][2 * t + i % 2] = lanes[lane].d[i];
        }
    }
    matrix_rows(a, rows);
    matrix_product(rows, columns[0], 8, sums[0]);
    for (int lane = 0; lane < HOST_WARP; lane++) {
        for (int i = 0; i < 4; i++) {
            d[lane][i] = sums[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2];
        }
    }
}

void host_mma(float *d, const void *a, uint32_t b0, uint32_t b1)
{
    struct mma_in in = {{0}, {b0, b1}, {0}};
    memcpy(in.a, a, sizeof in.a);
    memcpy(in.d, d, sizeof in.d);
    host_warp_do("mma.m16n8k16 of bf16", 0xffffffffu, multiply, &in, sizeof in, d, sizeof in.d, NULL);
}

/* ---- Signed bytes ---- */

struct mma_bytes_in {
    uint32_t a[4], b[2];
    int32_t d[4];
};

static void open_four(uint32_t word, int8_t *to, int stride)
{
    for (int i = 0; i < 4; i++) {
        to[i * stride] = (int8_t)(word >> 8 * i & 255);
    }
}

static void multiply_bytes(uint32_t mask, const void *in, void *out, const void *same)
{
    const struct mma_bytes_in *lanes = (const struct mma_bytes_in *)in;
    int32_t(*d)[4] = (int32_t(*)[4])out;
    int8_t rows[16][32], columns[32][8];
    (void)mask, (void)same;
    for (int lane = 0; lane < HOST_WARP; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4; i++) {
            open_four(lanes[lane].a[i], &rows[g + i % 2 * 8][i / 2 * 16 + 4 * t], 1);
        }
        for (int i = 0; i < 2; i++) {
            open_four(lanes[lane].b[i], &columns[i * 16 + 4 * t][g], 8);
        }
    }
    for (int lane = 0; lane < HOST_WARP; lane++) {
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + i / 2 * 8, column = 2 * (lane % 4) + i % 2;
            uint32_t sum = (uint32_t)lanes[lane].d[i];
            for (int k = 0; k < 32; k++) {
                sum += (uint32_t)(rows[row][k] * columns[k][column]);
            }
            d[lane][i] = (int32_t)sum;
        }
    }
}

void host_mma_bytes(int32_t *d, const void *a, uint32_t b0, uint32_t b1)
{
    struct mma_bytes_in in = {{0}, {b0, b1}, {0}};
    memcpy(in.a, a, sizeof in.a);
    memcpy(in.d, d, sizeof in.d);
    host_warp_do(
        "mma.m16n8k32 of bytes", 0xffffffffu, multiply_bytes, &in, sizeof in, d, sizeof in.d, NULL);
}

/* ---- Blocks of shared memory ---- */

/* in: where each lane points, a row of 16 bytes; row r of block i is lane 8 i + r's. */
static void load_blocks(uint32_t mask, const void *in, void *out, const void *same)
{
    const uint16_t *const *rows = (const uint16_t *const *)in;
    uint32_t(*words)[4] = (uint32_t(*)[4])out;
    const bool transposed = *(const bool *)same;
    (void)mask;
    for (int lane = 0; lane < HOST_WARP; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4; i++) {
            const uint16_t first = transposed ? rows[8 * i + 2 * t][g] : rows[8 * i + g][2 * t],
                           second =
                               transposed ? rows[8 * i + 2 * t + 1][g] : rows[8 * i + g][2 * t + 1];
            words[lane][i] = (uint32_t)second << 16 | first;
        }
    }
}

/* The read is taken for that of the lane that points at the row. */
void host_blocks(const void *row, bool transposed, void *words)
{
    const char *what = transposed ? "ldmatrix.trans" : "ldmatrix";
    if ((uintptr_t)row % 16 != 0 || !host_is_shared(row)) {
        host_finding("%s at %p: not at 16 bytes of shared memory", what, row);
    }
    (void)host_shared_pointer(host_shared_address(row), 16);
    strict_read(row, 16, STRICT_PLAIN, STRICT_CTA);
    host_warp_do(what, 0xffffffffu, load_blocks, &row, sizeof row, words, 16, &transposed);
}
