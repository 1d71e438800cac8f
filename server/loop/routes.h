/* SPDX-License-Identifier: Apache-2.0
 * A row of a table of paths. The front has one table, each dialect another. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include "server/loop/conn.h"

enum route_access { ROUTE_OPEN, ROUTE_KEY, ROUTE_KEY_AND_MODEL };

struct route {
    const char *method;
    const char *path; /* without /v1; a star stands for one name, a slash at the end for one more */
    enum route_access access;
    size_t body_limit;
    void (*answer)(struct conn *c);
    bool socket;                /* speaks WebSocket */
    conn_refusal_json *refusal; /* how an error looks; NULL: as OpenAI's interface says it */
};

#endif
