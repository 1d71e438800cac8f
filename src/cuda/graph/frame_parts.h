/* SPDX-License-Identifier: Apache-2.0
 * What the files behind frame.h share: the buffers of a frame, and the queues of its steps. */
#ifndef CUDA_GRAPH_FRAME_PARTS_H
#define CUDA_GRAPH_FRAME_PARTS_H

#include "cuda/graph/frame.h"
#include "cuda/parts/steps.h"
#include "cuda/persistent/persistent.h"
#include "cuda/prompt/layers.h"
#include "cuda/prompt/wide.h"

enum {
    FRAME_SIZES = 9,  /* graphs for 1, 2, 4 .. CUDA_MAX_SLOTS slots */
    FRAME_ORDERS = 4, /* that may wait for the device */
    FRAME_STAGES = 2, /* pieces of prompts that may wait for the device */
    FRAME_WAYS = 6,   /* to bring weights to the persistent kernel */
};

/* Device memory of a frame; vectors of the predictor's first step are two for each slot. */
struct frame_buffers {
    struct cuda_slots *slots;
    int32_t *lane_ids;         /* [n_lanes + 1]: 0, 1, 2 .., and -1 for nobody */
    float *x;                  /* [CUDA_MAX_VECTORS][talker width_padded] */
    float *text_in, *text_mid; /* [CUDA_MAX_VECTORS][text_padded] */
    float *text;               /* [CUDA_MAX_VECTORS][talker width_padded]: projected */
    float *pad;                /* [talker width_padded]: the projected padding text */
    float *input; /* [2 CUDA_MAX_SLOTS][talker width_padded]: the predictor's, before its projection */
    float *px;    /* [2 CUDA_MAX_SLOTS][predictor width_padded] */
    float *qkv, *mixed, *gate; /* [CUDA_MAX_VECTORS][the larger stack's] */
    void *operand;             /* of products of many vectors (prompt/wide.h): x in operand order */
    void *inner;               /* likewise: what attention or a gate has made */
    float *scales;             /* [CUDA_MAX_VECTORS]: factors of the norm in front of a product */
    float *squares;     /* [CUDA_MAX_VECTORS][n_k_tiles of the width][4]: of the x in `operand` */
    void *split;        /* keys and values of a prompt's lane (steps.h) */
    float *angles;      /* [CUDA_MAX_VECTORS][head of the talker] */
    uint64_t *signals;  /* [2][CUDA_MAX_VECTORS]: struct cuda_layers (prompt/layers.h) */
    uint32_t *arrivals; /* struct cuda_layers: counts blocks, from launch to launch */
    uint32_t *lost;     /* CUDA_PROMPT_LOST, FRAME_LATE: frames behind it change nothing */
    float *logits; /* [CUDA_MAX_SLOTS][predictor_vocabulary], or [CUDA_MAX_VECTORS][codec_vocabulary] */
    float *partial;    /* parts of the talker's attention, which the last block joins */
    uint32_t *arrived; /* how many of these parts are there; zero between launches */
    int16_t *watched;  /* [n_layers][n_heads] of the talker: which of the watched heads it is, or -1 */
    int qkv_stride, mixed_stride, gate_stride;
};

/* What stands in frame_buffers.operand because the product before has written it there: the next
 * product needs no kernel that prepares it. */
struct frame_operand {
    const float *x;    /* the vectors that it was made of; NULL: nothing is ready */
    const float *norm; /* weights of the norm that is in it */
    int n_vectors;
};

/* Rows of a prompt on their way to the device. */
struct frame_stage {
    int lane, position, n; /* where the rows go */
    int first_row;         /* in what was given at once */
    bool last, weighs;     /* the last ones of a prompt; rows that are weighed */
    /* These, or rows before them, came through the kernel of layers, and their end has not been seen. */
    bool unsure;
    struct cuda_row *rows, *rows_at;
    float *vectors, *vectors_at;
    int32_t *codes,
        *codes_at; /* [CUDA_MAX_VECTORS]: of a prompt that is weighed, behind each row; -1: none */
    struct likelihood *likelihoods, *likelihoods_at; /* [CUDA_MAX_VECTORS]: what comes back of these */
    cudaEvent_t taken;
};

