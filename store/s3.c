/* SPDX-License-Identifier: Apache-2.0
 * libcurl through base/library. A handle, with its connection, is kept for the next request. */
#include "store/s3.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/library.h"
#include "base/memory.h"

enum {
    PATIENCE_S = 30, /* of a server that sends nothing, or takes nothing */
    CONNECT_S = 20,
    MOST_IDLE = 16, /* handles */
    TOLD = 2048,    /* bytes of an error's answer that are looked at */
    MOST_TEXT = 16 << 20,
    MOST_URL = 8192,
};

struct curl_calls {
    __typeof__(&curl_global_init) global_init;
    __typeof__(&curl_easy_init) init;
    __typeof__(&curl_easy_reset) reset;
    __typeof__(&curl_easy_cleanup) cleanup;
    __typeof__(&curl_easy_perform) perform;
    __typeof__(&curl_easy_strerror) strerror;
    __typeof__(&curl_slist_append) list_append;
    __typeof__(&curl_slist_free_all) list_free;
    CURLcode (*setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*getinfo)(CURL *curl, CURLINFO info, ...);
};

struct s3_store {
    struct curl_calls curl;
    char bucket[1024]; /* its address, with a slash */
    char prefix[512];  /* with a slash, or "" */
    char signature[128], keys[512], token[4096];
    pthread_mutex_t lock; /* of the handles */
    CURL *idle[MOST_IDLE];
    int n_idle;
};

/* A request that runs. */
struct transfer {
    struct s3_store *store;
    struct s3_request *request;
    CURL *curl;
    bool (*stop)(void);
    FILE *in;
    struct file_out *out;
    utter_error *error;
    bool failed; /* our own file, or memory */
    size_t room; /* of the text */
    char told[TOLD];
    size_t n_told;
};

/* ---- The store ---- */

static bool load(struct curl_calls *c)
{
    const struct library_call calls[] = {{"curl_global_init", &c->global_init},
        {"curl_easy_init", &c->init}, {"curl_easy_reset", &c->reset},
        {"curl_easy_cleanup", &c->cleanup}, {"curl_easy_perform", &c->perform},
        {"curl_easy_strerror", &c->strerror}, {"curl_slist_append", &c->list_append},
        {"curl_slist_free_all", &c->list_free}, {"curl_easy_setopt", &c->setopt},
        {"curl_easy_getinfo", &c->getinfo}};
    enum { N_CALLS = sizeof calls / sizeof *calls };
    return library_load("libcurl.so.4", calls, N_CALLS) ||
           library_load("libcurl-gnutls.so.4", calls, N_CALLS);
}

static const char *variable(const char *name, const char *other, const char *usual)
{
    const char *value = getenv(name);
    value = value && value[0] ? value : other ? getenv(other) : NULL;
    return value && value[0] ? value : usual;
}

static bool is_plain(const char *text, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
    return strspn(text, letters) >= n && !memchr("", text[0], 1);
}

static utter_status read_address(
    struct s3_store *s, const char *url, const char *option, utter_error *error)
{
    const char *bucket = url + strlen("s3://"), *slash = strchr(bucket, '/');
    const char *prefix = slash ? slash + 1 : "",
               *region = variable("AWS_REGION", "AWS_DEFAULT_REGION", "us-east-1");
    const char *endpoint = variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL);
    const char *id = variable("AWS_ACCESS_KEY_ID", NULL, NULL);
    const char *secret = variable("AWS_SECRET_ACCESS_KEY", NULL, NULL);
    int n_bucket = slash ? (int)(slash - bucket) : (int)strlen(bucket);
    size_t n_prefix = strlen(prefix), n_endpoint = endpoint ? strlen(endpoint) : 0;
    n_prefix -= n_prefix > 0 && prefix[n_prefix - 1] == '/';
    n_endpoint -= n_endpoint > 0 && endpoint[n_endpoint - 1] == '/';
    if (n_bucket == 0 || !is_plain(bucket, (size_t)n_bucket) ||
        (n_prefix > 0 && !is_plain(prefix, n_prefix))) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s %s: is not s3://BUCKET/PREFIX, whose letters are plain ones, digits, - _ . and /",
            option, url);
    }
    if (!id || !secret) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s %s: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY say who asks, and are not set", option,
            url);
    }
    int n = endpoint ? snprintf(s->bucket, sizeof s->bucket, "%.*s/%.*s/", (int)n_endpoint, endpoint,
                           n_bucket, bucket)
                     : snprintf(s->bucket, sizeof s->bucket, "https://%.*s.s3.%s.amazonaws.com/",
                           n_bucket, bucket, region);
    int n_whole =
        snprintf(s->prefix, sizeof s->prefix, "%.*s%s", (int)n_prefix, prefix, n_prefix ? "/" : "");
    int n_keys = snprintf(s->keys, sizeof s->keys, "%s:%s", id, secret);
    int n_signature = snprintf(s->signature, sizeof s->signature, "aws:amz:%s:s3", region);
    const char *token = variable("AWS_SESSION_TOKEN", NULL, NULL);
    int n_token = token ? snprintf(s->token, sizeof s->token, "x-amz-security-token: %s", token) : 0;
    return n < (int)sizeof s->bucket && n_whole < (int)sizeof s->prefix &&
                   n_keys < (int)sizeof s->keys && n_signature < (int)sizeof s->signature &&
                   n_token < (int)sizeof s->token
               ? UTTER_OK
               : error_set(error, UTTER_E_ARGUMENT, "%s: the address or a key is too long", option);
}

