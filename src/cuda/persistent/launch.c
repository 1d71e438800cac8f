/* SPDX-License-Identifier: Apache-2.0
 * The host's side of the frame kernel: checks at open that all blocks are resident, what it keeps in device memory,
 * and the launch. */
#include "cuda/persistent/persistent.h"

#include "base/memory.h"
#include "base/minmax.h"

enum {
    FRAME_PATIENCE = 200000000, /* clocks: about a tenth of a second */
    FRAME_AHEAD = 3,            /* slots of the ring that are being filled at once */
    FRAME_COPY_CLOCKS = 200,    /* clocks between two copies of 4 KB */
};

/* A build for several lanes, with an exchange of its own. */
struct frame_many {
    struct frame_build build;
    uint32_t *words, *parity;
    size_t shared_bytes;
    int n_slots; /* of its ring */
    int n;       /* lanes of its last launch; 0: none, or its words were cleared */
};

enum { MOST_BUILDS = 2 };

struct frame_kernel {
    struct cuda_device *device;
    const struct cuda_weights *weights;
    const struct cuda_lanes *lanes;
    cudaStream_t stream;
    struct cuda_arena arena;
    struct frame_args args;
    struct frame_build build;
    size_t shared_bytes;
    struct frame_many many[MOST_BUILDS]; /* the smallest first */
    int n_many;
    enum frame_packed packed;
    struct cuda_layer layers[FRAME_MAX_LAYERS]; /* of talker and predictor as the kernel reads them */
    const void *talker_head, *heads[CONFIG_MAX_CODEBOOKS], *projection;
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
    const struct cuda_arch *arch = &device->arch;
    const size_t ring_at = frame_build_bf16().ring_at;
    *why = !arch->bulk_copies           ? "it needs compute capability 9.0"
           : arch->n_sms < FRAME_BLOCKS ? "it needs 128 multiprocessors"
           : frame_n_slots(arch->block_shared, ring_at, false) < 3
               ? "a block has too little shared memory"
           : !shapes ? "it is made for the shapes of the released models"
                     : NULL;
    return *why == NULL;
}

struct frame_build frame_kernel_build(int talker_width, enum frame_packed packed)
{
    const bool wide = talker_width != 1024;
    return packed == FRAME_PACKED_ALL ? (wide ? frame_build_packed_wide() : frame_build_packed())
           : packed == FRAME_PACKED_PREDICTOR ? (wide ? frame_build_mixed_wide() : frame_build_mixed())
                                              : (wide ? frame_build_bf16_wide() : frame_build_bf16());
}

/* The matrix as the kernel reads it: the tiles that are there, or room for packed ones. */
static const void *take_matrix(struct frame_kernel *k, const struct cuda_matrix *m, bool packed)
{
    return packed && m->rows > 0 ? cuda_arena_take(&k->arena, frame_pack_bytes(m)) : m->tiles;
}

static void take_layers(
    struct frame_kernel *k, struct cuda_layer *to, const struct cuda_stack *from, bool packed)
{
    for (int i = 0; i < from->n_layers; i++) {
        to[i] = from->layers[i];
        to[i].qkv.tiles = take_matrix(k, &from->layers[i].qkv, packed);
        to[i].o.tiles = take_matrix(k, &from->layers[i].o, packed);
        to[i].gate_up.tiles = take_matrix(k, &from->layers[i].gate_up, packed);
        to[i].down.tiles = take_matrix(k, &from->layers[i].down, packed);
    }
}

/* The builds that there are for these stacks. Lanes with packed weights go one after the other; and those of a
 * predictor of one layer: its first position ends with the last layer's keys, and behind that layer no vector is read
 * by all blocks, so the input of the second could be written while some block has yet to read that of the first. */
static void take_builds(struct frame_kernel *k, const struct cuda_weights *weights)
{
    const struct frame_build all[] = {
        frame_build_lanes4(), frame_build_lanes4_wide(), frame_build_lanes8()};
    const bool any = k->packed == FRAME_PACKED_NONE && weights->predictor.n_layers > 1;
    k->n_many = 0;
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++) {
        if (any && all[i].talker_width == weights->talker.width) {
            struct frame_many *m = &k->many[k->n_many++];
            m->build = all[i];
            m->words = cuda_arena_take(&k->arena, m->build.exchange_bytes);
            m->parity = cuda_arena_take(&k->arena, FRAME_BLOCKS * 4);
        }
    }
}

