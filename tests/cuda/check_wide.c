/* SPDX-License-Identifier: Apache-2.0
 * Products of many vectors against the kernel of few vectors, bit by bit, and against plain arithmetic in double
 * precision; and how long both take. Needs a GPU; goes on after a failure. Usage: check_wide [-t] [-m NUMBER]
 * [-n MOST] [-r ROWS] [-o ORDERS]; -t: times too; -m: of one matrix; -n: of no more vectors; -r: of no more rows; -o:
 * so often. Ends with `N passed, N failed`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "cuda/prompt/wide.h"

enum { MOST = 512, WEIGHTS = 48 << 20, POOL = 4 * WEIGHTS, ROUNDS = 24 };

static int n_passed, n_failed;
static struct cuda_device device;
static struct cuda_queue queue;
static uint64_t state = 88172645463325252u;
static uint16_t *weights;      /* host: the first WEIGHTS bytes of the pool */
static unsigned char *pool;    /* device */
static float *x, *norm, *bias; /* host */
static float *x_at, *norm_at, *bias_at, *y_at, *scales_at;
static void *operand_at, *next_at;
static float *plain, *wide; /* host: results */

struct matrix {
    const char *name;
    int rows, cols;
    enum cuda_linear_kind kind;
    bool norm;
};

static enum cuda_format format; /* of the pool */

static const struct matrix matrices[] = {
    {"odd", 88, 80, CUDA_STORE, false},
    {"odd gate", 176, 80, CUDA_GATE, true},
    {"0.6b qkv", 4096, 1024, CUDA_STORE, true},
    {"0.6b o", 1024, 2048, CUDA_ADD, false},
    {"0.6b gate", 6144, 1024, CUDA_GATE, true},
    {"0.6b down", 1024, 3072, CUDA_ADD, false},
    {"head", 2048, 1024, CUDA_STORE, true},
    {"text", 2048, 2048, CUDA_STORE_SILU, false},
    {"1.7b qkv", 4096, 2048, CUDA_STORE, true},
    {"1.7b o", 2048, 2048, CUDA_ADD, false},
    {"1.7b gate", 12288, 2048, CUDA_GATE, true},
    {"1.7b down", 2048, 6144, CUDA_ADD, false},
};
enum { GATE = 4, N_MATRICES = sizeof matrices / sizeof *matrices, MOST_COLS = 6144, MOST_ROWS = 12288 };

static void result(bool good, const char *what, double value)
{
    printf("%s %s: %.3g\n", good ? "ok  " : "FAIL", what, value);
    fflush(stdout);
    n_passed += good;
    n_failed += !good;
}

static bool fine(cudaError_t status, const char *what)
{
    if (status != cudaSuccess) {
        printf("FAIL %s: %s\n", what, cudaGetErrorString(status));
        n_failed++;
    }
    return status == cudaSuccess;
}

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* ---- Data ---- */

static void *room(size_t bytes)
{
    void *at = NULL;
    if (cudaMalloc(&at, bytes) != cudaSuccess) {
        printf("FAIL no device memory\n");
        exit(2);
    }
    cudaMemset(at, 0xff, bytes); /* no number, where nobody writes */
    return at;
}

static void *sent(const void *data, size_t bytes)
{
    void *at = room(bytes);
    cudaMemcpy(at, data, bytes, cudaMemcpyHostToDevice);
    return at;
}

static void make_data(void)
{
    weights = malloc(WEIGHTS);
    x = malloc(sizeof *x * MOST * MOST_COLS);
    norm = malloc(sizeof *norm * MOST_COLS);
    bias = malloc(sizeof *bias * MOST_ROWS);
    plain = malloc(sizeof *plain * MOST * MOST_ROWS);
    wide = malloc(sizeof *wide * MOST * MOST_ROWS);
    for (int i = 0; i < WEIGHTS / 2; i++) {
        weights[i] = bf16_from_float((float)(uniform() + uniform() + uniform() - 1.5) * 0.06f);
    }
    for (int i = 0; i < MOST * MOST_COLS; i++) {
        x[i] = (float)((uniform() + uniform() - 1) * (1 + i % 3));
    }
    for (int i = 0; i < MOST_COLS; i++) {
        norm[i] = (float)(0.8 + 0.4 * uniform());
    }
    for (int i = 0; i < MOST_ROWS; i++) {
        bias[i] = (float)(uniform() - 0.5);
    }
    pool = room(POOL);
    for (int i = 0; i < POOL / WEIGHTS; i++) {
        cudaMemcpy(pool + (size_t)i * WEIGHTS, weights, WEIGHTS, cudaMemcpyHostToDevice);
    }
    x_at = sent(x, sizeof *x * MOST * MOST_COLS);
    norm_at = sent(norm, sizeof *norm * MOST_COLS);
    bias_at = sent(bias, sizeof *bias * MOST_ROWS);
    y_at = room(sizeof *y_at * MOST * MOST_ROWS);
    scales_at = room(sizeof *scales_at * MOST);
    operand_at = room(cuda_wide_packed_bytes(MOST, MOST_COLS));
    next_at = room(cuda_wide_bytes(MOST, MOST_ROWS));
    cudaDeviceSynchronize();
}

