/* SPDX-License-Identifier: Apache-2.0
 * JSON files and texts, through jansson: duplicate keys refused, depth bounded, memory from
 * base/memory. What callers use is the typed getters: each checks type and range and names the field.
 *
 * jansson's memory hooks belong to the whole process and are set once, when this library is loaded. Ours
 * end in malloc and free, so that values made before or by others stay good. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

#include "base/error.h"

/* A parsed value takes up to a hundred times the memory of its text, so texts are bounded in values too: those that
 * people write (configs, requests) hold a few thousand, lists of tensors and of codes up to 200,000. */
enum { JSON_SMALL = 1 << 16, JSON_LARGE = 1 << 18 };

/* Parses `bytes` bytes of text with at most `most_values` values. `what` names the source in the error
 * ("config.json"). *root is the caller's, freed with json_decref. Integers must fit 64 bits; depth at most 64. */
utter_status json_text(json_t **root, const char *text, size_t bytes, size_t most_values,
    const char *what, utter_error *error);
/* The same from a file of at most `limit` bytes. */
utter_status json_file(
    json_t **root, const char *path, size_t limit, size_t most_values, utter_error *error);

/* The text of a value that was put together, freed with memory_plain_free; accepts NULL. NULL where memory was out for
 * it or, since this thread wrote the last one, for a part of any: jansson passes over members for which it has
 * no memory. */
char *json_text_write(const json_t *root, size_t flags);
/* Whether it was out for a part of what this thread has put together since. */
bool json_text_lacks(void);
/* What this thread has put together so far will not be written: what lacked for it is no loss of the next text. */
void json_text_forget(void);

/* A reader of one object's fields that collects the first problem and goes on, so that code reads like
 * a table. `where` is the path shown in errors ("config.json: talker_config"). */
struct json_fields {
    const json_t *object;
    const char *where;
    utter_error *error;
    utter_status status; /* UTTER_OK or the first failure */
};

/* Required integer in [low, high]. */
int64_t json_need_int(struct json_fields *f, const char *key, int64_t low, int64_t high);
/* Optional integer; `fallback` when the key is missing or null. */
int64_t json_take_int(
    struct json_fields *f, const char *key, int64_t low, int64_t high, int64_t fallback);
double json_need_number(struct json_fields *f, const char *key, double low, double high);
double json_take_number(
    struct json_fields *f, const char *key, double low, double high, double fallback);
bool json_take_bool(struct json_fields *f, const char *key, bool fallback);
/* Borrowed from the object; "" after a failure, `fallback` (may be NULL) when missing or null. */
const char *json_need_string(struct json_fields *f, const char *key);
const char *json_take_string(struct json_fields *f, const char *key, const char *fallback);
/* A sub-object or array; NULL when missing (need: a failure). */
const json_t *json_need_object(struct json_fields *f, const char *key);
const json_t *json_take_object(struct json_fields *f, const char *key);
const json_t *json_need_array(struct json_fields *f, const char *key);

#endif
