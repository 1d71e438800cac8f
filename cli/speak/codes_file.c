/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads codes. */
#include "cli/speak/codes_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/report.h"

int codes_file_open(struct codes_file *c, const char *path, int n_codebooks)
{
    *c = (struct codes_file){.n_codebooks = n_codebooks};
    int code = text_file_open(&c->file, path);
    if (code == 0) {
        fprintf(c->file.lines, "{\"codebooks\":%d,\"codes\":[", n_codebooks);
    }
    return code;
}

void codes_file_add(struct codes_file *c, const int32_t *codes, size_t n_frames)
{
    FILE *out = c->file.lines;
    for (size_t i = 0; i < n_frames; i++) {
        fputs(c->n_frames++ ? ",\n" : "\n", out);
        for (int k = 0; k < c->n_codebooks; k++) {
            fprintf(out, "%c%d", k ? ',' : '[', *codes++);
        }
        fputc(']', out);
    }
}

int codes_file_finish(struct codes_file *c, utter_finish finish)
{
    fprintf(
        c->file.lines, "],\"frames\":%zu,\"finish\":\"%s\"}\n", c->n_frames, utter_finish_text(finish));
    return text_file_close(&c->file);
}

void codes_file_abort(struct codes_file *c)
{
    text_file_abort(&c->file);
}

/* One frame into codes[n_codebooks]; false when it is not what it should be. */
static bool read_frame(int32_t *codes, const json_t *frame, int n_codebooks, int codebook_size)
{
    if (!json_is_array(frame) || json_array_size(frame) != (size_t)n_codebooks) {
        return false;
    }
    for (int k = 0; k < n_codebooks; k++) {
        const json_t *code = json_array_get(frame, (size_t)k);
        json_int_t value = json_integer_value(code);
        if (!json_is_integer(code) || value < 0 || value >= codebook_size) {
            return false;
        }
        codes[k] = (int32_t)value;
    }
    return true;
}

static int read_frames(int32_t **codes, size_t *n_frames, const json_t *root, const char *name,
    int n_codebooks, int codebook_size)
{
    const json_t *frames = json_object_get(root, "codes");
    if (!json_is_array(frames)) {
        return fail(1, "%s: has no array \"codes\" (utter say --codes writes such files)", name);
    }
    *n_frames = json_array_size(frames);
    if (*n_frames == 0) {
        return fail(1, "%s: holds no frames", name);
    }
    const json_t *promised = json_object_get(root, "frames");
    if (promised && json_integer_value(promised) != (json_int_t)*n_frames) {
        return fail(1, "%s: \"frames\" is not the number of its frames, %zu", name, *n_frames);
    }
    *codes = calloc(*n_frames * (size_t)n_codebooks + 1, sizeof **codes);
    if (!*codes) {
        return fail(2, "out of memory");
    }
    for (size_t i = 0; i < *n_frames; i++) {
        if (!read_frame(*codes + i * (size_t)n_codebooks, json_array_get(frames, i), n_codebooks,
                codebook_size)) {
            free(*codes);
            *codes = NULL;
            return fail(1, "%s: frame %zu is not %d integers from 0 to %d", name, i, n_codebooks,
                codebook_size - 1);
        }
    }
    return 0;
}

int codes_file_read(
    int32_t **codes, size_t *n_frames, const char *path, int n_codebooks, int codebook_size)
{
    /* An hour of speech of 16 codebooks has 720,000 codes, and a parsed one takes a hundred bytes. */
    enum { MAX_BYTES = 64 << 20, MAX_CODES = 1 << 21 };
    char *text = NULL;
    size_t bytes;
    json_t *root = NULL;
    utter_error error;
    bool dash = strcmp(path, "-") == 0;
    const char *name = dash ? "standard input" : path;
    *codes = NULL;
    utter_status status = file_read_any(dash ? "/dev/stdin" : path, MAX_BYTES, &text, &bytes, &error);
    status = status ? status : json_text(&root, text, bytes, MAX_CODES, name, &error);
    memory_free(text);
    if (status) {
        return fail_status(status, &error);
    }
    int code = read_frames(codes, n_frames, root, name, n_codebooks, codebook_size);
    json_decref(root);
    return code;
}
