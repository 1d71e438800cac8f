/* SPDX-License-Identifier: Apache-2.0
 * The typed getters over one JSON object. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* A value as an error shows it, in out[size]. */
static const char *value_text(char *out, size_t size, const json_t *value)
{
    switch (value ? (int)json_typeof(value) : -1) {
    case JSON_INTEGER:
        snprintf(out, size, "%" PRId64, (int64_t)json_integer_value(value));
        return out;
    case JSON_REAL:
        snprintf(out, size, "%g", json_real_value(value));
        return out;
    case JSON_STRING:
        out[0] = '"';
        error_quote(out + 1, size - 2, json_string_value(value), json_string_length(value));
        strcat(out, "\"");
        return out;
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    default:
        return "nothing";
    }
}

/* Notes the first problem of the object: the field, what is wanted, what is there. */
static void field_fails(struct json_fields *f, const char *key, const char *wanted, const json_t *value)
{
    if (f->status != UTTER_OK) {
        return;
    }
    char shown[96];
    f->status = error_set(f->error, UTTER_E_FILE, "%s: \"%s\" must be %s, found %s", f->where, key,
        wanted, value_text(shown, sizeof shown, value));
}

static const json_t *field_get(const struct json_fields *f, const char *key)
{
    return json_object_get(f->object, key);
}

/* Missing and null are the same: both mean "the usual". */
static bool field_is_set(const json_t *value)
{
    return value && !json_is_null(value);
}

int64_t json_need_int(struct json_fields *f, const char *key, int64_t low, int64_t high)
{
    const json_t *value = field_get(f, key);
    if (json_is_integer(value) && json_integer_value(value) >= low &&
        json_integer_value(value) <= high) {
        return json_integer_value(value);
    }
    char wanted[96];
    snprintf(wanted, sizeof wanted, "a whole number from %" PRId64 " to %" PRId64, low, high);
    field_fails(f, key, wanted, value);
    return low;
}

int64_t json_take_int(
    struct json_fields *f, const char *key, int64_t low, int64_t high, int64_t fallback)
{
    return field_is_set(field_get(f, key)) ? json_need_int(f, key, low, high) : fallback;
}

double json_need_number(struct json_fields *f, const char *key, double low, double high)
{
    const json_t *value = field_get(f, key);
    double number = json_number_value(value);
    if (json_is_number(value) && number >= low && number <= high) {
        return number;
    }
    char wanted[96];
    snprintf(wanted, sizeof wanted, "a number from %g to %g", low, high);
    field_fails(f, key, wanted, value);
    return low;
}

double json_take_number(
    struct json_fields *f, const char *key, double low, double high, double fallback)
{
    return field_is_set(field_get(f, key)) ? json_need_number(f, key, low, high) : fallback;
}

bool json_take_bool(struct json_fields *f, const char *key, bool fallback)
{
    const json_t *value = field_get(f, key);
    if (field_is_set(value) && !json_is_boolean(value)) {
        field_fails(f, key, "true or false", value);
    }
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

const char *json_need_string(struct json_fields *f, const char *key)
{
    const json_t *value = field_get(f, key);
    if (!json_is_string(value)) {
        field_fails(f, key, "a string", value);
        return "";
    }
    return json_string_value(value);
}

const char *json_take_string(struct json_fields *f, const char *key, const char *fallback)
{
    return field_is_set(field_get(f, key)) ? json_need_string(f, key) : fallback;
}

const json_t *json_need_object(struct json_fields *f, const char *key)
{
    const json_t *value = field_get(f, key);
    if (!json_is_object(value)) {
        field_fails(f, key, "an object", value);
        return NULL;
    }
    return value;
}

const json_t *json_take_object(struct json_fields *f, const char *key)
{
    return field_is_set(field_get(f, key)) ? json_need_object(f, key) : NULL;
}

const json_t *json_need_array(struct json_fields *f, const char *key)
{
    const json_t *value = field_get(f, key);
    if (!json_is_array(value)) {
        field_fails(f, key, "an array", value);
        return NULL;
    }
    return value;
}
