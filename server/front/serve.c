/* SPDX-License-Identifier: Apache-2.0
 * The front end's life: listen, start the workers, serve, drain. */
#include "server/front/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "server/dialects/voice_map.h"
#include "server/dialects/wyoming/wyoming.h"
#include "server/front/keys.h"
#include "server/front/route.h"
#include "server/loop/address.h"
#include "server/loop/conn/conn.h"
#include "server/loop/conn/lapse.h"
#include "server/loop/conn/port.h"
#include "server/loop/jobs.h"
#include "server/loop/links.h"
#include "server/loop/log.h"
#include "server/loop/server.h"
#include "server/loop/spare.h"
#include "server/protocol/websocket.h"
#include "server/speech/admission.h"
#include "server/speech/speech.h"
#include "server/speech/voices.h"
#include "server/worker/worker.h"

enum {
    TICK_MS = 100,
    SHORT_TICK_MS = 1,
    TELL_MS = 100, /* for the words to those whom the end of a drain leaves without their sound */
    /* For the rest of a handshake, which is a way there and back. Newcomers who were shut out try again after a second,
     * and must find the port closed. */
    HANDSHAKE_MS = 500,
    ENCODER_THREADS = 2,
    SEND_BUFFER = 32 << 10,
    OTHER_FILES = 64
};
enum {                      /* bytes, for the bound that is printed */
    CONN_BYTES = 24 << 10,  /* a connection with the head of its request */
    SPEECH_BYTES = 3 << 20, /* an encoder; samples and text that wait for it */
    START_BYTES = 24 << 20, /* the program itself */
    JSON_BYTES = 3 << 20,   /* what LIMIT_VALUES values take beside their text */
};

/* ---- Connections ---- */

/* What every connection takes over from the socket that listens. */
static void set_options(evutil_socket_t listening)
{
    int one = 1, bytes = SEND_BUFFER;
    setsockopt(listening, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* The kernel must not swallow a minute of sound for a client that does not read. */
    setsockopt(listening, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

/* All places are taken: told once a second at most. */
static void note_full(struct server *s, bool room, const struct sockaddr *from)
{
    double now = clock_seconds();
    if (now - s->full_told >= 1) {
        char newcomer[64];
        address_text(newcomer, sizeof newcomer, from);
        s->full_told = now;
        log_event(s, "connections_full",
            json_pack("{s:i,s:s,s:s}", "connections", s->n_conns, "newcomer", newcomer, "what",
                room ? "the one least at work has gone" : "the newcomer is turned away"));
    }
}

static void let_in(void *user, evutil_socket_t socket, const struct sockaddr *from)
{
    struct server *s = user;
    if (s->n_conns >= s->most_conns) {
        bool room = conn_make_room(s, from);
        note_full(s, room, from);
        s->metrics.crowded_out++;
    }
    if (s->n_conns >= s->most_conns || !conn_new(s, &route_service, socket, from)) {
        conn_turn_away(socket);
        evutil_closesocket(socket);
    }
}

static int bound_port(const struct server *s)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    if (getsockname(port_socket(s->ports[PORT_HTTP]), (struct sockaddr *)&address, &bytes) != 0) {
        return s->options->port;
    }
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&address)->sin6_port
                                               : ((struct sockaddr_in *)(void *)&address)->sin_port);
}

static bool start_listening(struct server *s)
{
    const struct serve_options *o = s->options;
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    char port[16];
    snprintf(port, sizeof port, "%d", o->port);
    int fault = getaddrinfo(o->host, port, &hints, &found);
    if (fault) {
        fprintf(stderr, "utter: --host %s: %s\n", o->host, gai_strerror(fault));
        return false;
    }
    if (!address_is_loopback(found->ai_addr) && !s->keys && !o->insecure) {
        fprintf(stderr,
            "utter: --host %s: others could use this server without a key (give --api-key-file FILE, "
            "or "
            "--insecure)\n",
            o->host);
    } else {
        s->ports[PORT_HTTP] = port_open(s->base, found, let_in, s);
        if (!s->ports[PORT_HTTP]) {
            fprintf(stderr, "utter: %s port %d: %s%s\n", o->host, o->port, strerror(errno),
                errno == EADDRINUSE ? " (another program listens there: --port N takes another)" : "");
        } else {
            set_options(port_socket(s->ports[PORT_HTTP]));
        }
    }
    freeaddrinfo(found);
    return s->ports[PORT_HTTP] != NULL;
}

static void on_lapse(void *user, evutil_socket_t file)
{
    conn_lapsed(user, file);
    links_lapsed(user, file);
    wyoming_lapsed(user, file);
}

/* ---- The end ---- */

static void close_ports(struct server *s)
{
    for (int i = 0; i < SERVER_PORTS; i++) {
        port_close(s->ports[i]);
        s->ports[i] = NULL;
    }
}

