/* SPDX-License-Identifier: Apache-2.0
 * Listeners as connections of one event loop: they ask for PCM, count samples, and note when they had nothing to
 * hear. */
#include "server/load/load.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <jansson.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "server/load/load_report.h"
#include "server/protocol/http.h"
#include "server/protocol/websocket.h"
#include "server/speech/fields.h"

enum { RATE = 24000, MAX_REQUESTS = 1000000, LOUD = 104, PATIENCE_S = 60 };

struct load;

struct listener {
    TAILQ_ENTRY(listener) entry;
    struct load *load;
    struct bufferevent *bev;
    struct load_sample sample;
    double sent, last, heard_until;
    bool in_body, audible;
    struct http_chunks chunks;
    uint64_t n_bytes;
    uint8_t odd;
};

struct load {
    const struct load_options *options;
    struct event_base *base;
    struct event *next;
    struct sockaddr_storage address;
    socklen_t address_bytes;
    uint64_t random;
    double began, next_at;
    struct load_seen seen;
    int n_at_once;
    bool failed, connected; /* connected: some listener was, once */
    TAILQ_HEAD(listener_list, listener) listeners;
};

/* SplitMix64. */
static uint64_t draw(struct load *l)
{
    uint64_t z = l->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static double draw_unit(struct load *l)
{
    return (double)(draw(l) >> 11) * 0x1p-53;
}

/* Returns the number of words. */
static int write_text(struct load *l, char *out, size_t size)
{
    static const char *const words[] = {"the", "river", "morning", "we", "found", "a", "small",
        "garden", "beside", "old", "stone", "bridge", "and", "children", "were", "reading", "quiet",
        "letters", "from", "their", "friends", "who", "had", "travelled", "north", "before", "winter",
        "came", "with", "its", "long", "white", "evenings", "nobody", "knew", "when", "train", "would",
        "leave", "again", "music", "window", "bread", "yellow", "market", "seven", "people", "answered",
        "slowly", "today"};
    const struct load_options *o = l->options;
    int n = o->least_words + (int)(draw(l) % (uint64_t)(o->most_words - o->least_words + 1));
    size_t at = 0;
    for (int i = 0; i < n && at + 32 < size; i++) {
        const char *word = words[draw(l) % (sizeof words / sizeof *words)];
        bool stop = i == n - 1 || i % 12 == 11;
        at += (size_t)snprintf(out + at, size - at, "%s%s%s", i ? " " : "", word, stop ? "." : "");
    }
    return n;
}

static void listener_free(struct listener *x)
{
    TAILQ_REMOVE(&x->load->listeners, x, entry);
    bufferevent_free(x->bev);
    memory_free(x);
}

static void start(struct load *l);

static void again(evutil_socket_t socket, short what, void *user)
{
    struct load *l = user;
    (void)socket, (void)what;
    if (clock_seconds() - l->began < l->options->seconds) {
        start(l);
    }
}

static void keep_sample(struct load *l, const struct load_sample *sample)
{
    struct load_seen *seen = &l->seen;
    if (seen->n == seen->n_room) {
        int room = seen->n_room ? seen->n_room * 2 : 1024;
        struct load_sample *grown =
            memory_resize(seen->samples, (size_t)seen->n_room, (size_t)room, sizeof *grown);
        l->failed = !grown;
        seen->samples = grown ? grown : seen->samples;
        seen->n_room = grown ? room : seen->n_room;
    }
    if (seen->n < seen->n_room) {
        seen->samples[seen->n++] = *sample;
    }
}

static void note_gap(struct listener *x, double gap_s)
{
    int bin =
        gap_s * LOAD_BINS_A_SECOND < LOAD_BINS - 1 ? (int)(gap_s * LOAD_BINS_A_SECOND) : LOAD_BINS - 1;
    x->load->seen.gaps[bin]++;
    x->sample.gap_s = max(gap_s, x->sample.gap_s);
}

/* One answer is over, in whatever way. */
static void finish(struct listener *x, enum load_outcome outcome)
{
    struct load *l = x->load;
    double now = clock_seconds(), rest = x->heard_until - now;
    x->sample.outcome = outcome;
    x->sample.total_s = now - x->sent;
    x->sample.audio_s = (double)(x->n_bytes / 2) / RATE;
    keep_sample(l, &x->sample);
    l->n_at_once--;
    listener_free(x);
    l->failed =
        l->failed || !l->connected; /* nobody listens there: asking for the whole time tells no more */
    if (l->options->listeners > 0) {
        double wait = outcome != LOAD_GOOD ? 0.1 : rest > 0 && !l->options->eager ? rest : 0;
        struct timeval t = {(time_t)wait, (suseconds_t)((wait - floor(wait)) * 1e6)};
        event_base_once(l->base, -1, EV_TIMEOUT, again, l, &t);
    }
    bool more = now - l->began < l->options->seconds;
    if (l->failed || (!more && TAILQ_EMPTY(&l->listeners))) {
        event_base_loopbreak(l->base);
    }
}

/* 16-bit samples: when is the first one that can be heard? */
static void listen_for_sound(struct listener *x, const uint8_t *bytes, size_t n, double starts)
{
    for (size_t i = 0; i < n && !x->audible; i++) {
        uint64_t at = x->n_bytes + i;
        if (at % 2 == 0) {
            x->odd = bytes[i];
            continue;
        }
        int sample = (int16_t)(x->odd | bytes[i] << 8);
        if (abs(sample) > LOUD) {
            x->audible = true;
            x->sample.audible_s = starts + (double)(at / 2) / RATE - x->sent;
        }
    }
}

/* What came in one reading came at one time: between its pieces is no gap. */
static void take_sound(struct listener *x, const char *data, size_t n, double now)
{
    if (n == 0) {
        return;
    }
    if (x->n_bytes == 0) {
        x->sample.first_s = now - x->sent;
        x->heard_until = now;
    } else if (now > x->last) {
        note_gap(x, now - x->last);
    }
    double starved = now - x->heard_until;
    if (starved > 0) {
        x->sample.n_starved++;
        x->sample.starved_all_s += starved;
        x->sample.starved_s = max(x->sample.starved_s, starved);
    }
    double starts = max(now, x->heard_until);
    listen_for_sound(x, (const uint8_t *)data, n, starts - (double)(x->n_bytes / 2) / RATE);
    x->n_bytes += n;
    x->last = now;
    x->heard_until = starts + (double)n / 2 / RATE;
}

static void on_read(struct bufferevent *b, void *user)
{
    struct listener *x = user;
    struct evbuffer *in = bufferevent_get_input(b);
    double now = clock_seconds();
    if (!x->in_body) {
        struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
        char line[16] = "";
        if (end.pos < 0) {
            return;
        }
        evbuffer_copyout(in, line, sizeof line - 1);
        x->sample.status = atoi(line + 9);
        evbuffer_drain(in, (size_t)end.pos + 4);
        x->in_body = true;
        if (x->sample.status != 200) {
            finish(x, LOAD_REFUSED);
            return;
        }
    }
    while (evbuffer_get_length(in) > 0) {
        size_t n = evbuffer_get_contiguous_space(in), used = 0, data_bytes = 0;
        const char *bytes = (const char *)evbuffer_pullup(in, (ev_ssize_t)n), *data = NULL;
        enum http_progress progress = http_chunks_feed(&x->chunks, bytes, n, &used, &data, &data_bytes);
        take_sound(x, data, data_bytes, now);
        evbuffer_drain(in, used);
        if (progress != HTTP_MORE) {
            finish(x, progress == HTTP_DONE && x->n_bytes ? LOAD_GOOD : LOAD_BROKEN);
            return;
        }
    }
}

static void on_event(struct bufferevent *b, short what, void *user)
{
    int one = 1;
    if (what & BEV_EVENT_CONNECTED) {
        ((struct listener *)user)->load->connected = true;
        setsockopt(bufferevent_getfd(b), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    } else {
        finish(user, LOAD_BROKEN);
    }
}

/* The next request's body, to be given back by memory_plain_free; NULL: no memory. */
static char *write_request(struct load *l)
{
    const struct load_options *o = l->options;
    char text[4096];
    const int n_words = write_text(l, text, sizeof text), most = n_words * o->word_frames;
    json_t *body = json_pack("{s:s,s:s,s:I,s:s*}", "input", text, "response_format", "pcm", "seed",
        (json_int_t)(draw(l) >> 33), "voice", o->voice);
    json_t *bound = json_integer(min(most, FIELDS_MAX_FRAMES));
    const bool whole = o->word_frames <= 0 || json_object_set(body, "max_new_tokens", bound) == 0;
    char *out = body && whole ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(bound);
    json_decref(body);
    return out;
}

static void start(struct load *l)
{
    const struct load_options *o = l->options;
    struct listener *x = memory_new(1, sizeof *x);
    struct timeval patience = {PATIENCE_S, 0};
    char *body = write_request(l);
    if (!x || !body || !(x->bev = bufferevent_socket_new(l->base, -1, BEV_OPT_CLOSE_ON_FREE))) {
        memory_plain_free(body);
        memory_free(x);
        l->failed = true;
        event_base_loopbreak(l->base);
        return;
    }
    x->load = l;
    TAILQ_INSERT_TAIL(&l->listeners, x, entry);
    l->n_at_once++;
    l->seen.most_at_once = max(l->n_at_once, l->seen.most_at_once);
    bufferevent_setcb(x->bev, on_read, NULL, on_event, x);
    bufferevent_set_timeouts(x->bev, &patience, NULL);
    bufferevent_enable(x->bev, EV_READ | EV_WRITE);
    x->sent = clock_seconds();
    const bool is_v6 = strchr(o->host, ':') != NULL;
    evbuffer_add_printf(bufferevent_get_output(x->bev),
        "POST /v1/audio/speech HTTP/1.1\r\nHost: %s%s%s:%d\r\nContent-Type: application/json\r\n%s%s%s"
        "Content-Length: %zu\r\n\r\n%s",
        is_v6 ? "[" : "", o->host, is_v6 ? "]" : "", o->port, o->key ? "Authorization: Bearer " : "",
        o->key ? o->key : "", o->key ? "\r\n" : "", strlen(body), body);
    memory_plain_free(body);
    if (bufferevent_socket_connect(x->bev, (struct sockaddr *)&l->address, (int)l->address_bytes) !=
        0) {
        finish(x, LOAD_BROKEN);
    }
}

/* Arrivals do not wait for answers: when the server is slow, more listen at once. */
static void on_arrival(evutil_socket_t socket, short what, void *user)
{
    struct load *l = user;
    (void)socket, (void)what;
    while (clock_seconds() >= l->next_at && l->next_at - l->began < l->options->seconds && !l->failed) {
        start(l);
        l->next_at += -log(1 - draw_unit(l)) / l->options->rate;
    }
    double wait = l->next_at - clock_seconds();
    if (!l->failed && l->next_at - l->began < l->options->seconds && l->seen.n < MAX_REQUESTS) {
        wait = max(wait, 0);
        struct timeval t = {(time_t)wait, (suseconds_t)((wait - floor(wait)) * 1e6)};
        event_add(l->next, &t);
    }
}

static bool find_server(struct load *l)
{
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM};
    char port[16];
    snprintf(port, sizeof port, "%d", l->options->port);
    int fault = getaddrinfo(l->options->host, port, &hints, &found);
    if (fault) {
        fprintf(stderr, "utter: --host %s: %s\n", l->options->host, gai_strerror(fault));
        return false;
    }
    memcpy(&l->address, found->ai_addr, found->ai_addrlen);
    l->address_bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static void run(struct load *l)
{
    l->began = l->next_at = clock_seconds();
    if (l->options->rate > 0) {
        on_arrival(-1, 0, l);
    }
    /* Listeners come one after another, as people do, over the first seconds. */
    for (int i = 0; i < l->options->listeners && l->options->rate <= 0; i++) {
        double wait = i * 2.0 / l->options->listeners;
        struct timeval t = {(time_t)wait, (suseconds_t)((wait - floor(wait)) * 1e6)};
        event_base_once(l->base, -1, EV_TIMEOUT, again, l, &t);
    }
    event_base_dispatch(l->base);
}

int load_run(const struct load_options *options)
{
    struct load l = {.options = options, .random = options->seed, .base = event_base_new()};
    int code = 2, n_answers = 0;
    TAILQ_INIT(&l.listeners);
    l.next = l.base ? event_new(l.base, -1, 0, on_arrival, &l) : NULL;
    if (!l.next) {
        fprintf(stderr, "utter: the load cannot start: %s\n", strerror(errno));
    } else if (options->voice &&
               !websocket_is_utf8((const uint8_t *)options->voice, strlen(options->voice))) {
        fprintf(stderr, "utter: --voice: the name is not UTF-8\n");
        code = 1;
    } else if (!find_server(&l)) {
        code = 1;
    } else {
        run(&l);
        for (int i = 0; i < l.seen.n; i++) {
            n_answers += l.seen.samples[i].status > 0;
        }
        l.seen.wall_s = clock_seconds() - l.began;
        if (n_answers == 0) {
            fprintf(stderr, "utter: nobody answers at %s port %d (start utter serve first)\n",
                options->host, options->port);
        } else {
            load_print(options, &l.seen);
            code = 0;
        }
    }
    for (struct listener *x; (x = TAILQ_FIRST(&l.listeners));) {
        listener_free(x);
    }
    if (l.next) {
        event_free(l.next);
    }
    if (l.base) {
        event_base_free(l.base);
    }
    memory_free(l.seen.samples);
    return code;
}
