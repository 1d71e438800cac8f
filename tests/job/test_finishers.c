/* SPDX-License-Identifier: Apache-2.0
 * Threads that complete results, without a worker: that all comes back, what a result that cannot be looked at leaves
 * of a line, and how long somebody waits for them. */
#include "tests/support.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "job/worker_parts.h"

/* ---- Waiting ---- */

static struct timespec posed, until; /* where posed.tv_sec is none, the clock is the system's */
static atomic_bool waits,
    is_awaited; /* whether somebody waits by now; that a look is to come behind that */

int clock_gettime(clockid_t which, struct timespec *now)
{
    *now = posed;
    return posed.tv_sec ? 0 : (int)syscall(SYS_clock_gettime, which, now);
}

/* In place of the system's, which it asks. */
int pthread_cond_timedwait(
    pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until_then)
{
    int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) = NULL;
    void *call = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    memcpy(&real, &call, sizeof real);
    until = *until_then;
    waits = true; /* whoever finishes something now needs the lock for it */
    const struct timespec much_later = {until.tv_sec + 10, 0};
    return real(condition, lock, is_awaited ? &much_later : until_then);
}

static void somebody_waits_for_a_fifth_of_a_second(void **state)
{
    (void)state;
    static const struct {
        long now_ns;
        time_t s;
        long ns;
    } rows[] = {
        {0, 5, 200000000}, {799999999, 5, 999999999}, {800000000, 6, 0}, {999999999, 6, 199999999}};
    struct finishers f;
    assert_int_equal(finishers_start(&f, NULL, 8000, NULL), UTTER_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posed = (struct timespec){5, rows[i].now_ns};
        finishers_wait(&f); /* long over */
        assert_int_equal(until.tv_sec, rows[i].s);
        assert_int_equal(until.tv_nsec, rows[i].ns);
    }
    posed = (struct timespec){0};
    double begin_s = clock_seconds();
    finishers_wait(&f);
    assert_true(clock_seconds() - begin_s > 0.19);
    finishers_end(&f);
    finishers_fini(&f);
}

/* ---- What is finished ---- */

static const char key[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static utter_status text_status;
static atomic_int n_texts, n_kept;
static char told[512], kept_names[2 * RESULT_NAME];

/* No result is there, or it cannot be asked for. */
static utter_status look(
    struct results *results, const char *name, char **text, size_t *bytes, utter_error *error)
{
    (void)results, (void)name, (void)text, (void)bytes;
    n_texts++;
    while (is_awaited && !waits) {
        sched_yield();
    }
    return text_status == UTTER_AGAIN ? UTTER_AGAIN : error_set(error, text_status, "far away");
}

static utter_status place(
    struct results *results, const char *name, char path[PATH_MAX], utter_error *error)
{
    (void)results, (void)error;
    snprintf(path, PATH_MAX, "%s", support_path(name));
    return UTTER_OK;
}

static utter_status keep(
    struct results *results, const char *name, const char *path, utter_error *error)
{
    (void)results, (void)error;
    size_t n = strlen(name);
    n_kept++;
    strcat(strcat(kept_names, name), " ");
    if (strcmp(name + n - 5, ".json") == 0) {
        char *text = support_read_file(path, &n);
        snprintf(told, sizeof told, "%s", text);
        free(text);
    }
    return UTTER_OK;
}

static const struct results_calls calls = {.text = look, .place = place, .keep = keep};

static long lacks_at; /* the request for memory that fails meanwhile; 0: none */
static bool has_lacked;

/* A slot with a spoken line, or one that has failed for good, as finishers end it. */
static void finish(struct slot *slot, bool failed)
{
    struct results results = {.calls = &calls};
    struct finishers f;
    static const float pcm[100];
    n_texts = n_kept = 0;
    told[0] = kept_names[0] = 0;
    *slot = (struct slot){.stage = SLOT_ENDED, .failed = failed, .line = {.id = "a", .format = "raw"}};
    memcpy(slot->claim.key, key, sizeof key);
    if (failed) {
        error_set(&slot->error, UTTER_E_FILE, "no such voice");
    } else {
        snprintf(slot->path, sizeof slot->path, "%s", support_path("sound.raw"));
        assert_int_equal(
            utter_sound_create(&slot->sound, slot->path, "raw", UTTER_SAMPLE_S16, 8000, NULL),
            UTTER_OK);
        assert_int_equal(slot_sound(slot, pcm, 100, NULL), UTTER_OK);
    }
    assert_int_equal(finishers_start(&f, &results, 8000, NULL), UTTER_OK);
    if (lacks_at) {
        support_fail_malloc_at(lacks_at);
    }
    finishers_give(&f, slot);
    finishers_end(&f);
    has_lacked = support_failed();
    support_fail_off();
    assert_ptr_equal(finishers_take(&f), slot);
    assert_null(finishers_take(&f));
    finishers_fini(&f);
    utter_sound_abort(&slot->sound);
    unlink(slot->path);
}

/* Whether another worker was faster cannot be known; then nothing is kept, and the reason is told. */
static void what_cannot_be_looked_at_is_not_finished(void **state)
{
    (void)state;
    struct slot slot;
    for (int failed = 0; failed < 2; failed++) {
        text_status = UTTER_E_IO;
        finish(&slot, failed);
        assert_int_equal(slot.status, UTTER_E_IO);
        assert_string_equal(slot.error.text, "far away");
        assert_int_equal(n_texts, 1);
        assert_int_equal(n_kept, 0);
    }
}

/* After a signal what was spoken is kept all the same, and a failed line fails for its own reason. */
static void a_signal_takes_no_result_away(void **state)
{
    (void)state;
    static const utter_status asked[] = {UTTER_E_CANCELLED, UTTER_AGAIN};
    char wanted[2 * RESULT_NAME];
    struct slot slot;
    for (int i = 0; i < 2; i++) {
        text_status = asked[i];
        finish(&slot, false);
        assert_int_equal(slot.status, UTTER_OK);
        assert_int_equal(n_kept, 2);
        assert_non_null(strstr(told, "\"bytes\":200,\"error\":null"));
        snprintf(wanted, sizeof wanted, "%s.raw %s.json ", key, key);
        assert_string_equal(kept_names, wanted);
        finish(&slot, true);
        assert_int_equal(slot.status, UTTER_OK);
        assert_int_equal(n_kept, 1);
        assert_non_null(strstr(told, "\"error\":\"no such voice\""));
        assert_string_equal(kept_names, wanted + sizeof key + 4); /* no sound */
    }
}

/* Each once, also when they have had nothing to do in between. */
static void all_that_is_given_comes_back(void **state)
{
    (void)state;
    enum { N = 40 };
    static struct slot slots[N];
    struct results results = {.calls = &calls};
    struct finishers f;
    bool seen[N] = {false};
    text_status = UTTER_AGAIN;
    n_texts = 0;
    assert_int_equal(finishers_start(&f, &results, 8000, NULL), UTTER_OK);
    assert_int_equal(f.n_threads, N_FINISHERS);
    for (int round = 0; round < 2; round++) {
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < N; i++) {
            slots[i] = (struct slot){.stage = SLOT_LOOKING, .looks = true, .state = RESULT_DONE};
            finishers_give(&f, &slots[i]);
        }
        for (int n = 0; n < N;) {
            struct slot *slot = finishers_take(&f);
            if (!slot) {
                finishers_wait(&f);
                continue;
            }
            assert_false(seen[slot - slots]);
            seen[slot - slots] = true;
            assert_int_equal(slot->state, RESULT_NONE);
            n++;
        }
    }
    assert_null(finishers_take(&f));
    finishers_end(&f);
    finishers_fini(&f);
}