/* Everything that the kernel keeps, in one order: counted first, then handed out. */
static void take_all(struct frame_kernel *k, const struct cuda_weights *weights)
{
    size_t n_layers = (size_t)(weights->talker.n_layers + weights->predictor.n_layers);
    struct cuda_arena *arena = &k->arena;
    struct frame_args *a = &k->args;
    k->build = frame_kernel_build(weights->talker.width, k->packed);
    a->weights.layers = cuda_arena_take(arena, n_layers * sizeof(struct frame_layer));
    a->weights.heads = cuda_arena_take(arena, sizeof(void *) * CONFIG_MAX_CODEBOOKS);
    a->weights.code_table = cuda_arena_take(arena, sizeof(void *) * CONFIG_MAX_CODEBOOKS);
    a->scratch.words = cuda_arena_take(arena, k->build.exchange_bytes);
    a->scratch.totals = cuda_arena_take(arena, frame_totals_bytes());
    a->scratch.parity = cuda_arena_take(arena, FRAME_BLOCKS * 4);
    a->control.error = cuda_arena_take(arena, 4);
    a->scratch.kept = cuda_arena_take(arena,
        (uint64_t)FRAME_BLOCKS * weights->predictor.n_layers * FRAME_KEPT_FLOATS * sizeof(float));
    const bool talker = k->packed == FRAME_PACKED_ALL, predictor = k->packed != FRAME_PACKED_NONE;
    take_layers(k, k->layers, &weights->talker, talker);
    take_layers(k, k->layers + weights->talker.n_layers, &weights->predictor, predictor);
    k->talker_head = take_matrix(k, &weights->talker_head, talker);
    for (int j = 0; j + 1 < weights->n_codebooks; j++) {
        k->heads[j] = take_matrix(k, &weights->predictor_head[j], predictor);
    }
    k->projection = take_matrix(k, &weights->projection, predictor);
    take_builds(k, weights);
}

uint64_t frame_kernel_plan(const struct cuda_weights *weights, enum frame_packed packed)
{
    struct frame_kernel counted = {.packed = packed};
    take_all(&counted, weights);
    return counted.arena.used;
}

static uint64_t packed_stack_bytes(const struct cuda_stack *s)
{
    uint64_t sum = 0;
    for (int i = 0; i < s->n_layers; i++) {
        const struct cuda_layer *l = &s->layers[i];
        sum += frame_pack_bytes(&l->qkv) + frame_pack_bytes(&l->o) + frame_pack_bytes(&l->gate_up) +
               frame_pack_bytes(&l->down);
    }
    return sum;
}

struct frame_reads frame_packed_reads(const struct cuda_weights *w)
{
    const uint64_t each = packed_stack_bytes(&w->predictor) + frame_pack_bytes(&w->projection);
    struct frame_reads reads = {packed_stack_bytes(&w->talker) + frame_pack_bytes(&w->talker_head), 0};
    for (int j = 0; j + 1 < w->n_codebooks; j++) {
        reads.predictor_bytes += each + frame_pack_bytes(&w->predictor_head[j]);
    }
    return reads;
}

/* Packs what has been given room. */
static utter_status pack_matrix(
    struct frame_kernel *k, const void *to, const struct cuda_matrix *m, utter_error *error)
{
    return to == m->tiles ? UTTER_OK
                          : cuda_device_check(k->device, frame_pack((void *)to, m, k->stream),
                                "8-bit weights of the frame kernel", error);
}

static utter_status pack_layers(struct frame_kernel *k, const struct cuda_layer *layers,
    const struct cuda_stack *stack, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (int i = 0; i < stack->n_layers && !status; i++) {
        const struct cuda_layer *from = &stack->layers[i], *to = &layers[i];
        if (!(status = pack_matrix(k, to->qkv.tiles, &from->qkv, error)) &&
            !(status = pack_matrix(k, to->o.tiles, &from->o, error)) &&
            !(status = pack_matrix(k, to->gate_up.tiles, &from->gate_up, error))) {
            status = pack_matrix(k, to->down.tiles, &from->down, error);
        }
    }
    return status;
}

