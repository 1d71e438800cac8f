/* SPDX-License-Identifier: Apache-2.0
 * Reading: heads, bodies, frames; and how a connection ends. Answers are in conn_answer.c. */
#include "server/loop/conn/conn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "server/loop/account.h"
#include "server/loop/address.h"
#include "server/loop/conn/conn_parts.h"
#include "server/loop/conn/lapse.h"
#include "server/loop/spare.h"

enum {
    READ_AHEAD = 256 << 10,
    LOW_WATER = 16 << 10,
    PIPELINED = 64 << 10,
    ENDS_AT_ONCE = 16,
    NEEDED = 4096, /* bytes that a read waits for, at most */
    /* What is read of one WebSocket before others have their turn. */
    TURN_MESSAGES = 64,
    TURN_BYTES = 64 << 10,
};

static void on_read(struct bufferevent *b, void *user);

void conn_count(struct conn *c)
{
    size_t held = evbuffer_get_length(bufferevent_get_input(c->bev)) + evbuffer_get_length(c->body) +
                  c->owner_bytes + (c->socket ? c->socket->message_room : 0);
    c->server->held_bytes += held - c->held_bytes;
    c->held_bytes = held;
}

/* Asks the kernel to report bytes of this socket only when n of them have come (or the client has gone), so that a
 * client that sends byte by byte does not wake the loop for each byte. */
static void wait_for_bytes(struct conn *c, size_t n)
{
    int needed = n < NEEDED ? (int)n : NEEDED;
    if (needed != c->needed &&
        setsockopt(bufferevent_getfd(c->bev), SOL_SOCKET, SO_RCVLOWAT, &needed, sizeof needed) == 0) {
        c->needed = needed;
    }
}

/* A deadline in `seconds` to 1.25 times that, spread evenly (by multiples of the golden ratio) over the connections:
 * clients that came at the same moment are not closed, and do not connect again, all at the same moment. */
static double deadline_after(struct server *s, double seconds)
{
    s->spread += 0.618034;
    s->spread -= s->spread >= 1;
    return clock_seconds() + seconds * (1 + 0.25 * s->spread);
}

static void free_request(struct conn *c)
{
    evbuffer_drain(c->body, evbuffer_get_length(c->body));
    memory_free(c->head_text);
    c->head_text = NULL;
    c->head = (struct http_head){.method = "", .path = "", .query = ""};
    c->chunks = (struct http_chunks){0};
}

static void conn_free(struct conn *c)
{
    struct server *s = c->server;
    TAILQ_REMOVE(&s->conns, c, entry);
    conn_leave_place(c);
    s->n_conns--;
    s->n_lingering -= c->state == CONN_LINGER;
    s->held_bytes -= c->held_bytes;
    s->unsent_bytes -= conn_unsent(c);
    free_request(c);
    evbuffer_free(c->body);
    bufferevent_free(c->bev);
    if (c->socket) {
        websocket_fini(c->socket);
        memory_free(c->socket);
    }
    account_free(&c->account);
    memory_free(c);
    server_check_drained(s);
}

void conn_drop(struct conn *c)
{
    const struct conn_owner *owner = c->owner;
    c->owner = NULL;
    if (owner) {
        owner->gone(c->user);
    }
    conn_free(c);
}

void conn_own(struct conn *c, const struct conn_owner *owner, void *user)
{
    c->owner = owner;
    c->user = user;
    bufferevent_priority_set(c->bev, SERVER_SOUND);
}

void conn_enter(struct conn *c, enum conn_state state)
{
    c->server->n_lingering += (state == CONN_LINGER) - (c->state == CONN_LINGER);
    c->state = state;
    conn_went_on(c);
}

