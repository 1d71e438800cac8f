/* SPDX-License-Identifier: Apache-2.0
 * What libcurl is asked for, by a posed one: every option of a transfer, what becomes of its own failures, and of a
 * machine that has no libcurl, an older one or only a part of it. */
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/model/transfer.h"
#include "tests/support.h"

/* ---- The library ---- */

static struct {
    const char *installed; /* what it is called; NULL: it is not here */
    const char *lacking;   /* the call that it has not */
    bool begins;           /* a handle is to be had */
    char options[1024];    /* numbers and texts as they were set, one behind the other */
    void *data, *progress_data;
    curl_write_callback take;
    curl_xferinfo_callback watch;
    CURLcode code; /* of a transfer */
    long answer;
    const char *sends;
    int n_handles;
} posed;

static CURL *posed_init(void)
{
    posed.n_handles += posed.begins;
    return posed.begins ? (CURL *)&posed : NULL;
}

static void posed_cleanup(CURL *curl)
{
    assert_ptr_equal(curl, &posed);
    posed.n_handles--;
}

static const char *posed_strerror(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION ? "a bad certificate" : "some fault";
}

static CURLcode posed_setopt(CURL *curl, CURLoption option, ...)
{
    char *at = posed.options + strlen(posed.options);
    const size_t left = sizeof posed.options - strlen(posed.options);
    assert_ptr_equal(curl, &posed);
    va_list value;
    va_start(value, option);
    if (option == CURLOPT_WRITEFUNCTION) {
        posed.take = va_arg(value, curl_write_callback);
    } else if (option == CURLOPT_XFERINFOFUNCTION) {
        posed.watch = va_arg(value, curl_xferinfo_callback);
    } else if (option == CURLOPT_WRITEDATA) {
        posed.data = va_arg(value, void *);
    } else if (option == CURLOPT_XFERINFODATA) {
        posed.progress_data = va_arg(value, void *);
    } else if (option < CURLOPTTYPE_OBJECTPOINT) {
        snprintf(at, left, "%d=%ld ", (int)option, va_arg(value, long));
    } else {
        const char *text = va_arg(value, const char *);
        snprintf(at, left, "%d=%s ", (int)option, text ? text : "none");
    }
    va_end(value);
    return CURLE_OK;
}

static CURLcode posed_getinfo(CURL *curl, CURLINFO info, ...)
{
    assert_ptr_equal(curl, &posed);
    assert_int_equal(info, CURLINFO_RESPONSE_CODE);
    va_list value;
    va_start(value, info);
    *va_arg(value, long *) = posed.answer;
    va_end(value);
    return CURLE_OK;
}

static CURLcode posed_perform(CURL *curl)
{
    assert_ptr_equal(curl, &posed);
    if (posed.watch(posed.progress_data, 0, 0, 0, 0) != 0) {
        return CURLE_ABORTED_BY_CALLBACK;
    }
    if (posed.sends) {
        char text[64];
        snprintf(text, sizeof text, "%s", posed.sends);
        size_t n = strlen(text) / 2;
        if (posed.take(text, 2, n, posed.data) != 2 * n) {
            return CURLE_WRITE_ERROR;
        }
    }
    return posed.code;
}

void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *library, const char *name);

void *__wrap_dlopen(const char *name, int flags)
{
    assert_int_equal(flags, RTLD_NOW | RTLD_LOCAL);
    return posed.installed && strcmp(name, posed.installed) == 0 ? &posed : NULL;
}

void *__wrap_dlsym(void *library, const char *name)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {{"curl_easy_init", (void (*)(void))posed_init},
        {"curl_easy_cleanup", (void (*)(void))posed_cleanup},
        {"curl_easy_perform", (void (*)(void))posed_perform},
        {"curl_easy_strerror", (void (*)(void))posed_strerror},
        {"curl_easy_setopt", (void (*)(void))posed_setopt},
        {"curl_easy_getinfo", (void (*)(void))posed_getinfo}};
    assert_ptr_equal(library, &posed);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(calls[i].name, name) == 0 && !(posed.lacking && strcmp(posed.lacking, name) == 0)) {
            void *found;
            memcpy(&found, &calls[i].call, sizeof found);
            return found;
        }
    }
    return NULL;
}

/* ---- Who asks ---- */

static struct transfer *transfer;
static utter_error why;
static bool is_alive;
static char got[64];

static bool alive(void *user)
{
    assert_ptr_equal(user, got);
    return is_alive;
}

static utter_status sink(void *user, const void *data, size_t bytes, utter_error *error)
{
    assert_ptr_equal(user, &why);
    assert_ptr_equal(error, &why);
    snprintf(got, sizeof got, "%.*s", (int)bytes, (const char *)data);
    return UTTER_OK;
}

static utter_status open_transfer(const char *token)
{
    memset(&why, 0, sizeof why);
    posed.options[0] = 0;
    return transfer_open(&transfer, token, alive, got, &why);
}

static utter_status get(uint64_t *from)
{
    got[0] = 0;
    return transfer_get(transfer, "http://here/file", from, sink, &why, &why);
}

static int pose(void **state)
{
    (void)state;
    memset(&posed, 0, sizeof posed);
    posed.installed = "libcurl.so.4";
    posed.begins = true;
    posed.answer = 200;
    is_alive = true;
    return 0;
}

/* ---- What is asked ---- */

