/* SPDX-License-Identifier: Apache-2.0
 * A list of devices, and sets of cores as Linux writes them. */
#include "server/protocol/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char set_prefix[] = "cpu:";

static bool take_number(const char **at, int *number)
{
    char *end;
    if (**at < '0' || **at > '9') {
        return false;
    }
    unsigned long value = strtoul(*at, &end, 10);
    *at = end;
    *number = (int)value;
    return value < DEVICES_CORES;
}

bool devices_cores(struct devices_cores *cores, const char *device)
{
    const char *at = device + strlen(set_prefix);
    *cores = (struct devices_cores){{0}};
    if (strncmp(device, set_prefix, strlen(set_prefix)) != 0) {
        return false;
    }
    for (;; at++) {
        int first, last;
        if (!take_number(&at, &first)) {
            return false;
        }
        last = first;
        if (*at == '-' && (at++, !take_number(&at, &last) || last < first)) {
            return false;
        }
        for (int i = first; i <= last; i++) {
            cores->bits[i / 64] |= UINT64_C(1) << i % 64;
        }
        if (*at != ',') {
            return !*at;
        }
    }
}

static bool overlap(const struct devices_cores *a, const struct devices_cores *b)
{
    uint64_t both = 0;
    for (int i = 0; i < DEVICES_CORES / 64; i++) {
        both |= a->bits[i] & b->bits[i];
    }
    return both != 0;
}

static int count_cores(const char *device)
{
    struct devices_cores cores;
    int n = 0;
    bool is_set = devices_cores(&cores, device);
    for (int i = 0; is_set && i < DEVICES_CORES; i++) {
        n += (int)(cores.bits[i / 64] >> i % 64 & 1);
    }
    return n;
}

int devices_threads(const char *device, const char *const *names, int n, int n_cores)
{
    int all = 0, own = count_cores(device);
    for (int i = 0; i < n; i++) {
        all += count_cores(names[i]);
    }
    return own == 0 || n_cores >= all ? 0 : own * n_cores < all ? 1 : own * n_cores / all;
}

/* What is wrong with the last name; NULL: nothing. */
static const char *fault_of(const struct devices *d)
{
    const char *name = d->names[d->n - 1];
    struct devices_cores cores, others;
    if (!*name) {
        return "a comma without a device";
    }
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789:,-")]) {
        return "no device is called so";
    }
    for (int i = 0; i < d->n - 1; i++) {
        if (strcmp(d->names[i], name) == 0) {
            return "it is there twice";
        }
    }
    if (strncmp(name, set_prefix, strlen(set_prefix)) != 0) {
        return NULL;
    }
    if (!devices_cores(&cores, name)) {
        return "a set of cores is numbers and ranges, 0-3,8";
    }
    for (int i = 0; i < d->n - 1; i++) {
        if (devices_cores(&others, d->names[i]) && overlap(&cores, &others)) {
            return "a core is in two sets";
        }
    }
    return NULL;
}

/* Takes one more name over, of n letters. */
static bool add(struct devices *d, size_t *used, const char *name, size_t n, char *why, size_t size)
{
    if (d->n == DEVICES_MOST || *used + n + 1 > sizeof d->text) {
        snprintf(why, size, "too many devices");
        return false;
    }
    char *to = d->text + *used;
    memcpy(to, name, n);
    to[n] = 0;
    *used += n + 1;
    d->names[d->n++] = to;
    const char *fault = fault_of(d);
    if (fault) {
        snprintf(why, size, "'%.60s': %s", to, fault);
    }
    return !fault;
}

/* Letters up to the comma behind which another device begins. */
static size_t name_length(const char *at)
{
    size_t n = strcspn(at, ",");
    while (at[n] && at[n + 1] >= '0' && at[n + 1] <= '9') {
        n += 1 + strcspn(at + n + 1, ",");
    }
    return n;
}

bool devices_parse(struct devices *d, const char *list, int n_gpus, char *why, size_t size)
{
    static const char all[] = "cuda:all";
    size_t used = 0;
    *d = (struct devices){0};
    for (const char *at = list;; at++) {
        size_t n = name_length(at);
        bool is_all = n == strlen(all) && memcmp(at, all, n) == 0, good = !is_all || n_gpus > 0;
        if (!good) {
            snprintf(why, size, "'%s': there is no GPU that CUDA can use", all);
        }
        for (int i = 0; good && i < (is_all ? n_gpus : 1); i++) {
            char gpu[24];
            int length = snprintf(gpu, sizeof gpu, "cuda:%d", i);
            good = is_all ? add(d, &used, gpu, (size_t)length, why, size)
                          : add(d, &used, at, n, why, size);
        }
        at += n;
        if (!good || !*at) {
            return good;
        }
    }
}
