/* SPDX-License-Identifier: Apache-2.0
 * Connections of Wyoming: a synthesis at a time each, whole or with text in pieces. Who asks what there is gets an
 * answer at once, also while the model is opened: from the checkpoint's config then. */
#include "server/dialects/wyoming/wyoming.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/memory.h"
#include "server/dialects/markup.h"
#include "server/dialects/voice_map.h"
#include "server/dialects/wyoming/wyoming_message.h"
#include "server/loop/address.h"
#include "server/loop/budget.h"
#include "server/loop/conn/lapse.h"
#include "server/loop/conn/port.h"
#include "server/loop/spare.h"
#include "server/speech/speech.h"
#include "server/speech/voices.h"

enum { MOST_CLIENTS = 64, QUIET_S = 120, CONFIG_BYTES = 4 << 20 };

struct client {
    TAILQ_ENTRY(client) entry;
    struct wyoming *wyoming;
    struct bufferevent *bev;
    struct event *resume; /* reads again, where it has asked for too much at once */
    struct budget budget;
    struct speech *speech;
    struct markup markup;
    size_t text_bytes;
    size_t needed;   /* bytes of the event that has begun to come; fewer are not looked at */
    double moved_at; /* when it last spoke */
    bool has_asked;  /* for whatever it was */
    /* Between synthesize-start and its end; a `synthesize` in between says the whole text again. */
    bool streams;
    bool finished; /* all of the text has come */
    bool told;     /* audio-start has been sent */
    bool closed;   /* and the client sees it */
    bool leaving;  /* closed as soon as all is written */
    char name[64], id[32];
};

struct wyoming {
    struct server *server;
    TAILQ_HEAD(, client) clients;
    uint64_t n_connections;
};

/* ---- To the client ---- */

static void client_free(struct client *c)
{
    TAILQ_REMOVE(&c->wyoming->clients, c, entry);
    c->wyoming->server->n_wyoming--;
    speech_cancel(c->speech);
    if (c->resume) {
        event_free(c->resume);
    }
    bufferevent_free(c->bev);
    struct server *s = c->wyoming->server;
    memory_free(c);
    server_check_drained(s);
}

/* Whom the system cannot watch is let go: no bound of time would end it either. Returns whether the client is still
 * there. */
static bool watch(struct client *c, short what)
{
    if (bufferevent_enable(c->bev, what) == 0) {
        return true;
    }
    client_free(c);
    return false;
}

static size_t unsent(const struct client *c)
{
    return evbuffer_get_length(bufferevent_get_output(c->bev));
}

static void send_event(struct client *c, const char *type, json_t *data, const void *payload, size_t n)
{
    struct wire_out out = {0};
    wyoming_write(&out, type, data, payload, n);
    if (out.failed || bufferevent_write(c->bev, out.bytes, out.n) != 0) { /* nothing may follow */
        c->leaving = true;
        shutdown(bufferevent_getfd(c->bev), SHUT_RDWR);
    }
    wire_fini(&out);
}

static json_t *sound_data(const struct client *c)
{
    return json_pack(
        "{s:i,s:i,s:i}", "rate", c->wyoming->server->ready.sample_rate, "width", 2, "channels", 1);
}

/* Once all is written the client sees the end; what it still sends is taken, so that the system does not take back what
 * was written. */
static void close_if_done(struct client *c)
{
    struct timeval linger = {LINGER_S, 0};
    if (c->leaving && !c->closed && unsent(c) == 0) {
        c->closed = true;
        shutdown(bufferevent_getfd(c->bev), SHUT_WR);
        bufferevent_set_timeouts(c->bev, &linger, NULL);
    }
}

/* Home Assistant passes errors over: the connection is closed, so that it does not wait for more. */
static void fail(struct client *c, const struct refusal *r)
{
    c->wyoming->server->metrics.rejected[METRICS_INVALID] += r->status < 500;
    if (c->speech) { /* whose text would never come */
        speech_cancel(c->speech);
        c->speech = NULL;
    }
    send_event(c, "error",
        json_pack("{s:s,s:s}", "text", r->message, "code", r->code ? r->code : refusal_type(r)), NULL,
        0);
    c->leaving = true;
}

