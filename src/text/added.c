/* SPDX-License-Identifier: Apache-2.0
 * Added tokens: reading and searching; see added.h. */
#include "text/added.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "text/nfc.h"

enum {
    FILE_LIMIT = 1 << 24,
    LENGTH_LIMIT = 256, /* bytes: a text of n bytes is searched in at most n times this many steps */
};

/* The child of `parent` for a byte; made when it is missing. 0: no memory. */
static uint32_t tree_step(struct added_tree *tree, uint32_t parent, uint8_t byte)
{
    uint32_t at = tree->node[parent].child;
    while (at != 0 && tree->node[at].byte != byte) {
        at = tree->node[at].sibling;
    }
    if (at != 0) {
        return at;
    }
    if (tree->n == tree->capacity) {
        struct added_node *node =
            memory_resize(tree->node, tree->capacity, tree->capacity * 2, sizeof *node);
        if (!node) {
            return 0;
        }
        tree->node = node;
        tree->capacity *= 2;
    }
    at = (uint32_t)tree->n++;
    tree->node[at] = (struct added_node){0, tree->node[parent].child, -1, byte};
    tree->node[parent].child = at;
    return at;
}

static utter_status tree_init(struct added_tree *tree, utter_error *error)
{
    tree->capacity = 256;
    tree->node = memory_new(tree->capacity, sizeof *tree->node);
    if (!tree->node) {
        return error_memory(error, "added tokens");
    }
    tree->n = 1;
    tree->node[0].id = -1;
    return UTTER_OK;
}

static utter_status tree_add(struct added_tree *tree, const char *text, size_t bytes, int32_t id,
    const char *where, utter_error *error)
{
    uint32_t at = 0;
    for (size_t i = 0; i < bytes; i++) {
        at = tree_step(tree, at, (uint8_t)text[i]);
        if (at == 0) {
            return error_memory(error, "added tokens");
        }
    }
    if (tree->node[at].id >= 0) {
        return error_set(error, UTTER_E_FILE, "%s: the same content as another added token", where);
    }
    tree->node[at].id = id;
    tree->begins[(uint8_t)text[0]] = true;
    return UTTER_OK;
}

enum added_match added_match(const struct added_tree *tree, const char *text, size_t bytes, bool final,
    size_t *length, int32_t *id)
{
    enum added_match found = ADDED_NONE;
    uint32_t at = 0;
    for (size_t i = 0; i < bytes; i++) {
        at = tree->node[at].child;
        while (at != 0 && tree->node[at].byte != (uint8_t)text[i]) {
            at = tree->node[at].sibling;
        }
        if (at == 0) {
            return found;
        }
        if (tree->node[at].id >= 0) {
            found = ADDED_FOUND;
            *length = i + 1;
            *id = tree->node[at].id;
        }
    }
    return tree->node[at].child == 0 || final ? found : ADDED_OPEN;
}

struct token_entry {
    int32_t id;
    const json_t *value;
};

static int by_id(const void *a, const void *b)
{
    int32_t x = ((const struct token_entry *)a)->id, y = ((const struct token_entry *)b)->id;
    return (x > y) - (x < y);
}

/* An id written as a key: digits without a leading zero. */
static bool parse_id(const char *key, int32_t *id)
{
    size_t n = strspn(key, "0123456789");
    if (n == 0 || n > 7 || key[n] != 0 || (key[0] == '0' && n > 1)) {
        return false;
    }
    *id = (int32_t)strtol(key, NULL, 10);
    return *id < VOCABULARY_ID_LIMIT;
}

/* The id that the official package gives to the next added token. */
static int32_t next_id(const struct added *added, const struct vocabulary *v, const char *content)
{
    size_t bytes = strlen(content), n = 0;
    char raw[LENGTH_LIMIT];
    for (size_t i = 0; i < bytes; n++) {
        uint32_t code;
        i += utf8_get(content + i, &code);
        int byte = vocabulary_byte(code);
        if (byte < 0) {
            n = 0; /* no token of the vocabulary can be written so */
            break;
        }
        raw[n] = (char)byte;
    }
    ptrdiff_t found = n > 0 ? vocabulary_find(v, raw, n) : -1;
    if (found >= 0) {
        return v->entry[found].id;
    }
    return added->largest_id >= (int32_t)v->n ? added->largest_id + 1 : (int32_t)v->n;
}

