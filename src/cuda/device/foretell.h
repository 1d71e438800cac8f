/* SPDX-License-Identifier: Apache-2.0
 * What a card will do: the time of a frame from the bytes that it reads, the kernels that it launches, the barriers of
 * its blocks and the products of its lanes. The constants are fitted to rows that were measured on an H100 and an H200
 * (docs/log, tests/cuda/test_foretell.c); of every other card this is a prediction. Plain C without CUDA, as arch.h. */
#ifndef CUDA_DEVICE_FORETELL_H
#define CUDA_DEVICE_FORETELL_H

#include <math.h>

#include "cuda/device/cards.h"

/* Of the card, what the time hangs on. */
struct foretell_card {
    double bytes_per_s; /* of the memory, as its clock and width give it */
    double clock_hz;    /* of the multiprocessors, at their boost */
    int n_sms;
    int tensor; /* operations in bf16 a clock and multiprocessor */
    size_t l2_bytes;
    bool overlaps; /* a kernel may begin before the one in front of it has ended */
};

/* Of the model. A stack's weights are the numbers that one pass multiplies by, its bytes how they are held. */
struct foretell_model {
    int talker_width, talker_layers, predictor_layers, n_codebooks;
    double talker_weights, predictor_weights; /* predictor: one pass */
    double talker_bytes, predictor_bytes;
    double vocoder_weights; /* products of one frame's sound */
};

/* Measured on GPUs of 1.98 GHz: seconds of a launch and of a barrier are so many clocks elsewhere. */
#define FORETELL_CLOCK 1.98e9
#define FORETELL_LAUNCH 2.96e-6      /* a kernel of a graph, from the end of the one in front */
#define FORETELL_GAP 1.9e-6          /* more where it cannot begin before that end */
#define FORETELL_LANE_LAUNCH 0.0996  /* more of that for each further vector, up to 8 */
#define FORETELL_WIDE_LAUNCH 1.495   /* times as long with 9 vectors and more */
#define FORETELL_PACKED_LAUNCH 1.55  /* times as long with fewer and packed weights */
#define FORETELL_STREAM 0.871        /* of the memory's bytes a second: graphs */
#define FORETELL_KERNEL_STREAM 0.811 /* the frame kernel's rings */
#define FORETELL_RING 22.2e9         /* bytes a second that one ring brings at most */
#define FORETELL_CACHE 27.5          /* bytes a clock and multiprocessor out of the L2 cache */
#define FORETELL_BARRIER 1.62e-6 /* all blocks of the frame kernel, and what they do until the next */
#define FORETELL_TALKER_BARRIER 1.62 /* times as long at a talker's width of 1,024 */
#define FORETELL_LANE_BARRIER 0.0394 /* more of that for each lane, where there are several */
#define FORETELL_PRODUCTS 907.0      /* operations a clock and multiprocessor, bound by shared memory */
#define FORETELL_TENSOR 0.7          /* of the tensor cores, where these bound it */
#define FORETELL_SOUND 0.523e-3      /* the launches of one call of the vocoder */
#define FORETELL_TOGETHER 16         /* frames that such a call has of all lanes (engine_step), */
#define FORETELL_GATHERED 8          /* and of one at most (backend_ops) */

/* Longer of the two, and a little more where they are alike: one hides behind the other. */
static inline double foretell_both(double a, double b)
{
    return pow(pow(a, 6) + pow(b, 6), 1.0 / 6);
}

static inline double foretell_pace(const struct foretell_card *card)
{
    return FORETELL_CLOCK / card->clock_hz;
}

/* Operations a second of products. */
static inline double foretell_products(const struct foretell_card *card)
{
    return fmin(FORETELL_PRODUCTS, FORETELL_TENSOR * card->tensor) * card->n_sms * card->clock_hz;
}

/* Seconds until all weights of a frame have come at `rate` bytes a second. A predictor that the L2 cache holds comes
 * from memory once. */
static inline double foretell_bytes(
    const struct foretell_card *card, const struct foretell_model *m, double rate)
{
    const double passes = m->n_codebooks - 1;
    double seconds = (m->talker_bytes + passes * m->predictor_bytes) / rate;
    if (cuda_l2_holds(card->l2_bytes, (size_t)m->predictor_bytes)) {
        const double cache = fmax(rate, FORETELL_CACHE * card->n_sms * card->clock_hz);
        seconds =
            (m->talker_bytes + m->predictor_bytes) / rate + (passes - 1) * m->predictor_bytes / cache;
    }
    return seconds;
}

