/* SPDX-License-Identifier: Apache-2.0
 * JSON text -> a jansson value, within the bounds of the header. */
#include "base/json.h"

#include <setjmp.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_DEPTH = 64 };

/* A parser of jansson (2.14) that finds no memory for a longer string writes past the end of what it has. So it never
 * hears of that: the hook leaves it, and what it has taken until then is given back. For the thread that parses. */
struct parse {
    jmp_buf left;
    void **taken;      /* every block since the parser began */
    void **given_back; /* those of them that it wants no more; they stay until it has ended */
    size_t n_taken, n_given_back, room;
};
/* A program that is linked with the library's archive may hold this file twice, but jansson has one hook for both. So
 * they share what the hook looks at, by a name that the archive does not hide; the shared library does (utter.map). */
struct json_thread {
    struct parse *parse;
    bool lacked; /* what puts values together passes over members for which it has no memory */
};
extern _Thread_local struct json_thread utter_json;
__attribute__((weak, visibility("default"))) _Thread_local struct json_thread utter_json;

/* Room for one block more in both lists: none is given back that was not taken. */
static bool make_room(void)
{
    size_t room = 2 * utter_json.parse->room + 64;
    void **taken = memory_plain_resize(utter_json.parse->taken, room * sizeof *taken);
    utter_json.parse->taken = taken ? taken : utter_json.parse->taken;
    void **given_back =
        taken ? memory_plain_resize(utter_json.parse->given_back, room * sizeof *given_back) : NULL;
    utter_json.parse->given_back = given_back ? given_back : utter_json.parse->given_back;
    utter_json.parse->room = given_back ? room : utter_json.parse->room;
    return given_back != NULL;
}

static void *json_allocate(size_t bytes)
{
    void *block = memory_plain_new(bytes);
    if (utter_json.parse &&
        (!block || (utter_json.parse->n_taken == utter_json.parse->room && !make_room()))) {
        memory_plain_free(block);
        longjmp(utter_json.parse->left, 1);
    }
    if (utter_json.parse) {
        utter_json.parse->taken[utter_json.parse->n_taken++] = block;
    }
    utter_json.lacked = utter_json.lacked || !block;
    return block;
}

static void json_give_back(void *block)
{
    if (utter_json.parse && block) {
        utter_json.parse->given_back[utter_json.parse->n_given_back++] = block;
    } else {
        memory_plain_free(block);
    }
}

__attribute__((constructor)) static void json_set_memory(void)
{
    json_set_alloc_funcs(json_allocate, json_give_back);
}

/* False: the parser was left, for lack of memory. What changes meanwhile is the caller's, as C wants it of longjmp. */
static bool run_parser(
    struct parse *own, json_t **root, const char *text, size_t bytes, json_error_t *problem)
{
    if (setjmp(own->left) == 0) {
        *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, problem);
        return true;
    }
    return false;
}

/* False: memory is out. *root: NULL with a fault of the text. */
static bool load(json_t **root, const char *text, size_t bytes, json_error_t *problem)
{
    struct parse own = {.room = 0};
    utter_json.parse = &own;
    bool good = run_parser(&own, root, text, bytes, problem);
    utter_json.parse = NULL;
    void **gone = good ? own.given_back : own.taken;
    for (size_t i = 0; i < (good ? own.n_given_back : own.n_taken); i++) {
        memory_plain_free(gone[i]);
    }
    memory_plain_free(own.taken);
    memory_plain_free(own.given_back);
    return good;
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
    if (!load(root, text, bytes, &problem)) {
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

char *json_text_write(const json_t *root, size_t flags)
{
    char *text = root ? json_dumps(root, flags) : NULL;
    if (utter_json.lacked) {
        memory_plain_free(text);
        text = NULL;
    }
    utter_json.lacked = false;
    return text;
}

bool json_text_lacks(void)
{
    return utter_json.lacked;
}

void json_text_forget(void)
{
    utter_json.lacked = false;
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
