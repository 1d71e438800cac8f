/* SPDX-License-Identifier: Apache-2.0
 * Why a request is not done: what the client is told. */
#ifndef SERVER_REFUSAL_H
#define SERVER_REFUSAL_H

#include <jansson.h>
#include <stdbool.h>

struct refusal {
    int status;       /* of HTTP */
    const char *type; /* NULL: by the status */
    const char *code; /* or NULL */
    char param[64];   /* the field, or "" */
    char message[768];
    int retry_ms;     /* 0: no advice */
    bool never_retry; /* asking again would not help */
    char allow[24];   /* of 405: the methods that the path has */
};

/* Fills it in and returns false, so that a refusal is one line. `param` may be NULL. */
bool refuse(struct refusal *r, int status, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* As Retry-After says it, in whole seconds. */
int refusal_retry_s(int retry_ms);
const char *refusal_type(const struct refusal *r);
/* {"error": {message, type, param, code}}, the caller's; NULL when out of memory. */
json_t *refusal_json(const struct refusal *r);

#endif
