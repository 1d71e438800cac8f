/* SPDX-License-Identifier: Apache-2.0
 * The transformer stack against a plain one in double; and that columns, chunks, threads, neighbours and
 * the size of a ring never change a bit. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "cpu/stack/stack.h"
#include "tests/cpu/random.h"

enum { N_POSITIONS = 40, MAX_WIDTH = 96 };

struct net {
    struct stack_config shape;
    struct stack_weights weights;
    struct random random;
};

static struct weight net_matrix(struct net *net, int64_t rows, int64_t cols)
{
    uint16_t *data = malloc((size_t)(rows * cols) * 2);
    for (int64_t i = 0; i < rows * cols; i++) {
        data[i] = bf16_from_float(random_normal(&net->random) / sqrtf((float)cols));
    }
    return (struct weight){data, DTYPE_BF16, rows, cols};
}

static float *net_vector(struct net *net, int64_t n, float mean, float spread)
{
    float *data = malloc((size_t)n * 4);
    for (int64_t i = 0; i < n; i++) {
        data[i] = mean + spread * random_normal(&net->random);
    }
    return data;
}

/* The talker's kind of stack (grouped heads, head norms) or the codec's (window, scales). */
static struct net net_new(bool codec)
{
    struct net net = {.random = {codec ? 5 : 4, 0}};
    net.shape = codec ? (struct stack_config){48, 80, 3, 4, 4, 16, 7, 1e-5f, 10000}
                      : (struct stack_config){96, 136, 3, 4, 2, 32, 0, 1e-6f, 1000000};
    const struct stack_config *s = &net.shape;
    int64_t q = s->n_heads * s->head, kv = s->n_kv_heads * s->head;
    net.weights.layers = calloc((size_t)s->n_layers, sizeof *net.weights.layers);
    for (int i = 0; i < s->n_layers; i++) {
        net.weights.layers[i] = (struct layer_weights){
            .input_norm = net_vector(&net, s->width, 1, 0.1f),
            .post_norm = net_vector(&net, s->width, 1, 0.1f),
            .q = net_matrix(&net, q, s->width),
            .k = net_matrix(&net, kv, s->width),
            .v = net_matrix(&net, kv, s->width),
            .o = net_matrix(&net, s->width, q),
            .q_norm = codec ? NULL : net_vector(&net, s->head, 1, 0.1f),
            .k_norm = codec ? NULL : net_vector(&net, s->head, 1, 0.1f),
            .gate = net_matrix(&net, s->inner, s->width),
            .up = net_matrix(&net, s->inner, s->width),
            .down = net_matrix(&net, s->width, s->inner),
            .attention_scale = codec ? net_vector(&net, s->width, 0.5f, 0.2f) : NULL,
            .mlp_scale = codec ? net_vector(&net, s->width, 0.5f, 0.2f) : NULL,
        };
    }
    return net;
}

static void net_free(struct net *net)
{
    for (int i = 0; i < net->shape.n_layers; i++) {
        struct layer_weights *w = &net->weights.layers[i];
        const struct weight *matrices[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down};
        for (int j = 0; j < 7; j++) {
            free((void *)(uintptr_t)matrices[j]->data);
        }
        float *vectors[] = {
            w->input_norm, w->post_norm, w->q_norm, w->k_norm, w->attention_scale, w->mlp_scale};
        for (int j = 0; j < 6; j++) {
            free(vectors[j]);
        }
    }
    free(net->weights.layers);
}

/* ---- The plain one ---- */

static void exact_product(const struct weight *w, const double *x, double *y)
{
    for (int64_t r = 0; r < w->rows; r++) {
        y[r] = 0;
        for (int64_t k = 0; k < w->cols; k++) {
            y[r] += (double)bf16_to_float(((const uint16_t *)w->data)[r * w->cols + k]) * x[k];
        }
    }
}

static void exact_norm(double *y, const double *x, const float *w, int n, double eps)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    for (int i = 0; i < n; i++) {
        y[i] = (double)w[i] * x[i] / sqrt(sum / n + eps);
    }
}

static void exact_heads(
    const struct stack_config *s, double *x, int n_heads, const float *norm, int position)
{
    for (int h = 0; h < n_heads; h++, x += s->head) {
        if (norm) {
            exact_norm(x, x, norm, s->head, (double)s->norm_eps);
        }
        for (int i = 0; i < s->head / 2; i++) {
            double angle = position * pow(s->rope_theta, -2.0 * i / s->head), a = x[i],
                   b = x[i + s->head / 2];
            x[i] = a * cos(angle) - b * sin(angle);
            x[i + s->head / 2] = b * cos(angle) + a * sin(angle);
        }
    }
}