static void tell_start(struct client *c)
{
    if (!c->told) {
        c->told = true;
        send_event(c, "audio-start", sound_data(c), NULL, 0);
    }
}

static void tell_end(struct client *c)
{
    tell_start(c);
    send_event(c, "audio-stop", NULL, NULL, 0);
    if (c->streams) {
        send_event(c, "synthesize-stopped", NULL, NULL, 0);
    }
    c->streams = c->finished = c->told = false;
    c->text_bytes = 0;
    c->leaving = c->wyoming->server->draining;
}

static void on_bytes(void *user, const void *bytes, size_t n)
{
    struct client *c = user;
    c->moved_at = clock_seconds();
    tell_start(c);
    send_event(c, "audio-chunk", sound_data(c), bytes, n);
    if (unsent(c) > LIMIT_UNSENT) {
        speech_hold(c->speech, true);
    }
}

static void on_end(void *user, const struct speech_end *e)
{
    struct client *c = user;
    c->speech = NULL;
    if (!e->good) {
        fail(c, &e->refusal);
    } else if (!c->streams || c->finished) {
        tell_end(c);
    }
}

static const struct speech_sink sink = {on_bytes, on_end, NULL};

/* ---- Synthesis ---- */

static bool start(struct client *c, const struct wyoming_event *e, struct refusal *r)
{
    struct server *s = c->wyoming->server;
    struct fields fields = {0};
    const char *language, *voice = wyoming_voice(e, &language);
    if (!s->was_ready) {
        return refuse(r, 503, NULL, "the model is being opened");
    }
    struct fields_model model = speech_fields_model(s);
    json_t *object = json_pack("{s:s,s:s?,s:s?}", "response_format", "pcm", "language", language,
        "voice", voice && *voice ? voice_map_find(s, "wyoming", voice) : NULL);
    bool good = object ? fields_parse(&fields, object, NULL, FIELDS_FOR_SESSION, &model, r)
                       : refuse(r, 503, NULL, "out of memory");
    json_decref(object);
    if (!good) {
        fields_fini(&fields);
        return false;
    }
    struct speech_request request = {
        &fields, METRICS_STREAM, clock_seconds(), NULL, c->id, c->name, false, NULL};
    c->speech = speech_start(s, &request, &sink, c, r);
    c->markup.n_held = 0;
    c->text_bytes = 0;
    fields_fini(&fields);
    return c->speech != NULL;
}

static bool is_blank(const char *text)
{
    return !text || text[strspn(text, " \t\r\n")] == 0;
}

/* White space in front of the first word is not sent: who has no words has no text. */
static bool add_text(struct client *c, const char *text, struct refusal *r)
{
    size_t n = text ? strlen(text) : 0;
    if (!text) {
        return refuse(r, 400, "text", "\"text\" must be a string without NUL");
    }
    if (c->text_bytes + n > LIMIT_WS_TEXT) {
        return refuse(r, 413, "text", "a synthesis takes at most 128 KiB of text");
    }
    char *plain = c->speech ? memory_new(n + MARKUP_MOST, 1) : NULL;
    if (c->speech && !plain) {
        return refuse(r, 503, NULL, "out of memory");
    }
    size_t bytes = plain ? markup_strip(&c->markup, text, n, plain) : 0;
    if (bytes && (c->text_bytes || !is_blank(plain))) {
        c->text_bytes += bytes;
        speech_text(c->speech, plain, bytes);
    }
    memory_free(plain);
    return true;
}

static void finish(struct client *c)
{
    char rest[MARKUP_MOST];
    size_t n = markup_end(&c->markup, rest);
    c->finished = true;
    if (c->speech && n) {
        speech_text(c->speech, rest, n);
    } else if (c->speech && c->text_bytes == 0) { /* nothing to say */
        speech_cancel(c->speech);
        c->speech = NULL;
    }
    if (c->speech) {
        speech_finish(c->speech);
    } else if (!c->leaving) {
        tell_end(c); /* the speech has ended before its text, or none has come */
    }
}

