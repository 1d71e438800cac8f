/* SPDX-License-Identifier: Apache-2.0
 * The shape of an error, as OpenAI's interface has it. */
#include "server/protocol/refusal.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

bool refuse(struct refusal *r, int status, const char *param, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *r = (struct refusal){.status = status};
    /* Names from the request may hold anything, and may be cut inside a character. */
    size_t bytes = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    error_quote(r->message, sizeof r->message, text, bytes);
    snprintf(r->param, sizeof r->param, "%s", param ? param : "");
    return false;
}

int refusal_retry_s(int retry_ms)
{
    return (retry_ms + 999) / 1000;
}

const char *refusal_type(const struct refusal *r)
{
    return r->type            ? r->type
           : r->status == 429 ? "rate_limit_error"
           : r->status == 503 ? "overloaded_error"
           : r->status >= 500 ? "server_error"
                              : "invalid_request_error";
}

json_t *refusal_json(const struct refusal *r)
{
    return json_pack("{s:{s:s,s:s,s:s?,s:s?}}", "error", "message", r->message, "type", refusal_type(r),
        "param", r->param[0] ? r->param : NULL, "code", r->code);
}
