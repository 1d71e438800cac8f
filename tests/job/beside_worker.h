/* SPDX-License-Identifier: Apache-2.0
 * What a worker works with, for tests of it: a queue in memory, a speaker that makes silence, and a clock that goes on
 * where a test lets it. */
#ifndef TESTS_JOB_BESIDE_WORKER_H
#define TESTS_JOB_BESIDE_WORKER_H

#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "job/worker.h"
#include "job/worker_parts.h"

enum { RATE = 8000, MOST_LINES = 24 };

/* ---- The clock ---- */

static double ahead_s; /* of when the first question came; time passes by what a test adds */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    static struct timespec first;
    int result = first.tv_sec ? 0 : __real_clock_gettime(clock, &first);
    long long ns = first.tv_nsec + (long long)(1e9 * ahead_s);
    *now = (struct timespec){first.tv_sec + ns / 1000000000, ns % 1000000000};
    return result;
}

/* ---- The queue ---- */

enum record_state { WAITS, CLAIMED, DONE, FAILED };

static struct record_of {
    char key[IDENTITY_SIZE];
    enum record_state state;
    int tries, deaths;
    int n_claims, n_extends, n_backs;
    char wire[1024];
} lines[MOST_LINES];

static struct {
    int n_lines;
    int n_claims, most_claimed, n_counts;
    int claimed_by_others; /* so many counts say that somebody else has a line */
    utter_status claim_status, count_status, done_status;
} queue_is;

static inline utter_status claim(struct queue *queue, struct claim *claimed, utter_error *error)
{
    (void)queue;
    queue_is.n_claims++;
    if (queue_is.claim_status) {
        return error_set(error, queue_is.claim_status, "no claim");
    }
    int n = 0;
    for (int i = 0; i < queue_is.n_lines; i++) {
        n += lines[i].state == CLAIMED;
    }
    for (int i = 0; i < queue_is.n_lines; i++) {
        struct record_of *l = &lines[i];
        if (l->state == WAITS) {
            l->state = CLAIMED;
            l->n_claims++;
            *claimed = (struct claim){.wire = l->wire,
                .bytes = strlen(l->wire),
                .tries = l->tries,
                .deaths = l->deaths,
                .place = l};
            memcpy(claimed->key, l->key, IDENTITY_SIZE);
            queue_is.most_claimed = n + 1 > queue_is.most_claimed ? n + 1 : queue_is.most_claimed;
            return UTTER_OK;
        }
    }
    return UTTER_AGAIN;
}

static inline utter_status extend(struct queue *queue, struct claim *claimed, utter_error *error)
{
    (void)queue, (void)error;
    struct record_of *l = claimed->place;
    assert_non_null(l);
    assert_int_equal(l->state, CLAIMED);
    l->n_extends++;
    return UTTER_OK;
}

static inline utter_status done(
    struct queue *queue, struct claim *claimed, bool failed, utter_error *error)
{
    (void)queue;
    struct record_of *l = claimed->place;
    assert_int_equal(l->state, CLAIMED);
    l->state = failed ? FAILED : DONE;
    return queue_is.done_status ? error_set(error, queue_is.done_status, "not done") : UTTER_OK;
}

static inline utter_status back(
    struct queue *queue, struct claim *claimed, bool failed, utter_error *error)
{
    (void)queue, (void)error;
    struct record_of *l = claimed->place;
    assert_int_equal(l->state, CLAIMED);
    l->state = WAITS;
    l->tries = claimed->tries + failed;
    l->deaths = claimed->deaths;
    l->n_backs++;
    return UTTER_OK;
}

static inline utter_status count(struct queue *queue, struct queue_counts *counts, utter_error *error)
{
    (void)queue;
    *counts = (struct queue_counts){.claimed = queue_is.n_counts++ < queue_is.claimed_by_others};
    for (int i = 0; i < queue_is.n_lines; i++) {
        counts->waiting += lines[i].state == WAITS;
        counts->claimed += lines[i].state == CLAIMED;
    }
    return queue_is.count_status ? error_set(error, queue_is.count_status, "no count") : UTTER_OK;
}

static const struct queue_calls queue_calls = {
    .claim = claim, .extend = extend, .done = done, .back = back, .count = count};

