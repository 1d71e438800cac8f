/* SPDX-License-Identifier: Apache-2.0
 * Where threads wait for each other: at barriers of a block, a cluster, four warps; lanes of a warp in one
 * instruction. */
#include "tests/cuda/host/scheduler.h"

#include <string.h>

/* Objects of strict: a phase and the next one are two, or what is released to one would be known through the other.
 * */
static const void *phase_of(const int *phase)
{
    return (const char *)phase + (*phase & 1);
}

/* ---- Blocks ---- */

int host_block_barrier(int id, int n, bool yes)
{
    struct fiber *f = fiber_now;
    struct block *b = f->of;
    struct barrier *at = &b->barriers[id];
    if (at->here > 0 && at->n != n) {
        host_finding("barrier %d of a block: %d threads for one, %d for another", id, at->n, n);
    }
    if (n % HOST_WARP != 0 || n > b->of->n_warps * HOST_WARP) {
        host_finding("barrier %d of a block: %d threads", id, n);
    }
    host_stores_seen();
    strict_release_to(phase_of(&at->phase));
    const int phase = at->phase;
    at->n = n;
    at->yes += yes;
    if (++at->here >= (n < b->of->n_threads ? n : b->of->n_threads)) {
        at->here = 0;
        at->result = at->yes;
        at->yes = 0;
        at->phase++;
        for (int i = 0; i < b->of->n_threads; i++) {
            if (b->fibers[i].barrier == id) {
                b->fibers[i].barrier = -1;
                fiber_wake(&b->fibers[i]);
            }
        }
    } else {
        f->barrier = id;
        f->waits_for = "a barrier of the block";
        fiber_leave(FIBER_MEETS);
    }
    strict_acquire_from((const char *)&at->phase + (phase & 1));
    return at->result;
}

struct phase_wait {
    const int *phase;
    int before;
};

static bool phase_over(const void *what)
{
    const struct phase_wait *w = what;
    return *w->phase != w->before;
}

void host_team_barrier(const char *what)
{
    struct team *team = &fiber_now->of->teams[host_now->warp / 4];
    const struct phase_wait wait = {&team->phase, team->phase};
    if (++team->here == 4 * HOST_WARP) {
        team->here = 0;
        team->phase++;
    } else {
        host_wait_until(phase_over, &wait, what);
    }
}

/* ---- Clusters ---- */

void host_cluster_arrive(void)
{
    struct cluster *c = fiber_now->of->cluster;
    host_stores_seen();
    strict_release_to(phase_of(&c->phase));
    fiber_now->cluster_phase = c->phase;
    if (++c->here == run_now()->cluster * run_now()->n_threads) {
        c->here = 0;
        c->phase++;
    }
}

void host_cluster_wait(void)
{
    struct cluster *c = fiber_now->of->cluster;
    const struct phase_wait wait = {&c->phase, fiber_now->cluster_phase};
    host_wait_until(phase_over, &wait, "the barrier of the cluster");
    strict_acquire_from((const char *)&c->phase + (wait.before & 1));
}

/* ---- Warps ---- */

static struct warp_meeting *find_meeting(struct warp *w, uint32_t mask)
{
    struct warp_meeting *free = NULL;
    for (int i = 0; i < N_WARP_MEETINGS; i++) {
        struct warp_meeting *m = &w->barriers[i];
        if (m->mask == mask) {
            return m;
        }
        free = !free && m->mask == 0 ? m : free;
    }
    if (!free) {
        host_trap("more barriers in a warp than the bench knows");
    }
    *free = (struct warp_meeting){.mask = mask};
    return free;
}

static void make(const struct warp_meeting *m, host_warp_body *all, const void *same)
{
    _Alignas(64) unsigned char in[HOST_WARP][HOST_WARP_BYTES], out[HOST_WARP][HOST_WARP_BYTES];
    unsigned char *packed = &in[0][0];
    for (int i = 0; i < HOST_WARP; i++) {
        if (m->mask >> i & 1) {
            memcpy(packed + (size_t)i * m->bytes_in, m->in[i], m->bytes_in);
        } else {
            memset(packed + (size_t)i * m->bytes_in, 0, m->bytes_in);
        }
    }
    all(m->mask, in, out, same);
    for (int i = 0; i < HOST_WARP; i++) {
        if (m->mask >> i & 1 && m->bytes_out > 0) {
            memcpy(m->out[i], &out[0][0] + (size_t)i * m->bytes_out, m->bytes_out);
        }
    }
}

/* Lanes of the mask that the block has: the last warp may be short. */
static uint32_t there(uint32_t mask)
{
    const int left = run_now()->n_threads - host_now->warp * HOST_WARP;
    return left < HOST_WARP ? mask & ((1u << left) - 1) : mask;
}

void host_warp_do(const char *what, uint32_t mask, host_warp_body *all, const void *in, size_t bytes_in,
    void *out, size_t bytes_out, const void *same)
{
    struct fiber *f = fiber_now;
    const int lane = f->thread.lane;
    if (!(mask >> lane & 1)) {
        host_trap("a lane is not in its own mask");
    }
    struct warp_meeting *m = find_meeting(&f->of->warps[f->thread.warp], mask);
    if (m->here && ((m->what != what && strcmp(m->what, what) != 0) || m->bytes_in != bytes_in ||
                       m->bytes_out != bytes_out)) {
        host_finding("lanes of a warp are at different instructions: %s, %s", m->what, what);
        host_trap("they can't go on");
    }
    m->what = what;
    m->bytes_in = bytes_in;
    m->bytes_out = bytes_out;
    m->in[lane] = in;
    m->out[lane] = out;
    m->here |= 1u << lane;
    if (m->here != there(mask)) {
        f->waits_for = what;
        fiber_leave(FIBER_MEETS);
        return;
    }
    if (all) {
        make(m, all, same);
    }
    struct fiber *first = f - lane;
    for (int i = 0; i < HOST_WARP; i++) {
        if (m->here >> i & 1) {
            fiber_wake(first + i);
        }
    }
    m->mask = 0;
}
