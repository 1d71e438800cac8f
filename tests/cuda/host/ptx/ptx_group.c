/* SPDX-License-Identifier: Apache-2.0
 * Products of four warps (wgmma): each warp has 16 rows in its registers, the columns stand in shared memory. On a
 * GPU they are made some time between their instruction and the wait for them; here at one of the two, by chance, all
 * that a warp has not made yet at once: so columns that are not there yet when the product is asked for show, and
 * those that are overwritten before it is waited for. Sums that are read before the wait are no numbers, where they
 * can be. */
#include "tests/cuda/host/ptx/ptx_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PRODUCTS = 24, /* not made yet */
    MOST_SUMS = 8,      /* not waited for */
    MOST_COLUMNS = 256,
    WINDOW = 0x3ffff /* bits of an address in a descriptor */
};

struct product {
    uint32_t a[4];
    uint64_t b;
    float *d;
    int n;
    bool more, transposed;
};

/* Of a thread. */
struct products {
    bool fenced; /* wgmma.fence since the sums were touched */
    int n_open;  /* products that are in no group yet */
    int n, n_sums;
    struct product of[MOST_PRODUCTS];
    const float *sums[MOST_SUMS];
};

static struct products *products_now(void)
{
    if (!host_now->kept[HOST_KEPT_PRODUCTS]) {
        host_now->kept[HOST_KEPT_PRODUCTS] = calloc(1, sizeof(struct products));
    }
    return (struct products *)host_now->kept[HOST_KEPT_PRODUCTS];
}

/* ---- Columns in shared memory ---- */

/* Where number k of column n lies: a 32-bit address without the bits that a descriptor lacks. Fields of a descriptor:
 * address, two distances, and the way in which pieces of 16 bytes change places (0: none, 1: in lines of 128 bytes).
 */
static uint32_t place_of(const struct product *p, int n, int k)
{
    const uint32_t start = (uint32_t)(p->b & 0x3fff) << 4,
                   leading = (uint32_t)(p->b >> 16 & 0x3fff) << 4,
                   stride = (uint32_t)(p->b >> 32 & 0x3fff) << 4;
    const uint32_t un = (uint32_t)n, uk = (uint32_t)k;
    uint32_t at;
    if (p->b >> 62 == 0) {
        return start + un / 8 * stride + uk / 8 * leading + un % 8 * 16 + uk % 8 * 2;
    }
    at = p->transposed ? start + un / 64 * leading + uk / 8 * stride + uk % 8 * 128 + un % 64 * 2
                       : start + un / 8 * stride + un % 8 * 128 + uk * 2;
    return at ^ (at >> 7 & 7) << 4;
}

/* Shared memory as a warp's last lane sees it. */
struct window {
    const unsigned char *base; /* of dynamic shared memory */
    uint32_t address;
};

static void read_columns(const struct product *p, const struct window *w, float *columns)
{
    for (int i = 0; i < 16 * p->n / 8; i++) { /* pieces: eight numbers beside each other */
        const int n = p->transposed ? i / 16 * 8 : i / 2, k = p->transposed ? i % 16 : i % 2 * 8;
        const int step = p->transposed ? 1 : p->n;
        uint16_t halves[8];
        memcpy(halves, w->base + ((place_of(p, n, k) - w->address) & WINDOW), sizeof halves);
        for (int e = 0; e < 8; e++) {
            const uint32_t bits = (uint32_t)halves[e] << 16;
            memcpy(&columns[k * p->n + n + e * step], &bits, 4);
        }
    }
}

/* All that the product reads lies in the block's memory: a piece of 16 bytes is looked at by one lane, and told to
 * strict.c as its read. */
static void check_columns(const struct product *p)
{
    const uint32_t high = host_shared_address(host_dynamic_shared()) & ~(uint32_t)WINDOW;
    const int n_pieces = 16 * p->n / 8;
    if (p->b >> 62 > 1 || (p->transposed && p->b >> 62 == 0)) {
        host_finding(
            "wgmma: a descriptor %016llx that the bench does not know", (unsigned long long)p->b);
        host_trap("wgmma");
    }
    for (int i = host_now->lane; i < n_pieces; i += HOST_WARP) {
        const int n = p->transposed ? i / 16 * 8 : i / 2, k = p->transposed ? i % 16 : i % 2 * 8;
        const void *piece = host_shared_pointer(high | place_of(p, n, k), 16);
        (void)piece;
        strict_read(piece, 16, STRICT_ANY, STRICT_CTA);
    }
}

/* ---- Products of a warp ---- */

