/* SPDX-License-Identifier: Apache-2.0
 * The host's side of the frame kernel: checks at open that all blocks are resident, what it keeps in device memory,
 * and the launch. */
#include "cuda/frame.h"

#include "base/memory.h"

enum {
    FRAME_PATIENCE = 200000000, /* clocks: a tenth of a second */
    FRAME_AHEAD = 2,            /* pieces on their way to a block at once */
    FRAME_PACE = 250,           /* clocks between two copies of 4 KB */
};

struct frame_kernel {
    struct cuda_device *device;
    const struct cuda_weights *weights;
    const struct cuda_lanes *lanes;
    cudaStream_t stream;
    struct cuda_arena arena;
    struct frame_args args;
    const void *kernel;
    size_t shared_bytes;
    bool packed;                                /* the predictor's weights are */
    struct cuda_layer layers[FRAME_MAX_LAYERS]; /* of the predictor as the kernel reads them */
    const void *heads[CONFIG_MAX_CODEBOOKS], *projection;
};

static bool stack_fits(const struct cuda_stack *stack)
{
    return stack->n_heads == 2 * FRAME_KV_HEADS && stack->n_kv_heads == FRAME_KV_HEADS &&
           stack->head == FRAME_HEAD;
}

bool frame_kernel_fits(
    const struct cuda_weights *weights, const struct cuda_device *device, const char **why)
{
    const struct cuda_stack *t = &weights->talker, *p = &weights->predictor;
    bool shapes = stack_fits(t) && stack_fits(p) && p->width == 1024 && p->inner == 3072 &&
                  ((t->width == 1024 && t->inner == 3072) || (t->width == 2048 && t->inner == 6144)) &&
                  weights->codec_vocabulary == 3072 && weights->predictor_vocabulary == 2048 &&
                  t->n_layers + p->n_layers <= FRAME_MAX_LAYERS && weights->n_codebooks >= 2 &&
                  weights->n_codebooks <= FRAME_MAX_POSITIONS;
    *why = device->major < 9                                ? "it needs compute capability 9.0"
           : device->n_sms < FRAME_BLOCKS                   ? "it needs 128 multiprocessors"
           : frame_n_slots(device->block_shared, false) < 3 ? "a block has too little shared memory"
           : !shapes ? "it is made for the shapes of the released models"
                     : NULL;
    return *why == NULL;
}

/* The matrix as the kernel reads it: the tiles that are there, or room for packed ones. */
static const void *take_matrix(struct frame_kernel *k, const struct cuda_matrix *m)
{
    return k->packed && m->tiles ? cuda_arena_take(&k->arena, frame_pack_bytes(m)) : m->tiles;
}

/* Everything that the kernel keeps, in one order: counted first, then handed out. */
static void take_all(struct frame_kernel *k, const struct cuda_weights *weights)
{
    size_t n_layers = (size_t)(weights->talker.n_layers + weights->predictor.n_layers);
    struct cuda_arena *arena = &k->arena;
    struct frame_args *a = &k->args;
    a->weights.layers = cuda_arena_take(arena, n_layers * sizeof(struct frame_layer));
    a->weights.heads = cuda_arena_take(arena, sizeof(void *) * CONFIG_MAX_CODEBOOKS);
    a->weights.code_table = cuda_arena_take(arena, sizeof(void *) * CONFIG_MAX_CODEBOOKS);
    a->scratch.words = cuda_arena_take(arena, frame_exchange_bytes());
    a->scratch.parity = cuda_arena_take(arena, FRAME_BLOCKS * 4);
    a->control.error = cuda_arena_take(arena, 4);
    a->scratch.kept = cuda_arena_take(arena,
        (uint64_t)FRAME_BLOCKS * weights->predictor.n_layers * FRAME_KEPT_FLOATS * sizeof(float));
    for (int i = 0; i < weights->predictor.n_layers; i++) {
        const struct cuda_layer *from = &weights->predictor.layers[i];
        struct cuda_layer *to = &k->layers[i];
        *to = *from;
        to->qkv.tiles = take_matrix(k, &from->qkv);
        to->o.tiles = take_matrix(k, &from->o);
        to->gate_up.tiles = take_matrix(k, &from->gate_up);
        to->down.tiles = take_matrix(k, &from->down);
    }
    for (int j = 0; j + 1 < weights->n_codebooks; j++) {
        k->heads[j] = take_matrix(k, &weights->predictor_head[j]);
    }
    k->projection = take_matrix(k, &weights->projection);
}

uint64_t frame_kernel_plan(const struct cuda_weights *weights, bool packed)
{
    struct frame_kernel counted = {.packed = packed};
    take_all(&counted, weights);
    return counted.arena.used;
}

/* Packs what has been given room. */
static utter_status pack_matrix(
    struct frame_kernel *k, const void *to, const struct cuda_matrix *m, utter_error *error)
{
    return to == m->tiles ? UTTER_OK
                          : cuda_device_check(k->device, frame_pack((void *)to, m, k->stream),
                                "8-bit weights of the frame kernel", error);
}

