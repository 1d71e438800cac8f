/* SPDX-License-Identifier: Apache-2.0
 * One frame of one lane in one kernel: the table of contents. Comes in: the lane's state, the text vector, weights
 * in the layout of cuda_weights.h. Goes out: the lane's next state, codes in mapped host memory.
 *
 * 128 blocks, one a multiprocessor and all resident (cooperative launch). In each, one warp brings the block's
 * share of all weights through a ring in shared memory (frame_produce.cuh), and 16 warps multiply, attend and
 * choose. Blocks meet five times a layer (six in the talker) in the exchange of frame_block.cuh; every wait in it
 * is written in the steps below, has a deadline, and past it the frame runs through without waiting and ends with
 * an error bit. */
#include "cuda/frame.h"
#include "cuda/frame_embed.cuh"
#include "cuda/frame_layers.cuh"
#include "cuda/frame_produce.cuh"
#include "cuda/frame_sample.cuh"

/* All layers of a stack for COLUMNS neighbouring positions, the first of them `position`. */
template <int W, int I, int COLUMNS, bool TALKER>
DEV void frame_layers(struct block &b, float (&x)[COLUMNS][4], int position)
{
    const auto &weights = b.args->weights;
    const int first = TALKER ? 0 : weights.n_talker,
              n = TALKER ? weights.n_talker : weights.n_predictor;
    const float eps = TALKER ? weights.talker_eps : weights.predictor_eps;
    attend_angles<COLUMNS>(b, TALKER ? weights.talker_freq : weights.predictor_freq, position);
    for (int i = 0; i < n; i++) {
        const struct frame_layer *layer = (const struct frame_layer *)b.shared->layers[first + i];
        float norm[4] = {0, 0, 0, 0};
        layer_weight<W>(b, layer->input_norm, norm);
        if (i > 0) {
            layer_add<W, COLUMNS>(b, FRAME_X_DOWN, x); /* all blocks */
        }
        block_trace(b, 1);
        layer_qkv<W, COLUMNS>(b, x, norm, eps);
        block_trace(b, 2);
        layer_weight<W>(b, layer->post_norm, norm);
        if (TALKER) {
            attend_talker(b, layer, i, position); /* the kv head's blocks, twice */
        } else {
            attend_predictor<COLUMNS>(b, layer, i, position); /* the kv head's blocks */
        }
        block_trace(b, 3);
        layer_o<W, COLUMNS>(b);                        /* all blocks */
        layer_gate_up<W, I, COLUMNS>(b, x, norm, eps); /* all blocks */
        layer_down<W, I, COLUMNS>(b);                  /* all blocks */
        block_trace(b, 10);
    }
    layer_add<W, COLUMNS>(b, FRAME_X_DOWN, x); /* all blocks */
    block_trace(b, 11);
}

/* The talker's step: h becomes its normed state; raw scores of code 0 into score, ids. */
template <int W, int I>
DEV void frame_talker(struct block &b, float (&h)[1][4], float (&score)[8], int (&ids)[8])
{
    const auto &state = b.args->state;
    const uint32_t flags = b.args->control.flags;
    if (!(flags & FRAME_STEP)) {
        embed_kept<W>(b, h, score, ids);
        return;
    }
    float norm[4] = {0, 0, 0, 0};
    layer_weight<W>(b, b.args->weights.talker_norm, norm);
    embed_input<W>(b, h);
    frame_layers<W, I, 1, true>(b, h, b.args->control.position);
    if (flags & FRAME_NO_HEAD) {
        return;
    }
    layer_last_norm<W>(b, h, norm, b.args->weights.talker_eps);
    layer_put_plain<W, 1>(b, h);
    product<192, W / FRAME_PIECE_K, 1>(b);
    dev_bar();
    product_put<192, 1>(b, FRAME_X_SCORES, 0, 0, NULL);
    sample_take<3072>(b, score, ids, b.index == 0 ? state.logits : NULL); /* all blocks */
    embed_keep<W>(b, state.hidden, h[0]);
}

