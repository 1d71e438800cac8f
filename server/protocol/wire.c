/* SPDX-License-Identifier: Apache-2.0
 * Numbers and strings of the messages. */
#include "server/protocol/wire.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/minmax.h"

static const uint32_t no_string = UINT32_MAX;

void wire_put(struct wire_out *w, const void *data, size_t n)
{
    if (!w->failed && n > w->room - w->n) {
        size_t room = w->room ? w->room : 4096;
        while (room - w->n < n && room <= SIZE_MAX / 4) {
            room *= 2;
        }
        uint8_t *grown = memory_resize(w->bytes, w->room, room, 1);
        w->failed = !grown;
        w->bytes = grown ? grown : w->bytes;
        w->room = grown ? room : w->room;
    }
    if (!w->failed && n) {
        memcpy(w->bytes + w->n, data, n);
        w->n += n;
    }
}

void wire_put_number(struct wire_out *w, uint64_t value, int n_bytes)
{
    uint8_t bytes[8];
    for (int i = 0; i < n_bytes; i++) {
        bytes[i] = (uint8_t)(value >> 8 * i);
    }
    wire_put(w, bytes, (size_t)n_bytes);
}

static void put_int(struct wire_out *w, int value)
{
    wire_put_number(w, (uint32_t)value, 4);
}

void wire_put_real(struct wire_out *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    wire_put_number(w, bits, 8);
}

void wire_put_string(struct wire_out *w, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    if (n > WIRE_MAX_BODY) {
        w->failed = true;
        return;
    }
    wire_put_number(w, text ? (uint32_t)n : no_string, 4);
    if (text) {
        wire_put(w, text, n + 1);
    }
}

void wire_begin(struct wire_out *w, enum wire_kind kind, uint32_t id)
{
    w->header = w->n;
    wire_put_number(w, 0, 4);
    wire_put_number(w, (uint32_t)kind, 4);
    wire_put_number(w, id, 4);
}

void wire_end(struct wire_out *w)
{
    size_t body = w->n - w->header - WIRE_HEADER_BYTES;
    w->failed = w->failed || body > WIRE_MAX_BODY;
    for (int i = 0; !w->failed && i < 4; i++) {
        w->bytes[w->header + (size_t)i] = (uint8_t)(body >> 8 * i);
    }
}

void wire_message(struct wire_out *w, enum wire_kind kind, uint32_t id, const void *body, size_t n)
{
    wire_begin(w, kind, id);
    wire_put(w, body, n);
    wire_end(w);
}

void wire_fini(struct wire_out *w)
{
    memory_free(w->bytes);
    *w = (struct wire_out){0};
}

size_t wire_message_bytes(const uint8_t *header)
{
    struct bytes b = bytes_of(header, WIRE_HEADER_BYTES);
    return WIRE_HEADER_BYTES + (size_t)bytes_number(&b, 4);
}

enum wire_progress wire_read(struct wire_message *message, const uint8_t *in, size_t n, size_t *used)
{
    struct bytes b = bytes_of(in, n);
    uint64_t bytes = bytes_number(&b, 4), kind = bytes_number(&b, 4), id = bytes_number(&b, 4);
    *used = 0;
    if (b.short_read) {
        return WIRE_MORE;
    }
    bool known =
        (kind >= WIRE_HELLO && kind <= WIRE_RESUME) || (kind >= WIRE_READY && kind <= WIRE_WORDS);
    if (!known || bytes > WIRE_MAX_BODY) {
        return WIRE_BAD;
    }
    const uint8_t *body = bytes_take(&b, (size_t)bytes);
    if (!body) {
        return WIRE_MORE;
    }
    *message = (struct wire_message){(enum wire_kind)kind, (uint32_t)id, body, (size_t)bytes};
    *used = WIRE_HEADER_BYTES + (size_t)bytes;
    return WIRE_MESSAGE;
}

/* ---- Bodies ---- */

static int get_int(struct bytes *b)
{
    return (int)(int32_t)bytes_number(b, 4);
}

/* 0 or 1: nobody writes anything else. */
static bool get_flag(struct bytes *b)
{
    int value = get_int(b);
    b->short_read = b->short_read || (value != 0 && value != 1);
    return value == 1;
}

