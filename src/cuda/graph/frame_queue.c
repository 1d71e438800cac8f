/* SPDX-License-Identifier: Apache-2.0
 * The steps of prompts and frames in their order. */
#include "base/memory.h"
#include "cuda/graph/frame_parts.h"

static utter_status check(struct cuda_frame *f, cudaError_t result, utter_error *error)
{
    return cuda_device_check(f->device, result, "queue a kernel", error);
}

utter_status frame_tap(struct cuda_frame *f, const char *name, int index, const float *at, int64_t rows,
    int64_t cols, int64_t stride, utter_error *error)
{
    if (!f->tap) {
        return UTTER_OK;
    }
    if (rows * cols > f->tap_floats) {
        memory_free(f->tap_memory);
        f->tap_memory = memory_new((size_t)(rows * cols), sizeof(float));
        f->tap_floats = f->tap_memory ? rows * cols : 0;
        if (!f->tap_memory) {
            return error_memory(error, "a tap");
        }
    }
    utter_status status = check(f, cudaStreamSynchronize(f->queue.stream), error);
    for (int64_t r = 0; r < rows && !status; r++) {
        status = check(f,
            cudaMemcpy(f->tap_memory + r * cols, at + r * stride, (size_t)cols * sizeof(float),
                cudaMemcpyDeviceToHost),
            error);
    }
    if (!status) {
        f->tap(f->tap_user, name, index, f->tap_memory, rows, cols);
    }
    return status;
}

utter_status frame_queue_begin(
    struct cuda_frame *f, const struct cuda_order *order_at, utter_error *error)
{
    struct cuda_begin begin = {order_at, f->b.lost, f->b.slots, f->lanes.state};
    return check(f, cuda_begin_queue(&f->queue, &begin), error);
}

utter_status frame_queue_text(
    struct cuda_frame *f, const void *ids, int64_t text_stride, int n, float *to, utter_error *error)
{
    const struct cuda_weights *w = f->weights;
    struct cuda_text text = {w->text_table, w->text_vocabulary, w->text_width, ids, text_stride, n,
        f->b.text_in, w->text_padded};
    struct cuda_linear fc1 = {
        .matrix = w->text_fc1,
        .kind = CUDA_STORE_SILU,
        .n_vectors = n,
        .x = f->b.text_in,
        .x_stride = w->text_padded,
        .bias = w->text_fc1_bias,
        .y = f->b.text_mid,
        .y_stride = w->text_padded,
    };
    struct cuda_linear fc2 = {
        .matrix = w->text_fc2,
        .kind = CUDA_STORE,
        .n_vectors = n,
        .x = f->b.text_mid,
        .x_stride = w->text_padded,
        .bias = w->text_fc2_bias,
        .y = to,
        .y_stride = w->talker.width_padded,
    };
    utter_status status = check(f, cuda_text_queue(&f->queue, &text), error);
    if (status || (status = frame_product(f, &fc1, error))) {
        return status;
    }
    return frame_product(f, &fc2, error);
}

/* ---- Layers ---- */

/* x through all layers of a stack; `attend` says where the vectors stand. */
struct pass {
    const struct cuda_stack *stack;
    float *x;
    int n_vectors;
    struct cuda_attend attend;
    const char *tap_name; /* or NULL */
    int unused; /* so many of the first vectors are not wanted behind the last layer: prompts */
};

static struct cuda_linear qkv_of(const struct cuda_frame *f, const struct pass *p, int layer)
{
    const struct cuda_stack *s = p->stack;
    const struct cuda_layer *l = &s->layers[layer];
    return (struct cuda_linear){
        .matrix = l->qkv,
        .kind = CUDA_STORE,
        .n_vectors = p->n_vectors,
        .x = p->x,
        .x_stride = s->width_padded,
        .norm = l->input_norm,
        .eps = s->norm_eps,
        .y = f->b.qkv,
        .y_stride = f->b.qkv_stride,
    };
}

static utter_status run_attention(struct cuda_frame *f, struct pass *p, int layer, utter_error *error)
{
    const struct cuda_stack *s = p->stack;
    const struct cuda_layer *l = &s->layers[layer];
    const struct cuda_linear qkv = qkv_of(f, p, layer);
    struct cuda_linear o = {
        .matrix = l->o,
        .kind = CUDA_ADD,
        .n_vectors = p->n_vectors - p->attend.unused,
        .x = f->b.mixed,
        .x_stride = s->mixed_padded,
        .y = p->x + (int64_t)p->attend.unused * s->width_padded,
        .y_stride = s->width_padded,
    };
    p->attend.layer = layer;
    p->attend.watched =
        p->attend.looks && f->watches[layer] ? f->b.watched + (ptrdiff_t)layer * s->n_heads : NULL;
    utter_status status = frame_product(f, &qkv, error);
    return status ? status : frame_attended(f, &p->attend, &o, l->post_norm, error);
}