/* Element (row, col) of the tiles, by device/weights.h. */
static double weight(int n_k, int row, int col)
{
    int r = row % 16, c = col % 16, lane = r % 8 * 4 + c % 8 / 2, word = r / 8 + c / 8 * 2;
    return (double)bf16_to_float(weights[((size_t)(row / 16) * (size_t)n_k + (size_t)col / 16) * 256 +
                                         (size_t)(lane * 8 + word * 2 + c % 2)]);
}

static int tiles_of(int n)
{
    return (n + CUDA_TILE - 1) / CUDA_TILE;
}

/* Units of packed weights over the whole pool; it has no tiles of bf16 from then on. */
static void pack_pool(void)
{
    const size_t codes = format == CUDA_Q8 ? CUDA_Q8_CODES : CUDA_Q4_CODES,
                 unit = codes + CUDA_UNIT_SCALES;
    unsigned char *at = (unsigned char *)weights;
    for (size_t i = 0; i + unit <= WEIGHTS; i += unit) {
        for (size_t k = 0; k < codes; k++) {
            at[i + k] = (unsigned char)(uniform() * 256);
        }
        for (size_t k = codes; k < unit; k += 2) {
            const uint16_t scale =
                bf16_from_float((float)(1 + uniform()) * (format == CUDA_Q8 ? 1e-4f : 1e-3f));
            memcpy(at + i + k, &scale, sizeof scale);
        }
    }
    cudaMemcpy(pool, weights, WEIGHTS, cudaMemcpyHostToDevice);
    cudaDeviceSynchronize();
}

static struct cuda_linear linear_of(const struct matrix *m, int n)
{
    struct cuda_linear p = {
        .matrix = {pool, m->rows, format, m->cols, tiles_of(m->rows), tiles_of(m->cols)},
        .kind = m->kind,
        .n_vectors = n,
        .x = x_at,
        .x_stride = MOST_COLS,
        .norm = m->norm ? norm_at : NULL,
        .eps = 1e-6f,
        .bias = m->norm || m->kind == CUDA_ADD ? NULL : bias_at,
        .y = y_at,
        .y_stride = MOST_ROWS};
    return p;
}

static struct cuda_wide wide_of(const struct matrix *m, int n, int shape)
{
    struct cuda_wide w = {.linear = linear_of(m, n),
        .operand = operand_at,
        .scales = scales_at,
        .arch = &device.arch,
        .shape = shape};
    return w;
}

/* ---- Agreement ---- */

static bool fetch(float *to)
{
    return fine(cudaStreamSynchronize(queue.stream), "run") &&
           fine(cudaMemcpy(to, y_at, sizeof *to * MOST * MOST_ROWS, cudaMemcpyDeviceToHost), "fetch");
}

static void clear(void)
{
    cudaMemset(y_at, 0, sizeof *y_at * MOST * MOST_ROWS);
    cudaDeviceSynchronize();
}

static double dot(const struct matrix *m, int row, const float *of, double scale)
{
    double sum = 0;
    for (int k = 0; k < m->cols; k++) {
        double v = m->norm ? (double)of[k] * (double)norm[k] * scale : (double)of[k];
        sum += weight(tiles_of(m->cols), row, k) * v;
    }
    return sum;
}

static double expected(const struct matrix *m, int row, const float *of)
{
    double squares = 0;
    for (int k = 0; k < m->cols; k++) {
        squares += (double)of[k] * (double)of[k];
    }
    double scale = 1 / sqrt(squares / m->cols + 1e-6);
    if (m->kind == CUDA_GATE) {
        double gate = dot(m, row / 8 * 16 + row % 8, of, scale),
               up = dot(m, row / 8 * 16 + 8 + row % 8, of, scale);
        return gate / (1 + exp(-gate)) * up;
    }
    double v = dot(m, row, of, scale) + (m->norm || m->kind == CUDA_ADD ? 0 : (double)bias[row]);
    return m->kind == CUDA_STORE_SILU ? v / (1 + exp(-v)) : v;
}