/* The answer is complete: the connection waits for the next request, or closes. */
void conn_answered(struct conn *c)
{
    c->owner = NULL;
    c->begun = false;
    free_request(c);
    conn_count(c);
    if (c->starved || !c->keep_alive || c->server->draining) {
        conn_enter(c, CONN_CLOSING);
        c->deadline = clock_seconds() + STALL_S;
        conn_wrote(c);
        return;
    }
    conn_enter(c, CONN_HEAD);
    c->deadline = deadline_after(c->server, IDLE_S);
    bufferevent_priority_set(c->bev, SERVER_OTHER);
    /* What was sent ahead is read by the loop, not here: answers may nest otherwise. */
    bufferevent_trigger(c->bev, EV_READ, BEV_OPT_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
}

/* Closes a connection once everything is written, in two steps: the write side now, the rest after LINGER_S, in which
 * what the client still sends is read and thrown away. Closing at once with unread bytes makes the kernel send a reset,
 * and a reset may destroy the end of the answer before the client has read it. */
void conn_wrote(struct conn *c)
{
    if (c->state == CONN_CLOSING && conn_unsent(c) == 0) {
        conn_enter(c, CONN_LINGER);
        c->deadline = clock_seconds() + LINGER_S;
        shutdown(bufferevent_getfd(c->bev), SHUT_WR);
    }
}

static void refuse_head(struct conn *c, int status, const char *why)
{
    struct refusal r;
    refuse(&r, status, NULL, "%s", why);
    r.retry_ms = status == 503 ? RETRY_MS : 0;
    wait_for_bytes(c, 1); /* the rest is thrown away as it comes */
    c->keep_alive = false;
    c->server->metrics.rejected[status == 413 ? METRICS_TOO_LARGE : METRICS_INVALID]++;
    conn_refuse(c, &r);
    if (status != 408 && status != 503) { /* has waited for it; is our own lack */
        conn_thrown_out(c);
    }
}

/* The body is whole. */
static void dispatch(struct conn *c)
{
    conn_enter(c, CONN_ANSWER);
    c->deadline = 0;
    c->read_at = clock_seconds();
    wait_for_bytes(c, 1);
    c->service->request(c);
    /* Whoever answers has taken what is needed of the body. */
    evbuffer_drain(c->body, evbuffer_get_length(c->body));
    conn_count(c);
}

static void name_request(struct conn *c)
{
    trace_read(&c->trace, NULL); /* not that of the request before */
    snprintf(c->request_id, sizeof c->request_id, "req-%s-%llx", c->server->boot,
        (unsigned long long)++c->server->n_requests);
}

/* Takes the head from the input. False: not there yet, or refused. */
static bool take_head(struct conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t n = evbuffer_get_length(in), limit = min(n, HTTP_HEAD_BYTES);
    const char *bytes = (const char *)evbuffer_pullup(in, (ev_ssize_t)limit);
    size_t head = bytes ? http_head_bytes(bytes, limit) : 0;
    if (n > 0 && !c->reading) {
        c->reading = true;
        c->deadline = deadline_after(c->server, HEAD_S);
        conn_went_on(c);
        double wait = conn_ask(c);
        if (wait > 0) {
            conn_rest(c, wait, METRICS_ASKED);
            return false;
        }
    }
    if (head == 0) {
        if (n >= HTTP_HEAD_BYTES) {
            name_request(c);
            refuse_head(c, 431, "the head of the request is longer than 16 KiB");
        } else if (bytes) {
            wait_for_bytes(c, http_head_needs(bytes, n));
        } else if (n > 0) {
            conn_starve(c);
        }
        return false;
    }
    c->reading = false;
    wait_for_bytes(c, 1); /* of what follows */
    name_request(c);
    c->head_text = memory_string_n(bytes, head);
    evbuffer_drain(in, head);
    if (!c->head_text) {
        conn_starve(c);
        return false;
    }
    int status = http_head_parse(&c->head, c->head_text, head);
    if (status) {
        refuse_head(c, status, c->head.fault);
        return false;
    }
    double wait = budget_take(&c->budget, clock_seconds(), head);
    if (wait > 0) {
        conn_rest(c, wait, METRICS_ASKED);
    }
    c->keep_alive = c->head.keep_alive;
    trace_read(&c->trace, http_only_field(&c->head, "traceparent"));
    return true;
}

/* Whether the request may come, and how it goes on. */
static void begin_request(struct conn *c)
{
    struct refusal r = {0};
    bool has_body = c->head.chunked || (c->head.has_length && c->head.length > 0);
    if (!c->service->admit(c, &c->body_limit, &r)) {
        c->keep_alive = c->keep_alive && !has_body;
        conn_refuse(c, &r);
        return;
    }
    if (c->head.has_length && c->head.length > c->body_limit) {
        refuse_head(c, 413, "the body is too long for this path");
        return;
    }
    if (!has_body) {
        dispatch(c);
        return;
    }
    conn_enter(c, CONN_BODY);
    c->deadline = deadline_after(c->server, BODY_S);
    if (c->head.expects_continue) {
        static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
        bufferevent_write(c->bev, go_on, sizeof go_on - 1);
    }
}

/* Moves n bytes of the input to the body; false when they are refused. */
static bool keep_body(struct conn *c, struct evbuffer *in, size_t n)
{
    size_t have = evbuffer_get_length(c->body);
    if (n > c->body_limit - have) {
        refuse_head(c, 413, "the body is too long for this path");
        return false;
    }
    if (evbuffer_remove_buffer(in, c->body, n) != (int)n) { /* what is left would be the next request */
        conn_starve(c);
        return false;
    }
    if ((have + n) / NEEDED > have / NEEDED) {
        conn_went_on(c);
    }
    return true;
}

static void take_plain_body(struct conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t left = (size_t)c->head.length - evbuffer_get_length(c->body), n = evbuffer_get_length(in);
    if (!keep_body(c, in, min(n, left))) {
        return;
    }
    if (n >= left) {
        dispatch(c);
    } else {
        wait_for_bytes(c, left - n);
    }
}

static void take_chunked_body(struct conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    while (evbuffer_get_length(in) > 0) {
        size_t n = evbuffer_get_contiguous_space(in), used = 0, data_bytes = 0;
        const char *bytes = (const char *)evbuffer_pullup(in, (ev_ssize_t)n), *data = NULL;
        enum http_progress progress = http_chunks_feed(&c->chunks, bytes, n, &used, &data, &data_bytes);
        if (progress == HTTP_BAD) {
            refuse_head(c, 400, "a chunk of the body is not what HTTP says");
            return;
        }
        evbuffer_drain(in, used - data_bytes);
        if (data_bytes && !keep_body(c, in, data_bytes)) {
            return;
        }
        if (progress == HTTP_DONE) {
            dispatch(c);
            return;
        }
    }
}

/* The rest of a long frame is on its way; what has come of it may show already that it will not do. */
static void look_ahead(struct conn *c, const uint8_t *head, size_t head_bytes)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t n = evbuffer_get_length(in), at = websocket_unforeseen(c->socket, head, head_bytes);
    struct websocket_event event;
    struct evbuffer_ptr from;
    while (at > 0 && at < n && evbuffer_ptr_set(in, &from, at, EVBUFFER_PTR_SET) == 0) {
        uint8_t piece[4096];
        ev_ssize_t m = evbuffer_copyout_from(in, &from, piece, sizeof piece);
        if (m <= 0) {
            return;
        }
        if (websocket_foresee(c->socket, head, head_bytes, piece, (size_t)m, &event) == WEBSOCKET_BAD) {
            evbuffer_drain(in, n);
            conn_close_socket(c, event.close_code, event.fault);
            conn_thrown_out(c);
            return;
        }
        at += (size_t)m;
    }
}

