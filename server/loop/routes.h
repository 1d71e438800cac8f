/* SPDX-License-Identifier: Apache-2.0
 * A row of a table of paths. The front has one table, each dialect another. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include "server/loop/conn/conn.h"

enum route_access { ROUTE_OPEN, ROUTE_KEY, ROUTE_KEY_AND_MODEL };

struct route {
    const char *method;
    const char *path; /* as its clients know it; /v1 in front may be there or not. A star stands for one
                       * name, a slash at the end for one more */
    enum route_access access;
    size_t body_limit;
    void (*answer)(struct conn *c);
    bool socket;                /* speaks WebSocket */
    conn_refusal_json *refusal; /* how an error looks; NULL: as OpenAI's interface says it */
    const char *about;          /* what it does, for /openapi.json */
    const char *asks;           /* the schema of its body there; NULL: it has none */
    const char *gives;          /* the media type of a good answer */
};

/* The rows of one service, up to one without a method. */
struct route_table {
    const char *service;
    const struct route *rows;
};

#endif
