/* SPDX-License-Identifier: Apache-2.0
 * The list of places grows with what normalisation changes and shrinks as words leave. */
#include "text/places.h"

#include <string.h>

#include "base/memory.h"
#include "text/nfc.h"

static utter_status add(struct places *p, uint64_t normal, uint64_t raw, bool same, utter_error *error)
{
    const struct place *last = p->n > 0 ? &p->at[p->n - 1] : NULL;
    if (last && same && last->same && raw - last->raw == normal - last->normal) {
        return UTTER_OK;
    }
    if (p->n == p->room) {
        size_t room = 2 * p->room + 16;
        struct place *at = memory_resize(p->at, p->room, room, sizeof *at);
        if (!at) {
            return error_memory(error, "text");
        }
        p->at = at;
        p->room = room;
    }
    p->at[p->n++] = (struct place){normal, raw, same};
    return UTTER_OK;
}

/* Bytes of the first stretch: up to the next border. */
static size_t stretch_of(const char *raw, size_t bytes)
{
    size_t n = 0;
    uint32_t code;
    do {
        n += utf8_get(raw + n, &code);
        if (n < bytes) {
            utf8_get(raw + n, &code);
        }
    } while (n < bytes && !nfc_border_before(code));
    return n;
}

utter_status places_add(struct places *p, uint64_t raw_at, const char *raw, size_t raw_bytes,
    uint64_t normal_at, const char *normal, size_t normal_bytes, utter_error *error)
{
    if (raw_bytes == normal_bytes && memcmp(raw, normal, raw_bytes) == 0) {
        return raw_bytes > 0 ? add(p, normal_at, raw_at, true, error) : UTTER_OK;
    }
    utter_status status = UTTER_OK;
    for (size_t n; status == UTTER_OK && raw_bytes > 0; raw += n, raw_at += n, raw_bytes -= n) {
        n = stretch_of(raw, raw_bytes);
        p->stretch.n = 0;
        status = nfc_add(&p->stretch, raw, n, error);
        if (status == UTTER_OK && p->stretch.n > 0) {
            bool same = p->stretch.n == n && memcmp(p->stretch.at, raw, n) == 0;
            status = add(p, normal_at, raw_at, same, error);
            normal_at += p->stretch.n;
        }
    }
    return status;
}

uint64_t places_find(const struct places *p, uint64_t normal)
{
    size_t low = 0, high = p->n; /* the last one that begins at or before it is in low .. high - 1 */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (p->at[middle].normal <= normal) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (p->n == 0 || p->at[low].normal > normal) {
        return 0;
    }
    return p->at[low].raw + (p->at[low].same ? normal - p->at[low].normal : 0);
}

void places_drop(struct places *p, uint64_t normal)
{
    size_t n = 0;
    while (n + 1 < p->n && p->at[n + 1].normal <= normal) {
        n++;
    }
    if (n > 0) {
        memmove(p->at, p->at + n, (p->n - n) * sizeof *p->at);
        p->n -= n;
    }
}

void places_fini(struct places *p)
{
    memory_free(p->at);
    chars_fini(&p->stretch);
}
