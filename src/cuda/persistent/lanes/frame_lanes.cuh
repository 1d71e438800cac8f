/* SPDX-License-Identifier: Apache-2.0
 * One frame of several lanes in one kernel: the table of contents, as persistent/persistent.cuh is for one lane.
 * A body: files of builds/ say for how many lanes and for which talker, and include it (layout_body.h).
 *
 * The weights, in bf16, pass once for all lanes: a product has a column for each, in groups of four, and no lane's
 * numbers depend on another's. They are those of persistent/persistent.cuh to the last bit: sums stand in the same
 * order, and what goes through the exchange here and stays in registers there is rounded in both. The predictor's
 * two first positions are two passes, of which the first ends with the last layer's keys and values. Codes are
 * chosen by one block a lane, which tells all blocks the code's row as the next pass takes it. */
#ifndef CUDA_PERSISTENT_LANES_FRAME_LANES_CUH
#define CUDA_PERSISTENT_LANES_FRAME_LANES_CUH

#include "cuda/persistent/build.h"
#include "cuda/persistent/lanes/lanes_steps.cuh"

DEV const struct frame_layer *lanes_layer(const struct block &b, int i)
{
    return (const struct frame_layer *)b.shared->layers[i];
}

/* All layers of a stack; words: of the first one's vector. position: of the predictor. keys_only: the last layer ends
 * when it has keys and values. behind: the weight of the norm behind the last one, or NULL. The mark of
 * LANES_X_STATE. */
template <int W, int I, bool TALKER>
DEV uint32_t lanes_layers(struct block &b, const struct lanes_launch &lanes, float &own,
    const uint32_t *words, uint32_t state_mark, int position, bool keys_only, const float *behind)
{
    typedef typename layer_shapes<false, W, I>::qkv qkv;
    typedef typename layer_shapes<false, W, I>::o o; /* here, a run for each kv head */
    typedef typename layer_shapes<false, W, I>::gate_up gate_up;
    typedef typename layer_shapes<false, W, I>::down down;
    const auto &weights = b.args->weights;
    const int first = TALKER ? 0 : weights.n_talker,
              n = TALKER ? weights.n_talker : weights.n_predictor;
    const float eps = TALKER ? weights.talker_eps : weights.predictor_eps;
    for (int i = 0; i < n; i++) {
        const struct frame_layer *layer = lanes_layer(b, first + i);
        struct held<qkv> for_qkv;
        struct held<o> for_o;
        struct held<gate_up> for_gate_up;
        struct held<down> for_down;
        product_hold(b, for_qkv);
        const uint32_t mark = lanes_qkv<qkv, W>(b, lanes, for_qkv, words, state_mark, eps); /* all */
        block_trace(b, 2);
        const bool last = keys_only && i + 1 == n;
        const struct attend_norm head_norm = attend_norm_of(b, layer);
        const float post_weight = lanes_own_weight<W>(b, lanes, layer->post_norm),
                    next_weight = lanes_own_weight<W>(
                        b, lanes, i + 1 < n ? lanes_layer(b, first + i + 1)->input_norm : behind);
        struct attend_kept kept;
        if (!TALKER && b.part < lanes.n) {
            attend_recall(b, kept, i, position);
        }
        if (!TALKER && !last) {
            product_hold(b, for_o);
        }
        if (last) { /* a lane's keys are read before the next pass writes others: the kv head's blocks */
            uint4 mixed[LANES_FOURS][1];
            const uint32_t kept_mark =
                lanes_attend_predictor<LANES_X_KEPT>(b, lanes, kept, head_norm, mark, position);
            lanes_take<1, 0>(
                b, lanes, lanes_at<LANES_X_KEPT>(b), FRAME_KV_HEADS, b.kv_head, kept_mark, mixed);
            dev_bar();
            break;
        }
        const uint32_t mixed_mark =
            TALKER ? lanes_attend_talker(b, lanes, head_norm, mark, i)
                   : lanes_attend_predictor<LANES_X_MIXED>(b, lanes, kept, head_norm, mark, position);
        if (TALKER) { /* the pages stand in front of it */
            product_hold(b, for_o);
        }
        lanes_o<o, W>(b, lanes, for_o, mixed_mark, own); /* all kv heads */
        const uint32_t middle_mark = lanes_publish<W, LANES_X_MIDDLE>(b, lanes, own, post_weight);
        product_hold(b, for_gate_up);
        const uint32_t inner_mark =
            lanes_gate_up<gate_up, W, I>(b, lanes, for_gate_up, middle_mark, eps); /* all blocks */
        product_hold(b, for_down);
        lanes_down<down, W, I>(b, lanes, for_down, inner_mark, own); /* all blocks */
        words = lanes_at<LANES_X_STATE>(b);
        state_mark = lanes_publish<W, LANES_X_STATE>(b, lanes, own, next_weight);
    }
    block_trace(b, 11);
    return state_mark;
}