static void exact_attention(const struct stack_config *s, const double (*q)[512],
    const double (*k)[512], const double (*v)[512], int position, double *out)
{
    int first = s->window && position >= s->window ? position - s->window + 1 : 0;
    for (int h = 0; h < s->n_heads; h++) {
        int kv = h / (s->n_heads / s->n_kv_heads) * s->head;
        double p[N_POSITIONS], sum = 0;
        for (int i = first; i <= position; i++) {
            double dot = 0;
            for (int d = 0; d < s->head; d++) {
                dot += q[position][h * s->head + d] * k[i][kv + d];
            }
            sum += p[i] = exp(dot / sqrt(s->head));
        }
        for (int d = 0; d < s->head; d++) {
            out[h * s->head + d] = 0;
            for (int i = first; i <= position; i++) {
                out[h * s->head + d] += p[i] / sum * v[i][kv + d];
            }
        }
    }
}

static void exact_add(double *x, const double *add, const float *scale, int n)
{
    for (int i = 0; i < n; i++) {
        x[i] += scale ? (double)scale[i] * add[i] : add[i];
    }
}

/* x[n][width] through the stack, all positions from 0 on at once. */
static void exact_run(const struct net *net, double (*x)[512], int n)
{
    const struct stack_config *s = &net->shape;
    static double q[N_POSITIONS][512], k[N_POSITIONS][512], v[N_POSITIONS][512];
    double normed[512], mixed[512], out[512], gate[512], up[512];
    for (int i_layer = 0; i_layer < s->n_layers; i_layer++) {
        const struct layer_weights *w = &net->weights.layers[i_layer];
        for (int i = 0; i < n; i++) {
            exact_norm(normed, x[i], w->input_norm, s->width, (double)s->norm_eps);
            exact_product(&w->q, normed, q[i]);
            exact_product(&w->k, normed, k[i]);
            exact_product(&w->v, normed, v[i]);
            exact_heads(s, q[i], s->n_heads, w->q_norm, i);
            exact_heads(s, k[i], s->n_kv_heads, w->k_norm, i);
        }
        for (int i = 0; i < n; i++) {
            exact_attention(
                s, (const double(*)[512])q, (const double(*)[512])k, (const double(*)[512])v, i, mixed);
            exact_product(&w->o, mixed, out);
            exact_add(x[i], out, w->attention_scale, s->width);
            exact_norm(normed, x[i], w->post_norm, s->width, (double)s->norm_eps);
            exact_product(&w->gate, normed, gate);
            exact_product(&w->up, normed, up);
            for (int j = 0; j < s->inner; j++) {
                gate[j] = gate[j] / (1 + exp(-gate[j])) * up[j];
            }
            exact_product(&w->down, gate, out);
            exact_add(x[i], out, w->mlp_scale, s->width);
        }
    }
}

/* ---- The stack ---- */

static struct cpu_cache cache_new(const struct stack_config *s, int64_t capacity)
{
    size_t n = (size_t)(s->n_layers * capacity * s->n_kv_heads * s->head);
    struct cpu_cache cache = {malloc(n * 4), malloc(n * 4), capacity};
    for (size_t i = 0; i < n; i++) { /* what was not written must not be looked at */
        cache.keys[i] = cache.values[i] = NAN;
    }
    return cache;
}

static void cache_free(struct cpu_cache *cache)
{
    free(cache->keys);
    free(cache->values);
}

static void fill_input(const struct net *net, float *x)
{
    struct random random = {77, 0};
    random_fill(&random, x, N_POSITIONS * net->shape.width, 1);
}

struct setting {
    const char *kernels;
    int n_threads, chunk;
    int64_t capacity;
};

/* All positions in chunks, from a new cache. */
static void run_stack(const struct net *net, const struct setting *setting, float *x)
{
    const struct stack_config *shape = &net->shape;
    struct pool *pool = pool_new(setting->n_threads);
    struct cpu_stack stack;
    struct cpu_column columns[N_POSITIONS];
    assert_int_equal(
        cpu_stack_init(&stack, shape, &net->weights, kern_find(setting->kernels), pool, NULL),
        UTTER_OK);
    struct cpu_scratch *scratch =
        cpu_scratch_new(&shape, 1, setting->chunk, N_POSITIONS, setting->n_threads);
    struct cpu_cache cache = cache_new(shape, setting->capacity);
    for (int i = 0, n; i < N_POSITIONS; i += n) {
        n = N_POSITIONS - i < setting->chunk ? N_POSITIONS - i : setting->chunk;
        for (int j = 0; j < n; j++) {
            columns[j] = (struct cpu_column){&cache, i + j, NULL};
        }
        cpu_stack_run(&stack, x + i * shape->width, columns, n, scratch, NULL, NULL);
    }
    cache_free(&cache);
    cpu_scratch_free(scratch);
    cpu_stack_fini(&stack);
    pool_free(pool);
}

