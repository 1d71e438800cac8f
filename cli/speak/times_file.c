/* SPDX-License-Identifier: Apache-2.0
 * Words as they come -> a file. What the reading no longer tells is settled. */
#include "cli/speak/times_file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/minmax.h"
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
    int code = text_file_open(&t->file, path);
    if (code == 0 && t->kind == TIMES_JSON) {
        fputs("{\"words\":[", t->file.lines);
    } else if (code == 0) {
        subtitles_begin(t);
    }
    return code;
}

void times_file_text(void *times_file, uint64_t at, uint64_t bytes, const char *text, size_t n)
{
    struct times_file *t = times_file;
    written_add(&t->written, at, bytes, text, n);
    t->no_memory |= t->written.no_memory;
}

void times_file_piece(struct times_file *t, uint64_t at)
{
    t->spoken_at = at;
}

/* Forgets words that are in the file, but the last one, by which the next begins, and the text in front of what is kept
 * and of pieces that may be said again. */
static void forget(struct times_file *t)
{
    if (t->n_written == 0) {
        return;
    }
    size_t n = t->n_written - 1;
    t->n -= n;
    t->n_written -= n;
    t->n_settled -= n;
    t->first += n;
    memmove(t->words, t->words + n, t->n * sizeof *t->words);
    size_t none, from = written_find(&t->written, t->spoken_at, 0, &none);
    for (size_t i = 0; i < t->n; i++) {
        from = min(from, t->words[i].at);
    }
    written_drop(&t->written, from);
    for (size_t i = 0; i < t->n; i++) {
        t->words[i].at -= from;
    }
}

static void write_word(struct times_file *t, const struct timed_word *w)
{
    FILE *out = t->file.lines;
    json_t *text = json_stringn(t->written.text + w->at, w->bytes);
    fputs(t->n_items++ ? ",\n{\"text\":" : "\n{\"text\":", out);
    json_dumpf(text, out, JSON_ENCODE_ANY);
    fprintf(out,
        ",\"at\":%llu,\"bytes\":%llu,\"start_s\":%.3f,\"end_s\":%.3f,\"certainty\":%.2f,\"skipped\":%s,"
        "\"final\":%s}",
        (unsigned long long)w->source, (unsigned long long)w->source_bytes, w->start_s, w->end_s,
        (double)w->certainty, w->skipped ? "true" : "false", w->final ? "true" : "false");
    json_decref(text);
}

/* What can be written by now, or with `all` the rest. */
static void write_words(struct times_file *t, bool all)
{
    if (t->kind != TIMES_JSON) {
        subtitles_write(t, all);
        return;
    }
    for (size_t end = all ? t->n : t->n_settled; t->n_written < end; t->n_written++) {
        write_word(t, &t->words[t->n_written]);
    }
}

void times_file_note(struct times_file *t, utter_reading *reading, double written_s)
{
    uint64_t first;
    size_t n;
    const utter_word *words = utter_reading_words(reading, &first, &n);
    size_t n_told = t->no_memory ? 0 : (size_t)(first - t->first);
    t->n_settled = 0;
    if (n_told + n > t->room) {
        size_t room = n_told + n + t->room / 2 + 64;
        struct timed_word *grown = realloc(t->words, room * sizeof *grown);
        t->no_memory |= !grown;
        if (!grown) {
            return;
        }
        t->words = grown;
        t->room = room;
    }
    t->n = n_told + n;
    for (size_t i = 0; i < n; i++) {
        struct timed_word word = {.source = words[i].at,
            .source_bytes = words[i].bytes,
            .start_s = (double)words[i].start * t->scale,
            .end_s = (double)words[i].end * t->scale,
            .certainty = words[i].certainty,
            .skipped = words[i].skipped,
            .final = words[i].final};
        word.at = written_find(&t->written, word.source, word.source_bytes, &word.bytes);
        t->words[n_told + i] = word;
    }
    for (t->n_settled = n_told; t->n_settled > 0; t->n_settled--) {
        if (t->words[t->n_settled - 1].start_s < written_s) {
            break;
        }
    }
    if (!t->no_memory) {
        write_words(t, false);
        forget(t);
    }
}

void times_file_cut(struct times_file *t, double end_s)
{
    while (t->n > t->n_written && t->words[t->n - 1].start_s >= end_s) {
        t->n--;
    }
    t->n_settled = min(t->n_settled, t->n);
    subtitles_cut(t);
}

int times_file_finish(struct times_file *t, bool approximate)
{
    if (t->no_memory) {
        return fail(2, "out of memory");
    }
    write_words(t, true);
    if (t->kind == TIMES_JSON) {
        fprintf(t->file.lines, "],\"approximate\":%s}\n", approximate ? "true" : "false");
    }
    return text_file_close(&t->file);
}

void times_file_abort(struct times_file *t)
{
    text_file_abort(&t->file);
    written_fini(&t->written);
    free(t->words);
    *t = (struct times_file){0};
}
