/* SPDX-License-Identifier: Apache-2.0
 * Lines that are asked of a server, which a thread poses: what goes out, what is made of its events, and what its
 * refusals mean. */
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
#include "server/protocol/base64.h"

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

static void answer_one(int fd)
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

static void *serve(void *unused)
{
    for (int fd; (fd = accept(posed.listener, NULL, NULL)) >= 0;) {
        answer_one(fd);
        close(fd);
    }
    return unused;
}

static int start(void **state)
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

static int end(void **state)
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

static void away(void *user, const utter_error *error)
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
static bool has_curl(void)
{
    return dlopen("libcurl.so.4", RTLD_NOW) || dlopen("libcurl-gnutls.so.4", RTLD_NOW);
}

static void open_speaker(const char *key)
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

static utter_status begin(const char *line)
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
static utter_status finish(void)
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

static void clear(void)
{
    speaker->calls->drop(speaker, &slot); /* nothing by now */
    utter_sound_abort(&slot.sound);
    line_free(&slot.line);
    memory_free(slot.words);
    slot.words = NULL;
}

static utter_status ask(const char *answer)
{
    posed.answer = answer;
    posed.bytes = strlen(answer);
    assert_int_equal(begin(LINE "}"), UTTER_OK);
    return finish();
}

#define GOOD "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n"
#define ENDED "data: {\"type\":\"speech.audio.done\",\"finish\":\"eos\"}\n"

/* ---- What goes out ---- */

static void assert_body(const char *wanted)
{
    json_t *body = json_loads(strstr(posed.asked, "\r\n\r\n") + 4, 0, NULL),
           *other = json_loads(wanted, 0, NULL);
    assert_true(body && other);
    if (!json_equal(body, other)) {
        fail_msg("%s, not %s", posed.asked, wanted);
    }
    json_decref(body);
    json_decref(other);
}