/* The next event of a WebSocket that has begun to arrive; false: there is none yet, or the socket was closed. */
static bool take_frame(struct conn *c, struct websocket_event *event, size_t *used)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t n = evbuffer_get_length(in);
    uint8_t head[14];
    size_t head_bytes = min(n, sizeof head);
    evbuffer_copyout(in, head, head_bytes);
    uint64_t need = websocket_frame_bytes(head, head_bytes);
    if (need > n && n >= sizeof head && need <= c->socket->limit) {
        look_ahead(c, head, head_bytes);
        return false;
    }
    const uint8_t *bytes = evbuffer_pullup(in, -1);
    if (!bytes) {
        conn_starve(c);
        return false;
    }
    enum websocket_progress progress = websocket_read(c->socket, bytes, n, used, event);
    evbuffer_drain(in, progress == WEBSOCKET_BAD ? n : *used);
    if (progress == WEBSOCKET_BAD) {
        conn_close_socket(c, event->close_code, event->fault);
        conn_thrown_out(c);
    } else if (progress == WEBSOCKET_EVENT && conn_unsent(c) > 2 * LIMIT_UNSENT) {
        conn_close_socket(c, WEBSOCKET_POLICY, ""); /* asks and asks, and takes no answer */
        return false;
    }
    return progress == WEBSOCKET_EVENT;
}

