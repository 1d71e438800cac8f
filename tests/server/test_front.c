/* SPDX-License-Identifier: Apache-2.0
 * Conversations with a whole front end, from the socket to the answer, every byte of them: tests/server/front/NAME.txt.
 * A line there is what the client sends:
 *     > GET /path                  a request without a body
 *     > POST /path {"a": 1}        a request with one
 *     > ! POST /path {"a": 1}      the same, and it leaves when the work on it has begun
 *     > + Name: value              (before either) one more field of its head
 *     > SOCKET /path               a WebSocket, which stays until the next request
 *     > WYOMING                    a client of that port, likewise
 *     > {"a": 1}                   a message on it
 *     > ~ words                    the client waits until it has been told this
 *     > refused                    how many requests and messages were refused so far
 *     > deaf                       from here on sounds are told as such, and several in a row once
 * or "< ", what the client was told. Times are told as 0 or none, sounds by their length and a sum.
 *     build/release/tests/server/test_front NAME
 * prints the conversation as it is now, for a change that is wanted. */
#include <fcntl.h>
#include <math.h>

#include "server/dialects/wyoming/wyoming_message.h"
#include "server/loop/conn/port.h"
#include "server/speech/speech_parts.h"
#include "tests/server/live_blocks.h"
#include "tests/server/posed_front.h"
#include "tests/server/written_client.h"

enum { LONG_S = 6 };

/* ---- What the client is told ---- */

static void forget(size_t n)
{
    client.n -= n;
    memmove(client.in, client.in + n, client.n);
}

/* The head, and the body as one. */
static void tell_answer(void)
{
    const char *end = memmem(client.in, client.n, "\r\n\r\n", 4);
    assert_non_null(end);
    size_t n_head = (size_t)(end - (const char *)client.in) + 4, n_body = 0;
    bool chunked = memmem(client.in, n_head, "chunked", 7) != NULL;
    const char *length = memmem(client.in, n_head, "Content-Length: ", 16);
    assert_true(!length || client.n == n_head || strtoul(length + 16, NULL, 10) == client.n - n_head);
    tell(client.in, n_head);
    forget(n_head);
    if (client.is_socket) {
        return;
    }
    uint8_t *body = malloc(client.n + 1);
    assert_non_null(body);
    while (chunked && client.n > 0) {
        char *data;
        size_t bytes = strtoul((const char *)client.in, &data, 16);
        if (bytes == 0) {
            break;
        }
        forget((size_t)((uint8_t *)data - client.in) + 2);
        memcpy(body + n_body, client.in, bytes);
        n_body += bytes;
        forget(bytes + 2);
    }
    tell(body, n_body);
    tell(client.in, client.n);
    client.n = 0;
    free(body);
}

/* Frames that are whole. */
static void tell_frames(void)
{
    while (client.n >= 2) {
        size_t n_number = (client.in[1] & 127) == 126 ? 2 : (client.in[1] & 127) == 127 ? 8 : 0;
        uint64_t bytes = client.in[1] & 127;
        for (size_t i = 0; i < n_number; i++) {
            bytes = (i ? bytes << 8 : 0) | client.in[2 + i];
        }
        if (client.n < 2 + n_number + bytes) {
            return;
        }
        uint8_t *at = client.in + 2 + n_number;
        if ((client.in[0] & 15) == 8) {
            note("< close %d ", bytes ? at[0] << 8 | at[1] : 0);
            note("%.*s\n", bytes ? (int)bytes - 2 : 0, (const char *)at + 2);
        } else {
            tell(at, (size_t)bytes);
        }
        forget(2 + n_number + (size_t)bytes);
    }
}

/* Events of Wyoming that are whole. */
static void tell_events(void)
{
    struct wyoming_event e;
    size_t used = 0;
    while (wyoming_read(&e, client.in, client.n, &used) == WYOMING_EVENT) {
        size_t n_line = (size_t)((const uint8_t *)memchr(client.in, '\n', client.n) - client.in) + 1,
               n_data = used - n_line - e.payload_bytes;
        tell(client.in, n_line);
        tell(client.in + n_line, n_data);
        if (e.payload_bytes > 0) {
            tell(client.in + n_line + n_data, e.payload_bytes);
        }
        wyoming_event_fini(&e);
        forget(used);
    }
}

