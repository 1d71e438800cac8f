/* SPDX-License-Identifier: Apache-2.0
 * Vectors that come from tables and from the lane, and what the frame leaves there. Every block holds the same
 * vectors, spread over its threads as frame_layers.cuh says; block 0 alone writes what outlives the kernel,
 * when an exchange of all blocks has shown that nobody reads the old values any more. */
#ifndef CUDA_PERSISTENT_EMBED_CUH
#define CUDA_PERSISTENT_EMBED_CUH

#include "cuda/persistent/frame_layers.cuh"
#include "cuda/persistent/sample.cuh"

/* Row `code` of the table of codebook j. */
template <int W>
DEV void embed_code(const struct block &b, int j, int code, float (&row)[LAYER_EACH(W)])
{
    const uint16_t *from = b.shared->code_table[j] + (size_t)code * W;
    for (int i = 0; i < LAYER_EACH(W); i += 4) {
        const uint2 four = *(const uint2 *)(from + vector_index(b, i / 4));
        row[i] = numeric_from_bits(four.x << 16);
        row[i + 1] = numeric_from_bits(four.x & 0xffff0000u);
        row[i + 2] = numeric_from_bits(four.y << 16);
        row[i + 3] = numeric_from_bits(four.y & 0xffff0000u);
    }
}

template <int N> DEV void embed_sum(float (&sum)[N], const float (&row)[N], bool first)
{
    for (int i = 0; i < N; i++) {
        sum[i] = first ? row[i] : sum[i] + row[i];
    }
}

/* The talker's input: text plus the sum of the codes before; or a row of the prompt. */
template <int W> DEV void embed_input(const struct block &b, float (&x)[1][LAYER_EACH(W)])
{
    float sum[LAYER_EACH(W)] = {};
    for (int i = 0; i < LAYER_EACH(W); i++) {
        x[0][i] = 0;
    }
    if (b.args->control.text) {
        layer_read<W>(b, b.args->control.text, x[0]);
    }
    if (!(b.args->control.flags & FRAME_ROW)) {
        layer_read<W>(b, b.args->state.sum, sum);
    }
    for (int i = 0; i < LAYER_EACH(W); i++) {
        x[0][i] = exchange_rounded(x[0][i] + sum[i]);
    }
}

/* Logits that the last row of the prompt has left. */
template <int EACH>
DEV void embed_scores(const struct block &b, const float *logits, float (&score)[EACH])
{
    for (int i = 0; i < EACH; i += 4) {
        float four[4];
        block_read4(logits + sample_id(b, i), four);
        for (int j = 0; j < 4; j++) {
            score[i + j] = four[j];
        }
    }
}

/* What a lane keeps, by the block that writes it: not of a lost frame. */
template <int W> DEV void embed_keep(const struct block &b, float *to, const float (&x)[LAYER_EACH(W)])
{
    for (int i = 0; i < LAYER_EACH(W); i += 4) {
        const float four[4] = {x[i], x[i + 1], x[i + 2], x[i + 3]};
        block_write4(to + vector_index(b, i / 4), four);
    }
}

/* Inputs of talker width -> the predictor's. */
template <int W, bool PACKED, int COLUMNS>
DEV void embed_project(
    struct block &b, const float (&input)[COLUMNS][LAYER_EACH(W)], float (&x)[COLUMNS][4])
{
    for (int c = 0; c < COLUMNS; c++) {
        for (int i = 0; i < 4; i++) {
            x[c][i] = W == 1024 ? exchange_rounded(input[c][i]) : 0;
        }
    }
    if constexpr (W != 1024) { /* two blocks share a row tile: half of the columns each */
        typedef shape<PACKED, 1, W / FRAME_UNIT_K / 2, 0> S;
        struct held<S> h;
        product_hold(b, h);
        layer_put_plain<PACKED, W / 2>(b, input, b.index % 2);
        product<S, COLUMNS>(b, h, vector_rows<COLUMNS>(b, S::K), S::K);
        dev_bar();
        const uint32_t next = exchange_next(b, FRAME_X_INPUT);
        if (b.thread < 16 * COLUMNS) {
            const int column = b.thread / 16, row = b.index / 2 * 16 + b.thread % 16;
            float value = product_sum<16>(b, column, b.thread % 16);
            value += b.index % 2 == 0 ? b.args->weights.projection_bias[row] : 0;
            exchange_put(
                exchange_at<FRAME_X_INPUT>(b) + (column * 2 + b.index % 2) * 1024 + row, value, next);
        }
        layer_add<FRAME_X_INPUT, 1024, 2, COLUMNS>(b, x);
    }
}

