/* SPDX-License-Identifier: Apache-2.0
 * One frame of one lane in one kernel: the table of contents, a body that the files of builds/ include
 * for a talker and its weights (layout_body.h); frame_layers.cuh is that of a
 * layer. Comes in: the lane's state, the text vector, weights in the layout of device/weights.h. Goes
 * out: the lane's next state, codes in mapped host memory.
 *
 * 128 blocks, one a multiprocessor and all resident (cooperative launch). In each, one warp brings
 * the block's share of all weights through a ring in shared memory (produce.cuh), and 8 warps
 * multiply, attend and choose. In a layer all blocks reach a barrier three times, which is the
 * exchange of block.cuh, and the 16 of a kv head once more (twice in the talker); every wait in it
 * is written in the steps below, has a deadline, and past it the frame runs through without waiting
 * and ends with an error bit. */
#ifndef CUDA_PERSISTENT_PERSISTENT_CUH
#define CUDA_PERSISTENT_PERSISTENT_CUH

#include "cuda/persistent/build.h"
#include "cuda/persistent/embed.cuh"
#include "cuda/persistent/frame_layers.cuh"
#include "cuda/persistent/produce.cuh"
#include "cuda/persistent/sample.cuh"

/* The talker's step: h becomes its normed state; raw scores of code 0 into score; what else its choice takes. */
template <int W, int I, bool PACKED>
DEV void frame_talker(struct block &b, float (&h)[1][LAYER_EACH(W)], float (&score)[12],
    float (&noise)[12], uint32_t (&seen)[3])
{
    typedef shape<PACKED, 1, W / 256, W / 512> head;
    const auto &state = b.args->state;
    const uint32_t flags = b.args->control.flags;
    struct held<head> for_head;
    float norm[LAYER_EACH(W)];
    if (!(flags & FRAME_STEP)) {
        layer_read<W>(b, state.hidden, h[0]);
        embed_scores(b, state.logits, score);
        sample_history<12>(b, sample_rule_of(b, 0), seen);
        sample_draw(b, sample_rule_of(b, 0), noise);
        attend_angles<2>(b, b.args->weights.predictor_freq, 0);
        return;
    }
    attend_angles<1>(b, b.args->weights.talker_freq, b.args->control.position);
    embed_input<W>(b, h);
    frame_layers<W, I, 1, true, PACKED>(
        b, h, b.args->control.position, b.args->weights.talker_norm, norm);
    if (flags & FRAME_NO_HEAD) {
        frame_last<W>(b, h);
        return;
    }
    sample_history<12>(b, sample_rule_of(b, 0), seen);
    product_hold(b, for_head);
    frame_last<W>(b, h);
    layer_last_norm<W>(b, h, norm, b.args->weights.talker_eps);
    layer_put_plain<PACKED, W>(b, h, 0);
    layer_head_halves(b, for_head);
    sample_draw(b, sample_rule_of(b, 0), noise);
    attend_angles<2>(b, b.args->weights.predictor_freq, 0);
    const uint32_t mark = exchange_mark(b, FRAME_X_SCORES);
    sample_take<3072>(b, exchange_at<FRAME_X_SCORES>(b), mark, score,
        b.index == 0 ? state.logits : NULL); /* all blocks */
    if (b.index == 0) {
        embed_keep<W>(b, state.hidden, h[0]);
    }
}

/* One pass of the predictor from inputs of talker width. The logits of the last column go to the
 * exchange, where every block takes all of them. Returned to warp 0 are the logits of this block's
 * 16 rows: warp lane l has that of row l % 16. */
template <int W, int COLUMNS, bool PACKED>
DEV float frame_predict(struct block &b, const float (&input)[COLUMNS][LAYER_EACH(W)], int position)
{
    typedef shape<PACKED, 1, 4, 0> head;
    const auto &weights = b.args->weights;
    struct held<head> for_head;
    float x[COLUMNS][4], last[1][4], norm[4], squares[1];
    b.set = COLUMNS == 2 ? FRAME_SET_FIRST : FRAME_SET_PREDICTOR;
    embed_project<W, PACKED>(b, input, x); /* all blocks, where the widths differ */
    frame_layers<1024, 3072, COLUMNS, false, PACKED>(b, x, position, weights.predictor_norm, norm);
    product_hold(b, for_head);
    frame_last<1024>(b, x);
    for (int i = 0; i < 4; i++) {
        last[0][i] = x[COLUMNS - 1][i];
    }
    layer_put_vector<PACKED, 1024>(b, last, norm, squares);
    return layer_head(b, for_head, squares, weights.predictor_eps);
}

/* Code j, chosen from raw scores, or forced. The lane goes on with what comes back; *chosen is what the model
 * said. */
template <int EACH>
DEV int frame_choose(struct block &b, const struct choice_rule &rule, const float (&raw)[EACH],
    const float (&noise)[EACH], const uint32_t (&seen)[EACH / 4], int *chosen, bool *bad)
{
    const auto &control = b.args->control;
    float score[EACH];
    bool mine = false, any;
    sample_process(b, rule, raw, seen, score, mine);
    *chosen = sample_choose(b, rule, score, noise, mine, &any);
    *bad = *bad || any;
    return control.forced ? control.forced[rule.codebook] : *chosen;
}

