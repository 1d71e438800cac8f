/* SPDX-License-Identifier: Apache-2.0
 * The GPUs that the bench poses: what they have, and which of the built codes runs on them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/host/host.h"

#define GB (1ull << 30)
#define MB (1ll << 20)
#define KB 1024

/* What the Makefile builds (CUDA_ARCH there). Code runs on GPUs of its major version with the same or a later minor
 * one, code with an `a` on exactly its own. The portable code is for all others from its version on. */
static const struct {
    int code;
    bool specific;
} built[] = {{80, false}, {86, false}, {89, false}, {90, true}, {100, false}, {120, false}};
enum { PORTABLE = 100 };

/* A block may have all of a multiprocessor's shared memory but one kilobyte. */
#define SHARED(kilobytes) .block_shared = ((kilobytes)-1) * KB, .sm_shared = (kilobytes)*KB
#define TURING .major = 7, .minor = 5
#define AMPERE(its_minor) .major = 8, .minor = its_minor
#define HOPPER .major = 9, .minor = 0, .overlaps = true, .clusters = true, .bulk_copies = true
#define BLACKWELL(its_major, its_minor)                                                                \
    .major = its_major, .minor = its_minor, .overlaps = true, .clusters = true, .bulk_copies = true

/* Clocks are those of the driver: twice that many transfers a second. */
static struct host_card cards[] = {
    {.name = "t4", /* that no code is for */
        .full_name = "Tesla T4",
        TURING,
        .n_sms = 40,
        SHARED(65),
        .sm_threads = 1024,
        .l2_bytes = 4 * MB,
        .memory_bytes = 16 * GB,
        .memory_clock_khz = 5001000,
        .memory_bus_bits = 256},
    {.name = "3060",
        .full_name = "NVIDIA GeForce RTX 3060",
        AMPERE(6),
        .n_sms = 28,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 2304 * KB,
        .memory_bytes = 12 * GB,
        .memory_clock_khz = 7501000,
        .memory_bus_bits = 192},
    {.name = "3090",
        .full_name = "NVIDIA GeForce RTX 3090",
        AMPERE(6),
        .n_sms = 82,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 6 * MB,
        .memory_bytes = 24 * GB,
        .memory_clock_khz = 9751000,
        .memory_bus_bits = 384},
    {.name = "4070",
        .full_name = "NVIDIA GeForce RTX 4070",
        AMPERE(9),
        .n_sms = 46,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 36 * MB,
        .memory_bytes = 12 * GB,
        .memory_clock_khz = 10501000,
        .memory_bus_bits = 192},
    {.name = "4090",
        .full_name = "NVIDIA GeForce RTX 4090",
        AMPERE(9),
        .n_sms = 128,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 72 * MB,
        .memory_bytes = 24 * GB,
        .memory_clock_khz = 10501000,
        .memory_bus_bits = 384},
    {.name = "l4",
        .full_name = "NVIDIA L4",
        AMPERE(9),
        .n_sms = 58,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 48 * MB,
        .memory_bytes = 24 * GB,
        .memory_clock_khz = 6251000,
        .memory_bus_bits = 192},
    {.name = "l40s",
        .full_name = "NVIDIA L40S",
        AMPERE(9),
        .n_sms = 142,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 96 * MB,
        .memory_bytes = 48 * GB,
        .memory_clock_khz = 9001000,
        .memory_bus_bits = 384},
    {.name = "a10",
        .full_name = "NVIDIA A10",
        AMPERE(6),
        .n_sms = 72,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 6 * MB,
        .memory_bytes = 24 * GB,
        .memory_clock_khz = 6251000,
        .memory_bus_bits = 384},
    {.name = "a100",
        .full_name = "NVIDIA A100-SXM4-80GB",
        AMPERE(0),
        .n_sms = 108,
        SHARED(164),
        .sm_threads = 2048,
        .l2_bytes = 40 * MB,
        .memory_bytes = 80 * GB,
        .memory_clock_khz = 1593000,
        .memory_bus_bits = 5120},
    {.name = "orin",
        .full_name = "Orin",
        AMPERE(7),
        .n_sms = 16,
        SHARED(164),
        .sm_threads = 1536,
        .l2_bytes = 4 * MB,
        .memory_bytes = 64 * GB,
        .unified = true,
        .memory_clock_khz = 3200000,
        .memory_bus_bits = 256},
    {.name = "h100-pcie",
        .full_name = "NVIDIA H100 PCIe",
        HOPPER,
        .n_sms = 114,
        SHARED(228),
        .sm_threads = 2048,
        .l2_bytes = 50 * MB,
        .memory_bytes = 80 * GB,
        .memory_clock_khz = 1593000,
        .memory_bus_bits = 5120},
    {.name = "h100",
        .full_name = "NVIDIA H100 80GB HBM3",
        HOPPER,
        .n_sms = 132,
        SHARED(228),
        .sm_threads = 2048,
        .l2_bytes = 50 * MB,
        .memory_bytes = 80 * GB,
        .memory_clock_khz = 2619000,
        .memory_bus_bits = 5120},
    {.name = "h200",
        .full_name = "NVIDIA H200",
        HOPPER,
        .n_sms = 132,
        SHARED(228),
        .sm_threads = 2048,
        .l2_bytes = 60 * MB,
        .memory_bytes = 141 * GB,
        .memory_clock_khz = 3201000,
        .memory_bus_bits = 6144},
    {.name = "mig",
        .full_name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        HOPPER,
        .n_sms = 16,
        SHARED(228),
        .sm_threads = 2048,
        .l2_bytes = 6400 * KB,
        .memory_bytes = 10 * GB,
        .memory_clock_khz = 2619000,
        .memory_bus_bits = 640},
    {.name = "gb10",
        .full_name = "NVIDIA GB10",
        BLACKWELL(12, 1),
        .n_sms = 48,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 24 * MB,
        .memory_bytes = 120 * GB,
        .unified = true,
        .memory_clock_khz = 4266000,
        .memory_bus_bits = 256},
    {.name = "thor",
        .full_name = "NVIDIA Thor",
        BLACKWELL(11, 0),
        .n_sms = 20,
        SHARED(228),
        .sm_threads = 1536,
        .l2_bytes = 32 * MB,
        .memory_bytes = 122 * GB,
        .unified = true,
        .memory_clock_khz = 4266000,
        .memory_bus_bits = 256},
    {.name = "5070",
        .full_name = "NVIDIA GeForce RTX 5070",
        BLACKWELL(12, 0),
        .n_sms = 48,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 48 * MB,
        .memory_bytes = 12 * GB,
        .memory_clock_khz = 14001000,
        .memory_bus_bits = 192},
    {.name = "5080",
        .full_name = "NVIDIA GeForce RTX 5080",
        BLACKWELL(12, 0),
        .n_sms = 84,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 64 * MB,
        .memory_bytes = 16 * GB,
        .memory_clock_khz = 15001000,
        .memory_bus_bits = 256},
    {.name = "5090",
        .full_name = "NVIDIA GeForce RTX 5090",
        BLACKWELL(12, 0),
        .n_sms = 170,
        SHARED(100),
        .sm_threads = 1536,
        .l2_bytes = 96 * MB,
        .memory_bytes = 32 * GB,
        .memory_clock_khz = 14001000,
        .memory_bus_bits = 512},
    {.name = "b200",
        .full_name = "NVIDIA B200",
        BLACKWELL(10, 0),
        .n_sms = 148,
        SHARED(228),
        .sm_threads = 2048,
        .l2_bytes = 126 * MB,
        .memory_bytes = 180 * GB,
        .memory_clock_khz = 3996000,
        .memory_bus_bits = 8192},
};
enum { N_CARDS = sizeof cards / sizeof *cards, EXIT_USAGE = 2 };

