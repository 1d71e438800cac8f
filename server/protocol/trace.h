/* SPDX-License-Identifier: Apache-2.0
 * The trace that a request is part of, as its header `traceparent` tells it (W3C Trace Context). Pure. */
#ifndef SERVER_TRACE_H
#define SERVER_TRACE_H

/* In hexadecimal digits, as logs of others name them; both "" where a request tells of none. */
struct trace {
    char trace_id[33], span_id[17];
};

/* `value` of the header; NULL, or one that is not as the standard has it, gives no trace. */
void trace_read(struct trace *trace, const char *value);
/* For JSON, which leaves out what is NULL. `trace` may be NULL. */
const char *trace_id(const struct trace *trace);
const char *trace_span(const struct trace *trace);

#endif