static void synthesize(struct client *c, const struct wyoming_event *e)
{
    struct refusal r;
    const char *text = wyoming_string(e, "text");
    if (c->streams) {
        return;
    }
    if (c->speech) {
        refuse(&r, 409, NULL, "one synthesis at a time on a connection");
    } else if (is_blank(text)) {
        refuse(&r, 400, "text", "\"text\" must be a text that is not blank");
    } else if (start(c, e, &r) && add_text(c, text, &r)) {
        finish(c);
        return;
    }
    fail(c, &r);
}

static void synthesize_start(struct client *c, const struct wyoming_event *e)
{
    struct refusal r;
    if (c->speech || c->streams) {
        refuse(&r, 409, NULL, "one synthesis at a time on a connection");
    } else if (start(c, e, &r)) {
        c->streams = true;
        return;
    }
    fail(c, &r);
}

/* ---- What there is ---- */

static json_t *copy_names(const char *const *names, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_array_append_new(list, json_string(names[i]));
    }
    return list;
}

/* As the model says it; before it is open, as its config does. Uploaded voices stand behind the model's. */
static json_t *make_info(struct server *s)
{
    json_t *voices, *languages, *config = NULL, *name;
    char path[4096];
    size_t i;
    if (s->was_ready) {
        voices = copy_names(s->ready.voices, s->ready.n_voices);
        languages = copy_names(s->ready.languages, s->ready.n_languages);
    } else {
        snprintf(path, sizeof path, "%s/config.json", s->options->model);
        if (json_file(&config, path, CONFIG_BYTES, JSON_LARGE, NULL) != UTTER_OK) {
            config = NULL;
        }
        wyoming_config(config, &voices, &languages);
        json_decref(config);
    }
    json_t *all = voices_list(s, true);
    const json_t *known = json_object_get(all, "voices");
    json_array_foreach(known, i, name)
    {
        if (i >= (size_t)s->ready.n_voices) {
            json_array_append(voices, name);
        }
    }
    json_decref(all);
    if (json_array_size(voices) == 0) {
        json_array_append_new(voices, json_string("alloy")); /* whoever speaks by default */
    }
    return wyoming_info(utter_version_text(), voices, languages);
}

static void describe(struct client *c)
{
    send_event(c, "info", make_info(c->wyoming->server), NULL, 0);
}

/* ---- From the client ---- */

static void take(struct client *c, const struct wyoming_event *e)
{
    struct refusal r;
    if (strcmp(e->type, "describe") == 0) {
        describe(c);
    } else if (strcmp(e->type, "ping") == 0) {
        const char *text = wyoming_string(e, "text");
        send_event(c, "pong", text ? json_pack("{s:s}", "text", text) : NULL, NULL, 0);
    } else if (strcmp(e->type, "synthesize") == 0) {
        synthesize(c, e);
    } else if (strcmp(e->type, "synthesize-start") == 0) {
        synthesize_start(c, e);
    } else if (strcmp(e->type, "synthesize-chunk") == 0 && c->streams && !c->finished) {
        if (!add_text(c, wyoming_string(e, "text"), &r)) {
            fail(c, &r);
        }
    } else if (strcmp(e->type, "synthesize-stop") == 0 && c->streams && !c->finished) {
        finish(c);
    } /* what else there may be is for other programs */
}

static void on_resume(evutil_socket_t socket, short what, void *user);

/* It has asked for too much: the others have their turn first. */
static void rest(struct client *c, double seconds)
{
    struct timeval time = {(time_t)seconds, (suseconds_t)(1e6 * (seconds - (double)(time_t)seconds))};
    c->resume = c->resume ? c->resume : event_new(c->wyoming->server->base, -1, 0, on_resume, c);
    if (c->resume && event_add(c->resume, &time) == 0) {
        bufferevent_disable(c->bev, EV_READ);
    }
}