struct cuda_frame {
    const struct cuda_weights *weights;
    const struct model *model;
    struct cuda_device *device;
    struct cuda_lanes lanes;
    struct cuda_queue queue;
    int layer_blocks;         /* cuda_layers_blocks; 0: each product is a kernel of its own */
    uint64_t layer_patience;  /* struct cuda_layers.patience */
    int layer_losses;         /* prompts, or several at once, that this kernel has lost */
    bool prompt_unseen;       /* a prompt has been queued since the end of one was seen */
    bool layers_unseen;       /* and this kernel for one of them */
    uint32_t *layers_lost;    /* mapped: struct cuda_layers.lost, as the host sees it */
    uint32_t *layers_lost_at; /* and as the device does */
    uint32_t arrivals;        /* what b.arrivals stands at once all that is queued is done */
    struct frame_operand ready;
    struct cuda_arena arena;
    struct frame_buffers b;
    struct cuda_order *orders, *orders_at; /* [FRAME_ORDERS], mapped */
    cudaEvent_t order_taken[FRAME_ORDERS];
    unsigned next_order, next_stage; /* they wrap: their sizes are powers of two */
    struct frame_stage stages[FRAME_STAGES];
    struct cuda_frame_out *out, *out_at; /* [n_lanes], mapped */
    uint64_t sequence;
    bool watches[CUDA_MAX_LAYERS]; /* heads of this layer of the talker */
    cudaGraphExec_t talker[FRAME_SIZES], predictor[FRAME_SIZES];
    struct frame_kernel *kernel; /* NULL: the graphs alone */
    int kernel_way[4];           /* of bringing weights to launches of 1, 2, 4 and 8 lanes */
    /* A launch of so many lanes takes at least, 0: not known; without the talker's step, and with it. */
    double kernel_s[2][FRAME_MOST_LANES + 1];
    double waited_s;      /* for launches since it was asked */
    bool alone;           /* the frame that runs should take as long as those before it */
    cudaEvent_t times[3]; /* before, between, after */
    backend_tap_fn *tap;
    void *tap_user;
    float *tap_memory; /* host */
    int64_t tap_floats;
};

/* Each queues work on the frame's stream; with a tap they wait and call it. */
utter_status frame_queue_begin(
    struct cuda_frame *f, const struct cuda_order *order_at, utter_error *error);
/* The text of `n` vectors: from ids that stand text_stride bytes apart. */
utter_status frame_queue_text(
    struct cuda_frame *f, const void *ids, int64_t text_stride, int n, float *to, utter_error *error);
/* One product, by the kernels that suit the number of vectors; all give the same bits. */
utter_status frame_product(struct cuda_frame *f, const struct cuda_linear *p, utter_error *error);
/* A gate and the product of its result, whose x is the gate's y. next_norm: NULL, or the norm that follows. */
utter_status frame_gated(struct cuda_frame *f, const struct cuda_linear *gate,
    const struct cuda_linear *down, const float *next_norm, utter_error *error);
/* Attention and the product of its result, whose x is attend->mixed; next_norm as above. */
utter_status frame_attended(struct cuda_frame *f, const struct cuda_attend *attend,
    const struct cuda_linear *o, const float *next_norm, utter_error *error);
/* The first layers of a long prompt, all but the last, in one kernel where that is possible; *n_layers: how many. */
utter_status frame_layers(struct cuda_frame *f, const struct cuda_linear *first,
    const struct cuda_attend *attend, int *n_layers, utter_error *error);
utter_status frame_queue_talker(struct cuda_frame *f, int n_slots, utter_error *error);
utter_status frame_queue_prompt(struct cuda_frame *f, const struct frame_stage *stage, int lane,
    int position, int n, bool last, int first_row, utter_error *error);
/* The same of rows that are weighed: with the likelihoods of the stage's codes. */
utter_status frame_queue_weigh(struct cuda_frame *f, const struct frame_stage *stage, int lane,
    int position, int n, int first_row, utter_error *error);
utter_status frame_queue_predictor(struct cuda_frame *f, int n_slots, utter_error *error);

/* Until the last prompt that was queued has ended; nothing where that has been seen. */
utter_status frame_see_prompts(struct cuda_frame *f, utter_error *error);
/* True once one is known to be lost that has not been read again: what was queued behind it has done nothing. */
bool frame_prompts_lost(const struct cuda_frame *f);

/* Lanes of a frame through the persistent kernel, in the order of orders[turn]; waits for them. *n_left > 0: these
 * are as before, and the kernel is to be cleared. left: room for n, and may be `in`. */
utter_status frame_run_kernel(struct cuda_frame *f, const struct cuda_frame_in *in, int n, int turn,
    struct cuda_frame_in *left, int *n_left, utter_error *error);
/* Where in kernel_way that of launches of n lanes stands. */
int frame_way_at(int n);
/* From now on without the persistent kernel. */
utter_status frame_leave_kernel(struct cuda_frame *f, utter_error *error);

/* Gives device data to the tap, if there is one. */
utter_status frame_tap(struct cuda_frame *f, const char *name, int index, const float *at, int64_t rows,
    int64_t cols, int64_t stride, utter_error *error);

#endif
