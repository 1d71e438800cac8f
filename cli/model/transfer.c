/* SPDX-License-Identifier: Apache-2.0
 * libcurl through dlopen. */
#include "cli/model/transfer.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A server that sends less than a byte a second for so long is given up. */
enum { PATIENCE_S = 30, CONNECT_S = 20 };

struct transfer {
    void *library;
    CURL *curl;
    __typeof__(&curl_easy_init) init;
    __typeof__(&curl_easy_cleanup) cleanup;
    __typeof__(&curl_easy_perform) perform;
    __typeof__(&curl_easy_strerror) strerror;
    CURLcode (*setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*getinfo)(CURL *curl, CURLINFO info, ...);
    transfer_alive *alive;
    void *alive_user;
    /* Of the transfer that runs. */
    uint64_t *from;
    transfer_sink *sink;
    void *user;
    utter_error *error;
    utter_status status; /* of the sink */
};

static bool load(struct transfer *t)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !t->library; i++) {
        t->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    const struct {
        const char *name;
        void *place;
    } calls[] = {{"curl_easy_init", &t->init}, {"curl_easy_cleanup", &t->cleanup},
        {"curl_easy_perform", &t->perform}, {"curl_easy_strerror", &t->strerror},
        {"curl_easy_setopt", &t->setopt}, {"curl_easy_getinfo", &t->getinfo}};
    for (size_t i = 0; t->library && i < sizeof calls / sizeof *calls; i++) {
        void *call = dlsym(t->library, calls[i].name);
        if (!call) {
            return false;
        }
        memcpy(calls[i].place, &call, sizeof call);
    }
    return t->library != NULL;
}

static long answer_code(struct transfer *t)
{
    long code = 0;
    (t->getinfo)(t->curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

static size_t take(char *data, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    long code = answer_code(t);
    if (code >= 300) {
        return n; /* the page that a refusal comes with */
    }
    if (code == 200) {
        *t->from = 0;
    }
    t->status = t->sink(t->user, data, size * n, t->error);
    return t->status == UTTER_OK ? size * n : 0;
}

static int watch(void *user, curl_off_t all, curl_off_t done, curl_off_t up_all, curl_off_t up_done)
{
    (void)all, (void)done, (void)up_all, (void)up_done;
    const struct transfer *t = user;
    return t->alive(t->alive_user) ? 0 : 1;
}

utter_status transfer_open(struct transfer **transfer, const char *token, transfer_alive *alive,
    void *user, utter_error *error)
{
    struct transfer *t = calloc(1, sizeof *t);
    *transfer = t;
    if (!t) {
        return error_memory(error, "transfer");
    }
    t->alive = alive;
    t->alive_user = user;
    if (!load(t) || !(t->curl = t->init())) {
        transfer_close(transfer);
        return error_set(error, UTTER_E_DEVICE,
            "libcurl is not here (apt-get install libcurl4, or download the files by other means)");
    }
    (t->setopt)(t->curl, CURLOPT_NOSIGNAL, 1L);
    (t->setopt)(t->curl, CURLOPT_FOLLOWLOCATION, 1L);
    (t->setopt)(t->curl, CURLOPT_MAXREDIRS, 10L);
    (t->setopt)(t->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    (t->setopt)(t->curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    (t->setopt)(t->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    (t->setopt)(t->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (t->setopt)(t->curl, CURLOPT_LOW_SPEED_TIME, (long)PATIENCE_S);
    (t->setopt)(t->curl, CURLOPT_USERAGENT, "utter");
    (t->setopt)(t->curl, CURLOPT_WRITEFUNCTION, take);
    (t->setopt)(t->curl, CURLOPT_WRITEDATA, t);
    (t->setopt)(t->curl, CURLOPT_NOPROGRESS, 0L);
    (t->setopt)(t->curl, CURLOPT_XFERINFOFUNCTION, watch);
    (t->setopt)(t->curl, CURLOPT_XFERINFODATA, t);
    if (token) {
        (t->setopt)(t->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        (t->setopt)(t->curl, CURLOPT_XOAUTH2_BEARER, token);
    }
    return UTTER_OK;
}

void transfer_close(struct transfer **transfer)
{
    struct transfer *t = *transfer;
    if (t && t->curl) {
        t->cleanup(t->curl);
    }
    /* The library stays loaded: what it brought may have threads of its own. */
    free(t);
    *transfer = NULL;
}

/* What the server's answer means. */
static utter_status judge(long code, const char *url, utter_error *error)
{
    if (code >= 200 && code < 300) {
        return UTTER_OK;
    }
    if (code == 401 || code == 403) {
        return error_set(error, UTTER_E_FILE,
            "%s: the server wants to know who asks (%ld): put a token into HF_TOKEN, of somebody who "
            "has accepted the model's terms",
            url, code);
    }
    if (code == 404) {
        return error_set(error, UTTER_E_FILE, "%s: there is no such thing (404; check the name)", url);
    }
    bool later = code >= 500 || code == 429 || code == 408;
    return error_set(error, later ? UTTER_AGAIN : UTTER_E_FILE, "%s: the server answers %ld%s", url,
        code, later ? " (later it may be better)" : "");
}

utter_status transfer_get(struct transfer *t, const char *url, uint64_t *from, transfer_sink *sink,
    void *user, utter_error *error)
{
    char range[32];
    snprintf(range, sizeof range, "%llu-", (unsigned long long)*from);
    t->from = from;
    t->sink = sink;
    t->user = user;
    t->error = error;
    t->status = UTTER_OK;
    (t->setopt)(t->curl, CURLOPT_URL, url);
    (t->setopt)(t->curl, CURLOPT_RANGE, *from > 0 ? range : NULL);
    CURLcode code = t->perform(t->curl);
    if (t->status) {
        return t->status;
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
        return error_set(error, UTTER_E_CANCELLED, "interrupted");
    }
    bool never = code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
                 code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_TOO_MANY_REDIRECTS;
    long answer = answer_code(t);
    /* A redirect that is not followed has an answer too, which says less than why. */
    if (code == CURLE_OK || (answer >= 300 && !never)) {
        return judge(answer, url, error);
    }
    return error_set(error, never ? UTTER_E_FILE : UTTER_AGAIN, "%s: %s", url, t->strerror(code));
}
