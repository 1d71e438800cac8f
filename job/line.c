/* SPDX-License-Identifier: Apache-2.0
 * JSON by jansson; the table of fields. */
#include "job/line.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/tables/nearest.h"

/* Counted up by whoever changes what sound a line has (src/reading, src/engine): results of before are then made
 * again, instead of standing beside others. */
static const char sound_rule[] = "line 1";

static const char *const field_names[] = {
    "id", "text", "file", "voice", "language", "instruct", "seed", "format", "markup", "words"};
enum { N_FIELDS = sizeof field_names / sizeof *field_names };

static const char *const formats[] = {"wav", "flac", "ogg", "opus", "mp3", "raw", NULL};
static const char *const markups[] = {"none", "auto", "tags", "ssml", NULL}; /* by UTTER_MARKUP_ */

static int place_of(const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(word, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

int line_markup(const struct line *line)
{
    return line->markup ? place_of(line->markup, markups) : 0;
}

static utter_status refuse_unknown(const json_t *object, utter_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (place_of(key, (const char *const[]){"id", "text", "file", "voice", "language", "instruct",
                              "seed", "format", "markup", "words", NULL}) < 0) {
            const char *near = nearest_name(key, field_names, N_FIELDS);
            return error_set(error, UTTER_E_ARGUMENT, "there is no field \"%s\"%s%s%s", key,
                near ? " (did you mean \"" : " (", near ? near : "utter job --help lists them",
                near ? "\"?)" : ")");
        }
    }
    return UTTER_OK;
}

/* An id names a file: parts between slashes, none of which is hidden. */
static utter_status check_id(const char *id, utter_error *error)
{
    enum { MOST_ID = 1000, MOST_PART = 200 };
    size_t n = strlen(id);
    bool good = n <= MOST_ID;
    for (const char *part = id; good && part;) {
        size_t length = strcspn(part, "/");
        good = length > 0 && length <= MOST_PART && part[0] != '.';
        for (size_t i = 0; i < length; i++) {
            good = good && (unsigned char)part[i] >= ' ' && part[i] != 127;
        }
        part = part[length] ? part + length + 1 : NULL;
    }
    return good ? UTTER_OK
                : error_set(error, UTTER_E_ARGUMENT,
                      "\"id\" cannot name a file: it has parts of 1 to %d bytes between slashes, none "
                      "of "
                      "which begins with a dot",
                      MOST_PART);
}

static utter_status check_words(const struct line *line, utter_error *error)
{
    if (line->format && place_of(line->format, formats) < 0) {
        return error_set(error, UTTER_E_ARGUMENT,
            "\"format\": \"%s\" is none of wav, flac, ogg, opus, mp3, raw", line->format);
    }
    if (line->markup && place_of(line->markup, markups) < 0) {
        return error_set(error, UTTER_E_ARGUMENT,
            "\"markup\": \"%s\" is none of none, auto, tags, ssml", line->markup);
    }
    return UTTER_OK;
}

static utter_status check_text(const char *text, size_t bytes, const char *whose, utter_error *error)
{
    if (bytes > LINE_TEXT) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s has %zu bytes, and a line %d at most (make several lines of it)", whose, bytes,
            LINE_TEXT);
    }
    return text[strspn(text, " \t\r\n")]
               ? UTTER_OK
               : error_set(error, UTTER_E_ARGUMENT, "%s is empty: there is nothing to speak", whose);
}

/* The fields that both kinds of line have. */
static void take_fields(struct line *line, struct json_fields *f, const struct line_defaults *d)
{
    line->id = json_need_string(f, "id");
    line->text = json_take_string(f, "text", NULL);
    line->text_bytes = line->text ? strlen(line->text) : 0;
    line->voice = json_take_string(f, "voice", d->voice);
    line->language = json_take_string(f, "language", d->language);
    line->instruct = json_take_string(f, "instruct", d->instruct);
    line->format = json_take_string(f, "format", d->format);
    line->markup = json_take_string(f, "markup", d->markup);
    line->seed = (uint64_t)json_take_int(f, "seed", 0, INT64_MAX, (int64_t)(d->seed & INT64_MAX));
    line->words = json_take_bool(f, "words", false);
}