/* ---- Talker ---- */

/* The talker's input of this thread's row. */
template <int W> DEV float lanes_input(const struct block &b, const struct lanes_launch &lanes)
{
    float own = 0;
    if (lanes_owns<W>(b, lanes)) {
        const auto &lane = lanes.args->lane[lanes_own_lane<W>(b)];
        own = lane.text ? lane.text[lanes_own_row<W>(b)] : 0;
        own = exchange_rounded(own + lane.state.sum[lanes_own_row<W>(b)]);
    }
    return own;
}

/* This thread's row of the normed state behind the last layer. */
template <int W>
DEV float lanes_last_norm(struct block &b, const struct lanes_launch &lanes, uint32_t mark, float x)
{
    const float weight = lanes_own_weight<W>(b, lanes, b.args->weights.talker_norm);
    uint4 squares[LANES_FOURS][W / 1024];
    lanes_take<0, W / 1024>(
        b, lanes, lanes_at<LANES_X_STATE>(b), W / FRAME_UNIT_K, 0, mark, squares); /* all blocks */
    lanes_squares<0, W / 1024>(b, squares);
    dev_bar();
    if (lanes_owns<W>(b, lanes)) {
        const float scale = product_scale(b, lanes_own_lane<W>(b), W, b.args->weights.talker_eps);
        x = dev_mul(weight, dev_mul(x, scale));
    }
    return x;
}

/* The talker's step: this thread's row of the normed states; raw scores of code 0 go to the exchange. */
template <int W, int I> DEV float lanes_talker(struct block &b, const struct lanes_launch &lanes)
{
    typedef shape<false, 1, W / 256, W / 512> head;
    struct held<head> for_head;
    lanes_angles(b, lanes, b.args->weights.talker_freq);
    float own = lanes_input<W>(b, lanes);
    const float weight = lanes_own_weight<W>(b, lanes, lanes_layer(b, 0)->input_norm);
    const uint32_t mark = lanes_publish<W, LANES_X_STATE>(b, lanes, own, weight);
    const uint32_t last =
        lanes_layers<W, I, true>(b, lanes, own, lanes_at<LANES_X_STATE>(b), mark, 0, false, NULL);
    product_hold(b, for_head);
    own = lanes_last_norm<W>(b, lanes, last, own);
    const uint32_t normed = lanes_publish<W, LANES_X_INPUT>(b, lanes, own, 1.0f);
    lanes_plain_product<head, 10>(
        b, lanes, for_head, lanes_at<LANES_X_INPUT>(b), W / FRAME_UNIT_K, 0, normed); /* all blocks */
    const uint32_t scores = lanes_mark(b, LANES_X_SCORES);
    for (int t = b.thread; t < head::ROWS * lanes.n; t += FRAME_THREADS) {
        const int c = t / head::ROWS, row = t % head::ROWS;
        exchange_put(lanes_at<LANES_X_SCORES>(b) + c * 4096 + layer_head_word(b, row),
            lanes_sum<head::ROWS>(b, c, row), scores);
    }
    if (lanes_owns<W>(b, lanes)) {
        lanes.args->lane[lanes_own_lane<W>(b)].state.hidden[lanes_own_row<W>(b)] = own;
    }
    return own;
}

