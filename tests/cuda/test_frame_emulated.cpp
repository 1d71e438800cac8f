/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel, run on the host, equals the CPU backend, and lanes together equal lanes alone.
 * Usage: test_frame_emulated CHECKPOINT [ROWS FRAMES [bf16|predictor|all|each [LANES]]]. */
#include "tests/cuda/frame_emulated.h"

extern "C" {
#include "cuda/frame.h"
}
#include "cuda/frame_bf16.cu"
#include "cuda/frame_bf16_wide.cu"
#include "cuda/frame_mixed.cu"
#include "cuda/frame_mixed_wide.cu"
#include "cuda/frame_pack.cuh"
#include "cuda/frame_packed.cu"
#include "cuda/frame_packed_wide.cu"

#include "tests/cuda/frame_together.h"

static void *machine_new(size_t bytes, const void *from)
{
    void *p = calloc(1, bytes + 512);
    p = (void *)(((uintptr_t)p + 511) / 512 * 512);
    if (from) {
        memcpy(p, from, bytes);
    }
    return p;
}
static void machine_read(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
static void machine_write(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static void machine_tiles(void *tiles, int n_cols, const struct weight *w, int first, int interleave)
{
    const uint16_t *from = (const uint16_t *)w->data;
    for (int64_t r = 0; r < w->rows; r++) {
        for (int64_t k = 0; k < n_cols; k++) {
            ((uint16_t *)tiles)[tiles_at(n_cols, first, interleave, r, k)] = from[r * n_cols + k];
        }
    }
}

/* ---- What the launch asks of the runtime ---- */

static const struct frame_args *launched;

template <int W, int I, bool TALKER, bool PREDICTOR> static void run_one()
{
    frame_kernel<W, I, TALKER, PREDICTOR>(*launched);
}

template <int W, int I> static void run_packed(const void *kernel)
{
    fibers_run(kernel == frame_kernel_code(W, FRAME_PACKED_NONE)        ? run_one<W, I, false, false>
               : kernel == frame_kernel_code(W, FRAME_PACKED_PREDICTOR) ? run_one<W, I, false, true>
                                                                        : run_one<W, I, true, true>);
}

extern "C" {
/* Of the builds for several lanes there is one, which has a file of its own. */
bool lanes_emulated(const void *code, const void *args);
struct frame_lanes_build frame_lanes_four_wide(int)
{
    return (struct frame_lanes_build){};
}
struct frame_lanes_build frame_lanes_eight(int)
{
    return (struct frame_lanes_build){};
}
void *cuda_arena_take(struct cuda_arena *arena, uint64_t bytes)
{
    void *p = arena->base ? arena->base + arena->used : NULL;
    arena->used += (bytes + 511) / 512 * 512;
    return p;
}
uint64_t frame_pack_bytes(const struct cuda_matrix *m)
{
    return (uint64_t)m->n_row_tiles * (uint64_t)(m->cols / FRAME_UNIT_K) * FRAME_PACKED_BYTES;
}
cudaError_t frame_pack(void *to, const struct cuda_matrix *m, cudaStream_t)
{
    const int k_units = m->cols / FRAME_UNIT_K;
    for (int64_t i = 0; i < (int64_t)m->n_row_tiles * k_units * 128; i++) {
        pack_place((unsigned char *)to, (const uint16_t *)m->tiles, k_units, i);
    }
    return cudaSuccess;
}
utter_status cuda_arena_open(
    struct cuda_arena *arena, struct cuda_device *, const char *, utter_error *)
{
    arena->size = arena->used;
    arena->base = (unsigned char *)machine_new(arena->size, NULL);
    arena->used = 0;
    return UTTER_OK;
}
void cuda_arena_close(struct cuda_arena *)
{
}
utter_status cuda_device_check(struct cuda_device *, cudaError_t, const char *, utter_error *)
{
    return UTTER_OK;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind)
{
    memcpy(to, from, n);
    return cudaSuccess;
}
cudaError_t cudaMemset(void *to, int value, size_t n)
{
    memset(to, value, n);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t)
{
    memset(to, value, n);
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize()
{
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *, enum cudaFuncAttribute, int)
{
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *, int, size_t)
{
    *n = 1;
    return cudaSuccess;
}
cudaError_t cudaLaunchCooperativeKernel(
    const void *kernel, dim3, dim3, void **args, size_t, cudaStream_t)
{
    if (lanes_emulated(kernel, args[0])) {
        return cudaSuccess;
    }
    launched = (const struct frame_args *)args[0];
    bool small = false;
    for (int i = FRAME_PACKED_NONE; i <= FRAME_PACKED_ALL; i++) {
        small = small || kernel == frame_kernel_code(1024, (enum frame_packed)i);
    }
    small ? run_packed<1024, 3072>(kernel) : run_packed<2048, 6144>(kernel);
    return cudaSuccess;
}
}

/* The kernel with weights of bf16, a packed predictor, or packed weights. */
static int run_each(const char *folder, int n_rows, int n_frames, enum frame_packed packed, int n_lanes)
{
    utter_error error;
    struct model *model;
    struct rig rig = {};
    machine_check("model", model_open(&model, folder, &error), &error);
    rig.device.major = 9;
    rig.device.n_sms = 132;
    rig.device.block_shared = SHARED_LIMIT;
    rig.out = rig.out_device = (struct cuda_frame_out *)calloc((size_t)n_lanes, sizeof *rig.out);
    rig_open(&rig, model, n_lanes, n_rows + n_frames + TOGETHER_POSITIONS, packed);
    frame_kernel_ahead(rig.kernel, 2, 0);
    const int bad = n_lanes > 1 && !packed ? together_run(&rig, n_lanes, n_frames) : 0;
    const double limit = packed ? 2e-4 : 2e-5; /* vectors of 16 bits are rounded to other borders */
    const struct comparison forced = {folder, n_rows, n_frames, true, true, limit};
    const struct comparison free_run = {folder, 1, n_frames, false, false, limit};
    return bad + compare_run(&rig, &forced) + compare_run(&rig, &free_run);
}

int main(int argc, char **argv)
{
    int n_rows = argc > 2 ? atoi(argv[2]) : 3, n_frames = argc > 3 ? atoi(argv[3]) : 2, bad = 0;
    static const char *const names[] = {"bf16", "predictor", "all"};
    const char *which = argc > 4 ? argv[4] : "each";
    const int n_lanes = argc > 5 ? atoi(argv[5]) : 3;
    for (int i = FRAME_PACKED_NONE; i <= FRAME_PACKED_ALL; i++) {
        if (strcmp(which, "each") == 0 || strcmp(which, names[i]) == 0) {
            bad += run_each(argv[1], n_rows, n_frames, (enum frame_packed)i, n_lanes);
        }
    }
    printf("%d faults\n", bad);
    return bad != 0;
}
