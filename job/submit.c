/* SPDX-License-Identifier: Apache-2.0
 * Passes over a manifest: one that checks, one that acts. */
#include "job/submit.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "job/ids.h"

enum { MOST_FAULTS = 20 };

/* What is done with a line whose result has been looked up. */
struct act {
    struct job *job;
    struct queue *queue;
    struct file_out *list;
    const char *folder;
    struct job_counts *counts;
};

static utter_status stopped(utter_error *error)
{
    return error_set(error, UTTER_E_CANCELLED, "interrupted");
}

/* What is wrong with the line itself, or with what it names. */
static bool is_its_own(utter_status status)
{
    return status == UTTER_E_ARGUMENT || status == UTTER_E_FILE || status == UTTER_E_MODEL;
}

/* ---- The check ---- */

/* All that submitting it does, but for the queue. */
static utter_status check_line(struct job *job, struct ids *ids, size_t bytes, utter_error *error)
{
    struct line line;
    char key[IDENTITY_SIZE], *wire = NULL;
    utter_status status = line_parse(&line, &job->rules.defaults, job->manifest.line, bytes, error);
    status = status ? status : line_complete(&line, &job->rules, key, &wire, error);
    status = status ? status : ids_add(ids, line.id, job->manifest.number, error);
    memory_plain_free(wire);
    line_free(&line);
    return status;
}

static utter_status check_lines(struct job *job, struct ids *ids, utter_error *error)
{
    utter_status status;
    size_t bytes, n_faults = 0;
    uint64_t n_lines = 0;
    while ((status = manifest_next(&job->manifest, &bytes, error)) == UTTER_OK) {
        if (job->stop()) {
            return stopped(error);
        }
        n_lines++;
        job->told(job->user, "checked", &job->manifest);
        status = check_line(job, ids, bytes, error);
        if (status && !is_its_own(status)) {
            return status;
        }
        if (status) {
            job->fault(job->user, job->manifest.number, error);
            if (++n_faults == MOST_FAULTS) {
                break;
            }
        }
    }
    if (status < 0 && n_faults == 0) {
        return status;
    }
    if (n_faults > 0) {
        return error_set(error, UTTER_E_ARGUMENT, "%s: %s%zu lines are wrong; nothing was submitted",
            job->manifest.path, n_faults == MOST_FAULTS ? "at least " : "", n_faults);
    }
    return n_lines
               ? UTTER_OK
               : error_set(error, UTTER_E_ARGUMENT, "%s: there is no line in it", job->manifest.path);
}

utter_status job_check(struct job *job, utter_error *error)
{
    struct ids *ids = NULL;
    utter_status status = ids_new(&ids, error);
    status = status ? status : check_lines(job, ids, error);
    if (status == UTTER_OK && (status = ids_check(ids, error))) {
        const utter_error why = *error;
        error_set(error, status, "%s: %s", job->manifest.path, why.text);
    }
    ids_free(ids);
    manifest_rewind(&job->manifest);
    return status;
}

/* ---- Every line, with its result ---- */

typedef utter_status act_fn(struct act *act, const struct line *line, const char *key, const char *wire,
    enum result_state state, json_t *about, utter_error *error);

static void count_result(struct job_counts *counts, enum result_state state, json_t *about)
{
    utter_error ignored;
    struct json_fields f = {.object = about, .where = "a result", .error = &ignored};
    counts->lines++;
    if (state == RESULT_DONE) {
        counts->done++;
        counts->not_whole += strcmp(json_take_string(&f, "status", ""), "not_whole") == 0;
        counts->seconds += json_take_number(&f, "seconds", 0, 1e9, 0);
    } else if (state == RESULT_FAILED) {
        counts->failed++;
    }
}

static utter_status one_line(struct act *act, act_fn *fn, size_t bytes, utter_error *error)
{
    struct job *job = act->job;
    struct line line;
    char key[IDENTITY_SIZE], *wire = NULL;
    enum result_state state = RESULT_NONE;
    json_t *about = NULL;
    utter_status status = line_parse(&line, &job->rules.defaults, job->manifest.line, bytes, error);
    const bool parsed = status == UTTER_OK;
    status = status ? status : line_complete(&line, &job->rules, key, &wire, error);
    if (is_its_own(status)) {
        job->fault(job->user, job->manifest.number, error);
        if (parsed && !act->queue) { /* its file is gone, or its voice: the others have their results */
            about = json_pack("{s:s,s:s}", "status", "missing", "error", error->text);
            status = UTTER_OK;
        } else {
            status = error_set(error, status, "%s: %s", job->manifest.path,
                act->queue ? "has changed since it was checked" : "is not as it was submitted");
        }
    } else if (status == UTTER_OK && job->results) {
        /* What is only to be known as done costs no question to a store that has been looked at. */
        bool wants_about = !act->queue || !job->quick || !job->results->is_far;
        status = result_look(job->results, key, job->quick, &state, wants_about ? &about : NULL, error);
    }
    if (status == UTTER_OK) {
        count_result(act->counts, state, about);
        status = fn(act, &line, key, wire, state, about, error);
    }
    json_decref(about);
    memory_plain_free(wire);
    line_free(&line);
    return status;
}

/* A store far away is asked for all of its names first. */
static utter_status look_at_all(struct job *job, utter_error *error)
{
    utter_status status = UTTER_OK;
    uint64_t n_lines = 0;
    size_t bytes;
    if (!job->results || !job->results->calls->look_at_all) {
        return UTTER_OK;
    }
    while ((status = manifest_next(&job->manifest, &bytes, error)) == UTTER_OK) {
        n_lines++;
    }
    manifest_rewind(&job->manifest);
    return status == UTTER_END ? job->results->calls->look_at_all(job->results, n_lines, error)
                               : status;
}

