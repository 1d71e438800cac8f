/* SPDX-License-Identifier: Apache-2.0
 * One frame of several lanes in one kernel: the table of contents, as frame.cuh is for one lane. Included by files that
 * say for how many lanes and for which talker (FRAME_LANES, FRAME_LANES_WIDTH).
 *
 * The weights, in bf16, pass once for all lanes: a product has a column for each, in groups of four, and no lane's
 * numbers depend on another's. They are those of frame.cuh to the last bit: sums stand in the same order, and what goes
 * through the exchange here and stays in registers there is rounded in both. The predictor's two first positions are
 * two passes, of which the first ends with the last layer's keys and values. Codes are chosen by one block a lane,
 * which tells them to all. */
#ifndef CUDA_FRAME_LANES_CUH
#define CUDA_FRAME_LANES_CUH

#include "cuda/frame_lanes_steps.cuh"

DEV const struct frame_layer *lanes_layer(const struct block &b, int i)
{
    return (const struct frame_layer *)b.shared->layers[i];
}

/* All layers of a stack; the first one's vector is there. position: of the predictor. keys_only: the last layer ends
 * when it has keys and values. The mark of LANES_X_STATE. */
template <int W, int I, bool TALKER>
DEV uint32_t lanes_layers(
    struct block &b, const struct crowd &crowd, float &own, int position, bool keys_only)
{
    typedef layer_shapes<false, W, I> shapes;
    const auto &weights = b.args->weights;
    const int first = TALKER ? 0 : weights.n_talker,
              n = TALKER ? weights.n_talker : weights.n_predictor;
    const float eps = TALKER ? weights.talker_eps : weights.predictor_eps;
    uint32_t state_mark = 0;
    float norm[LAYER_EACH(W)];
    for (int i = 0; i < n; i++) {
        const struct frame_layer *layer = lanes_layer(b, first + i);
        struct held<typename shapes::qkv> for_qkv;
        struct held<typename shapes::o> for_o;
        struct held<typename shapes::gate_up> for_gate_up;
        struct held<typename shapes::down> for_down;
        product_hold(b, for_qkv);
        if (i > 0) { /* all blocks */
            layer_read<W>(b, layer->input_norm, norm);
            lanes_vector<W>(b, crowd, lanes_at<LANES_X_STATE>(b), state_mark, norm);
        }
        block_trace(b, 1);
        const uint32_t mark = lanes_qkv<typename shapes::qkv, W>(b, crowd, for_qkv, eps);
        block_trace(b, 2);
        const bool last = keys_only && i + 1 == n;
        const struct attend_norm head_norm = attend_norm_of(b, layer);
        struct attend_kept kept;
        if (!TALKER && b.part < crowd.n) {
            attend_recall(b, kept, i, position);
        }
        if (!last) {
            product_hold(b, for_o);
        }
        const uint32_t mixed_mark =
            TALKER ? lanes_attend_talker(b, crowd, head_norm, mark, i)
                   : lanes_attend_predictor(b, crowd, kept, head_norm, mark, position);
        if (last) { /* a lane's keys are read before the next pass writes others */
            lanes_mixed(b, crowd, mixed_mark);
            dev_bar();
            break;
        }
        const uint32_t o_mark =
            lanes_o<typename shapes::o, W>(b, crowd, for_o, mixed_mark); /* the kv head's blocks */
        layer_read<W>(b, layer->post_norm, norm);
        lanes_add_o<W>(b, crowd, o_mark, own); /* a block of each kv head */
        const uint32_t middle_mark = lanes_tell<W, LANES_X_MIDDLE>(b, crowd, own);
        product_hold(b, for_gate_up);
        lanes_vector<W>(b, crowd, lanes_at<LANES_X_MIDDLE>(b), middle_mark, norm); /* all */
        block_trace(b, 6);
        const uint32_t inner_mark =
            lanes_gate_up<typename shapes::gate_up, W, I>(b, crowd, for_gate_up, eps);
        product_hold(b, for_down);
        lanes_down<typename shapes::down, W, I>(b, crowd, for_down, inner_mark, own); /* all blocks */
        state_mark = lanes_tell<W, LANES_X_STATE>(b, crowd, own);
    }
    block_trace(b, 11);
    return state_mark;
}

