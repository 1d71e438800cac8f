/* SPDX-License-Identifier: Apache-2.0
 * A client's connection: requests in, answers out, deadlines; and what hears that the client has gone. */
#ifndef SERVER_CONN_H
#define SERVER_CONN_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "server/loop/budget.h"
#include "server/loop/server.h"
#include "server/protocol/http.h"
#include "server/protocol/refusal.h"
#include "server/protocol/trace.h"
#include "server/protocol/websocket.h"

enum conn_state {
    CONN_HEAD,    /* waits for a request, or reads its head */
    CONN_BODY,    /* reads its body */
    CONN_ANSWER,  /* the request is being answered */
    CONN_SOCKET,  /* a WebSocket */
    CONN_CLOSING, /* writes what is left, then closes */
    CONN_LINGER,  /* has said that it is done, and takes what the client still sends */
};

/* Who answers. `gone`: the client has left, or was dropped; the connection is freed after it. */
struct conn_owner {
    void (*gone)(void *user);
    void (*drained)(void *user); /* little is left unsent; may be NULL */
    void (*message)(void *user, const struct websocket_event *event); /* of a WebSocket */
    void (*idle)(void *user);         /* WebSocket: its deadline has passed */
    bool (*speaks)(const void *user); /* WebSocket: something is spoken, or about to be; NULL: never */
};

/* Which requests are taken, and who begins to answer them. */
struct conn_service {
    /* Called with the head alone: how long the body may be. False: *refusal says why not. */
    bool (*admit)(struct conn *c, size_t *body_limit, struct refusal *refusal);
    /* Called with the whole request; answers it, or leaves that to an owner. */
    void (*request)(struct conn *c);
};

/* An error in the shape that the client knows; the caller's, NULL when out of memory. */
typedef json_t *conn_refusal_json(const struct refusal *refusal);

struct conn {
    TAILQ_ENTRY(conn) entry, of_all, of_origin; /* the last two: in lists of its worth */
    struct server *server;
    struct origin *origin;
    enum worth worth;
    double went_on; /* when it came to be worth that, or more of a request or a message came */
    struct bufferevent *bev;
    enum conn_state state;
    char *head_text;
    struct http_head head;
    struct http_chunks chunks;
    struct evbuffer *body;
    size_t body_limit;
    size_t held_bytes;    /* its part of the server's */
    size_t unsent;        /* likewise */
    size_t owner_bytes;   /* what its owner keeps of what it has sent */
    int needed;           /* bytes that must be there before it is read */
    double deadline;      /* 0: none */
    double last_write;    /* when the client took bytes */
    double read_at;       /* when the request was whole */
    double asked_at;      /* when it came, or the last request or message did */
    double resume_at;     /* who has sent or asked too much is read again then; 0: it is being read */
    size_t n_come;        /* bytes that have been read and not paid for yet */
    struct bucket bytes;  /* that may be read */
    struct bucket sent;   /* that may be read whatever its neighbours send */
    struct bucket said;   /* messages that it may say whatever they ask */
    struct budget budget; /* of requests, and of a WebSocket's messages */
    bool keep_alive, chunked_answer, reading;
    bool has_said;           /* a WebSocket: some message has come */
    bool is_held;            /* is thrown out, and told later */
    bool begun;              /* some of the answer may have left already */
    bool starved;            /* memory was out for what it must be told: nothing may follow */
    struct account *account; /* of the key that the client has shown, or NULL */
    char request_id[32];
    struct trace trace; /* that the request is part of */
    char address[64];
    struct websocket *socket;
    const struct conn_service *service;
    conn_refusal_json *refusal_json; /* of the request; NULL: refusal_json */
    const struct conn_owner *owner;  /* NULL: nobody answers yet */
    void *user;
};

/* Before the first one. */
void conn_places(struct server *s);
struct conn *conn_new(struct server *s, const struct conn_service *service, evutil_socket_t socket,
    const struct sockaddr *from);
/* Ends it now; tells the owner. */
void conn_drop(struct conn *c);
/* Ends the one that is worth least (enum worth), so that a newcomer finds a place: of the address that has more than
 * half of all places, or of all. False: all are at work. */
bool conn_make_room(struct server *s, const struct sockaddr *newcomer);
void conn_own(struct conn *c, const struct conn_owner *owner, void *user);

/* Whole answers. `json` is taken over; NULL: out of memory. */
void conn_answer_json(struct conn *c, int status, json_t *json);
void conn_answer(struct conn *c, int status, const char *type, const void *body, size_t n);
void conn_refuse(struct conn *c, const struct refusal *refusal);
/* More header lines for the next answer, each ended by CR LF, may come in `more`. */
void conn_answer_more(
    struct conn *c, int status, const char *type, const char *more, const void *body, size_t n);

/* An answer in pieces, of unknown length; or of n bytes in all. */
void conn_begin(struct conn *c, int status, const char *type, const char *more);
void conn_begin_whole(struct conn *c, int status, const char *type, const char *more, size_t n);
void conn_piece(struct conn *c, const void *bytes, size_t n);
/* Ends it; `trailer` is NULL or header lines that conn_begin has announced. */
void conn_finish(struct conn *c, const char *trailer);
/* Ends it where it stands, without the last chunk: so the client knows that it is not whole. */
void conn_break(struct conn *c);

/* Memory is out for what a client must be told. It is refused, if nothing of an answer has left; nothing more leaves.
 * The loop ends it and tells the owner, who may go on until then. */
void conn_starve(struct conn *c);
/* Likewise one that has come, and for which there is no room. */
void conn_turn_away(evutil_socket_t socket);

size_t conn_unsent(const struct conn *c);
/* Counts anew what the client holds. */
void conn_count(struct conn *c);

/* Whether the request begins a WebSocket and the server has time for one; otherwise it has been refused. Fills in what
 * conn_upgrade says. */
bool conn_handshake(struct conn *c, char accept[29]);
void conn_upgrade(struct conn *c, const char *accept, size_t message_limit);
void conn_send(struct conn *c, enum websocket_kind kind, const void *bytes, size_t n);
void conn_send_json(struct conn *c, json_t *json); /* taken over */
void conn_close_socket(struct conn *c, int code, const char *reason);

/* Deadlines; called a few times a second. True: not all yet, to be called again when nothing else waits. */
bool conn_tick(struct server *s, double now);
/* If the file is that of a connection, it ends (server/loop/conn/lapse.h). */
void conn_lapsed(struct server *s, evutil_socket_t file);
/* A drain has begun: those that wait for a next request are closed. Those whose first one is on its way have a second
 * for it, as have those that come from now on. */
void conn_drain(struct server *s);

#endif
