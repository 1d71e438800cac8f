/* SPDX-License-Identifier: Apache-2.0
 * A client of the WebSocket: text in pieces as a language model writes, sound as it is made, sometimes cut short. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/client_parts.h"

void session_ask(struct client *c)
{
    char request[512];
    size_t n = client_head(c, request, sizeof request, "GET", "/v1/audio/speech/stream");
    n += (size_t)snprintf(request + n, sizeof request - n,
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    answer_begin(&c->answer, ANSWER_ANY, 0);
    client_expects(c, 10 + 2 * c->plan.send_s);
    client_send(c, request, n);
}

size_t client_frame(char *out, size_t n)
{
    size_t at = 2;
    out[0] = (char)0x81;
    out[1] = (char)(0x80 | (n < 126 ? n : 126));
    if (n >= 126) {
        out[2] = (char)(n >> 8);
        out[3] = (char)n;
        at = 4;
    }
    memset(out + at, 0, 4);
    return at + 4;
}

static void send_text(struct client *c, const char *text)
{
    char frame[1200];
    size_t n = strlen(text), at = client_frame(frame, n);
    memcpy(frame + at, text, n);
    client_send(c, frame, at + n);
}

static void say_more(void *user);

static void begin_utterance(struct client *c)
{
    struct client_socket *x = &c->socket;
    int i = x->n_begun++;
    x->utterances[i].id = client_next_id();
    x->utterances[i].bytes =
        c->plan.least_bytes + (size_t)draw_below((int)(c->plan.most_bytes - c->plan.least_bytes + 1));
    seen.n_asked++;
    c->asked = x->says = true;
    c->sent_at = world_now();
    say_more(c);
}

/* The next piece of the text, or its end. */
static void say_more(void *user)
{
    static char text[8192];
    struct client *c = user;
    struct client_socket *x = &c->socket;
    int i = x->n_begun - 1;
    size_t bytes = x->utterances[i].bytes, *said = &x->utterances[i].said;
    char message[1100];
    model_text(text, sizeof text, x->utterances[i].id, bytes);
    x->utterances[i].bytes = bytes = strlen(text);
    if (*said < bytes) {
        size_t n = 1 + (size_t)draw_below(40), left = bytes - *said;
        n = *said == 0 && n < 12 ? 12 : n;
        n = n < left ? n : left;
        snprintf(message, sizeof message, "{\"type\":\"input.text\",\"text\":\"%.*s\"}", (int)n,
            text + *said);
        *said += n;
        client_expects_sound(c, bytes + 1000);
        alarm_set(&c->act, draw_wait(0.1), say_more, c);
        send_text(c, message); /* and may be gone */
        return;
    }
    client_expects_sound(c, bytes);
    x->says = false;
    send_text(c, "{\"type\":\"input.done\"}");
}

static void cancel(void *user)
{
    struct client *c = user;
    struct client_socket *x = &c->socket;
    if (x->open && x->n_begun > x->n_done && !x->closing) {
        x->utterances[x->n_done].cancelled = true;
        x->n_wanted = x->n_begun; /* the indices of what followed would be others */
        x->says = false;
        alarm_clear(&c->act);
        client_expects(c, 30);
        send_text(c, "{\"type\":\"input.cancel\"}");
    }
}

void session_opened(struct client *c)
{
    c->socket.open = true;
    c->socket.n_wanted = 1 + draw_below(MOST_UTTERANCES);
    if (draw_chance(0.3) && c->plan.reading == READS_AT_ONCE) {
        alarm_set(&c->read, draw_wait(3), cancel, c);
    }
    send_text(c, "{\"type\":\"session.config\",\"voice\":\"clara\",\"response_format\":\"pcm\"}");
    begin_utterance(c);
}

/* ---- What the server says ---- */

static int number_of(const char *message, const char *key)
{
    const char *at = strstr(message, key);
    return at ? (int)strtol(at + strlen(key), NULL, 10) : -1;
}

static void next(void *user)
{
    struct client *c = user;
    if (c->socket.n_begun < c->socket.n_wanted) {
        begin_utterance(c);
    } else {
        c->socket.closing = true;
        client_expects(c, 30);
        send_text(c, "{\"type\":\"session.close\"}");
    }
}