/* ---- Talker ---- */

/* The talker's input of this thread's row. */
template <int W> DEV float lanes_input(const struct block &b, const struct crowd &crowd)
{
    float own = 0;
    if (lanes_owns<W>(b, crowd)) {
        const auto &lane = crowd.args->lane[lanes_own_lane<W>(b)];
        own = lane.text ? lane.text[lanes_own_row<W>(b)] : 0;
        own = exchange_rounded(own + lane.state.sum[lanes_own_row<W>(b)]);
    }
    return own;
}

/* The norm behind the last layer, of the talker: h becomes the states, own this thread's row of them. */
template <int W>
DEV void lanes_last_norm(struct block &b, const struct crowd &crowd, uint32_t mark,
    float (&h)[LANES][LAYER_EACH(W)], float &own)
{
    const float eps = b.args->weights.talker_eps;
    float norm[LAYER_EACH(W)];
    layer_read<W>(b, b.args->weights.talker_norm, norm);
    lanes_take<W, LANES>(b, crowd, lanes_at<LANES_X_STATE>(b), 0, mark, h); /* all blocks */
    float squares[LANES] = {};
#pragma unroll
    for (int c = 0; c < LANES; c++) {
        for (int i = 0; i < LAYER_EACH(W); i += 4) {
            squares[c] += layer_squares(h[c] + i);
        }
    }
    lanes_squares(b, squares);
    dev_bar();
#pragma unroll
    for (int c = 0; c < LANES; c++) {
        const float scale = product_scale(b, c, W, eps);
        for (int i = 0; i < LAYER_EACH(W); i++) {
            h[c][i] = dev_mul(norm[i], dev_mul(h[c][i], scale));
        }
    }
    if (lanes_owns<W>(b, crowd)) {
        const float scale = product_scale(b, lanes_own_lane<W>(b), W, eps);
        own = dev_mul(b.args->weights.talker_norm[lanes_own_row<W>(b)], dev_mul(own, scale));
    }
    dev_bar(); /* before squares are written again */
}

/* The talker's step: h becomes the normed states, own this thread's row; raw scores of code 0 go to the exchange. */
template <int W, int I>
DEV void lanes_talker(
    struct block &b, const struct crowd &crowd, float (&h)[LANES][LAYER_EACH(W)], float &own)
{
    typedef shape<false, 1, W / 256, W / 512> head;
    struct held<head> for_head;
    float norm[LAYER_EACH(W)];
    lanes_angles(b, crowd, b.args->weights.talker_freq);
    own = lanes_input<W>(b, crowd);
    const uint32_t mark = lanes_tell<W, LANES_X_STATE>(b, crowd, own);
    layer_read<W>(b, lanes_layer(b, 0)->input_norm, norm);
    lanes_vector<W>(b, crowd, lanes_at<LANES_X_STATE>(b), mark, norm); /* all blocks */
    const uint32_t last = lanes_layers<W, I, true>(b, crowd, own, 0, false);
    product_hold(b, for_head);
    lanes_last_norm<W>(b, crowd, last, h, own);
    layer_put_plain<false, W>(b, h, 0);
    product<head, LANES>(b, for_head, vector_rows<LANES>(b, head::K), head::K);
    dev_bar();
    const uint32_t scores = lanes_mark(b, LANES_X_SCORES);
    for (int t = b.thread; t < head::ROWS * crowd.n; t += FRAME_THREADS) {
        const int c = t / head::ROWS, row = t % head::ROWS;
        exchange_put(lanes_at<LANES_X_SCORES>(b) + c * 4096 + layer_head_word(b, row),
            product_sum<head::ROWS>(b, c, row), scores);
    }
#pragma unroll
    for (int c = 0; c < LANES; c++) {
        if (c == crowd.chooses) {
            embed_keep<W>(b, crowd.args->lane[c].state.hidden, h[c]);
        }
    }
}