static void on_read(struct bufferevent *bev, void *user)
{
    struct client *c = user;
    struct evbuffer *in = bufferevent_get_input(bev);
    enum wyoming_progress progress = WYOMING_EVENT;
    double wait = 0;
    size_t n;
    /* Who asks and takes no answer waits until on_write goes on. */
    while (!c->leaving && wait <= 0 && progress == WYOMING_EVENT && unsent(c) <= LIMIT_UNSENT &&
           (n = evbuffer_get_length(in)) > c->needed) {
        struct wyoming_event e;
        size_t used = 0;
        const uint8_t *bytes = evbuffer_pullup(in, -1);
        progress = bytes ? wyoming_read(&e, bytes, n, &used) : WYOMING_BAD;
        c->needed = progress == WYOMING_MORE && used ? used - 1 : 0;
        if (progress == WYOMING_EVENT) {
            c->has_asked = true;
            take(c, &e);
            wyoming_event_fini(&e);
            evbuffer_drain(in, used);
            wait = budget_take(&c->budget, clock_seconds(), used);
        }
    }
    if (progress == WYOMING_BAD && !c->leaving) {
        struct refusal r;
        refuse(&r, 400, NULL, "this is no event of Wyoming (a line of JSON, then its data)");
        fail(c, &r);
    } else if (wait > 0 && !c->leaving) {
        rest(c, wait);
    }
    if (c->leaving) {
        evbuffer_drain(in, evbuffer_get_length(in));
    }
    close_if_done(c);
}

static void on_resume(evutil_socket_t socket, short what, void *user)
{
    struct client *c = user;
    (void)socket, (void)what;
    if (watch(c, EV_READ)) {
        on_read(c->bev, c);
    }
}

static void on_write(struct bufferevent *bev, void *user)
{
    struct client *c = user;
    speech_hold(c->speech, false);
    if (evbuffer_get_length(bufferevent_get_input(bev)) > 0 &&
        (bufferevent_get_enabled(bev) & EV_READ)) {
        on_read(bev, c);
    }
    close_if_done(c);
}

/* The end of what it sends is its end; so is a time without a word in which nothing is spoken. */
static void on_event(struct bufferevent *bev, short what, void *user)
{
    struct client *c = user;
    (void)bev;
    bool waits = c->streams && !c->finished && clock_seconds() - c->moved_at > QUIET_S; /* for text */
    if ((what & BEV_EVENT_TIMEOUT) && (what & BEV_EVENT_READING) && c->speech && !waits) {
        watch(c, EV_READ);
    } else {
        client_free(c);
    }
}

static void let_in(void *user, evutil_socket_t socket, const struct sockaddr *from)
{
    struct wyoming *w = user;
    struct timeval quiet = {w->server->draining ? LINGER_S : QUIET_S, 0}, stall = {STALL_S, 0};
    int one = 1;
    struct client *c = w->server->n_wyoming < MOST_CLIENTS ? memory_new(1, sizeof *c) : NULL;
    struct bufferevent *bev =
        c && spare_keep() ? bufferevent_socket_new(w->server->base, socket, BEV_OPT_CLOSE_ON_FREE)
                          : NULL;
    if (!bev || !spare_keep()) {
        bev ? bufferevent_free(bev) : (void)evutil_closesocket(socket);
        memory_free(c);
        return;
    }
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    address_text(c->name, sizeof c->name, from);
    snprintf(c->id, sizeof c->id, "%s-w%llu", w->server->boot, (unsigned long long)++w->n_connections);
    c->wyoming = w;
    c->bev = bev;
    budget_begin(&c->budget, clock_seconds());
    TAILQ_INSERT_TAIL(&w->clients, c, entry);
    w->server->n_wyoming++;
    bufferevent_setwatermark(bev, EV_READ, 0, WYOMING_LINE + WYOMING_DATA + WYOMING_PAYLOAD + 1);
    bufferevent_setwatermark(bev, EV_WRITE, LIMIT_UNSENT / 4, 0);
    bufferevent_set_timeouts(bev, &quiet, &stall);
    bufferevent_setcb(bev, on_read, on_write, on_event, c);
    watch(c, EV_READ | EV_WRITE);
}

