/* SPDX-License-Identifier: Apache-2.0
 * A client's life: connects, sends, reads, is told. Sessions are in session.c. */
#include "tests/sim/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/client_parts.h"

struct clients_seen seen;

static struct {
    struct client_list list;
    uint32_t next_id;
    double patience_s, slowness;
    bool has_keys, ending;
    int n;
} all;

void clients_forget(void)
{
    free(seen.firsts_s.at);
    free(seen.refused_s.at);
    seen = (struct clients_seen){0};
}

void clients_begin(double patience_s, bool has_keys, double slowness)
{
    clients_forget();
    TAILQ_INIT(&all.list);
    all.next_id = 0;
    all.patience_s = patience_s;
    all.has_keys = has_keys;
    all.slowness = slowness;
    all.ending = false;
    all.n = 0;
}

int clients_count(void)
{
    return all.n;
}

void clients_know_of_end(bool at_once)
{
    struct client *c;
    TAILQ_FOREACH(c, &all.list, entry)
    {
        c->is_known = !at_once &&
                      (all.ending ? c->is_known : !c->theirs && c->out_n > 0 && c->out_at == c->out_n);
    }
    all.ending = true;
}

bool clients_are_ending(void)
{
    return all.ending;
}

uint32_t client_next_id(void)
{
    return ++all.next_id;
}

void client_free(struct client *c)
{
    TAILQ_REMOVE(&all.list, c, entry);
    all.n--;
    alarm_clear(&c->act);
    alarm_clear(&c->sending);
    alarm_clear(&c->bound);
    alarm_clear(&c->leave);
    alarm_clear(&c->read);
    if (c->end) {
        end_close(c->end, draw_chance(0.2));
    }
    if (c->theirs) {
        alarm_clear(&c->handshake);
        kernel_end_handshake(c->theirs);
    }
    answer_fini(&c->answer);
    free(c->out);
    free(c->in);
    free(c);
}

void clients_end(void)
{
    for (struct client *c; (c = TAILQ_FIRST(&all.list));) {
        client_free(c);
    }
}

