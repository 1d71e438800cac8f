/* SPDX-License-Identifier: Apache-2.0
 * A vocoder for each thread, over one pool that has a single thread: inside, every loop runs where it stands. */
#include "cpu/vocoder/team.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cpu/vocoder/vocoder_parts.h"

/* Of scratch and prepared weights. Beyond, a lane's layers are large enough to be shared, and memory is dear. */
enum { MOST_BYTES = 24 << 20 };

struct cpu_vocoder_team {
    struct pool *pool, *alone;
    struct cpu_vocoder **members; /* [n_members] */
    int n_members;
    struct vocoder_order *orders;
    int n_orders;
    atomic_int next; /* order that nobody has taken */
};

utter_status cpu_vocoder_team_open(struct cpu_vocoder_team **at, const struct cpu_vocoder *alike,
    struct pool *pool, int n_lanes, utter_error *error)
{
    uint64_t shared_bytes, lane_bytes;
    int n = min(pool_size(pool), n_lanes);
    cpu_vocoder_memory(alike, &shared_bytes, &lane_bytes);
    *at = NULL;
    if (n < 2 || shared_bytes > MOST_BYTES) {
        return UTTER_OK;
    }
    struct cpu_vocoder_team *t = *at = memory_new(1, sizeof *t);
    if (t) {
        t->pool = pool;
        t->alone = pool_new(1);
        t->members = memory_new((size_t)n, sizeof(struct cpu_vocoder *));
    }
    utter_status status = t && t->alone && t->members ? UTTER_OK : error_memory(error, "the vocoders");
    for (; !status && t->n_members < n; t->n_members++) {
        status =
            cpu_vocoder_open(&t->members[t->n_members], alike->model, alike->kern, t->alone, error);
    }
    if (status) {
        cpu_vocoder_team_close(at);
    }
    return status;
}

void cpu_vocoder_team_close(struct cpu_vocoder_team **at)
{
    struct cpu_vocoder_team *t = *at;
    *at = NULL;
    if (t) {
        for (int i = 0; i < t->n_members; i++) {
            cpu_vocoder_close(&t->members[i]);
        }
        memory_free(t->members);
        pool_free(t->alone);
        memory_free(t);
    }
}

static void team_part(void *arg, int part, int n_parts)
{
    struct cpu_vocoder_team *t = arg;
    (void)n_parts;
    for (int i; (i = atomic_fetch_add(&t->next, 1)) < t->n_orders;) {
        struct vocoder_order *o = &t->orders[i];
        o->finite = cpu_vocoder_run(t->members[part], o->lane, o->codes, o->n_frames, o->pcm, NULL);
    }
}

void cpu_vocoder_team_run(struct cpu_vocoder_team *t, struct vocoder_order *orders, int n)
{
    t->orders = orders;
    t->n_orders = n;
    atomic_store(&t->next, 0);
    pool_run(t->pool, team_part, t, min(n, t->n_members));
}

uint64_t cpu_vocoder_team_bytes(const struct cpu_vocoder_team *t)
{
    uint64_t all = 0;
    for (int i = 0; t && i < t->n_members; i++) {
        uint64_t shared_bytes, lane_bytes;
        cpu_vocoder_memory(t->members[i], &shared_bytes, &lane_bytes);
        all += shared_bytes;
    }
    return all;
}
