/* SPDX-License-Identifier: Apache-2.0
 * Cards that people have, as their makers and drivers tell of them: what a GPU is posed as (`utter bench --as`, and the
 * bench of tests/cuda/host), and what the time of a frame is foretold for. Plain C without CUDA, like arch.h. */
#ifndef CUDA_DEVICE_CARDS_H
#define CUDA_DEVICE_CARDS_H

#include <string.h>

#include "cuda/device/arch.h"

struct cuda_card {
    const char *name;      /* as a user types it */
    const char *full_name; /* as the driver tells it */
    int capability;        /* 10 times the major part and the minor part */
    int n_sms;             /* multiprocessors */
    int shared_kb;         /* shared memory of one; a block may have all of it but a kilobyte */
    int l2_kb;
    int memory_gb;               /* in units of 2^30 bytes; of a unified one the system's */
    bool unified;                /* host and device share one memory */
    int memory_khz, memory_bits; /* of the driver's clock, which has two transfers */
    int sm_mhz;                  /* clock of the multiprocessors, at their boost */
    int tensor;                  /* operations in bf16, summed in fp32, a clock and multiprocessor */
};

/* Each name once. No code is for the first. */
static const struct cuda_card cuda_cards[] = {
    {"t4", "Tesla T4", 75, 40, 65, 4096, 16, false, 5001000, 256, 1590, 256},
    {"3060", "NVIDIA GeForce RTX 3060", 86, 28, 100, 2304, 12, false, 7501000, 192, 1777, 512},
    {"3090", "NVIDIA GeForce RTX 3090", 86, 82, 100, 6144, 24, false, 9751000, 384, 1695, 512},
    {"4070", "NVIDIA GeForce RTX 4070", 89, 46, 100, 36864, 12, false, 10501000, 192, 2475, 512},
    {"4090", "NVIDIA GeForce RTX 4090", 89, 128, 100, 73728, 24, false, 10501000, 384, 2520, 512},
    {"l4", "NVIDIA L4", 89, 58, 100, 49152, 24, false, 6251000, 192, 2040, 1024},
    {"l40s", "NVIDIA L40S", 89, 142, 100, 98304, 48, false, 9001000, 384, 2520, 1024},
    {"a10", "NVIDIA A10", 86, 72, 100, 6144, 24, false, 6251000, 384, 1695, 1024},
    {"a100", "NVIDIA A100-SXM4-80GB", 80, 108, 164, 40960, 80, false, 1593000, 5120, 1410, 2048},
    {"orin", "Orin", 87, 16, 164, 4096, 64, true, 3200000, 256, 1300, 2048},
    {"h100-pcie", "NVIDIA H100 PCIe", 90, 114, 228, 51200, 80, false, 1593000, 5120, 1755, 4096},
    {"h100", "NVIDIA H100 80GB HBM3", 90, 132, 228, 51200, 80, false, 2619000, 5120, 1980, 4096},
    {"h200", "NVIDIA H200", 90, 132, 228, 61440, 141, false, 3201000, 6144, 1980, 4096},
    {"mig", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 90, 16, 228, 6400, 10, false, 2619000, 640, 1980,
        4096},
    {"gb10", "NVIDIA GB10", 121, 48, 100, 24576, 120, true, 4266000, 256, 2418, 512},
    {"thor", "NVIDIA Thor", 110, 20, 228, 32768, 122, true, 4266000, 256, 1575, 8192},
    {"5070", "NVIDIA GeForce RTX 5070", 120, 48, 100, 49152, 12, false, 14001000, 192, 2512, 512},
    {"5080", "NVIDIA GeForce RTX 5080", 120, 84, 100, 65536, 16, false, 15001000, 256, 2617, 512},
    {"5090", "NVIDIA GeForce RTX 5090", 120, 170, 100, 98304, 32, false, 14001000, 512, 2407, 512},
    {"b200", "NVIDIA B200", 100, 148, 228, 129024, 180, false, 3996000, 8192, 1965, 8192},
};
enum { CUDA_N_CARDS = sizeof cuda_cards / sizeof *cuda_cards };

/* The card of this name; NULL: there is none. */
static inline const struct cuda_card *cuda_card_find(const char *name)
{
    for (int i = 0; i < CUDA_N_CARDS; i++) {
        if (strcmp(cuda_cards[i].name, name) == 0) {
            return &cuda_cards[i];
        }
    }
    return NULL;
}

/* What the tensor cores of a card do that the driver calls so; of a name that the table has not, what the least card of
 * its capability does, else of the same major part; 0: not known. */
static inline int cuda_card_tensor(const char *full_name, int capability)
{
    int least = 0, least_like = 0;
    for (int i = 0; i < CUDA_N_CARDS; i++) {
        const struct cuda_card *card = &cuda_cards[i];
        if (strcmp(card->full_name, full_name) == 0) {
            return card->tensor;
        }
        if (card->capability == capability && (least == 0 || card->tensor < least)) {
            least = card->tensor;
        }
        if (card->capability / 10 == capability / 10 &&
            (least_like == 0 || card->tensor < least_like)) {
            least_like = card->tensor;
        }
    }
    return least ? least : least_like;
}

static inline double cuda_card_bytes_per_s(const struct cuda_card *card)
{
    return 2e3 * card->memory_khz * card->memory_bits / 8;
}

/* What the card can do with code of its own. */
static inline struct cuda_arch cuda_card_arch(const struct cuda_card *card)
{
    struct cuda_arch arch = {0};
    arch.capability = arch.code = card->capability;
    arch.n_sms = card->n_sms;
    arch.sm_shared = (size_t)card->shared_kb << 10;
    arch.block_shared = (size_t)(card->shared_kb - 1) << 10;
    arch.l2_bytes = (size_t)card->l2_kb << 10;
    cuda_arch_derive(&arch, card->capability == 90  ? CUDA_CODE_90A
                            : card->capability > 90 ? CUDA_CODE_FAMILY
                                                    : CUDA_CODE_PLAIN);
    return arch;
}

#endif
