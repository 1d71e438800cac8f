/* SPDX-License-Identifier: Apache-2.0
 * /openapi.json: the interface, written from the tables that requests are checked by. */
#ifndef SERVER_OPENAPI_H
#define SERVER_OPENAPI_H

#include "server/loop/routes.h"

/* The description in OpenAPI 3.1 as JSON, for memory_plain_free; NULL: out of memory. */
char *openapi_text(const struct route_table *tables, size_t n);

#endif
