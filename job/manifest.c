/* SPDX-License-Identifier: Apache-2.0
 * Lines of a bounded length. */
#include "job/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "job/line.h"

utter_status manifest_open(struct manifest *m, const char *path, utter_error *error)
{
    struct stat about;
    *m = (struct manifest){0};
    if (stat(path, &about) != 0) {
        return file_error(error, path, "read", errno);
    }
    if (!S_ISREG(about.st_mode)) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s: is no file (a manifest is read twice: first all of it is checked)", path);
    }
    if (!realpath(path, m->path)) {
        return file_error(error, path, "read", errno);
    }
    m->bytes = (uint64_t)about.st_size;
    m->line = memory_new(LINE_BYTES + 1, 1);
    m->file = m->line ? fopen(path, "re") : NULL;
    if (!m->file) {
        return m->line ? file_error(error, path, "read", errno) : error_memory(error, "a manifest");
    }
    memcpy(m->folder, m->path, sizeof m->folder);
    char *slash = strrchr(m->folder, '/');
    slash[slash == m->folder] = 0;
    return UTTER_OK;
}

static bool is_blank(const char *text, size_t n)
{
    return strspn(text, " \t\r") >= n;
}

utter_status manifest_next(struct manifest *m, size_t *bytes, utter_error *error)
{
    for (;;) {
        size_t n = 0;
        int c;
        while ((c = getc_unlocked(m->file)) != EOF && c != '\n') {
            if (n == LINE_BYTES) {
                return error_set(error, UTTER_E_ARGUMENT, "%s: line %llu is longer than %d MB", m->path,
                    (unsigned long long)m->number + 1, LINE_BYTES >> 20);
            }
            m->line[n++] = (char)c;
        }
        if (c == EOF && ferror(m->file)) {
            return file_error(error, m->path, "read", errno);
        }
        if (c == EOF && n == 0) {
            return UTTER_END;
        }
        m->number++;
        m->at += n + 1;
        if (m->number == 1 && n >= 3 && memcmp(m->line, "\xEF\xBB\xBF", 3) == 0) {
            memmove(m->line, m->line + 3, n -= 3); /* a mark of UTF-8, which some editors write */
        }
        m->line[n] = 0;
        if (!is_blank(m->line, n)) {
            *bytes = n;
            return UTTER_OK;
        }
    }
}

void manifest_rewind(struct manifest *m)
{
    rewind(m->file);
    m->number = 0;
    m->at = 0;
}

void manifest_close(struct manifest *m)
{
    if (m->file) {
        fclose(m->file);
    }
    memory_free(m->line);
    *m = (struct manifest){0};
}
