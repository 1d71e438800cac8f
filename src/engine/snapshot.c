/* SPDX-License-Identifier: Apache-2.0
 * The list of kept beginnings, the most recently used in front. */
#include "engine/snapshot.h"

#include <string.h>

#include "base/memory.h"

struct snapshot {
    struct snapshot *next;
    struct backend_snapshot *state;
    utter_voice *voice; /* a share: rows point into it; or NULL */
    uint64_t bytes;
    int n_rows;
    struct row rows[];
};

static bool same_row(const struct row *a, const struct row *b, const struct config *c)
{
    if (a->text != b->text || a->codec != b->codec) {
        return false;
    }
    switch (a->codec) {
    case ROW_NONE:
        return true;
    case ROW_ID:
        return a->id == b->id;
    case ROW_VECTOR:
        return memcmp(a->vector, b->vector, (size_t)c->talker.width * sizeof *a->vector) == 0;
    case ROW_CODES:
        return memcmp(a->codes, b->codes, (size_t)c->n_codebooks * sizeof *a->codes) == 0;
    }
    return false;
}

static bool has_codes(const utter_voice *v)
{
    return v && v->codes;
}

/* What the vocoder has heard. */
static bool same_codes(const utter_voice *a, const utter_voice *b)
{
    if (a == b || !has_codes(a) || !has_codes(b)) {
        return has_codes(a) == has_codes(b);
    }
    return a->n_frames == b->n_frames && a->n_codebooks == b->n_codebooks &&
           memcmp(a->codes, b->codes,
               (size_t)a->n_frames * (size_t)a->n_codebooks * sizeof *a->codes) == 0;
}

static bool same_beginning(
    const struct snapshot *s, const struct beginning *b, const struct config *config)
{
    if (s->n_rows != b->n_rows || !same_codes(s->voice, b->voice)) {
        return false;
    }
    for (int i = 0; i < s->n_rows; i++) {
        if (!same_row(&s->rows[i], &b->rows[i], config)) {
            return false;
        }
    }
    return true;
}

/* The one of this beginning, which comes to the front; NULL: none is kept. */
static struct snapshot *find(struct snapshot_store *store, const struct beginning *beginning)
{
    for (struct snapshot **at = &store->first; *at; at = &(*at)->next) {
        struct snapshot *s = *at;
        if (same_beginning(s, beginning, store->config)) {
            *at = s->next;
            s->next = store->first;
            store->first = s;
            return s;
        }
    }
    return NULL;
}

utter_status snapshot_resume(struct snapshot_store *store, int lane, const struct beginning *beginning,
    bool *found, utter_error *error)
{
    struct snapshot *s = find(store, beginning);
    *found = s != NULL;
    return s ? store->ops->lane_resume(store->backend, lane, s->state, error) : UTTER_OK;
}

/* Takes one out of the list and frees it. */
static void drop(struct snapshot_store *store, struct snapshot **at)
{
    struct snapshot *s = *at;
    *at = s->next;
    store->used_bytes -= s->bytes;
    store->n--;
    store->ops->snapshot_free(store->backend, &s->state);
    voice_free(&s->voice);
    memory_free(s);
}

/* Drops the least recently used until there is room. */
static void make_room(struct snapshot_store *store, uint64_t bytes)
{
    while (store->used_bytes > store->limit_bytes - bytes) {
        struct snapshot **last = &store->first;
        while ((*last)->next) {
            last = &(*last)->next;
        }
        drop(store, last);
    }
}

/* Bytes that a beginning takes, its rows included. */
static uint64_t bytes_of(const struct snapshot_store *store, const struct beginning *b)
{
    uint64_t each = sizeof(struct row) + store->position_bytes;
    return sizeof(struct snapshot) + (uint64_t)b->n_rows * each +
           (has_codes(b->voice) ? store->kept_bytes : 0);
}

utter_status snapshot_keep(
    struct snapshot_store *store, int lane, const struct beginning *beginning, utter_error *error)
{
    uint64_t bytes = bytes_of(store, beginning);
    if (!store->ops->lane_keep || bytes > store->limit_bytes || find(store, beginning)) {
        return UTTER_OK;
    }
    make_room(store, bytes);
    size_t rows_bytes = (size_t)beginning->n_rows * sizeof(struct row);
    struct snapshot *s = memory_new(sizeof *s + rows_bytes, 1);
    if (!s) {
        return UTTER_OK;
    }
    utter_status status = store->ops->lane_keep(
        store->backend, lane, beginning->n_rows, has_codes(beginning->voice), &s->state, error);
    if (status) {
        memory_free(s);
        return status == UTTER_E_MEMORY ? UTTER_OK : status;
    }
    s->voice = voice_share(beginning->voice);
    s->bytes = bytes;
    s->n_rows = beginning->n_rows;
    memcpy(s->rows, beginning->rows, rows_bytes);
    s->next = store->first;
    store->first = s;
    store->used_bytes += bytes;
    store->n++;
    return UTTER_OK;
}

void snapshot_store_clear(struct snapshot_store *store)
{
    while (store->first) {
        drop(store, &store->first);
    }
}
