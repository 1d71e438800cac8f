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

/* How many values `text` holds at most, without parsing it: what a parsed value takes is up to a hundred times its
 * text. */
size_t json_most_values(const char *text, size_t bytes);

/* Parses `bytes` bytes of text. `what` names the source in the error ("config.json"). *root is the
 * caller's, freed with json_decref. Integers must fit 64 bits; depth at most 64. */
utter_status json_text(
    json_t **root, const char *text, size_t bytes, const char *what, utter_error *error);
/* The same from a file of at most `limit` bytes. */
utter_status json_file(json_t **root, const char *path, size_t limit, utter_error *error);

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