/* Without a step: states and scores are those that the prompt has left. */
template <int W> DEV float lanes_kept(const struct block &b, const struct lanes_launch &lanes)
{
    return lanes_owns<W>(b, lanes)
               ? lanes.args->lane[lanes_own_lane<W>(b)].state.hidden[lanes_own_row<W>(b)]
               : 0;
}

/* ---- Predictor ---- */

/* The norm in front of the predictor, where its input goes straight to its first layer. */
template <int W> DEV const float *lanes_input_norm(const struct block &b)
{
    return W == 1024 ? lanes_layer(b, b.args->weights.n_talker)->input_norm : NULL;
}

/* One pass from the vectors in LANES_X_INPUT, of which `own` is this thread's row where the widths are equal.
 * keys_only: nothing comes of it but keys and values; else logits of head j - 1 go to the exchange. */
template <int W>
DEV void lanes_predict(struct block &b, const struct lanes_launch &lanes, uint32_t mark, float own,
    int position, bool keys_only)
{
    typedef shape<false, 1, 4, 0> head;
    const auto &weights = b.args->weights;
    const uint32_t *words = lanes_at<LANES_X_INPUT>(b);
    struct held<head> for_head;
    attend_angles<1>(b, weights.predictor_freq, position);
    if constexpr (W != 1024) { /* two blocks share a row tile: half of the columns each */
        typedef shape<false, 1, W / FRAME_UNIT_K / 2, 0> half;
        struct held<half> for_half;
        product_hold(b, for_half);
        lanes_plain_product<half, 10>(
            b, lanes, for_half, words, W / FRAME_UNIT_K, b.index % 2 * half::K, mark); /* all blocks */
        own = exchange_rounded(lanes_swap(b, weights.projection_bias));
        words = lanes_at<LANES_X_MIDDLE>(b); /* some may still read the state of the pass before */
        mark = lanes_publish<1024, LANES_X_MIDDLE>(b, lanes, own,
            lanes_own_weight<1024>(b, lanes, lanes_layer(b, weights.n_talker)->input_norm));
    }
    const uint32_t last = lanes_layers<1024, 3072, false>(
        b, lanes, own, words, mark, position, keys_only, weights.predictor_norm);
    if (keys_only) {
        return;
    }
    product_hold(b, for_head);
    lanes_state_product<head, 1024, 10>(
        b, lanes, for_head, lanes_at<LANES_X_STATE>(b), last); /* all blocks */
    const uint32_t scores = lanes_mark(b, LANES_X_SCORES);
    if (b.thread < 16 * lanes.n) {
        const int c = b.thread / 16, row = b.thread % 16;
        exchange_put(lanes_at<LANES_X_SCORES>(b) + c * 4096 + b.index * 16 + row,
            lanes_sum<16>(b, c, row) * product_scale(b, c, 1024, weights.predictor_eps), scores);
        ptx_leads_to(
            b.shared->squares); /* the next pass writes them with codes chosen by these scores */
    }
}

/* ---- Codes ---- */

/* What a chooser tells: the code that its lane goes on with and whether it has ended, above the mark. */
enum { LANES_CODE_BITS = 16 };

/* Code j of this block's lane from its scores. */
template <int EACH>
DEV uint32_t lanes_choice(struct block &b, const struct lanes_launch &lanes,
    const struct choice_rule &rule, const float (&raw)[EACH], const float (&noise)[EACH],
    const uint32_t (&seen)[EACH / 4], bool *bad)
{
    const auto &lane = lanes.args->lane[lanes.chooses];
    const int j = (int)rule.codebook;
    float score[EACH];
    bool mine = false, any;
    sample_process(b, rule, raw, seen, score, mine);
    const int chosen = sample_choose(b, rule, score, noise, mine, &any);
    const int taken = lane.forced ? lane.forced[j] : chosen;
    const bool end = j == 0 && chosen == b.args->control.codec_eos && !lane.forced;
    *bad = *bad || any;
    embed_note(b, j, chosen, taken);
    return (uint32_t)taken | (uint32_t)end << LANES_CODE_BITS;
}

