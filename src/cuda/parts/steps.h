/* SPDX-License-Identifier: Apache-2.0
 * The steps of a frame: one kernel each, described by plain data. All work on *vectors*: positions of one lane (a
 * prompt) or one position of each slot (a frame). What a vector gets does not depend on how many there are. */
#ifndef CUDA_PARTS_STEPS_H
#define CUDA_PARTS_STEPS_H

#include "cuda/device/lanes.h"
#include "cuda/device/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_MAX_VECTORS = 512, /* rows of a prompt that go through the layers together */
    CUDA_WIDE_SLAB = 8, /* tiles of columns that lie beside each other in an operand (prompt/wide.h) */
    CUDA_ROWS_PAGE = 16384, /* bytes of a kv head's page as prompts read it */
};

/* ---- Products: y = W x, after a norm of x where there is one ---- */

enum cuda_linear_kind {
    CUDA_STORE,      /* y = W x + bias */
    CUDA_STORE_SILU, /* y = silu(W x + bias) */
    CUDA_ADD,        /* y += W x */
    CUDA_GATE,       /* y = silu(gate x) * (up x); the matrix is a gate_up */
};

struct cuda_linear {
    struct cuda_matrix matrix;
    enum cuda_linear_kind kind;
    int n_vectors;
    const float *x; /* vector v at x + v * x_stride, zeros behind up to whole tiles */
    int64_t x_stride;
    const float *norm; /* NULL, or the weights of an RMS norm of x */
    float eps;
    const float *bias; /* NULL: none */
    /* Vector v at y + v * y_stride, or, with a map, at y + map[v] * y_stride; map[v] < 0: nowhere. */
    float *y;
    int64_t y_stride;
    const int32_t *map;
    float *normed; /* NULL, or the normed x go here too, as y does */
    int64_t normed_stride;
};
/* Once for a device, before the first product. */
cudaError_t cuda_linear_open(int block_shared);
cudaError_t cuda_linear_queue(const struct cuda_queue *queue, const struct cuda_linear *product);

/* ---- Attention: norm and rotate heads, write keys and values, attend ---- */

struct cuda_attend {
    const struct cuda_stack *stack; /* host; the kernel gets what it needs of it */
    int layer;
    int n_vectors;
    int each; /* vectors of one lane that stand side by side: 2 in the predictor's first step */
    const int32_t *lanes;     /* [n_vectors / each]: the lane, or -1: nothing to do */
    const int32_t *positions; /* [n_vectors], or NULL: first_position + v % each */
    int first_position;
    bool prompt; /* all vectors are of one lane, lanes[0]; keys are placed by a kernel of its own */
    int unused; /* of cuda_attend_rows_queue: the first vectors attend to nothing; mixed begins behind them */
    const float *qkv; /* vector v at qkv + v * qkv_stride */
    int64_t qkv_stride;
    float *placed; /* of prompts: qkv again, whose queries give way to what they become */
    void *split;   /* of prompts: scratch of cuda_attend_rows_bytes for pages_stride pages */
    float *mixed;  /* vector v at mixed + v * mixed_stride, zeros behind up to whole tiles */
    int64_t mixed_stride;
    void *operand; /* NULL, or instead of mixed: the operand of a wide product (prompt/wide.h) */
    int operand_groups;
    float *cache; /* pages of page_floats floats (device/lanes.h) */
    uint64_t page_floats;
    int page_size;        /* positions */
    const int32_t *pages; /* NULL: page l is lane l's only one */
    int pages_stride;
    float *partial; /* scratch of cuda_attend_floats; NULL where one block takes all pages of a head */
    uint32_t *arrived; /* [n_vectors][n_kv_heads], zeros before and after */
    /* [n_heads]: which of those that are watched a head is, or -1; NULL: none is. */
    const int16_t *watched;
    const struct cuda_look *looks; /* [n_vectors], where heads are watched */
};
/* Once for a device: the same shares of the L1 cache as the products have, for a multiprocessor
 * changes them only when it is empty, and no two kernels would overlap. */
cudaError_t cuda_attend_open(void);
uint64_t cuda_attend_floats(const struct cuda_stack *stack, int n_vectors);
cudaError_t cuda_attend_queue(const struct cuda_queue *queue, const struct cuda_attend *attend);
/* The same for prompts, whose queries share their keys: on tensor cores. For heads that cuda_attend_rows_suits. */
cudaError_t cuda_attend_rows_open(int block_shared); /* as cuda_attend_open */
bool cuda_attend_rows_suits(const struct cuda_stack *stack);
uint64_t cuda_attend_rows_bytes(int n_kv_heads, int n_pages);
cudaError_t cuda_attend_rows_queue(const struct cuda_queue *queue, const struct cuda_attend *attend);

/* ---- Slots: the lanes of one frame ---- */

/* What the host asks for, in mapped memory. */
struct cuda_order {
    int32_t n;     /* slots in use */
    int32_t looks; /* one of them looks at rows */
    uint64_t sequence;
    struct {
        struct cuda_look look;
        int32_t lane, text;
        int32_t position; /* the talker's next */
        int32_t step;     /* takes a talker step first */
        int32_t forced;   /* codes are given */
        int32_t codes[CONFIG_MAX_CODEBOOKS];
    } slots[CUDA_MAX_SLOTS];
};

