/* SPDX-License-Identifier: Apache-2.0
 * Model and voices are hashed once, not for each line. */
#include "cli/job/job_lines.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/tables/languages.h"
#include "cli/interrupt.h"
#include "cli/model/checkpoint.h"
#include "cli/report.h"
#include "cli/voice/shared_voices.h"
#include "cli/voice/voice_lookup.h"

utter_status job_model_name(char name[MODEL_NAME], const struct settings *settings, utter_error *error)
{
    char hash[IDENTITY_SIZE];
    const char *folder = checkpoint_folder(settings);
    if (!folder) {
        return error_set(error, UTTER_E_FILE, "there is no such model"); /* which has been told */
    }
    utter_status status = identity_of_model(hash, folder, error);
    snprintf(
        name, MODEL_NAME, "%.16s/%s", hash, settings->weights.text ? settings->weights.text : "stored");
    return status;
}

utter_status job_find_voice(const utter_model *model, const struct settings *settings, const char *name,
    utter_voice **voice, char hash[IDENTITY_SIZE], utter_error *error)
{
    const char *wanted = name[0] ? name : utter_model_voice_name(model, 0);
    *voice = NULL;
    utter_status status = wanted ? voice_find(voice, model, settings, wanted, error) : UTTER_OK;
    if (status && shared_voices_look()) {
        status = voice_find(voice, model, settings, wanted, error);
    }
    status = status || !wanted ? status : utter_voice_fits(*voice, model, error);
    if (status == UTTER_OK) {
        voice_identity(hash, *voice);
    } else {
        utter_voice_free(voice);
    }
    return status;
}

static utter_status hash_voice(
    void *user, const char *name, char hash[IDENTITY_SIZE], utter_error *error)
{
    struct job_lines *l = user;
    utter_voice *voice;
    for (size_t i = 0; i < N_JOB_VOICES && l->voices[i].name; i++) {
        if (strcmp(l->voices[i].name, name) == 0) {
            memcpy(hash, l->voices[i].hash, IDENTITY_SIZE);
            return UTTER_OK;
        }
    }
    utter_status status = job_find_voice(l->model, l->settings, name, &voice, hash, error);
    utter_voice_free(&voice);
    if (status == UTTER_OK) {
        struct job_voice *kept = &l->voices[l->n_voices++ % N_JOB_VOICES];
        memory_free(kept->name);
        kept->name = memory_string(name);
        memcpy(kept->hash, hash, IDENTITY_SIZE);
        return kept->name ? UTTER_OK : error_memory(error, "a voice");
    }
    return status;
}

utter_status job_hash_called(const struct settings *settings, const struct line *line,
    char hash[IDENTITY_SIZE], utter_error *error)
{
    char *spoken = NULL;
    utter_reading_options o;
    utter_reading_options_init(&o);
    o.markup = line_markup(line);
    identity_of_bytes(hash, NULL, 0);
    utter_status status = utter_text_spoken(
        &spoken, line->text, line->text_bytes, &o, line->language, line->voice, NULL, NULL, error);
    status = status ? status : voice_called_identity(hash, spoken, settings, error);
    utter_memory_free(spoken);
    return status;
}

static utter_status hash_called(
    void *user, const struct line *line, char hash[IDENTITY_SIZE], utter_error *error)
{
    const struct job_lines *l = user;
    return job_hash_called(l->settings, line, hash, error);
}

static utter_status check_language(void *user, const char *name, utter_error *error)
{
    const struct job_lines *l = user;
    const char *known;
    for (int i = 0; (known = utter_model_language_name(l->model, i)); i++) {
        if (strcasecmp(known, name) == 0 || strcasecmp(known, language_name(name)) == 0) {
            return UTTER_OK;
        }
    }
    return strcasecmp(name, "auto") == 0 ? UTTER_OK
                                         : error_set(error, UTTER_E_ARGUMENT,
                                               "unknown language \"%s\" (utter info lists the "
                                               "model's)",
                                               name);
}

static bool is_stopped(void)
{
    return interrupt_signal() != 0;
}

static void told(void *user, const char *what, const struct manifest *m)
{
    struct job_lines *l = user;
    report_line((size_t)m->number);
    if (m->number % 64 || !progress_shown() || l->settings->quiet.given ||
        clock_seconds() - l->told_s < 0.2) {
        return;
    }
    l->told_s = clock_seconds();
    progress("%llu lines %s, %.0f %%", (unsigned long long)m->number, what,
        100.0 * (double)m->at / (double)(m->bytes + 1));
}

static void fault(void *user, uint64_t number, const utter_error *error)
{
    (void)user;
    report_line((size_t)number);
    fail_status(error->code, error);
}

int job_lines_told(utter_status status, const utter_error *error)
{
    progress_clear();
    report_line(0);
    return interrupt_signal()   ? fail(128 + interrupt_signal(), "interrupted")
           : status == UTTER_OK ? 0
                                : fail_status(status, error);
}

int job_lines_open(struct job_lines *l, const struct invocation *invocation, bool make)
{
    const struct settings *s = &invocation->settings;
    utter_error error = {0};
    *l = (struct job_lines){.settings = s};
    struct settings plain = *s;
    plain.weights = (struct setting){0}; /* its voices are the same */
    if (s->seed.integer > INT64_MAX) {
        return fail(1, "--seed: a line's is %lld at most", (long long)INT64_MAX);
    }
    if (!interrupt_watch(NULL)) {
        return fail(2, "the system refuses a signal handler");
    }
    utter_status status = manifest_open(&l->job.manifest, invocation->words[0], &error);
    if (status) {
        return fail_status(status, &error);
    }
    int code = checkpoint_look(&l->model, &plain);
    if (code) {
        return code;
    }
    status = job_model_name(l->model_name, s, &error);
    if (status == UTTER_OK && s->results.given) {
        status = results_open(&l->job.results, s->results.text, make, &error);
    }
    if (status) {
        return fail_status(status, &error);
    }
    l->job.rules = (struct line_rules){
        .defaults = {s->voice.text, s->language.text, s->instruct.text,
            s->format.text ? s->format.text : "flac", s->markup.text, s->seed.integer},
        .model = l->model_name,
        .folder = l->job.manifest.folder,
        .check_language = check_language,
        .hash_voice = hash_voice,
        .hash_called = hash_called,
        .user = l};
    l->job.quick = s->quick.given;
    l->job.stop = is_stopped;
    l->job.told = told;
    l->job.fault = fault;
    l->job.user = l;
    if (l->job.results) {
        l->job.results->stop = is_stopped;
    }
    return 0;
}

void job_lines_close(struct job_lines *l)
{
    for (size_t i = 0; i < N_JOB_VOICES; i++) {
        memory_free(l->voices[i].name);
    }
    results_close(&l->job.results);
    manifest_close(&l->job.manifest);
    utter_model_close(&l->model);
}