/* The code of this block's lane -> the table's row, to all blocks as the next pass takes it; sum: of all rows. */
template <int W>
DEV void lanes_put_code(const struct block &b, const struct lanes_launch &lanes, int j, int code,
    uint32_t mark, float (&sum)[LAYER_EACH(W)])
{
    const float *norm = lanes_input_norm<W>(b);
    float row[LAYER_EACH(W)], weight[LAYER_EACH(W)];
    for (int i = 0; i < LAYER_EACH(W); i++) {
        weight[i] = 1.0f;
    }
    if (norm) {
        layer_read<W>(b, norm, weight);
    }
    embed_code<W>(b, j, code, row);
    embed_sum(sum, row, j == 0);
    if (j + 1 < b.args->weights.n_codebooks) {
        lanes_put_state<W>(b, lanes_at<LANES_X_INPUT>(b), lanes.chooses, row, weight, mark);
    }
}

/* Code j of all utterances of the launch. The block that chooses for an utterance takes its N scores
 * and publishes the code; all other blocks wait for it. Returned to warp lane l is what was
 * published for utterance l: its code, and whether it has ended (LANES_CODE_BITS). *input becomes
 * the mark with which the choosing blocks publish the predictor's next input vector, the code's row
 * of its table. */
template <int W, int N>
DEV uint32_t lanes_choose(struct block &b, const struct lanes_launch &lanes, int j, uint32_t *input,
    float (&sum)[LAYER_EACH(W)], bool *bad)
{
    const int bit = b.set * LANES_N_KINDS + LANES_X_SCORES;
    const uint32_t mark = lanes_mark(b, LANES_X_CODES), *scores = lanes_at<LANES_X_SCORES>(b);
    uint32_t *words = lanes_at<LANES_X_CODES>(b);
    b.set = LANES_SET_PREDICTOR;
    if (j + 1 < b.args->weights.n_codebooks) {
        *input = lanes_mark(b, LANES_X_INPUT);
    }
    if (lanes.chooses >= 0) {
        const auto &control = b.args->control;
        const auto &state = lanes.args->lane[lanes.chooses].state;
        struct choice_rule rule = sample_rule_of(b, j);
        float raw[N / 256], noise[N / 256], *copy = state.logits;
        uint32_t seen[N / 1024];
        rule.seen = j == 0 ? state.seen : NULL;
        sample_history<N / 256>(b, rule, seen);
        sample_draw(b, rule, noise);
        if (j > 0) {
            copy = control.predictor_logits;
            copy =
                copy ? copy + ((size_t)lanes.chooses * b.args->weights.n_codebooks + j) * 2048 : NULL;
        }
        if (j == 0 && !(control.flags & FRAME_STEP)) {
            embed_scores(b, state.logits, raw);
        } else {
            sample_take<N>(
                b, scores + lanes.chooses * 4096, b.marks >> bit & 1, raw, copy); /* all blocks */
        }
        block_trace(b, 12);
        const uint32_t code = lanes_choice(b, lanes, rule, raw, noise, seen, bad);
        if (b.thread == 0) {
            dev_put(words + lanes.chooses, code << 1 | mark);
        }
        lanes_put_code<W>(b, lanes, j, (int)(code & ((1u << LANES_CODE_BITS) - 1)), *input, sum);
    }
    uint32_t word = mark;
    if (b.lane < lanes.n) {
        do {
            word = dev_get(words + b.lane);
        } while ((word & 1) != mark && !block_is_late(b));
    }
    dev_bar_warp();
    block_trace(b, 13);
    return word >> 1;
}