/* A line that waits. Its text begins with how many frames it takes, and may say what happens at the last of them. */
static inline void add_rest(int key, const char *text, const char *rest)
{
    int number = queue_is.n_lines++;
    struct record_of *l = &lines[number];
    char of_key[IDENTITY_SIZE];
    *l = (struct record_of){.state = WAITS};
    snprintf(of_key, sizeof of_key, "%03u%061u", (unsigned)key % 1000, (unsigned)key % 1000);
    memcpy(l->key, of_key, sizeof of_key);
    snprintf(l->wire, sizeof l->wire,
        "{\"key\":\"%s\",\"id\":\"line%d\",\"model\":\"m\",\"voice_hash\":\"\",\"called_hash\":\"\","
        "\"format\":\"wav\",\"text\":\"%s\"%s}",
        of_key, number, text, rest);
}

static inline void add(int key, const char *text)
{
    add_rest(key, text, "");
}

/* ---- The speaker ---- */

static struct results *results;

/* The result that another worker has made of a line meanwhile. */
static inline void give_result(const char *key)
{
    char name[RESULT_NAME], path[PATH_MAX], hash[IDENTITY_SIZE];
    identity_of_bytes(hash, "sound", 5);
    result_name(name, key, "wav");
    assert_int_equal(results->calls->place(results, name, path, NULL), UTTER_OK);
    support_write_file(path, "sound", 5);
    json_t *about = json_pack("{s:s,s:s,s:s,s:s,s:i}", "key", key, "status", "done", "format", "wav",
        "sha256", hash, "bytes", 5);
    assert_int_equal(result_tell(results, key, about, NULL), UTTER_OK);
    json_decref(about);
}

enum { FRAME = 80 };

struct made {
    int left;
    const char *then;
};

static struct {
    int n_begun, n_dropped, now, most_now, lanes[MOST_LINES], n_steps;
    char order[256]; /* ids, as they were begun */
    bool away;       /* what says so will not be made now */
    double step_s;   /* what a step takes */
    utter_status step_status;
} spoken;

static struct speaker speaker;

static inline utter_status speaker_begin(
    struct speaker *s, struct slot *slot, int lanes, utter_error *error)
{
    static struct made kept[4 * MOST_LINES];
    assert_ptr_equal(s, &speaker);
    char *end;
    struct made *m = &kept[spoken.n_begun];
    spoken.lanes[spoken.n_begun++ % MOST_LINES] = lanes;
    m->left = (int)strtol(slot->line.text, &end, 10);
    m->then = end + strspn(end, " ");
    strcat(strcat(spoken.order, spoken.order[0] ? " " : ""), slot->line.id + 4);
    if (strcmp(m->then, "misfit") == 0) {
        speaker.misfit = true;
        return error_set(error, UTTER_E_ARGUMENT, "another's");
    }
    if (strcmp(m->then, "refuse") == 0) {
        return error_set(error, UTTER_E_ARGUMENT, "refused");
    }
    slot->making = m;
    spoken.now++;
    spoken.most_now = spoken.now > spoken.most_now ? spoken.now : spoken.most_now;
    return UTTER_OK;
}

static inline utter_status speaker_step(struct speaker *s, utter_error *error)
{
    (void)s;
    spoken.n_steps++;
    ahead_s += spoken.step_s;
    return spoken.step_status ? error_set(error, spoken.step_status, "no step") : UTTER_OK;
}

static inline void speaker_drop(struct speaker *s, struct slot *slot)
{
    (void)s;
    spoken.now -= slot->making != NULL;
    spoken.n_dropped += slot->making != NULL;
    slot->making = NULL;
}

static inline utter_status speaker_take(struct speaker *s, struct slot *slot, utter_error *error)
{
    static const float silence[FRAME];
    struct made *m = slot->making;
    assert_non_null(m);
    assert_int_equal(slot_sound(slot, silence, FRAME, error), UTTER_OK);
    if (--m->left > 0) {
        return UTTER_OK;
    }
    static const struct {
        const char *word;
        utter_status status;
    } ends[] = {{"argument", UTTER_E_ARGUMENT}, {"file", UTTER_E_FILE}, {"memory", UTTER_E_MEMORY},
        {"device", UTTER_E_DEVICE}, {"io", UTTER_E_IO}, {"cancelled", UTTER_E_CANCELLED},
        {"internal", UTTER_E_INTERNAL}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (strcmp(m->then, ends[i].word) == 0) {
            return error_set(error, ends[i].status, "the %s", ends[i].word);
        }
    }
    if (strcmp(m->then, "other") == 0) {
        give_result(slot->claim.key);
    }
    if (strcmp(m->then, "away") == 0 && spoken.away) {
        spoken.away = false;
        return UTTER_AGAIN;
    }
    slot->stats = (utter_reading_stats){.size = sizeof slot->stats,
        .finish = UTTER_FINISH_EOS,
        .n_pieces = 3,
        .n_retries = 2,
        .n_broken = strcmp(m->then, "broken") == 0};
    if (slot->line.words) {
        for (uint64_t first = 0; first < 2;
             first++) { /* the second tells again of the first one's last */
            utter_word *w = slot_words(slot, first, 2, error);
            assert_non_null(w);
            w[0] =
                (utter_word){.at = 2 * first, .bytes = 1, .start = 80 * first, .end = 80 * first + 40};
            w[1] = (utter_word){
                .at = 2 * first + 2, .bytes = 1, .start = 160, .end = 240, .skipped = true};
            w[1].certainty = 0.5F;
        }
    }
    slot->stats.words_approximate = strcmp(m->then, "exact") != 0;
    speaker_drop(s, slot);
    return UTTER_END;
}

