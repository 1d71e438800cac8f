/* SPDX-License-Identifier: Apache-2.0
 * Designed voices that stay: a voice-design model speaks a reference, a base model clones it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/api.h"
#include "audio/sound_read.h"
#include "base/memory.h"
#include "base/tables/languages.h"
#include "voice/clone.h"

/* What a reference says when the caller does not care: 5 to 10 seconds of plain statements and a question, so that the
 * voice is heard calm and raised. */
static const struct {
    const char *language, *text;
} references[] = {
    {"english", "The morning train was late again, so we walked along the river instead. "
                "Would you have waited for it?"},
    {"chinese", "早上的火车又晚点了，所以我们沿着河边走了过去。换作是你，你会继续等吗？"},
    {"japanese", "今朝も電車が遅れたので、川沿いを歩いて行きました。あなたなら待ちましたか？"},
    {"korean", "오늘 아침에도 기차가 늦어서 우리는 강을 따라 걸어갔어요. 당신이라면 기다렸을까요?"},
    {"german", "Der Zug heute Morgen hatte wieder Verspätung, also gingen wir am Fluss entlang. "
               "Hättest du auf ihn gewartet?"},
    {"french", "Ce matin, le train était encore en retard, alors nous avons longé la rivière à pied. "
               "Est-ce que tu l'aurais attendu ?"},
    {"russian", "Утренний поезд опять опоздал, поэтому мы пошли пешком вдоль реки. "
                "А ты стал бы его ждать?"},
    {"portuguese", "O comboio da manhã atrasou-se outra vez, por isso fomos a pé ao longo do rio. "
                   "Terias esperado por ele?"},
    {"spanish", "El tren de la mañana llegó tarde otra vez, así que fuimos andando junto al río. "
                "¿Tú lo habrías esperado?"},
    {"italian", "Il treno del mattino era di nuovo in ritardo, così abbiamo camminato lungo il fiume. "
                "Tu lo avresti aspettato?"},
};

/* The part of the work that speaking takes, and frames that a token of text takes, for the progress only. */
static const double speaking_part = 0.8, frames_a_token = 4;

struct design {
    utter_model *designer, *base;
    utter_design_options o;
    const char *text;
    float *pcm;
    size_t n, capacity;
};

void utter_design_options_init_sized(utter_design_options *options, size_t size)
{
    const utter_design_options all = {0};
    api_init_sized(options, size, &all, sizeof all);
}

static utter_status choose_text(struct design *d, utter_error *error)
{
    const char *language =
        d->o.language && strcasecmp(d->o.language, "auto") ? language_name(d->o.language) : "english";
    d->text = d->o.text;
    for (size_t i = 0; !d->text && i < sizeof references / sizeof *references; i++) {
        if (strcasecmp(references[i].language, language) == 0) {
            d->text = references[i].text;
        }
    }
    return d->text ? api_need_text(d->text, "reference text", error)
                   : error_set(error, UTTER_E_ARGUMENT,
                         "no reference text is known for the language \"%.60s\" (give one)", language);
}

static utter_status check_design(struct design *d, const char *instruct, utter_error *error)
{
    const struct config *designer = api_config(d->designer), *base = api_config(d->base);
    utter_status status;
    if (designer->kind != UTTER_MODEL_VOICE_DESIGN) {
        return error_set(error, UTTER_E_ARGUMENT,
            "this %s model cannot design voices (take a VoiceDesign model)", designer->kind_name);
    }
    if (!instruct[strspn(instruct, " \t\r\n")]) {
        return error_set(error, UTTER_E_ARGUMENT, "the description of the voice is empty");
    }
    if ((status = clone_check(d->base->engine.context.model, true, error)) ||
        (status = api_need_text(instruct, "description", error)) ||
        (status = api_need_text(d->o.name, "name", error)) ||
        (status = api_need_text(d->o.language, "language", error))) {
        return status;
    }
    if (designer->codec.sample_rate != base->codec.sample_rate) {
        return error_set(error, UTTER_E_ARGUMENT, "the models speak at %d Hz and listen at %d Hz",
            designer->codec.sample_rate, base->codec.sample_rate);
    }
    return choose_text(d, error);
}

static bool go_on(const struct design *d, double done)
{
    return !d->o.progress || d->o.progress(d->o.progress_user, done);
}

