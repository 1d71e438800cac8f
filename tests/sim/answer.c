/* SPDX-License-Identifier: Apache-2.0
 * Heads, bodies by length, in chunks and as events, down to the samples. */
#include "tests/sim/answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/sim/model.h"
#include "tests/sim/world.h"

/* ---- Sound ---- */

void sound_begin(struct heard_sound *s, uint32_t id)
{
    *s = (struct heard_sound){.id = id};
}

static void note_time(struct heard_sound *s, size_t n_samples)
{
    double now = world_now();
    if (s->n_samples == 0) {
        s->first_at = s->until = now;
    }
    if (now > s->until + 1e-6) {
        s->gaps_s += now - s->until;
        s->n_gaps++;
        s->until = now;
    }
    s->until += (double)n_samples / model_plan.sample_rate;
}

static void take_sample(struct heard_sound *s, int16_t sample)
{
    int16_t right = model_sample(s->id, s->n_samples);
    if (sample != right) {
        world_fail("sample %llu of speech %u is %d, not %d: it is another's, or something is left out",
            (unsigned long long)s->n_samples, s->id, sample, right);
    }
    s->n_samples++;
}

void sound_feed(struct heard_sound *s, const uint8_t *bytes, size_t n)
{
    if (n == 0) {
        return;
    }
    note_time(s, (n + s->has_odd) / 2);
    if (s->has_odd) {
        take_sample(s, (int16_t)(s->odd | bytes[0] << 8));
        bytes++;
        n--;
    }
    s->has_odd = n % 2;
    s->odd = s->has_odd ? bytes[n - 1] : 0;
    for (size_t many, left = n / 2; left > 0; bytes += 2 * many, left -= many) {
        many = left < MODEL_BLOCK ? left : MODEL_BLOCK;
        if (memcmp(bytes, model_sound(s->id, s->n_samples), 2 * many) == 0) {
            s->n_samples += many;
            continue;
        }
        for (size_t i = 0; i < many; i++) { /* which one it is */
            take_sample(s, (int16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8));
        }
    }
}

/* ---- Answers ---- */

void answer_begin(struct answer *a, enum answer_sound kind, uint32_t id)
{
    free(a->line);
    *a = (struct answer){.kind = kind};
    sound_begin(&a->sound, id);
}

void answer_fini(struct answer *a)
{
    free(a->line);
    a->line = NULL;
}

const char *answer_header(const struct answer *a, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = strstr(a->head, "\r\n"); line && line[2]; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, n) == 0 && line[2 + n] == ':') {
            return line + 3 + n + strspn(line + 3 + n, " ");
        }
    }
    return NULL;
}

static void read_head(struct answer *a)
{
    const char *length = answer_header(a, "Content-Length"),
               *coding = answer_header(a, "Transfer-Encoding");
    if (strncmp(a->head, "HTTP/1.1 ", 9) != 0) {
        world_fail("an answer begins with '%.20s'", a->head);
    }
    a->status = (int)strtol(a->head + 9, NULL, 10);
    a->chunked = coding && strncasecmp(coding, "chunked", 7) == 0;
    a->has_length = length != NULL;
    a->left = length ? strtoull(length, NULL, 10) : 0;
    a->state = a->status == 101 ? ANSWER_WHOLE : ANSWER_BODY;
    if (a->has_length && a->left == 0) {
        a->state = ANSWER_WHOLE;
    }
}

static size_t feed_head(struct answer *a, const uint8_t *bytes, size_t n)
{
    size_t used = 0;
    while (used < n && a->state == ANSWER_HEAD) {
        if (a->n_head == sizeof a->head - 1) {
            world_fail("the head of an answer is too long");
        }
        a->head[a->n_head++] = (char)bytes[used++];
        if (a->n_head >= 4 && memcmp(a->head + a->n_head - 4, "\r\n\r\n", 4) == 0) {
            a->head[a->n_head] = 0;
            read_head(a);
        }
    }
    return used;
}

/* Of each byte its value in base64, and NO_VALUE where it has none. */
enum { NO_VALUE = 64 };
static const uint8_t *base64_values(void)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static uint8_t values[256];
    if (values[0] == 0) {
        memset(values, NO_VALUE, sizeof values);
        for (uint8_t i = 0; i < 64; i++) {
            values[(uint8_t)letters[i]] = i;
        }
    }
    return values;
}