/* How long a launch takes for up to 8 vectors, of one for weights in bf16. */
static inline double foretell_launch(double bytes, double weights)
{
    return bytes < 1.5 * weights ? FORETELL_PACKED_LAUNCH : 1;
}

/* Talker, predictor and choices of a frame of n lanes, by graphs: five kernels a layer, a head and a choice a code. */
static inline double foretell_graphs(
    const struct foretell_card *card, const struct foretell_model *m, int n)
{
    const double talker = 5 * m->talker_layers + 6,
                 predictor =
                     (m->n_codebooks - 1) * (5 * m->predictor_layers + 2 + (m->talker_width != 1024));
    const double launch = (FORETELL_LAUNCH + (card->overlaps ? 0 : FORETELL_GAP)) * foretell_pace(card);
    const double bytes = foretell_bytes(card, m, FORETELL_STREAM * card->bytes_per_s);
    if (n <= 8) {
        const double launches = talker * foretell_launch(m->talker_bytes, m->talker_weights) +
                                predictor * foretell_launch(m->predictor_bytes, m->predictor_weights);
        return launches * launch * (1 + FORETELL_LANE_LAUNCH * (n - 1)) + bytes;
    }
    /* A sum and a product for both halves of an activation. */
    const double work = 4.0 * n * (m->talker_weights + m->n_codebooks * m->predictor_weights);
    return (talker + predictor) * launch * FORETELL_WIDE_LAUNCH + bytes +
           work / foretell_products(card);
}

/* The same by the frame kernel, in one launch: a chain of barriers beside the stream of weights: four
 * a layer (the talker five), for a code twice; of several lanes six times. */
static inline double foretell_kernel(
    const struct foretell_card *card, const struct foretell_model *m, int n)
{
    enum { RINGS = 128 };
    const double predictor =
        (n == 1 ? 4.0 : 6.0) * m->predictor_layers * m->n_codebooks + 2.0 * m->n_codebooks;
    const double talker =
        FORETELL_TALKER_BARRIER * (n == 1 ? 5 : 6) * m->talker_layers * m->talker_width / 1024;
    const double chain = FORETELL_BARRIER * foretell_pace(card) * (predictor + talker) *
                         (n == 1 ? 1 : 1 + FORETELL_LANE_BARRIER * n);
    const double rate = fmin(FORETELL_KERNEL_STREAM * card->bytes_per_s, RINGS * FORETELL_RING);
    return foretell_both(chain, foretell_bytes(card, m, rate));
}

/* The sound of one frame of n lanes, by a call of its own. Three of the four products of halves. */
static inline double foretell_sound(
    const struct foretell_card *card, const struct foretell_model *m, int n)
{
    return FORETELL_SOUND * foretell_pace(card) +
           6.0 * n * m->vocoder_weights / foretell_products(card);
}

/* A frame and its sound of n lanes: by the frame kernel where one launch takes all of them, as graph/frame_rule.h
 * chooses. launch_lanes: as there. Few lanes gather frames until a call has enough of them. */
static inline double foretell_step(
    const struct foretell_card *card, const struct foretell_model *m, int launch_lanes, int n)
{
    const double frame = n <= launch_lanes ? foretell_kernel(card, m, n) : foretell_graphs(card, m, n);
    const int gathered = n < FORETELL_TOGETHER / FORETELL_GATHERED ? FORETELL_GATHERED
                         : n < FORETELL_TOGETHER                   ? FORETELL_TOGETHER / n
                                                                   : 1;
    return frame + foretell_sound(card, m, n * gathered) / gathered;
}

static inline struct foretell_card foretell_of(const struct cuda_card *card)
{
    const struct cuda_arch arch = cuda_card_arch(card);
    return (struct foretell_card){.bytes_per_s = cuda_card_bytes_per_s(card),
        .clock_hz = 1e6 * card->sm_mhz,
        .n_sms = card->n_sms,
        .tensor = card->tensor,
        .l2_bytes = arch.l2_bytes,
        .overlaps = arch.overlaps};
}

#endif
