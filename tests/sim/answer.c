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

void sound_feed(struct heard_sound *s, const uint8_t *bytes, size_t n)
{
    if (n == 0) {
        return;
    }
    note_time(s, (n + s->has_odd) / 2);
    for (size_t i = 0; i < n; i++) {
        if (!s->has_odd) {
            s->odd = bytes[i];
            s->has_odd = true;
            continue;
        }
        int16_t sample = (int16_t)(s->odd | bytes[i] << 8), right = model_sample(s->id, s->n_samples);
        s->has_odd = false;
        if (sample != right) {
            world_fail(
                "sample %llu of speech %u is %d, not %d: it is another's, or something is left out",
                (unsigned long long)s->n_samples, s->id, sample, right);
        }
        s->n_samples++;
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

/* Of each byte its value in base64, and 64 where it has none. */
static const uint8_t *base64_values(void)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static uint8_t values[256];
    if (values[0] == 0) {
        memset(values, 64, sizeof values);
        for (uint8_t i = 0; i < 64; i++) {
            values[(uint8_t)letters[i]] = i;
        }
    }
    return values;
}

static void feed_base64(struct answer *a, const char *at)
{
    const uint8_t *values = base64_values();
    uint32_t bits = 0;
    int n_bits = 0;
    uint8_t bytes[3072];
    size_t n = 0;
    for (uint8_t value; (value = values[(uint8_t)*at]) < 64; at++) {
        bits = bits << 6 | value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            bytes[n++] = (uint8_t)(bits >> n_bits);
        }
        if (n == sizeof bytes) {
            sound_feed(&a->sound, bytes, n);
            n = 0;
        }
    }
    sound_feed(&a->sound, bytes, n);
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
    for (size_t i = 0; i < n; i++) {
        if (a->n_line + 1 >= a->line_room) {
            a->line_room = 2 * a->line_room + 1024;
            a->line = realloc(a->line, a->line_room);
        }
        if (bytes[i] == '\n') {
            a->line[a->n_line] = 0;
            take_line(a);
            a->n_line = 0;
        } else {
            a->line[a->n_line++] = bytes[i];
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