static utter_status pack_all(struct frame_kernel *k, utter_error *error)
{
    const struct cuda_weights *w = k->weights;
    utter_status status = pack_layers(k, k->layers, &w->talker, error);
    if (!status && !(status = pack_layers(k, k->layers + w->talker.n_layers, &w->predictor, error)) &&
        !(status = pack_matrix(k, k->talker_head, &w->talker_head, error))) {
        status = pack_matrix(k, k->projection, &w->projection, error);
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
    list_layers(layers, k->layers, w->talker.n_layers + w->predictor.n_layers);
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
    a->weights.talker_head = k->talker_head;
    a->weights.projection = k->projection;
    a->weights.projection_bias = w->projection_bias;
    a->weights.talker_norm = w->talker.norm;
    a->weights.predictor_norm = w->predictor.norm;
    a->weights.talker_freq = w->talker.inv_freq;
    a->weights.predictor_freq = w->predictor.inv_freq;
    a->weights.talker_eps = w->talker.norm_eps;
    a->weights.predictor_eps = w->predictor.norm_eps;
    a->control.suppress_from = config_suppress_from(config);
    a->control.codec_eos = config->codec_eos;
    const bool packed = k->packed != FRAME_PACKED_NONE;
    a->control.n_slots = frame_n_slots(k->device->arch.block_shared, k->build.ring_at, packed);
    a->control.slot_bytes = (int)frame_slot_bytes(packed);
    a->control.n_ahead = FRAME_AHEAD;
    a->control.copy_clocks = FRAME_COPY_CLOCKS;
    a->control.patience = FRAME_PATIENCE;
}

/* Shared memory raised to what the ring takes, and the proof that all blocks run at once. */
static utter_status check_residency(
    struct frame_kernel *k, const void *code, size_t shared_bytes, utter_error *error)
{
    int each = 0;
    utter_status status = cuda_device_check(k->device,
        cudaFuncSetAttribute(code, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes),
        "shared memory of the frame kernel", error);
    if (!status) {
        status = cuda_device_check(k->device,
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, code, FRAME_ALL_THREADS, shared_bytes),
            "residency of the frame kernel", error);
    }
    if (!status && each * k->device->arch.n_sms < FRAME_BLOCKS) {
        status = error_set(error, UTTER_E_DEVICE,
            "frame kernel: its %d blocks are not resident together (choose kernels graph, or the cpu)",
            (int)FRAME_BLOCKS);
    }
    return status;
}

/* Every build with a ring as long as a block has room for; one for several lanes that has none is left out. */
static utter_status size_builds(struct frame_kernel *k, utter_error *error)
{
    const bool packed = k->packed != FRAME_PACKED_NONE;
    const size_t slot_bytes = frame_slot_bytes(packed);
    k->shared_bytes = k->build.ring_at + (size_t)k->args.control.n_slots * slot_bytes;
    utter_status status = check_residency(k, k->build.code, k->shared_bytes, error);
    for (int i = 0; i < k->n_many && !status; i++) {
        struct frame_many *m = &k->many[i];
        m->n_slots = frame_n_slots(k->device->arch.block_shared, m->build.ring_at, packed);
        m->shared_bytes = m->build.ring_at + (size_t)m->n_slots * slot_bytes;
        if (m->n_slots < 3) {
            k->n_many = i;
        } else {
            status = check_residency(k, m->build.code, m->shared_bytes, error);
        }
    }
    return status;
}