static utter_status cancelled(utter_error *error)
{
    return error_set(error, UTTER_E_CANCELLED, "the design was cancelled");
}

/* Makes room for `more` samples. */
static utter_status reserve(struct design *d, size_t more, utter_error *error)
{
    size_t most = (size_t)(SOUND_MAX_SECONDS * (double)api_config(d->base)->codec.sample_rate);
    if (d->n + more > most) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the reference is longer than %d s (give a shorter text)", (int)SOUND_MAX_SECONDS);
    }
    if (d->n + more > d->capacity) {
        size_t capacity = 2 * d->capacity + more;
        float *pcm = memory_resize(d->pcm, d->capacity, capacity, sizeof *pcm);
        if (!pcm) {
            return error_memory(error, "the reference");
        }
        d->pcm = pcm;
        d->capacity = capacity;
    }
    return UTTER_OK;
}

/* Reads the stream to its end into d->pcm. */
static utter_status take_reference(struct design *d, utter_stream *stream, utter_error *error)
{
    const size_t piece = 4096;
    utter_stream_stats stats = {.size = sizeof stats};
    utter_status status;
    for (;;) {
        size_t n;
        if ((status = reserve(d, piece, error)) ||
            (status = utter_stream_read(stream, d->pcm + d->n, piece, &n, error))) {
            break;
        }
        d->n += n;
        utter_stream_get_stats(stream, &stats);
        double part = stats.n_frames / (stats.n_frames + frames_a_token * stats.n_text_tokens);
        if (!go_on(d, speaking_part * part)) {
            return cancelled(error);
        }
    }
    if (status != UTTER_END) {
        return status;
    }
    utter_stream_get_stats(stream, &stats);
    return stats.finish == UTTER_FINISH_EOS && d->n > 0
               ? UTTER_OK
               : error_set(error, UTTER_E_MODEL,
                     "the model did not end the reference by itself (%s, %.1f s): its sound would not "
                     "match its text (try another seed or text)",
                     utter_finish_text(stats.finish),
                     (double)d->n / (double)api_config(d->base)->codec.sample_rate);
}

static utter_status speak_reference(struct design *d, const char *instruct, utter_error *error)
{
    utter_stream *stream;
    utter_stream_options options;
    utter_stream_options_init(&options, d->designer);
    options.instruct = instruct;
    options.language = d->o.language;
    options.seed = d->o.seed;
    utter_status status = utter_stream_open(&stream, d->designer, &options, error);
    if (status) {
        return status;
    }
    if ((status = utter_stream_text(stream, d->text, strlen(d->text), error)) == UTTER_OK &&
        (status = utter_stream_finish(stream, error)) == UTTER_OK) {
        status = take_reference(d, stream, error);
    }
    utter_stream_free(&stream);
    return status;
}

static bool encoder_progress(void *user, double done)
{
    return go_on(user, speaking_part + (1 - speaking_part) * done);
}

utter_status utter_voice_design(utter_voice **voice, utter_model *designer, const char *instruct,
    utter_model *base, const utter_design_options *options, utter_error *error)
{
    struct design d = {.designer = designer, .base = base};
    char provenance[512], quoted[256];
    utter_status status =
        api_need(voice && designer && instruct && base ? voice : NULL, "an argument", error);
    if (status) {
        return status;
    }
    *voice = NULL;
    utter_design_options_init(&d.o);
    if ((options && (status = api_copy_sized(
                         &d.o, sizeof d.o, options, options->size, "utter_design_options", error))) ||
        (status = check_design(&d, instruct, error)) || (status = engine_check(&base->engine, error)) ||
        (status = speak_reference(&d, instruct, error))) {
        memory_free(d.pcm);
        return status;
    }
    error_quote(quoted, sizeof quoted, instruct, strlen(instruct));
    snprintf(provenance, sizeof provenance, "designed from \"%s\", seed %llu, by utter %s", quoted,
        (unsigned long long)d.o.seed, utter_version_text());
    struct clone_request request = {
        d.o.name ? d.o.name : "designed", d.text, d.o.language, provenance, encoder_progress, &d};
    status = clone_voice(voice, base->engine.context.ops, base->engine.context.backend,
        base->engine.context.model, d.pcm, d.n, &request, error);
    memory_free(d.pcm);
    return engine_keep_failure(&base->engine, status, error);
}