/* Four letters, or the last two or three, into three bytes. */
static uint8_t *put_three(uint8_t *to, const char *letters, size_t n)
{
    const uint8_t *values = base64_values();
    uint8_t v[4] = {0};
    for (size_t i = 0; i < n; i++) {
        v[i] = values[(uint8_t)letters[i]];
    }
    if ((v[0] | v[1] | v[2] | v[3]) & NO_VALUE) {
        world_fail("sound in an event has '%.4s' in it", letters);
    }
    const uint32_t bits = (uint32_t)v[0] << 18 | (uint32_t)v[1] << 12 | (uint32_t)v[2] << 6 | v[3];
    to[0] = (uint8_t)(bits >> 16);
    to[1] = (uint8_t)(bits >> 8);
    to[2] = (uint8_t)bits;
    return to + n - (n > 0);
}

/* Up to the quotation mark behind it. */
static void feed_base64(struct answer *a, const char *text)
{
    uint8_t bytes[3072 + 3], *to = bytes;
    size_t n = strcspn(text, "=\"");
    for (; n >= 4; text += 4, n -= 4) {
        to = put_three(to, text, 4);
        if (to == bytes + 3072) {
            sound_feed(&a->sound, bytes, 3072);
            to = bytes;
        }
    }
    to = put_three(to, text, n);
    sound_feed(&a->sound, bytes, (size_t)(to - bytes));
}

static void take_line(struct answer *a)
{
    static const char key[] = "\"audio\":\"";
    const char *audio = strstr(a->line, key);
    if (strncmp(a->line, "data: ", 6) != 0) {
        return;
    }
    if (a->done || a->is_error) {
        world_fail("an event stream goes on behind its end");
    }
    if (audio) {
        feed_base64(a, audio + sizeof key - 1);
    }
    a->done = strstr(a->line, "\"speech.audio.done\"") != NULL;
    a->is_error = strstr(a->line, "\"speech.audio.error\"") != NULL;
}

static void feed_lines(struct answer *a, const char *bytes, size_t n)
{
    for (size_t used; n > 0; bytes += used, n -= used) {
        const char *end = memchr(bytes, '\n', n);
        used = end ? (size_t)(end - bytes) + 1 : n;
        if (a->n_line + used >= a->line_room) {
            a->line_room = 2 * (a->n_line + used) + 1024;
            a->line = world_grow(a->line, a->line_room);
        }
        memcpy(a->line + a->n_line, bytes, used);
        a->n_line += used;
        if (end) {
            a->line[a->n_line - 1] = 0;
            take_line(a);
            a->n_line = 0;
        }
    }
}

static void feed_body(struct answer *a, const char *bytes, size_t n)
{
    if (n > 0 && a->status != 200) { /* kept to be shown */
        size_t kept = n < sizeof a->head - 1 - a->n_head ? n : sizeof a->head - 1 - a->n_head;
        memcpy(a->head + a->n_head, bytes, kept);
        a->head[a->n_head += kept] = 0;
    }
    if (n == 0 || a->status != 200 || a->kind == ANSWER_ANY) {
        return;
    }
    if (a->kind == ANSWER_EVENTS) {
        feed_lines(a, bytes, n);
        return;
    }
    size_t skip = 0;
    if (a->kind == ANSWER_WAV) {
        skip = 44 - a->n_skipped < n ? 44 - a->n_skipped : n;
        a->n_skipped += skip;
    }
    sound_feed(&a->sound, (const uint8_t *)bytes + skip, n - skip);
}

static size_t feed_chunks(struct answer *a, const char *bytes, size_t n)
{
    size_t at = 0;
    while (at < n && a->state == ANSWER_BODY) {
        size_t used = 0, data_bytes = 0;
        const char *data = NULL;
        enum http_progress p =
            http_chunks_feed(&a->chunks, bytes + at, n - at, &used, &data, &data_bytes);
        if (p == HTTP_BAD) {
            world_fail("an answer in chunks is none");
        }
        feed_body(a, data, data_bytes);
        at += used;
        a->state = p == HTTP_DONE ? ANSWER_WHOLE : a->state;
    }
    return at;
}

size_t answer_feed(struct answer *a, const uint8_t *bytes, size_t n)
{
    size_t at = a->state == ANSWER_HEAD ? feed_head(a, bytes, n) : 0;
    if (a->state != ANSWER_BODY) {
        return at;
    }
    if (a->chunked) {
        return at + feed_chunks(a, (const char *)bytes + at, n - at);
    }
    size_t more = a->has_length && a->left < n - at ? (size_t)a->left : n - at;
    feed_body(a, (const char *)bytes + at, more);
    a->left -= a->has_length ? more : 0;
    a->state = a->has_length && a->left == 0 ? ANSWER_WHOLE : a->state;
    return at + more;
}

void answer_end(struct answer *a)
{
    a->state = a->state == ANSWER_WHOLE ? ANSWER_WHOLE : ANSWER_BROKEN;
}
