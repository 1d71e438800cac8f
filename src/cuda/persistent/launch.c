/* SPDX-License-Identifier: Apache-2.0
 * The host's side of the frame kernel: checks at open that all blocks are resident, what it keeps in device memory,
 * and the launch. */
#include "cuda/persistent/persistent.h"

#include "base/memory.h"
#include "base/minmax.h"

enum {
    FRAME_PATIENCE = 200000000, /* clocks: about a tenth of a second */
    FRAME_AHEAD = 3,            /* slots of 16 KB of the ring that are being filled at once */
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
    uint64_t patience; /* of the next n_patience launches */
    int n_patience;
};

/* Slots of the ring of a build on this device; 0: it has no room. */
static int slots_of(const struct cuda_device *device, const struct frame_build *build, bool packed)
{
    return frame_n_slots(device->arch.block_shared, build->ring_at, packed, device->arch.half_slots);
}

static bool stack_fits(const struct cuda_stack *stack)
{
    return stack->n_heads == 2 * FRAME_KV_HEADS && stack->n_kv_heads == FRAME_KV_HEADS &&
           stack->head == FRAME_HEAD;
}

static unsigned format_of(const struct cuda_stack *stack)
{
    return stack->layers[0].qkv.format;
}

/* Whether layers and heads are all bf16 or all of 8 bits. */
static bool stack_is(const struct cuda_stack *stack, const struct cuda_matrix *heads, int n_heads)
{
    const unsigned format = format_of(stack);
    bool is = format != CUDA_Q4;
    for (int i = 0; i < n_heads; i++) {
        is = is && heads[i].format == format;
    }
    return is;
}

