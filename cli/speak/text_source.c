/* SPDX-License-Identifier: Apache-2.0
 * Reads the text. */
#include "cli/speak/text_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/report.h"

enum { TEXT_LIMIT = 1 << 28, FIRST_READ = 1 << 16 };

/* The words with one blank between them. */
static int join_words(struct text_source *source, const struct invocation *invocation)
{
    size_t bytes = 1;
    for (int i = 0; i < invocation->n_words; i++) {
        bytes += strlen(invocation->words[i]) + 1;
    }
    source->text = malloc(bytes);
    if (!source->text) {
        return fail(2, "out of memory");
    }
    char *at = source->text;
    for (int i = 0; i < invocation->n_words; i++) {
        at += sprintf(at, "%s%s", i ? " " : "", invocation->words[i]);
    }
    *at = 0;
    source->bytes = (size_t)(at - source->text);
    return 0;
}

/* Whether somebody sends a text: standard input is a pipe or a file, and no terminal, device or closed. */
static bool text_waits(void)
{
    struct stat about;
    return fstat(STDIN_FILENO, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISREG(about.st_mode));
}

int text_source_open(struct text_source *source, const struct invocation *invocation)
{
    *source = (struct text_source){.descriptor = -1, .name = "standard input"};
    const struct setting *file = &invocation->settings.file;
    if (file->given && invocation->n_words > 0) {
        return fail(1, "%s: the text is given twice, by --file and as '%s' (give one of them)",
            invocation->command->name, invocation->words[0]);
    }
    if (!file->given && invocation->n_words == 0 && !text_waits()) {
        return fail(1, "%s: no text (give it, or - to read standard input)", invocation->command->name);
    }
    bool dash = invocation->n_words == 0 ||
                (invocation->n_words == 1 && strcmp(invocation->words[0], "-") == 0);
    if ((dash && !file->given) || (file->given && strcmp(file->text, "-") == 0)) {
        source->descriptor = STDIN_FILENO;
        return 0;
    }
    if (!file->given) {
        return join_words(source, invocation);
    }
    source->name = file->text;
    source->descriptor = open(file->text, O_RDONLY | O_CLOEXEC);
    return source->descriptor < 0 ? fail(1, "%s: %s", file->text, strerror(errno)) : 0;
}

int text_source_read(struct text_source *source, char *piece, size_t capacity, size_t *n)
{
    ssize_t got;
    do {
        got = read(source->descriptor, piece, capacity);
    } while (got < 0 && errno == EINTR);
    *n = got > 0 ? (size_t)got : 0;
    if (got < 0) {
        return fail(errno == EISDIR ? 1 : 2, "%s: %s", source->name, strerror(errno));
    }
    if (got == 0) {
        text_source_close(source);
    }
    return 0;
}

/* Reads what comes next behind what is in `text`. */
static int read_behind(struct text_source *source)
{
    if (source->bytes + 1 >= source->room) {
        size_t room = source->room ? 2 * source->room : FIRST_READ;
        char *grown = realloc(source->text, room);
        if (!grown) {
            return fail(2, "out of memory");
        }
        source->text = grown;
        source->room = room;
    }
    size_t n, at = source->bytes;
    int code = text_source_read(source, source->text + at, source->room - at - 1, &n);
    source->bytes += n;
    source->text[source->bytes] = 0;
    return code || source->bytes <= TEXT_LIMIT
               ? code
               : fail(1, "%s: more than %d MB of text", source->name, TEXT_LIMIT >> 20);
}

int text_source_read_all(struct text_source *source)
{
    int code = 0;
    while (source->descriptor >= 0 && code == 0) {
        code = read_behind(source);
    }
    return code;
}

int text_source_line(struct text_source *source, char **line, size_t *bytes)
{
    int code = 0;
    char *end = NULL;
    *line = NULL;
    while (code == 0) {
        char *begin = source->text ? source->text + source->line_at : NULL;
        size_t n = source->bytes - source->line_at;
        end = begin ? memchr(begin, '\n', n) : NULL;
        if (end || source->descriptor < 0) {
            *line = end || n > 0 ? begin : NULL;
            *bytes = end ? (size_t)(end - begin) : n;
            source->line_at += *bytes + (end != NULL);
            break;
        }
        if (!interrupt_poll(source->descriptor, true) || interrupt_signal()) {
            break;
        }
        if (source->line_at > 0) {
            memmove(source->text, begin, n);
            source->bytes = n;
            source->line_at = 0;
        }
        code = read_behind(source);
    }
    return code;
}

void text_source_close(struct text_source *source)
{
    if (source->descriptor > STDERR_FILENO) {
        close(source->descriptor);
    }
    source->descriptor = -1;
}