/* The largest error of some outputs by the size of the results. */
static double error_of(const struct matrix *m, const float *y, int n)
{
    int rows = m->kind == CUDA_GATE ? m->rows / 2 : m->rows;
    double most = 0, size = 0;
    for (int v = 0; v < n; v += 1 + n / 3) {
        for (int r = 0; r < rows; r += 1 + rows / 19) {
            double e = expected(m, r, x + (size_t)v * MOST_COLS),
                   d = fabs((double)y[(size_t)v * MOST_ROWS + (size_t)r] - e);
            most = d <= most ? most : d;
            size = fabs(e) > size ? fabs(e) : size;
        }
    }
    return most / size;
}

static void say_difference(const struct matrix *m, int n, int shape)
{
    for (size_t i = 0; i < (size_t)MOST * MOST_ROWS; i++) {
        if (memcmp(&plain[i], &wide[i], sizeof plain[i]) != 0) {
            printf("     %s, %d vectors, shape %d: first at vector %d row %d: %.9g, few vectors %.9g\n",
                m->name, n, shape, (int)(i / MOST_ROWS), (int)(i % MOST_ROWS), (double)wide[i],
                (double)plain[i]);
            return;
        }
    }
}

/* No more rows of a matrix than these, whole tiles of all kernels. */
static struct matrix upper(const struct matrix *m, int most_rows)
{
    struct matrix cut = *m;
    cut.rows = m->rows < most_rows ? m->rows : most_rows;
    return cut;
}

static void check_matrix(const struct matrix *m, int most)
{
    static const int counts[] = {1, 3, 16, 37, 64, 400};
    bool same = true;
    double worst = 0;
    char what[96];
    for (size_t c = 0; c < sizeof counts / sizeof *counts && counts[c] <= most; c++) {
        const struct cuda_linear p = linear_of(m, counts[c]);
        clear();
        if (!fine(cuda_linear_queue(&queue, &p), m->name) || !fetch(plain)) {
            return;
        }
        for (int shape = -1; shape < CUDA_WIDE_SHAPES; shape++) {
            const struct cuda_wide w = wide_of(m, counts[c], shape);
            clear();
            cudaError_t status = cuda_wide_prepare(&queue, &w);
            status = status ? status : cuda_wide_multiply(&queue, &w);
            if (shape >= 0 && status == cudaErrorInvalidValue) {
                continue; /* it suits not every matrix and device */
            }
            if (!fine(status, m->name) || !fetch(wide)) {
                return;
            }
            if (memcmp(plain, wide, sizeof *plain * MOST * MOST_ROWS) != 0) {
                same = false;
                say_difference(m, counts[c], shape);
            }
        }
        double error = format == CUDA_BF16 ? error_of(m, wide, counts[c]) : 0; /* check_steps */
        worst = error <= worst ? worst : error;
    }
    snprintf(what, sizeof what, "%s%s, %d x %d: %s; largest error", m->name,
        format == CUDA_Q8   ? " in 8 bits"
        : format == CUDA_Q4 ? " in 4 bits"
                            : "",
        m->rows, m->cols, same ? "the same bits" : "OTHER BITS");
    result(same && worst < 1e-5, what, worst);
}

/* What GATE leaves as the next operand is what prepare makes of its result. */
static void check_next(const struct matrix *m, int n)
{
    const size_t bytes = cuda_wide_bytes(n / 4 * 4, m->rows / 2);
    struct matrix next = {"next", 64, m->rows / 2, CUDA_STORE, false};
    struct cuda_wide w = wide_of(m, n, -1), after = wide_of(&next, n, -1);
    after.linear.x = y_at;
    after.linear.x_stride = MOST_ROWS;
    void *a = malloc(bytes), *b = malloc(bytes);
    bool good =
        fine(cuda_wide_prepare(&queue, &w), "prepare") && fine(cuda_wide_multiply(&queue, &w), "gate");
    w.next = next_at;
    w.next_k_tiles = tiles_of(m->rows / 2);
    good = good && fine(cuda_wide_multiply(&queue, &w), "gate") &&
           fine(cuda_wide_prepare(&queue, &after), "prepare") &&
           fine(cudaStreamSynchronize(queue.stream), "run") &&
           fine(cudaMemcpy(a, next_at, bytes, cudaMemcpyDeviceToHost), "fetch") &&
           fine(cudaMemcpy(b, operand_at, bytes, cudaMemcpyDeviceToHost), "fetch");
    result(good && memcmp(a, b, bytes) == 0, "the operand that a gate leaves", 0);
    free(a);
    free(b);
}

/* ---- Speed ---- */

enum way { FEW_VECTORS, PREPARE, MULTIPLY, BOTH };