/* Takes what has come, and lets the front end work. */
static void listen_more(void)
{
    ssize_t n = recv(client.socket, client.in + client.n, MOST - client.n, 0);
    client.n += n > 0 ? (size_t)n : 0;
    client.has_ended = n == 0 || (n < 0 && errno != EAGAIN);
    if (client.is_socket && !client.has_head && memmem(client.in, client.n, "\r\n\r\n", 4)) {
        client.is_socket = memmem(client.in, client.n, " 101 ", 5) != NULL; /* else it is refused */
        client.has_head = true;
        if (client.is_socket) {
            tell_answer();
        }
    }
    if (client.is_wyoming) {
        tell_events();
    } else if (client.is_socket && client.has_head) {
        tell_frames();
    }
    posed_turn();
}

/* Until the client has been told this; NULL: until the connection is closed. */
static void listen_until(const char *words)
{
    const double until = clock_seconds() + LONG_S;
    do {
        listen_more();
    } while (clock_seconds() < until && !client.has_ended &&
             !(words && memmem(client.told, client.n_told, words, strlen(words))));
    if (clock_seconds() >= until) {
        fail_msg("'%s' is not told, but: %s", words ? words : "the end",
            spoken + (n_spoken > 600 ? n_spoken - 600 : 0));
    }
    if (!client.is_wyoming && !client.is_socket && client.n > 0) {
        tell_answer();
    }
}

/* Something of a client is left. */
static bool is_busy(void)
{
    return posed.n_conns + posed.n_wyoming + posed.n_running + posed.n_queued +
               posed.voices->n_uploads >
           0;
}

static void hang_up(void)
{
    if (client.socket >= 0) {
        close(client.socket);
        for (double until = clock_seconds() + LONG_S; clock_seconds() < until && is_busy();) {
            posed_turn();
        }
    }
    client.socket = -1;
    client.is_wyoming = client.is_socket = client.has_head = client.has_ended = false;
    client.n = client.n_told = 0;
}

/* ---- What it sends ---- */

static void send_bytes(const void *bytes, size_t n)
{
    assert_int_equal(send(client.socket, bytes, n, MSG_NOSIGNAL), n);
}

static void connect_client(void)
{
    static const struct sockaddr from = {.sa_family = AF_UNIX};
    int pair[2];
    hang_up();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    assert_non_null(conn_new(&posed, &route_service, pair[0], &from));
    client.socket = pair[1];
}

