/* SPDX-License-Identifier: Apache-2.0
 * Single kernels of a frame against plain arithmetic and the CPU's sampler, on random data; and what is known of a
 * device and of a wait. Needs a GPU; goes on after a failure. Usage: check_steps [ROUNDS [ORDERS]];
 * ROUNDS: of choices; ORDERS: a product of each kind and a round of choices so often, each time the same bits. Ends
 * with `N passed, N failed`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "cpu/talker/sample.h"
#include "cuda/device/pack.h"
#include "cuda/device/pages.h"
#include "cuda/device/wait.h"
#include "cuda/parts/steps.h"

static int n_passed, n_failed;
static struct cuda_device device;
static struct cuda_queue queue;
static uint64_t state = 88172645463325252u;

static void result(bool good, const char *what, double value)
{
    printf("%s %s: %.3g\n", good ? "ok  " : "FAIL", what, value);
    fflush(stdout);
    n_passed += good;
    n_failed += !good;
}

/* ---- Data ---- */

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static float normal(void)
{
    double u = uniform();
    return (float)(sqrt(-2 * log(u > 0 ? u : 1e-12)) * cos(6.283185307179586 * uniform()));
}

static void *to_device(const void *data, size_t bytes)
{
    void *at = NULL;
    if (cudaMalloc(&at, bytes) != cudaSuccess ||
        (data ? cudaMemcpy(at, data, bytes, cudaMemcpyHostToDevice) : cudaMemset(at, 0, bytes)) !=
            cudaSuccess) {
        printf("no device memory\n");
        exit(2);
    }
    return at;
}

