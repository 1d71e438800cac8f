/* SPDX-License-Identifier: Apache-2.0
 * Who goes when all places are taken and somebody comes. A flood of connections finds them full thousands of times a
 * second, so nobody is looked for: each connection that could go stands in a list of its worth, of all and of its
 * address, in the order in which they came to stand there or went on with what they send. */
#include <math.h>
#include <sys/socket.h>

#include "server/loop/conn/conn_parts.h"

enum {
    JUST_S = 1,  /* who has come, or gone on, within it is left alone while others are there */
    TAKES_S = 5, /* who has taken some of what it is sent within it listens */
    MOST_LOOKS = 64,
};

static enum worth worth_of(const struct conn *c)
{
    switch (c->state) {
    case CONN_HEAD:
        return c->reading ? WORTH_HALF : WORTH_IDLE;
    case CONN_BODY:
        return WORTH_HALF;
    case CONN_CLOSING: /* its last answer is not taken yet: is_at_work */
    case CONN_LINGER:
        return c->is_held ? WORTH_HALF : WORTH_IDLE;
    case CONN_SOCKET:
        return c->has_said ? WORTH_SESSION : WORTH_SILENT;
    default:
        return WORTHS;
    }
}

static void leave_list(struct conn *c)
{
    if (c->worth < WORTHS) {
        TAILQ_REMOVE(&c->server->could_go[c->worth], c, of_all);
        TAILQ_REMOVE(&c->origin->could_go[c->worth], c, of_origin);
        c->worth = WORTHS;
    }
}

void conn_went_on(struct conn *c)
{
    leave_list(c);
    c->worth = worth_of(c);
    c->went_on = clock_seconds();
    if (c->worth < WORTHS) {
        TAILQ_INSERT_TAIL(&c->server->could_go[c->worth], c, of_all);
        TAILQ_INSERT_TAIL(&c->origin->could_go[c->worth], c, of_origin);
    }
}

bool conn_take_place(struct conn *c, const struct sockaddr *from)
{
    struct server *s = c->server;
    c->worth = WORTHS;
    c->origin = origin_enter(&s->origins, from, s->most_conns, clock_seconds());
    return c->origin != NULL;
}

void conn_leave_place(struct conn *c)
{
    leave_list(c);
    origin_leave(&c->server->origins, c->origin, c->server->most_conns, clock_seconds());
}

void conn_places(struct server *s)
{
    TAILQ_INIT(&s->conns);
    for (int i = 0; i < WORTHS; i++) {
        TAILQ_INIT(&s->could_go[i]);
    }
    origins_begin(&s->origins);
}

/* Who hears something, or is about to, or whose request is there and nobody has looked at it yet. */
static bool is_at_work(struct conn *c)
{
    bool takes = conn_unsent(c) > 0 && clock_seconds() - c->last_write < TAKES_S && !c->is_held;
    return takes || (c->worth == WORTH_IDLE && c->state == CONN_HEAD && server_has_come(c->bev)) ||
           (c->state == CONN_SOCKET && c->owner && c->owner->speaks && c->owner->speaks(c->user));
}

/* Of those of `from` (NULL: of all) that are worth less than `end` the one that is worth least, and there for longest,
 * if it has not come or gone on since `before`. NULL: there is none. */
static struct conn *least(
    struct server *s, struct origin *from, enum worth end, double before, int *n_looks)
{
    for (int worth = 0; worth < (int)end; worth++) {
        struct conn_list *list = from ? &from->could_go[worth] : &s->could_go[worth];
        for (struct conn *c; (c = TAILQ_FIRST(list)) && c->went_on <= before && *n_looks > 0;) {
            --*n_looks;
            if (!is_at_work(c)) {
                return c;
            }
            conn_went_on(c);
        }
    }
    return NULL;
}

/* As good as can be done without a place: an idle one just sees the end, as HTTP has it. */
static void tell(struct conn *c)
{
    static const uint8_t try_later[] = {
        0x88, 2, WEBSOCKET_TRY_LATER >> 8, WEBSOCKET_TRY_LATER & 255}; /* a close frame */
    if (conn_unsent(c) > 0) { /* it has been told, or the middle of an answer is there */
        return;
    }
    if (c->worth == WORTH_HALF) {
        conn_turn_away(bufferevent_getfd(c->bev));
    } else if (c->state == CONN_SOCKET) {
        (void)!send(
            bufferevent_getfd(c->bev), try_later, sizeof try_later, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

/* A session, however long nothing has been spoken on it, is worth more than who has just come and asked nothing: else a
 * flood that is younger than a second would drive out all sessions. */
static struct conn *who_goes(struct server *s, struct origin *from, int *n_looks)
{
    struct conn *c = least(s, from, WORTH_SESSION, clock_seconds() - JUST_S, n_looks);
    c = c ? c : least(s, from, WORTH_SESSION, INFINITY, n_looks);
    return c ? c : least(s, from, WORTHS, INFINITY, n_looks);
}

bool conn_make_room(struct server *s, const struct sockaddr *newcomer)
{
    struct origin *majority = s->origins.majority;
    int n_looks = MOST_LOOKS;
    struct conn *c = who_goes(s, majority, &n_looks);
    if (c && majority) {
        conn_limited(c, METRICS_MADE_WAY);
    }
    /* Whoever holds most of the places gets no more at the cost of others. */
    if (!c && majority && majority != origin_find(&s->origins, newcomer)) {
        c = who_goes(s, NULL, &n_looks);
    }
    if (c) {
        tell(c);
        conn_drop(c);
    }
    return c != NULL;
}