static void send_request(const char *line, bool leaves)
{
    static char head[10000];
    char path[1000] = "", method[20] = "";
    int used = 0;
    sscanf(line, "%19s %999s %n", method, path, &used);
    const char *body = line + used;
    connect_client();
    client.is_socket = strcmp(method, "SOCKET") == 0;
    int n = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\n%s%s", client.is_socket ? "GET" : method,
        path, strstr(client.fields, "Host:") ? "" : "Host: localhost\r\n", client.fields);
    client.fields[0] = 0;
    if (client.is_socket) {
        n += snprintf(head + n, sizeof head - (size_t)n,
            "Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n");
    } else {
        n += snprintf(head + n, sizeof head - (size_t)n,
            "Connection: close\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    }
    send_bytes(head, (size_t)n);
    if (leaves) {
        for (double until = clock_seconds() + LONG_S;
             clock_seconds() < until && posed.n_running + posed.voices->n_uploads == 0;) {
            posed_turn();
        }
        hang_up();
        return;
    }
    listen_until(client.is_socket ? "\r\n\r\n" : NULL);
}

static void come_to_wyoming(void)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    hang_up();
    client.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        getsockname(port_socket(posed.ports[PORT_WYOMING]), (struct sockaddr *)&at, &bytes), 0);
    assert_int_equal(connect(client.socket, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(fcntl(client.socket, F_SETFL, O_NONBLOCK), 0);
    client.is_wyoming = true;
}

static void send_message(const char *text)
{
    static const uint8_t mask[4];
    const size_t n = strlen(text);
    const uint8_t head[] = {0x81, 0x80 | 126, (uint8_t)(n >> 8), (uint8_t)n},
                  little[] = {0x81, (uint8_t)(0x80 | n)};
    client.n_told = 0;
    if (client.is_wyoming) {
        send_bytes(text, n);
        send_bytes("\n", 1);
        return;
    }
    n < 126 ? send_bytes(little, sizeof little) : send_bytes(head, sizeof head);
    send_bytes(mask, sizeof mask);
    send_bytes(text, n);
}

static void act(const char *line)
{
    client.hears = false;
    if (strcmp(line, "deaf") == 0) {
        client.is_deaf = true;
    } else if (strcmp(line, "refused") == 0) {
        note("< %llu\n", (unsigned long long)posed.metrics.rejected[METRICS_INVALID]);
    } else if (line[0] == '+') {
        snprintf(client.fields + strlen(client.fields), sizeof client.fields - strlen(client.fields),
            "%s\r\n", line + 2);
    } else if (line[0] == '~') {
        listen_until(strcmp(line, "~ the end") == 0 ? NULL : line + 2);
    } else if (strcmp(line, "WYOMING") == 0) {
        come_to_wyoming();
    } else if (line[0] == '{' || line[0] == '[') {
        send_message(line);
    } else {
        send_request(line[0] == '!' ? line + 2 : line, line[0] == '!');
    }
}

/* The log from now on. */
static FILE *begin_log(int *kept)
{
    FILE *log = tmpfile();
    *kept = dup(STDERR_FILENO);
    assert_true(log && *kept >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    return log;
}

/* Its lines, with 0 for each number. */
static void tell_log(FILE *log, int kept)
{
    char line[1000];
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    rewind(log);
    while (fgets(line, sizeof line, log)) {
        note("< ");
        for (const char *at = line; *at;) {
            const size_t n = isdigit(*at) ? strspn(at, "0123456789.-e") : 0;
            note("%c", n ? '0' : *at);
            at += n ? n : 1;
        }
    }
    fclose(log);
}

/* Plays what the client sends; `spoken` is the whole conversation then. */
static char *play(const char *name)
{
    static char text[MOST];
    char path[200];
    snprintf(path, sizeof path, "tests/server/front/%s.txt", name);
    FILE *file = fopen(path, "r");
    if (!file) {
        fail_msg("%s: %s", path, strerror(errno));
    }
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    char *copy = strdup(text), *rest = copy, *line;
    n_spoken = 0;
    spoken[0] = 0;
    posed_keys = strcmp(name, "keys") == 0 ? "tests/server/front/keys" : NULL;
    char folder[] = P_tmpdir "/utter-front-XXXXXX";
    posed_voices = strcmp(name, "voices") == 0 ? mkdtemp(folder) : NULL;
    posed_wyoming = strcmp(name, "wyoming") == 0;
    posed_tells = strcmp(name, "told") == 0;
    int kept;
    FILE *log = posed_tells ? begin_log(&kept) : NULL;
    posed_begin();
    while ((line = strsep(&rest, "\n"))) {
        if (line[0] != '<' && (line[0] || rest)) {
            note("%s\n", line);
        }
        if (line[0] == '>') {
            act(line + 2);
        }
    }
    hang_up();
    if (log) {
        tell_log(log, kept);
        posed_tells = false;
    }
    client.is_deaf = false;
    posed_end();
    assert_true(!posed_voices || rmdir(folder) == 0); /* nothing of them is left */
    free(copy);
    return text;
}

static void check(const char *name)
{
    const char *want = play(name), *got = spoken;
    while (*want && *want == *got) {
        want++, got++;
    }
    if (*want != *got) { /* from the beginning of the line */
        while (got > spoken && got[-1] != '\n') {
            got--, want--;
        }
        fail_msg("%s: told\n%.*s\ninstead of\n%.*s", name, (int)strcspn(got, "\n"), got,
            (int)strcspn(want, "\n"), want);
    }
}

#define CONVERSATION(name)                                                                             \
    static void name(void **state)                                                                     \
    {                                                                                                  \
        (void)state;                                                                                   \
        check(#name);                                                                                  \
    }
CONVERSATION(speech)
CONVERSATION(session)
CONVERSATION(elevenlabs)
CONVERSATION(cartesia)
CONVERSATION(deepgram)
CONVERSATION(about)
CONVERSATION(keys)
CONVERSATION(gone)
CONVERSATION(wyoming)
CONVERSATION(coded)
CONVERSATION(voices)
CONVERSATION(told)

/* Of the memory that a conversation takes nothing stays, where it has been held before. */
static void all_of_it_is_given_back(void **state)
{
    static const char *const names[] = {
        "voices", "speech", "session", "elevenlabs", "cartesia", "deepgram", "wyoming"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t before = n_live_blocks;
        play(names[i]);
        if (n_live_blocks != before) {
            fail_msg("%s: %zu blocks, not %zu", names[i], n_live_blocks, before);
        }
    }
}

static const struct speech *running(void)
{
    LINKS_FOREACH(l, &posed)
    {
        return TAILQ_FIRST(&l->running);
    }
    return NULL;
}

/* In a queue the first sentence stands before others, those behind it do not: it is heard meanwhile. */
static void who_has_heard_a_sentence_is_patient(void **state)
{
    static const char *const texts[] = {"wait. ", "Hi. wait. "};
    (void)state;
    for (int i = 0; i < 2; i++) {
        posed_begin();
        send_request("SOCKET /v1/audio/speech/stream", false);
        send_message("{\"type\":\"session.config\",\"split_granularity\":\"sentence\"}");
        listen_until("session.created");
        char text[100];
        snprintf(text, sizeof text, "{\"type\":\"input.text\",\"text\":\"%s\"}", texts[i]);
        send_message(text);
        listen_until(i ? "\"sentence_index\":1" : "\"sentence_index\":0");
        assert_true(running() && running()->patient == (i > 0));
        hang_up();
        posed_end();
    }
}

/* Each message and each piece of sound puts off the end of a conversation in which nothing is said. */
static void who_talks_on_is_not_idle(void **state)
{
    (void)state;
    posed_begin();
    send_request("SOCKET /v1/speak?encoding=linear16", false);
    struct conn *c = TAILQ_FIRST(&posed.conns);
    assert_true(fabs(c->deadline - clock_seconds() - 300) < 10);
    send_message("{\"type\":\"Speak\",\"text\":\"wait\"}");
    for (int i = 0; i < 2; i++) { /* until it has been heard, then until it is spoken */
        do {
            c->deadline = 0;
            posed_turn();
        } while (i ? running()->made_s <= 0 : !running());
        assert_true(fabs(c->deadline - clock_seconds() - 300) < 10);
        send_message("{\"type\":\"Flush\"}");
    }
    hang_up();
    posed_end();
}

/* But what is kept of it, so that what was heard of it may be told. */
static void what_was_spoken_waits_no_more(void **state)
{
    (void)state;
    posed_begin();
    send_request("SOCKET /v1/audio/speech/stream", false);
    send_message("{\"type\":\"session.config\"}");
    for (int i = 0; i < 2; i++) {
        send_message("{\"type\":\"input.text\",\"text\":\"Hi\"}");
        send_message("{\"type\":\"input.done\"}");
        listen_until("session.done");
        assert_true(TAILQ_FIRST(&posed.conns)->owner_bytes < 100);
    }
    hang_up();
    posed_end();
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return posed_worker(atoi(arguments[2]), posed_answer_all);
    }
    if (n == 6 && strcmp(arguments[1], "serve-clone") == 0) {
        return posed_clone(arguments + 2);
    }
    if (n == 2) {
        play(arguments[1]);
        return fputs(spoken, stdout) < 0;
    }
    if (n > 2) { /* what it is asked for as a process of the server, and cannot: it starts nothing */
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speech),
        cmocka_unit_test(session),
        cmocka_unit_test(elevenlabs),
        cmocka_unit_test(cartesia),
        cmocka_unit_test(deepgram),
        cmocka_unit_test(about),
        cmocka_unit_test(keys),
        cmocka_unit_test(gone),
        cmocka_unit_test(wyoming),
        cmocka_unit_test(coded),
        cmocka_unit_test(voices),
        cmocka_unit_test(told),
        cmocka_unit_test(all_of_it_is_given_back),
        cmocka_unit_test(who_has_heard_a_sentence_is_patient),
        cmocka_unit_test(who_talks_on_is_not_idle),
        cmocka_unit_test(what_was_spoken_waits_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
