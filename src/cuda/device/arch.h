/* SPDX-License-Identifier: Apache-2.0
 * What a GPU and the code that runs there can do. It is found out here once, when a device is opened; every other file
 * asks this struct and never for a compute capability, so that a test, or a bench that shows what a lesser card would
 * do, can set it. The rules are plain C without CUDA and so can be tested anywhere. */
#ifndef CUDA_DEVICE_ARCH_H
#define CUDA_DEVICE_ARCH_H

#include <stdbool.h>
#include <stddef.h>

/* Numbers of compute capabilities are 10 times the major part and the minor part: 90 of an H100. */
struct cuda_arch {
    int capability;      /* of the device */
    int code;            /* what the code was compiled for that runs there */
    bool overlaps;       /* a kernel may begin before the one in front of it has ended */
    bool bulk_copies;    /* copies in bulk that a barrier counts, and clusters of blocks */
    bool wgmma;          /* products by four warps together */
    bool register_moves; /* warps may give registers to others (setmaxnreg) */
    bool half_slots;     /* the code is for blocks with 99 KB: its rings have slots of half the size */
    int n_sms;           /* multiprocessors */
    size_t block_shared; /* bytes of shared memory that one block may ask for */
    size_t sm_shared;    /* bytes of shared memory of a multiprocessor */
    size_t l2_bytes;     /* L2 cache */
};

/* What the letter behind a version of code adds: sm_90a has instructions that run on that kind alone, code for a family
 * (sm_100f, 110f, 120f) such as its later members have too. */
enum cuda_code { CUDA_CODE_PLAIN, CUDA_CODE_FAMILY, CUDA_CODE_90A };

/* Sets what follows from `capability` and `code`. An instruction has to be in the device and in the code: code for 8.0
 * that the driver has translated for a 9.0 does not wait for the kernel in front, and so must not overlap with it. */
static inline void cuda_arch_derive(struct cuda_arch *arch, enum cuda_code kind)
{
    const bool both = arch->capability >= 90 && arch->code >= 90;
    arch->overlaps = both;
    arch->bulk_copies = both;
    arch->wgmma = arch->capability == 90 && kind == CUDA_CODE_90A;
    arch->register_moves = arch->wgmma || (arch->capability >= 100 && kind == CUDA_CODE_FAMILY);
    arch->half_slots = arch->code >= 120; /* PTX_HALF_SLOTS */
}

/* C++ reads this header too, which base/minmax.h is not for. */
static inline size_t cuda_arch_lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Whether weights of so many bytes, which are read again and again, can be kept in an L2 cache while others pass
 * through it, for which an eighth is left. */
static inline bool cuda_l2_holds(size_t l2_bytes, size_t bytes)
{
    return bytes <= l2_bytes / 8 * 7;
}

/* Takes away what the card `as` does not have: the GPU then chooses its kernels as that card does. Nothing is added, as
 * nothing can be; and the code stays what it is, with the slots that it has. */
static inline void cuda_arch_limit(struct cuda_arch *arch, const struct cuda_arch *as)
{
    arch->capability = (int)cuda_arch_lesser((size_t)arch->capability, (size_t)as->capability);
    arch->code = (int)cuda_arch_lesser((size_t)arch->code, (size_t)as->code);
    arch->overlaps &= as->overlaps;
    arch->bulk_copies &= as->bulk_copies;
    arch->wgmma &= as->wgmma;
    arch->register_moves &= as->register_moves;
    arch->n_sms = (int)cuda_arch_lesser((size_t)arch->n_sms, (size_t)as->n_sms);
    arch->block_shared = cuda_arch_lesser(arch->block_shared, as->block_shared);
    arch->sm_shared = cuda_arch_lesser(arch->sm_shared, as->sm_shared);
    arch->l2_bytes = cuda_arch_lesser(arch->l2_bytes, as->l2_bytes);
}

#endif