/* The same in device memory, and how far the frame is. */
struct cuda_slots {
    int32_t step_lane[CUDA_MAX_SLOTS]; /* the lane, or -1 where there is no talker step */
    int32_t step_position[CUDA_MAX_SLOTS];
    int32_t lane[CUDA_MAX_SLOTS];  /* the lane, or -1 */
    int32_t alive[CUDA_MAX_SLOTS]; /* the lane, or -1 once the end token was chosen */
    int32_t text[CUDA_MAX_SLOTS];
    int32_t forced[CUDA_MAX_SLOTS];
    int32_t bad[CUDA_MAX_SLOTS];                         /* a logit was NaN, or none was finite */
    int32_t given[CUDA_MAX_SLOTS][CONFIG_MAX_CODEBOOKS]; /* the caller's codes, where forced */
    int32_t codes[CUDA_MAX_SLOTS][CONFIG_MAX_CODEBOOKS]; /* as chosen */
    struct cuda_look look[CUDA_MAX_SLOTS];
    uint64_t sequence;
};

/* A bit of the word in device memory that tells frames what is lost in front of them; FRAME_LATE of persistent/args.h
 * is another, which is for the persistent kernel alone. */
enum { CUDA_PROMPT_LOST = 2 };

/* Takes the order in; none of its lanes behind a prompt that is lost. */
struct cuda_begin {
    const struct cuda_order *order;
    const uint32_t *lost; /* CUDA_PROMPT_LOST */
    struct cuda_slots *slots;
    struct cuda_lane *lanes;
};
cudaError_t cuda_begin_queue(const struct cuda_queue *queue, const struct cuda_begin *begin);

/* A lane as new. */
struct cuda_renew {
    struct cuda_lanes lanes;
    int lane, codec_vocabulary;
    struct lane_settings settings;
};
cudaError_t cuda_renew_queue(const struct cuda_queue *queue, const struct cuda_renew *renew);

/* ---- Choice of a code, and the input that follows from it ---- */

struct cuda_choose {
    struct cuda_slots *slots;
    struct cuda_lanes lanes;
    int n_slots, codebook, n_codebooks;
    const float *logits; /* by lane for codebook 0, by slot for the others */
    int64_t logits_stride;
    int n; /* ids */
    int suppress_from, keep;
    const uint16_t *table; /* embeddings of this codebook: [n][width] */
    int width;             /* of the talker */
    int64_t hidden_stride, sum_stride;
    /* [vectors][input_stride]: of the predictor's next step; for codebook 0 two for each slot. */
    float *input;
    int64_t input_stride;
    struct cuda_frame_out *out; /* [lanes], mapped */
};
cudaError_t cuda_choose_open(void); /* as cuda_attend_open */
cudaError_t cuda_choose_queue(const struct cuda_queue *queue, const struct cuda_choose *choose);

/* ---- How likely given codes are behind the rows of a prompt ---- */

struct cuda_weigh {
    const float *logits;            /* [n_vectors][n] */
    const int32_t *codes;           /* [n_vectors], mapped; -1: none */
    struct likelihood *likelihoods; /* [n_vectors], mapped: of those that have a code */
    int n_vectors, n, suppress_from, keep;
};
cudaError_t cuda_weigh_queue(const struct cuda_queue *queue, const struct cuda_weigh *weigh);

/* ---- Embedding ---- */

/* One row of a prompt in mapped memory (model/row.h). */
struct cuda_row {
    int32_t text, codec, id;
    int32_t codes[CONFIG_MAX_CODEBOOKS];
};

/* Rows of the text table as vectors; ids outside it give zeros. `text` and text_stride: where the ids stand, in steps
 * of bytes. */
struct cuda_text {
    const uint16_t *table; /* [n_ids][width] */
    int n_ids, width;
    const void *text;
    int64_t text_stride;
    int n_vectors;
    float *x;
    int64_t x_stride;
};
cudaError_t cuda_text_queue(const struct cuda_queue *queue, const struct cuda_text *text);

/* x = text vector + codec part, for the rows of a prompt ... */
struct cuda_embed {
    const struct cuda_row *rows; /* NULL for a frame */
    const float *vectors;        /* mapped: [n_vectors][width], for rows with a vector */
    /* ... or for the slots of a frame: the text vector, or `pad` where the text id is pad_id, plus the lane's sum. */
    const struct cuda_slots *slots;
    const float *sum;
    int64_t sum_stride;
    const float *pad;
    int pad_id;

    const uint16_t *code_table[CONFIG_MAX_CODEBOOKS];
    int n_codebooks, width, n_vectors;
    const float *text; /* projected, vector v at text + v * text_stride */
    int64_t text_stride;
    float *x;
    int64_t x_stride;
};
cudaError_t cuda_embed_queue(const struct cuda_queue *queue, const struct cuda_embed *embed);

#ifdef __cplusplus
}
#endif

#endif