static double get_real(struct bytes *b)
{
    uint64_t bits = bytes_number(b, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const char *get_string(struct bytes *b)
{
    uint64_t n = bytes_number(b, 4);
    if (b->short_read || n == no_string) {
        return NULL;
    }
    const char *text = (const char *)bytes_take(b, (size_t)n + 1);
    if (text && strnlen(text, (size_t)n + 1) != n) {
        b->short_read = true;
        return NULL;
    }
    return text;
}

static struct bytes body_of(const struct wire_message *m)
{
    return bytes_of(m->body, m->bytes);
}

static bool is_all(const struct bytes *b)
{
    return !b->short_read && bytes_left(b) == 0;
}

void wire_put_hello(struct wire_out *w, const struct wire_hello *h)
{
    wire_begin(w, WIRE_HELLO, 0);
    wire_put_number(w, h->version, 4);
    wire_put_string(w, h->model);
    wire_put_string(w, h->device);
    wire_put_string(w, h->kernels);
    put_int(w, h->threads);
    put_int(w, h->lanes);
    put_int(w, h->weights);
    wire_put_number(w, h->snapshot_bytes, 8);
    wire_put_string(w, h->cache);
    wire_put_string(w, h->voices);
    wire_put_string(w, h->temporary_voices);
    put_int(w, h->caged);
    put_int(w, h->idle);
    wire_end(w);
}

bool wire_get_hello(struct wire_hello *h, const struct wire_message *m)
{
    struct bytes b = body_of(m);
    h->version = (uint32_t)bytes_number(&b, 4);
    h->model = get_string(&b);
    h->device = get_string(&b);
    h->kernels = get_string(&b);
    h->threads = get_int(&b);
    h->lanes = get_int(&b);
    h->weights = get_int(&b);
    h->snapshot_bytes = bytes_number(&b, 8);
    h->cache = get_string(&b);
    h->voices = get_string(&b);
    h->temporary_voices = get_string(&b);
    h->caged = get_flag(&b);
    h->idle = get_flag(&b);
    return is_all(&b) && h->model && h->device;
}

/* Real numbers first, then the whole ones. */
static void put_sampling(struct wire_out *w, const double *values)
{
    for (int i = 0; i < parameter_count; i++) {
        if (!parameter_table[i].integer) {
            wire_put_real(w, values[i]);
        }
    }
    for (int i = 0; i < parameter_count; i++) {
        if (parameter_table[i].integer) {
            put_int(w, (int)values[i]);
        }
    }
}

static void get_sampling(struct bytes *b, double *values)
{
    for (int i = 0; i < parameter_count; i++) {
        if (!parameter_table[i].integer) {
            values[i] = get_real(b);
        }
    }
    for (int i = 0; i < parameter_count; i++) {
        if (parameter_table[i].integer) {
            values[i] = get_int(b);
        }
    }
}

void wire_put_open(struct wire_out *w, uint32_t id, const struct wire_open *o)
{
    wire_begin(w, WIRE_OPEN, id);
    wire_put_string(w, o->voice_name);
    wire_put_string(w, o->voice_file);
    wire_put_string(w, o->language);
    wire_put_string(w, o->instruct);
    put_int(w, o->layout);
    put_sampling(w, o->sampling);
    wire_put_number(w, o->seed, 8);
    put_int(w, o->max_frames);
    put_int(w, o->live);
    put_int(w, o->markup);
    put_int(w, o->spell_out);
    put_int(w, o->carry);
    put_int(w, o->plain);
    put_int(w, o->words);
    put_int(w, o->background);
    wire_end(w);
}

bool wire_get_open(struct wire_open *o, const struct wire_message *m)
{
    struct bytes b = body_of(m);
    o->voice_name = get_string(&b);
    o->voice_file = get_string(&b);
    o->language = get_string(&b);
    o->instruct = get_string(&b);
    o->layout = get_int(&b);
    get_sampling(&b, o->sampling);
    o->seed = bytes_number(&b, 8);
    o->max_frames = get_int(&b);
    o->live = get_flag(&b);
    o->markup = get_int(&b);
    o->spell_out = get_flag(&b);
    o->carry = get_flag(&b);
    o->plain = get_flag(&b);
    o->words = get_flag(&b);
    o->background = get_flag(&b);
    return is_all(&b);
}

static void put_names(struct wire_out *w, const char *const *names, int n)
{
    put_int(w, n);
    for (int i = 0; i < n; i++) {
        wire_put_string(w, names[i]);
    }
}

static int get_names(struct bytes *b, const char **names)
{
    int n = get_int(b);
    b->short_read = b->short_read || n < 0 || n > WIRE_MAX_NAMES;
    for (int i = 0; !b->short_read && i < n; i++) {
        names[i] = get_string(b);
        b->short_read = b->short_read || !names[i];
    }
    return b->short_read ? 0 : n;
}

void wire_put_ready(struct wire_out *w, const struct wire_ready *r)
{
    wire_begin(w, WIRE_READY, 0);
    wire_put_number(w, r->version, 4);
    wire_put_string(w, r->kind_name);
    wire_put_string(w, r->size_name);
    wire_put_string(w, r->device);
    wire_put_string(w, r->kernels);
    wire_put_string(w, r->weights);
    put_int(w, r->takes_instructions);
    put_int(w, r->sample_rate);
    put_int(w, r->frame_samples);
    put_int(w, r->lanes);
    put_int(w, r->threads);
    put_int(w, r->width);
    wire_put_number(w, r->memory_bytes, 8);
    put_int(w, r->cage);
    wire_put_string(w, r->note);
    put_names(w, r->voices, r->n_voices);
    put_names(w, r->languages, r->n_languages);
    wire_end(w);
}

bool wire_get_ready(struct wire_ready *r, const struct wire_message *m)
{
    struct bytes b = body_of(m);
    r->version = (uint32_t)bytes_number(&b, 4);
    r->kind_name = get_string(&b);
    r->size_name = get_string(&b);
    r->device = get_string(&b);
    r->kernels = get_string(&b);
    r->weights = get_string(&b);
    r->takes_instructions = get_flag(&b);
    r->sample_rate = get_int(&b);
    r->frame_samples = get_int(&b);
    r->lanes = get_int(&b);
    r->threads = get_int(&b);
    r->width = get_int(&b);
    r->memory_bytes = bytes_number(&b, 8);
    r->cage = get_int(&b);
    r->note = get_string(&b);
    r->n_voices = get_names(&b, r->voices);
    r->n_languages = get_names(&b, r->languages);
    bool ranged = r->sample_rate >= 8000 && r->sample_rate <= 192000 && r->frame_samples > 0 &&
                  r->frame_samples <= 192000 && r->lanes > 0 && r->lanes <= 4096;
    return is_all(&b) && ranged && r->kind_name && r->size_name && r->device && r->kernels &&
           r->weights;
}

void wire_put_done(struct wire_out *w, uint32_t id, const struct wire_done *d)
{
    wire_begin(w, WIRE_DONE, id);
    put_int(w, d->finish);
    put_int(w, d->n_frames);
    put_int(w, d->n_text_tokens);
    wire_put_real(w, d->prefill_s);
    wire_put_real(w, d->talker_s);
    wire_put_real(w, d->predictor_s);
    wire_put_real(w, d->vocoder_s);
    put_int(w, d->n_pieces);
    put_int(w, d->n_retries);
    put_int(w, d->n_broken);
    wire_put_number(w, d->broken_at, 8);
    wire_end(w);
}

bool wire_get_done(struct wire_done *d, const struct wire_message *m)
{
    struct bytes b = body_of(m);
    d->finish = get_int(&b);
    d->n_frames = get_int(&b);
    d->n_text_tokens = get_int(&b);
    d->prefill_s = get_real(&b);
    d->talker_s = get_real(&b);
    d->predictor_s = get_real(&b);
    d->vocoder_s = get_real(&b);
    d->n_pieces = get_int(&b);
    d->n_retries = get_int(&b);
    d->n_broken = get_int(&b);
    d->broken_at = bytes_number(&b, 8);
    return is_all(&b) && d->finish > UTTER_FINISH_NONE && d->finish <= UTTER_FINISH_ERROR &&
           d->n_frames >= 0 && d->n_text_tokens >= 0 && d->n_pieces >= 0 && d->n_retries >= 0 &&
           d->n_broken >= 0;
}

enum { WORD_BYTES = 4 * 8 + 8 + 2 };

static void put_words(struct wire_out *w, uint32_t id, uint64_t first, const utter_word *words,
    size_t n, bool approximate)
{
    wire_begin(w, WIRE_WORDS, id);
    wire_put_number(w, first, 8);
    wire_put_number(w, approximate, 1);
    for (size_t i = 0; i < n; i++) {
        wire_put_number(w, words[i].at, 8);
        wire_put_number(w, words[i].bytes, 8);
        wire_put_number(w, words[i].start, 8);
        wire_put_number(w, words[i].end, 8);
        wire_put_real(w, (double)words[i].certainty);
        wire_put_number(w, words[i].final, 1);
        wire_put_number(w, words[i].skipped, 1);
    }
    wire_end(w);
}

void wire_put_words(struct wire_out *w, uint32_t id, uint64_t first, const utter_word *words, size_t n,
    bool approximate)
{
    size_t from = 0;
    do {
        size_t take = min(n - from, WIRE_MAX_WORDS);
        put_words(w, id, first + from, words + from, take, approximate);
        from += take;
    } while (from < n);
}

bool wire_get_words(struct wire_words *words, const struct wire_message *m)
{
    struct bytes b = body_of(m);
    words->first = bytes_number(&b, 8);
    words->approximate = bytes_number(&b, 1) != 0;
    words->n = bytes_left(&b) / WORD_BYTES;
    bool good = words->n <= WIRE_MAX_WORDS && bytes_left(&b) % WORD_BYTES == 0;
    words->at = bytes_take(&b, words->n * WORD_BYTES);
    return good && words->at && is_all(&b);
}

utter_word wire_word(const struct wire_words *words, size_t i)
{
    struct bytes b = bytes_of(words->at + i * WORD_BYTES, WORD_BYTES);
    utter_word word = {.at = bytes_number(&b, 8)};
    word.bytes = bytes_number(&b, 8);
    word.start = bytes_number(&b, 8);
    word.end = bytes_number(&b, 8);
    word.certainty = (float)get_real(&b);
    word.final = bytes_number(&b, 1) != 0;
    word.skipped = bytes_number(&b, 1) != 0;
    return word;
}

static void put_reason(
    struct wire_out *w, enum wire_kind kind, uint32_t id, int status, const char *text)
{
    wire_begin(w, kind, id);
    put_int(w, status);
    wire_put_string(w, text);
    wire_end(w);
}

void wire_put_failed(struct wire_out *w, uint32_t id, int status, const char *text)
{
    put_reason(w, WIRE_FAILED, id, status, text);
}

void wire_put_refused(struct wire_out *w, int status, const char *text)
{
    put_reason(w, WIRE_REFUSED, 0, status, text);
}

bool wire_get_failed(struct wire_failed *f, const struct wire_message *m)
{
    struct bytes b = body_of(m);
    f->status = get_int(&b);
    f->text = get_string(&b);
    return is_all(&b) && f->text;
}

void wire_put_kernels(struct wire_out *w, const char *kernels)
{
    wire_begin(w, WIRE_KERNELS, 0);
    wire_put_string(w, kernels);
    wire_end(w);
}

const char *wire_get_kernels(const struct wire_message *m)
{
    struct bytes b = body_of(m);
    const char *kernels = get_string(&b);
    return is_all(&b) ? kernels : NULL;
}

void wire_put_beat(struct wire_out *w, const struct wire_beat *beat)
{
    wire_begin(w, WIRE_BEAT, 0);
    put_int(w, beat->n_open);
    put_int(w, beat->n_stepped);
    put_int(w, beat->capacity);
    put_int(w, beat->falls_behind);
    wire_put_real(w, beat->step_s);
    wire_put_real(w, beat->next_step_s);
    wire_put_real(w, beat->lane_s);
    wire_put_real(w, beat->prompt_s);
    wire_end(w);
}

bool wire_get_beat(struct wire_beat *beat, const struct wire_message *m)
{
    struct bytes b = body_of(m);
    beat->n_open = get_int(&b);
    beat->n_stepped = get_int(&b);
    beat->capacity = get_int(&b);
    beat->falls_behind = get_flag(&b);
    beat->step_s = get_real(&b);
    beat->next_step_s = get_real(&b);
    beat->lane_s = get_real(&b);
    beat->prompt_s = get_real(&b);
    return is_all(&b) && beat->capacity > 0;
}