static void drain(struct server *s)
{
    if (s->draining) {
        return;
    }
    s->draining = true;
    s->drain_until = clock_seconds() + s->options->drain_s;
    /* Who has connected, or is about to, is told: closing the ports now would reset those who were not accepted yet.
     * Where there is nothing to wait for, the server ends at once nevertheless. */
    s->open_until = clock_seconds() + 1e-3 * HANDSHAKE_MS;
    for (int i = 0; i < SERVER_PORTS; i++) {
        port_shut_out(s->ports[i]);
    }
    conn_drain(s);
    wyoming_drain(s);
    server_check_drained(s);
}

/* Who is still not whole is told, and what that needs to go out is waited for. */
static void end_drain(struct server *s)
{
    s->is_stopping = true;
    s->drain_until = clock_seconds() + 1e-3 * TELL_MS;
    speech_stop(s);
    conn_drain(s);
    wyoming_drain(s);
    server_check_drained(s);
}

static void on_stop(evutil_socket_t number, short what, void *user)
{
    struct server *s = user;
    (void)number, (void)what;
    if (s->is_stopping) {
        event_base_loopbreak(s->base);
    } else if (s->draining) { /* the second signal: now */
        end_drain(s);
    } else {
        log_event(
            s, "draining", json_pack("{s:i,s:i}", "running", s->n_running, "queued", s->n_queued));
        drain(s);
    }
}

static void on_hangup(evutil_socket_t number, short what, void *user)
{
    (void)number, (void)what;
    keys_read(user);
    voice_map_read(user);
}

static void on_child(evutil_socket_t number, short what, void *user)
{
    struct server *s = user;
    int status;
    (void)number, (void)what;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        links_reap(s, pid, status);
        voices_reap(s, pid, status);
    }
}

/* What the front end may take at most: what clients have sent and what they have not taken yet, both in buffers that
 * may have grown to twice of it, and the strings of what they have sent once more; what each connection and each
 * speech has for itself; a message of each worker, the one in the background too. */
static double memory_bound(const struct server *s)
{
    double listeners = links_lanes(s) + s->options->queue,
           background = LINK_IDLE_LANES + s->options->queue + 1, speeches = listeners + background;
    return 3.0 * LIMIT_HELD + 2.0 * LIMIT_UNSENT_ALL +
           s->most_conns * (2.0 * LIMIT_HELD_SMALL + CONN_BYTES) +
           speeches * (LIMIT_UNSENT + SPEECH_BYTES + (double)JSON_BYTES) +
           (s->n_links + 1) * (double)WIRE_MAX_BODY + START_BYTES;
}

static void announce(const struct server *s)
{
    const struct serve_options *o = s->options;
    double most = memory_bound(s);
    bool is_v6 = strchr(o->host, ':') != NULL;
    printf(
        "utter: ready on http://%s%s%s:%d, model %s (%s, %s), %d lanes, %d may wait, %d connections, "
        "keys %s, the front "
        "end takes at most %.0f MB\n",
        is_v6 ? "[" : "", o->host, is_v6 ? "]" : "", bound_port(s), s->model_id, s->ready.device,
        s->ready.weights, links_lanes(s), o->queue, s->most_conns, s->keys ? "asked for" : "off",
        most * 1e-6);
    fflush(stdout);
}

/* Once: when some worker has opened the model, and no other is about to for the first time. While it drains nobody
 * who comes is served. */
static void announce_when_known(struct server *s)
{
    bool known = s->was_ready && !s->is_announced && !s->draining;
    LINKS_FOREACH(l, s)
    {
        known = known && (l->is_ready || l->start_fault != 0 || l->is_out || l->n_deaths > 0);
    }
    if (known) {
        s->is_announced = true;
        announce(s);
    }
}

static void on_ready(struct link *l)
{
    announce_when_known(l->server);
    speech_worker_ready(l);
}

static void on_beat(struct link *l)
{
    speech_dispatch(l->server);
}

static void on_lost(struct link *l, const char *unopened)
{
    speech_worker_lost(l, unopened);
}

static void on_given_up(struct server *s)
{
    drain(s);
    end_drain(s); /* tells who has come since the port is open */
}

static const struct link_owner link_owner = {on_ready, on_beat, speech_message, on_lost, on_given_up};

static void on_tick(evutil_socket_t socket, short what, void *user)
{
    struct server *s = user;
    double now = clock_seconds();
    (void)socket, (void)what;
    links_tick(s, now);
    speech_tick(s, now);
    origins_tick(&s->origins, now);
    announce_when_known(s);
    struct timeval next = {0, 1000 * (conn_tick(s, now) ? SHORT_TICK_MS : TICK_MS)};
    event_add(s->tick, &next);
    if (s->draining && now > s->open_until) {
        close_ports(s);
    }
    if (s->draining && now > s->drain_until && !s->is_stopping) {
        end_drain(s);
    } else if (s->draining && now > s->drain_until) {
        event_base_loopbreak(s->base);
    }
}

/* ---- Start ---- */

static void name_model(struct server *s)
{
    const char *path = s->options->model;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    const char *slash = memrchr(path, '/', n);
    const char *name = slash ? slash + 1 : path;
    snprintf(s->model_id, sizeof s->model_id, "%.*s", (int)(n - (size_t)(name - path)), name);
    /* JSON holds UTF-8 only: a name that is not, or was cut inside a character, is shown without what is not ASCII. */
    bool whole = websocket_is_utf8((const uint8_t *)s->model_id, strlen(s->model_id));
    for (char *c = s->model_id; *c; c++) {
        if ((!whole && (unsigned char)*c > '~') || *c == '"' || *c == '\\' || (unsigned char)*c < ' ') {
            *c = '_';
        }
    }
}

