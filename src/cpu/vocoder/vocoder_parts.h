/* SPDX-License-Identifier: Apache-2.0
 * The inside of the vocoder, shared by its files: run.c (memory, one run), front.c (codes to the last upsampling
 * stage, a column for each time step), wave.c (the convolution stack, a row for each channel), and beside packed
 * weights vocoder_integer.c and round.c (that stack in integers, and its weights).
 *
 * Streaming: every convolution keeps its last inputs, every transposed one the products that reach past
 * its last output, the transformer its keys and values. Each number is computed by the same operations in
 * the same order however the frames are cut into calls and the calls into pieces. */
#ifndef CPU_VOCODER_VOCODER_PARTS_H
#define CPU_VOCODER_VOCODER_PARTS_H

#include "base/threads.h"
#include "cpu/vocoder/vocoder.h"

enum {
    VOCODER_UNITS = 3, /* residual units of a block */
    VOCODER_WIDEN = 4, /* inner width of a ConvNeXt block */
    VOCODER_REACH = 6, /* past inputs of a convolution of 7 taps */
    VOCODER_PRE_REACH = 2,
    VOCODER_GRAIN = 6, /* outputs of a convolution that go to one thread together */
};

/* A convolution as the kernels take it; weights stay where the model has them. */
struct vocoder_conv {
    const float *w, *bias;
    int n_in, n_out, taps, dilation;
};

struct vocoder_snake {
    float *a, *b; /* [channels] exp(alpha), 1 / (exp(beta) + 1e-9) */
};

struct vocoder_upsample {
    const float *up_w; /* [latent][latent * ratio] */
    float *taps;       /* [7][latent], the depthwise weights, transposed */
};

struct vocoder_unit {
    struct vocoder_snake snake1, snake2;
    struct vocoder_conv conv1, conv2;
};

struct vocoder_block {
    int n_in, n_out, rate;
    int n_piece; /* input time steps that are worked on at once */
    struct vocoder_snake snake;
    const float *up_w, *up_bias;
    struct vocoder_unit units[VOCODER_UNITS];
    /* Scratch. Rows of `ready` have room for the longest past in front; rows of all are `stride` apart. */
    float *main, *other, *ready, *inner; /* [n_out][stride] */
    int64_t stride;                      /* of the piece at hand */
};

struct vocoder_integer; /* vocoder_integer.h */

struct cpu_vocoder {
    const struct model *model;
    const struct vocoder_weights *weights; /* the model's, or with matrices in 16 bits */
    struct vocoder_integer *integer;       /* NULL: in floats */
    const struct codec_config *config;
    const struct kern *kern;
    struct pool *pool;
    struct cpu_stack stack;
    struct cpu_scratch *stack_scratch;
    struct vocoder_conv pre_conv, first, last;
    struct vocoder_upsample upsample[CONFIG_MAX_RATES];
    struct vocoder_block blocks[CONFIG_MAX_RATES];
    struct vocoder_snake last_snake;
    /* The one allocation that all pointers to floats of our own (not the model's) point into: those above, in the
     * blocks, and those below. */
    float *memory;
    size_t n_memory;

    /* Scratch of the front, for BACKEND_MAX_FEED frames. */
    /* [frames][codebook_dim / 2]: vectors of the first codebook; sums of those of the others */
    float *picked[2];
    float *projected[2]; /* [frames][codebook_dim] */
    float *quantized;    /* [codebook_dim][2 + frames], the past in front */
    float *latent_rows;  /* [latent][frames] */
    float *narrow;       /* [frames][stack width] */
    /* [VOCODER_REACH + frames * ratios][latent]: a stage reads one and writes the other */
    float *columns[2];
    float *normed;     /* [frames * ratios][latent] */
    float *wide;       /* [frames * ratios][VOCODER_WIDEN * latent] */
    float *first_rows; /* [latent][6 + time steps], the past in front */

    /* Scratch of the wave. */
    float *wave, *wave_ready; /* [decoder_width][time steps] before and after the first block's snake */
    float *products;          /* [n_parts][n_products] for transposed convolutions, both files */
    float *tapped;            /* [time steps][channels] of one piece, transposed for a tap */
    int n_parts;              /* most parts of one parallel loop */
    int64_t n_products;
    size_t n_tapped;
};

