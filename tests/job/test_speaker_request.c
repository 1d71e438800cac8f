/* SPDX-License-Identifier: Apache-2.0
 * How long a server may take, and what else libcurl is told of a request; a table of calls stands in its place, and
 * counts what it has given out. What a server says is tested with one (test_speaker_server). */
#include "tests/support.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "base/library.h"
#include "base/memory.h"
#include "job/worker_parts.h"

/* ---- The library ---- */

static struct {
    char said[1024];   /* options of requests, in their order, and what is done with them */
    const char *lacks; /* the call that finds no memory, or fails */
    const char *file;  /* where the library is */
    int n_alive;       /* things that were made, less those that were destroyed */
} posed;

static char thing;

static void say(const char *format, ...)
{
    size_t n = strlen(posed.said);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(posed.said + n, sizeof posed.said - n, format, arguments);
    va_end(arguments);
    strncat(posed.said, "; ", sizeof posed.said - strlen(posed.said) - 1);
}

static bool fails(const char *call)
{
    return posed.lacks && strcmp(posed.lacks, call) == 0;
}

static void *made(const char *call)
{
    posed.n_alive += !fails(call);
    return fails(call) ? NULL : &thing;
}

static CURLcode begin_library(long flags)
{
    assert_int_equal(flags, CURL_GLOBAL_DEFAULT);
    return fails("begin") ? CURLE_OUT_OF_MEMORY : CURLE_OK;
}

static CURL *make_request(void)
{
    return made("request");
}

static void end_request(CURL *curl)
{
    assert_ptr_equal(curl, &thing);
    posed.n_alive--;
}

static struct curl_slist *append(struct curl_slist *list, const char *header)
{
    say("%s", header);
    return list ? list : made("headers");
}

static void end_list(struct curl_slist *list)
{
    posed.n_alive -= list != NULL;
}

static CURLM *make_many(void)
{
    return made("many");
}

static CURLMcode end_many(CURLM *many)
{
    assert_ptr_equal(many, &thing);
    posed.n_alive--;
    return CURLM_OK;
}

static CURLMcode add(CURLM *many, CURL *curl)
{
    assert_ptr_equal(many, curl);
    say("add");
    return CURLM_OK;
}

static CURLMcode take_out(CURLM *many, CURL *curl)
{
    assert_ptr_equal(many, curl);
    say("remove");
    return CURLM_OK;
}

static CURLMcode wait_for_some(CURLM *many, struct curl_waitfd *others, unsigned n, int ms, int *ready)
{
    assert_true(many && !others && n == 0 && !ready);
    say("wait %d", ms);
    return CURLM_OK;
}

static CURLMcode go_on(CURLM *many, int *n_running)
{
    assert_ptr_equal(many, &thing);
    say("go on");
    *n_running = 1;
    return CURLM_OK;
}

static CURLMsg *next_end(CURLM *many, int *n_left)
{
    assert_ptr_equal(many, &thing);
    *n_left = 0;
    return NULL;
}

static CURLcode set_option(CURL *curl, CURLoption option, ...)
{
    va_list arguments;
    assert_ptr_equal(curl, &thing);
    va_start(arguments, option);
    if (option < CURLOPTTYPE_OBJECTPOINT) {
        say("%d=%ld", (int)option, va_arg(arguments, long));
    } else if (option == CURLOPT_URL || option == CURLOPT_POSTFIELDS ||
               option == CURLOPT_PROTOCOLS_STR || option == CURLOPT_USERAGENT) {
        say("%s", va_arg(arguments, const char *));
    }
    va_end(arguments);
    return CURLE_OK;
}

/* In place of the program's. */
bool library_load(const char *file, const struct library_call *calls, size_t n)
{
    const struct {
        const char *name;
        void (*call)(void);
    } posed_calls[] = {{"curl_global_init", (void (*)(void))begin_library},
        {"curl_easy_init", (void (*)(void))make_request},
        {"curl_easy_cleanup", (void (*)(void))end_request},
        {"curl_slist_append", (void (*)(void))append},
        {"curl_slist_free_all", (void (*)(void))end_list},
        {"curl_multi_init", (void (*)(void))make_many},
        {"curl_multi_cleanup", (void (*)(void))end_many},
        {"curl_multi_add_handle", (void (*)(void))add},
        {"curl_multi_remove_handle", (void (*)(void))take_out},
        {"curl_multi_poll", (void (*)(void))wait_for_some},
        {"curl_multi_perform", (void (*)(void))go_on},
        {"curl_multi_info_read", (void (*)(void))next_end},
        {"curl_easy_setopt", (void (*)(void))set_option}};
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < sizeof posed_calls / sizeof *posed_calls; k++) {
            if (strcmp(calls[i].name, posed_calls[k].name) == 0) {
                memcpy(calls[i].place, &posed_calls[k].call, sizeof posed_calls[k].call);
            }
        }
    }
    return posed.file && strcmp(file, posed.file) == 0;
}

