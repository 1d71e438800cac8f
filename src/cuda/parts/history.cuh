/* SPDX-License-Identifier: Apache-2.0
 * A lane's history: which codes of codebook 0 it has taken, a byte for each code (struct
 * cuda_lanes.seen). The repetition penalty reads it. Every kernel that takes a code, or asks for
 * one, does it by these functions; device/lanes.c allocates the bytes, and a snapshot
 * (door/snapshot.c) copies them. */
#ifndef CUDA_PARTS_HISTORY_CUH
#define CUDA_PARTS_HISTORY_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* The lane has taken this code. */
static __device__ __forceinline__ void history_note(uint8_t *history, int code)
{
    history[code] = 1;
}

/* Whether the lane has taken this code before. */
static __device__ __forceinline__ bool history_has(const uint8_t *history, int code)
{
    return history[code];
}

/* The same for codes `first` to first + 3, first a multiple of 4, in one load; history_has_of tells
 * them apart. */
static __device__ __forceinline__ uint32_t history_four(const uint8_t *history, int first)
{
    return *(const uint32_t *)(history + first);
}

static __device__ __forceinline__ bool history_has_of(uint32_t four, int i)
{
    return four >> i * 8 & 255;
}

/* The lane begins anew: its caller does this for all codes. */
static __device__ __forceinline__ void history_forget(uint8_t *history, int code)
{
    history[code] = 0;
}

#endif
