/* SPDX-License-Identifier: Apache-2.0
 * Reads merges.txt: one merge a line, the two tokens in the byte alphabet with one space between. A line
 * that begins with '#' is a merge like any other; only a first line "#version: ..." is none. */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "text/bpe.h"
#include "text/chars.h"

enum { FILE_LIMIT = 1 << 28 };

struct merges_reader {
    struct bpe *to;
    const struct vocabulary *vocabulary;
    const char *path;
    size_t i_line;    /* from 1 */
    uint32_t n_ranks; /* merges read so far */
    size_t i_guess;   /* in a released file each merge makes the token after that of the merge before */
    utter_error *error;
};

static utter_status fail(const struct merges_reader *r, const char *why)
{
    return error_set(r->error, UTTER_E_FILE, "%s: line %zu: %s", r->path, r->i_line, why);
}

/* Decodes the token that begins at *at to where it stands, or, for a right half, to the end of the left
 * one; *at becomes what stopped it. Returns the bytes written, 0 when there is no token. */
static size_t read_token(const char **at, const char *end, char *out)
{
    size_t n = 0;
    while (*at < end && **at != ' ') {
        uint32_t code = (uint8_t) * *at;
        if (code >= 0x80) {
            bool bad;
            size_t left = (size_t)(end - *at);
            if (utf8_valid(*at, min(left, 4), &bad) == 0) {
                return 0;
            }
            utf8_get(*at, &code);
        }
        int byte = vocabulary_byte(code);
        if (byte < 0) {
            return 0;
        }
        *at += code < 0x80 ? 1 : 2; /* the alphabet ends below U+0800 */
        out[n++] = (char)byte;
    }
    return n;
}

static utter_status find_token(
    const struct merges_reader *r, const char *text, size_t bytes, int32_t *id)
{
    ptrdiff_t found = vocabulary_find(r->vocabulary, text, bytes);
    if (found < 0) {
        char quoted[80];
        return error_set(r->error, UTTER_E_FILE,
            "%s: line %zu: the bytes \"%s\" are no token of vocab.json", r->path, r->i_line,
            error_quote(quoted, sizeof quoted, text, bytes));
    }
    *id = r->vocabulary->entry[found].id;
    return UTTER_OK;
}

static utter_status add_merge(struct merges_reader *r, int32_t left, int32_t right, int32_t id)
{
    struct bpe_merge *merge = bpe_find(r->to, left, right);
    if (merge->id >= 0) {
        return fail(r, "this merge comes a second time");
    }
    *merge = (struct bpe_merge){bpe_pair(left, right), id, r->n_ranks++};
    return UTTER_OK;
}

static utter_status read_line(struct merges_reader *r, char *line, const char *end)
{
    const char *at = line;
    size_t n_left = read_token(&at, end, line);
    if (n_left == 0 || at == end || *at != ' ') {
        return fail(r, "two tokens with a space between were expected");
    }
    at++;
    size_t n_right = read_token(&at, end, line + n_left);
    if (n_right == 0 || at != end) {
        return fail(r, "two tokens with a space between were expected");
    }
    int32_t left, right, both;
    utter_status status = find_token(r, line, n_left, &left);
    if (status == UTTER_OK) {
        status = find_token(r, line + n_left, n_right, &right);
    }
    if (status == UTTER_OK && vocabulary_is(r->vocabulary, r->i_guess, line, n_left + n_right)) {
        both = r->vocabulary->entry[r->i_guess++].id;
    } else if (status == UTTER_OK) {
        status = find_token(r, line, n_left + n_right, &both);
        r->i_guess = (size_t)(vocabulary_find(r->vocabulary, line, n_left + n_right) + 1);
    }
    return status == UTTER_OK ? add_merge(r, left, right, both) : status;
}

static utter_status read_lines(struct merges_reader *r, char *text, size_t bytes)
{
    char *const end_of_file = text + bytes;
    while (text < end_of_file) {
        char *end = memchr(text, '\n', (size_t)(end_of_file - text));
        char *next = end ? end + 1 : end_of_file;
        end = end ? end : end_of_file;
        if (end > text && end[-1] == '\r') {
            end--;
        }
        r->i_line++;
        bool is_version = r->i_line == 1 && end - text >= 9 && memcmp(text, "#version:", 9) == 0;
        utter_status status = is_version || end == text ? UTTER_OK : read_line(r, text, end);
        if (status != UTTER_OK) {
            return status;
        }
        text = next;
    }
    return UTTER_OK;
}

/* How many merges there can be at most: one a line, and one for each place where a token of the vocabulary can be cut
 * in two, since none may come twice. So a file of empty lines takes no memory. */
static size_t most_merges(const struct vocabulary *vocabulary, const char *text, size_t bytes)
{
    size_t n_lines = 1, n_cuts = 0;
    for (size_t i = 0; i < bytes; i++) {
        n_lines += text[i] == '\n';
    }
    for (size_t i = 0; i < vocabulary->n; i++) {
        n_cuts += vocabulary->entry[i].bytes - 1;
    }
    return min(n_lines, n_cuts);
}

static utter_status make_slots(struct bpe *bpe, size_t n_merges, utter_error *error)
{
    size_t n_slots = 1024;
    while (n_slots < n_merges + n_merges / 2) {
        n_slots *= 2;
    }
    bpe->slot = memory_new(n_slots, sizeof *bpe->slot);
    if (!bpe->slot) {
        return error_memory(error, "the merges");
    }
    bpe->slot_mask = n_slots - 1;
    for (size_t i = 0; i < n_slots; i++) {
        bpe->slot[i].id = -1;
    }
    return UTTER_OK;
}

utter_status bpe_open(struct bpe *bpe, const struct vocabulary *vocabulary, const char *path,
    file_reader *read_file, utter_error *error)
{
    *bpe = (struct bpe){0};
    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        bpe->byte_id[i] = vocabulary->entry[vocabulary_find(vocabulary, &byte, 1)].id;
    }
    struct merges_reader r = {bpe, vocabulary, path, 0, 0, 256, error};
    char *text = NULL;
    size_t bytes = 0;
    utter_status status = read_file(path, FILE_LIMIT, &text, &bytes, error);
    if (status == UTTER_OK) {
        status = make_slots(bpe, most_merges(vocabulary, text, bytes), error);
    }
    if (status == UTTER_OK) {
        status = read_lines(&r, text, bytes);
    }
    memory_free(text);
    /* Every token but the bytes is made by a merge. With fewer merges words would come apart, and nobody would see
     * it. */
    const size_t wanted = vocabulary->n - sizeof bpe->byte_id / sizeof *bpe->byte_id;
    if (status == UTTER_OK && r.n_ranks < wanted) {
        status = error_set(error, UTTER_E_FILE,
            "%s: %u merges, and %zu tokens of vocab.json need one each (is it cut short?)", path,
            r.n_ranks, wanted);
    }
    if (status != UTTER_OK) {
        bpe_close(bpe);
    }
    return status;
}

void bpe_close(struct bpe *bpe)
{
    memory_free(bpe->slot);
    *bpe = (struct bpe){0};
}