static utter_status add_normal(
    struct added *added, const char *content, int32_t id, const char *where, utter_error *error)
{
    struct chars normal = {0};
    utter_status status = nfc_add(&normal, content, strlen(content), error);
    if (status == UTTER_OK) {
        status = tree_add(&added->normal, normal.at, normal.n, id, where, error);
    }
    chars_fini(&normal);
    return status;
}

static utter_status add_token(struct added *added, const struct vocabulary *vocabulary,
    const struct token_entry *entry, const char *path, utter_error *error)
{
    char where[512];
    snprintf(where, sizeof where, "%s: added token %d", path, (int)entry->id);
    struct json_fields f = {entry->value, where, error, UTTER_OK};
    const char *content = json_need_string(&f, "content");
    bool special = json_take_bool(&f, "special", false);
    bool normalized = json_take_bool(&f, "normalized", !special);
    bool stripped_left = json_take_bool(&f, "lstrip", false);
    bool stripped_right = json_take_bool(&f, "rstrip", false);
    bool single_word = json_take_bool(&f, "single_word", false);
    if (f.status != UTTER_OK) {
        return f.status;
    }
    size_t bytes = strlen(content);
    if (bytes == 0 || bytes > LENGTH_LIMIT) {
        return error_set(
            error, UTTER_E_FILE, "%s: content must have 1 to %d bytes", where, LENGTH_LIMIT);
    }
    if (stripped_left || stripped_right || single_word) {
        return error_set(
            error, UTTER_E_MODEL, "%s: lstrip, rstrip and single_word are not supported", where);
    }
    int32_t id = next_id(added, vocabulary, content);
    if (id != entry->id) {
        return error_set(error, UTTER_E_FILE,
            "%s: the id must be %d (that of the same token in vocab.json, else the next free one)",
            where, (int)id);
    }
    added->largest_id = max(id, added->largest_id);
    return normalized ? add_normal(added, content, id, where, error)
                      : tree_add(&added->raw, content, bytes, id, where, error);
}

static utter_status add_tokens(struct added *added, const struct vocabulary *vocabulary,
    const json_t *decoder, const char *path, utter_error *error)
{
    size_t n = json_object_size(decoder), i = 0;
    struct token_entry *entry = memory_new(n, sizeof *entry);
    if (!entry) {
        return error_memory(error, "added tokens");
    }
    utter_status status = UTTER_OK;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)decoder, key, value)
    {
        entry[i].value = value;
        if (!parse_id(key, &entry[i++].id) || !json_is_object(value)) {
            char quoted[40];
            status = error_set(error, UTTER_E_FILE,
                "%s: added_tokens_decoder: \"%s\" must be an id and hold an object", path,
                error_quote(quoted, sizeof quoted, key, strlen(key)));
            break;
        }
    }
    if (status == UTTER_OK) {
        qsort(entry, n, sizeof *entry, by_id);
    }
    for (i = 0; status == UTTER_OK && i < n; i++) {
        status = add_token(added, vocabulary, &entry[i], path, error);
    }
    memory_free(entry);
    return status;
}

utter_status added_open(struct added *added, const struct vocabulary *vocabulary, const char *path,
    file_reader *read_file, utter_error *error)
{
    *added = (struct added){.largest_id = -1};
    char *text;
    size_t bytes;
    json_t *root = NULL;
    utter_status status = read_file(path, FILE_LIMIT, &text, &bytes, error);
    if (status == UTTER_OK) {
        status = json_text(&root, text, bytes, JSON_SMALL, path, error);
    }
    memory_free(text);
    if (status != UTTER_OK) {
        return status;
    }
    struct json_fields f = {root, path, error, UTTER_OK};
    const json_t *decoder = json_need_object(&f, "added_tokens_decoder");
    status = f.status;
    if (status == UTTER_OK) {
        status = tree_init(&added->raw, error);
    }
    if (status == UTTER_OK) {
        status = tree_init(&added->normal, error);
    }
    if (status == UTTER_OK) {
        status = add_tokens(added, vocabulary, decoder, path, error);
    }
    json_decref(root);
    if (status != UTTER_OK) {
        added_close(added);
    }
    return status;
}

void added_close(struct added *added)
{
    memory_free(added->raw.node);
    memory_free(added->normal.node);
    *added = (struct added){.largest_id = -1};
}