/* This thread's row of the table for the code of its lane; words: as lanes_choose gives them. */
template <int W>
DEV float lanes_own_code(const struct block &b, const struct lanes_launch &lanes, int j, uint32_t words)
{
    const float codes = numeric_from_bits(words & ((1u << LANES_CODE_BITS) - 1));
    const int code = (int)numeric_to_bits(dev_from(codes, lanes_own_lane<W>(b) % LANES));
    return lanes_owns<W>(b, lanes)
               ? bf16_to_float(b.shared->code_table[j][(size_t)code * W + lanes_own_row<W>(b)])
               : 0;
}

template <int W, int I> DEV void lanes_consume(struct block &b, const struct lanes_launch &lanes)
{
    const int n_codebooks = b.args->weights.n_codebooks;
    float sum[LAYER_EACH(W)];
    uint32_t input;
    bool bad = false;
    float own =
        b.args->control.flags & FRAME_STEP ? lanes_talker<W, I>(b, lanes) : lanes_kept<W>(b, lanes);
    b.set = LANES_SET_PREDICTOR;
    own = W == 1024 ? exchange_rounded(own) : own;
    input = lanes_publish<W, LANES_X_INPUT>(
        b, lanes, own, lanes_own_weight<W>(b, lanes, lanes_input_norm<W>(b)));
    lanes_predict<W>(b, lanes, input, own, 0, true);
    b.set = LANES_SET_TALKER;
    uint32_t words = lanes_choose<W, 3072>(b, lanes, 0, &input, sum, &bad);
    const uint32_t ended = dev_ballot(b.lane < lanes.n && words >> LANES_CODE_BITS & 1);
    if (ended == (1u << lanes.n) - 1) {
        *(volatile uint32_t *)&b.shared->stop = FRAME_STOP_WEIGHTS;
    } else {
        for (int j = 1; j < n_codebooks; j++) {
            own = W == 1024 ? lanes_own_code<W>(b, lanes, j - 1, words) : 0;
            lanes_predict<W>(b, lanes, input, own, j, false);
            words = lanes_choose<W, 2048>(b, lanes, j, &input, sum, &bad); /* the choosers */
        }
    }
    embed_keep_marks(b);
    if (lanes.chooses >= 0) {
        const auto &lane = lanes.args->lane[lanes.chooses];
        const bool in_time = embed_in_time(b), end = ended >> lanes.chooses & 1;
        if (in_time && !end) {
            embed_keep<W>(b, lane.state.sum, sum);
        }
        embed_commit(b, lane.state, lane.position, lane.out, end, bad, !in_time);
    }
    *(volatile uint32_t *)&b.shared->stop = FRAME_STOP_ALL;
}

/* A layer's weights, and the keys and values of the talker's. Of the output projection a block has whole row tiles,
 * or half of one, as of other matrices. */
template <bool TALKER>
DEV bool lanes_produce_layer(
    struct block &b, const struct lanes_launch &lanes, struct producer &p, int at, int width, int inner)
{
    const struct frame_layer *layer = lanes_layer(b, at);
    return produce<false>(b, p, FRAME_QKV, layer->qkv, 4096, width) &&
           (!TALKER || lanes_produce_pages(b, lanes, p, at)) &&
           produce<false>(b, p, FRAME_PROJECT, layer->o, width, FRAME_MIXED) &&
           produce<false>(b, p, FRAME_GATE_UP, layer->gate_up, 2 * inner, width) &&
           produce<false>(b, p, FRAME_DOWN, layer->down, width, inner);
}