/* of[lane]: the same product, as each lane has it. */
static void make_product(const struct product *const of[HOST_WARP], const struct window *w)
{
    static float columns[16 * MOST_COLUMNS], sums[16 * MOST_COLUMNS];
    uint32_t a[HOST_WARP][4];
    float rows[16][16];
    const int n = of[0]->n;
    read_columns(of[0], w, columns);
    for (int lane = 0; lane < HOST_WARP; lane++) {
        const float *d = of[lane]->d;
        float *row = sums + lane / 4 * n + lane % 4 * 2;
        memcpy(a[lane], of[lane]->a, sizeof a[lane]);
        for (int i = 0; i < n / 2; i++) {
            row[i / 4 * 8 + i % 2 + i % 4 / 2 * 8 * n] = of[0]->more ? d[i] : 0.0f;
        }
    }
    matrix_rows(a, rows);
    matrix_product(rows, columns, n, sums);
    for (int lane = 0; lane < HOST_WARP; lane++) {
        const float *row = sums + lane / 4 * n + lane % 4 * 2;
        for (int i = 0; i < n / 2; i++) {
            of[lane]->d[i] = row[i / 4 * 8 + i % 2 + i % 4 / 2 * 8 * n];
        }
    }
}

struct asks {
    const struct products *all;
    bool now;
};

static void make_all(uint32_t mask, const void *in, void *out, const void *same)
{
    const struct asks *lanes = (const struct asks *)in;
    bool *made = (bool *)out;
    const bool now = lanes[0].now || lanes[0].all->n == MOST_PRODUCTS;
    (void)mask;
    for (int i = 0; i < lanes[0].all->n; i++) {
        const struct product *of[HOST_WARP], *first = &lanes[0].all->of[i];
        for (int lane = 0; lane < HOST_WARP; lane++) {
            of[lane] = &lanes[lane].all->of[i];
            if (lanes[lane].all->n != lanes[0].all->n || of[lane]->b != first->b ||
                of[lane]->n != first->n || of[lane]->more != first->more) {
                host_finding("wgmma: lane %d asks for another product than lane 0", lane);
                return;
            }
        }
        if (now) {
            make_product(of, (const struct window *)same);
        }
    }
    memset(made, now, HOST_WARP * sizeof *made);
}

/* What the warp has not made yet is made now, or it is left to later. */
static void make(struct products *all, const char *what, bool now)
{
    const struct asks asks = {all, now};
    const struct window window = {
        (const unsigned char *)host_dynamic_shared(), host_shared_address(host_dynamic_shared())};
    bool made;
    host_warp_do(what, 0xffffffffu, make_all, &asks, sizeof asks, &made, sizeof made, &window);
    if (made) {
        all->n = 0;
    }
}

/* ---- Instructions ---- */

static void needs_groups(void)
{
    host_needs(host_card()->code_specific, "wgmma");
}

void host_group_begin(void)
{
    needs_groups();
    host_team_barrier("wgmma.fence");
    products_now()->fenced = true;
}

/* Sums that nobody has waited for are not begun anew. */
static void note_sums(struct products *all, const float *d, bool more)
{
    for (int i = 0; i < all->n_sums; i++) {
        if (all->sums[i] == d) {
            if (!more) {
                host_finding(
                    "wgmma: sums at %p are begun anew, and were not waited for", (const void *)d);
            }
            return;
        }
    }
    if (all->n_sums < MOST_SUMS) {
        all->sums[all->n_sums++] = d;
    }
}

void host_group_mma(float *d, int n, const void *a, uint64_t b, bool more, bool transposed)
{
    needs_groups();
    struct products *all = products_now();
    struct product *p = &all->of[all->n];
    if (!all->fenced) {
        host_finding("wgmma without wgmma.fence behind the last wait");
    }
    note_sums(all, d, more);
    *p = (struct product){.b = b, .d = d, .n = n, .more = more, .transposed = transposed};
    memcpy(p->a, a, sizeof p->a);
    check_columns(p);
    for (int i = 0; !more && i < n / 2; i++) {
        d[i] = NAN; /* until it is made */
    }
    all->n++;
    all->n_open++;
    make(all, "wgmma.mma_async", host_chance(2) == 0);
}

void host_group_end(void)
{
    needs_groups();
    host_team_barrier("wgmma.commit_group");
    products_now()->n_open = 0;
}

void host_group_wait(void)
{
    needs_groups();
    struct products *all = products_now();
    if (all->n_open > 0) {
        host_finding(
            "wgmma.wait_group: %d products are in no group (no wgmma.commit_group)", all->n_open);
    }
    make(all, "wgmma.wait_group", true);
    all->n_sums = 0;
    all->fenced = false;
    strict_warp_sync(0xffffffffu);
}
