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

/* A walk over what stands outside of strings. */
struct walk {
    const char *text;
    size_t bytes, at;
    int line;
    bool in_string;
};

/* The next character outside of strings; 0 at the end. A zero byte in the text passes for nothing. */
static char walk_next(struct walk *w)
{
    while (w->at < w->bytes) {
        char c = w->text[w->at++];
        w->line += c == '\n';
        if (w->in_string) {
            w->at += c == '\\';
            w->in_string = c != '"';
        } else if (c == '"') {
            w->in_string = true;
        } else if (c != '\0') {
            return c;
        }
    }
    return 0;
}

/* The number of the first line on which brackets nest deeper than MAX_DEPTH; 0 when none does. jansson
 * recurses far deeper than anything we read needs. */
static int line_too_deep(const char *text, size_t bytes)
{
    struct walk w = {.text = text, .bytes = bytes, .line = 1};
    int depth = 0;
    for (char c; (c = walk_next(&w));) {
        depth += c == '[' || c == '{';
        depth -= (c == ']' || c == '}') && depth > 0;
        if (depth > MAX_DEPTH) {
            return w.line;
        }
    }
    return 0;
}

/* Without parsing: each value but the first stands behind one of these. */
static bool has_more_values(const char *text, size_t bytes, size_t most)
{
    struct walk w = {.text = text, .bytes = bytes};
    size_t n = 1;
    for (char c; n <= most && (c = walk_next(&w));) {
        n += c == ',' || c == '[' || c == '{';
    }
    return n > most;
}

utter_status json_text(json_t **root, const char *text, size_t bytes, size_t most_values,
    const char *what, utter_error *error)
{
    char name[512], reason[256];
    *root = NULL;
    if (has_more_values(text, bytes, most_values)) {
        return error_set(error, UTTER_E_FILE, "%s has more than %zu values",
            error_quote(name, sizeof name, what, strlen(what)), most_values);
    }
    int deep = line_too_deep(text, bytes);
    if (deep) {
        return error_set(error, UTTER_E_FILE, "%s: not usable JSON: line %d: nested deeper than %d",
            error_quote(name, sizeof name, what, strlen(what)), deep, MAX_DEPTH);
    }
    json_error_t problem;
    allocation_failed = false;
    *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
    error_quote(name, sizeof name, what, strlen(what));
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