static utter_status pack_all(struct frame_kernel *k, utter_error *error)
{
    const struct cuda_weights *w = k->weights;
    utter_status status = pack_matrix(k, k->projection, &w->projection, error);
    for (int i = 0; i < w->predictor.n_layers && !status; i++) {
        const struct cuda_layer *from = &w->predictor.layers[i], *to = &k->layers[i];
        if (!(status = pack_matrix(k, to->qkv.tiles, &from->qkv, error)) &&
            !(status = pack_matrix(k, to->o.tiles, &from->o, error)) &&
            !(status = pack_matrix(k, to->gate_up.tiles, &from->gate_up, error))) {
            status = pack_matrix(k, to->down.tiles, &from->down, error);
        }
    }
    for (int j = 0; j + 1 < w->n_codebooks && !status; j++) {
        status = pack_matrix(k, k->heads[j], &w->predictor_head[j], error);
    }
    return status;
}

static void list_layers(struct frame_layer *list, const struct cuda_layer *layers, int n)
{
    for (int i = 0; i < n; i++) {
        const struct cuda_layer *l = &layers[i];
        list[i] = (struct frame_layer){l->qkv.tiles, l->o.tiles, l->gate_up.tiles, l->down.tiles,
            l->input_norm, l->post_norm, l->q_norm, l->k_norm};
    }
}

static utter_status send(
    struct frame_kernel *k, const void *to, const void *from, size_t bytes, utter_error *error)
{
    return cuda_device_check(k->device, cudaMemcpy((void *)to, from, bytes, cudaMemcpyHostToDevice),
        "tables of the frame kernel", error);
}

static utter_status send_tables(struct frame_kernel *k, utter_error *error)
{
    const struct cuda_weights *w = k->weights;
    struct frame_layer layers[FRAME_MAX_LAYERS];
    list_layers(layers, w->talker.layers, w->talker.n_layers);
    list_layers(layers + w->talker.n_layers, k->layers, w->predictor.n_layers);
    struct frame_args *a = &k->args;
    utter_status status = send(k, a->weights.layers, layers,
        (size_t)(w->talker.n_layers + w->predictor.n_layers) * sizeof *layers, error);
    if (!status) {
        status = send(k, a->weights.heads, k->heads, sizeof k->heads, error);
    }
    if (!status) {
        status = send(k, a->weights.code_table, w->code_table, sizeof w->code_table, error);
    }
    /* From memory that is not pinned the copies may still be on their way, and other streams do not wait for them. */
    return status ? status
                  : cuda_device_check(
                        k->device, cudaDeviceSynchronize(), "tables of the frame kernel", error);
}

static void set_args(struct frame_kernel *k, const struct config *config)
{
    const struct cuda_weights *w = k->weights;
    struct frame_args *a = &k->args;
    a->weights.n_talker = w->talker.n_layers;
    a->weights.n_predictor = w->predictor.n_layers;
    a->weights.n_codebooks = w->n_codebooks;
    a->weights.codec_vocabulary = w->codec_vocabulary;
    a->weights.predictor_vocabulary = w->predictor_vocabulary;
    a->weights.talker_head = w->talker_head.tiles;
    a->weights.projection = k->projection;
    a->weights.projection_bias = w->projection_bias;
    a->weights.talker_norm = w->talker.norm;
    a->weights.predictor_norm = w->predictor.norm;
    a->weights.talker_freq = w->talker.inv_freq;
    a->weights.predictor_freq = w->predictor.inv_freq;
    a->weights.talker_eps = w->talker.norm_eps;
    a->weights.predictor_eps = w->predictor.norm_eps;
    int suppress_from = config->codec_vocabulary - 1024;
    a->control.suppress_from =
        suppress_from < config->predictor_vocabulary ? suppress_from : config->predictor_vocabulary;
    a->control.codec_eos = config->codec_eos;
    a->control.n_slots = frame_n_slots(k->device->block_shared, k->packed);
    a->control.slot_bytes = (int)frame_slot_bytes(k->packed);
    a->control.n_ahead = FRAME_AHEAD;
    a->control.pace = FRAME_PACE;
    a->control.patience = FRAME_PATIENCE;
}

/* Shared memory raised to what the ring takes, and the proof that all blocks run at once. */
static utter_status check_residency(struct frame_kernel *k, utter_error *error)
{
    int each = 0;
    k->kernel = frame_kernel_code(k->weights->talker.width, k->packed);
    k->shared_bytes = frame_ring_at() + (size_t)(k->args.control.n_slots * k->args.control.slot_bytes);
    utter_status status = cuda_device_check(k->device,
        cudaFuncSetAttribute(
            k->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)k->shared_bytes),
        "shared memory of the frame kernel", error);
    if (!status) {
        status = cuda_device_check(k->device,
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                &each, k->kernel, FRAME_ALL_THREADS, k->shared_bytes),
            "residency of the frame kernel", error);
    }
    if (!status && each * k->device->n_sms < FRAME_BLOCKS) {
        status = error_set(error, UTTER_E_DEVICE,
            "frame kernel: its %d blocks are not resident together (use the graph path)",
            (int)FRAME_BLOCKS);
    }
    return status;
}