/* Who waits goes on as soon as something is finished. */
static void what_is_finished_ends_the_wait(void **state)
{
    (void)state;
    struct slot slot = {.stage = SLOT_LOOKING, .looks = true};
    struct results results = {.calls = &calls};
    struct finishers f;
    text_status = UTTER_AGAIN;
    assert_int_equal(finishers_start(&f, &results, 8000, NULL), UTTER_OK);
    waits = false;
    is_awaited = true;
    const double begin_s = clock_seconds();
    finishers_give(&f, &slot);
    struct slot *finished = NULL;
    while (!finished) {
        finishers_wait(&f);
        finished = finishers_take(&f);
    }
    assert_true(clock_seconds() - begin_s < 9);
    assert_ptr_equal(finished, &slot);
    is_awaited = false;
    finishers_end(&f);
    finishers_fini(&f);
}

/* Then nothing tells of it, and a worker may make it again. */
static void a_result_without_memory_is_not_told(void **state)
{
    (void)state;
    static const char *const whole[] = {
        ",\"bytes\":200,\"error\":null,", ",\"error\":\"no such voice\","};
    text_status = UTTER_AGAIN;
    for (int failed = 0; failed < 2; failed++) {
        struct slot slot;
        lacks_at = 1;
        do {
            finish(&slot, failed);
            assert_int_equal(slot.status, has_lacked ? UTTER_E_MEMORY : UTTER_OK);
            assert_int_equal(told[0] == 0, has_lacked);
            assert_true(has_lacked || strstr(told, failed ? whole[1] : whole[0]));
            lacks_at = has_lacked ? lacks_at + 1 : 0;
        } while (lacks_at);
    }
}

static void without_a_thread_nothing_is_finished(void **state)
{
    (void)state;
    struct finishers f;
    utter_error error;
    support_fail_from(SUPPORT_THREAD, 1);
    assert_int_equal(finishers_start(&f, NULL, 8000, &error), UTTER_E_MEMORY);
    assert_string_equal(error.text, "no thread can be started");
    finishers_end(&f);
    finishers_fini(&f);
    support_fail_at(SUPPORT_THREAD, 2); /* one is enough */
    assert_int_equal(finishers_start(&f, NULL, 8000, &error), UTTER_OK);
    assert_int_equal(f.n_threads, 1);
    support_fail_off();
    finishers_end(&f);
    finishers_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(somebody_waits_for_a_fifth_of_a_second),
        cmocka_unit_test(what_cannot_be_looked_at_is_not_finished),
        cmocka_unit_test(a_signal_takes_no_result_away),
        cmocka_unit_test(all_that_is_given_comes_back),
        cmocka_unit_test(what_is_finished_ends_the_wait),
        cmocka_unit_test(a_result_without_memory_is_not_told),
        cmocka_unit_test(without_a_thread_nothing_is_finished),
    };
    return cmocka_run_group_tests_name("finishers", tests, NULL, NULL);
}
