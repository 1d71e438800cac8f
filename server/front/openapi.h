/* SPDX-License-Identifier: Apache-2.0
 * /openapi.json: the interface, written from the tables that requests are checked by. */
#ifndef SERVER_OPENAPI_H
#define SERVER_OPENAPI_H

#include <jansson.h>

#include "server/loop/routes.h"

/* The description in OpenAPI 3.1, the caller's; NULL: out of memory. */
json_t *openapi_json(const struct route_table *tables, size_t n);

#endif
