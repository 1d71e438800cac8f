/* SPDX-License-Identifier: Apache-2.0
 * utter clone, design and voices mix: recordings, descriptions and other voices -> voice files. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables/languages.h"
#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/speak/output.h"
#include "cli/voice/long_work.h"
#include "cli/voice/readable.h"
#include "cli/voice/voice_lookup.h"

/* Writes the voice where -o says. 0, or an exit code after a message. */
static int save(const utter_voice *voice, const struct settings *settings)
{
    utter_error error = {0};
    utter_status status = utter_voice_save(voice, settings->output.text, &error);
    if (status) {
        return fail_output(status, &error);
    }
    if (!settings->quiet.given && progress_shown()) {
        note("the voice \"%s\" is in %s", utter_voice_name(voice), settings->output.text);
    }
    return 0;
}

static int check_output(const struct invocation *invocation)
{
    const struct setting *output = &invocation->settings.output;
    const char *name = invocation->command->name;
    if (output->given && strcmp(output->text, "-") == 0) {
        return fail(1, "%s: a voice file cannot go to standard output (give a name with -o)", name);
    }
    return output->given ? output_check(output->text)
           : invocation->settings.json.given
               ? 0
               : fail(1, "%s: where should the voice go? (-o NAME.voice)", name);
}

/* ---- clone ---- */

static void tell_heard(const utter_recording *r)
{
    char level[32] = "digital silence";
    if (isfinite(r->rms_db)) {
        snprintf(level, sizeof level, "level %.1f dB", r->rms_db);
    }
    note("heard %.2f s at %d Hz, %d channel%s, %s, peak %.2f, %.2f%% clipped", r->seconds,
        r->sample_rate, r->channels, r->channels == 1 ? "" : "s", level, r->peak, 100 * r->clipped);
}

/* {"frames":N,"codes":[[...], ...],"x_vector":[...]}; no codes for a voice without a transcript. */
static int print_voice_json(const utter_voice *voice)
{
    utter_voice_info info = {.size = sizeof info};
    utter_voice_get_info(voice, &info);
    json_t *object = json_pack("{s:i}", "frames", info.n_frames), *vector = json_array();
    json_t *codes = info.codes ? json_array() : NULL;
    for (int i = 0; codes && i < info.n_frames; i++) {
        json_t *frame = json_array();
        for (int k = 0; k < info.n_codebooks; k++) {
            json_array_append_new(frame, json_integer(info.codes[i * info.n_codebooks + k]));
        }
        json_array_append_new(codes, frame);
    }
    for (int i = 0; i < info.width; i++) {
        json_array_append_new(vector, json_real((double)info.x_vector[i]));
    }
    if (codes) {
        json_object_set_new(object, "codes", codes);
    }
    json_object_set_new(object, "x_vector", vector);
    return report_json(object);
}

/* "3", "3.5s", "1:05" -> seconds. 0, or an exit code after a message. */
static int take_time(double *seconds, const char *option, const struct setting *setting)
{
    *seconds = 0;
    if (!setting->given) {
        return 0;
    }
    const char *at = setting->text;
    char *end;
    double value = strtod(at, &end), minutes = 0;
    if (end > at && *end == ':') {
        minutes = value;
        at = end + 1;
        value = strtod(at, &end);
    }
    end += end > at && *end == 's';
    if (end == at || *end || !(value >= 0 && minutes >= 0 && value + 60 * minutes <= 1e6)) {
        return fail(1, "clone: --%s '%s' is no time (3s, 3.5 and 1:05 are)", option, setting->text);
    }
    *seconds = value + 60 * minutes;
    return 0;
}

static int clone(utter_voice **voice, utter_model *model, const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    struct long_work work;
    struct readable recording;
    char name[256];
    utter_recording heard = {.size = sizeof heard};
    utter_clone_options options;
    utter_error error = {0};
    utter_clone_options_init(&options);
    int code = take_time(&options.from_seconds, "from", &s->from);
    code = code ? code : take_time(&options.to_seconds, "to", &s->to);
    code = code ? code : long_work_begin(&work, "listening", s);
    code = code ? code : readable_open(&recording, invocation->words[0]);
    if (code) {
        return code;
    }
    options.transcript = s->text.text;
    if (s->output.given) {
        voice_stem(name, sizeof name, s->output.text);
    }
    options.name = s->name.given ? s->name.text : s->output.given ? name : NULL;
    options.language = strcmp(s->language.text, "auto") ? language_name(s->language.text) : NULL;
    options.progress = long_work_progress;
    options.progress_user = &work;
    report_alone();
    utter_status status = utter_voice_clone(voice, model, recording.path, &options, &heard, &error);
    report_with_others();
    readable_name_given(&recording, invocation->words[0], &error);
    readable_close(&recording);
    progress_clear();
    if (heard.sample_rate && !s->quiet.given) {
        tell_heard(&heard);
    }
    return long_work_end(status, &error);
}

