/* SPDX-License-Identifier: Apache-2.0
 * Vectors that come from tables and from the lane, and what the frame leaves there. Every block holds the same
 * vectors, elements E * thread .. of width W = 512 E in each thread; block 0 alone writes what outlives the kernel,
 * when an exchange of all blocks has shown that nobody reads the old values any more. */
#ifndef CUDA_FRAME_EMBED_CUH
#define CUDA_FRAME_EMBED_CUH

#include "cuda/frame_layers.cuh"
#include "cuda/frame_sample.cuh"

/* Row `code` of the table of codebook j. */
template <int W> DEV void embed_code(const struct block &b, int j, int code, float (&row)[4])
{
    uint2 four = {0, 0};
    if (layer_owner<W>(b)) {
        four = *(const uint2 *)(b.shared->code_table[j] + (size_t)code * W + b.thread * 4);
    }
    row[0] = numeric_from_bits(four.x << 16);
    row[1] = numeric_from_bits(four.x & 0xffff0000u);
    row[2] = numeric_from_bits(four.y << 16);
    row[3] = numeric_from_bits(four.y & 0xffff0000u);
}

DEV void embed_sum(float (&sum)[4], const float (&row)[4], bool first)
{
    for (int i = 0; i < 4; i++) {
        sum[i] = first ? row[i] : sum[i] + row[i];
    }
}

/* The talker's input: text plus the sum of the codes before; or a row of the prompt. */
template <int W> DEV void embed_input(const struct block &b, float (&x)[1][4])
{
    float sum[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        x[0][i] = 0;
    }
    if (layer_owner<W>(b)) {
        if (b.args->control.text) {
            block_read4(b.args->control.text + b.thread * 4, x[0]);
        }
        if (!(b.args->control.flags & FRAME_ROW)) {
            block_read4(b.args->state.sum + b.thread * 4, sum);
        }
    }
    for (int i = 0; i < 4; i++) {
        x[0][i] += sum[i];
    }
}

/* State and logits that the last row of the prompt has left. */
template <int W>
DEV void embed_kept(const struct block &b, float (&h)[1][4], float (&score)[8], int (&ids)[8])
{
    for (int i = 0; i < 4; i++) {
        h[0][i] = 0;
    }
    if (layer_owner<W>(b)) {
        block_read4(b.args->state.hidden + b.thread * 4, h[0]);
    }
    for (int i = 0; i < 8; i++) {
        ids[i] = b.thread + i * FRAME_THREADS;
        ids[i] = ids[i] < b.args->weights.codec_vocabulary ? ids[i] : -1;
        score[i] = ids[i] < 0 ? 0 : b.args->state.logits[ids[i]];
    }
}

template <int W> DEV void embed_keep(const struct block &b, float *to, const float (&x)[4])
{
    if (b.index == 0 && layer_owner<W>(b) && *(volatile uint32_t *)&b.shared->dead == 0) {
        block_write4(to + b.thread * 4, x);
    }
}

/* Inputs of talker width -> the predictor's. */
template <int W, int COLUMNS>
DEV void embed_project(struct block &b, const float (&input)[COLUMNS][4], float (&x)[COLUMNS][4])
{
    for (int c = 0; c < COLUMNS; c++) {
        for (int i = 0; i < 4; i++) {
            x[c][i] = W == 1024 ? input[c][i] : 0;
        }
    }
    if constexpr (W != 1024) {
        layer_put_plain<W, COLUMNS>(b, input);
        product<64, W / FRAME_PIECE_K, COLUMNS>(b);
        dev_bar();
        product_put<64, COLUMNS>(b, FRAME_X_INPUT, 0, 0, b.args->weights.projection_bias);
        layer_add<1024, COLUMNS>(b, FRAME_X_INPUT, x);
    }
}

DEV struct sample_rule sample_rule_of(const struct block &b, int codebook)
{
    const auto &weights = b.args->weights;
    const auto &state = b.args->state;
    const struct lane_settings &settings = *(const struct lane_settings *)b.shared->settings;
    const int n = codebook == 0 ? weights.codec_vocabulary : weights.predictor_vocabulary;
    struct sample_rule rule;
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
DEV void embed_note(const struct block &b, int j, int chosen, int going)
{
    if (b.thread == 0) {
        b.shared->chosen[j] = chosen;
        b.shared->going[j] = going;
    }
}

/* The lane's next state and the host's copy, by one thread of block 0; and every block's marks. A frame in which an
 * exchange ran out of time changes nothing and says so. */
DEV void embed_commit(const struct block &b, bool end, bool bad)
{
    const auto &control = b.args->control;
    const auto &state = b.args->state;
    if (b.thread == 0) {
        b.args->scratch.parity[b.index] = b.marks;
    }
    if (b.index != 0 || b.thread != 0) {
        return;
    }
    const bool failed = *(volatile uint32_t *)&b.shared->dead != 0 || dev_get(control.error) != 0;
    volatile struct cuda_frame_out *out = control.out;
    struct cuda_lane *lane = state.lane;
    if (!failed && (control.flags & FRAME_STEP)) {
        lane->position = control.position + 1;
    }
    if (control.flags & (FRAME_NO_HEAD | FRAME_NO_CODES)) {
        return;
    }
    out->end = end;
    out->not_a_number = bad;
    out->failed = failed;
    for (int j = 0; !failed && j < (end ? 1 : b.args->weights.n_codebooks); j++) {
        out->codes[j] = b.shared->chosen[j];
        lane->going[j] = b.shared->going[j];
        if (state.codes && !end) {
            state.codes[j] = b.shared->going[j];
        }
    }
    if (!failed) {
        lane->ended = end;
        lane->n_frames += end ? 0 : 1;
    }
    if (!failed && !end) {
        state.seen[b.shared->going[0]] = 1;
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
    b.kv_head = b.index / FRAME_PARTS;
    b.part = b.index % FRAME_PARTS;
    b.marks = args.scratch.parity[b.index];
    b.set = FRAME_SET_TALKER;
    b.slot = 0;
    b.phase = 0;
    b.n_begun = 0;
    b.oldest = 0;
    b.oldest_phase = 0;
#ifdef FRAME_TRACED
    b.n_trace = 0;
#endif
    b.deadline = dev_clock() + args.control.patience;
    b.policy = dev_policy(false);
    b.next_copy = 0;
    if (b.thread == 0) {
        for (int i = 0; i < args.control.n_slots; i++) {
            dev_mbar_init(&b.shared->full[i], 1);
            dev_mbar_init(&b.shared->empty[i], FRAME_WARPS);
        }
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
