/* SPDX-License-Identifier: Apache-2.0
 * Reads vocab.json. The file is one flat object with 150,000 keys, for which a general parser takes longer
 * than everything else that happens when a checkpoint is opened; so this reads just that object, as
 * strictly as JSON wants it. */
#include "text/vocabulary.h"

#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"

enum { FILE_LIMIT = 1 << 28 };

struct reader {
    struct vocabulary *to;
    const char *path;
    struct bytes in;
    utter_error *error;
};

static utter_status fail_at(const struct reader *r, size_t offset, const char *why)
{
    return error_set(r->error, UTTER_E_FILE, "%s: byte %zu: %s", r->path, offset, why);
}

static size_t offset_of(const struct reader *r)
{
    return (size_t)(r->in.at - (const uint8_t *)r->to->bytes);
}

static utter_status fail(const struct reader *r, const char *why)
{
    return fail_at(r, offset_of(r), why);
}

int vocabulary_byte(uint32_t code)
{
    if ((code >= 33 && code <= 126) || (code >= 161 && code <= 255 && code != 173)) {
        return (int)code;
    }
    /* The others, in their order: 0..32, 127..160, 173. */
    if (code < 256 || code > 323) {
        return -1;
    }
    code -= 256;
    return code < 33 ? (int)code : code < 67 ? (int)(code - 33 + 127) : 173;
}

static uint64_t hash_of(const char *text, size_t bytes)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t h = bytes * odd, word;
    for (; bytes >= 8; text += 8, bytes -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * odd;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, text, bytes);
    h = (h ^ word) * odd;
    return h ^ h >> 29;
}

bool vocabulary_is(const struct vocabulary *vocabulary, size_t index, const char *text, size_t bytes)
{
    return index < vocabulary->n && vocabulary->entry[index].bytes == bytes &&
           memcmp(vocabulary->bytes + vocabulary->entry[index].offset, text, bytes) == 0;
}

/* The slot that holds these bytes, or the free one where they would stand. */
static uint32_t *find_slot(const struct vocabulary *v, const char *text, size_t bytes)
{
    size_t at = hash_of(text, bytes) & v->slot_mask;
    while (v->slot[at] != 0 && !vocabulary_is(v, v->slot[at] - 1, text, bytes)) {
        at = (at + 1) & v->slot_mask;
    }
    return &v->slot[at];
}

ptrdiff_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t bytes)
{
    return (ptrdiff_t)*find_slot(vocabulary, text, bytes) - 1;
}

static void skip_space(struct reader *r)
{
    while (bytes_left(&r->in) > 0 &&
           (*r->in.at == ' ' ||
               (*r->in.at >= '\t' && *r->in.at <= '\r' && *r->in.at != '\v' && *r->in.at != '\f'))) {
        r->in.at++;
    }
}

static bool take(struct reader *r, char wanted)
{
    skip_space(r);
    if (bytes_left(&r->in) == 0 || *r->in.at != (uint8_t)wanted) {
        return false;
    }
    r->in.at++;
    return true;
}

