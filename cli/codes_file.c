/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads codes. */
#include "codes_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

static int fail_file(const char *path)
{
    return fail(2, "%s: %s", path, strerror(errno));
}

/* A name beside `path` that is free, and the file open under it with the permissions of a plain new file. */
static FILE *create_sibling(const char *path, char **name)
{
    size_t size = strlen(path) + 16;
    *name = malloc(size);
    if (!*name) {
        return NULL;
    }
    snprintf(*name, size, "%s.XXXXXX", path);
    int descriptor = mkstemp(*name);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (!file) {
        free(*name);
        *name = NULL;
        return NULL;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, 0666 & ~mask);
    return file;
}

int codes_file_create(struct codes_file *out, const char *path)
{
    *out = (struct codes_file){.path = path};
    struct stat about;
    if (strcmp(path, "-") == 0) {
        out->path = "standard output";
        out->file = stdout;
    } else if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
        /* A device or a pipe is written where it is. */
        out->file = fopen(path, "w");
    } else {
        out->file = create_sibling(path, &out->written_path);
    }
    return out->file ? 0 : fail_file(out->path);
}

int codes_file_finish(
    struct codes_file *out, const int32_t *codes, size_t n_frames, int n_codebooks, utter_finish finish)
{
    FILE *file = out->file;
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
    bool written =
        fflush(file) == 0 && !ferror(file) && (!out->written_path || fsync(fileno(file)) == 0);
    if (written && file != stdout) {
        out->file = NULL;
        written = fclose(file) == 0;
    }
    if (!written || (out->written_path && rename(out->written_path, out->path) != 0)) {
        int code = fail_file(out->path);
        codes_file_abort(out);
        return code;
    }
    free(out->written_path);
    *out = (struct codes_file){0};
    return 0;
}

void codes_file_abort(struct codes_file *out)
{
    if (out->file && out->file != stdout) {
        fclose(out->file);
    }
    if (out->written_path) {
        unlink(out->written_path);
    }
    free(out->written_path);
    *out = (struct codes_file){0};
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
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    if (!dash) {
        fclose(file);
    }
    if (!root) {
        return fail(1, "%s: line %d: %s", name, error.line, error.text);
    }
    int code = read_frames(codes, n_frames, root, name, n_codebooks, codebook_size);
    json_decref(root);
    return code;
}
