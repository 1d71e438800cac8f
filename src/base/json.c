/* SPDX-License-Identifier: Apache-2.0
 * JSON text -> a jansson value, within the bounds of the header. */
#include "base/json.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_DEPTH = 64 };

/* jansson reports some failed allocations as faults of the text, and passes over others: a number may
 * lose a digit. So the hook takes note, for the thread that parses. */
static _Thread_local bool allocation_failed;

static void *json_allocate(size_t bytes)
{
    void *block = memory_plain_new(bytes);
    allocation_failed = allocation_failed || !block;
    return block;
}

__attribute__((constructor)) static void json_set_memory(void)
{
    json_set_alloc_funcs(json_allocate, memory_plain_free);
}

/* Where the string that begins in front of `at` ends: behind its closing quote, or at the end of the text. */
static size_t behind_string(const char *text, size_t bytes, size_t at)
{
    while (at < bytes && text[at] != '"') {
        at += text[at] == '\\' ? 2 : 1;
    }
    return at < bytes ? at + 1 : bytes;
}

static int line_at(const char *text, size_t at)
{
    int line = 1;
    for (size_t i = 0; i < at; i++) {
        line += text[i] == '\n';
    }
    return line;
}

/* Refuses, without parsing, what has more values than its kind of text needs and what nests deeper than
 * MAX_DEPTH, as far as jansson would recurse. One walk: big files are read at each start. `name` is quoted. */
static utter_status check_bounds(
    const char *text, size_t bytes, size_t most_values, const char *name, utter_error *error)
{
    size_t values = 1,
           at = 0; /* each value but the first stands behind a comma or an opening bracket */
    int depth = 0;
    while (at < bytes && values <= most_values && depth <= MAX_DEPTH) {
        char c = text[at++];
        if (c == '"') {
            at = behind_string(text, bytes, at);
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        } else if (c == ',' || c == '[' || c == '{') {
            values++;
            depth += c != ',';
        }
    }
    if (values > most_values) {
        return error_set(error, UTTER_E_FILE, "%s has more than %zu values", name, most_values);
    }
    if (depth > MAX_DEPTH) {
        return error_set(error, UTTER_E_FILE, "%s: not usable JSON: line %d: nested deeper than %d",
            name, line_at(text, at), MAX_DEPTH);
    }
    return UTTER_OK;
}

utter_status json_text(json_t **root, const char *text, size_t bytes, size_t most_values,
    const char *what, utter_error *error)
{
    char name[512], reason[256];
    *root = NULL;
    error_quote(name, sizeof name, what, strlen(what));
    utter_status status = check_bounds(text, bytes, most_values, name, error);
    if (status != UTTER_OK) {
        return status;
    }
    json_error_t problem;
    allocation_failed = false;
    *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
    if (allocation_failed) {
        json_decref(*root);
        *root = NULL;
        return error_memory(error, name);
    }
    if (*root) {
        return UTTER_OK;
    }
    return error_set(error, UTTER_E_FILE, "%s: not usable JSON: line %d, column %d: %s", name,
        problem.line, problem.column,
        error_quote(reason, sizeof reason, problem.text, strlen(problem.text)));
}

utter_status json_file(
    json_t **root, const char *path, size_t limit, size_t most_values, utter_error *error)
{
    char *text;
    size_t bytes;
    *root = NULL;
    utter_status status = file_read(path, limit, &text, &bytes, error);
    if (status == UTTER_OK) {
        status = json_text(root, text, bytes, most_values, path, error);
    }
    memory_free(text);
    return status;
}