static bool start_events(struct server *s)
{
    static const struct {
        int number;
        event_callback_fn call;
    } signals[] = {{SIGINT, on_stop}, {SIGTERM, on_stop}, {SIGHUP, on_hangup}, {SIGCHLD, on_child}};
    struct timeval tick = {0, TICK_MS * 1000};
    bool good = true;
    for (size_t i = 0; i < sizeof signals / sizeof *signals && good; i++) {
        s->signals[i] = evsignal_new(s->base, signals[i].number, signals[i].call, s);
        good = s->signals[i] && event_priority_set(s->signals[i], SERVER_SOUND) == 0 &&
               event_add(s->signals[i], NULL) == 0;
    }
    struct sigaction child; /* that one stands still, or goes on, is no news */
    if (good && sigaction(SIGCHLD, NULL, &child) == 0) {
        child.sa_flags |= SA_NOCLDSTOP;
        sigaction(SIGCHLD, &child, NULL);
    }
    s->tick = event_new(s->base, -1, 0, on_tick, s);
    good = good && s->tick && event_priority_set(s->tick, SERVER_SOUND) == 0 &&
           event_add(s->tick, &tick) == 0;
    s->jobs = good ? jobs_new(s->base, ENCODER_THREADS) : NULL;
    if (!s->jobs) {
        fprintf(stderr, "utter: the server cannot start: %s\n", strerror(errno));
    }
    return s->jobs != NULL;
}

/* As many connections and files of whole answers as there may be descriptors. */
static void allow_files(struct server *s)
{
    struct rlimit files;
    const rlim_t most = LIMIT_CONNECTIONS + LIMIT_FILES, wanted = most + OTHER_FILES;
    int n = LIMIT_CONNECTIONS / 16;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        if (files.rlim_cur < wanted) {
            files.rlim_cur = min(files.rlim_max, wanted);
            setrlimit(RLIMIT_NOFILE, &files);
        }
        n = files.rlim_cur > OTHER_FILES + 16 ? (int)min(files.rlim_cur - OTHER_FILES, most) : 16;
    }
    s->most_files = (int)(n * LIMIT_FILES / most);
    s->most_conns = n - s->most_files;
}

static void server_fini(struct server *s)
{
    for (struct conn *c; (c = TAILQ_FIRST(&s->conns));) {
        conn_drop(c);
    }
    origins_end(&s->origins);
    wyoming_close(s);
    links_close(s);
    jobs_free(s->jobs);
    voices_close(s);
    keys_free(s);
    voice_map_free(s);
    memory_plain_free(s->openapi);
    for (size_t i = 0; i < sizeof s->signals / sizeof *s->signals; i++) {
        if (s->signals[i]) {
            event_free(s->signals[i]);
        }
    }
    if (s->tick) {
        event_free(s->tick);
    }
    close_ports(s);
    /* A lapse that is yet to be told (lapse.h) holds its connection. */
    event_base_loop(s->base, EVLOOP_NONBLOCK);
    event_base_free(s->base);
    lapse_end();
    spare_end();
    memory_free(s->ready_bytes);
}

int serve_run(const struct serve_options *options)
{
    struct server s = {.options = options};
    uint64_t random = 0;
    conn_places(&s);
    TAILQ_INIT(&s.queued);
    TAILQ_INIT(&s.background.queued);
    s.background.most_still_s = 0.5;
    admission_begin(&s);
    memory_keep_little(); /* a sound that has been sent goes back to the system */
    spare_begin();
    s.base = event_base_new();
    if (!s.base || event_base_priority_init(s.base, SERVER_PRIORITIES) != 0) {
        fprintf(stderr, "utter: the server cannot start: %s\n", strerror(errno));
        if (s.base) {
            event_base_free(s.base);
        }
        return 2;
    }
    lapse_begin(on_lapse, &s);
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        random = (uint64_t)getpid();
    }
    snprintf(s.boot, sizeof s.boot, "%08x", (uint32_t)random);
    s.origins.secret = random >> 32;
    name_model(&s);
    allow_files(&s);
    if (!keys_read(&s) || !voice_map_read(&s) || !start_listening(&s) || !voices_open(&s) ||
        !wyoming_open(&s)) {
        s.exit_code = 1;
    } else if (!start_events(&s) || !links_open(&s, &link_owner)) {
        s.exit_code = 2;
    } else {
        event_base_dispatch(s.base);
    }
    server_fini(&s);
    return s.exit_code;
}

int serve_child(int n, char **arguments)
{
    if (n == 2 && strcmp(arguments[0], "serve-worker") == 0) {
        memory_keep_little(); /* long sounds that leave when all of them is made, each of another length */
        return worker_main(atoi(arguments[1]));
    }
    if (n == 5 && strcmp(arguments[0], "serve-clone") == 0) {
        return voices_child(arguments + 1);
    }
    return -1;
}