static void a_request_has_all_of_a_line(void **state)
{
    (void)state;
    open_speaker("secret");
    assert_int_equal(ask(GOOD ENDED), UTTER_END);
    assert_int_equal(strncmp(posed.asked, "POST /v1/audio/speech HTTP/1.1\r\n", 32), 0);
    assert_non_null(strstr(posed.asked, "\r\nAuthorization: Bearer secret\r\n"));
    assert_non_null(strstr(posed.asked, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(posed.asked, "\r\nUser-Agent: utter\r\n"));
    assert_null(strstr(posed.asked, "Expect:"));
    assert_body("{\"input\":\"Hello. \\u00e4\",\"seed\":0,\"word_timestamps\":true,\"background\":true,"
                "\"model_hash\":\"m\",\"voice_hash\":\"vh\",\"response_format\":\"pcm\","
                "\"sample_format\":\"f32\",\"stream_format\":\"sse\"}");
    clear();
    assert_int_equal(begin("{\"id\":\"a\",\"model\":\"m\",\"voice_hash\":\"vh\",\"called_hash\":\"\","
                           "\"format\":\"raw\",\"text\":\"b\",\"voice\":\"v\",\"language\":\"l\","
                           "\"instruct\":\"i\",\"markup\":\"tags\",\"seed\":12}"),
        UTTER_OK);
    assert_int_equal(finish(), UTTER_END);
    assert_body(
        "{\"input\":\"b\",\"voice\":\"v\",\"language\":\"l\",\"instructions\":\"i\","
        "\"markup\":\"tags\",\"seed\":12,\"word_timestamps\":false,\"background\":true,\"model_hash\":"
        "\"m\",\"voice_hash\":"
        "\"vh\",\"response_format\":\"pcm\",\"sample_format\":\"f32\",\"stream_format\":\"sse\"}");
    clear();
    speaker_close(&speaker);
    assert_null(speaker);
    posed.url[strlen(posed.url) - 1] = 0; /* the slash at its end may be left out */
    open_speaker(NULL);
    assert_int_equal(ask(GOOD ENDED), UTTER_END);
    assert_int_equal(strncmp(posed.asked, "POST /v1/audio/speech HTTP/1.1\r\n", 32), 0);
    assert_null(strstr(posed.asked, "Authorization"));
    strcat(posed.url, "/");
    clear();
    speaker_close(&speaker);
}

/* ---- What comes in ---- */

/* So many samples, of any bits but no blanks among their bytes. */
static void draw(float *pcm, size_t n)
{
    uint32_t drawn = 1;
    for (size_t i = 0; i < n; i++) {
        drawn = drawn * 1664525 + 1013904223;
        pcm[i] = (float)((double)drawn / UINT32_MAX - 0.5);
    }
}

static void samples_come_as_they_are(void **state)
{
    (void)state;
    static const size_t parts[] = {1, 1919, 1920, 1921, 3841, 2, 700};
    enum { ALL = 1 + 1919 + 1920 + 1921 + 3841 + 2 + 700 };
    static float pcm[ALL];
    char *answer = malloc(sizeof pcm * 2 + 4096), *at = answer;
    assert_non_null(answer);
    open_speaker(NULL);
    draw(pcm, ALL);
    at += sprintf(at, "%s: a remark\n\n", GOOD);
    for (size_t i = 0, from = 0; i < sizeof parts / sizeof *parts; from += parts[i++]) {
        json_t *text = base64_write(pcm + from, parts[i] * sizeof *pcm);
        at += sprintf(at, "data: {\"type\":\"speech.audio.delta\",\"audio\":\"%s\"}\n\n",
            json_string_value(text));
        json_decref(text);
    }
    sprintf(at, "%s", ENDED);
    for (size_t piece = 0; piece < 3; piece++) {
        posed.piece = piece * 1000 + piece % 2; /* whole, 1001, 2000 */
        assert_int_equal(ask(answer), UTTER_END);
        assert_int_equal(slot.n_samples, ALL);
        assert_int_equal(utter_sound_close(&slot.sound, NULL), UTTER_OK);
        size_t n;
        char *bytes = support_read_file(support_path("sound"), &n);
        assert_int_equal(n, sizeof pcm);
        assert_memory_equal(bytes, pcm, n);
        free(bytes);
        clear();
    }
    posed.piece = 0;
    /* What is no whole sample is none; what is no base64 ends it. */
    assert_int_equal(ask(GOOD "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAAPwAA\"}\n"
                              "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAAPw==AAAA\"}\n"
                              "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAA\"}\n"
                              "data: {\"type\":\"speech.audio.delta\"}\n" ENDED),
        UTTER_END);
    assert_int_equal(slot.n_samples, 2);
    clear();
    free(answer);
    speaker_close(&speaker);
}

static void words_and_counts_come_as_they_are(void **state)
{
    (void)state;
    open_speaker(NULL);
    assert_int_equal(
        ask(GOOD
            "data: "
            "{\"type\":\"speech.audio.words\",\"approximate\":true,\"words\":[{\"index\":1,\"at\":7,"
            "\"bytes\":2,\"start\":0.5,\"end\":1.25,\"certainty\":0.75,\"skipped\":true},{\"index\":-1}"
            ","
            "{\"index\":9,\"at\":3},{\"index\":0,\"at\":0,\"bytes\":5,\"start\":-1,\"end\":0.00002,"
            "\"final\":"
            "true}]}\n"
            "data: {\"type\":\"speech.audio.done\",\"finish\":\"loop\",\"pieces\":4,\"said_again\":3,"
            "\"not_whole\":2}\n"
            "data: {\"type\":\"speech.audio.done\",\"finish\":\"eos\"}"), /* whose line has no end */
        UTTER_END);
    const utter_word *w = slot.words;
    assert_int_equal(slot.n_words, 2);
    assert_true(
        w[0].at == 0 && w[0].bytes == 5 && w[0].start == 0 && w[0].end == 0 && w[0].certainty == 0);
    assert_true(w[0].final && !w[0].skipped);
    assert_true(w[1].at == 7 && w[1].bytes == 2 && w[1].start == 12000 && w[1].end == 30000);
    assert_true(w[1].certainty == 0.75F && !w[1].final && w[1].skipped);
    assert_true(slot.stats.words_approximate);
    assert_int_equal(slot.stats.finish, UTTER_FINISH_LOOP);
    assert_int_equal(slot.stats.n_pieces, 4);
    assert_int_equal(slot.stats.n_retries, 3);
    assert_int_equal(slot.stats.n_broken, 2);
    clear();
    /* As many words as the text has bytes. */
    assert_int_equal(
        ask(GOOD "data: {\"type\":\"speech.audio.words\",\"words\":[{\"index\":8,\"bytes\":1}]}\n"
                 "data: {\"type\":\"speech.audio.done\",\"finish\":\"stuck\",\"pieces\":-1}\n"),
        UTTER_END);
    assert_int_equal(slot.n_words, 9);
    assert_false(slot.stats.words_approximate);
    assert_int_equal(slot.stats.finish, UTTER_FINISH_STUCK);
    assert_int_equal(slot.stats.n_pieces, 0);
    clear();
    assert_int_equal(ask(GOOD "data: {\"type\":\"speech.audio.done\"}\n"), UTTER_END);
    assert_int_equal(slot.stats.finish, UTTER_FINISH_NONE);
    clear();
    speaker_close(&speaker);
}

/* ---- What it does not make ---- */

static void assert_why(const char *rest)
{
    char wanted[512];
    snprintf(
        wanted, sizeof wanted, "%.*s/v1/audio/speech: %s", (int)strlen(posed.url) - 1, posed.url, rest);
    assert_string_equal(why.text, wanted);
}

static void a_refusal_is_the_lines_the_workers_or_for_now(void **state)
{
    (void)state;
    static const struct {
        const char *head, *body, *why;
        bool misfit, away;
    } cases[] = {
        {"400 Bad", "{\"error\":{\"message\":\"no\",\"param\":\"input\"}}", "no", false, false},
        {"400 Bad", "{\"error\":{\"message\":\"no\",\"param\":\"voice\"}}", "no", true, false},
        {"400 Bad", "nothing", "it answers 400, and not why", false, false},
        {"401 Who", "{\"error\":{\"message\":\"who\"}}", "who (--key)", true, false},
        {"403 No", "", "it answers 403, and not why (--key)", true, false},
        {"404 No", "{\"error\":{\"message\":\"where\"}}", "where", true, false},
        {"409 No", "{\"error\":{\"message\":\"another\"}}", "another", true, false},
        {"408 Late", "{\"error\":{\"message\":\"late\"}}", "late", false, true},
        {"429 Many", "{\"error\":{\"message\":\"many\"}}", "many", false, true},
        {"500 Bad", "{\"error\":{\"message\":\"bad\"}}", "bad", false, false},
        {"500 Bad", "{\"error\":{\"message\":\"bad\",\"type\":\"overloaded_error\"}}", "bad", false,
            true},
        {"501 Bad", "", "it answers 501, and not why", false, true},
        {"599 Bad", "", "it answers 599, and not why", false, true},
        {"600 Bad", "", "it answers 600, and not why", false, false},
        {"204 None", "", "it answers 204, and not why", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char answer[512];
        open_speaker(NULL);
        snprintf(answer, sizeof answer, "HTTP/1.1 %s\r\nConnection: close\r\n\r\n%s", cases[i].head,
            cases[i].body);
        assert_int_equal(ask(answer), cases[i].away ? UTTER_AGAIN : UTTER_E_ARGUMENT);
        assert_why(cases[i].why);
        assert_int_equal(speaker->misfit, cases[i].misfit);
        assert_int_equal(told_away.n, cases[i].away);
        assert_int_equal(speaker->lanes, cases[i].away ? 1 : 5);
        assert_string_equal(told_away.text, cases[i].away ? why.text : "");
        clear();
        speaker_close(&speaker);
    }
}

/* 4,096 bytes of a refusal are kept, in which its reason may be. They come in two parts. */
static void a_refusal_may_have_so_many_bytes(void **state)
{
    (void)state;
    char body[4098], answer[5000];
    for (int more = 0; more < 2; more++) {
        const int n =
            snprintf(body, sizeof body, "{\"error\":{\"message\":\"no\"}%*s}", 4096 - 26 + more, "");
        assert_int_equal(n, 4096 + more);
        snprintf(answer, sizeof answer,
            "HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n"
            "800\r\n%.2048s\r\n%x\r\n%s\r\n0\r\n\r\n",
            body, (unsigned)n - 2048, body + 2048);
        open_speaker(NULL);
        assert_int_equal(ask(answer), UTTER_E_ARGUMENT);
        assert_why(more ? "it answers 400, and not why" : "no");
        clear();
        speaker_close(&speaker);
    }
}

/* In the middle of the sound. */
static void an_end_of_the_servers_worker_may_be_of_this_line(void **state)
{
    (void)state;
    open_speaker(NULL);
    assert_int_equal(
        ask(GOOD "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAAPw==\"}\n"
                 "data: {\"type\":\"speech.audio.error\",\"error\":{\"message\":\"x\",\"code\":"
                 "\"given_back\"}}\n"),
        UTTER_AGAIN);
    assert_why("x");
    assert_int_equal(slot.claim.deaths, 0);
    clear();
    for (int deaths = 0; deaths <= 2; deaths++) {
        posed.answer =
            GOOD "data: {\"type\":\"speech.audio.error\",\"error\":{\"code\":\"given_back\"}}\n"
                 "data: {\"type\":\"speech.audio.error\",\"error\":{\"code\":\"worker_ended\"}}\n";
        posed.bytes = strlen(posed.answer);
        assert_int_equal(begin(LINE "}"), UTTER_OK);
        slot.claim.deaths = deaths;
        assert_int_equal(finish(), deaths < 2 ? UTTER_AGAIN : UTTER_E_ARGUMENT);
        assert_int_equal(slot.claim.deaths, deaths < 2 ? deaths + 1 : 2);
        clear();
    }
    assert_false(speaker->misfit);
    assert_int_equal(told_away.n, 0);
    speaker_close(&speaker);
}

static void a_server_that_is_away_is_told_of_once(void **state)
{
    (void)state;
    open_speaker(NULL);
    assert_int_equal(ask(GOOD), UTTER_AGAIN);
    assert_why("the answer was cut");
    assert_int_equal(told_away.n, 1);
    assert_int_equal(speaker->lanes, 1);
    clear();
    assert_int_equal(ask("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"), UTTER_AGAIN);
    assert_null(strstr(why.text, "the answer was cut")); /* but what libcurl says */
    assert_int_equal(told_away.n, 1);
    clear();
    assert_int_equal(ask(GOOD ENDED), UTTER_END);
    assert_int_equal(speaker->lanes, 5);
    clear();
    assert_int_equal(ask("HTTP/1.1 503 Later\r\nConnection: close\r\n\r\n"), UTTER_AGAIN);
    assert_int_equal(told_away.n, 2);
    assert_why("it answers 503, and not why");
    clear();
    speaker_close(&speaker);
}

static void a_sound_that_cannot_be_kept_ends_it(void **state)
{
    (void)state;
    open_speaker(NULL);
    posed.answer = GOOD "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAAPw==\"}\n" ENDED;
    posed.bytes = strlen(posed.answer);
    assert_int_equal(begin(LINE "}"), UTTER_OK);
    utter_sound_abort(&slot.sound);
    assert_int_equal(finish(), UTTER_E_IO);
    assert_true(why.text[0]);
    assert_int_equal(told_away.n, 0);
    clear();
    speaker_close(&speaker);
}

static void a_step_waits_for_what_comes(void **state)
{
    (void)state;
    open_speaker(NULL);
    posed.late_ms = 50;
    assert_int_equal(ask(GOOD ENDED), UTTER_END);
    posed.late_ms = 0;
    assert_in_range(n_steps, 1, 200);
    clear();
    speaker_close(&speaker);
}

static void a_line_that_is_dropped_is_asked_for_no_more(void **state)
{
    (void)state;
    open_speaker(NULL);
    posed.waits = true;
    assert_int_equal(begin(LINE "}"), UTTER_OK);
    while (!atomic_load(&posed.came)) {
        assert_int_equal(speaker->calls->step(speaker, &why), UTTER_OK);
        assert_int_equal(speaker->calls->take(speaker, &slot, &why), UTTER_OK);
    }
    clear();
    assert_null(slot.making);
    for (int i = 0; i < 30000 && !atomic_load(&posed.left);
         i++) { /* the bound is for what never comes */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_true(atomic_load(&posed.left));
    posed.waits = false;
    assert_int_equal(ask(GOOD ENDED), UTTER_END);
    clear();
    speaker_close(&speaker);
}

/* ---- Before anything is asked ---- */

static void voices_of_files_are_not_a_servers(void **state)
{
    (void)state;
    char none[IDENTITY_SIZE], line[512];
    identity_of_bytes(none, NULL, 0);
    open_speaker(NULL);
    assert_int_equal(
        begin("{\"id\":\"a\",\"model\":\"m\",\"voice_hash\":\"\",\"called_hash\":\"x\",\"format\":"
              "\"raw\",\"text\":\"b\"}"),
        UTTER_E_ARGUMENT);
    assert_string_equal(why.text,
        "\"a\": its text calls for voices of files, which a server does not know (work "
        "without --server)");
    assert_true(speaker->misfit);
    assert_null(slot.making);
    clear();
    speaker->misfit = false;
    snprintf(line, sizeof line,
        "{\"id\":\"a\",\"model\":\"m\",\"voice_hash\":\"\",\"called_hash\":\"%s\",\"format\":\"raw\","
        "\"text\":\"b\"}",
        none);
    posed.answer = GOOD ENDED;
    posed.bytes = strlen(posed.answer);
    assert_int_equal(begin(line), UTTER_OK);
    clear(); /* while it is asked for */
    assert_null(slot.making);
    assert_false(speaker->misfit);
    speaker_close(&speaker);
    speaker_close(&speaker);
}

static void what_names_a_server_is_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "host", "ftp://host", "http:/host"};
    char text[2200];
    open_speaker(NULL);
    speaker_close(&speaker);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        settings.url = wrong[i];
        assert_int_equal(speaker_server_open(&speaker, &settings, &why), UTTER_E_ARGUMENT);
        snprintf(text, sizeof text, "--server %s: is not http[s]://HOST[:PORT]", wrong[i]);
        assert_string_equal(why.text, text);
        assert_null(speaker);
    }
    /* 2,047 bytes with the path, and a key of 1,001. */
    memset(text, 'h', sizeof text);
    memcpy(text, "https://", 8);
    text[2047 - 16] = 0;
    settings.url = text;
    assert_int_equal(speaker_server_open(&speaker, &settings, &why), UTTER_OK);
    speaker_close(&speaker);
    text[2047 - 16] = 'h';
    text[2048 - 16] = 0;
    assert_int_equal(speaker_server_open(&speaker, &settings, &why), UTTER_E_ARGUMENT);
    settings.url = posed.url;
    settings.key = text + 1000;
    text[1000 + 1002] = 0;
    assert_int_equal(speaker_server_open(&speaker, &settings, &why), UTTER_E_ARGUMENT);
    assert_string_equal(why.text, "--key: is too long");
    text[1000 + 1001] = 0;
    assert_int_equal(speaker_server_open(&speaker, &settings, &why), UTTER_OK);
    speaker_close(&speaker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_all_of_a_line),
        cmocka_unit_test(samples_come_as_they_are),
        cmocka_unit_test(words_and_counts_come_as_they_are),
        cmocka_unit_test(a_refusal_is_the_lines_the_workers_or_for_now),
        cmocka_unit_test(a_refusal_may_have_so_many_bytes),
        cmocka_unit_test(an_end_of_the_servers_worker_may_be_of_this_line),
        cmocka_unit_test(a_server_that_is_away_is_told_of_once),
        cmocka_unit_test(a_sound_that_cannot_be_kept_ends_it),
        cmocka_unit_test(a_step_waits_for_what_comes),
        cmocka_unit_test(a_line_that_is_dropped_is_asked_for_no_more),
        cmocka_unit_test(voices_of_files_are_not_a_servers),
        cmocka_unit_test(what_names_a_server_is_checked),
    };
    return cmocka_run_group_tests_name("speaker_server", tests, start, end);
}
