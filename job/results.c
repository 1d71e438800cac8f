/* SPDX-License-Identifier: Apache-2.0
 * Which kind of results an address names; the JSON of a result. Its last field, "seal", is the hash of the bytes before
 * it. */
#include "job/results.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

static const char seal_begins[] = ",\"seal\":\"";
enum {
    SEAL_DIGITS = 16,
    SEAL_BYTES = sizeof seal_begins - 1 + SEAL_DIGITS + 3
}; /* with "} and a line's end */

utter_status results_open(struct results **results, const char *address, bool make, utter_error *error)
{
    *results = NULL;
    if (strncmp(address, "s3://", 5) == 0) {
        return results_s3_open(results, address, error);
    }
    if (strstr(address, "://")) {
        return error_set(
            error, UTTER_E_ARGUMENT, "--results %s: is no folder and no s3://BUCKET", address);
    }
    return results_folder_open(results, address, make, error);
}

void results_close(struct results **results)
{
    if (*results) {
        (*results)->calls->close(*results);
    }
    *results = NULL;
}

void result_name(char name[RESULT_NAME], const char *key, const char *ending)
{
    snprintf(name, RESULT_NAME, "%.64s.%.6s", key, ending);
}

utter_status result_hash(
    char hash[IDENTITY_SIZE], uint64_t *bytes, const char *path, utter_error *error)
{
    struct file_map map = {0};
    utter_status status = file_map_open(&map, path, error);
    if (status == UTTER_OK) {
        *bytes = map.size;
        identity_of_bytes(hash, map.data, map.size);
        file_map_close(&map);
    }
    return status;
}

/* The object, where the seal is unbroken, or NULL; what is damaged is no failure. */
static utter_status unseal(json_t **object, const char *text, size_t n, utter_error *error)
{
    char hash[IDENTITY_SIZE];
    *object = NULL;
    size_t sealed = n > SEAL_BYTES ? n - SEAL_BYTES : 0;
    if (sealed == 0 || memcmp(text + sealed, seal_begins, sizeof seal_begins - 1) != 0) {
        return UTTER_OK;
    }
    identity_of_bytes(hash, text, sealed);
    if (memcmp(text + sealed + sizeof seal_begins - 1, hash, SEAL_DIGITS) != 0) {
        return UTTER_OK;
    }
    utter_status status = json_text(object, text, n, JSON_LARGE << 3, "a result", error);
    return status == UTTER_E_MEMORY ? status : UTTER_OK;
}

static utter_status judge(struct results *results, const char *key, json_t *object, bool quick,
    enum result_state *state, utter_error *error)
{
    char name[RESULT_NAME];
    utter_error ignored;
    struct json_fields f = {.object = object, .where = "a result", .error = &ignored};
    const char *status = json_need_string(&f, "status"), *its_key = json_need_string(&f, "key");
    if (f.status || strcmp(its_key, key) != 0) {
        return UTTER_OK;
    }
    if (strcmp(status, "failed") == 0) {
        *state = RESULT_FAILED;
        return UTTER_OK;
    }
    const char *hash = json_need_string(&f, "sha256");
    result_name(name, key, json_need_string(&f, "format"));
    uint64_t bytes = (uint64_t)json_need_int(&f, "bytes", 0, INT64_MAX);
    if (f.status) {
        return UTTER_OK;
    }
    utter_status is = results->calls->check(results, name, bytes, quick ? NULL : hash, error);
    *state = is == UTTER_OK ? RESULT_DONE : RESULT_NONE;
    return is == UTTER_AGAIN ? UTTER_OK : is;
}

utter_status result_look(struct results *results, const char *key, bool quick, enum result_state *state,
    json_t **about, utter_error *error)
{
    char name[RESULT_NAME], *text = NULL;
    size_t n;
    *state = RESULT_NONE;
    if (about) {
        *about = NULL;
    }
    if (quick && !about && results->calls->is_believed && results->calls->is_believed(results, key)) {
        *state = RESULT_DONE;
        return UTTER_OK;
    }
    result_name(name, key, "json");
    utter_status status = results->calls->text(results, name, &text, &n, error);
    if (status) {
        return status == UTTER_AGAIN ? UTTER_OK : status;
    }
    json_t *object;
    status = unseal(&object, text, n, error);
    memory_free(text);
    status = object ? judge(results, key, object, quick, state, error) : status;
    if (about && status == UTTER_OK && *state != RESULT_NONE) {
        *about = object;
        return UTTER_OK;
    }
    json_decref(object);
    return status;
}

static utter_status keep_text(
    struct results *results, const char *name, const char *text, size_t bytes, utter_error *error)
{
    char path[PATH_MAX];
    struct file_out *out;
    utter_status status = results->calls->place(results, name, path, error);
    status = status ? status : file_out_open(&out, path, error);
    if (status) {
        return status;
    }
    status = file_out_write(out, text, bytes, error);
    if (status) {
        file_out_abort(&out);
        return status;
    }
    status = file_out_close(&out, error);
    return status ? status : results->calls->keep(results, name, path, error);
}

utter_status result_tell(
    struct results *results, const char *key, const json_t *about, utter_error *error)
{
    char name[RESULT_NAME], hash[IDENTITY_SIZE];
    char *text = json_text_write(about, JSON_COMPACT | JSON_REAL_PRECISION(9));
    size_t n = text ? strlen(text) : 0;
    char *sealed = text ? memory_new(n + SEAL_BYTES + 1, 1) : NULL;
    utter_status status = sealed ? UTTER_OK : error_memory(error, "a result");
    if (status == UTTER_OK) {
        memcpy(sealed, text, n - 1); /* without its bracket */
        identity_of_bytes(hash, sealed, n - 1);
        n += (size_t)snprintf(
                 sealed + n - 1, SEAL_BYTES + 1, "%s%.*s\"}\n", seal_begins, SEAL_DIGITS, hash) -
             1;
        result_name(name, key, "json");
        status = keep_text(results, name, sealed, n, error);
    }
    memory_plain_free(text);
    memory_free(sealed);
    return status;
}