/* Codes 1 and on; h: the talker's state; sum: of the embeddings of all codes. */
template <int W, bool PACKED>
DEV void frame_codes(struct block &b, const float (&h)[1][LAYER_EACH(W)], int taken,
    float (&sum)[LAYER_EACH(W)], bool *bad)
{
    const auto &weights = b.args->weights;
    const uint32_t unseen[2] = {0, 0}; /* the talker's codes alone have a history */
    float input[1][LAYER_EACH(W)], score[8], noise[8], own;
    int chosen;
    for (int j = 1; j < weights.n_codebooks; j++) {
        const struct choice_rule rule = sample_rule_of(b, j);
        embed_code<W>(b, j - 1, taken, input[0]);
        embed_sum(sum, input[0], j == 1);
        if (j == 1) {
            float both[2][LAYER_EACH(W)];
            for (int i = 0; i < LAYER_EACH(W); i++) {
                both[0][i] = h[0][i];
                both[1][i] = input[0][i];
            }
            own = frame_predict<W, 2, PACKED>(b, both, 0);
        } else {
            own = frame_predict<W, 1, PACKED>(b, input, j);
        }
        if (b.warp == 0) {
            sample_foresee(b, rule, own, b.shared->code_table[j], 2 * W);
        }
        sample_draw(b, rule, noise);
        attend_angles<1>(b, weights.predictor_freq, j + 1); /* of the next pass */
        float *copy = b.args->control.predictor_logits;
        const uint32_t mark = exchange_mark(b, FRAME_X_SCORES);
        sample_take<2048>(b, exchange_at<FRAME_X_SCORES>(b), mark, score,
            copy && b.index == 0 ? copy + (size_t)j * 2048 : NULL); /* all blocks */
        block_trace(b, 12);
        taken = frame_choose(b, rule, score, noise, unseen, &chosen, bad);
        block_trace(b, 13);
        embed_note(b, j, chosen, taken);
    }
    embed_code<W>(b, weights.n_codebooks - 1, taken, input[0]);
    embed_sum(sum, input[0], weights.n_codebooks == 1);
}

template <int W, int I, bool TALKER, bool PREDICTOR> DEV void frame_consume(struct block &b)
{
    const auto &control = b.args->control;
    float h[1][LAYER_EACH(W)], sum[LAYER_EACH(W)], score[12], noise[12];
    uint32_t seen[3];
    int chosen = 0;
    bool bad = false, end = false, spoke = false;
    frame_talker<W, I, TALKER>(b, h, score, noise, seen);
    if (!(control.flags & (FRAME_NO_HEAD | FRAME_NO_CODES))) {
        const struct choice_rule rule = sample_rule_of(b, 0);
        int taken = frame_choose(b, rule, score, noise, seen, &chosen, &bad);
        embed_note(b, 0, chosen, taken);
        end = chosen == control.codec_eos && !control.forced;
        if (end) {
            *(volatile uint32_t *)&b.shared->stop = FRAME_STOP_WEIGHTS;
        } else {
            frame_codes<W, PREDICTOR>(b, h, taken, sum, &bad);
            spoke = true;
        }
    }
    embed_keep_marks(b);
    if (b.index == 0) {
        const bool in_time = embed_in_time(b);
        if (in_time && spoke) {
            embed_keep<W>(b, b.args->state.sum, sum);
        }
        embed_commit(b, b.args->state, control.position, control.out, end, bad, !in_time);
    }
    *(volatile uint32_t *)&b.shared->stop = FRAME_STOP_ALL;
    totals_release(b); /* the warp that clears them sees it */
}

template <int W, int I, bool TALKER, bool PREDICTOR>
static __global__ void __launch_bounds__(FRAME_ALL_THREADS, 1)
    frame_kernel(const __grid_constant__ struct frame_args args)
{
#if PTX_BULK /* frame_kernel_fits refuses others */
    struct block b;
    if (!block_begin(b, args)) {
        return;
    }
    if (b.warp < FRAME_WARPS) {
        dev_more_registers<false>();
        frame_consume<W, I, TALKER, PREDICTOR>(b);
    } else {
        dev_fewer_registers<false>();
        if (b.thread == FRAME_THREADS) {
            produce_frame<W, I, TALKER, PREDICTOR>(b);
        } else if (b.thread == FRAME_THREADS + 32) {
            block_watch(b);
        } else if (b.warp == FRAME_WARPS + 3) {
            totals_clear_all(b);
        }
    }
#endif
}

/* What a file of builds/ offers. */
template <int W, int I, bool TALKER, bool PREDICTOR> static struct frame_build frame_build_of()
{
    return {FRAME_LANES, W, ptx_kernel(frame_kernel<W, I, TALKER, PREDICTOR>), frame_ring_at(),
        frame_exchange_bytes()};
}

#endif
