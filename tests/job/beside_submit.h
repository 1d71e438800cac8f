/* SPDX-License-Identifier: Apache-2.0
 * A job on folders of its own, for tests of passes over its manifest. */
#ifndef TESTS_JOB_BESIDE_SUBMIT_H
#define TESTS_JOB_BESIDE_SUBMIT_H

#include "tests/support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "job/submit.h"

static struct {
    int stops_at; /* the line at which it is stopped; 0: none */
    int n_stops, n_told, n_faults;
    uint64_t faulty[64];
    char faults[64][512];
    char what[32];
} heard;

static inline bool stop(void)
{
    return ++heard.n_stops == heard.stops_at;
}

static inline void told(void *user, const char *what, const struct manifest *manifest)
{
    assert_ptr_equal(user, &heard);
    assert_true(manifest->number > 0);
    heard.n_told++;
    snprintf(heard.what, sizeof heard.what, "%s", what);
}

static inline void fault(void *user, uint64_t number, const utter_error *error)
{
    assert_ptr_equal(user, &heard);
    assert_true(heard.n_faults < 64);
    heard.faulty[heard.n_faults] = number;
    snprintf(heard.faults[heard.n_faults++], sizeof heard.faults[0], "%.500s", error->text);
}

static utter_status language_status;

static inline utter_status check_language(void *user, const char *name, utter_error *error)
{
    (void)user;
    return language_status ? error_set(error, language_status, "%s: unknown", name) : UTTER_OK;
}

static inline utter_status hash_voice(
    void *user, const char *name, char hash[IDENTITY_SIZE], utter_error *error)
{
    (void)user, (void)error;
    identity_of_bytes(hash, name, strlen(name));
    return UTTER_OK;
}

static inline utter_status hash_called(
    void *user, const struct line *line, char hash[IDENTITY_SIZE], utter_error *error)
{
    (void)user, (void)line, (void)error;
    identity_of_bytes(hash, "", 0);
    return UTTER_OK;
}

/* A job about these lines, in a folder that is made. */
static inline void begin(struct job *job, const char *folder, const char *lines)
{
    char path[256];
    memset(&heard, 0, sizeof heard);
    language_status = UTTER_OK;
    mkdir(support_path(folder), 0700);
    snprintf(path, sizeof path, "%s/lines", folder);
    support_write_file(support_path(path), lines, strlen(lines));
    *job = (struct job){.rules = {.defaults = {.format = "wav"},
                            .model = "a model",
                            .folder = support_path(folder),
                            .check_language = check_language,
                            .hash_voice = hash_voice,
                            .hash_called = hash_called},
        .stop = stop,
        .told = told,
        .fault = fault,
        .user = &heard};
    assert_int_equal(manifest_open(&job->manifest, support_path(path), NULL), UTTER_OK);
    snprintf(path, sizeof path, "%s/results", folder);
    assert_int_equal(results_open(&job->results, support_path(path), true, NULL), UTTER_OK);
}

static inline void end(struct job *job)
{
    manifest_close(&job->manifest);
    results_close(&job->results);
}

static inline struct queue *queue_of(const char *folder)
{
    char path[256];
    struct queue *queue;
    snprintf(path, sizeof path, "%s/queue", folder);
    assert_int_equal(queue_open(&queue, support_path(path), true, NULL), UTTER_OK);
    return queue;
}

/* Gives the line of this text a result: a sound, or with NULL a failure. */
static inline void give(struct job *job, const char *text, const char *status, const char *sound)
{
    char key[IDENTITY_SIZE], hash[IDENTITY_SIZE], name[RESULT_NAME], path[PATH_MAX], *wire;
    struct line line;
    assert_int_equal(line_parse(&line, &job->rules.defaults, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(line_complete(&line, &job->rules, key, &wire, NULL), UTTER_OK);
    json_t *about = json_pack("{s:s,s:s,s:s}", "id", "of another", "key", key, "status", status);
    if (sound) {
        identity_of_bytes(hash, sound, strlen(sound));
        json_object_set_new(about, "sha256", json_string(hash));
        json_object_set_new(about, "bytes", json_integer((json_int_t)strlen(sound)));
        json_object_set_new(about, "format", json_string(line.format));
        json_object_set_new(about, "third", json_real(1.0 / 3));
        json_object_set_new(about, "seconds", json_real(1.5));
        result_name(name, key, line.format);
        assert_int_equal(job->results->calls->place(job->results, name, path, NULL), UTTER_OK);
        support_write_file(path, sound, strlen(sound));
    } else {
        json_object_set_new(about, "error", json_string("it would not"));
    }
    assert_int_equal(result_tell(job->results, key, about, NULL), UTTER_OK);
    json_decref(about);
    memory_plain_free(wire);
    line_free(&line);
}

static inline void assert_counts(const struct job_counts *c, uint64_t lines, uint64_t done,
    uint64_t not_whole, uint64_t failed, uint64_t missing)
{
    assert_int_equal(c->lines, lines);
    assert_int_equal(c->done, done);
    assert_int_equal(c->not_whole, not_whole);
    assert_int_equal(c->failed, failed);
    assert_int_equal(c->missing, missing);
    assert_true(c->seconds == 1.5 * (double)done);
}

/* What the manifest's error begins with. */
static inline void assert_error(const struct job *job, const utter_error *error, const char *rest)
{
    char wanted[PATH_MAX + 256];
    snprintf(wanted, sizeof wanted, "%s: %s", job->manifest.path, rest);
    assert_string_equal(error->text, wanted);
}

#define ONE "{\"id\":\"one\",\"text\":\"One.\"}"
#define TWO "{\"id\":\"b/two\",\"text\":\"Two.\",\"format\":\"flac\"}"
#define THREE "{\"id\":\"three\",\"text\":\"Three.\"}"
#define FOUR "{\"id\":\"four\",\"text\":\"Four.\"}"
#define FIVE "{\"id\":\"five\",\"text\":\"Five.\"}"

#endif