/* Without a step: states and scores are those that the prompt has left. */
template <int W>
DEV void lanes_kept(
    struct block &b, const struct crowd &crowd, float (&h)[LANES][LAYER_EACH(W)], float &own)
{
#pragma unroll
    for (int c = 0; c < LANES; c++) {
        if (c < crowd.n) {
            layer_read<W>(b, crowd.args->lane[c].state.hidden, h[c]);
        }
    }
    if (lanes_owns<W>(b, crowd)) {
        own = crowd.args->lane[lanes_own_lane<W>(b)].state.hidden[lanes_own_row<W>(b)];
    }
}

/* ---- Predictor ---- */

/* One pass from inputs of talker width, of which `own` is this thread's row. keys_only: nothing comes of it but keys
 * and values; else logits of head j - 1 go to the exchange. */
template <int W>
DEV void lanes_predict(struct block &b, const struct crowd &crowd,
    const float (&input)[LANES][LAYER_EACH(W)], float own, int position, bool keys_only)
{
    typedef shape<false, 1, 4, 0> head;
    const auto &weights = b.args->weights;
    struct held<head> for_head;
    float norm[4];
    attend_angles<1>(b, weights.predictor_freq, position);
    layer_read<1024>(b, lanes_layer(b, weights.n_talker)->input_norm, norm);
    if constexpr (W == 1024) {
        float x[LANES][4], squares[LANES];
        own = exchange_rounded(own);
#pragma unroll
        for (int i = 0; i < LANES * 4; i++) {
            x[i / 4][i % 4] = exchange_rounded(input[i / 4][i % 4]);
        }
        lanes_put<1024, LANES>(b, 0, x, norm, squares);
        lanes_squares(b, squares);
    } else { /* two blocks share a row tile: half of the columns each */
        typedef shape<false, 1, W / FRAME_UNIT_K / 2, 0> half;
        struct held<half> for_half;
        product_hold(b, for_half);
        layer_put_plain<false, W / 2>(b, input, b.index % 2);
        product<half, LANES>(b, for_half, vector_rows<LANES>(b, half::K), half::K);
        dev_bar();
        own = exchange_rounded(lanes_swap(b, crowd, weights.projection_bias));
        const uint32_t mark = lanes_tell<1024, LANES_X_STATE>(b, crowd, own);
        lanes_vector<1024>(b, crowd, lanes_at<LANES_X_STATE>(b), mark, norm); /* all blocks */
    }
    const uint32_t last = lanes_layers<1024, 3072, false>(b, crowd, own, position, keys_only);
    if (keys_only) {
        return;
    }
    layer_read<1024>(b, weights.predictor_norm, norm);
    product_hold(b, for_head);
    lanes_vector<1024>(b, crowd, lanes_at<LANES_X_STATE>(b), last, norm); /* all blocks */
    product<head, LANES>(b, for_head, vector_rows<LANES>(b, head::K), head::K);
    dev_bar();
    const uint32_t mark = lanes_mark(b, LANES_X_SCORES);
    if (b.thread < 16 * crowd.n) {
        const int c = b.thread / 16, row = b.thread % 16;
        exchange_put(lanes_at<LANES_X_SCORES>(b) + c * 4096 + b.index * 16 + row,
            product_sum<16>(b, c, row) * product_scale(b, c, 1024, weights.predictor_eps), mark);
    }
}

/* ---- Codes ---- */

/* What a chooser tells: the code that its lane goes on with and whether it has ended, above the mark. */
enum { LANES_CODE_BITS = 16 };

/* Code j of this block's lane from its scores. */
template <int EACH>
DEV uint32_t lanes_choice(struct block &b, const struct crowd &crowd, const struct sample_rule &rule,
    const float (&raw)[EACH], const float (&noise)[EACH], const uint32_t (&seen)[EACH / 4], bool *bad)
{
    const auto &lane = crowd.args->lane[crowd.chooses];
    const int j = (int)rule.codebook;
    float score[EACH];
    bool mine = false, any;
    for (int i = 0; i < EACH; i++) {
        score[i] = sample_process(rule, sample_id(b, i), raw[i], seen[i / 4] >> i % 4 * 8 & 255, mine);
    }
    const int chosen = sample_choose(b, rule, score, noise, mine, &any);
    const int going = lane.forced ? lane.forced[j] : chosen;
    const bool end = j == 0 && chosen == b.args->control.codec_eos && !lane.forced;
    *bad = *bad || any;
    embed_note(b, j, chosen, going);
    return (uint32_t)going | (uint32_t)end << LANES_CODE_BITS;
}

