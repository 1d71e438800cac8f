/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads codes. */
#include "codes_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

int codes_file_finish(
    struct text_file *out, const int32_t *codes, size_t n_frames, int n_codebooks, utter_finish finish)
{
    FILE *file = out->lines;
    fprintf(file, "{\"codebooks\":%d,\"frames\":%zu,\"finish\":\"%s\",\"codes\":[", n_codebooks,
        n_frames, utter_finish_text(finish));
    for (size_t i = 0; i < n_frames; i++) {
        for (int k = 0; k < n_codebooks; k++) {
            fprintf(file, "%s%d",
                k   ? ","
                : i ? ",\n["
                    : "\n[",
                codes[i * (size_t)n_codebooks + (size_t)k]);
        }
        fputc(']', file);
    }
    fputs("]}\n", file);
    return text_file_close(out);
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
    *codes = NULL;
    bool dash = strcmp(path, "-") == 0;
    const char *name = dash ? "standard input" : path;
    FILE *file = dash ? stdin : fopen(path, "r");
    if (!file) {
        return fail(1, "%s: %s", path, strerror(errno));
    }
    json_error_t error;
    errno = 0;
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    int reason = ferror(file) ? errno : 0; /* what cannot be read looks empty to the parser */
    if (!dash) {
        fclose(file);
    }
    if (reason) {
        json_decref(root);
        return fail(reason == EISDIR ? 1 : 2, "%s: %s", name, strerror(reason));
    }
    if (!root) {
        return fail(1, "%s: line %d: %s", name, error.line, error.text);
    }
    int code = read_frames(codes, n_frames, root, name, n_codebooks, codebook_size);
    json_decref(root);
    return code;
}