static utter_status run_mlp(struct cuda_frame *f, const struct pass *p, int layer, utter_error *error)
{
    const struct cuda_stack *s = p->stack;
    const struct cuda_layer *l = &s->layers[layer];
    struct cuda_linear gate = {
        .matrix = l->gate_up,
        .kind = CUDA_GATE,
        .n_vectors = p->n_vectors - p->attend.unused,
        .x = p->x + (int64_t)p->attend.unused * s->width_padded,
        .x_stride = s->width_padded,
        .norm = l->post_norm,
        .eps = s->norm_eps,
        .y = f->b.gate,
        .y_stride = s->inner_padded,
    };
    struct cuda_linear down = {
        .matrix = l->down,
        .kind = CUDA_ADD,
        .n_vectors = gate.n_vectors,
        .x = f->b.gate,
        .x_stride = s->inner_padded,
        .y = p->x + (int64_t)p->attend.unused * s->width_padded,
        .y_stride = s->width_padded,
    };
    const float *next = layer + 1 < s->n_layers ? s->layers[layer + 1].input_norm : NULL;
    return frame_gated(f, &gate, &down, next, error);
}

static utter_status run_layers(struct cuda_frame *f, struct pass *p, utter_error *error)
{
    const struct cuda_stack *s = p->stack;
    p->attend.stack = s;
    p->attend.n_vectors = p->n_vectors;
    p->attend.qkv = f->b.qkv;
    p->attend.qkv_stride = f->b.qkv_stride;
    p->attend.placed = f->b.qkv;
    p->attend.split = f->b.split;
    p->attend.mixed = f->b.mixed;
    p->attend.mixed_stride = s->mixed_padded;
    int done = 0;
    utter_status status = UTTER_OK;
    if (p->attend.prompt && !f->tap) {
        const struct cuda_linear first = qkv_of(f, p, 0);
        status = frame_layers(f, &first, &p->attend, &done, error);
    }
    for (int i = done; i < s->n_layers && !status; i++) {
        p->attend.unused = i + 1 == s->n_layers ? p->unused : 0;
        status = run_attention(f, p, i, error);
        if (!status && p->attend.unused < p->n_vectors) {
            status = run_mlp(f, p, i, error);
        }
        if (!status && p->tap_name) {
            status = frame_tap(f, p->tap_name, i, p->x, p->n_vectors, s->width, s->width_padded, error);
        }
    }
    return status;
}

/* ---- Talker ---- */

static struct cuda_attend talker_attend(const struct cuda_frame *f)
{
    const struct cuda_lanes *l = &f->lanes;
    return (struct cuda_attend){
        .each = 1,
        .cache = l->cache,
        .page_floats = l->page_floats,
        .page_size = CUDA_PAGE,
        .pages = l->pages,
        .pages_stride = l->pages_stride,
        .partial = f->b.partial,
        .arrived = f->b.arrived,
    };
}

/* The final norm and the head for n vectors -> y. */
static struct cuda_linear head_of(const struct cuda_frame *f, const float *x, int n, float *y)
{
    const struct cuda_weights *w = f->weights;
    return (struct cuda_linear){
        .matrix = w->talker_head,
        .kind = CUDA_STORE,
        .n_vectors = n,
        .x = x,
        .x_stride = w->talker.width_padded,
        .norm = w->talker.norm,
        .eps = w->talker.norm_eps,
        .y = y,
        .y_stride = w->codec_vocabulary,
    };
}

/* The same; results go to the lanes of `map`. */
static utter_status run_head(
    struct cuda_frame *f, const float *x, int n, const int32_t *map, utter_error *error)
{
    struct cuda_linear head = head_of(f, x, n, f->lanes.logits);
    head.map = map;
    head.normed = f->lanes.hidden;
    head.normed_stride = f->weights->talker.width_padded;
    return frame_product(f, &head, error);
}