/* Code j of all lanes: lane l of each warp gets that of lane l. N: scores. */
template <int N> DEV uint32_t lanes_choose(struct block &b, const struct crowd &crowd, int j, bool *bad)
{
    const int bit = b.set * LANES_N_KINDS + LANES_X_SCORES;
    const uint32_t mark = lanes_mark(b, LANES_X_CODES);
    uint32_t *words = lanes_at<LANES_X_CODES>(b);
    if (crowd.chooses >= 0) {
        const auto &control = b.args->control;
        const auto &state = crowd.args->lane[crowd.chooses].state;
        struct sample_rule rule = sample_rule_of(b, j);
        float raw[N / 256], noise[N / 256], *copy = state.logits;
        uint32_t seen[N / 1024];
        rule.seen = j == 0 ? state.seen : NULL;
        sample_history<N / 256>(b, rule, seen);
        sample_draw(b, rule, noise);
        if (j > 0) {
            copy = control.predictor_logits;
            copy =
                copy ? copy + ((size_t)crowd.chooses * b.args->weights.n_codebooks + j) * 2048 : NULL;
        }
        if (j == 0 && !(control.flags & FRAME_STEP)) {
            embed_scores(b, state.logits, raw);
        } else {
            sample_take<N>(b, lanes_at<LANES_X_SCORES>(b) + crowd.chooses * 4096, b.marks >> bit & 1,
                raw, copy); /* all blocks */
        }
        block_trace(b, 12);
        const uint32_t code = lanes_choice(b, crowd, rule, raw, noise, seen, bad);
        if (b.thread == 0) {
            dev_put(words + crowd.chooses, code << 1 | mark);
        }
    }
    uint32_t word = mark;
    if (b.lane < crowd.n) {
        do {
            word = dev_get(words + b.lane);
        } while ((word & 1) != mark && !block_is_late(b));
    }
    dev_bar_warp();
    block_trace(b, 13);
    return word >> 1;
}

/* Codes 1 and on. words: code 0 of all lanes as lanes_choose gives it; own: this thread's row of the states. */
template <int W>
DEV void lanes_codes(
    struct block &b, const struct crowd &crowd, uint32_t words, float (&sum)[LAYER_EACH(W)], bool *bad)
{
    const int n_codebooks = b.args->weights.n_codebooks;
    for (int j = 1; j <= n_codebooks; j++) {
        float input[LANES][LAYER_EACH(W)], own = 0;
        const float codes = numeric_from_bits(words & ((1u << LANES_CODE_BITS) - 1));
#pragma unroll
        for (int c = 0; c < LANES; c++) { /* all at once; of lanes that are not there the first row */
            embed_code<W>(b, j - 1, (int)numeric_to_bits(dev_from(codes, c)), input[c]);
        }
#pragma unroll
        for (int c = 0; c < LANES; c++) {
            if (c == crowd.chooses) {
                embed_sum(sum, input[c], j == 1);
            }
        }
        if (j == n_codebooks) {
            break;
        }
        if (W == 1024) {
            const int code = (int)numeric_to_bits(dev_from(codes, lanes_own_lane<W>(b) % LANES));
            const uint16_t *row = b.shared->code_table[j - 1] + (size_t)code * W;
            own = bf16_to_float(row[lanes_own_row<W>(b)]);
        }
        lanes_predict<W>(b, crowd, input, own, j, false);
        words = lanes_choose<2048>(b, crowd, j, bad); /* the choosers */
    }
}

