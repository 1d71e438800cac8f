/* SPDX-License-Identifier: Apache-2.0
 * A table of addresses. */
#include "server/loop/conn/origin.h"

#include <netinet/in.h>
#include <string.h>

#include "base/memory.h"

/* Of everybody behind one proxy together: four of the longest requests a second, or nine at once. The front end reads
 * as much in a twentieth of a second. */
static const struct bucket_rate byte_rate = {64 << 20, 128 << 20};
/* Requests and the connections on which they come, most of which the front end does in 10 to 25 us. A proxy asks for
 * less on behalf of everybody behind it. Who comes and asks nothing cannot be made to rest: only his neighbours would
 * be, so that costs nothing here. */
static const struct bucket_rate ask_rate = {5000, 5000};
static const struct bucket_rate throw_rate = {20, 50};

static const double told_s = 60;

static void network_of(uint64_t network[2], const struct sockaddr *from)
{
    network[0] = network[1] = 0;
    if (from->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
        memcpy(network, a->s6_addr, IN6_IS_ADDR_V4MAPPED(a) ? 16 : 8);
    } else if (from->sa_family == AF_INET) { /* as one of IPv6 that stands for it */
        uint8_t mapped[16] = {[10] = 0xFF, [11] = 0xFF};
        memcpy(mapped + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
        memcpy(network, mapped, sizeof mapped);
    }
}

static size_t chain_of(const struct origins *all, const uint64_t network[2])
{
    uint64_t mixed = (network[0] ^ all->secret) * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 32 ^ network[1] ^ all->secret >> 7) * 0xD6E8FEB86659FD93u;
    return (size_t)(mixed >> 54) % ORIGIN_CHAINS; /* the bits into which all others have gone */
}

void origins_begin(struct origins *all)
{
    *all = (struct origins){.majority = NULL};
}

static void forget(struct origins *all, struct origin *o)
{
    LIST_REMOVE(o, entry);
    all->n_left--;
    memory_free(o);
}

void origins_end(struct origins *all)
{
    for (size_t i = 0; i < ORIGIN_CHAINS; i++) {
        for (struct origin *o; (o = LIST_FIRST(&all->chains[i]));) {
            forget(all, o);
        }
    }
}

/* By whoever reads the log. */
static bool is_forgotten(const struct origin *o, double now)
{
    return o->told_at <= 0 || now - o->told_at > told_s;
}

static bool is_as_good_as_new(struct origin *o, double now)
{
    bucket_fill(&o->bytes, &byte_rate, now);
    bucket_fill(&o->asks, &ask_rate, now);
    bucket_fill(&o->thrown_out, &throw_rate, now);
    return o->bytes.left >= byte_rate.at_once && o->asks.left >= ask_rate.at_once &&
           o->thrown_out.left >= throw_rate.at_once && is_forgotten(o, now);
}

void origins_tick(struct origins *all, double now)
{
    for (size_t i = 0; i < ORIGIN_CHAINS && all->n_left > 0; i++) {
        struct origin *o, *after;
        for (o = LIST_FIRST(&all->chains[i]); o; o = after) {
            after = LIST_NEXT(o, entry);
            if (o->n_conns == 0 && is_as_good_as_new(o, now)) {
                forget(all, o);
            }
        }
    }
}

struct origin *origin_find(struct origins *all, const struct sockaddr *from)
{
    uint64_t network[2];
    struct origin *o;
    network_of(network, from);
    LIST_FOREACH(o, &all->chains[chain_of(all, network)], entry)
    {
        if (o->network[0] == network[0] && o->network[1] == network[1]) {
            return o;
        }
    }
    return NULL;
}

static struct origin *origin_new(struct origins *all, const struct sockaddr *from, double now)
{
    struct origin *o = memory_new(1, sizeof *o);
    if (!o) {
        return NULL;
    }
    network_of(o->network, from);
    o->bytes = bucket_full(&byte_rate, now);
    o->asks = bucket_full(&ask_rate, now);
    o->thrown_out = bucket_full(&throw_rate, now);
    for (int i = 0; i < WORTHS; i++) {
        TAILQ_INIT(&o->could_go[i]);
    }
    LIST_INSERT_HEAD(&all->chains[chain_of(all, o->network)], o, entry);
    all->n_left++;
    return o;
}

struct origin *origin_enter(struct origins *all, const struct sockaddr *from, int places, double now)
{
    struct origin *o = origin_find(all, from);
    if (!o && !(o = origin_new(all, from, now))) {
        return NULL;
    }
    all->n_left -= o->n_conns == 0;
    o->n_conns++;
    if (o->n_conns > places / 2) {
        all->majority = o;
    }
    return o;
}

void origin_leave(struct origins *all, struct origin *o, int places, double now)
{
    o->n_conns--;
    if (all->majority == o && o->n_conns <= places / 2) {
        all->majority = NULL;
    }
    all->n_left += o->n_conns == 0;
    if (o->n_conns == 0 && (is_as_good_as_new(o, now) || all->n_left > ORIGINS_LEFT)) {
        forget(all, o);
    }
}

double origin_take(struct origin *o, double now, double bytes)
{
    return bucket_take(&o->bytes, &byte_rate, now, bytes);
}

double origin_ask(struct origin *o, double now, double n)
{
    return bucket_take(&o->asks, &ask_rate, now, n);
}

double origin_throw_out(struct origin *o, double now)
{
    return bucket_take(&o->thrown_out, &throw_rate, now, 1);
}

bool origin_is_news(struct origin *o, double now)
{
    bool is_news = is_forgotten(o, now);
    o->told_at = is_news ? now : o->told_at;
    return is_news;
}
