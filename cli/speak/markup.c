/* SPDX-License-Identifier: Apache-2.0
 * The options of what a text asks for. */
#include "cli/speak/markup.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/report.h"
#include "cli/speak/text_source.h"
#include "cli/voice/voice_lookup.h"

/* A file of text whole. */
static int read_file(char **text, const char *path)
{
    struct text_source source;
    const struct command command = {.name = "say"};
    const struct invocation invocation = {
        .command = &command, .settings.file = {.given = true, .text = path}};
    int code = text_source_open(&source, &invocation);
    code = code ? code : text_source_read_all(&source);
    text_source_close(&source);
    *text = source.text;
    if (code == 0 && memchr(source.text, 0, source.bytes)) {
        return fail(1, "%s: this is no text", path);
    }
    return code;
}

/* A utter_find_voice_fn; why there is none has been told. */
static utter_status find_voice(void *user, const char *name, utter_voice **voice, utter_error *error)
{
    const struct markup *m = user;
    return voice_lookup(voice, m->model, m->settings, name) == 0
               ? UTTER_OK
               : error_set(error, UTTER_E_ARGUMENT, "the text calls for the voice \"%s\"", name);
}

int markup_open(struct markup *m, utter_reading_options *options, const struct settings *s,
    const utter_model *model)
{
    static const char *const kinds[] = {"none", "auto", "tags", "ssml"};
    int code = s->cast.given ? read_file(&m->cast, s->cast.text) : 0;
    code = code || !s->lexicon.given ? code : read_file(&m->lexicon, s->lexicon.text);
    for (int i = 0; i < 4; i++) {
        if (strcmp(s->markup.text, kinds[i]) == 0) {
            options->markup = i;
        }
    }
    m->settings = s;
    m->model = model;
    options->cast = m->cast;
    options->lexicon = m->lexicon;
    options->spell_out = s->spell_out.given;
    options->carry = s->carry.given;
    options->find_voice = find_voice;
    options->find_voice_user = m;
    return code;
}

void markup_close(struct markup *m)
{
    free(m->cast);
    free(m->lexicon);
    *m = (struct markup){0};
}

bool markup_is_forgotten(const char *text, size_t n)
{
    static const char *const begins[] = {"<speak>", "<speak ", "<?xml"};
    size_t at = 0;
    while (at < n && strchr(" \t\r\n", text[at])) {
        at++;
    }
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        size_t length = strlen(begins[i]);
        if (n - at >= length && memcmp(text + at, begins[i], length) == 0) {
            return true;
        }
    }
    return false;
}