static utter_status tap_head(struct cuda_frame *f, int lane, utter_error *error)
{
    const struct cuda_weights *w = f->weights;
    int64_t width = w->talker.width_padded, vocabulary = w->codec_vocabulary;
    utter_status status = frame_tap(
        f, "talker.hidden", 0, f->lanes.hidden + lane * width, 1, w->talker.width, width, error);
    return status ? status
                  : frame_tap(f, "talker.logits", 0, f->lanes.logits + lane * vocabulary, 1, vocabulary,
                        vocabulary, error);
}

static utter_status embed(struct cuda_frame *f, struct cuda_embed *e, utter_error *error)
{
    const struct cuda_weights *w = f->weights;
    for (int j = 0; j < w->n_codebooks; j++) {
        e->code_table[j] = w->code_table[j];
    }
    e->n_codebooks = w->n_codebooks;
    e->width = w->talker.width;
    e->text = f->b.text;
    e->text_stride = w->talker.width_padded;
    e->x = f->b.x;
    e->x_stride = w->talker.width_padded;
    return check(f, cuda_embed_queue(&f->queue, e), error);
}

utter_status frame_queue_talker(struct cuda_frame *f, int n_slots, utter_error *error)
{
    struct cuda_embed e = {
        .slots = f->b.slots,
        .sum = f->lanes.sum,
        .sum_stride = f->weights->talker.width_padded,
        .pad = f->b.pad,
        .pad_id = f->model->config->tts_pad,
        .n_vectors = n_slots,
    };
    struct pass pass = {&f->weights->talker, f->b.x, n_slots, talker_attend(f), "talker.layer", 0};
    pass.attend.lanes = f->b.slots->step_lane;
    pass.attend.positions = f->b.slots->step_position;
    pass.attend.looks = f->b.slots->look;
    utter_status status = embed(f, &e, error);
    if (status || (status = run_layers(f, &pass, error))) {
        return status;
    }
    status = run_head(f, f->b.x, n_slots, f->b.slots->step_lane, error);
    int32_t lanes[CUDA_MAX_SLOTS];
    if (status || !f->tap) {
        return status;
    }
    status = check(f, cudaStreamSynchronize(f->queue.stream), error);
    if (!status) {
        status = check(
            f, cudaMemcpy(lanes, f->b.slots->step_lane, sizeof lanes, cudaMemcpyDeviceToHost), error);
    }
    for (int i = 0; i < n_slots && !status; i++) {
        status = lanes[i] < 0 ? UTTER_OK : tap_head(f, lanes[i], error);
    }
    return status;
}

/* Rows through all layers; `unused` as in struct pass. */
static utter_status run_rows(struct cuda_frame *f, const struct frame_stage *stage, int lane,
    int position, int n, int unused, int first_row, utter_error *error)
{
    const int64_t width = f->weights->talker.width_padded;
    struct cuda_embed e = {.rows = stage->rows_at, .vectors = stage->vectors_at, .n_vectors = n};
    struct pass pass = {&f->weights->talker, f->b.x, n, talker_attend(f), "talker.layer", 0};
    pass.attend.lanes = f->b.lane_ids + lane;
    pass.attend.first_position = position;
    pass.attend.prompt = true;
    if (!f->tap && cuda_attend_rows_suits(pass.stack)) {
        pass.unused = unused;
    }
    utter_status status =
        frame_queue_text(f, &stage->rows_at->text, sizeof(struct cuda_row), n, f->b.text, error);
    if (status || (status = embed(f, &e, error)) ||
        (status =
                frame_tap(f, "prompt", first_row, f->b.x, n, f->weights->talker.width, width, error))) {
        return status;
    }
    return run_layers(f, &pass, error);
}

utter_status frame_queue_prompt(struct cuda_frame *f, const struct frame_stage *stage, int lane,
    int position, int n, bool last, int first_row, utter_error *error)
{
    const int64_t width = f->weights->talker.width_padded;
    utter_status status = run_rows(f, stage, lane, position, n, last ? n - 1 : n, first_row, error);
    if (status || !last) {
        return status;
    }
    status = run_head(f, f->b.x + (n - 1) * width, 1, f->b.lane_ids + lane, error);
    return status || !f->tap ? status : tap_head(f, lane, error);
}

utter_status frame_queue_weigh(struct cuda_frame *f, const struct frame_stage *stage, int lane,
    int position, int n, int first_row, utter_error *error)
{
    const struct config *c = f->model->config;
    const struct cuda_linear head = head_of(f, f->b.x, n, f->b.logits);
    const struct cuda_weigh weigh = {f->b.logits, stage->codes_at, stage->likelihoods_at, n,
        c->codec_vocabulary, config_suppress_from(c), c->codec_eos};
    utter_status status = run_rows(f, stage, lane, position, n, 0, first_row, error);
    status = status ? status : frame_product(f, &head, error);
    return status ? status : check(f, cuda_weigh_queue(&f->queue, &weigh), error);
}

