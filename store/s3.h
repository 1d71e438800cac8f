/* SPDX-License-Identifier: Apache-2.0
 * One request to a store that speaks S3, signed (version 4) by libcurl, which is loaded when it is asked for. */
#ifndef STORE_S3_H
#define STORE_S3_H

#include "base/error.h"

struct s3_store;

/* s3://BUCKET[/PREFIX], and what the variables that other clients take say of it: AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL. `option` named it, for what is told. */
utter_status s3_store_open(
    struct s3_store **store, const char *url, const char *option, utter_error *error);
void s3_store_close(struct s3_store *store); /* accepts NULL */

enum s3_method { S3_GET, S3_HEAD, S3_PUT, S3_DELETE, S3_LIST };

struct s3_request {
    enum s3_method method;
    const char *name; /* of the object, behind the prefix: plain letters and / */
    const char *path; /* of the file that is sent, or that takes the object, whole */
    uint64_t bytes;   /* of the file that is sent; of the object, by S3_HEAD */
    bool is_refused;  /* by s3_do: it would be refused again */
    const char *hash; /* SHA-256 of what is sent, which the store compares */
    /* Of S3_LIST, whose `name` is what names begin with: from where on ("" at first), and the page, to be freed with
     * memory_free. */
    const char *token;
    bool flat; /* without what lies in folders further down */
    char *text;
    size_t text_bytes;
};

enum s3_answer {
    S3_DONE,
    S3_MISSING,
    S3_REFUSED, /* it would be refused again; *error says why */
    S3_LATER,   /* the store is busy, or away, or the answer was cut; *error says what happened */
    S3_STOPPED, /* `stop` was true */
};

/* May be called from several threads. */
enum s3_answer s3_ask(
    struct s3_store *store, struct s3_request *request, bool (*stop)(void), utter_error *error);

/* For how long what may be better later is asked for again: with pauses that grow. */
struct s3_patience {
    int tries;          /* 0: the usual */
    bool (*stop)(void); /* NULL, or true ends it */
    /* NULL: a store that stays away is a failure. Else this is told, and the store waited for. */
    void (*away)(void *user, const utter_error *error);
    void *user;
};

/* Until there is an answer that will stay. UTTER_AGAIN: there is no such object; UTTER_E_CANCELLED: stopped. */
utter_status s3_do(struct s3_store *store, struct s3_request *request,
    const struct s3_patience *patience, utter_error *error);

/* An object, by its name behind the store's prefix; `etag` changes with what is in it. What is not UTTER_OK ends the
 * list. */
typedef utter_status s3_name_fn(
    void *user, const char *name, uint64_t bytes, const char *etag, utter_error *error);

/* Every object whose name begins with `below`, page by page, in the order of the alphabet; `flat`: and has no / behind
 * that. UTTER_END: more than `most_pages` would have to be asked for. */
utter_status s3_list(struct s3_store *store, const char *below, bool flat, uint64_t most_pages,
    const struct s3_patience *patience, s3_name_fn *fn, void *user, utter_error *error);

/* Of the names that S3_LIST tells: where those of this store begin. */
const char *s3_prefix(const struct s3_store *store);

#endif