static const char *const KERNELS[] = {
    "c", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};
enum { N_KERNELS = sizeof KERNELS / sizeof *KERNELS };

static void check_exact(bool codec)
{
    static double want[N_POSITIONS][512];
    float x[N_POSITIONS * MAX_WIDTH];
    struct net net = net_new(codec);
    int width = net.shape.width;
    fill_input(&net, x);
    for (int i = 0; i < N_POSITIONS; i++) {
        for (int j = 0; j < width; j++) {
            want[i][j] = x[i * width + j];
        }
    }
    exact_run(&net, want, N_POSITIONS);
    for (int k = 0; k < N_KERNELS; k++) {
        struct setting setting = {KERNELS[k], 1, N_POSITIONS, N_POSITIONS + 10};
        if (!kern_find(KERNELS[k])) {
            continue;
        }
        fill_input(&net, x);
        run_stack(&net, &setting, x);
        for (int i = 0; i < N_POSITIONS; i++) {
            for (int j = 0; j < width; j++) {
                /* three layers of fp32 rounding on values of size 1 to 5 */
                assert_true(fabs((double)x[i * width + j] - want[i][j]) < 2e-5);
            }
        }
    }
    net_free(&net);
}

static void test_exact(void **state)
{
    (void)state;
    check_exact(false);
}

static void test_exact_window(void **state)
{
    (void)state;
    check_exact(true);
}

static void check_same(bool codec, const struct setting *settings, int n)
{
    float want[N_POSITIONS * MAX_WIDTH], have[N_POSITIONS * MAX_WIDTH];
    struct net net = net_new(codec);
    for (int k = 0; k < N_KERNELS; k++) {
        if (!kern_find(KERNELS[k])) {
            continue;
        }
        for (int i = 0; i < n; i++) {
            struct setting setting = settings[i];
            setting.kernels = KERNELS[k];
            fill_input(&net, i ? have : want);
            run_stack(&net, &setting, i ? have : want);
            assert_true(i == 0 || memcmp(have, want, (size_t)(N_POSITIONS * net.shape.width) * 4) == 0);
        }
    }
    net_free(&net);
}

/* Chunks of any size, 1, 2 and 8 threads, caches of any capacity: the same bits. */
static void test_same_bits(void **state)
{
    (void)state;
    static const struct setting SETTINGS[] = {{NULL, 1, 1, 40}, {NULL, 1, 40, 40}, {NULL, 2, 7, 41},
        {NULL, 8, 13, 100}, {NULL, 8, 40, 40}, {NULL, 2, 2, 64}};
    check_same(false, SETTINGS, 6);
}

/* Rings as small as window + columns - 1. */
static void test_same_bits_ring(void **state)
{
    (void)state;
    static const struct setting SETTINGS[] = {{NULL, 1, 1, 7}, {NULL, 1, 1, 40}, {NULL, 2, 5, 11},
        {NULL, 8, 40, 46}, {NULL, 1, 3, 9}, {NULL, 2, 8, 29}};
    check_same(true, SETTINGS, 6);
}

/* Two sequences that share every pass, one of them ahead, give what each gives alone. */
static void test_neighbours(void **state)
{
    (void)state;
    struct net net = net_new(false);
    const struct stack_config *shape = &net.shape;
    int width = shape->width;
    float alone[N_POSITIONS * MAX_WIDTH], other[N_POSITIONS * MAX_WIDTH], pair[2 * MAX_WIDTH];
    struct setting setting = {"c", 1, 1, N_POSITIONS};
    fill_input(&net, alone);
    run_stack(&net, &setting, alone);
    fill_input(&net, other);
    struct pool *pool = pool_new(2);
    struct cpu_stack stack;
    assert_int_equal(cpu_stack_init(&stack, shape, &net.weights, kern_find("c"), pool, NULL), UTTER_OK);
    struct cpu_scratch *scratch = cpu_scratch_new(&shape, 1, 2, N_POSITIONS, 2);
    struct cpu_cache first = cache_new(shape, N_POSITIONS), second = cache_new(shape, N_POSITIONS);
    for (int i = 0; i < N_POSITIONS; i++) {
        int behind = i - 5; /* the second sequence has the same input, five steps later */
        struct cpu_column columns[2] = {{&second, behind, NULL}, {&first, i, NULL}};
        int both = behind >= 0;
        memcpy(pair, other + (both ? behind : i) * width, (size_t)width * 4);
        memcpy(pair + width, other + i * width, (size_t)width * 4);
        cpu_stack_run(&stack, pair, columns + !both, 1 + both, scratch, NULL, NULL);
        assert_memory_equal(pair + both * width, alone + i * width, (size_t)width * 4);
        if (both) {
            assert_memory_equal(pair, alone + behind * width, (size_t)width * 4);
        }
    }
    cache_free(&first);
    cache_free(&second);
    cpu_scratch_free(scratch);
    cpu_stack_fini(&stack);
    pool_free(pool);
    net_free(&net);
}

