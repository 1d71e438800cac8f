/* SPDX-License-Identifier: Apache-2.0
 * Strict: words for what was found. Each pair of places in the program is told once for a kernel. */
#include "tests/cuda/host/strict/strict_parts.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char __executable_start[];

enum { WHO = 200, WHERE = 240, PLACE = 240 };

/* Hashes of what has been told; a set that grows. */
static uint64_t *told;
static size_t n_told, told_held;

static char **names;
static size_t n_names;

uint32_t strict_site(const void *code)
{
    return code ? (uint32_t)((uintptr_t)code - (uintptr_t)__executable_start) : 0;
}

const char *strict_intern(const char *name)
{
    static size_t last;
    if (last < n_names && strcmp(names[last], name) == 0) {
        return names[last];
    }
    for (last = 0; last < n_names; last++) {
        if (strcmp(names[last], name) == 0) {
            return names[last];
        }
    }
    names = realloc(names, (n_names + 1) * sizeof *names);
    char *copy = strdup(name);
    if (!names || !copy) {
        abort();
    }
    names[n_names++] = copy;
    return copy;
}

static bool is_new(uint64_t hash)
{
    hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15u | 1;
    if (n_told * 2 >= told_held) {
        size_t held = told_held ? told_held * 2 : 256;
        uint64_t *more = calloc(held, sizeof *more);
        if (!more) {
            abort();
        }
        for (size_t i = 0; i < told_held; i++) {
            size_t to = (size_t)(told[i] >> 20) & (held - 1);
            while (told[i] && more[to]) {
                to = (to + 1) & (held - 1);
            }
            more[told[i] ? to : 0] = told[i] ? told[i] : more[0];
        }
        free(told);
        told = more;
        told_held = held;
    }
    size_t i = (size_t)(hash >> 20) & (told_held - 1);
    for (; told[i]; i = (i + 1) & (told_held - 1)) {
        if (told[i] == hash) {
            return false;
        }
    }
    told[i] = hash;
    n_told++;
    return true;
}

/* A place in the program. The number is what addr2line takes: the call stands just before the address. */
static const char *place(char text[PLACE], uint32_t site)
{
    if (!site) {
        return "";
    }
    Dl_info info;
    const char *code = __executable_start + site - 1;
    if (dladdr(code, &info) && info.dli_sname) {
        snprintf(text, PLACE, " at 0x%x (%.180s+0x%zx)", site - 1, info.dli_sname,
            (size_t)(code - (const char *)info.dli_saddr));
    } else {
        snprintf(text, PLACE, " at 0x%x", site - 1);
    }
    return text;
}

static const char *where(char text[WHERE], const void *at)
{
    const char *label = "";
    size_t offset = 0;
    if (strict_label_of(at, &label, &offset)) {
        snprintf(text, WHERE, "%.160s + %zu (%p)", label, offset, at);
    } else {
        snprintf(text, WHERE, "%p, which is in no area that was added", at);
    }
    return text;
}

static int n_lanes(uint32_t lanes)
{
    return __builtin_popcount(lanes);
}

/* Who made an entry: a thread, lanes of a warp, a copy, another operation. */
static const char *who(char text[WHO], const struct strict_entry *e, int own_op)
{
    int op = strict_op_of(e->unit);
    if (op < 0) {
        return "somebody long ago";
    }
    const struct strict_op_info *info = strict_op_info(op);
    char of[120] = "";
    if (op != own_op) {
        snprintf(of, sizeof of, " of %.60s, operation %u of stream %d", info->name, info->time,
            info->stream);
    }
    uint32_t from_first = e->unit - info->unit;
    if (info->n_threads == 0 || e->unit < info->unit || !e->site) {
        snprintf(text, WHO, "%.60s, operation %u of stream %d", info->name, info->time, info->stream);
        return text;
    }
    int block = (int)(from_first / (uint32_t)info->block_units);
    int unit = (int)(from_first % (uint32_t)info->block_units), warps = (info->block_units - 1) / 2;
    int lane = __builtin_ctz(e->lanes | 1u << 31);
    if (unit == warps) {
        snprintf(text, WHO, "a bulk copy of block %d%s", block, of);
    } else if (unit > warps) {
        snprintf(text, WHO, "a copy in the background of block %d thread %d%s", block,
            (unit - warps - 1) * HOST_WARP + lane, of);
    } else if (n_lanes(e->lanes) > 1) {
        snprintf(text, WHO, "block %d warp %d, lanes 0x%08x%s", block, unit, e->lanes, of);
    } else {
        snprintf(text, WHO, "block %d thread %d%s", block, unit * HOST_WARP + lane, of);
    }
    return text;
}

static const char *verb(enum strict_act act)
{
    return act == STRICT_READ ? "read" : act == STRICT_WRITE ? "write" : "atomic update";
}

void strict_found_race(const struct strict_thread *t, const struct strict_entry *now,
    enum strict_act act, const void *at, size_t bytes, const struct strict_entry *before,
    bool was_write, const char *why)
{
    const struct strict_op_info *info = strict_op_info(t->op);
    if (!is_new((uintptr_t)info->name ^ (uint64_t)now->site << 32 ^ (uint64_t)before->site << 8 ^
                (uint64_t)act ^ (uint64_t)was_write << 4 ^ (why[0] ? 8 : 0))) {
        return;
    }
    char a[WHO], b[WHO], c[PLACE], d[PLACE], e[WHERE];
    host_finding("%s in %s: %s of %zu bytes%s by %s; %s%s by %s is not ordered before it; %s%s",
        why[0] ? "proxies" : "race", info->name, verb(act), bytes, place(c, now->site),
        who(a, now, t->op), was_write ? "the write" : "a read", place(d, before->site),
        who(b, before, t->op), where(e, at), why);
}

void strict_found(const struct strict_thread *t, uint32_t site, const void *at, size_t bytes,
    enum strict_act act, const char *why)
{
    const struct strict_op_info *info = strict_op_info(t->op);
    uint64_t hash = 5381;
    for (const char *c = why; *c; c++) {
        hash = hash * 33 + (unsigned char)*c;
    }
    if (!is_new((uintptr_t)info->name ^ (uint64_t)site << 32 ^ hash)) {
        return;
    }
    char a[WHO], c[PLACE], e[WHERE];
    struct strict_entry now = {t->unit, strict_when(t->time, 15, STRICT_CTA, false), t->lanes, site};
    host_finding("%s in %s: %s of %zu bytes%s by %s; %s", why, info->name, verb(act), bytes,
        place(c, site), who(a, &now, t->op), where(e, at));
}