static utter_status all_lines(struct act *act, act_fn *fn, const char *what, utter_error *error)
{
    struct job *job = act->job;
    utter_status status;
    size_t bytes;
    *act->counts = (struct job_counts){0};
    while ((status = manifest_next(&job->manifest, &bytes, error)) == UTTER_OK) {
        if (job->stop()) {
            return stopped(error);
        }
        job->told(job->user, what, &job->manifest);
        if ((status = one_line(act, fn, bytes, error))) {
            return status;
        }
    }
    manifest_rewind(&job->manifest);
    return status == UTTER_END ? UTTER_OK : status;
}

/* ---- Submit ---- */

static utter_status put_line(struct act *act, const struct line *line, const char *key,
    const char *wire, enum result_state state, json_t *about, utter_error *error)
{
    (void)line, (void)about;
    struct job *job = act->job;
    char name[RESULT_NAME];
    utter_status status = UTTER_OK;
    if (state == RESULT_DONE || (state == RESULT_FAILED && !job->retry)) {
        return UTTER_OK;
    }
    if (state == RESULT_FAILED) {
        result_name(name, key, "json");
        status = job->results->calls->drop(job->results, name, error);
    }
    act->counts->missing++;
    return status ? status : act->queue->calls->put(act->queue, key, wire, error);
}

/* A manifest with other options is another submission, which leaves the lines of the first where they are. */
static void submission_name(char name[IDENTITY_SIZE], const struct job *job)
{
    char seed[32];
    const struct line_defaults *d = &job->rules.defaults;
    const char *texts[] = {
        job->rules.model, d->voice, d->language, d->instruct, d->format, d->markup, seed};
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)d->seed);
    identity_of_texts(name, (const char *const[]){job->manifest.path, NULL});
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        identity_of_texts(name, (const char *const[]){name, texts[i] ? texts[i] : "", NULL});
    }
}

utter_status job_submit(
    struct job *job, struct queue *queue, struct job_counts *counts, utter_error *error)
{
    char name[IDENTITY_SIZE];
    struct act act = {.job = job, .queue = queue, .counts = counts};
    submission_name(name, job);
    utter_status status = look_at_all(job, error);
    status = status ? status : queue->calls->begin(queue, name, error);
    status = status ? status : all_lines(&act, put_line, "submitted", error);
    return status ? status : queue->calls->flush(queue, error);
}

/* ---- Collect ---- */

static utter_status list_line(
    struct act *act, const struct line *line, json_t *about, utter_error *error)
{
    json_t *shown = about ? json_copy(about) : json_pack("{s:s}", "status", "missing");
    if (!shown || json_object_set_new(shown, "id", json_string(line->id)) != 0) {
        json_decref(shown);
        json_text_forget();
        return error_memory(error, "a line of results.jsonl");
    }
    json_object_del(shown, "seal");
    char *text = json_text_write(shown, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(shown);
    if (!text) {
        return error_memory(error, "a line of results.jsonl");
    }
    size_t n = strlen(text);
    text[n] = '\n'; /* in place of its zero: the line is one write */
    utter_status status = file_out_write(act->list, text, n + 1, error);
    memory_plain_free(text);
    return status;
}

/* PATH.FORMAT, in a folder that is made. */
static utter_status place_sound(
    char path[PATH_MAX], const char *folder, const struct line *line, utter_error *error)
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, line->id) >= PATH_MAX - 8) {
        return error_set(error, UTTER_E_FILE, "%s: the name is too long", line->id);
    }
    char *slash = strrchr(path, '/');
    *slash = 0;
    utter_status status = file_exists(path) ? UTTER_OK : file_make_folder(path, error);
    bool is_folder = file_is_folder(path);
    *slash = '/';
    snprintf(path + strlen(path), 9, ".%.7s", line->format);
    if (status) {
        return status;
    }
    if (!is_folder || file_is_folder(path)) { /* "a" as a FLAC, and "a.flac/b" */
        return error_set(error, UTTER_E_FILE,
            "\"%s\": %s cannot be written: is the file of one line the folder of another? (choose "
            "other "
            "ids, or another folder)",
            line->id, path);
    }
    return UTTER_OK;
}

static utter_status collect_line(struct act *act, const struct line *line, const char *key,
    const char *wire, enum result_state state, json_t *about, utter_error *error)
{
    (void)wire;
    char name[RESULT_NAME], path[PATH_MAX];
    act->counts->missing += state == RESULT_NONE;
    if (!act->folder) {
        return UTTER_OK;
    }
    if (state == RESULT_DONE) {
        result_name(name, key, line->format);
        struct results *results = act->job->results;
        utter_status status = place_sound(path, act->folder, line, error);
        status = status ? status : results->calls->fetch(results, name, path, error);
        if (status) {
            return status;
        }
    }
    return list_line(act, line, about, error);
}

utter_status job_collect(
    struct job *job, const char *folder, struct job_counts *counts, utter_error *error)
{
    char path[PATH_MAX];
    struct act act = {.job = job, .folder = folder, .counts = counts};
    utter_status status = UTTER_OK;
    if (folder) {
        status = file_make_folder(folder, error);
        status = status ? status : file_join(path, sizeof path, folder, "results.jsonl", error);
        status = status ? status : file_out_open(&act.list, path, error);
    }
    if (status) {
        return status;
    }
    status = look_at_all(job, error);
    status = status ? status : all_lines(&act, collect_line, folder ? "collected" : "looked at", error);
    if (status) {
        file_out_abort(&act.list);
        return status;
    }
    return file_out_close(&act.list, error);
}