static void answer_frame(struct conn *c, const struct websocket_event *event)
{
    if (event->kind == WEBSOCKET_PING) {
        conn_send(c, WEBSOCKET_PONG, event->data, event->bytes);
    } else if (event->kind == WEBSOCKET_CLOSE) {
        conn_close_socket(
            c, event->bytes >= 2 ? event->data[0] << 8 | event->data[1] : WEBSOCKET_NORMAL, "");
    } else if (event->kind != WEBSOCKET_PONG && c->owner) {
        c->has_said = true;
        conn_went_on(c);
        c->owner->message(c->user, event);
    }
}

static void take_frames(struct conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t turn_bytes = 0;
    for (int i = 0; c->state == CONN_SOCKET && c->resume_at <= 0 && evbuffer_get_length(in) > 0; i++) {
        struct websocket_event event;
        size_t used = 0;
        if (i == TURN_MESSAGES || turn_bytes >= TURN_BYTES) {
            bufferevent_trigger(c->bev, EV_READ, BEV_OPT_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
            return;
        }
        bool whole = take_frame(c, &event, &used);
        turn_bytes += used;
        double wait = whole || used > 0 ? conn_say(c, used) : 0; /* not for each piece of a frame */
        if (whole) {
            answer_frame(c, &event);
        }
        if (wait > 0 && c->state == CONN_SOCKET) {
            conn_rest(c, wait, METRICS_ASKED);
        }
        if (!whole) {
            return;
        }
    }
}

/* All clients together have sent more than there is room for: those with much of it go. */
static bool refuse_more(struct conn *c)
{
    if (c->server->held_bytes <= LIMIT_HELD || c->held_bytes <= LIMIT_HELD_SMALL) {
        return false;
    }
    if (c->state == CONN_HEAD || c->state == CONN_BODY) {
        refuse_head(c, 503, "too much is being sent by all clients together");
    } else if (c->state == CONN_SOCKET) {
        conn_close_socket(c, WEBSOCKET_TRY_LATER, "too much is being sent by all clients together");
    }
    return c->state == CONN_CLOSING || c->state == CONN_LINGER;
}

static void on_read(struct bufferevent *b, void *user)
{
    struct conn *c = user;
    struct evbuffer *in = bufferevent_get_input(b);
    conn_count(c);
    conn_pay(c);
    if (c->starved) {
        evbuffer_drain(in, evbuffer_get_length(in));
        return;
    }
    if (refuse_more(c)) {
        return;
    }
    switch (c->state) {
    case CONN_HEAD:
        /* Requests one after another without taking the answers: the next one waits (on_write goes on). */
        if (conn_unsent(c) <= LIMIT_UNSENT && c->resume_at <= 0 && take_head(c)) {
            begin_request(c);
            /* The body may have come with the head; `c` is still there: it is freed by the loop only. */
            if (c->state == CONN_BODY && evbuffer_get_length(in) > 0) {
                on_read(b, user);
            }
        }
        break;
    case CONN_BODY:
        c->head.chunked ? take_chunked_body(c) : take_plain_body(c);
        break;
    case CONN_ANSWER:
        if (evbuffer_get_length(in) > PIPELINED) {
            conn_drop(c);
        }
        break;
    case CONN_SOCKET:
        take_frames(c);
        conn_count(c);
        break;
    case CONN_CLOSING:
    case CONN_LINGER:
        evbuffer_drain(in, evbuffer_get_length(in));
        break;
    }
}

static void on_write(struct bufferevent *b, void *user)
{
    struct conn *c = user;
    conn_wrote(c);
    if (c->owner && c->owner->drained) {
        c->owner->drained(c->user);
    } else if (c->state == CONN_HEAD && evbuffer_get_length(bufferevent_get_input(b)) > 0) {
        on_read(b, user);
    }
}

/* The end of what a client sends is its end, also while an answer is on its way: a barge-in looks like this. */
static void on_event(struct bufferevent *b, short what, void *user)
{
    (void)b;
    if ((what & BEV_EVENT_ERROR) && errno == ENOMEM) { /* to read with */
        conn_starve(user);
    } else if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
        conn_drop(user);
    }
}