static cudaError_t queue_way(enum way way, const struct matrix *m, int n, int shape)
{
    const size_t bytes = (size_t)tiles_of(m->rows) * (size_t)tiles_of(m->cols) * CUDA_TILE_BYTES;
    cudaError_t status = cudaSuccess;
    for (int i = 0; i < ROUNDS && status == cudaSuccess; i++) {
        struct cuda_wide w = wide_of(m, n, shape);
        w.linear.matrix.tiles = pool + (size_t)i % (POOL / bytes) * bytes;
        if (way == FEW_VECTORS) {
            status = cuda_linear_queue(&queue, &w.linear);
        }
        if (way == PREPARE || way == BOTH) {
            status = cuda_wide_prepare(&queue, &w);
        }
        if ((way == MULTIPLY || way == BOTH) && status == cudaSuccess) {
            status = cuda_wide_multiply(&queue, &w);
        }
    }
    return status;
}

/* Microseconds of one product within a graph, weights from memory. */
static double time_way(enum way way, const struct matrix *m, int n, int shape)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaEvent_t from, to;
    float ms = 0, best = 1e9f;
    cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeThreadLocal);
    cudaError_t status = queue_way(way, m, n, shape);
    cudaStreamEndCapture(queue.stream, &graph);
    if (status != cudaSuccess || cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) {
        cudaGetLastError();
        return -1;
    }
    cudaEventCreate(&from);
    cudaEventCreate(&to);
    for (int i = 0; i < 4; i++) {
        cudaEventRecord(from, queue.stream);
        cudaGraphLaunch(exec, queue.stream);
        cudaEventRecord(to, queue.stream);
        cudaStreamSynchronize(queue.stream);
        cudaEventElapsedTime(&ms, from, to);
        best = ms < best ? ms : best;
    }
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    return 1e3 * (double)best / ROUNDS;
}

static void time_matrix(const struct matrix *m)
{
    static const int counts[] = {8, 16, 32, 64, 128, 256, 400};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const int n = counts[c];
        double flop = 4.0 * m->rows * m->cols * n, both = time_way(BOTH, m, n, -1);
        printf("%-10s %3d vectors: few %6.1f us | prepare %4.1f, shapes", m->name, n,
            time_way(FEW_VECTORS, m, n, 0), time_way(PREPARE, m, n, 0));
        for (int shape = -1; shape < CUDA_WIDE_SHAPES; shape++) {
            printf(" %6.1f", time_way(MULTIPLY, m, n, shape));
        }
        printf(" | both %6.1f us, %5.1f TFLOP/s\n", both, 1e-6 * flop / both);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    utter_error error;
    int only = -1, most = MOST;
    int most_rows = MOST_ROWS, orders = 1;
    bool times = false;
    for (int i = 1; i < argc; i++) {
        times = times || strcmp(argv[i], "-t") == 0;
        only = strcmp(argv[i], "-m") == 0 && i + 1 < argc ? atoi(argv[i + 1]) : only;
        most = strcmp(argv[i], "-n") == 0 && i + 1 < argc ? atoi(argv[i + 1]) : most;
        most_rows = strcmp(argv[i], "-r") == 0 && i + 1 < argc ? atoi(argv[i + 1]) : most_rows;
        orders = strcmp(argv[i], "-o") == 0 && i + 1 < argc ? atoi(argv[i + 1]) : orders;
    }
    if (cuda_device_open(&device, 0, &error) ||
        cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking) != cudaSuccess) {
        printf("FAIL %s\n0 passed, 1 failed\n", error.text);
        return 1;
    }
    queue.overlaps = device.arch.overlaps;
    fine(cuda_wide_open(&device.arch), "prepare the kernels");
    make_data();
    for (int i = 0; i < N_MATRICES * orders; i++) {
        if (only < 0 || i % N_MATRICES == only) {
            const struct matrix m = upper(&matrices[i % N_MATRICES], most_rows);
            check_matrix(&m, most);
        }
    }
    if (only < 0 || only == GATE) {
        const struct matrix m = upper(&matrices[GATE], most_rows);
        check_next(&m, most < 64 ? most : 64);
    }
    for (int i = 2; times && i < N_MATRICES; i++) {
        time_matrix(&matrices[i]);
    }
    for (format = CUDA_Q8; format <= CUDA_Q4; format++) {
        pack_pool();
        for (int i = 0; i < N_MATRICES * orders; i++) {
            if (only < 0 || i % N_MATRICES == only) {
                const struct matrix m = upper(&matrices[i % N_MATRICES], most_rows);
                check_matrix(&m, most);
            }
        }
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0;
}