/* The latest code that runs on each; 0: none does, and no kernel can be launched there. */
__attribute__((constructor)) static void find_codes(void)
{
    for (int i = 0; i < N_CARDS; i++) {
        struct host_card *c = &cards[i];
        for (size_t k = 0; k < sizeof built / sizeof *built; k++) {
            int major = built[k].code / 10, minor = built[k].code % 10;
            if (major == c->major && (built[k].specific ? minor == c->minor : minor <= c->minor)) {
                c->code = built[k].code;
                c->code_specific = built[k].specific;
            }
        }
        if (c->code == 0 && 10 * c->major + c->minor >= PORTABLE) {
            c->code = PORTABLE;
        }
    }
}

const struct host_card *host_card_find(const char *name)
{
    for (int i = 0; i < N_CARDS; i++) {
        if (strcmp(cards[i].name, name) == 0) {
            return &cards[i];
        }
    }
    return NULL;
}

const struct host_card *host_card_at(int i)
{
    return i >= 0 && i < N_CARDS ? &cards[i] : NULL;
}

const struct host_card *host_card(void)
{
    static const struct host_card *posed;
    static bool known;
    if (!known) {
        const char *name = getenv("HOST_CARD");
        name = name && *name ? name : "h100";
        posed = host_card_find(name);
        if (!posed && strcmp(name, "none") != 0) {
            fprintf(stderr, "HOST_CARD: there is no %s (tests/cuda/host/runtime/card.c)\n", name);
            exit(EXIT_USAGE);
        }
        known = true;
    }
    return posed;
}
