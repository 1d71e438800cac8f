/* SPDX-License-Identifier: Apache-2.0
 * multipart/form-data (RFC 7578). */
#include "server/protocol/multipart.h"

#include <string.h>
#include <strings.h>

/* The value of `; name=value` or `; name="value"` in header[0..n), into out[size]; NULL when there is none or it
 * is too long. */
static const char *parameter(const char *header, size_t n, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);
    for (size_t i = 0; i + length + 2 < n; i++) {
        const char *at = header + i;
        if (*at == '"') { /* a quoted value is not looked into */
            const char *quote = memchr(at + 1, '"', n - i - 1);
            i = quote ? (size_t)(quote - header) : n;
            continue;
        }
        if ((*at != ';' && *at != ' ') || strncasecmp(at + 1, name, length) != 0 ||
            at[1 + length] != '=') {
            continue;
        }
        const char *value = at + length + 2, *end = header + n;
        const char *stop;
        if (value < end && *value == '"') {
            value++;
            stop = memchr(value, '"', (size_t)(end - value));
        } else {
            stop = value;
            while (stop < end && *stop != ';' && *stop != ' ' && *stop != '\r') {
                stop++;
            }
        }
        if (!stop || (size_t)(stop - value) >= size) {
            return NULL;
        }
        memcpy(out, value, (size_t)(stop - value));
        out[stop - value] = 0;
        return out;
    }
    return NULL;
}

/* The line that begins with Content-Disposition in the head of a part; NULL without one. */
static const char *disposition(const char *head, size_t n, size_t *bytes)
{
    static const char name[] = "content-disposition:";
    for (const char *at = head, *end = head + n; at < end;) {
        const char *feed = memmem(at, (size_t)(end - at), "\r\n", 2);
        size_t line = feed ? (size_t)(feed - at) : (size_t)(end - at);
        if (line >= sizeof name - 1 && strncasecmp(at, name, sizeof name - 1) == 0) {
            *bytes = line;
            return at;
        }
        at += line + 2;
    }
    return NULL;
}

static const char *take_part(struct multipart *form, const char *at, const char *stop)
{
    if (form->n_parts == MULTIPART_MAX_PARTS) {
        return "the form has more than 16 parts";
    }
    struct multipart_part *part = &form->parts[form->n_parts];
    const char *blank = memmem(at, (size_t)(stop - at), "\r\n\r\n", 4);
    if (!blank) {
        return "a part of the form has no header";
    }
    size_t line_bytes;
    const char *line = disposition(at, (size_t)(blank - at), &line_bytes);
    if (!line || !parameter(line, line_bytes, "name", part->name, sizeof part->name)) {
        return "a part of the form has no name of at most 63 bytes";
    }
    if (!parameter(line, line_bytes, "filename", part->file_name, sizeof part->file_name)) {
        part->file_name[0] = 0;
    }
    part->data = blank + 4;
    part->bytes = (size_t)(stop - part->data);
    form->n_parts++;
    return NULL;
}

const char *multipart_parse(
    struct multipart *form, const char *content_type, const char *body, size_t bytes)
{
    char mark[80] = "\r\n--";
    form->n_parts = 0;
    if (strncasecmp(content_type, "multipart/form-data", 19) != 0 ||
        !parameter(content_type, strlen(content_type), "boundary", mark + 4, 71) || !mark[4]) {
        return "the body is no multipart/form-data with a boundary";
    }
    size_t mark_bytes = strlen(mark);
    const char *at = body, *end = body + bytes;
    /* The first boundary may stand at the very beginning, without the line break. */
    if (bytes < mark_bytes || memcmp(at, mark + 2, mark_bytes - 2) != 0) {
        return "the form does not begin with its boundary";
    }
    at += mark_bytes - 2;
    while (end - at >= 2 && memcmp(at, "\r\n", 2) == 0) {
        at += 2;
        const char *stop = memmem(at, (size_t)(end - at), mark, mark_bytes);
        if (!stop) {
            return "the form has no end";
        }
        const char *fault = take_part(form, at, stop);
        if (fault) {
            return fault;
        }
        at = stop + mark_bytes;
    }
    return end - at >= 2 && memcmp(at, "--", 2) == 0 ? NULL : "the form has no end";
}

const struct multipart_part *multipart_find(const struct multipart *form, const char *name)
{
    for (int i = 0; i < form->n_parts; i++) {
        if (strcmp(form->parts[i].name, name) == 0) {
            return &form->parts[i];
        }
    }
    return NULL;
}