struct seen {
    int n_calls;
    float last[MAX_WIDTH * 2];
};

static void look(void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct seen *seen = user;
    assert_string_equal(name, "a stack");
    assert_int_equal(index, seen->n_calls++);
    assert_int_equal(rows, 2);
    memcpy(seen->last, data, (size_t)(rows * cols) * 4);
}

static void test_tap(void **state)
{
    (void)state;
    struct net net = net_new(true);
    const struct stack_config *shape = &net.shape;
    struct pool *pool = pool_new(1);
    struct cpu_stack stack;
    assert_int_equal(cpu_stack_init(&stack, shape, &net.weights, kern_find("c"), pool, NULL), UTTER_OK);
    struct cpu_scratch *scratch = cpu_scratch_new(&shape, 1, 2, N_POSITIONS, 1);
    struct cpu_cache cache = cache_new(shape, 20);
    struct cpu_column columns[2] = {{&cache, 0, NULL}, {&cache, 1, NULL}};
    struct seen seen = {0};
    struct cpu_tap tap = {look, &seen};
    float x[N_POSITIONS * MAX_WIDTH];
    fill_input(&net, x);
    cpu_stack_run(&stack, x, columns, 2, scratch, &tap, "a stack");
    assert_int_equal(seen.n_calls, shape->n_layers);
    assert_memory_equal(seen.last, x, (size_t)(2 * shape->width) * 4);
    cache_free(&cache);
    cpu_scratch_free(scratch);
    cpu_stack_fini(&stack);
    pool_free(pool);
    net_free(&net);
}

/* Against double, and the same bits in every table. */
static void test_norm(void **state)
{
    (void)state;
    enum { N = 203 };
    struct random random = {5, 0};
    float x[N], w[N], y[N], same[N], zero[3] = {0}, tiny[1] = {1e-3f};
    random_fill(&random, x, N, 2);
    random_fill(&random, w, N, 1);
    for (int k = 0; k < N_KERNELS; k++) {
        const struct kern *kern = kern_find(KERNELS[k]);
        for (int n = 1; kern && n <= N; n += n < 40 ? 1 : 163) {
            double sum = 0;
            for (int i = 0; i < n; i++) {
                sum += (double)x[i] * (double)x[i];
            }
            kern_c.norm(same, x, w, n, 1e-6f);
            kern->norm(y, x, w, n, 1e-6f);
            assert_memory_equal(y, same, (size_t)n * sizeof *y);
            for (int i = 0; i < n; i++) {
                double want = (double)w[i] * (double)x[i] / sqrt(sum / n + 1e-6);
                assert_true(fabs((double)y[i] - want) < 1e-6 * (fabs(want) + 1e-3));
            }
        }
    }
    kern_c.norm(y, zero, w, 3, 1e-6f);
    assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0);
    w[0] = 1;
    kern_c.norm(y, tiny, w, 1, 1e-6f); /* eps counts: x / sqrt(x^2 + 1e-6), x^2 = 1e-6 */
    assert_true(fabs((double)y[0] - sqrt(0.5)) < 1e-6);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct net net = net_new(false);
    const struct stack_config *shape = &net.shape;
    struct pool *pool = pool_new(1);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct cpu_stack stack;
        utter_status status = cpu_stack_init(&stack, shape, &net.weights, kern_find("c"), pool, NULL);
        struct cpu_scratch *scratch = cpu_scratch_new(&shape, 1, 4, 10, 2);
        assert_int_equal(support_failed(), status == UTTER_E_MEMORY || !scratch);
        cpu_scratch_free(scratch);
        cpu_stack_fini(&stack);
    }
    pool_free(pool);
    net_free(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_exact_window),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_same_bits_ring),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_tap),
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