static void from_device(void *to, const void *at, size_t bytes)
{
    if (cudaStreamSynchronize(queue.stream) != cudaSuccess ||
        cudaMemcpy(to, at, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) {
        printf("FAIL the device: %s\n", cudaGetErrorString(cudaGetLastError()));
        exit(2);
    }
}

/* ---- Products ---- */

enum { MOST_VECTORS = 100, MOST_PACKED = 17, MOST_COLS = 6144 }; /* packed: more take two launches */

struct product {
    int rows, cols, padded; /* padded: stride of x */
    bool halves, norm;
    enum cuda_linear_kind kind;
    enum dtype type;                        /* of the weights: DTYPE_BF16, DTYPE_Q8 or DTYPE_Q4 */
    float *w;                               /* as they are multiplied */
    float *x, *norm_weights, *bias, *first; /* first: y of vector 0 in the first run */
    uint64_t bits;                          /* of all results of the last run */
    struct cuda_linear linear;
};

static float silu(double v)
{
    return (float)(v / (1 + exp(-v)));
}

/* Beside packed weights: as the CPU rounds them (cpu/kernels/kern.h), 32 columns from `from` on. */
static void round_columns(const struct product *p, float *x, int from)
{
    const float reach = p->type == DTYPE_Q8 ? 32767 : 127;
    const int end = from + PACK_GROUP < p->cols ? from + PACK_GROUP : p->cols;
    float largest = 0;
    for (int k = from; k < end; k++) {
        largest = fmaxf(fabsf(x[k]), largest);
    }
    for (int k = from; k < end; k++) {
        x[k] = rintf(x[k] * (reach / largest)) * (largest / reach);
    }
}

static double dot(const struct product *p, int row, const float *x, double scale)
{
    static float columns[MOST_COLS];
    double sum = 0;
    for (int k = 0; k < p->cols; k++) {
        columns[k] = p->norm ? x[k] * p->norm_weights[k] : x[k];
    }
    for (int k = 0; k < p->cols && p->type != DTYPE_BF16; k += PACK_GROUP) {
        round_columns(p, columns, k);
    }
    for (int k = 0; k < p->cols; k++) {
        sum += (double)p->w[(int64_t)row * p->cols + k] * (double)columns[k];
    }
    return p->norm ? sum * scale : sum;
}

static float expected(const struct product *p, int row, const float *x)
{
    double squares = 0, scale = 1;
    for (int k = 0; k < p->cols; k++) {
        squares += (double)x[k] * (double)x[k];
    }
    scale = 1 / sqrt(squares / p->cols + (double)p->linear.eps);
    double v = dot(p, row, x, scale);
    switch (p->kind) {
    case CUDA_GATE:
        return (float)((double)silu(v) * dot(p, p->rows + row, x, scale));
    case CUDA_ADD:
        return (float)(v + 1);
    case CUDA_STORE_SILU:
        return silu(v + (double)p->bias[row]);
    default:
        return (float)(v + (p->norm ? 0 : (double)p->bias[row]));
    }
}

/* Packs weights, part after part, and leaves in p->w what the codes stand for. */
static void *packed_weights(struct product *p, struct cuda_pack *pack)
{
    const size_t block = pack_block_bytes(p->type, p->cols), blocks = (size_t)pack_blocks(p->rows);
    const int n_parts = p->halves ? 2 : 1;
    unsigned char *all = malloc((size_t)n_parts * blocks * block);
    for (int part = 0; part < n_parts; part++) {
        unsigned char *of_part = all + (size_t)part * blocks * block;
        float *rows = p->w + (int64_t)part * p->rows * p->cols;
        for (int64_t b = 0; b < (int64_t)blocks; b++) {
            const int64_t left = p->rows - b * PACK_ROWS;
            pack_block(of_part + (size_t)b * block, p->type, rows + b * PACK_ROWS * p->cols,
                left < PACK_ROWS ? left : PACK_ROWS, p->cols);
        }
        for (int r = 0; r < p->rows; r++) {
            pack_row(of_part, p->type, p->cols, r, rows + (int64_t)r * p->cols);
        }
        pack->part_rows[part] = p->rows;
    }
    pack->format = p->type == DTYPE_Q8 ? CUDA_Q8 : CUDA_Q4;
    pack->scale_bytes = (int)pack_scale_bytes(p->cols);
    pack->block_bytes = (int)block;
    void *at = to_device(all, (size_t)n_parts * blocks * block);
    free(all);
    return at;
}

static void *stored_weights(struct product *p, int all)
{
    uint16_t *stored = malloc((size_t)all * (size_t)p->cols * sizeof *stored);
    for (int i = 0; i < all * p->cols; i++) {
        stored[i] = bf16_from_float(p->w[i]);
        p->w[i] = bf16_to_float(stored[i]);
    }
    void *at = to_device(stored, (size_t)all * (size_t)p->cols * sizeof *stored);
    free(stored);
    return at;
}

static void make_product(struct product *p)
{
    int all = p->halves ? 2 * p->rows : p->rows;
    p->padded = (p->cols + CUDA_TILE - 1) / CUDA_TILE * CUDA_TILE;
    p->w = malloc((size_t)all * (size_t)p->cols * sizeof *p->w);
    p->x = calloc(MOST_VECTORS * (size_t)p->padded, sizeof *p->x);
    p->norm_weights = calloc((size_t)p->padded, sizeof(float));
    p->bias = calloc((size_t)p->rows + CUDA_TILE, sizeof(float));
    p->first = calloc((size_t)p->rows, sizeof(float));
    for (int i = 0; i < all * p->cols; i++) {
        p->w[i] = normal() / sqrtf((float)p->cols);
    }
    for (int i = 0; i < p->cols; i++) {
        p->norm_weights[i] = 1 + 0.1f * normal();
        for (int v = 0; v < MOST_VECTORS; v++) {
            p->x[v * p->padded + i] = normal() * (float)(1 + v % 3);
        }
    }
    for (int i = 0; i < p->rows; i++) {
        p->bias[i] = normal();
    }
    int rows = p->halves ? 2 * ((p->rows + CUDA_TILE - 1) / CUDA_TILE * CUDA_TILE) : p->rows;
    struct cuda_matrix m = {.rows = rows, .cols = p->cols};
    m.n_row_tiles = (rows + CUDA_TILE - 1) / CUDA_TILE;
    m.n_k_tiles = p->padded / CUDA_TILE;
    struct cuda_pack pack = {.rows = p->rows,
        .cols = p->cols,
        .halves = p->halves,
        .n_row_tiles = m.n_row_tiles,
        .n_k_tiles = m.n_k_tiles};
    pack.raw = p->type == DTYPE_BF16 ? stored_weights(p, all) : packed_weights(p, &pack);
    m.format = pack.format;
    m.tiles = pack.tiles =
        to_device(NULL, (size_t)m.n_row_tiles * (size_t)cuda_row_bytes(pack.format, m.n_k_tiles));
    cudaDeviceSynchronize();
    cuda_pack_queue(&queue, &pack);
    int64_t stride = (p->rows + CUDA_TILE - 1) / CUDA_TILE * CUDA_TILE;
    p->linear = (struct cuda_linear){
        .matrix = m,
        .kind = p->kind,
        .x = to_device(p->x, MOST_VECTORS * (size_t)p->padded * sizeof(float)),
        .x_stride = p->padded,
        .norm = p->norm ? to_device(p->norm_weights, (size_t)p->padded * sizeof(float)) : NULL,
        .eps = 1e-6f,
        .bias =
            p->norm || p->kind == CUDA_ADD ? NULL : to_device(p->bias, (size_t)p->rows * sizeof(float)),
        .y = to_device(NULL, MOST_VECTORS * (size_t)stride * sizeof(float)),
        .y_stride = stride,
    };
}

/* The largest difference over all vectors, by the size of the results, or 1e9 where something else was written; and
 * whether vector 0 is the same as alone. */
static void run_product(struct product *p, int n, double *worst, bool *same)
{
    int64_t stride = p->linear.y_stride;
    float *y = calloc(MOST_VECTORS * (size_t)stride, sizeof *y);
    double most = 0, norm = 0;
    const int64_t own = p->kind == CUDA_GATE ? stride : p->rows; /* gates go on to whole tiles */
    bool over = false;
    for (int64_t i = 0; i < MOST_VECTORS * stride; i++) {
        y[i] = 1;
    }
    cudaMemcpy(p->linear.y, y, MOST_VECTORS * (size_t)stride * sizeof *y, cudaMemcpyHostToDevice);
    cudaDeviceSynchronize(); /* the kernel's stream does not wait for copies */
    p->linear.n_vectors = n;
    cudaError_t status = cuda_linear_queue(&queue, &p->linear);
    from_device(y, p->linear.y, MOST_VECTORS * (size_t)stride * sizeof *y);
    for (int64_t i = 0; i < MOST_VECTORS * stride; i++) {
        over = over || ((i / stride >= n || i % stride >= own) && y[i] != 1);
    }
    for (int v = 0; v < n && status == cudaSuccess; v += 1 + n / 5) {
        for (int r = 0; r < p->rows; r += 1 + p->rows / 97) {
            double e = expected(p, r, p->x + (int64_t)v * p->padded),
                   d = fabs((double)y[v * stride + r] - e);
            most = d > most ? d : most;
            norm = fabs(e) > norm ? fabs(e) : norm;
        }
    }
    *worst = status == cudaSuccess && !over ? most / norm : 1e9;
    if (n == 1) {
        memcpy(p->first, y, (size_t)p->rows * sizeof *y);
    }
    *same = memcmp(p->first, y, (size_t)p->rows * sizeof *y) == 0;
    p->bits = 0;
    for (int64_t i = 0; i < MOST_VECTORS * stride; i++) {
        p->bits = (p->bits ^ numeric_to_bits(y[i])) * 0x100000001b3u;
    }
    free(y);
}

static void check_products(enum dtype type)
{
    static const int counts[] = {1, 2, 4, 5, 8, 16, 17, 33, 64, 100};
    struct product all[] = {
        {.rows = 100, .cols = 72, .kind = CUDA_STORE},
        {.rows = 256, .cols = 1024, .kind = CUDA_STORE, .norm = true},
        {.rows = 88, .cols = 72, .kind = CUDA_GATE, .halves = true, .norm = true},
        {.rows = 64, .cols = 3072, .kind = CUDA_ADD},
        {.rows = 48, .cols = 2048, .kind = CUDA_STORE_SILU},
        {.rows = 96, .cols = 6144, .kind = CUDA_GATE, .halves = true, .norm = true},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct product *p = &all[i];
        double worst = 0, one;
        bool all_same = true, same;
        char what[112];
        p->type = type;
        make_product(p);
        for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
            if (type != DTYPE_BF16 && counts[j] > MOST_PACKED) {
                break;
            }
            run_product(p, counts[j], &one, &same);
            worst = one > worst ? one : worst;
            all_same = all_same && same;
        }
        snprintf(what, sizeof what, "product in %s, %d x %d, kind %d%s: largest error%s",
            weights_name(type), p->rows, p->cols, (int)p->kind, p->norm ? ", norm" : "",
            all_same ? "" : "; NOT the same for any number of vectors");
        result(worst < 1e-5 && all_same, what, worst);
    }
}