utter_status line_parse(struct line *line, const struct line_defaults *defaults, const char *text,
    size_t bytes, utter_error *error)
{
    *line = (struct line){0};
    utter_status status = json_text(&line->object, text, bytes, JSON_SMALL, "the line", error);
    if (status) {
        return status;
    }
    if (!json_is_object(line->object)) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the line is no object (it should be like {\"id\": \"hello\", \"text\": \"Hello "
            "there.\"})");
    }
    struct json_fields f = {.object = line->object, .where = "the line", .error = error};
    if ((status = refuse_unknown(line->object, error))) {
        return status;
    }
    take_fields(line, &f, defaults);
    line->file = json_take_string(&f, "file", NULL);
    if (f.status) {
        return f.status;
    }
    if (!line->text == !line->file) {
        return error_set(error, UTTER_E_ARGUMENT, "%s of \"text\" and \"file\" (give one of them)",
            line->text ? "it has both" : "it has none");
    }
    status = check_id(line->id, error);
    status = status ? status : check_words(line, error);
    return status || !line->text ? status : check_text(line->text, line->text_bytes, "\"text\"", error);
}

utter_status line_path(
    const struct line *line, const char *folder, char path[PATH_MAX], utter_error *error)
{
    if (line->file[0] != '/') {
        return file_join(path, PATH_MAX, folder, line->file, error);
    }
    return snprintf(path, PATH_MAX, "%s", line->file) < PATH_MAX
               ? UTTER_OK
               : error_set(error, UTTER_E_FILE, "\"file\": the name is too long");
}

static utter_status read_text(struct line *line, const char *folder, utter_error *error)
{
    char path[PATH_MAX];
    utter_status status = line_path(line, folder, path, error);
    status =
        status ? status : file_read(path, LINE_TEXT, &line->text_of_file, &line->text_bytes, error);
    if (status) {
        return status;
    }
    line->text = line->text_of_file;
    json_t *checked = json_stringn(line->text, line->text_bytes);
    bool good = checked && strlen(line->text) == line->text_bytes;
    json_decref(checked);
    if (!good) {
        return error_set(error, UTTER_E_FILE, "%s: is no text in UTF-8", path);
    }
    return check_text(line->text, line->text_bytes, path, error);
}

utter_status line_complete(struct line *line, const struct line_rules *rules, char key[IDENTITY_SIZE],
    char **wire, utter_error *error)
{
    char seed[32], voice[IDENTITY_SIZE], called[IDENTITY_SIZE] = "";
    utter_status status = line->file ? read_text(line, rules->folder, error) : UTTER_OK;
    if (status == UTTER_OK && line->language) {
        status = rules->check_language(rules->user, line->language, error);
    }
    status =
        status ? status : rules->hash_voice(rules->user, line->voice ? line->voice : "", voice, error);
    if (status == UTTER_OK && line_markup(line) != UTTER_MARKUP_NONE) {
        status = rules->hash_called(rules->user, line, called, error);
    }
    if (status) {
        return status;
    }
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)line->seed);
    identity_of_texts(
        key, (const char *const[]){sound_rule, rules->model, voice, called,
                 line->language ? line->language : "", line->instruct ? line->instruct : "", seed,
                 line->format, line->markup ? line->markup : "", line->words ? "words" : "", line->text,
                 NULL});
    json_t *object = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s*,s:s*,s:s*,s:I,s:s,s:s*,s:b,s:s%}", "key", key,
        "id", line->id, "model", rules->model, "voice_hash", voice, "called_hash", called, "voice",
        line->voice, "language", line->language, "instruct", line->instruct, "seed",
        (json_int_t)line->seed, "format", line->format, "markup", line->markup, "words", line->words,
        "text", line->text, line->text_bytes);
    *wire = json_text_write(object, JSON_COMPACT);
    json_decref(object);
    if (*wire && strlen(*wire) > LINE_WIRE) {
        return error_set(error, UTTER_E_ARGUMENT,
            "text and fields have %zu bytes as JSON, and a line %d at most (make several lines of it)",
            strlen(*wire), LINE_WIRE);
    }
    return *wire ? UTTER_OK : error_memory(error, "a line");
}

utter_status line_take(struct line *line, const char *wire, size_t bytes, utter_error *error)
{
    static const struct line_defaults none = {0};
    *line = (struct line){0};
    utter_status status =
        json_text(&line->object, wire, bytes, JSON_SMALL, "a line of the queue", error);
    if (status) {
        return status;
    }
    struct json_fields f = {.object = line->object, .where = "a line of the queue", .error = error};
    take_fields(line, &f, &none);
    line->model = json_need_string(&f, "model");
    line->voice_hash = json_need_string(&f, "voice_hash");
    line->called_hash = json_need_string(&f, "called_hash");
    if (f.status == UTTER_OK && (!line->text || !line->format)) {
        return error_set(error, UTTER_E_FILE, "a line of the queue is damaged (submit again)");
    }
    return f.status ? f.status : check_words(line, error);
}

void line_free(struct line *line)
{
    json_decref(line->object);
    memory_free(line->text_of_file);
    *line = (struct line){0};
}
