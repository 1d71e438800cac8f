/* SPDX-License-Identifier: Apache-2.0
 * Text and its runs, both in one order, so that a place is found by halving. */
#include "base/written.h"

#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

static bool is_same(const struct written_run *run)
{
    return run->n == run->source_n;
}

static bool make_room(struct written *w, size_t n)
{
    if (w->n + n > w->room) {
        size_t room = w->n + n + w->room / 2;
        char *grown = memory_resize(w->text, w->room, room, 1);
        w->no_memory |= !grown;
        w->text = grown ? grown : w->text;
        w->room = grown ? room : w->room;
    }
    if (w->n_runs == w->runs_room) {
        size_t room = w->n_runs + w->n_runs / 2 + 8;
        struct written_run *grown = memory_resize(w->runs, w->runs_room, room, sizeof *grown);
        w->no_memory |= !grown;
        w->runs = grown ? grown : w->runs;
        w->runs_room = grown ? room : w->runs_room;
    }
    return !w->no_memory;
}

void written_add(struct written *w, uint64_t source, uint64_t source_n, const char *text, size_t n)
{
    const struct written_run run = {source, source_n, w->text_at + w->n, n};
    if (n == 0 || w->no_memory || !make_room(w, n)) {
        return;
    }
    memcpy(w->text + w->n, text, n);
    w->n += n;
    struct written_run *last = w->n_runs > w->n_passed ? &w->runs[w->n_runs - 1] : NULL;
    if (last && is_same(last) && is_same(&run) && last->source + last->source_n == source) {
        last->n += n;
        last->source_n += n;
    } else {
        w->runs[w->n_runs++] = run;
    }
}

/* The last run that begins in the source at this byte or before it; NULL: none is kept. */
static const struct written_run *run_at(const struct written *w, uint64_t source)
{
    size_t low = w->n_passed, high = w->n_runs;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w->runs[middle].source <= source) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > w->n_passed ? &w->runs[low - 1] : NULL;
}

/* Where byte `source`, in the run or behind it where only markup stands, is in the whole text. */
static uint64_t place(const struct written_run *run, uint64_t source)
{
    uint64_t past = source - run->source;
    return run->at + (past > 0 && past >= run->source_n ? run->n : is_same(run) ? past : 0);
}

size_t written_find(const struct written *w, uint64_t source, uint64_t source_n, size_t *n)
{
    const struct written_run *first = run_at(w, source);
    const struct written_run *last = source_n > 0 ? run_at(w, source + source_n - 1) : NULL;
    uint64_t begin = first ? max(place(first, source), w->text_at) : w->text_at, end = begin;
    if (last) { /* of what stands for other bytes, all */
        end = is_same(last) ? place(last, source + source_n) : last->at + last->n;
    }
    *n = (size_t)(max(end, begin) - begin);
    return (size_t)(begin - w->text_at);
}

void written_drop(struct written *w, size_t n)
{
    w->n -= n;
    w->text_at += n;
    if (w->n > 0) {
        memmove(w->text, w->text + n, w->n);
    }
    while (w->n_passed < w->n_runs && w->runs[w->n_passed].at + w->runs[w->n_passed].n <= w->text_at) {
        w->n_passed++;
    }
    if (w->n_passed > w->n_runs / 2) { /* seldom enough to cost nothing */
        w->n_runs -= w->n_passed;
        memmove(w->runs, w->runs + w->n_passed, w->n_runs * sizeof *w->runs);
        w->n_passed = 0;
    }
}

void written_fini(struct written *w)
{
    memory_free(w->text);
    memory_free(w->runs);
    *w = (struct written){0};
}