/* ---- Requests ---- */

static const char line[] = "{\"id\":\"a\",\"model\":\"m\",\"voice_hash\":\"v\",\"called_hash\":\"\","
                           "\"format\":\"raw\",\"text\":\"b\"}";
static struct speaker *speaker;
static struct slot slot;
static utter_error why;

static int begin(void **state)
{
    (void)state;
    memset(&posed, 0, sizeof posed);
    memset(&why, 0, sizeof why);
    memset(&slot, 0, sizeof slot);
    posed.file = "libcurl.so.4";
    return line_take(&slot.line, line, sizeof line - 1, NULL);
}

static int end(void **state)
{
    (void)state;
    line_free(&slot.line);
    speaker_close(&speaker);
    return posed.n_alive; /* nothing of the library's is left */
}

static utter_status open_speaker(const char *key)
{
    static struct speaker_server_settings settings;
    settings = (struct speaker_server_settings){.url = "https://host", .key = key, .lanes = 5};
    return speaker_server_open(&speaker, &settings, &why);
}

static void assert_said(const char *wanted)
{
    assert_string_equal(posed.said, wanted);
    posed.said[0] = 0;
}

static const char body[] =
    "{\"input\":\"b\",\"seed\":0,\"word_timestamps\":false,\"background\":true,"
    "\"model_hash\":\"m\",\"voice_hash\":\"v\",\"response_format\":\"pcm\",\"sample_format\":"
    "\"f32\","
    "\"stream_format\":\"sse\"}";

static void a_request_waits_as_long_as_a_line_may_take(void **state)
{
    (void)state;
    char wanted[512];
    assert_int_equal(open_speaker("secret"), UTTER_OK);
    assert_said("Content-Type: application/json; Expect:; Authorization: Bearer secret; ");
    assert_int_equal(speaker->calls->begin(speaker, &slot, 1, &why), UTTER_OK);
    snprintf(wanted, sizeof wanted,
        "https://host/v1/audio/speech; %d=1; http,https; %d=20; %d=1; %d=20; %d=20; %d=1; %d=600; "
        "utter; %s; %d=%zu; add; ",
        CURLOPT_NOSIGNAL, CURLOPT_CONNECTTIMEOUT, CURLOPT_TCP_KEEPALIVE, CURLOPT_TCP_KEEPIDLE,
        CURLOPT_TCP_KEEPINTVL, CURLOPT_LOW_SPEED_LIMIT, CURLOPT_LOW_SPEED_TIME, body,
        CURLOPT_POSTFIELDSIZE, sizeof body - 1);
    assert_said(wanted);
    assert_int_equal(speaker->calls->step(speaker, &why), UTTER_OK);
    assert_said("wait 100; go on; ");
    assert_int_equal(speaker->calls->take(speaker, &slot, &why), UTTER_OK);
    speaker->calls->drop(speaker, &slot);
    assert_said("remove; ");
    assert_int_equal(posed.n_alive, 2); /* what all requests share */
}

static void what_libcurl_lacks_is_told(void **state)
{
    (void)state;
    static const char *const lacks[] = {"many", "headers"};
    for (int i = 0; i < 2; i++) {
        posed.lacks = lacks[i];
        assert_int_equal(open_speaker(NULL), UTTER_E_MEMORY);
        assert_null(speaker);
        assert_int_equal(posed.n_alive, 0);
    }
    static const char none[] =
        "--server https://host: libcurl 7.66 or later is not here (apt-get install libcurl4)";
    posed.lacks = "begin";
    assert_int_equal(open_speaker(NULL), UTTER_E_DEVICE);
    assert_string_equal(why.text, none);
    posed.lacks = NULL;
    posed.file = NULL;
    assert_int_equal(open_speaker(NULL), UTTER_E_DEVICE);
    assert_string_equal(why.text, none);
    posed.file = "libcurl-gnutls.so.4"; /* the other that Debian has */
    assert_int_equal(open_speaker(NULL), UTTER_OK);
    posed.lacks = "request";
    assert_int_equal(speaker->calls->begin(speaker, &slot, 1, &why), UTTER_E_MEMORY);
    speaker->calls->drop(speaker, &slot);
    posed.lacks = NULL;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        posed.said[0] = 0;
        utter_status status = speaker->calls->begin(speaker, &slot, 1, &why);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_true(status || strstr(posed.said, body)); /* all of it */
        speaker->calls->drop(speaker, &slot);
        assert_null(slot.making);
        assert_int_equal(posed.n_alive, 2);
    }
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_request_waits_as_long_as_a_line_may_take),
        EACH(what_libcurl_lacks_is_told),
    };
    return cmocka_run_group_tests_name("speaker_request", tests, NULL, NULL);
}