void conn_lapsed(struct server *s, evutil_socket_t file)
{
    struct conn *c;
    TAILQ_FOREACH(c, &s->conns, entry)
    {
        lapse_tell(c->bev, file);
    }
}

static void on_taken(struct evbuffer *out, const struct evbuffer_cb_info *info, void *user)
{
    struct conn *c = user;
    (void)out;
    c->unsent += info->n_added - info->n_deleted;
    c->server->unsent_bytes += info->n_added - info->n_deleted;
    if (info->n_deleted || info->orig_size == 0) {
        c->last_write = clock_seconds();
    }
}

struct conn *conn_new(struct server *s, const struct conn_service *service, evutil_socket_t socket,
    const struct sockaddr *from)
{
    struct conn *c = memory_new(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    c->server = s;
    c->service = service;
    c->body = evbuffer_new();
    c->bev =
        c->body && spare_keep() ? bufferevent_socket_new(s->base, socket, BEV_OPT_CLOSE_ON_FREE) : NULL;
    /* Writing is enabled from the start, and wakes when there is something. One that the system does not watch would
     * never be read. */
    if (!c->bev || !evbuffer_add_cb(bufferevent_get_output(c->bev), on_taken, c) || !conn_pace(c) ||
        bufferevent_enable(c->bev, EV_READ) != 0 || !spare_keep() || !conn_take_place(c, from)) {
        if (c->bev) {
            bufferevent_setfd(c->bev, -1); /* the socket stays the caller's */
            bufferevent_free(c->bev);
        }
        if (c->body) {
            evbuffer_free(c->body);
        }
        memory_free(c);
        return NULL;
    }
    address_text(c->address, sizeof c->address, from);
    c->head = (struct http_head){.method = "", .path = "", .query = ""};
    c->deadline = s->draining ? clock_seconds() + LINGER_S : deadline_after(s, HEAD_S);
    c->last_write = clock_seconds();
    conn_went_on(c);
    c->needed = 1; /* as the kernel has it */
    bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
    bufferevent_setwatermark(c->bev, EV_READ, 0, READ_AHEAD);
    bufferevent_setwatermark(c->bev, EV_WRITE, LOW_WATER, 0);
    TAILQ_INSERT_TAIL(&s->conns, c, entry);
    s->n_conns++;
    s->metrics.connections++;
    return c;
}

static void pass_deadline(struct conn *c)
{
    if (c->state == CONN_HEAD && c->reading) {
        name_request(c);
    }
    if ((c->state == CONN_HEAD && c->reading) || c->state == CONN_BODY) {
        refuse_head(c, 408, "the request did not come in time");
    } else if (c->state == CONN_SOCKET && c->owner && c->owner->idle) {
        c->owner->idle(c->user);
    } else {
        conn_drop(c);
    }
}

/* What has left of its answer arrives, and then the end. */
static void end_starved(struct conn *c)
{
    const struct conn_owner *owner = c->owner;
    c->owner = NULL;
    conn_enter(c, CONN_CLOSING);
    c->deadline = clock_seconds() + STALL_S;
    if (owner) {
        owner->gone(c->user);
    }
    free_request(c);
    conn_wrote(c);
}

bool conn_tick(struct server *s, double now)
{
    struct conn *c, *after;
    int n_left = ENDS_AT_ONCE;
    for (c = TAILQ_FIRST(&s->conns); c && n_left > 0; c = after) {
        after = TAILQ_NEXT(c, entry);
        bool stalled = conn_unsent(c) > 0 && now - c->last_write > STALL_S;
        if (c->starved && c->state < CONN_CLOSING) {
            end_starved(c);
        } else if (stalled) {
            s->metrics.dropped_stalled++;
            conn_drop(c);
            n_left--;
        } else if (c->deadline > 0 && now > c->deadline) {
            pass_deadline(c);
            n_left--;
        } else if (c->resume_at > 0 && now >= c->resume_at && !conn_resume(c)) {
            conn_drop(c);
            n_left--;
        }
    }
    return n_left == 0;
}
