/* SPDX-License-Identifier: Apache-2.0
 * Requests with patience, and lists of many pages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "store/s3.h"

enum { USUAL_TRIES = 8, TOKEN = 2048, NAME = 1200 };

/* A tenth of a second, twice that, ...; false: the work has been stopped. */
static bool rest(bool (*stop)(void), int try)
{
    for (int i = 0; i < 1 << (min(try, USUAL_TRIES) - 1); i++) {
        if (stop && stop()) {
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return true;
}

utter_status s3_do(struct s3_store *store, struct s3_request *request,
    const struct s3_patience *patience, utter_error *error)
{
    const int tries = patience->tries ? patience->tries : USUAL_TRIES;
    for (int try = 1;; try++) {
        enum s3_answer answer = s3_ask(store, request, patience->stop, error);
        if (answer == S3_DONE) {
            return UTTER_OK;
        }
        if (answer == S3_MISSING) {
            return UTTER_AGAIN;
        }
        request->is_refused = answer == S3_REFUSED;
        if (answer == S3_REFUSED || (answer == S3_LATER && try == tries && !patience->away)) {
            return UTTER_E_IO;
        }
        if (answer == S3_LATER && try == tries) {
            patience->away(patience->user, error);
        }
        if (answer == S3_STOPPED || !rest(patience->stop, try)) {
            return error_set(error, UTTER_E_CANCELLED, "interrupted");
        }
    }
}

/* ---- Lists ---- */

/* What stands between <TAG> and </TAG> in [text, end); NULL: nothing. */
static const char *find_field(const char *text, const char *end, const char *tag, size_t *bytes)
{
    char open[64], close[64];
    snprintf(open, sizeof open, "<%s>", tag);
    snprintf(close, sizeof close, "</%s>", tag);
    const char *begin = strstr(text, open), *stop = begin ? strstr(begin, close) : NULL;
    if (!stop || stop >= end) {
        return NULL;
    }
    begin += strlen(open);
    *bytes = (size_t)(stop - begin);
    return begin;
}

/* A field with its entities as they are written in XML; false: there is none, or it is too long. */
static bool read_field(char *out, size_t size, const char *text, const char *end, const char *tag)
{
    static const char *const entities[][2] = {
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}};
    enum { N_ENTITIES = sizeof entities / sizeof *entities };
    size_t bytes, n = 0;
    const char *field = find_field(text, end, tag, &bytes);
    for (size_t i = 0; field && i < bytes && n + 1 < size; n++) {
        int k = 0;
        while (k < N_ENTITIES && strncmp(field + i, entities[k][0], strlen(entities[k][0])) != 0) {
            k++;
        }
        out[n] = k < N_ENTITIES ? entities[k][1][0] : field[i];
        i += k < N_ENTITIES ? strlen(entities[k][0]) : 1;
    }
    out[n] = 0;
    return field && n + 1 < size;
}

/* Tells the objects of a page; names that are not below the prefix, or too long for ours, are others'. */
static utter_status tell_page(
    const struct s3_store *store, const char *text, s3_name_fn *fn, void *user, utter_error *error)
{
    static const char begins[] = "<Contents>", ends[] = "</Contents>";
    const char *prefix = s3_prefix(store), *end;
    utter_status status = UTTER_OK;
    for (const char *at = strstr(text, begins); at && status == UTTER_OK; at = strstr(end, begins)) {
        char name[NAME], size[32], etag[256];
        if (!(end = strstr(at, ends))) {
            return error_set(error, UTTER_E_IO, "the store sends a list that is cut");
        }
        if (read_field(name, sizeof name, at, end, "Key") &&
            read_field(size, sizeof size, at, end, "Size") &&
            strncmp(name, prefix, strlen(prefix)) == 0) {
            bool has_etag = read_field(etag, sizeof etag, at, end, "ETag");
            status =
                fn(user, name + strlen(prefix), strtoull(size, NULL, 10), has_etag ? etag : "", error);
        }
    }
    return status;
}

/* *token: from where on the next page is, "" behind the last. */
static utter_status read_page(const struct s3_store *store, const char *text, char token[TOKEN],
    s3_name_fn *fn, void *user, utter_error *error)
{
    char more[16];
    const char *end = text ? strstr(text, "</ListBucketResult>") : NULL;
    if (!end || !read_field(more, sizeof more, text, end, "IsTruncated")) {
        return error_set(error, UTTER_E_IO,
            "the store answers no list (does it speak ListObjectsV2? check AWS_ENDPOINT_URL)");
    }
    utter_status status = tell_page(store, text, fn, user, error);
    bool is_last = strcmp(more, "true") != 0;
    if (status || is_last) {
        token[0] = 0;
        return status;
    }
    char next[TOKEN];
    if (!read_field(next, sizeof next, text, end, "NextContinuationToken") || !next[0] ||
        strcmp(next, token) == 0) {
        return error_set(error, UTTER_E_IO, "the store sends a part of a list, and not how it goes on");
    }
    memcpy(token, next, TOKEN);
    return UTTER_OK;
}

utter_status s3_list(struct s3_store *store, const char *below, bool flat, uint64_t most_pages,
    const struct s3_patience *patience, s3_name_fn *fn, void *user, utter_error *error)
{
    char token[TOKEN] = "";
    utter_status status = UTTER_OK;
    for (uint64_t n = 0; status == UTTER_OK && (n == 0 || token[0]); n++) {
        struct s3_request request = {.method = S3_LIST, .name = below, .token = token, .flat = flat};
        if (n == most_pages) {
            return UTTER_END;
        }
        status = s3_do(store, &request, patience, error);
        if (status == UTTER_AGAIN) {
            status = error_set(
                error, UTTER_E_IO, "the store has no list of objects (check AWS_ENDPOINT_URL)");
        }
        status = status ? status : read_page(store, request.text, token, fn, user, error);
        memory_free(request.text);
    }
    return status;
}