/* ---- Its life ---- */

/* tcp://HOST:PORT, with an address of IPv6 in brackets. */
static bool read_address(const char *uri, char *host, size_t size, char port[8])
{
    const char *from = strncmp(uri, "tcp://", 6) == 0 ? uri + 6 : NULL,
               *colon = from ? strrchr(from, ':') : NULL;
    if (!colon || strlen(colon + 1) == 0 || strlen(colon + 1) > 5 ||
        colon[1 + strspn(colon + 1, "0123456789")]) {
        return false;
    }
    size_t n = (size_t)(colon - from);
    if (n >= 2 && from[0] == '[' && from[n - 1] == ']') {
        from++;
        n -= 2;
    }
    snprintf(host, size, "%.*s", (int)n, from);
    strcpy(port, colon + 1);
    return n > 0 && n < size;
}

static bool listen_at(struct wyoming *w, const char *host, const char *service)
{
    struct port **port = &w->server->ports[PORT_WYOMING];
    const struct serve_options *o = w->server->options;
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    int fault = getaddrinfo(host, service, &hints, &found);
    if (fault) {
        fprintf(stderr, "utter: --wyoming %s: %s\n", o->wyoming, gai_strerror(fault));
        return false;
    }
    if (!address_is_loopback(found->ai_addr) && !o->insecure) {
        fprintf(stderr,
            "utter: --wyoming %s: Wyoming has no keys, others could use this server (give "
            "--insecure)\n",
            o->wyoming);
    } else {
        *port = port_open(w->server->base, found, let_in, w);
        if (!*port) {
            fprintf(stderr, "utter: --wyoming %s: %s\n", o->wyoming, strerror(errno));
        }
    }
    freeaddrinfo(found);
    return *port != NULL;
}

bool wyoming_open(struct server *s)
{
    char host[256], port[8];
    if (!s->options->wyoming) {
        return true;
    }
    if (!read_address(s->options->wyoming, host, sizeof host, port)) {
        fprintf(stderr, "utter: --wyoming %s: must be tcp://HOST:PORT (tcp://127.0.0.1:10200)\n",
            s->options->wyoming);
        return false;
    }
    struct wyoming *w = memory_new(1, sizeof *w);
    if (!w) {
        fprintf(stderr, "utter: the server cannot start: out of memory\n");
        return false;
    }
    w->server = s;
    TAILQ_INIT(&w->clients);
    s->wyoming = w;
    return listen_at(w, host, port);
}

void wyoming_drain(struct server *s)
{
    struct wyoming *w = s->wyoming;
    struct timeval linger = {LINGER_S, 0}, stall = {STALL_S, 0};
    if (!w) {
        return;
    }
    for (struct client *c = TAILQ_FIRST(&w->clients), *after; c; c = after) {
        after = TAILQ_NEXT(c, entry);
        if (!c->speech && unsent(c) > 0) { /* the end of its sound, or why there is none */
            c->leaving = true;
        } else if (!c->speech && (!c->has_asked || server_has_come(c->bev))) {
            bufferevent_set_timeouts(c->bev, &linger, &stall); /* what it asks is on its way */
        } else if (!c->speech) {
            client_free(c);
        }
    }
}

void wyoming_lapsed(struct server *s, evutil_socket_t file)
{
    struct client *c;
    if (s->wyoming) {
        TAILQ_FOREACH(c, &s->wyoming->clients, entry)
        {
            lapse_tell(c->bev, file);
        }
    }
}

void wyoming_close(struct server *s)
{
    struct wyoming *w = s->wyoming;
    if (w) {
        for (struct client *c; (c = TAILQ_FIRST(&w->clients));) {
            client_free(c);
        }
        port_close(s->ports[PORT_WYOMING]);
        s->ports[PORT_WYOMING] = NULL;
        memory_free(w);
        s->wyoming = NULL;
    }
}
