/* SPDX-License-Identifier: Apache-2.0
 * The GPUs that the bench poses: what they have, which of the built codes runs on them, and which device is one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device/cards.h"
#include "tests/cuda/host/host.h"

/* What the Makefile builds (CUDA_ARCH there). Code runs on GPUs of its major version with the same or a later minor
 * one, code with an `a` on exactly its own. Portable code of the first and the last kind is for all others from its
 * version on; where there is one kind, there is none. */
static const char built[] = CUDA_CODES;

static struct host_card cards[CUDA_N_CARDS];
enum { EXIT_USAGE = 2, HOPPER = 9 };

/* The latest code that runs on a card; 0: none does, and no kernel can be launched there. */
static void find_code(struct host_card *c)
{
    const int capability = 10 * c->major + c->minor;
    int first = 0, last = 0, n = 0;
    for (const char *at = built; *at; n++) {
        char *rest;
        const int code = (int)strtol(at, &rest, 10);
        const bool specific = *rest == 'a';
        if (code / 10 == c->major && (specific ? code == capability : code <= capability)) {
            c->code = code;
            c->code_specific = specific;
            c->code_family = *rest == 'f';
        }
        first = first ? first : code;
        last = code;
        at = rest + strcspn(rest, " ");
        at += strspn(at, " ");
    }
    if (c->code == 0 && n > 1 && capability >= first) {
        c->code = capability >= last ? last : first;
    }
}

__attribute__((constructor(101))) static void make_cards(void)
{
    for (int i = 0; i < CUDA_N_CARDS; i++) {
        const struct cuda_card *card = &cuda_cards[i];
        const bool hopper = card->capability >= 10 * HOPPER;
        cards[i] = (struct host_card){
            .name = card->name,
            .full_name = card->full_name,
            .major = card->capability / 10,
            .minor = card->capability % 10,
            .n_sms = card->n_sms,
            .block_shared = (card->shared_kb - 1) << 10,
            .sm_shared = card->shared_kb << 10,
            .sm_threads = card->capability == 75                             ? 1024
                          : card->capability % 10 || card->capability >= 110 ? 1536
                                                                             : 2048,
            .l2_bytes = (int64_t)card->l2_kb << 10,
            .memory_bytes = (uint64_t)card->memory_gb << 30,
            .unified = card->unified,
            .overlaps = hopper,
            .clusters = hopper,
            .bulk_copies = hopper,
            .memory_clock_khz = card->memory_khz,
            .memory_bus_bits = card->memory_bits,
            .sm_clock_khz = 1000 * card->sm_mhz,
        };
        find_code(&cards[i]);
    }
}

const struct host_card *host_card_find(const char *name)
{
    for (int i = 0; i < CUDA_N_CARDS; i++) {
        if (strcmp(cards[i].name, name) == 0) {
            return &cards[i];
        }
    }
    return NULL;
}

const struct host_card *host_card_at(int i)
{
    return i >= 0 && i < CUDA_N_CARDS ? &cards[i] : NULL;
}

static const struct host_card *posed[HOST_MOST_DEVICES];
static int n_posed = -1; /* not known yet */

static void pose(const char *name)
{
    const struct host_card *card = host_card_find(name);
    if (!card || n_posed == HOST_MOST_DEVICES) {
        fprintf(stderr, "HOST_CARD: there is no %s (tests/cuda/host/runtime/card.c)\n",
            card ? "room for more" : name);
        exit(EXIT_USAGE);
    }
    posed[n_posed++] = card;
}

int host_n_devices(void)
{
    if (n_posed < 0) {
        const char *names = getenv("HOST_CARD");
        char *copy = strdup(names && *names ? names : "h100"), *save = NULL;
        n_posed = 0;
        for (char *name = strtok_r(copy, ",", &save); name && strcmp(copy, "none") != 0;
             name = strtok_r(NULL, ",", &save)) {
            pose(name);
        }
        free(copy);
    }
    return n_posed;
}

const struct host_card *host_card(void)
{
    return host_n_devices() > 0 ? posed[host_device()] : NULL;
}
