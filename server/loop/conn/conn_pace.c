/* SPDX-License-Identifier: Apache-2.0
 * How fast a connection is read. What has come counts, whatever it is and whether it is taken or thrown away: a client
 * that sends faster than it is read is held up by its own system, and costs nothing. It must not come back at once
 * either, with all its buffers empty again. */
#include "base/minmax.h"
#include "server/loop/conn/conn_parts.h"
#include "server/loop/log.h"

/* Of one connection: the longest request at once. */
static const struct bucket_rate byte_rate = {16 << 20, 16 << 20};
/* So much is read of each, whatever his neighbours send: so the longest request is there in time, sent as fast as it is
 * taken. */
static const struct bucket_rate little_sent_rate = {1 << 20, 256 << 10};
/* Nor does anybody rest longer for what his neighbours ask: a proxy that asks whether the server lives may do so beside
 * a flood that comes through it, and gives it up if it hears nothing for a second. */
static const double most_asked_rest_s = 0.25;
/* As a part of a request, of what an address may ask: what language models write comes word by word, and behind one
 * proxy may stand the listeners of four GPUs, which speak 45 texts a second each. */
static const double a_message = 0.5;
/* Who says no more than that does not rest for what his neighbours ask: it is several times as many words as are
 * spoken meanwhile. */
static const struct bucket_rate little_said_rate = {25, 25};

/* Who is thrown out waits for it no longer. */
enum { MOST_HELD_S = 2 };

static void on_come(struct evbuffer *in, const struct evbuffer_cb_info *info, void *user)
{
    struct conn *c = user;
    (void)in;
    c->n_come += info->n_added;
}

bool conn_pace(struct conn *c)
{
    c->bytes = bucket_full(&byte_rate, clock_seconds());
    c->said = bucket_full(&little_said_rate, clock_seconds());
    c->sent = bucket_full(&little_sent_rate, clock_seconds());
    budget_begin(&c->budget, clock_seconds());
    c->asked_at = clock_seconds();
    return evbuffer_add_cb(bufferevent_get_input(c->bev), on_come, c) != NULL;
}

/* It has done more than one connection may: from now on others have their turn before what it hears. Who rests for his
 * neighbours is not at fault. */
static void at_fault(struct conn *c)
{
    bufferevent_priority_set(c->bev, SERVER_OTHER);
}

void conn_pay(struct conn *c)
{
    double now = clock_seconds(), n = (double)c->n_come,
           wait = bucket_take(&c->bytes, &byte_rate, now, n), wait_all = origin_take(c->origin, now, n),
           wait_little = bucket_take(&c->sent, &little_sent_rate, now, n);
    c->n_come = 0;
    if (wait > 0) {
        at_fault(c);
    }
    wait = max(wait, min(wait_all, wait_little));
    if (wait > 0 && c->resume_at <= 0) {
        conn_rest(c, wait, METRICS_SENT);
    }
}

/* Where many connections of one address share what it may ask, each asks again only so long after it has asked before.
 * So whose last request is that long ago does not rest for what his neighbours ask, who has just connected rests, and
 * in the end each has its turn however much is asked meanwhile. */
static double ask(struct conn *c, double n)
{
    double now = clock_seconds(), since = now - c->asked_at;
    c->asked_at = now;
    return min(origin_ask(c->origin, now, n), most_asked_rest_s) - since;
}

double conn_ask(struct conn *c)
{
    bool is_first = c->request_id[0] == 0; /* and pays for having come, too */
    return ask(c, is_first ? 2 : 1);
}

double conn_say(struct conn *c, size_t bytes)
{
    double now = clock_seconds(), wait_all = ask(c, a_message),
           wait = budget_take(&c->budget, now, bytes);
    bool says_little = bucket_take(&c->said, &little_said_rate, now, 1) <= 0;
    if (wait > 0) {
        at_fault(c);
    }
    return says_little ? wait : max(wait, wait_all);
}

void conn_limited(struct conn *c, enum metrics_limit how)
{
    c->server->metrics.limited[how]++;
    if (origin_is_news(c->origin, clock_seconds())) {
        log_event(c->server, "limited",
            json_pack("{s:s,s:s,s:i}", "client", c->address, "how", metrics_limit_name(how),
                "connections", c->origin->n_conns));
    }
}

void conn_rest(struct conn *c, double seconds, enum metrics_limit why)
{
    conn_limited(c, why);
    c->resume_at = clock_seconds() + seconds;
    bufferevent_disable(c->bev, EV_READ);
}

bool conn_resume(struct conn *c)
{
    c->resume_at = 0;
    c->is_held = false;
    if (bufferevent_enable(c->bev, EV_READ | EV_WRITE) != 0) {
        return false;
    }
    conn_went_on(c);
    bufferevent_trigger(c->bev, EV_READ, BEV_OPT_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
    return true;
}

void conn_thrown_out(struct conn *c)
{
    double wait = min(origin_throw_out(c->origin, clock_seconds()), (double)MOST_HELD_S);
    if (wait > 0 && c->state == CONN_CLOSING && !c->server->draining) {
        struct evbuffer *in = bufferevent_get_input(c->bev);
        evbuffer_drain(in, evbuffer_get_length(in));
        conn_count(c);
        at_fault(c);
        conn_rest(c, wait, METRICS_HELD);
        bufferevent_disable(c->bev, EV_WRITE);
        c->is_held = true;
        conn_went_on(c);
    }
}