utter_status s3_store_open(
    struct s3_store **store, const char *url, const char *option, utter_error *error)
{
    struct s3_store *s = memory_new(1, sizeof *s);
    if (!s) {
        return error_memory(error, "a store");
    }
    pthread_mutex_init(&s->lock, NULL);
    *store = s;
    utter_status status = read_address(s, url, option, error);
    if (status == UTTER_OK &&
        (!load(&s->curl) || s->curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)) {
        status = error_set(error, UTTER_E_DEVICE,
            "%s %s: libcurl is not here (apt-get install libcurl4, or name a folder)", option, url);
    }
    if (status) {
        s3_store_close(s);
        *store = NULL;
    }
    return status;
}

void s3_store_close(struct s3_store *s)
{
    for (int i = 0; s && i < s->n_idle; i++) {
        s->curl.cleanup(s->idle[i]);
    }
    if (s) {
        pthread_mutex_destroy(&s->lock);
    }
    memory_free(s);
}

static CURL *take_handle(struct s3_store *s)
{
    pthread_mutex_lock(&s->lock);
    CURL *curl = s->n_idle > 0 ? s->idle[--s->n_idle] : NULL;
    pthread_mutex_unlock(&s->lock);
    return curl ? curl : s->curl.init();
}

static void give_handle(struct s3_store *s, CURL *curl)
{
    s->curl.reset(curl); /* its connections stay */
    pthread_mutex_lock(&s->lock);
    bool kept = s->n_idle < MOST_IDLE;
    if (kept) {
        s->idle[s->n_idle++] = curl;
    }
    pthread_mutex_unlock(&s->lock);
    if (!kept) {
        s->curl.cleanup(curl);
    }
}

/* ---- A request ---- */