/* ---- Choice ---- */

enum { N_SLOTS = 8, WIDTH = 24 };

struct choice {
    struct cuda_choose choose;
    float *logits; /* [N_SLOTS][n] */
    uint8_t *seen; /* [N_SLOTS][n] */
    struct cuda_lane lanes[N_SLOTS];
    struct cuda_slots slots;
    int n;
};

static void open_choice(struct choice *c, int codebook, int n)
{
    uint16_t *table = calloc((size_t)n * WIDTH, sizeof *table);
    *c = (struct choice){.n = n};
    c->logits = calloc(N_SLOTS * (size_t)n, sizeof(float));
    c->seen = calloc(N_SLOTS, (size_t)n);
    c->choose = (struct cuda_choose){
        .slots = to_device(NULL, sizeof c->slots),
        .n_slots = N_SLOTS,
        .codebook = codebook,
        .n_codebooks = 2,
        .logits = to_device(NULL, N_SLOTS * (size_t)n * sizeof(float)),
        .logits_stride = n,
        .n = n,
        .suppress_from = codebook == 0 ? n - 1000 : n,
        .keep = codebook == 0 ? n - 900 : -1,
        .table = to_device(table, (size_t)n * WIDTH * sizeof *table),
        .width = WIDTH,
        .hidden_stride = WIDTH,
        .sum_stride = WIDTH,
        .input = to_device(NULL, 2 * N_SLOTS * WIDTH * sizeof(float)),
        .input_stride = WIDTH,
        .out = to_device(NULL, N_SLOTS * sizeof(struct cuda_frame_out)),
    };
    c->choose.lanes = (struct cuda_lanes){
        .n = N_SLOTS,
        .state = to_device(NULL, sizeof c->lanes),
        .hidden = to_device(NULL, N_SLOTS * WIDTH * sizeof(float)),
        .seen = to_device(NULL, N_SLOTS * (size_t)n),
        .sum = to_device(NULL, N_SLOTS * WIDTH * sizeof(float)),
        .codes = to_device(NULL, N_SLOTS * BACKEND_MAX_FEED * 2 * sizeof(int32_t)),
    };
    free(table);
}