int command_clone(const struct invocation *invocation)
{
    const struct settings *settings = &invocation->settings;
    utter_model *model = NULL;
    utter_voice *voice = NULL;
    int code = check_output(invocation);
    if (code == 0 && (code = checkpoint_open(&model, settings, 1)) == 0) {
        code = clone(&voice, model, invocation);
    }
    if (code == 0 && settings->output.given) {
        code = save(voice, settings);
    }
    if (code == 0 && settings->json.given) {
        code = print_voice_json(voice);
    }
    utter_voice_free(&voice);
    utter_model_close(&model);
    return code;
}

/* ---- design ---- */

static int design(
    utter_voice **voice, utter_model *designer, utter_model *base, const struct settings *s)
{
    struct long_work work;
    char name[256];
    utter_design_options options;
    utter_error error = {0};
    int code = long_work_begin(&work, "designing", s);
    if (code) {
        return code;
    }
    voice_stem(name, sizeof name, s->output.text);
    utter_design_options_init(&options);
    options.name = s->name.given ? s->name.text : name;
    options.text = s->text.text;
    options.language = s->language.text;
    options.seed = s->seed.integer;
    options.progress = long_work_progress;
    options.progress_user = &work;
    utter_status status = utter_voice_design(voice, designer, s->instruct.text, base, &options, &error);
    return long_work_end(status, &error);
}

int command_design(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    utter_model *designer = NULL, *base = NULL;
    utter_voice *voice = NULL;
    int code = check_output(invocation);
    if (code == 0 && (!s->instruct.given || !s->base.given)) {
        code = fail(1, "design: %s",
            s->instruct.given ? "which base model is it for? (--for DIR)"
                              : "how should the voice sound? (--instruct TEXT)");
    }
    if (code == 0 && (code = checkpoint_open(&designer, s, 1)) == 0 &&
        (code = checkpoint_open_folder(&base, s->base.text, s, 1)) == 0) {
        code = design(&voice, designer, base, s);
    }
    if (code == 0) {
        code = save(voice, s);
    }
    utter_voice_free(&voice);
    utter_model_close(&base);
    utter_model_close(&designer);
    return code;
}

/* ---- mix ---- */

/* "VOICE" or "VOICE:WEIGHT" -> the voice and its weight. 0, or an exit code after a message. */
static int take_part(
    utter_voice **voice, double *weight, const struct settings *settings, const char *word)
{
    char typed[4096];
    const char *colon = strrchr(word, ':');
    char *end = NULL;
    *weight = colon && colon[1] ? strtod(colon + 1, &end) : 1;
    bool weighed = end && !*end;
    size_t n = weighed ? (size_t)(colon - word) : strlen(word);
    *weight = weighed ? *weight : 1;
    if (n == 0 || n >= sizeof typed) {
        return fail(1, "voices mix: '%s' names no voice", word);
    }
    snprintf(typed, sizeof typed, "%.*s", (int)n, word);
    return voice_lookup(voice, NULL, settings, typed);
}

int command_voices_mix(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    size_t n = (size_t)invocation->n_words, n_taken = 0;
    utter_voice **voices = calloc(n, sizeof *voices), *mixed = NULL;
    double *weights = calloc(n, sizeof *weights);
    char name[256];
    utter_error error = {0};
    int code = voices && weights ? check_output(invocation) : fail(2, "out of memory");
    while (code == 0 && n_taken < n) {
        code = take_part(&voices[n_taken], &weights[n_taken], s, invocation->words[n_taken]);
        n_taken += code == 0;
    }
    if (code == 0) {
        voice_stem(name, sizeof name, s->output.text);
        utter_status status = utter_voice_mix(&mixed, (const utter_voice *const *)voices, weights, n,
            s->name.given ? s->name.text : name, &error);
        code = status ? fail_status(status, &error) : save(mixed, s);
    }
    utter_voice_free(&mixed);
    for (size_t i = 0; i < n_taken; i++) {
        utter_voice_free(&voices[i]);
    }
    free(voices);
    free(weights);
    return code;
}