static long answer_code(const struct transfer *t)
{
    long code = 0;
    (t->store->curl.getinfo)(t->curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

/* A page of a list goes into memory, with a zero behind it. */
static bool take_text(struct transfer *t, const char *data, size_t n)
{
    struct s3_request *r = t->request;
    size_t wanted = r->text_bytes + n + 1;
    if (wanted > t->room) {
        size_t room = 2 * wanted;
        char *grown = wanted > MOST_TEXT ? NULL
                      : r->text          ? memory_resize(r->text, t->room, room, 1)
                                         : memory_new(room, 1);
        if (!grown) {
            error_memory(t->error, "a list of objects");
            return false;
        }
        r->text = grown;
        t->room = room;
    }
    memcpy(r->text + r->text_bytes, data, n);
    r->text_bytes += n;
    r->text[r->text_bytes] = 0;
    return true;
}

/* Bytes come: of the object, or of what the store says instead. */
static size_t take(char *data, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    n *= size;
    if (answer_code(t) / 100 != 2) {
        size_t room = sizeof t->told - 1 - t->n_told, kept = n < room ? n : room;
        memcpy(t->told + t->n_told, data, kept);
        t->n_told += kept;
        return n;
    }
    t->failed = t->request->method == S3_LIST
                    ? !take_text(t, data, n)
                    : t->out && file_out_write(t->out, data, n, t->error) != UTTER_OK;
    return t->failed ? 0 : n;
}

static size_t give(char *data, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    size_t given = fread(data, 1, size * n, t->in);
    t->failed = ferror(t->in) != 0;
    return t->failed ? CURL_READFUNC_ABORT : given;
}

static int watch(void *user, curl_off_t all, curl_off_t done, curl_off_t up_all, curl_off_t up_done)
{
    (void)all, (void)done, (void)up_all, (void)up_done;
    const struct transfer *t = user;
    return t->stop && t->stop() ? 1 : 0;
}

/* SHA-256 of nothing. */
static const char empty_hash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static struct curl_slist *list_headers(const struct transfer *t)
{
    char hash[128];
    const struct curl_calls *c = &t->store->curl;
    snprintf(hash, sizeof hash, "x-amz-content-sha256: %s",
        t->request->hash ? t->request->hash : empty_hash);
    struct curl_slist *list = c->list_append(NULL, hash);
    if (t->request->method == S3_PUT) {
        c->list_append(list, "Content-Type: application/octet-stream");
    }
    if (t->store->token[0]) {
        c->list_append(list, t->store->token);
    }
    return list;
}

/* Workers that are started meanwhile do not get it. */
static curl_socket_t open_socket(void *user, curlsocktype what, struct curl_sockaddr *to)
{
    (void)user, (void)what;
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* False: this libcurl cannot sign. */
static bool set_options(struct transfer *t, const char *url, struct curl_slist *headers)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = t->store->curl.setopt;
    CURL *curl = t->curl;
    (set)(curl, CURLOPT_URL, url);
    (set)(curl, CURLOPT_PATH_AS_IS, 1L); /* two dots are letters of a key */
    (set)(curl, CURLOPT_NOSIGNAL, 1L);
    (set)(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    (set)(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    (set)(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    (set)(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (set)(curl, CURLOPT_LOW_SPEED_TIME, (long)PATIENCE_S);
    (set)(curl, CURLOPT_USERAGENT, "utter");
    (set)(curl, CURLOPT_HTTPHEADER, headers);
    (set)(curl, CURLOPT_WRITEFUNCTION, take);
    (set)(curl, CURLOPT_WRITEDATA, t);
    (set)(curl, CURLOPT_NOPROGRESS, 0L);
    (set)(curl, CURLOPT_XFERINFOFUNCTION, watch);
    (set)(curl, CURLOPT_XFERINFODATA, t);
    (set)(curl, CURLOPT_USERPWD, t->store->keys);
    switch (t->request->method) {
    case S3_PUT:
        (set)(curl, CURLOPT_UPLOAD, 1L);
        (set)(curl, CURLOPT_READFUNCTION, give);
        (set)(curl, CURLOPT_READDATA, t);
        (set)(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)t->request->bytes);
        break;
    case S3_HEAD:
        (set)(curl, CURLOPT_NOBODY, 1L);
        break;
    case S3_DELETE:
        (set)(curl, CURLOPT_CUSTOMREQUEST, "DELETE");
        break;
    case S3_GET:
    case S3_LIST:
        break;
    }
    return (set)(curl, CURLOPT_AWS_SIGV4, t->store->signature) == CURLE_OK;
}

/* What stands between <Code> and </Code> of an answer, or the answer's number. */
static const char *reason_of(const struct transfer *t, long code, char *out, size_t size)
{
    const char *begin = strstr(t->told, "<Code>"), *end = begin ? strstr(begin, "</Code>") : NULL;
    if (end) {
        snprintf(out, size, "%ld, %.*s", code, (int)(end - begin - 6 < 100 ? end - begin - 6 : 100),
            begin + 6);
    } else {
        snprintf(out, size, "%ld", code);
    }
    return out;
}

static enum s3_answer judge(struct transfer *t, CURLcode code, const char *url)
{
    char reason[128];
    long answer = answer_code(t);
    if (code == CURLE_ABORTED_BY_CALLBACK && !t->failed) {
        return S3_STOPPED;
    }
    if (t->failed) {
        return S3_REFUSED; /* our own file, which has been told */
    }
    if (code != CURLE_OK && (answer < 300 || answer >= 600)) {
        bool never = code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
                     code == CURLE_PEER_FAILED_VERIFICATION;
        error_set(t->error, UTTER_E_IO, "%s: %s%s", url, t->store->curl.strerror(code),
            never ? " (check AWS_ENDPOINT_URL)" : "");
        return never ? S3_REFUSED : S3_LATER;
    }
    reason_of(t, answer, reason, sizeof reason);
    if (answer / 100 == 2) {
        return S3_DONE;
    }
    if (answer == 404 && t->request->method != S3_PUT && !strstr(t->told, "NoSuchBucket")) {
        return S3_MISSING;
    }
    if (answer == 401 || answer == 403) {
        error_set(t->error, UTTER_E_IO,
            "%s: the store refuses (%s): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, "
            "and what they may do (s3:ListBucket too: without it a store refuses what is not there)",
            url, reason);
        return S3_REFUSED;
    }
    bool later =
        answer >= 500 || answer == 429 || answer == 408 || strstr(t->told, "RequestTimeout") != NULL;
    error_set(t->error, UTTER_E_IO, "%s: the store answers %s%s", url, reason,
        later           ? ", again and again (later it may be better)"
        : answer == 404 ? " (make the bucket first, or check AWS_ENDPOINT_URL)"
        : answer == 301 ? " (the bucket is elsewhere: check AWS_REGION)"
                        : "");
    return later ? S3_LATER : S3_REFUSED;
}

static bool open_files(struct transfer *t)
{
    const char *path = t->request->path;
    if (t->request->method == S3_PUT && !(t->in = fopen(path, "re"))) {
        file_error(t->error, path, "read", errno);
        return false;
    }
    return t->request->method != S3_GET || file_out_open(&t->out, path, t->error) == UTTER_OK;
}

static enum s3_answer close_files(struct transfer *t, enum s3_answer answer)
{
    if (t->in) {
        fclose(t->in);
    }
    if (t->out && answer == S3_DONE) {
        return file_out_close(&t->out, t->error) == UTTER_OK ? S3_DONE : S3_REFUSED;
    }
    file_out_abort(&t->out);
    return answer;
}

static void escape(char *out, size_t size, const char *text)
{
    size_t n = strlen(out);
    for (; *text && n + 4 < size; text++) {
        bool plain = is_plain((const char[]){*text, 0}, 1) && *text != '/';
        n += (size_t)snprintf(out + n, size - n, plain ? "%c" : "%%%02X", (unsigned char)*text);
    }
}

/* What is asked of a list stands in the order of the alphabet, as it is signed. */
static void write_url(char *url, size_t size, const struct s3_store *s, const struct s3_request *r)
{
    if (r->method != S3_LIST) {
        snprintf(url, size, "%s%s%s", s->bucket, s->prefix, r->name);
        return;
    }
    bool begins = r->token[0] == 0;
    snprintf(url, size, "%s%s", s->bucket, begins ? "?" : "?continuation-token=");
    escape(url, size, r->token);
    snprintf(url + strlen(url), size - strlen(url), "%s%slist-type=2&prefix=", begins ? "" : "&",
        r->flat ? "delimiter=%2F&" : "");
    escape(url, size, s->prefix);
    escape(url, size, r->name);
}

const char *s3_prefix(const struct s3_store *store)
{
    return store->prefix;
}

enum s3_answer s3_ask(
    struct s3_store *s, struct s3_request *request, bool (*stop)(void), utter_error *error)
{
    char url[MOST_URL];
    utter_error own = {0};
    struct transfer t = {.store = s, .request = request, .stop = stop, .error = error ? error : &own};
    write_url(url, sizeof url, s, request);
    request->text_bytes = 0;
    if (!open_files(&t)) {
        return S3_REFUSED;
    }
    t.curl = take_handle(s);
    struct curl_slist *headers = t.curl ? list_headers(&t) : NULL;
    enum s3_answer answer = S3_REFUSED;
    if (!headers) {
        error_memory(t.error, "a request");
    } else if (!set_options(&t, url, headers)) {
        error_set(t.error, UTTER_E_DEVICE,
            "%s: this libcurl cannot sign for S3, which 7.75 and later can (name a folder)", url);
    } else {
        answer = judge(&t, s->curl.perform(t.curl), url);
        curl_off_t bytes = 0;
        (s->curl.getinfo)(t.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &bytes);
        if (request->method == S3_HEAD && answer == S3_DONE) {
            request->bytes = bytes > 0 ? (uint64_t)bytes : 0;
        }
    }
    if (t.curl) {
        give_handle(s, t.curl);
    }
    s->curl.list_free(headers);
    if (answer != S3_DONE) {
        memory_free(request->text);
        request->text = NULL;
    }
    return close_files(&t, answer);
}