/* What follows a backslash; -1 when it is no escape. */
static int32_t read_escape(struct reader *r)
{
    static const char plain[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const uint8_t *p = bytes_take(&r->in, 1);
    if (!p) {
        return -1;
    }
    const char *found = memchr(plain, *p, sizeof plain - 1);
    if (found) {
        return means[found - plain];
    }
    const uint8_t *digits = *p == 'u' ? bytes_take(&r->in, 4) : NULL;
    int32_t code = digits ? 0 : -1;
    for (int i = 0; digits && i < 4; i++) {
        int c = digits[i] | 0x20;
        int digit = digits[i] >= '0' && digits[i] <= '9' ? digits[i] - '0'
                    : c >= 'a' && c <= 'f'               ? c - 'a' + 10
                                                         : -1;
        if (digit < 0) {
            return -1;
        }
        code = code << 4 | digit;
    }
    return code;
}

/* A string in the byte alphabet, decoded where it stands. */
static utter_status read_token(struct reader *r, struct vocabulary_entry *entry)
{
    char *out = r->to->bytes + offset_of(r);
    entry->offset = (uint32_t)offset_of(r);
    for (;;) {
        const uint8_t *p = bytes_take(&r->in, 1);
        if (!p) {
            return fail(r, "the file ends inside a token");
        }
        if (*p == '"') {
            break;
        }
        int32_t code = *p;
        if (*p == '\\') {
            code = read_escape(r);
            if (code < 0) {
                return fail(r, "not an escape of JSON");
            }
        } else if (*p >= 0x80) {
            const uint8_t *q = *p >= 0xc2 && *p <= 0xc5 ? bytes_take(&r->in, 1) : NULL;
            code = q && (*q & 0xc0) == 0x80 ? (*p & 0x1f) << 6 | (*q & 0x3f) : 0;
        }
        int byte = vocabulary_byte((uint32_t)code);
        if (byte < 0) {
            return fail(r, "a token has a character that stands for no byte");
        }
        *out++ = (char)byte;
    }
    entry->bytes = (uint32_t)(out - r->to->bytes) - entry->offset;
    return entry->bytes > 0 ? UTTER_OK : fail(r, "an empty token");
}

static utter_status read_id(struct reader *r, int32_t *id)
{
    skip_space(r);
    const uint8_t *first = r->in.at;
    *id = 0;
    while (
        bytes_left(&r->in) > 0 && *r->in.at >= '0' && *r->in.at <= '9' && *id < VOCABULARY_ID_LIMIT) {
        *id = *id * 10 + (*r->in.at++ - '0');
    }
    size_t n = (size_t)(r->in.at - first);
    uint8_t next = bytes_left(&r->in) > 0 ? *r->in.at : 0;
    if (n == 0 || *id >= VOCABULARY_ID_LIMIT || (n > 1 && *first == '0') || next == '.' ||
        next == 'e' || next == 'E') {
        return error_set(r->error, UTTER_E_FILE,
            "%s: byte %zu: an id must be a whole number from 0 to %d", r->path, offset_of(r),
            VOCABULARY_ID_LIMIT - 1);
    }
    return UTTER_OK;
}

static utter_status read_entry(struct reader *r)
{
    struct vocabulary *v = r->to;
    if (v->n == v->capacity) {
        size_t more = v->capacity * 2;
        struct vocabulary_entry *entry = memory_resize(v->entry, v->capacity, more, sizeof *entry);
        if (!entry) {
            return error_memory(r->error, "the vocabulary");
        }
        v->entry = entry;
        v->capacity = more;
    }
    struct vocabulary_entry *entry = &v->entry[v->n];
    if (!take(r, '"')) {
        return fail(r, "a token in quotes was expected");
    }
    utter_status status = read_token(r, entry);
    if (status == UTTER_OK && !take(r, ':')) {
        status = fail(r, "':' was expected");
    }
    if (status == UTTER_OK) {
        status = read_id(r, &entry->id);
    }
    if (status == UTTER_OK) {
        v->n++;
        v->largest_id = max(entry->id, v->largest_id);
    }
    return status;
}

static utter_status read_object(struct reader *r)
{
    if (!take(r, '{')) {
        return fail(r, "an object of tokens and ids was expected");
    }
    if (!take(r, '}')) {
        do {
            utter_status status = read_entry(r);
            if (status != UTTER_OK) {
                return status;
            }
        } while (take(r, ','));
        if (!take(r, '}')) {
            return fail(r, "',' or '}' was expected");
        }
    }
    skip_space(r);
    return bytes_left(&r->in) == 0 ? UTTER_OK : fail(r, "the file goes on behind the object");
}

/* Fills the hash table; finds what comes twice and bytes that are missing. */
static utter_status index_entries(struct reader *r)
{
    struct vocabulary *v = r->to;
    size_t n_slots = 1024;
    while (n_slots < v->n * 2) {
        n_slots *= 2;
    }
    v->slot_mask = n_slots - 1;
    v->slot = memory_new(n_slots, sizeof *v->slot);
    uint8_t *seen = memory_new((size_t)v->largest_id / 8 + 1, 1);
    utter_status status = v->slot && seen ? UTTER_OK : error_memory(r->error, "the vocabulary");
    for (size_t i = 0; status == UTTER_OK && i < v->n; i++) {
        const struct vocabulary_entry *e = &v->entry[i];
        uint32_t *slot = find_slot(v, v->bytes + e->offset, e->bytes);
        uint8_t bit = (uint8_t)(1u << (e->id & 7));
        if (*slot != 0) {
            status = fail_at(r, e->offset, "this token comes a second time");
        } else if (seen[e->id >> 3] & bit) {
            status = fail_at(r, e->offset, "this token has an id that another one has too");
        }
        *slot = (uint32_t)i + 1;
        seen[e->id >> 3] |= bit;
    }
    memory_free(seen);
    for (int byte = 0; status == UTTER_OK && byte < 256; byte++) {
        char text = (char)byte;
        if (vocabulary_find(v, &text, 1) < 0) {
            status = error_set(r->error, UTTER_E_FILE,
                "%s: no token for the byte 0x%02x (is this a byte-level vocabulary?)", r->path,
                (unsigned)byte);
        }
    }
    return status;
}

utter_status vocabulary_open(
    struct vocabulary *vocabulary, const char *path, file_reader *read_file, utter_error *error)
{
    *vocabulary = (struct vocabulary){0};
    struct reader r = {vocabulary, path, {0}, error};
    size_t bytes = 0;
    utter_status status = read_file(path, FILE_LIMIT, &vocabulary->bytes, &bytes, error);
    if (status == UTTER_OK) {
        r.in = bytes_of(vocabulary->bytes, bytes);
        vocabulary->capacity = bytes / 16 + 16; /* the released file has 18 bytes to an entry */
        vocabulary->entry = memory_new(vocabulary->capacity, sizeof *vocabulary->entry);
        status = vocabulary->entry ? read_object(&r) : error_memory(error, "the vocabulary");
    }
    if (status == UTTER_OK) {
        status = index_entries(&r);
    }
    if (status != UTTER_OK) {
        vocabulary_close(vocabulary);
    }
    return status;
}

void vocabulary_close(struct vocabulary *vocabulary)
{
    memory_free(vocabulary->bytes);
    memory_free(vocabulary->entry);
    memory_free(vocabulary->slot);
    *vocabulary = (struct vocabulary){0};
}
