/* SPDX-License-Identifier: Apache-2.0
 * Words as they come -> a file when all have come. */
#include "cli/speak/times_file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/report.h"

bool times_kind_of(const char *path, enum times_kind *kind)
{
    static const char *const ends[] = {".json", ".srt", ".vtt", ".ass"};
    const char *dot = strrchr(path, '.');
    *kind = TIMES_JSON;
    if (strcmp(path, "-") == 0) {
        return true;
    }
    for (int i = 0; dot && i < 4; i++) {
        if (strcasecmp(dot, ends[i]) == 0) {
            *kind = (enum times_kind)i;
            return true;
        }
    }
    return false;
}

int times_file_open(struct times_file *t, const char *path, int rate, double speed)
{
    times_kind_of(path, &t->kind);
    t->scale = 1 / (rate * speed);
    return text_file_open(&t->file, path);
}

void times_file_text(struct times_file *t, const char *text, size_t bytes)
{
    if (t->n_text + bytes > t->text_room) {
        size_t room = t->n_text + bytes + t->text_room;
        char *grown = realloc(t->text, room);
        t->no_memory |= !grown;
        if (!grown) {
            return;
        }
        t->text = grown;
        t->text_room = room;
    }
    memcpy(t->text + t->n_text, text, bytes);
    t->n_text += bytes;
}

void times_file_note(struct times_file *t, utter_reading *reading)
{
    uint64_t first;
    size_t n;
    const utter_word *words = utter_reading_words(reading, &first, &n);
    size_t all = (size_t)first + n;
    if (all > t->room) {
        size_t room = all + t->room + 64;
        struct timed_word *grown = realloc(t->words, room * sizeof *grown);
        t->no_memory |= !grown;
        if (!grown) {
            return;
        }
        t->words = grown;
        t->room = room;
    }
    for (size_t i = 0; i < n; i++) {
        t->words[first + i] = (struct timed_word){.at = (size_t)words[i].at,
            .bytes = (size_t)words[i].bytes,
            .start_s = (double)words[i].start * t->scale,
            .end_s = (double)words[i].end * t->scale,
            .certainty = words[i].certainty,
            .skipped = words[i].skipped,
            .final = words[i].final};
    }
    t->n = all;
}

static void write_json(const struct times_file *t, bool approximate)
{
    FILE *out = t->file.lines;
    fputs("{\"words\":[", out);
    for (size_t i = 0; i < t->n; i++) {
        const struct timed_word *w = &t->words[i];
        json_t *text = json_stringn(t->text + w->at, w->bytes);
        fputs(i ? ",\n{\"text\":" : "\n{\"text\":", out);
        json_dumpf(text, out, JSON_ENCODE_ANY);
        fprintf(out,
            ",\"at\":%zu,\"bytes\":%zu,\"start_s\":%.3f,\"end_s\":%.3f,\"certainty\":%.2f,\"skipped\":%"
            "s,\"final\":%"
            "s}",
            w->at, w->bytes, w->start_s, w->end_s, (double)w->certainty, w->skipped ? "true" : "false",
            w->final ? "true" : "false");
        json_decref(text);
    }
    fprintf(out, "],\"approximate\":%s}\n", approximate ? "true" : "false");
}

int times_file_finish(struct times_file *t, bool approximate)
{
    if (t->no_memory) {
        return fail(2, "out of memory");
    }
    if (t->kind == TIMES_JSON) {
        write_json(t, approximate);
    } else {
        subtitles_write(t);
    }
    return text_file_close(&t->file);
}

void times_file_abort(struct times_file *t)
{
    text_file_abort(&t->file);
    free(t->text);
    free(t->words);
    *t = (struct times_file){0};
}