utter_status frame_kernel_open(struct frame_kernel **at, const struct cuda_weights *weights,
    struct cuda_device *device, const struct cuda_lanes *lanes, const struct config *config,
    bool packed, cudaStream_t stream, utter_error *error)
{
    *at = NULL;
    const char *why;
    if (!frame_kernel_fits(weights, device, &why)) {
        return error_set(error, UTTER_E_DEVICE, "frame kernel: %s (use the graph path)", why);
    }
    struct frame_kernel *k = memory_new(1, sizeof *k);
    if (!k) {
        return error_memory(error, "the frame kernel");
    }
    k->device = device;
    k->weights = weights;
    k->lanes = lanes;
    k->stream = stream;
    k->packed = packed;
    take_all(k, weights);
    utter_status status = cuda_arena_open(&k->arena, device, "the frame kernel", error);
    if (!status) {
        take_all(k, weights);
        set_args(k, config);
        status = send_tables(k, error);
    }
    if (!status) {
        status = pack_all(k, error);
    }
    if (!status) {
        status = check_residency(k, error);
    }
    if (status) {
        frame_kernel_close(&k);
    }
    *at = k;
    return status;
}

void frame_kernel_close(struct frame_kernel **at)
{
    if (*at) {
        cuda_arena_close(&(*at)->arena);
        memory_free(*at);
        *at = NULL;
    }
}

utter_status frame_kernel_run(struct frame_kernel *k, int lane, int position, const float *text,
    const int32_t *forced, uint32_t flags, uint64_t sequence, struct cuda_frame_out *out,
    utter_error *error)
{
    const struct cuda_lanes *l = k->lanes;
    struct frame_args *a = &k->args;
    const size_t width = (size_t)k->weights->talker.width;
    a->state.lane = l->state + lane;
    a->state.hidden = l->hidden + lane * (size_t)k->weights->talker.width_padded;
    a->state.logits = l->logits + lane * (size_t)k->weights->codec_vocabulary;
    a->state.seen = l->seen + lane * (size_t)k->weights->codec_vocabulary;
    a->state.sum = l->sum + lane * width;
    a->state.codes =
        l->codes ? l->codes + lane * (size_t)BACKEND_MAX_FEED * k->weights->n_codebooks : NULL;
    a->state.cache = l->cache;
    a->state.page_floats = l->page_floats;
    a->state.pages = l->pages + lane * (size_t)l->pages_stride;
    a->control.position = position;
    a->control.text = text;
    a->control.forced = forced;
    a->control.flags = flags;
    a->control.sequence = sequence;
    a->control.out = out;
    void *args[] = {a};
    const dim3 blocks = {FRAME_BLOCKS, 1, 1}, threads = {FRAME_ALL_THREADS, 1, 1};
    return cuda_device_check(k->device,
        cudaLaunchCooperativeKernel(k->kernel, blocks, threads, args, k->shared_bytes, k->stream),
        "the frame kernel", error);
}

utter_status frame_kernel_errors(struct frame_kernel *k, uint32_t *errors, utter_error *error)
{
    *errors = 0;
    utter_status status =
        cuda_device_check(k->device, cudaStreamSynchronize(k->stream), "a frame", error);
    if (!status) {
        status = cuda_device_check(k->device,
            cudaMemcpy(errors, k->args.control.error, sizeof *errors, cudaMemcpyDeviceToHost),
            "a frame's end", error);
    }
    if (!status && *errors) { /* marks are no longer the same in all blocks: begin again */
        cudaError_t result = cudaMemset(k->args.scratch.words, 0, frame_exchange_bytes());
        result = result ? result : cudaMemset(k->args.scratch.parity, 0, FRAME_BLOCKS * 4);
        result = result ? result : cudaMemset(k->args.control.error, 0, sizeof *errors);
        status = cuda_device_check(k->device, result, "a frame's end", error);
    }
    return status;
}

void frame_kernel_tap(struct frame_kernel *k, float *predictor_logits)
{
    k->args.control.predictor_logits = predictor_logits;
}

void frame_kernel_ahead(struct frame_kernel *k, int n_slots, int pace)
{
    const int most = k->args.control.n_slots; /* a fill must not wait for its own slot's last but one */
    k->args.control.n_ahead = n_slots < most ? n_slots : most;
    k->args.control.pace = pace;
}

void frame_kernel_trace(struct frame_kernel *k, uint64_t *trace)
{
    k->args.control.trace = trace;
}

void frame_kernel_patience(struct frame_kernel *k, uint64_t clocks)
{
    k->args.control.patience = clocks;
}
