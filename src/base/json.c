/* SPDX-License-Identifier: Apache-2.0
 * JSON text -> a jansson value, within the bounds of the header. */
#include "base/json.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_DEPTH = 64 };

/* The number of the first line on which brackets nest deeper than MAX_DEPTH; 0 when none does. jansson
 * recurses far deeper than anything we read needs. */
static int line_too_deep(const char *text, size_t bytes)
{
    int depth = 0, line = 1;
    bool in_string = false;
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        line += c == '\n';
        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > MAX_DEPTH) {
                return line;
            }
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return 0;
}

utter_status json_text(
    json_t **root, const char *text, size_t bytes, const char *what, utter_error *error)
{
    char name[512], reason[256];
    *root = NULL;
    int deep = line_too_deep(text, bytes);
    if (deep) {
        return error_set(error, UTTER_E_FILE, "%s: not usable JSON: line %d: nested deeper than %d",
            error_quote(name, sizeof name, what, strlen(what)), deep, MAX_DEPTH);
    }
    json_error_t problem;
    *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
    if (*root) {
        return UTTER_OK;
    }
    /* jansson has no word for most allocations that fail: it gives up without a reason. */
    if (json_error_code(&problem) == json_error_out_of_memory || !problem.text[0]) {
        return error_memory(error, error_quote(name, sizeof name, what, strlen(what)));
    }
    return error_set(error, UTTER_E_FILE, "%s: not usable JSON: line %d, column %d: %s",
        error_quote(name, sizeof name, what, strlen(what)), problem.line, problem.column,
        error_quote(reason, sizeof reason, problem.text, strlen(problem.text)));
}

utter_status json_file(json_t **root, const char *path, size_t limit, utter_error *error)
{
    char *text;
    size_t bytes;
    *root = NULL;
    utter_status status = file_read(path, limit, &text, &bytes, error);
    if (status == UTTER_OK) {
        status = json_text(root, text, bytes, path, error);
    }
    memory_free(text);
    return status;
}
