/* SPDX-License-Identifier: Apache-2.0
 * Which kernels run: the choice by name or by what the machine and its operating system offer; and
 * matrix products spread over the pool. */
#include "cpu/kernels/kern.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "base/memory.h"
#include "base/minmax.h"
#include "base/threads.h"

#if defined(__x86_64__)
extern const struct kern kern_avx2, kern_avxvnni, kern_avx512, kern_vnni, kern_amx;

/* The processor has tiles with products of bf16 and of bytes on them, and the operating system lets this process use
 * them: it must be asked, because a thread that does has 8 KB more to be saved. It says the same each time. */
static bool has_tiles(void)
{
    enum {
        ARCH_REQ_XCOMP_PERM = 0x1023,
        TILE_DATA = 18,
        AMX_ALL = 1 << 22 | 1 << 24 | 1 << 25 /* bf16, tiles, int8 */
    };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_ALL) == AMX_ALL &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}
#endif

#if defined(__aarch64__)
extern const struct kern kern_neon, kern_dotprod, kern_i8mm;

/* Linux's names of what the processor has, which older headers lack. */
enum {
    HAS_DOTPROD = 1 << 20, /* in AT_HWCAP */
    HAS_I8MM = 1 << 13,    /* in AT_HWCAP2 */
};
#endif

/* __builtin_cpu_supports asks the operating system too (XGETBV): a set whose registers are not saved does not count. */
static bool can_run(const struct kern *kern)
{
    if (kern == &kern_c) {
        return true;
    }
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                __builtin_cpu_supports("f16c");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
    return kern == &kern_avx2      ? avx2
           : kern == &kern_avxvnni ? avx2 && __builtin_cpu_supports("avxvnni")
           : kern == &kern_avx512  ? avx512
           : kern == &kern_vnni    ? vnni
                                   : vnni && has_tiles();
#elif defined(__aarch64__)
    bool dotprod = getauxval(AT_HWCAP) & HAS_DOTPROD;
    return kern == &kern_dotprod ? dotprod
           : kern == &kern_i8mm  ? dotprod && getauxval(AT_HWCAP2) & HAS_I8MM
                                 : true; /* NEON: every machine of this kind */
#else
    return false;
#endif
}

static const struct kern *const tables[] = {
    &kern_c,
#if defined(__x86_64__)
    &kern_avx2,
    &kern_avxvnni,
    &kern_avx512,
    &kern_vnni,
    &kern_amx,
#elif defined(__aarch64__)
    &kern_neon,
    &kern_dotprod,
    &kern_i8mm,
#endif
};
enum { N_TABLES = sizeof tables / sizeof *tables };

const struct kern *kern_find(const char *name)
{
    for (int i = N_TABLES - 1; i >= 0; i--) {
        if ((!name || strcmp(name, tables[i]->name) == 0) && can_run(tables[i])) {
            return tables[i];
        }
    }
    return NULL;
}

const char *kern_all(void)
{
#if defined(__x86_64__)
    /* Each set contains the one before it; but AVX-VNNI, which some machines have without AVX-512 and others not beside
     * it. */
    static const char *const names[][2] = {{"c", "c"}, {"c, avx2", "c, avx2, avxvnni"},
        {"c, avx2, avx512", "c, avx2, avxvnni, avx512"},
        {"c, avx2, avx512, avx512vnni", "c, avx2, avxvnni, avx512, avx512vnni"},
        {"c, avx2, avx512, avx512vnni, amx", "c, avx2, avxvnni, avx512, avx512vnni, amx"}};
    static const struct kern *const sets[] = {&kern_avx2, &kern_avx512, &kern_vnni, &kern_amx};
    int n = 0;
    while (n < (int)(sizeof sets / sizeof *sets) && can_run(sets[n])) {
        n++;
    }
    return names[n][can_run(&kern_avxvnni)];
#elif defined(__aarch64__)
    return can_run(&kern_i8mm) ? "c, neon, dotprod, i8mm"
           : can_run(&kern_dotprod) ? "c, neon, dotprod"
                                    : "c, neon";
#else
    return "c";
#endif
}

static kern_matmul_fn *matmul_of(const struct kern *kern, const struct weight *w)
{
    return w->type == DTYPE_BF16  ? kern->matmul_bf16
           : w->type == DTYPE_F16 ? kern->matmul_f16
                                  : kern->matmul_f32;
}

int64_t kern_integer_place(bool by_time, int n_groups, int taps, int64_t o, int i, int j)
{
    enum { HALF = KERN_INTEGER_GROUP / 2, TILES = KERN_INTEGER_GROUP / KERN_INTEGER_ROWS };
    int64_t o_group = o / KERN_INTEGER_GROUP;
    int g = i / KERN_INTEGER_GROUP, i_in = i % KERN_INTEGER_GROUP, o_in = (int)(o % KERN_INTEGER_GROUP);
    if (by_time) {
        int64_t step = (o_group * n_groups + g) * taps + j;
        return ((step * HALF + i_in % HALF) * KERN_INTEGER_GROUP + o_in) * 2 + i_in / HALF;
    }
    int n_visit = kern_integer_visit(taps), g0 = g / n_visit * n_visit, n_g = n_groups - g0;
    n_g = min(n_g, n_visit);
    int64_t tile =
        (o_group * n_groups + g0) * TILES + (int64_t)(o_in / KERN_INTEGER_ROWS) * n_g + g - g0;
    return (((tile * taps + j) * HALF + i_in / 2) * KERN_INTEGER_ROWS + o_in % KERN_INTEGER_ROWS) * 2 +
           i_in % 2;
}