/* One pass of the predictor from inputs of talker width; the last column's logits go to the exchange. */
template <int W, int COLUMNS>
DEV void frame_predict(struct block &b, const float (&input)[COLUMNS][4], int position)
{
    const auto &weights = b.args->weights;
    float x[COLUMNS][4], last[1][4], norm[4] = {0, 0, 0, 0};
    b.set = COLUMNS == 2 ? FRAME_SET_FIRST : FRAME_SET_PREDICTOR;
    embed_project<W, COLUMNS>(b, input, x); /* all blocks, where the widths differ */
    layer_weight<1024>(b, weights.predictor_norm, norm);
    frame_layers<1024, 3072, COLUMNS, false>(b, x, position);
    for (int i = 0; i < 4; i++) {
        last[0][i] = x[COLUMNS - 1][i];
    }
    layer_put_vector<1024, 1>(b, last, norm);
    product<128, 2, 1>(b);
    dev_bar();
    product_put<128, 1>(b, FRAME_X_SCORES, 1024, weights.predictor_eps, NULL);
}

/* Code j, chosen from raw scores, or forced. The lane goes on with what comes back; *chosen is what the model
 * said. */
DEV int frame_choose(
    struct block &b, int j, const float (&raw)[8], const int (&ids)[8], int *chosen, bool *bad)
{
    const auto &control = b.args->control;
    const struct sample_rule rule = sample_rule_of(b, j);
    float score[8];
    bool mine = false, any;
    for (int i = 0; i < 8; i++) {
        score[i] = ids[i] < 0 ? -INFINITY : sample_process(rule, ids[i], raw[i], mine);
    }
    *chosen = sample_choose(b, rule, score, ids, mine, &any);
    *bad = *bad || any;
    return control.forced ? control.forced[j] : *chosen;
}

/* Codes 1 and on; h: the talker's state. */
template <int W> DEV void frame_codes(struct block &b, const float (&h)[1][4], int going, bool *bad)
{
    const auto &weights = b.args->weights;
    float sum[4] = {0, 0, 0, 0}, row[4], score[8];
    int ids[8], chosen;
    for (int j = 1; j < weights.n_codebooks; j++) {
        embed_code<W>(b, j - 1, going, row);
        embed_sum(sum, row, j == 1);
        if (j == 1) {
            float input[2][4];
            for (int i = 0; i < 4; i++) {
                input[0][i] = h[0][i];
                input[1][i] = row[i];
            }
            frame_predict<W, 2>(b, input, 0);
        } else {
            float input[1][4];
            for (int i = 0; i < 4; i++) {
                input[0][i] = row[i];
            }
            frame_predict<W, 1>(b, input, j);
        }
        float *copy = b.args->control.predictor_logits;
        sample_take<2048>(
            b, score, ids, copy && b.index == 0 ? copy + (size_t)j * 2048 : NULL); /* all blocks */
        block_trace(b, 12);
        going = frame_choose(b, j, score, ids, &chosen, bad);
        block_trace(b, 13);
        embed_note(b, j, chosen, going);
    }
    embed_code<W>(b, weights.n_codebooks - 1, going, row);
    embed_sum(sum, row, weights.n_codebooks == 1);
    embed_keep<W>(b, b.args->state.sum, sum);
}

template <int W, int I> DEV void frame_consume(struct block &b)
{
    const auto &control = b.args->control;
    float h[1][4], score[8];
    int ids[8], chosen = 0;
    bool bad = false, end = false;
    frame_talker<W, I>(b, h, score, ids);
    if (!(control.flags & (FRAME_NO_HEAD | FRAME_NO_CODES))) {
        int going = frame_choose(b, 0, score, ids, &chosen, &bad);
        embed_note(b, 0, chosen, going);
        end = chosen == control.codec_eos && !control.forced;
        if (end) {
            *(volatile uint32_t *)&b.shared->stop = 1;
        } else {
            frame_codes<W>(b, h, going, &bad);
        }
    }
    embed_commit(b, end, bad);
}

template <int W, int I>
__global__ void __launch_bounds__(FRAME_ALL_THREADS, 1)
    frame_kernel(const __grid_constant__ struct frame_args args)
{
#if !defined(__CUDA_ARCH__) ||                                                                         \
    __CUDA_ARCH__ >= 900 /* older ones have no bulk copies; frame_kernel_fits refuses them */
    struct block b;
    if (!block_begin(b, args)) {
        return;
    }
    if (b.warp < FRAME_WARPS) {
        dev_more_registers();
        frame_consume<W, I>(b);
    } else {
        dev_fewer_registers();
        if (b.thread == FRAME_THREADS) {
            produce_frame<W, I>(b);
        }
    }
#endif
}

extern "C" const void *frame_kernel_code(int talker_width)
{
    return talker_width == 1024 ? (const void *)frame_kernel<1024, 3072>
                                : (const void *)frame_kernel<2048, 6144>;
}