static const struct speaker_calls speaker_calls = {
    speaker_begin, speaker_step, speaker_take, speaker_drop, NULL};

/* ---- The worker ---- */

static struct {
    int stops_at; /* the question at which it is stopped; 0: never */
    bool stays;   /* also where nothing waits any more */
    int n_stops, n_rests, n_told;
    int first_claims; /* questions for a line before the first step ended */
    double rests_s;
    char notes[1024];
} heard;

static inline bool stop(void)
{
    return ++heard.n_stops == heard.stops_at;
}

static inline void told_of(void *user, const struct worker_told *t)
{
    assert_ptr_equal(user, &heard);
    assert_non_null(t);
    heard.first_claims = heard.n_told++ ? heard.first_claims : queue_is.n_claims;
}

static inline void note_try(void *user, const char *id, const char *reason, int tries)
{
    assert_ptr_equal(user, &heard);
    size_t n = strlen(heard.notes);
    snprintf(heard.notes + n, sizeof heard.notes - n, "%s: %s: %d\n", id, reason, tries);
}

static inline void rest(void *user)
{
    assert_ptr_equal(user, &heard);
    heard.n_rests++;
    ahead_s += heard.rests_s;
}

static struct worker_told told;
static utter_error why;

/* A folder for results, a speaker of so many lanes, and no lines. */
static inline void begin(const char *folder, int lanes)
{
    memset(&queue_is, 0, sizeof queue_is);
    memset(&spoken, 0, sizeof spoken);
    memset(&heard, 0, sizeof heard);
    memset(&why, 0, sizeof why);
    heard.rests_s = 1;
    speaker = (struct speaker){&speaker_calls, lanes, RATE, false};
    assert_int_equal(results_open(&results, support_path(folder), true, NULL), UTTER_OK);
}

static inline utter_status work(void)
{
    struct queue queue = {&queue_calls, 0.5};
    const struct worker_settings settings = {.speaker = &speaker,
        .queue = &queue,
        .results = results,
        .most_tries = 3,
        .until_empty = !heard.stays,
        .stop = stop,
        .told = told_of,
        .note = note_try,
        .rest = rest,
        .user = &heard};
    const int open_before = support_count_files("/proc/self/fd");
    utter_status status = worker_run(&settings, &told, &why);
    assert_int_equal(support_count_files("/proc/self/fd"), open_before);
    assert_int_equal(spoken.now, 0); /* whatever happens, the speaker is left with nothing */
    for (int i = 0; i < queue_is.n_lines; i++) {
        assert_int_not_equal(lines[i].state, CLAIMED);
    }
    return status;
}

static inline void assert_told(uint64_t made, uint64_t found, uint64_t failed, uint64_t again)
{
    assert_int_equal(told.made, made);
    assert_int_equal(told.found, found);
    assert_int_equal(told.failed, failed);
    assert_int_equal(told.again, again);
}

/* The result of line i, without its seal; the caller's. */
static inline json_t *result_of(int i, enum result_state wanted)
{
    enum result_state state;
    json_t *about;
    assert_int_equal(result_look(results, lines[i].key, false, &state, &about, NULL), UTTER_OK);
    assert_int_equal(state, wanted);
    json_object_del(about, "seal");
    return about;
}

static inline void assert_result(int i, enum result_state state, const char *status)
{
    json_t *about = result_of(i, state);
    if (status) {
        assert_string_equal(json_string_value(json_object_get(about, "status")), status);
    }
    json_decref(about);
}

#endif