enum frame_packed frame_kernel_packed(const struct cuda_weights *weights)
{
    return format_of(&weights->talker) != CUDA_BF16      ? FRAME_PACKED_ALL
           : format_of(&weights->predictor) != CUDA_BF16 ? FRAME_PACKED_PREDICTOR
                                                         : FRAME_PACKED_NONE;
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
    const bool formats = stack_is(t, &weights->talker_head, 1) &&
                         stack_is(p, weights->predictor_head, weights->n_codebooks - 1) &&
                         (!weights->projection.tiles || weights->projection.format == format_of(p)) &&
                         (format_of(t) == CUDA_BF16 || format_of(p) == CUDA_Q8);
    const struct frame_build least = frame_build_bf16();
    *why = !arch->bulk_copies                     ? "it needs compute capability 9.0"
           : arch->n_sms < FRAME_BLOCKS           ? "it needs 128 multiprocessors"
           : slots_of(device, &least, false) == 0 ? "a block has too little shared memory"
           : !shapes                              ? "it is made for the shapes of the released models"
           : !formats                             ? "it has no weights of 4 bits"
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

/* The builds for several lanes, the smallest first. */
enum { N_BUILDS = 3 };

static struct frame_build build_at(int i)
{
    return i == 0 ? frame_build_lanes4() : i == 1 ? frame_build_lanes4_wide() : frame_build_lanes8();
}

/* Whether one of them is for these stacks. Lanes with packed weights go one after the other; and those of a
 * predictor of one layer: its first position ends with the last layer's keys, and behind that layer no vector is read
 * by all blocks, so the input of the second could be written while some block has yet to read that of the first. */
static bool is_for(const struct frame_build *build, const struct cuda_weights *weights)
{
    return frame_kernel_packed(weights) == FRAME_PACKED_NONE && weights->predictor.n_layers > 1 &&
           build->talker_width == weights->talker.width;
}

int frame_kernel_most(const struct cuda_weights *weights, const struct cuda_device *device)
{
    const char *why;
    int most = frame_kernel_fits(weights, device, &why);
    for (int i = 0; i < N_BUILDS && most > 0; i++) {
        const struct frame_build build = build_at(i);
        if (is_for(&build, weights) && slots_of(device, &build, false) > 0) {
            most = build.n_lanes;
        }
    }
    return most;
}

static void take_builds(struct frame_kernel *k, const struct cuda_weights *weights)
{
    k->n_many = 0;
    for (int i = 0; i < N_BUILDS; i++) {
        const struct frame_build build = build_at(i);
        if (is_for(&build, weights)) {
            struct frame_many *m = &k->many[k->n_many++];
            m->build = build;
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
    k->packed = frame_kernel_packed(weights);
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
    take_builds(k, weights);
}

uint64_t frame_kernel_plan(const struct cuda_weights *weights)
{
    struct frame_kernel counted = {0};
    take_all(&counted, weights);
    return counted.arena.used;
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
    const void *heads[CONFIG_MAX_CODEBOOKS] = {0};
    list_layers(layers, w->talker.layers, w->talker.n_layers);
    list_layers(layers + w->talker.n_layers, w->predictor.layers, w->predictor.n_layers);
    for (int j = 0; j + 1 < w->n_codebooks; j++) {
        heads[j] = w->predictor_head[j].tiles;
    }
    struct frame_args *a = &k->args;
    utter_status status = send(k, a->weights.layers, layers,
        (size_t)(w->talker.n_layers + w->predictor.n_layers) * sizeof *layers, error);
    if (!status) {
        status = send(k, a->weights.heads, heads, sizeof heads, error);
    }
    if (!status) {
        status = send(k, a->weights.code_table, w->code_table, sizeof w->code_table, error);
    }
    /* From memory that is not pinned the copies may still be on their way, and other streams do not wait for them. */
    return status ? status
                  : cuda_device_check(
                        k->device, cudaDeviceSynchronize(), "tables of the frame kernel", error);
}

static size_t bytes_of(const struct cuda_matrix *m)
{
    return m->tiles ? (size_t)m->rows * (size_t)m->cols / FRAME_UNIT_K / 16 *
                          (m->format == CUDA_BF16 ? FRAME_UNIT_BYTES : FRAME_PACKED_BYTES)
                    : 0;
}

/* Bytes of weights that the kernel reads for each code. */
static size_t read_again(const struct cuda_weights *w)
{
    size_t bytes = bytes_of(&w->projection);
    for (int i = 0; i < w->predictor.n_layers; i++) {
        const struct cuda_layer *l = &w->predictor.layers[i];
        bytes += bytes_of(&l->qkv) + bytes_of(&l->o) + bytes_of(&l->gate_up) + bytes_of(&l->down);
    }
    return bytes;
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
    a->weights.projection = w->projection.tiles;
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
    a->control.n_slots = slots_of(k->device, &k->build, packed);
    a->control.slot_bytes = (int)frame_slot_bytes(packed, k->device->arch.half_slots);
    a->control.keeps = cuda_l2_holds(k->device->arch.l2_bytes, read_again(w));
    frame_kernel_ahead(k, FRAME_AHEAD, FRAME_COPY_CLOCKS);
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
    const size_t slot_bytes = frame_slot_bytes(packed, k->device->arch.half_slots);
    k->shared_bytes = k->build.ring_at + (size_t)k->args.control.n_slots * slot_bytes;
    utter_status status = check_residency(k, k->build.code, k->shared_bytes, error);
    for (int i = 0; i < k->n_many && !status; i++) {
        struct frame_many *m = &k->many[i];
        m->n_slots = slots_of(k->device, &m->build, packed);
        m->shared_bytes = m->build.ring_at + (size_t)m->n_slots * slot_bytes;
        if (m->n_slots == 0) {
            k->n_many = i;
        } else {
            status = check_residency(k, m->build.code, m->shared_bytes, error);
        }
    }
    return status;
}

utter_status frame_kernel_open(struct frame_kernel **at, const struct cuda_weights *weights,
    struct cuda_device *device, const struct cuda_lanes *lanes, const struct config *config,
    cudaStream_t stream, utter_error *error)
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
    take_all(k, weights);
    utter_status status = cuda_arena_open(&k->arena, device, "the frame kernel", error);
    if (!status) {
        take_all(k, weights);
        set_args(k, config);
        status = send_tables(k, error);
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

void frame_kernel_limit(struct frame_kernel **at, int n)
{
    struct frame_kernel *k = *at;
    if (k && n <= 1) {
        frame_kernel_close(at);
        return;
    }
    while (k && k->n_many > 0 && k->many[k->n_many - 1].build.n_lanes >= n) {
        k->n_many--;
    }
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
    a->control.patience = k->n_patience > 0 ? k->patience : FRAME_PATIENCE;
    k->n_patience -= k->n_patience > 0;
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

utter_status frame_kernel_clear(struct frame_kernel *k, utter_error *error)
{
    const struct frame_args *a = &k->args;
    cudaError_t result = cudaMemsetAsync(a->scratch.words, 0, k->build.exchange_bytes, k->stream);
    result = result ? result : cudaMemsetAsync(a->scratch.totals, 0, frame_totals_bytes(), k->stream);
    result = result ? result : cudaMemsetAsync(a->scratch.parity, 0, FRAME_BLOCKS * 4, k->stream);
    result =
        result ? result : cudaMemsetAsync(a->control.error, 0, sizeof *a->control.error, k->stream);
    utter_status status = cuda_device_check(k->device, result, "words of the frame kernel", error);
    for (int i = 0; i < k->n_many && !status; i++) {
        status = clear_many(k, &k->many[i], error);
    }
    return status;
}

void frame_kernel_heed(struct frame_kernel *k, uint32_t *error)
{
    k->args.control.error = error;
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
    return status || !*errors ? status : frame_kernel_clear(k, error);
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
    n_slots *= k->device->arch.half_slots ? 2 : 1;
    k->args.control.n_ahead = min(n_slots, k->args.control.n_slots);
    k->args.control.copy_clocks = copy_clocks;
}

void frame_kernel_trace(struct frame_kernel *k, uint64_t *trace)
{
    k->args.control.trace = trace;
}

void frame_kernel_patience(struct frame_kernel *k, uint64_t clocks, int n)
{
    k->patience = clocks;
    k->n_patience = n;
}
