/* SPDX-License-Identifier: Apache-2.0
 * VERSION-TRACE-SPAN-FLAGS: 2, 32, 16 and 2 lower-case digits. A later version than 00 may say more behind that. */
#include "server/protocol/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
    VERSION = 2,
    TRACE = 32,
    SPAN = 16,
    FLAGS = 2,
    BYTES = VERSION + 1 + TRACE + 1 + SPAN + 1 + FLAGS
};

/* At least n digits, of which the first n are not all zero unless they may be. */
static bool is_number(const char *text, size_t n, bool may_be_zero)
{
    return strspn(text, "0123456789abcdef") >= n && (may_be_zero || strspn(text, "0") < n);
}

void trace_read(struct trace *trace, const char *value)
{
    *trace = (struct trace){.trace_id = ""};
    if (!value || strlen(value) < BYTES) {
        return;
    }
    const char *id = value + VERSION + 1, *span = id + TRACE + 1, *flags = span + SPAN + 1,
               *end = flags + FLAGS;
    bool is_later = strncmp(value, "00", VERSION) != 0;
    if (is_number(value, VERSION, true) && strncmp(value, "ff", VERSION) != 0 && id[-1] == '-' &&
        is_number(id, TRACE, false) && span[-1] == '-' && is_number(span, SPAN, false) &&
        flags[-1] == '-' && is_number(flags, FLAGS, true) && (!*end || (is_later && *end == '-'))) {
        memcpy(trace->trace_id, id, TRACE);
        memcpy(trace->span_id, span, SPAN);
    }
}

const char *trace_id(const struct trace *trace)
{
    return trace && trace->trace_id[0] ? trace->trace_id : NULL;
}

const char *trace_span(const struct trace *trace)
{
    return trace && trace->span_id[0] ? trace->span_id : NULL;
}