utter_status frame_kernel_open(struct frame_kernel **at, const struct cuda_weights *weights,
    struct cuda_device *device, const struct cuda_lanes *lanes, const struct config *config,
    enum frame_packed packed, cudaStream_t stream, utter_error *error)
{
    *at = NULL;
    const char *why;
    if (!frame_kernel_fits(weights, device, &why)) {
        return error_set(
            error, UTTER_E_DEVICE, "frame kernel: %s (choose kernels graph, or the cpu)", why);
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
        status = size_builds(k, error);
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

int frame_kernel_lanes(const struct frame_kernel *k)
{
    return k->n_many > 0 ? k->many[k->n_many - 1].build.n_lanes : 1;
}

static struct frame_state state_of(const struct frame_kernel *k, const struct frame_ask *ask)
{
    const struct cuda_lanes *l = k->lanes;
    const struct cuda_weights *w = k->weights;
    const size_t at = (size_t)ask->lane;
    return (struct frame_state){
        .lane = l->state + at,
        .hidden = l->hidden + at * (size_t)w->talker.width_padded,
        .logits = l->logits + at * (size_t)w->codec_vocabulary,
        .seen = l->seen + at * (size_t)w->codec_vocabulary,
        .sum = l->sum + at * (size_t)w->talker.width,
        .codes = l->codes ? l->codes + at * BACKEND_MAX_FEED * (size_t)w->n_codebooks : NULL,
        .cache = l->cache,
        .page_floats = l->page_floats,
        .pages = l->pages + at * (size_t)l->pages_stride,
        .look = ask->look,
    };
}

static utter_status launch(
    struct frame_kernel *k, const void *code, void *arg, size_t shared_bytes, utter_error *error)
{
    void *args[] = {arg};
    const dim3 blocks = {FRAME_BLOCKS, 1, 1}, threads = {FRAME_ALL_THREADS, 1, 1};
    return cuda_device_check(k->device,
        cudaLaunchCooperativeKernel(code, blocks, threads, args, shared_bytes, k->stream),
        "the frame kernel", error);
}

/* Clears the exchange of a build before the number of lanes changes. A launch does not write the
 * words of lanes that it does not have, so these keep their mark, while the mark that readers wait
 * for alternates from write to write: in a later launch that has these lanes, an old word could pass
 * for a new one. */
static utter_status clear_many(struct frame_kernel *k, struct frame_many *m, utter_error *error)
{
    m->n = 0;
    cudaError_t result = cudaMemsetAsync(m->words, 0, m->build.exchange_bytes, k->stream);
    result = result ? result : cudaMemsetAsync(m->parity, 0, FRAME_BLOCKS * 4, k->stream);
    return cuda_device_check(k->device, result, "words of the frame kernel", error);
}

static utter_status run_many(struct frame_kernel *k, struct frame_many *m, const struct frame_ask *asks,
    int n, utter_error *error)
{
    struct frame_lanes_args a = {.frame = k->args, .n = n};
    utter_status status = m->n == n ? UTTER_OK : clear_many(k, m, error);
    if (status) {
        return status;
    }
    m->n = n;
    a.frame.scratch.words = m->words;
    a.frame.scratch.parity = m->parity;
    a.frame.control.n_slots = m->n_slots;
    a.frame.control.n_ahead = min(k->args.control.n_ahead, m->n_slots);
    for (int i = 0; i < n; i++) {
        a.lane[i].state = state_of(k, &asks[i]);
        a.lane[i].position = asks[i].position;
        a.lane[i].text = asks[i].text;
        a.lane[i].forced = asks[i].forced;
        a.lane[i].out = asks[i].out;
    }
    a.frame.state = a.lane[0].state;
    return launch(k, m->build.code, &a, m->shared_bytes, error);
}

utter_status frame_kernel_run(struct frame_kernel *k, const struct frame_ask *asks, int n,
    uint32_t flags, uint64_t sequence, utter_error *error)
{
    struct frame_args *a = &k->args;
    a->control.flags = flags;
    a->control.sequence = sequence;
    for (int i = 0; n > 1 && i < k->n_many; i++) {
        if (n <= k->many[i].build.n_lanes) {
            return run_many(k, &k->many[i], asks, n, error);
        }
    }
    a->state = state_of(k, asks);
    a->control.position = asks->position;
    a->control.text = asks->text;
    a->control.forced = asks->forced;
    a->control.out = asks->out;
    return launch(k, k->build.code, a, k->shared_bytes, error);
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
    if (!status && *errors) { /* blocks no longer agree on the marks: all begin again from zero */
        cudaError_t result = cudaMemset(k->args.scratch.words, 0, k->build.exchange_bytes);
        result = result ? result : cudaMemset(k->args.scratch.totals, 0, frame_totals_bytes());
        result = result ? result : cudaMemset(k->args.scratch.parity, 0, FRAME_BLOCKS * 4);
        result = result ? result : cudaMemset(k->args.control.error, 0, sizeof *errors);
        status = cuda_device_check(k->device, result, "a frame's end", error);
        for (int i = 0; i < k->n_many && !status; i++) {
            status = clear_many(k, &k->many[i], error);
        }
    }
    return status;
}

void frame_kernel_watch(struct frame_kernel *k, const int16_t *watched)
{
    k->args.control.watched = watched;
}

void frame_kernel_tap(struct frame_kernel *k, float *predictor_logits)
{
    k->args.control.predictor_logits = predictor_logits;
}

void frame_kernel_ahead(struct frame_kernel *k, int n_slots, int copy_clocks)
{
    /* The producer waits for its oldest copy by the parity of a slot, which tells a slot's last fill
     * only from the one before. With more copies on their way than the ring has slots, that could be
     * the parity of the fill that the producer is about to begin: it would wait for itself. */
    k->args.control.n_ahead = min(n_slots, k->args.control.n_slots);
    k->args.control.copy_clocks = copy_clocks;
}

void frame_kernel_trace(struct frame_kernel *k, uint64_t *trace)
{
    k->args.control.trace = trace;
}

void frame_kernel_patience(struct frame_kernel *k, uint64_t clocks)
{
    k->args.control.patience = clocks;
}