bool kern_rounded_init(struct kern_rounded *room, int64_t n_k, int n_columns)
{
    size_t n_groups = (size_t)pack_groups(n_k), n = n_groups * (size_t)n_columns;
    room->codes = memory_new(n * PACK_GROUP, sizeof *room->codes);
    room->bytes = memory_new(n * PACK_GROUP, sizeof *room->bytes);
    room->scales = memory_new(n, sizeof *room->scales);
    room->zeros = memory_new(n, sizeof *room->zeros);
    return room->codes && room->bytes && room->scales && room->zeros;
}

void kern_rounded_fini(struct kern_rounded *room)
{
    memory_free(room->codes);
    memory_free(room->bytes);
    memory_free(room->scales);
    memory_free(room->zeros);
    *room = (struct kern_rounded){0};
}

struct product_job {
    const struct kern *kern;
    const struct kern_product *products;
    int n_products;
    int64_t n_rows; /* of all products */
    const float *x;
    int64_t x_stride;
    int n_c;
    const struct kern_rounded *room;
    /* Two products, of which the second one gates the first: rows of both go to the same part */
    bool gated;
};

static void product_rows(
    const struct product_job *job, const struct kern_product *p, int64_t r0, int64_t r1)
{
    if (pack_is(p->w->type)) {
        kern_packed_fn *packed = p->w->type == DTYPE_Q8 ? job->kern->packed_q8 : job->kern->packed_q4;
        packed(p->y, p->y_stride, p->w, r0, r1, job->room, job->n_c);
    } else {
        matmul_of(job->kern, p->w)(
            p->y, p->y_stride, p->w->data, p->w->cols, r0, r1, job->x, job->x_stride, job->n_c);
    }
}

/* The rows of a product as the parts count them, in whole blocks. */
static int64_t counted_rows(const struct weight *w)
{
    return pack_blocks(w->rows) * PACK_ROWS;
}

/* The rows of all products, laid end to end, are cut into parts. */
static void product_part(void *arg, int part, int n_parts)
{
    const struct product_job *job = arg;
    int64_t begin, end, first = 0;
    pool_slice(job->n_rows, PACK_ROWS, part, n_parts, &begin, &end);
    for (int i = 0; i < job->n_products && first < end; i++) {
        const struct kern_product *p = &job->products[i];
        int64_t r0 = begin > first ? begin - first : 0, r1 = min(end - first, p->w->rows);
        if (r0 < r1) {
            product_rows(job, p, r0, r1);
        }
        first += counted_rows(p->w);
    }
}

static void gated_part(void *arg, int part, int n_parts)
{
    const struct product_job *job = arg;
    const struct kern_product *gate = &job->products[0], *up = &job->products[1];
    int64_t begin, end;
    pool_slice(gate->w->rows, PACK_ROWS, part, n_parts, &begin, &end);
    if (begin < end) {
        product_rows(job, gate, begin, end);
        product_rows(job, up, begin, end);
    }
    for (int64_t c = 0; c < job->n_c && begin < end; c++) {
        job->kern->silu_mul(
            gate->y + c * gate->y_stride + begin, up->y + c * up->y_stride + begin, end - begin);
    }
}

static void round_part(void *arg, int part, int n_parts)
{
    const struct product_job *job = arg;
    const struct weight *w = job->products[0].w;
    kern_round_fn *round = w->type == DTYPE_Q8 ? job->kern->round_q8 : job->kern->round_q4;
    int64_t begin, end;
    pool_slice(job->n_c, 1, part, n_parts, &begin, &end);
    for (int64_t c = begin; c < end; c++) {
        round(job->room, (int)c, job->x + c * job->x_stride, w->cols);
    }
}

static void run_products(struct product_job job, struct pool *pool, struct kern_rounded *room)
{
    const struct kern_product *products = job.products;
    const int n_c = job.n_c;
    /* Below this many products of two numbers a part, waking another thread costs more than it gives. */
    const int64_t part_work = 1 << 16, n_k = products[0].w->cols, most = (int64_t)pool_size(pool) * 4;
    for (int i = 0; i < job.n_products; i++) {
        job.n_rows += counted_rows(products[i].w);
        job.room = pack_is(products[i].w->type) ? room : job.room;
    }
    if (job.room) {
        enum { ALONE = 4 }; /* so few columns are rounded sooner than another thread is there */
        room->n_groups = pack_groups(n_k);
        if (n_c <= ALONE) {
            round_part(&job, 0, 1);
        } else {
            pool_run(pool, round_part, &job, n_c < most ? n_c : (int)most);
        }
    }
    int64_t n_parts = job.n_rows * n_k * n_c / part_work;
    n_parts = min(n_parts, most);
    void (*part)(void *, int, int) = job.gated ? gated_part : product_part;
    if (n_parts <= 1) {
        part(&job, 0, 1);
    } else {
        pool_run(pool, part, &job, (int)n_parts);
    }
}

void kern_products(const struct kern *kern, struct pool *pool, const struct kern_product *products,
    int n, const float *x, int64_t x_stride, int n_c, struct kern_rounded *room)
{
    run_products((struct product_job){kern, products, n, 0, x, x_stride, n_c, NULL, false}, pool, room);
}

void kern_gated(const struct kern *kern, struct pool *pool, const struct kern_product *products,
    const float *x, int64_t x_stride, int n_c, struct kern_rounded *room)
{
    run_products((struct product_job){kern, products, 2, 0, x, x_stride, n_c, NULL, true}, pool, room);
}

void kern_matmul(const struct kern *kern, struct pool *pool, float *y, int64_t y_stride,
    const struct weight *w, const float *x, int64_t x_stride, int n_c, struct kern_rounded *room)
{
    struct kern_product product = {y, y_stride, w};
    kern_products(kern, pool, &product, 1, x, x_stride, n_c, room);
}