DEV struct choice_rule sample_rule_of(const struct block &b, int codebook)
{
    const auto &weights = b.args->weights;
    const auto &state = b.args->state;
    const struct lane_settings &settings = *(const struct lane_settings *)b.shared->settings;
    const int n = codebook == 0 ? weights.codec_vocabulary : weights.predictor_vocabulary;
    struct choice_rule rule;
    rule.sampling = codebook == 0 ? settings.talker : settings.predictor;
    rule.n = n;
    rule.suppress_from = codebook == 0 ? b.args->control.suppress_from : n;
    rule.keep = codebook == 0 ? b.args->control.codec_eos : -1;
    rule.keep_blocked = b.shared->n_frames < (uint32_t)settings.min_frames;
    rule.seen = codebook == 0 ? state.seen : NULL;
    rule.seed = settings.seed;
    rule.frame = b.shared->n_frames;
    rule.codebook = (uint32_t)codebook;
    return rule;
}

/* Keeps a code for embed_commit. */
DEV void embed_note(const struct block &b, int j, int chosen, int taken)
{
    if (b.thread == 0) {
        b.shared->chosen[j] = chosen;
        b.shared->taken[j] = taken;
    }
}

/* Every block's marks. */
DEV void embed_keep_marks(const struct block &b)
{
    if (b.thread == 0) {
        b.args->scratch.parity[b.index] = b.marks;
    }
}

/* The one judgement on a frame, by the block that has chosen: what is kept of it is kept as a whole or not at all.
 * False when an exchange ran out of time. */
DEV bool embed_in_time(const struct block &b)
{
    if (b.thread == 0) {
        b.shared->lost = block_is_late(b) || dev_get(b.args->control.error) != 0;
    }
    dev_bar();
    return b.shared->lost == 0;
}

/* The lane's next state and the host's copy, by thread 0 of the block that has chosen. A frame that is lost changes
 * nothing and says so. */
DEV void embed_commit(const struct block &b, const struct frame_state &state, int position,
    volatile struct cuda_frame_out *out, bool end, bool bad, bool failed)
{
    const auto &control = b.args->control;
    if (b.thread != 0) {
        return;
    }
    struct cuda_lane *lane = state.lane;
    if (!failed && (control.flags & FRAME_STEP)) {
        lane->position = position + 1;
    }
    if (control.flags & (FRAME_NO_HEAD | FRAME_NO_CODES)) {
        return;
    }
    out->end = end;
    out->not_a_number = bad;
    out->failed = failed;
    for (int j = 0; !failed && j < (end ? 1 : b.args->weights.n_codebooks); j++) {
        out->codes[j] = b.shared->chosen[j];
        lane->taken[j] = b.shared->taken[j];
        if (state.codes && !end) {
            state.codes[j] = b.shared->taken[j];
        }
    }
    if (!failed) {
        lane->ended = end;
        lane->n_frames += end ? 0 : 1;
    }
    if (!failed && !end) {
        history_note(state.seen, b.shared->taken[0]);
    }
    dev_fence_host();
    out->sequence = control.sequence;
}

/* What all threads do first. False for a block that has no work. */
DEV bool block_begin(struct block &b, const struct frame_args &args)
{
    if (dev_block() >= FRAME_BLOCKS) {
        return false;
    }
    unsigned char *memory = dev_shared();
    b.args = &args;
    b.shared = (struct frame_shared *)memory;
    b.ring = memory + frame_ring_at();
    b.thread = dev_thread();
    b.warp = b.thread / 32;
    b.lane = b.thread % 32;
    b.index = dev_block();
    b.kv_head = b.index / FRAME_KV_BLOCKS;
    b.part = b.index % FRAME_KV_BLOCKS;
    b.marks = args.scratch.parity[b.index];
    b.set = FRAME_SET_TALKER;
    b.slot = 0;
    b.phase = 0;
    b.turn = 0;
    b.clear_phase = 0;
#ifdef FRAME_TRACED
    b.n_trace = 0;
#endif
    if (b.thread == 0) {
        for (int i = 0; i < args.control.n_slots; i++) {
            dev_mbar_init(&b.shared->full[i], 1);
            dev_mbar_init(&b.shared->empty[i], FRAME_WARPS);
        }
        dev_mbar_init(&b.shared->totals_read, 1);
        dev_mbar_init(&b.shared->totals_clear, 1);
        b.shared->dead = 0;
        b.shared->stop = 0;
        dev_mbar_ready();
    }
    if (b.thread < (int)(sizeof(struct lane_settings) / 4)) {
        b.shared->settings[b.thread] = ((const uint32_t *)&args.state.lane->settings)[b.thread];
    }
    if (b.thread < args.weights.n_codebooks) {
        b.shared->code_table[b.thread] = args.weights.code_table[b.thread];
    }
    if (b.thread == 0) {
        b.shared->n_frames = args.state.lane->n_frames;
    }
    static_assert(sizeof(struct lane_settings) <= sizeof b.shared->settings, "settings do not fit");
    const int n_words = (args.weights.n_talker + args.weights.n_predictor) * 8;
    for (int i = b.thread; i < n_words; i += FRAME_ALL_THREADS) {
        b.shared->layers[0][i] = ((const void *const *)args.weights.layers)[i];
    }
    dev_bar_all();
    return true;
}

#endif