/* All that comes through the ring, in the order of lanes_consume. */
template <int W, int I>
DEV bool lanes_produce_all(struct block &b, const struct lanes_launch &lanes, struct producer &p)
{
    const auto &weights = b.args->weights;
    const bool step = b.args->control.flags & FRAME_STEP;
    for (int i = 0; step && i < weights.n_talker; i++) {
        if (!lanes_produce_layer<true>(b, lanes, p, i, W, I)) {
            return false;
        }
    }
    if (step && !produce<false>(b, p, FRAME_HEAD_ROWS, weights.talker_head, 3072, W)) {
        return false;
    }
    for (int j = 0; j < weights.n_codebooks; j++) { /* the predictor's positions */
        if (W != 1024 && !produce<false>(b, p, FRAME_PROJECT, weights.projection, 1024, W)) {
            return false;
        }
        for (int i = 0; i < weights.n_predictor; i++) {
            const int at = weights.n_talker + i;
            const bool done = j == 0 && i + 1 == weights.n_predictor
                                  ? produce<false>(b, p, FRAME_QKV, lanes_layer(b, at)->qkv, 4096, 1024)
                                  : lanes_produce_layer<false>(b, lanes, p, at, 1024, 3072);
            if (!done) {
                return false;
            }
        }
        if (j > 0 && !produce<false>(b, p, FRAME_HEAD_ROWS, weights.heads[j - 1], 2048, 1024)) {
            return false;
        }
    }
    return true;
}

/* What all threads do first. False for a block that has no work. */
DEV bool lanes_begin(struct block &b, struct lanes_launch &lanes, const struct frame_lanes_args &args)
{
    if (!block_begin(b, args.frame)) {
        return false;
    }
    lanes.args = &args;
    lanes.n = args.n;
    lanes.chooses = b.part == FRAME_KV_BLOCKS - 1 && b.kv_head < args.n ? b.kv_head : -1;
    if (lanes.chooses >= 0) { /* in place of lane 0's */
        const struct cuda_lane *lane = args.lane[lanes.chooses].state.lane;
        if (b.thread < (int)(sizeof(struct lane_settings) / 4)) {
            b.shared->settings[b.thread] = ((const uint32_t *)&lane->settings)[b.thread];
        }
        if (b.thread == 0) {
            b.shared->n_frames = lane->n_frames;
        }
    }
    b.marks &= ~(1u << LANES_PAIR_BIT | 1u << LANES_PAIR_O_BIT);
    if (b.thread < (int)(sizeof b.shared->pair / 4)) {
        b.shared->pair[0][b.thread] = 0;
    }
    lanes_clear_notes(b);
    dev_pair_bar(FRAME_ALL_THREADS);
    return true;
}

template <int W, int I>
static __global__ void PTX_PAIRS __launch_bounds__(FRAME_ALL_THREADS, 1)
    lanes_kernel(const __grid_constant__ struct frame_lanes_args args)
{
#if PTX_BULK /* as frame_kernel */
    PTX_IN_PAIRS;
    struct block b;
    struct lanes_launch lanes;
    if (!lanes_begin(b, lanes, args)) {
        return;
    }
    if (b.warp < FRAME_WARPS) {
        dev_more_registers<true>();
        lanes_consume<W, I>(b, lanes);
    } else {
        dev_fewer_registers<true>();
        if (b.thread == FRAME_THREADS) {
            struct producer p = produce_begin();
            lanes_produce_all<W, I>(b, lanes, p);
            produce_end(b, p);
        } else if (b.thread == FRAME_THREADS + 32) {
            block_watch(b);
        }
    }
    /* The other one may still write here. All warps take part: on an H100 those that waited did not
     * always see that others had left, and waited for ever. */
    dev_bar_warp();
    dev_pair_bar(FRAME_ALL_THREADS);
#endif
}

/* What a file of builds/ offers. */
static struct frame_build lanes_build()
{
    return {LANES, LANES_WIDTH, ptx_kernel(lanes_kernel<LANES_WIDTH, 3 * LANES_WIDTH>), frame_ring_at(),
        (size_t)LANES_N_SETS * (size_t)lanes_kind_at(LANES_N_KINDS) * 4};
}

#endif