/* An utterance is over. */
static void utterance_done(struct client *c)
{
    struct client_socket *x = &c->socket;
    int i = x->n_done++;
    if (i >= x->n_begun) {
        world_fail("a session tells the end of an utterance that was not begun");
    }
    bool whole = !x->utterances[i].cancelled && !x->utterances[i].failed;
    uint64_t right = model_samples(x->utterances[i].id, x->utterances[i].bytes, 0);
    c->asked = false;
    if (whole && (x->sound.id != x->utterances[i].id || x->sound.n_samples != right)) {
        world_fail("utterance %u looks whole with %llu of %llu samples", x->utterances[i].id,
            (unsigned long long)x->sound.n_samples, (unsigned long long)right);
    }
    if (whole) {
        client_count_sound(c, &x->sound);
    } else if (x->utterances[i].cancelled) {
        seen.n_left++;
    } else {
        seen.n_broken++;
    }
    client_expects(c, 30);
    alarm_set(&c->act, draw_wait(0.5), next, c);
    if (x->says) { /* what is left of its text is not wanted */
        x->says = false;
        send_text(c, "{\"type\":\"input.done\"}");
    }
}

static void take_message(struct client *c, const char *m)
{
    struct client_socket *x = &c->socket;
    world_note(strlen(m));
    if (strstr(m, "\"audio.start\"")) {
        int i = number_of(m, "\"utterance_index\":");
        if (i < 0 || i >= x->n_begun || x->speaking) {
            world_fail("a session begins to speak what was not asked for: %s", m);
        }
        sound_begin(&x->sound, x->utterances[i].id);
        x->speaking = true;
    } else if (strstr(m, "\"audio.done\"")) {
        x->speaking = false;
    } else if (strstr(m, "\"audio.cancelled\"")) {
        x->speaking = false;
        if (x->n_done < x->n_begun) {
            utterance_done(c);
        }
    } else if (strstr(m, "\"type\":\"error\"") && x->n_done < x->n_begun) {
        x->utterances[x->n_done].failed = true;
    }
    if (strstr(m, "\"session.done\"")) {
        utterance_done(c);
    }
}

static void take_frame(struct client *c, uint8_t kind, const uint8_t *body, size_t n)
{
    static char text[4096];
    struct client_socket *x = &c->socket;
    if (kind == 2) {
        if (!x->speaking) {
            world_fail("a session sends sound of nothing");
        }
        sound_feed(&x->sound, body, n);
    } else if (kind == 1) {
        size_t kept = n < sizeof text - 1 ? n : sizeof text - 1;
        memcpy(text, body, kept);
        text[kept] = 0;
        take_message(c, text);
    } else if (kind == 8) {
        x->closing = true;
    }
}

/* A whole frame at `in`, or 0. */
static size_t frame_bytes(const uint8_t *in, size_t n, size_t *head)
{
    uint64_t body = n >= 2 ? in[1] & 127 : 0;
    *head = body == 126 ? 4 : body == 127 ? 10 : 2;
    if (n < *head) {
        return 0;
    }
    if (*head > 2) {
        body = 0;
        for (size_t i = 2; i < *head; i++) {
            body = body << 8 | in[i];
        }
    }
    return n - *head >= body ? *head + (size_t)body : 0;
}

bool session_take(struct client *c, const uint8_t *bytes, size_t n, bool is_end)
{
    size_t at = 0, whole, head;
    c->in = world_grow(c->in, c->in_n + n + 1);
    memcpy(c->in + c->in_n, bytes, n);
    c->in_n += n;
    while (c->in_n - at >= 2 && (whole = frame_bytes(c->in + at, c->in_n - at, &head)) > 0) {
        take_frame(c, c->in[at] & 15, c->in + at + head, whole - head);
        at += whole;
    }
    c->in_n -= at;
    memmove(c->in, c->in + at, c->in_n);
    if (!is_end && !end_is_cut(c->end)) {
        return true;
    }
    if (is_end) {
        /* For the words at a close there may be no memory; the end itself it sees. */
        if (!c->socket.closing && !clients_are_ending() && !c->inattentive && !kernel_lacked_memory()) {
            world_fail("a session was closed without a word");
        }
        seen.n_closed += c->asked;
        client_free(c);
        return false;
    }
    return true;
}