static void every_option_is_set(void **state)
{
    (void)state;
    char wanted[1024];
    snprintf(wanted, sizeof wanted,
        "%d=1 %d=1 %d=10 %d=http,https %d=http,https %d=20 %d=1 %d=30 %d=utter %d=0 ", CURLOPT_NOSIGNAL,
        CURLOPT_FOLLOWLOCATION, CURLOPT_MAXREDIRS, CURLOPT_PROTOCOLS_STR, CURLOPT_REDIR_PROTOCOLS_STR,
        CURLOPT_CONNECTTIMEOUT, CURLOPT_LOW_SPEED_LIMIT, CURLOPT_LOW_SPEED_TIME, CURLOPT_USERAGENT,
        CURLOPT_NOPROGRESS);
    for (int known = 0; known < 2; known++) {
        assert_int_equal(open_transfer(known ? "secret" : NULL), UTTER_OK);
        assert_int_equal(strncmp(posed.options, wanted, strlen(wanted)), 0);
        char token[64] = "";
        if (known) {
            snprintf(token, sizeof token, "%d=%ld %d=secret ", CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER,
                CURLOPT_XOAUTH2_BEARER);
        }
        assert_string_equal(posed.options + strlen(wanted), token);
        assert_int_equal(posed.n_handles, 1);
        transfer_close(&transfer);
        assert_int_equal(posed.n_handles, 0);
        assert_null(transfer);
    }
    assert_int_equal(open_transfer(NULL), UTTER_OK);
    static const uint64_t begins[] = {5000000000, 1, 0};
    static const char *const ranges[] = {"5000000000-", "1-", "none"};
    for (int i = 0; i < 3; i++) {
        uint64_t from = begins[i];
        posed.options[0] = 0;
        posed.sends = "abcdef";
        posed.answer = 206;
        assert_int_equal(get(&from), UTTER_OK);
        snprintf(
            wanted, sizeof wanted, "%d=http://here/file %d=%s ", CURLOPT_URL, CURLOPT_RANGE, ranges[i]);
        assert_string_equal(posed.options, wanted);
        assert_string_equal(got, "abcdef"); /* two bytes, three times */
        assert_true(from == begins[i]);
    }
    transfer_close(&transfer);
}

/* ---- What fails ---- */

static void a_fault_may_pass_or_not(void **state)
{
    (void)state;
    static const struct {
        CURLcode code;
        long answer;
        utter_status status;
        const char *why;
    } rows[] = {
        {CURLE_COULDNT_CONNECT, 0, UTTER_AGAIN, "some fault"},
        {CURLE_OPERATION_TIMEDOUT, 200, UTTER_AGAIN, "some fault"},
        {CURLE_PARTIAL_FILE, 299, UTTER_AGAIN, "some fault"},
        {CURLE_PARTIAL_FILE, 300, UTTER_E_FILE, "the server answers 300"},
        {CURLE_PARTIAL_FILE, 404, UTTER_E_FILE, "there is no such thing (404; check the name)"},
        {CURLE_UNSUPPORTED_PROTOCOL, 302, UTTER_E_FILE, "some fault"},
        {CURLE_URL_MALFORMAT, 0, UTTER_E_FILE, "some fault"},
        {CURLE_PEER_FAILED_VERIFICATION, 0, UTTER_E_FILE, "a bad certificate"},
        {CURLE_TOO_MANY_REDIRECTS, 302, UTTER_E_FILE, "some fault"},
        {CURLE_OK, 199, UTTER_E_FILE, "the server answers 199"},
        {CURLE_OK, 0, UTTER_E_FILE, "the server answers 0"},
        {CURLE_OK, 500, UTTER_AGAIN, "the server answers 500 (later it may be better)"},
    };
    assert_int_equal(open_transfer(NULL), UTTER_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char wanted[256];
        uint64_t from = 0;
        posed.code = rows[i].code;
        posed.answer = rows[i].answer;
        assert_int_equal(get(&from), rows[i].status);
        snprintf(wanted, sizeof wanted, "http://here/file: %s", rows[i].why);
        assert_string_equal(why.text, wanted);
    }
    uint64_t from = 0;
    is_alive = false;
    assert_int_equal(get(&from), UTTER_E_CANCELLED);
    assert_string_equal(why.text, "interrupted");
    transfer_close(&transfer);
}

static void libcurl_may_be_elsewhere_or_not_here(void **state)
{
    (void)state;
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    static const char *const calls[] = {"curl_easy_init", "curl_easy_cleanup", "curl_easy_perform",
        "curl_easy_strerror", "curl_easy_setopt", "curl_easy_getinfo"};
    for (int i = 0; i < 2; i++) {
        posed.installed = names[i];
        assert_int_equal(open_transfer(NULL), UTTER_OK);
        transfer_close(&transfer);
    }
    for (size_t i = 0; i < 2 + sizeof calls / sizeof *calls; i++) {
        pose(NULL);
        posed.installed = i == 0 ? NULL : names[0];
        posed.begins = i != 1;
        posed.lacking = i > 1 ? calls[i - 2] : NULL;
        assert_int_equal(open_transfer(NULL), UTTER_E_DEVICE);
        assert_string_equal(why.text,
            "libcurl is not here (apt-get install libcurl4, or download the files by other means)");
        assert_null(transfer);
    }
    support_fail_malloc_at(1);
    assert_int_equal(open_transfer(NULL), UTTER_E_MEMORY);
    support_fail_off();
    assert_null(transfer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_option_is_set, pose),
        cmocka_unit_test_setup(a_fault_may_pass_or_not, pose),
        cmocka_unit_test_setup(libcurl_may_be_elsewhere_or_not_here, pose),
    };
    return cmocka_run_group_tests_name("transfer_asked", tests, NULL, NULL);
}
