/* SPDX-License-Identifier: Apache-2.0
 * One line of work: a text, and all that its sound depends on. Comes in as a person wrote it into a manifest, or
 * complete, as it waits in a queue. The key is the hash of all of it but the id: equal keys mean equal sound. */
#ifndef JOB_LINE_H
#define JOB_LINE_H

#include <jansson.h>
#include <limits.h>

#include "book/identity.h"

enum {
    LINE_TEXT =
        512 << 10, /* bytes of a text at most: some ten hours of speech, and a message of a broker */
    LINE_BYTES = 4 << 20,         /* of a line, whose text may be written in escapes */
    LINE_WIRE = (1 << 20) - 1024, /* as it waits: brokers take a megabyte, with the headers */
};

/* What a line says. The strings are the object's, or of who gave the defaults. */
struct line {
    json_t *object;
    char *text_of_file; /* what `file` holds */
    const char *id, *text, *file;
    size_t text_bytes;
    const char *voice, *language, *instruct, *format, *markup;
    uint64_t seed;
    bool words; /* tell when each word is heard */
    /* Complete: */
    const char *model, *voice_hash, *called_hash;
};

/* What a line that says nothing of it gets. */
struct line_defaults {
    const char *voice, *language, *instruct, *format, *markup; /* NULL: none */
    uint64_t seed;
};

/* What completes the lines of a manifest. */
struct line_rules {
    struct line_defaults defaults;
    const char *model;  /* which one, and how it is held */
    const char *folder; /* that files are named from */
    utter_status (*check_language)(void *user, const char *name, utter_error *error);
    /* What the voice is; "" as `name` is the model's first. */
    utter_status (*hash_voice)(
        void *user, const char *name, char hash[IDENTITY_SIZE], utter_error *error);
    /* What the voices are that the text calls for by name; adds to the hash. */
    utter_status (*hash_called)(
        void *user, const struct line *line, char hash[IDENTITY_SIZE], utter_error *error);
    void *user;
};

/* Of a manifest: every field checked, and nothing looked up. The line is to be freed whatever comes. */
utter_status line_parse(struct line *line, const struct line_defaults *defaults, const char *text,
    size_t bytes, utter_error *error);
/* Reads the text where a file has it, finds the key, and writes the line as it waits in a queue: *wire is to be freed
 * with memory_plain_free. */
utter_status line_complete(struct line *line, const struct line_rules *rules, char key[IDENTITY_SIZE],
    char **wire, utter_error *error);
/* Of a queue. */
utter_status line_take(struct line *line, const char *wire, size_t bytes, utter_error *error);
void line_free(struct line *line); /* accepts a zeroed one */

/* Where the line's `file` lies. */
utter_status line_path(
    const struct line *line, const char *folder, char path[PATH_MAX], utter_error *error);
/* UTTER_MARKUP_ of the line's word. */
int line_markup(const struct line *line);

#endif