/* Logits of many forms: plain, with many ties, nearly all alike, with values that cannot be chosen. */
static void random_logits(float *logits, int n, int form)
{
    float spread = form % 3 == 0 ? 3.0f : form % 3 == 1 ? 0.01f : 30.0f;
    for (int i = 0; i < n; i++) {
        float v = spread * normal();
        logits[i] = form % 5 == 1 ? rintf(v * 2) / 2 : form % 5 == 2 ? (float)(i % 3) : v;
        if (form % 7 == 3 && i % 4 == 0) {
            logits[i] = -INFINITY;
        }
    }
    if (form % 11 == 5) {
        logits[form % n] = NAN;
    }
}

static utter_sampling random_sampling(int n)
{
    static const int ks[] = {0, 1, 2, 7, 50, 50, 50, 300, 1000};
    static const float ps[] = {1, 1, 1, 0.95f, 0.5f, 0.01f};
    utter_sampling s = {(float)(0.3 + 1.5 * uniform()), ks[(int)(uniform() * 9)],
        ps[(int)(uniform() * 6)], uniform() < 0.5 ? 1.0f : 1.3f};
    s.temperature = uniform() < 0.15 ? 0 : s.temperature;
    s.top_k = uniform() < 0.1 ? n - 1 : s.top_k;
    return s;
}

static int cpu_choice(const struct choice *c, int i, bool *bad)
{
    static float scores[CUDA_MAX_CODES];
    static int32_t order[CUDA_MAX_CODES];
    bool first = c->choose.codebook == 0;
    const struct cuda_lane *lane = &c->lanes[i];
    struct sample_in in = {
        .logits = c->logits + (int64_t)i * c->n,
        .n = c->n,
        .sampling = first ? &lane->settings.talker : &lane->settings.predictor,
        .seen = first ? c->seen + (int64_t)i * c->n : NULL,
        .suppress_from = c->choose.suppress_from,
        .keep = c->choose.keep,
        .keep_blocked = lane->n_frames < (uint32_t)lane->settings.min_frames,
        .seed = lane->settings.seed,
        .frame = lane->n_frames,
        .codebook = (uint32_t)c->choose.codebook,
    };
    *bad = false;
    return sample_choose(&in, scores, order, bad);
}

