/* SPDX-License-Identifier: Apache-2.0
 * One client of a conversation, and how what it is told is written down: test_front says how a line looks. */
#ifndef TESTS_SERVER_WRITTEN_CLIENT_H
#define TESTS_SERVER_WRITTEN_CLIENT_H

#include <ctype.h>

#include "tests/server/posed_front.h"

enum { MOST = 1 << 20 };

struct client {
    int socket;
    bool is_socket, has_head, has_ended, is_deaf, hears, is_wyoming;
    char fields[500]; /* of the next head */
    uint8_t in[MOST]; /* has come, and is not told yet */
    size_t n;
    char told[MOST]; /* since the last thing that was sent */
    size_t n_told;
};
static struct client client = {.socket = -1};
static char spoken[MOST]; /* the conversation as it is */
static size_t n_spoken;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    n_spoken += (size_t)vsnprintf(spoken + n_spoken, sizeof spoken - n_spoken, format, list);
    va_end(list);
    assert_true(n_spoken < sizeof spoken);
}

static unsigned sum_of(const void *bytes, size_t n)
{
    unsigned sum = 2166136261u;
    for (size_t i = 0; i < n; i++) {
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * 16777619u;
    }
    return sum;
}

/* So many letters of base64. */
static size_t base64_bytes(const char *at)
{
    return strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=");
}

/* Whether a number follows that is another one each time. */
static size_t time_before(const char *line, const char *at)
{
    static const char *const names[] = {"dur=", "queue_ms\":", "first_ms\":", "total_ms\":", "\"pid\":",
        "utter/", "data_length\":", "version\":\"",
        "Content-Length: ", "Retry-After: ", "retry-after-ms: ", "created_at\":", "total_bytes\":"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        const bool told = !client.is_deaf && i + 1 == sizeof names / sizeof *names;
        if (!told && (size_t)(at - line) >= n && strncmp(at - n, names[i], n) == 0) {
            return strspn(at, "0123456789.-e");
        }
    }
    return 0;
}

/* What nearly every head holds, told once in a conversation. */
static bool is_told(const char *line, size_t n)
{
    static const char *const usual[] = {"Server: utter/", "Cache-Control: no-cache",
        "X-Accel-Buffering: no", "X-Content-Type-Options: nosniff", "Connection: close",
        "x-request-id: req-boot-"};
    bool is_usual = false;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        is_usual =
            is_usual || (n >= strlen(usual[i]) && strncmp(line, usual[i], strlen(usual[i])) == 0);
    }
    return is_usual && posed.n_requests > 1;
}

/* One line. */
static void tell_line(const char *line, size_t n)
{
    if (is_told(line, n)) {
        return;
    }
    note("<%s", n ? " " : "");
    char *copy = strndup(line, n);
    assert_non_null(copy);
    for (const char *at = copy; *at;) {
        size_t time = time_before(copy, at), letters = base64_bytes(at);
        const char *folders[] = {posed.voices->folder, posed.voices->temporary};
        int in = strncmp(at, folders[0], strlen(folders[0])) == 0 && folders[0][0]   ? 0
                 : strncmp(at, folders[1], strlen(folders[1])) == 0 && folders[1][0] ? 1
                                                                                     : -1;
        if (in >= 0) {
            note("%s", in == 0 ? "VOICES" : "TEMPORARY");
            at += strlen(folders[in]);
            continue;
        }
        if (time > 0) {
            note("%s", strncmp(at, "0,", 2) == 0 ? "none" : "0");
            at += time;
        } else if (letters > 200) {
            note("(%zu letters, %08x)", letters, sum_of(at, letters));
            at += letters;
        } else {
            note("%c", *at++);
        }
    }
    note("\n");
    free(copy);
}

static void tell(const uint8_t *bytes, size_t n)
{
    bool is_text = websocket_is_utf8(bytes, n);
    for (size_t i = 0; i < n; i++) {
        is_text = is_text && (bytes[i] >= ' ' || isspace(bytes[i]));
    }
    assert_true(client.n_told + n < MOST);
    memcpy(client.told + client.n_told, bytes, n);
    client.n_told += n;
    const bool goes_on = client.hears;
    client.hears = client.is_deaf && !is_text;
    if (client.hears) {
        note("%s", goes_on ? "" : "< (sound)\n");
        return;
    }
    if (!is_text) {
        note("< (%zu bytes, %08x)\n", n, sum_of(bytes, n));
        return;
    }
    for (const char *at = (const char *)bytes, *end = at + n; at < end;) {
        const char *feed = memchr(at, '\n', (size_t)(end - at)), *stop = feed ? feed : end;
        tell_line(at, (size_t)(stop - at) - (feed && feed > at && feed[-1] == '\r'));
        at = stop + 1;
    }
}

#endif