/* The past of a convolution in integers. */
struct vocoder_integer_past {
    int32_t *words; /* [n_groups][kern.integer_words][n_past], or by time steps */
    int n_past;
};

/* What a block keeps of earlier calls. */
struct vocoder_block_state {
    /* In floats: what the transposed convolution adds to its next outputs, and the past of each unit. */
    float *tail;                /* [n_out][rate] */
    float *past[VOCODER_UNITS]; /* [n_out][6 * dilation] */
    /* In integers (struct cpu_vocoder's `integer`): the past of both kinds; the floats are then not in use. */
    struct vocoder_integer_past integer_up, integer_unit[VOCODER_UNITS];
};

struct cpu_vocoder_lane { /* one allocation with what it points to */
    int64_t position;     /* frames so far */
    struct cpu_cache cache;
    float *pre_past;                           /* [codebook_dim][2] */
    float *depthwise[CONFIG_MAX_RATES];        /* [6][latent] */
    float *first_past;                         /* [latent][6], in floats */
    struct vocoder_integer_past integer_first; /* the same in integers */
    struct vocoder_block_state blocks[CONFIG_MAX_RATES];
    float *last_past; /* [channels][6] */
    /* A reset zeroes this many floats from pre_past on: every past above lies behind it in one piece. */
    size_t n_past;
};

/* Cuts one allocation into pieces: with base NULL it only counts. Pieces begin on 64 bytes. */
struct vocoder_carver {
    float *base;
    size_t n;
};
float *vocoder_carve(struct vocoder_carver *c, int64_t n);

/* Row stride of at least n floats and KERN_PAD: an odd number of 64-byte lines, so that the rows of a
 * column of work do not fall on the same lines of a cache. */
int64_t vocoder_stride(int64_t n);

/* fn over n things in parts of at least `grain` of them, over few threads when there is little work (in
 * products of two numbers). */
void vocoder_spread(const struct cpu_vocoder *v, void (*fn)(void *, int, int), void *arg, int64_t n,
    int grain, int64_t work);

/* The n channels of a snake from the logarithms in the file. */
void vocoder_snake_fill(struct vocoder_snake *snake, const struct snake_weights *w, int n);

/* For the kernel, but for y, residual and n_t. */
struct kern_conv vocoder_conv_of(const struct vocoder_conv *conv, const float *x, int64_t x_stride);

/* Transposes: rows [n_rows][n_cols] at stride x_stride -> columns y[n_cols][n_rows]. */
void vocoder_transpose(float *y, const float *x, int64_t x_stride, int64_t n_rows, int64_t n_cols);

/* Reports rows [n_channels][stride] as [n_time_steps][n_channels]; nothing when no tap is set. */
void vocoder_tap_rows(struct cpu_vocoder *v, const struct cpu_tap *tap, const char *name, int index,
    const float *rows, int64_t stride, int64_t n_time_steps, int64_t n_channels);

/* A channel's samples behind its past, and the past renewed: row = past | new; `past` holds n_past. The new
 * n samples must already lie at row + n_past. */
void vocoder_join_past(float *row, float *past, int64_t n_past, int64_t n);

/* Front: scratch, then codes -> v->first_rows (behind its past) for n * ratios time steps; returns how many. */
void vocoder_front_carve(struct cpu_vocoder *v, struct vocoder_carver *c);
int vocoder_front_run(struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, const int32_t *codes,
    int n_frames, const struct cpu_tap *tap);

/* Wave: scratch, then v->first_rows -> pcm. */
void vocoder_wave_carve(struct cpu_vocoder *v, struct vocoder_carver *c);
void vocoder_wave_run(struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, int n_time_steps,
    float *pcm, const struct cpu_tap *tap);
/* The last convolution: rows[channel][stride], with the past in front, -> n samples. */
void vocoder_wave_last(struct cpu_vocoder *v, const float *rows, int64_t stride, float *pcm, int64_t n);

#endif