/* One call with N_SLOTS random cases; the number of those that equal the CPU's. */
static int run_choice(struct choice *c, int round)
{
    int equal = 0;
    for (int i = 0; i < N_SLOTS; i++) {
        struct cuda_lane *lane = &c->lanes[i];
        random_logits(c->logits + (int64_t)i * c->n, c->n, round * N_SLOTS + i);
        lane->settings = (struct lane_settings){random_sampling(c->n), random_sampling(c->n), state, 2};
        lane->n_frames = (uint32_t)(round % 5);
        c->slots.lane[i] = c->slots.alive[i] = i;
        for (int j = 0; j < c->n; j++) {
            c->seen[(int64_t)i * c->n + j] = uniform() < 0.1;
        }
    }
    cudaMemcpy((void *)c->choose.logits, c->logits, N_SLOTS * (size_t)c->n * sizeof(float),
        cudaMemcpyHostToDevice);
    cudaMemcpy(c->choose.lanes.seen, c->seen, N_SLOTS * (size_t)c->n, cudaMemcpyHostToDevice);
    cudaMemcpy(c->choose.lanes.state, c->lanes, sizeof c->lanes, cudaMemcpyHostToDevice);
    cudaMemcpy(c->choose.slots, &c->slots, sizeof c->slots, cudaMemcpyHostToDevice);
    struct cuda_slots after;
    cudaDeviceSynchronize();
    cudaError_t status = cuda_choose_queue(&queue, &c->choose);
    from_device(&after, c->choose.slots, sizeof after);
    for (int i = 0; i < N_SLOTS; i++) {
        bool bad;
        int wanted = cpu_choice(c, i, &bad), got = after.codes[i][c->choose.codebook];
        if (status == cudaSuccess && wanted == got && bad == (after.bad[i] != 0)) {
            equal++;
            continue;
        }
        const utter_sampling *s =
            c->choose.codebook == 0 ? &c->lanes[i].settings.talker : &c->lanes[i].settings.predictor;
        printf("     round %d slot %d: %d, on the CPU %d (temperature %g top_k %d top_p %g penalty %g; "
               "bad %d %d)\n",
            round, i, got, wanted, (double)s->temperature, s->top_k, (double)s->top_p,
            (double)s->repetition_penalty, after.bad[i], bad);
    }
    return equal;
}

/* ---- Orders ---- */

static float *random_floats(size_t n)
{
    float *data = malloc(n * sizeof *data);
    for (size_t i = 0; i < n; i++) {
        data[i] = normal();
    }
    float *at = to_device(data, n * sizeof *data);
    free(data);
    return at;
}

/* Two lanes, whose pages three blocks share for each head; what was left by the launch before is nowhere. */
static int other_attention(int orders)
{
    enum { HEADS = 4, KV_HEADS = 2, HEAD = 64, LANES = 2, PAGES = 3 };
    static const struct cuda_stack shape = {.n_heads = HEADS, .n_kv_heads = KV_HEADS, .head = HEAD};
    static const int32_t lanes[] = {0, 1}, positions[] = {40, 47}, pages[] = {5, 0, 3, 2, 4, 1};
    static float first[LANES][HEADS][HEAD], mixed[LANES][HEADS][HEAD];
    struct cuda_stack stack = shape;
    stack.norm_eps = 1e-6f;
    stack.inv_freq = random_floats(HEAD / 2);
    stack.layers[0].q_norm = random_floats(HEAD);
    stack.layers[0].k_norm = random_floats(HEAD);
    struct cuda_attend a = {.stack = &stack,
        .n_vectors = LANES,
        .each = 1,
        .lanes = to_device(lanes, sizeof lanes),
        .positions = to_device(positions, sizeof positions),
        .qkv = random_floats(LANES * (HEADS + 2 * KV_HEADS) * HEAD),
        .qkv_stride = (HEADS + 2 * KV_HEADS) * HEAD,
        .mixed = to_device(NULL, sizeof mixed),
        .mixed_stride = HEADS * HEAD,
        .cache = random_floats(LANES * PAGES * KV_HEADS * 2 * CUDA_PAGE * HEAD),
        .page_floats = KV_HEADS * 2 * CUDA_PAGE * HEAD,
        .page_size = CUDA_PAGE,
        .pages = to_device(pages, sizeof pages),
        .pages_stride = PAGES,
        .arrived = to_device(NULL, LANES * KV_HEADS * sizeof(uint32_t))};
    const size_t bytes = cuda_attend_floats(&stack, LANES) * sizeof(float);
    int others = 0;
    a.partial = to_device(NULL, bytes);
    for (int k = 0; k < orders; k++) {
        cudaMemset(a.partial, 0xff, bytes);
        cudaDeviceSynchronize();
        const cudaError_t status = cuda_attend_queue(&queue, &a);
        from_device(k == 0 ? first : mixed, a.mixed, sizeof mixed);
        others += status != cudaSuccess || (k > 0 && memcmp(first, mixed, sizeof mixed) != 0);
    }
    return others;
}

