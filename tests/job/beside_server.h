/* SPDX-License-Identifier: Apache-2.0
 * A server that a thread poses, and a line that is asked of it, for tests of who asks. */
#ifndef TESTS_JOB_BESIDE_SERVER_H
#define TESTS_JOB_BESIDE_SERVER_H

#include "tests/support.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "job/worker_parts.h"

/* ---- The server ---- */

static struct {
    int listener;
    pthread_t thread;
    char url[64];
    char asked[4096]; /* the request that came last */
    const char *answer;
    size_t bytes, piece; /* it is sent in pieces of so many bytes; 0: as a whole */
    bool waits;          /* for who asks to go, in place of an answer */
    int late_ms;
    atomic_bool came, left; /* of who is let wait */
} posed;

static inline void answer_one(int fd)
{
    size_t n = 0;
    const char *body = NULL, *length = NULL;
    while (!body || !length || n < (size_t)(body + 4 - posed.asked) + strtoul(length + 15, NULL, 10)) {
        ssize_t got = recv(fd, posed.asked + n, sizeof posed.asked - 1 - n, 0);
        if (got <= 0) {
            return;
        }
        posed.asked[n += (size_t)got] = 0;
        body = strstr(posed.asked, "\r\n\r\n");
        length = strstr(posed.asked, "Content-Length:");
    }
    if (posed.waits) {
        atomic_store(&posed.came, true);
        while (recv(fd, posed.asked, 1, 0) > 0) {
        }
        atomic_store(&posed.left, true);
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = 1000000L * posed.late_ms}, NULL);
    for (size_t at = 0; at < posed.bytes;) {
        size_t most = posed.piece ? posed.piece : posed.bytes, left = posed.bytes - at;
        ssize_t sent = send(fd, posed.answer + at, most < left ? most : left, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        at += (size_t)sent;
    }
}

static inline void *serve(void *unused)
{
    for (int fd; (fd = accept(posed.listener, NULL, NULL)) >= 0;) {
        answer_one(fd);
        close(fd);
    }
    return unused;
}

static inline int start(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    posed.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(posed.listener, (struct sockaddr *)&at, size) != 0 || listen(posed.listener, 8) != 0 ||
        getsockname(posed.listener, (struct sockaddr *)&at, &size) != 0) {
        return -1;
    }
    snprintf(posed.url, sizeof posed.url, "http://127.0.0.1:%d/", ntohs(at.sin_port));
    return setenv("no_proxy", "*", 1) || pthread_create(&posed.thread, NULL, serve, NULL);
}

static inline int end(void **state)
{
    (void)state;
    shutdown(posed.listener, SHUT_RDWR);
    pthread_join(posed.thread, NULL);
    close(posed.listener);
    return 0;
}

/* ---- A line that is asked for ---- */

static struct {
    int n;
    char text[512];
} told_away;

static inline void away(void *user, const utter_error *error)
{
    assert_ptr_equal(user, &told_away);
    told_away.n++;
    snprintf(told_away.text, sizeof told_away.text, "%.500s", error->text);
}

static struct speaker_server_settings settings;
static struct speaker *speaker;
static struct slot slot;
static utter_error why;

/* Where there is no libcurl, nothing can be asked for. */
static inline bool has_curl(void)
{
    return dlopen("libcurl.so.4", RTLD_NOW) || dlopen("libcurl-gnutls.so.4", RTLD_NOW);
}

static inline void open_speaker(const char *key)
{
    memset(&told_away, 0, sizeof told_away);
    settings = (struct speaker_server_settings){
        .url = posed.url, .key = key, .lanes = 5, .away = away, .user = &told_away};
    utter_status status = speaker_server_open(&speaker, &settings, &why);
    if (status == UTTER_E_DEVICE && !has_curl()) {
        skip();
    }
    assert_int_equal(status, UTTER_OK);
    assert_int_equal(speaker->lanes, 5);
    assert_int_equal(speaker->rate, 24000);
    assert_false(speaker->misfit);
}

#define LINE                                                                                           \
    "{\"id\":\"a\",\"model\":\"m\",\"voice_hash\":\"vh\",\"called_hash\":\"\",\"format\":\"raw\","     \
    "\"words\":true,\"text\":\"Hello. \\u00e4\""

static inline utter_status begin(const char *line)
{
    memset(&slot, 0, sizeof slot);
    memset(&why, 0, sizeof why);
    assert_int_equal(line_take(&slot.line, line, strlen(line), &why), UTTER_OK);
    assert_int_equal(
        utter_sound_create(&slot.sound, support_path("sound"), "raw", UTTER_SAMPLE_F32, 24000, NULL),
        UTTER_OK);
    return speaker->calls->begin(speaker, &slot, 1, &why);
}

static int n_steps;

/* Until there is an end of it. */
static inline utter_status finish(void)
{
    n_steps = 0;
    utter_status status = UTTER_OK;
    while (status == UTTER_OK) {
        n_steps++;
        assert_int_equal(speaker->calls->step(speaker, &why), UTTER_OK);
        status = speaker->calls->take(speaker, &slot, &why);
    }
    assert_null(slot.making);
    return status;
}

static inline void clear(void)
{
    speaker->calls->drop(speaker, &slot); /* nothing by now */
    utter_sound_abort(&slot.sound);
    line_free(&slot.line);
    memory_free(slot.words);
    slot.words = NULL;
}

static inline utter_status ask(const char *answer)
{
    posed.answer = answer;
    posed.bytes = strlen(answer);
    assert_int_equal(begin(LINE "}"), UTTER_OK);
    return finish();
}

#define GOOD "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n"
#define ENDED "data: {\"type\":\"speech.audio.done\",\"finish\":\"eos\"}\n"

#endif