/* ---- Predictor ---- */

static utter_status choose(struct cuda_frame *f, int n_slots, int codebook, utter_error *error)
{
    const struct cuda_weights *w = f->weights;
    const struct config *c = f->model->config;
    bool first = codebook == 0, straight = !w->projection.tiles;
    struct cuda_choose choose = {
        .slots = f->b.slots,
        .lanes = f->lanes,
        .n_slots = n_slots,
        .codebook = codebook,
        .n_codebooks = w->n_codebooks,
        .logits = first ? f->lanes.logits : f->b.logits,
        .logits_stride = first ? w->codec_vocabulary : w->predictor_vocabulary,
        .n = first ? w->codec_vocabulary : w->predictor_vocabulary,
        .suppress_from = first ? config_suppress_from(c) : w->predictor_vocabulary,
        .keep = first ? c->codec_eos : -1,
        .table = w->code_table[codebook],
        .width = w->talker.width,
        .hidden_stride = w->talker.width_padded,
        .sum_stride = w->talker.width_padded,
        .input = straight ? f->b.px : f->b.input,
        .input_stride = straight ? w->predictor.width_padded : w->talker.width_padded,
        .out = f->out_at,
    };
    return check(f, cuda_choose_queue(&f->queue, &choose), error);
}

static utter_status tap_logits(struct cuda_frame *f, int n_slots, int codebook, utter_error *error)
{
    int32_t alive[CUDA_MAX_SLOTS];
    int64_t n = f->weights->predictor_vocabulary;
    utter_status status = check(f, cudaStreamSynchronize(f->queue.stream), error);
    if (!status) {
        status =
            check(f, cudaMemcpy(alive, f->b.slots->alive, sizeof alive, cudaMemcpyDeviceToHost), error);
    }
    for (int i = 0; i < n_slots && !status; i++) {
        if (alive[i] >= 0) {
            status = frame_tap(f, "predictor.logits", codebook, f->b.logits + i * n, 1, n, n, error);
        }
    }
    return status;
}

/* The step that yields the logits of `codebook`: the first has two positions of each slot. */
static utter_status predict(struct cuda_frame *f, int n_slots, int codebook, utter_error *error)
{
    const struct cuda_weights *w = f->weights;
    const struct cuda_stack *s = &w->predictor;
    int each = codebook == 1 ? 2 : 1;
    struct pass pass = {s, f->b.px, n_slots * each, {0}, NULL, 0};
    pass.attend.each = each;
    pass.attend.lanes = f->b.slots->alive;
    pass.attend.first_position = codebook == 1 ? 0 : codebook;
    pass.attend.cache = f->lanes.predictor_cache;
    pass.attend.page_floats = f->lanes.predictor_floats;
    pass.attend.page_size = w->n_codebooks;
    struct cuda_linear project = {
        .matrix = w->projection,
        .kind = CUDA_STORE,
        .n_vectors = n_slots * each,
        .x = f->b.input,
        .x_stride = w->talker.width_padded,
        .bias = w->projection_bias,
        .y = f->b.px,
        .y_stride = s->width_padded,
    };
    struct cuda_linear head = {
        .matrix = w->predictor_head[codebook - 1],
        .kind = CUDA_STORE,
        .n_vectors = n_slots,
        .x = f->b.px + (int64_t)(each - 1) * s->width_padded,
        .x_stride = (int64_t)each * s->width_padded,
        .norm = s->norm,
        .eps = s->norm_eps,
        .y = f->b.logits,
        .y_stride = w->predictor_vocabulary,
    };
    utter_status status = w->projection.tiles ? frame_product(f, &project, error) : UTTER_OK;
    if (status || (status = run_layers(f, &pass, error))) {
        return status;
    }
    return frame_product(f, &head, error);
}

utter_status frame_queue_predictor(struct cuda_frame *f, int n_slots, utter_error *error)
{
    utter_status status = choose(f, n_slots, 0, error);
    for (int codebook = 1; codebook < f->weights->n_codebooks && !status; codebook++) {
        status = predict(f, n_slots, codebook, error);
        if (!status && f->tap) {
            status = tap_logits(f, n_slots, codebook, error);
        }
        if (!status) {
            status = choose(f, n_slots, codebook, error);
        }
    }
    return status;
}