static void series_put(struct series *s, double seconds)
{
    if (s->n == s->room) {
        s->room = 2 * s->room + 256;
        s->at = world_grow(s->at, s->room * sizeof *s->at);
    }
    s->at[s->n++] = seconds;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double series_percentile(struct series *s, double of_hundred)
{
    if (s->n == 0) {
        return 0;
    }
    qsort(s->at, s->n, sizeof *s->at, compare);
    size_t i = (size_t)(of_hundred / 100 * (double)s->n);
    return s->at[i < s->n ? i : s->n - 1];
}

/* What a listener makes of a speech that it has heard to its end. */
void client_count_sound(struct client *c, const struct heard_sound *s)
{
    double first = s->first_at - c->sent_at;
    bool attentive = c->plan.reading == READS_AT_ONCE;
    seen.n_whole++;
    seen.sound_s += (double)s->n_samples / model_plan.sample_rate;
    if (attentive && !c->plan.background && c->plan.kind != CLIENT_WHOLE && s->n_samples > 0) {
        series_put(&seen.firsts_s, first);
        seen.n_with_gaps += s->n_gaps > 0;
        seen.n_good += s->n_gaps == 0 && first <= all.patience_s;
    }
}

/* ---- Sending ---- */

static void send_more(void *user)
{
    struct client *c = user;
    size_t left = c->out_n - c->out_at, n = left;
    if (c->plan.send_s > 0 && left > 1) {
        n = 1 + (size_t)draw_below((int)left);
        n = c->plan.kind == CLIENT_HALF ? 1 : n;
        alarm_set(&c->sending, draw_between(0, c->plan.send_s / 3), send_more, c);
    }
    c->out_at += end_send(c->end, c->out + c->out_at, n);
    if (c->out_at == c->out_n) {
        alarm_clear(&c->sending);
        c->sent_at = world_now();
    }
}

void client_send(struct client *c, const void *bytes, size_t n)
{
    c->out = world_grow(c->out, c->out_n + n + 1);
    memcpy(c->out + c->out_n, bytes, n);
    c->out_n += n;
    if (!c->sending.place) {
        send_more(c);
    }
}

static void late(void *user)
{
    struct client *c = user;
    if (c->plan.reading != READS_AT_ONCE) { /* what it has not read may say all */
        c->plan.reading = READS_AT_ONCE;
        alarm_set(&c->bound, 1, late, c);
        client_read(c);
        return;
    }
    if (end_is_unwatched(c->end) && !c->excused) {
        c->excused = true;
        alarm_set(&c->bound, 60, late, c);
        return;
    }
    world_fail("a client of kind %d (speech %u, %zu of %zu bytes sent) was not told within %.0f s",
        (int)c->plan.kind, c->id, c->out_at, c->out_n, c->bound_s);
}

void client_expects(struct client *c, double seconds)
{
    c->bound_s = seconds;
    alarm_set(&c->bound, seconds, late, c);
}

void client_expects_sound(struct client *c, size_t text_bytes)
{
    double sound_s = (double)text_bytes / 11;
    client_expects(c, 150 + (4 + 2 * all.slowness) * sound_s + 2 * c->plan.send_s);
}

static size_t write_head(struct client *c, char *out, size_t size, const char *method, const char *path)
{
    int n = snprintf(out, size, "%s %s HTTP/1.1\r\nHost: localhost\r\n", method, path);
    if (c->plan.key != -1) {
        n += snprintf(out + n, size - (size_t)n, "Authorization: Bearer key%d\r\n", c->plan.key);
    }
    return (size_t)n;
}

size_t client_head(struct client *c, char *out, size_t size, const char *method, const char *path)
{
    return write_head(c, out, size, method, path);
}

/* Some bytes become others, are left out, or come twice. */
static size_t spoil(char *request, size_t n)
{
    int times = 1 + draw_below(4);
    for (int i = 0; i < times; i++) {
        size_t at = (size_t)draw_below((int)n), many = 1 + (size_t)draw_below(8);
        many = many < n - at ? many : n - at;
        switch (draw_below(3)) {
        case 0:
            request[at] = (char)draw();
            break;
        case 1:
            memmove(request + at, request + at + many, n - at - many);
            n -= many < n - 1 ? many : 0;
            break;
        default:
            memmove(request + at + many, request + at, n - at - many);
        }
    }
    return n;
}

static void ask_speech(struct client *c)
{
    static const char *const fields[] = {[CLIENT_RAW] = "",
        [CLIENT_WHOLE] = ",\"stream\":false",
        [CLIENT_EVENTS] = ",\"stream_format\":\"sse\""};
    static char text[8192], body[9000], request[10000];
    enum client_kind kind = c->plan.kind < CLIENT_SESSION ? c->plan.kind : CLIENT_RAW;
    bool wav = kind == CLIENT_WHOLE;
    c->id = client_next_id();
    c->text_bytes =
        c->plan.least_bytes + (size_t)draw_below((int)(c->plan.most_bytes - c->plan.least_bytes + 1));
    c->max_frames = !c->plan.whole && draw_chance(0.1) ? 1 + draw_below(40) : 0;
    model_text(text, sizeof text, c->id, c->text_bytes);
    c->text_bytes = strlen(text);
    int n = snprintf(body, sizeof body,
        "{\"input\":\"%s\",\"voice\":\"clara\",\"response_format\":\"%s\"%s%s", text,
        wav ? "wav" : "pcm", fields[kind], c->plan.background ? ",\"background\":true" : "");
    n += c->max_frames
             ? snprintf(body + n, sizeof body - (size_t)n, ",\"max_new_tokens\":%d}", c->max_frames)
             : snprintf(body + n, sizeof body - (size_t)n, "}");
    size_t at = write_head(c, request, sizeof request, "POST", "/v1/audio/speech");
    at += (size_t)snprintf(request + at, sizeof request - at,
        "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", n, body);
    answer_begin(&c->answer,
        c->plan.kind == CLIENT_BAD ? ANSWER_ANY
        : wav                      ? ANSWER_WAV
        : kind == CLIENT_EVENTS    ? ANSWER_EVENTS
                                   : ANSWER_RAW,
        c->id);
    if (c->plan.kind == CLIENT_BAD) {
        at = spoil(request, at);
    }
    if (c->plan.kind == CLIENT_HALF) {
        at = 1 + (size_t)draw_below((int)at - 1);
    }
    if (c->plan.kind <= CLIENT_EVENTS) {
        seen.n_asked++;
        c->asked = true;
    }
    client_expects_sound(c, c->text_bytes);
    if (c->plan.background) { /* as long as listeners leave nothing idle, and longer than a life */
        client_expects(c, 10000);
    }
    client_send(c, request, at);
}

static void ask_other(struct client *c)
{
    static const char *const paths[] = {"/metrics", "/ready", "/health", "/version", "/v1/models",
        "/v1/audio/voices", "/no/such/path", "/v1/audio/speech"};
    char request[400];
    size_t n = write_head(c, request, sizeof request, "GET", paths[draw_below(8)]);
    n += (size_t)snprintf(request + n, sizeof request - n, "\r\n");
    answer_begin(&c->answer, ANSWER_ANY, 0);
    client_expects(c, 10 + 2 * c->plan.send_s);
    client_send(c, request, n);
}

static void ask(void *user)
{
    struct client *c = user;
    c->requests_left--;
    c->waits = c->is_known = false;
    c->out_n = c->out_at = 0;
    c->sent_at = world_now();
    if (c->plan.kind == CLIENT_ASKS) {
        ask_other(c);
    } else if (c->plan.kind == CLIENT_SILENT) {
        answer_begin(&c->answer, ANSWER_ANY, 0);
        client_expects(c, 10);
    } else if (c->plan.kind == CLIENT_ELSE) {
        dialect_ask(c);
    } else if (c->plan.kind == CLIENT_TALK) {
        dialect_talk(c);
    } else if (c->plan.kind == CLIENT_SESSION) {
        session_ask(c);
    } else {
        ask_speech(c);
    }
}

/* ---- Being told ---- */

/* A speech that was asked for has been answered, in one way or another. */
static void count_answer(struct client *c)
{
    const struct answer *a = &c->answer;
    double took = world_now() - c->sent_at;
    bool whole = a->state == ANSWER_WHOLE && a->status == 200;
    seen.longest_bound_s = took > seen.longest_bound_s ? took : seen.longest_bound_s;
    world_note((uint64_t)a->status * 4 + (uint64_t)a->state);
    if (a->status == 0 && (!clients_are_ending() || c->is_known) && !c->inattentive) {
        if (c->plan.must_be_served || c->plan.kind < CLIENT_BAD || c->plan.kind == CLIENT_ELSE) {
            world_fail("the connection of kind %d (speech %u) was closed without a word",
                (int)c->plan.kind, c->id);
        }
    }
    if (!c->asked) {
        return;
    }
    if (a->status == 200 && all.has_keys && c->plan.key < 0) {
        world_fail("speech %u was made without a key", c->id);
    }
    if (whole && a->kind == ANSWER_EVENTS && !a->done) {
        world_fail("an event stream ends as if it were whole, without saying so");
    }
    if (whole && a->sound.n_samples != model_samples(c->id, c->text_bytes, c->max_frames)) {
        world_fail("speech %u looks whole with %llu of %llu samples", c->id,
            (unsigned long long)a->sound.n_samples,
            (unsigned long long)model_samples(c->id, c->text_bytes, c->max_frames));
    }
    if (whole) {
        client_count_sound(c, &a->sound);
    } else if (a->status == 200) {
        seen.n_broken++;
    } else if (a->status > 0) {
        seen.n_refused++;
        seen.n_speech_refused[a->status]++;
        series_put(&seen.refused_s, took);
    } else {
        seen.n_closed++;
    }
    if (c->plan.must_be_served && !whole && !model_fails(c->id) && !clients_are_ending()) {
        world_fail("the server is well and idle, and answers a speech with %d: %s", a->status, a->head);
    }
    c->asked = false;
}

/* The answer is there, or the connection has ended. */
static void told(struct client *c)
{
    bool again = c->answer.state == ANSWER_WHOLE && !end_is_cut(c->end) && c->requests_left > 0 &&
                 answer_header(&c->answer, "Connection") &&
                 strncmp(answer_header(&c->answer, "Connection"), "keep", 4) == 0;
    count_answer(c);
    if (again) {
        alarm_clear(&c->bound);
        alarm_set(&c->act, draw_wait(1), ask, c);
        answer_begin(&c->answer, ANSWER_ANY, 0);
        c->waits = true;
    } else {
        client_free(c);
    }
}

static void ended(struct client *c)
{
    if (c->waits) { /* between two requests the server may close */
        client_free(c);
        return;
    }
    answer_end(&c->answer);
    told(c);
}

/* Takes up to n bytes. False: the client has gone, or there is nothing now. */
static bool take(struct client *c, size_t n)
{
    uint8_t bytes[16384];
    bool is_end;
    size_t got = end_take(c->end, bytes, n < sizeof bytes ? n : sizeof bytes, &is_end);
    if (c->plan.kind == CLIENT_TALK) {
        if (is_end) {
            client_free(c);
        }
        return got > 0 && !is_end;
    }
    if (c->plan.kind == CLIENT_SESSION && c->socket.open) {
        return session_take(c, bytes, got, is_end) && got > 0;
    }
    size_t used = got > 0 ? answer_feed(&c->answer, bytes, got) : 0;
    if (used < got && c->plan.kind == CLIENT_SESSION && c->answer.status == 101) {
        session_opened(c);
        return session_take(c, bytes + used, got - used, is_end);
    }
    if (c->plan.kind == CLIENT_SESSION && c->answer.status == 101) {
        session_opened(c);
        return got > 0;
    }
    if (used < got && c->plan.kind != CLIENT_BAD && c->plan.kind != CLIENT_HALF) {
        world_fail("%zu bytes behind the end of an answer", got - used);
    }
    if (c->answer.state == ANSWER_WHOLE && got > 0 && c->plan.kind != CLIENT_BAD) {
        told(c);
        return false;
    }
    if (is_end) {
        ended(c);
        return false;
    }
    return got > 0;
}

void client_read(struct client *c)
{
    while (take(c, SIZE_MAX)) {
    }
}

static void read_some(void *user)
{
    struct client *c = user;
    double pace = c->plan.reading == READS_AS_HEARD ? 1 : 0.3, step = 0.25;
    size_t n = (size_t)(pace * step * 2 * model_plan.sample_rate) + 200;
    alarm_set(&c->read, step, read_some, c);
    take(c, n);
}

static void on_came(void *user)
{
    struct client *c = user;
    c->inattentive = c->inattentive || end_is_lost(c->end);
    if (c->plan.reading == READS_AT_ONCE) {
        client_read(c);
    } else if (end_is_cut(c->end) && c->plan.reading == READS_NO_MORE) {
        c->plan.reading = READS_AT_ONCE;
        client_read(c);
    }
}

static void on_room(void *user)
{
    struct client *c = user;
    if (c->out_at < c->out_n) {
        send_more(c);
    }
}

static const struct end_watch watch = {on_came, on_room};

static void stop_reading(void *user)
{
    struct client *c = user;
    c->plan.reading = READS_NO_MORE;
}

static void leave(void *user)
{
    struct client *c = user;
    seen.n_left += c->asked;
    client_free(c);
}

static void end_handshake(void *user)
{
    struct client *c = user;
    struct end *theirs = c->theirs;
    c->theirs = NULL;
    kernel_end_handshake(theirs); /* and the client may be gone */
}

void client_new(const struct client_plan *plan)
{
    struct end *theirs, *end = kernel_connect(&watch, NULL, plan->address, &theirs);
    if (!end) {
        if (!all.ending) {
            world_fail("nobody listens");
        }
        return;
    }
    struct client *c = world_new(sizeof *c);
    c->end = end;
    c->theirs = theirs;
    end_is_of(end, c);
    c->plan = *plan;
    c->requests_left = plan->n_requests;
    c->inattentive = plan->reading != READS_AT_ONCE;
    TAILQ_INSERT_TAIL(&all.list, c, entry);
    all.n++;
    seen.n_clients++;
    if (plan->leaves_s >= 0) {
        alarm_set(&c->leave, plan->leaves_s, leave, c);
    }
    if (plan->reading == READS_NO_MORE) {
        c->plan.reading = READS_AT_ONCE;
        alarm_set(&c->read, draw_between(0, 3), stop_reading, c);
    } else if (plan->reading != READS_AT_ONCE) {
        alarm_set(&c->read, 0.25, read_some, c);
    }
    if (plan->handshake_s > 0) {
        alarm_set(&c->handshake, plan->handshake_s, end_handshake, c);
    } else {
        end_handshake(c);
    }
    if (plan->asks_s > 0) {
        answer_begin(&c->answer, ANSWER_ANY, 0);
        alarm_set(&c->act, plan->asks_s, ask, c);
    } else {
        ask(c);
    }
}