template <int W, int I> DEV void lanes_consume(struct block &b, const struct crowd &crowd)
{
    float h[LANES][LAYER_EACH(W)] = {}, sum[LAYER_EACH(W)], own = 0;
    bool bad = false;
    if (b.args->control.flags & FRAME_STEP) {
        lanes_talker<W, I>(b, crowd, h, own);
    } else {
        lanes_kept<W>(b, crowd, h, own);
    }
    b.set = LANES_SET_PREDICTOR;
    lanes_predict<W>(b, crowd, h, own, 0, true);
    b.set = LANES_SET_TALKER;
    const uint32_t words = lanes_choose<3072>(b, crowd, 0, &bad);
    const uint32_t ended = dev_ballot(b.lane < crowd.n && words >> LANES_CODE_BITS & 1);
    b.set = LANES_SET_PREDICTOR;
    if (ended == (1u << crowd.n) - 1) {
        *(volatile uint32_t *)&b.shared->stop = FRAME_STOP_WEIGHTS;
    } else {
        lanes_codes<W>(b, crowd, words, sum, &bad);
    }
    embed_keep_marks(b);
    if (crowd.chooses >= 0) {
        const auto &lane = crowd.args->lane[crowd.chooses];
        const bool in_time = embed_in_time(b), end = ended >> crowd.chooses & 1;
        if (in_time && !end) {
            embed_keep<W>(b, lane.state.sum, sum);
        }
        embed_commit(b, lane.state, lane.position, lane.out, end, bad, !in_time);
    }
    *(volatile uint32_t *)&b.shared->stop = FRAME_STOP_ALL;
}

/* The weights in the order of lanes_consume. */
template <int W, int I> DEV bool lanes_produce_all(struct block &b, struct producer &p)
{
    const auto &weights = b.args->weights;
    const bool step = b.args->control.flags & FRAME_STEP;
    for (int i = 0; step && i < weights.n_talker; i++) {
        if (!produce_layer<false>(b, p, i, W, I)) {
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
                                  : produce_layer<false>(b, p, at, 1024, 3072);
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
DEV bool lanes_begin(struct block &b, struct crowd &crowd, const struct frame_lanes_args &args)
{
    if (!block_begin(b, args.frame)) {
        return false;
    }
    crowd.args = &args;
    crowd.n = args.n;
    crowd.chooses = b.part == FRAME_PARTS - 1 && b.kv_head < args.n ? b.kv_head : -1;
    if (crowd.chooses >= 0) { /* in place of lane 0's */
        const struct cuda_lane *lane = args.lane[crowd.chooses].state.lane;
        if (b.thread < (int)(sizeof(struct lane_settings) / 4)) {
            b.shared->settings[b.thread] = ((const uint32_t *)&lane->settings)[b.thread];
        }
        if (b.thread == 0) {
            b.shared->n_frames = lane->n_frames;
        }
    }
    b.marks &= ~(1u << LANES_PAIR_BIT);
    if (b.thread < FRAME_MAX_COLUMNS * 8) {
        b.shared->pair[b.thread] = 0;
    }
    dev_pair_bar(FRAME_ALL_THREADS);
    return true;
}

template <int W, int I>
__global__ void FRAME_PAIRS __launch_bounds__(FRAME_ALL_THREADS, 1)
    lanes_kernel(const __grid_constant__ struct frame_lanes_args args)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 /* as frame_kernel */
    struct block b;
    struct crowd crowd;
    if (!lanes_begin(b, crowd, args)) {
        return;
    }
    if (b.warp < FRAME_WARPS) {
        dev_more_registers();
        lanes_consume<W, I>(b, crowd);
    } else {
        dev_fewer_registers();
        if (b.thread == FRAME_THREADS) {
            struct producer p = produce_begin();
            lanes_produce_all<W, I>(b, p);
            produce_end(b, p);
        } else if (b.thread == FRAME_THREADS + 32) {
            block_watch(b);
        }
    }
    /* The other one may still write here. All warps: on an H100 those that meet did not always see that others had
     * left, and waited for ever. */
    dev_bar_warp();
    dev_pair_bar(FRAME_ALL_THREADS);
#endif
}

/* What a file that includes this offers. */
static struct frame_lanes_build lanes_build(int talker_width)
{
    struct frame_lanes_build build = {
        LANES, NULL, frame_ring_at(), (size_t)LANES_N_SETS * (size_t)lanes_kind_at(LANES_N_KINDS) * 4};
    if (talker_width == LANES_WIDTH) {
        build.code = (const void *)lanes_kernel<LANES_WIDTH, 3 * LANES_WIDTH>;
    }
    return build;
}

#endif