/* A GPU's threads and blocks run in another order each time; on the host bench no two launches have the same. */
static void check_orders(int orders)
{
    static const enum dtype types[] = {DTYPE_BF16, DTYPE_Q8, DTYPE_Q4};
    static struct choice c;
    /* Cheap, and one of 100 orders tells of a barrier that is missing. */
    int others = other_attention(5 * orders), equal = 0;
    result(others == 0, "attention in other orders, with other bits", others);
    others = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct product p = {
            .rows = 88, .cols = 72, .kind = CUDA_GATE, .type = types[i], .halves = true, .norm = true};
        uint64_t first[2];
        double worst;
        bool same;
        make_product(&p);
        run_product(&p, 1, &worst, &same);
        for (int k = 0; k < 2 * orders; k++) {
            run_product(&p, k % 2 ? 17 : 2, &worst, &same);
            first[k % 2] = k < 2 ? p.bits : first[k % 2];
            others += !same || p.bits != first[k % 2];
        }
    }
    result(others == 0, "products in other orders, with other bits", others);
    open_choice(&c, 0, 3072);
    const uint64_t drawn = state;
    for (int k = 0; k < orders; k++) {
        state = drawn;
        equal += run_choice(&c, 0);
    }
    result(equal == orders * N_SLOTS, "choices in other orders, with other codes",
        orders * N_SLOTS - equal);
}

static void check_choices(int rounds)
{
    static const int sizes[2] = {3072, 2048};
    for (int codebook = 0; codebook < 2; codebook++) {
        static struct choice c;
        int equal = 0;
        open_choice(&c, codebook, sizes[codebook]);
        for (int i = 0; i < rounds; i++) {
            equal += run_choice(&c, i);
        }
        char what[64];
        snprintf(what, sizeof what, "%d choices of codebook %d, of which others", rounds * N_SLOTS,
            codebook);
        result(equal == rounds * N_SLOTS, what, rounds * N_SLOTS - equal);
    }
}

/* ---- What the device can do ---- */

static void check_arch(void)
{
    const struct cuda_arch *has = &device.arch;
    struct cuda_arch as = *has;
    struct cuda_device posed;
    utter_error error;
    result(has->code >= 80 && has->code <= has->capability && has->overlaps == (has->code >= 90) &&
               has->n_sms > 0 && has->block_shared < has->sm_shared && has->l2_bytes > 0,
        "the device's abilities", 0);
    as.n_sms = has->n_sms / 2;
    as.block_shared = 48 << 10;
    as.overlaps = false;
    const bool opened = cuda_device_open_as(&posed, 0, &as, &error) == UTTER_OK;
    result(opened && posed.arch.n_sms == as.n_sms && posed.arch.block_shared == as.block_shared &&
               !posed.arch.overlaps && posed.arch.wgmma == has->wgmma && posed.arch.code == has->code,
        "those of a card that has less", 0);
}

/* Of a wait whose end had come before the first look nobody knows how long it takes. */
static void check_wait(void)
{
    const struct cuda_wait wait = cuda_wait_begin(1);
    double usual_s = 1;
    cuda_wait_note(&usual_s, &wait);
    result(usual_s == 1, "a wait without a look: as long as before", usual_s);
}

int main(int argc, char **argv)
{
    utter_error error;
    if (cuda_device_open(&device, 0, &error) ||
        cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking) != cudaSuccess) {
        printf("FAIL %s\n0 passed, 1 failed\n", error.text);
        return 1;
    }
    queue.overlaps = device.arch.overlaps;
    queue.block_shared = (int)device.arch.block_shared;
    if (cuda_linear_open(queue.block_shared) != cudaSuccess) {
        printf("FAIL the kernels cannot have their shared memory\n0 passed, 1 failed\n");
        return 1;
    }
    check_arch();
    check_wait();
    check_products(DTYPE_BF16);
    check_products(DTYPE_Q8);
    check_products(DTYPE_Q4);
    check_choices(argc > 1 ? atoi(argv[1]) : 100);
    if (argc > 2) {
        check_orders(atoi(argv[2]));
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0;
}
