/* SPDX-License-Identifier: Apache-2.0
 * Sections are spoken on some lanes at once, each into its file, as a reading of its own would speak it; what was ready
 * stays, and what goes wrong is told. With a small model that soon ends. */
#include "book/speaker.h"

#include <dlfcn.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sndfile.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support.h"

enum { N = 5, RATE = 24000 };

static const char text[] = "One two three.|Four.|Five, six. Seven.|Eight nine.|Ten.";
static struct section sections[N];
static struct task tasks[N];
static struct store store;
static utter_model *model;
static utter_stream_options voice;
static utter_reading_options reading;

static int open_model(void **state)
{
    utter_model_options o;
    (void)state;
    utter_model_options_init(&o);
    o.n_threads = 1;
    o.n_lanes = 2;
    if (utter_model_open(&model, "build/checkpoints/eos-sometimes", &o, NULL) ||
        utter_stream_options_init(&voice, model)) {
        return -1;
    }
    utter_reading_options_init(&reading);
    voice.seed = 7;
    reading.retries = 0;
    reading.max_frames = 6;
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    utter_model_close(&model);
    return 0;
}

/* The store is empty, and no task is ready. */
static int begin(void **state)
{
    static const struct store_about about = {"a book", "a model", "a voice", "settings"};
    static char prefix[] = "[rate:1.5] ";
    const char *at = text;
    (void)state;
    memset(tasks, 0, sizeof tasks);
    for (int i = 0; i < N; i++) {
        const size_t n = strcspn(at, "|");
        sections[i] = (struct section){.text = at, .bytes = n, .prefix = i == 3 ? prefix : NULL};
        tasks[i].section = &sections[i];
        memset(tasks[i].entry.key, '0', IDENTITY_SIZE - 1);
        tasks[i].entry.key[0] = (char)('0' + i);
        at += n + 1;
    }
    return store_open(&store, support_path("store"), &about, false, NULL);
}

static int end(void **state)
{
    (void)state;
    store_remove(&store);
    store_close(&store);
    return support_count_files(support_folder());
}

static struct speaker *start(int lanes)
{
    const struct speaker_settings settings = {
        .model = model, .voice = &voice, .reading = &reading, .lanes = lanes};
    struct speaker *s;
    utter_error error = {0};
    speaker_start(&s, &settings, tasks, N, &store, &error);
    assert_string_equal(error.text, "");
    return s;
}

/* Asked whenever something has changed. */
static struct speaker_state wait_for(struct speaker *s)
{
    struct speaker_state state = speaker_look(s);
    while (!state.ended) {
        struct pollfd changed = {.fd = speaker_descriptor(s), .events = POLLIN};
        assert_int_equal(poll(&changed, 1, 60000), 1);
        const struct speaker_state before = state;
        state = speaker_look(s);
        assert_true(state.ready_bytes >= before.ready_bytes && state.spoken_s >= before.spoken_s);
    }
    struct pollfd changed = {.fd = speaker_descriptor(s), .events = POLLIN};
    assert_int_equal(poll(&changed, 1, 0), 0); /* nothing more will */
    return state;
}

/* What a reading of the section alone makes of it; returns how many samples. */
static size_t read_alone(const struct section *section, int16_t *steps, size_t room)
{
    utter_reading *r;
    utter_reading_options o = reading;
    utter_status status;
    size_t all = 0, n;
    float pcm[1920];
    o.live = false;
    assert_int_equal(utter_reading_open(&r, model, &voice, &o, NULL), UTTER_OK);
    if (section->prefix) {
        assert_int_equal(
            utter_reading_text(r, section->prefix, strlen(section->prefix), NULL), UTTER_OK);
    }
    assert_int_equal(utter_reading_text(r, section->text, section->bytes, NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(r, NULL), UTTER_OK);
    while ((status = utter_reading_read(r, pcm, 1920, &n, NULL)) >= 0 && status != UTTER_END) {
        assert_true(all + n <= room);
        for (size_t i = 0; i < n; i++) {
            float x = pcm[i] * 32768;
            x = x > 32767 ? 32767 : x < -32768 ? -32768 : x;
            steps[all++] = (int16_t)lrintf(x);
        }
    }
    assert_int_equal(status, UTTER_END);
    utter_reading_free(&r);
    return all;
}

static void each_section_is_a_reading_of_its_own(void **state)
{
    enum { ROOM = 10 * RATE };
    static int16_t wanted[ROOM], have[ROOM];
    (void)state;
    for (int lanes = 1; lanes <= 2; lanes++) {
        begin(state);
        tasks[1].ready = true; /* by a run before */
        struct speaker *s = start(lanes);
        assert_true(speaker_is_ready(s, 1));
        const struct speaker_state told = wait_for(s);
        assert_string_equal(told.error.text, "");
        assert_int_equal(told.status, UTTER_OK);
        assert_int_equal(told.ready_bytes, strlen(text) - (N - 1));
        assert_int_equal(told.spoken_bytes, strlen(text) - (N - 1) - sections[1].bytes);
        double all_s = 0;
        for (size_t i = 0; i < N; i++) {
            char path[PATH_MAX];
            SF_INFO info = {0};
            assert_true(speaker_is_ready(s, i));
            store_path(&store, path, tasks[i].entry.key);
            if (i == 1) {
                assert_int_not_equal(access(path, F_OK), 0);
                continue;
            }
            const size_t n = read_alone(&sections[i], wanted, ROOM);
            SNDFILE *file = sf_open(path, SFM_READ, &info);
            assert_true(
                info.frames == (sf_count_t)n && info.samplerate == RATE && info.channels == 1 && n > 0);
            assert_int_equal(sf_read_short(file, have, (sf_count_t)n), n);
            assert_memory_equal(have, wanted, n * sizeof *have);
            sf_close(file);
            assert_true(tasks[i].entry.seconds == (double)n / RATE);
            assert_int_equal(tasks[i].entry.seed, 7);
            assert_true(tasks[i].entry.n_pieces >= 1);
            assert_int_equal(strlen(tasks[i].entry.sound), IDENTITY_SIZE - 1);
            all_s += tasks[i].entry.seconds;
        }
        assert_true(told.spoken_s - all_s < 1e-9 && all_s - told.spoken_s < 1e-9);
        speaker_free(s);
        end(state);
    }
}

static void what_is_ready_is_not_spoken(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++) {
        tasks[i].ready = true;
    }
    struct speaker *s = start(2);
    const struct speaker_state told = wait_for(s);
    assert_int_equal(told.status, UTTER_OK);
    assert_int_equal(told.ready_bytes, strlen(text) - (N - 1));
    assert_true(told.spoken_bytes == 0 && !(told.spoken_s > 0));
    speaker_free(s);
    assert_int_equal(support_count_files(store.folder), 1);
}

/* A file that cannot be made: the speaker ends, says why, and leaves none that is not whole. */
static void a_failure_ends_it(void **state)
{
    (void)state;
    static const enum support_call calls[] = {SUPPORT_OPEN, SUPPORT_RENAME};
    for (int i = 0; i < 2; i++) {
        support_fail_from(calls[i], 1);
        struct speaker *s = start(2);
        const struct speaker_state told = wait_for(s);
        assert_true(support_failed());
        support_fail_off();
        assert_true(told.status < 0 && told.ended);
        assert_non_null(strstr(told.error.text, store.folder));
        assert_true(told.ready_bytes < strlen(text) - (N - 1));
        size_t ready_bytes = 0;
        for (size_t k = 0; k < N; k++) {
            ready_bytes += speaker_is_ready(s, k) ? sections[k].bytes : 0;
        }
        assert_int_equal(ready_bytes, told.ready_bytes);
        speaker_free(s);
    }
}

/* Whoever does not wait for the end leaves what is whole, and the tasks say which. */
static void it_ends_when_it_is_told(void **state)
{
    (void)state;
    speaker_free(NULL);
    struct speaker *s = start(2);
    speaker_free(s);
    int n_ready = 0;
    for (int i = 0; i < N; i++) {
        char path[PATH_MAX];
        store_path(&store, path, tasks[i].entry.key);
        assert_int_equal(access(path, F_OK) == 0, tasks[i].ready);
        n_ready += tasks[i].ready;
    }
    assert_int_equal(support_count_files(store.folder), 1 + n_ready);
    /* The model's lanes are free again. */
    s = start(2);
    assert_int_equal(wait_for(s).status, UTTER_OK);
    speaker_free(s);
    assert_int_equal(support_count_files(store.folder), 1 + N);
}

static atomic_bool is_joined, has_begun;

/* In place of the system's, which it asks. */
int pthread_join(pthread_t thread, void **result)
{
    int (*real)(pthread_t, void **) = NULL;
    void *call = dlsym(RTLD_NEXT, "pthread_join");
    memcpy(&real, &call, sizeof real);
    is_joined = true;
    return real(thread, result);
}

static void wait_to_be_joined(void)
{
    has_begun = true;
    while (!is_joined) {
        sched_yield();
    }
}

/* A step more, and no section behind those that have begun. */
static void no_section_begins_behind_the_end(void **state)
{
    (void)state;
    is_joined = has_begun = false;
    support_happens_at(SUPPORT_OPEN, 1, wait_to_be_joined); /* the first section's file */
    struct speaker *s = start(1);
    while (!has_begun) {
        sched_yield();
    }
    speaker_free(s);
    support_fail_off();
    for (int i = 1; i < N; i++) {
        assert_false(tasks[i].ready);
    }
}

static void without_memory_it_does_not_start(void **state)
{
    const struct speaker_settings settings = {
        .model = model, .voice = &voice, .reading = &reading, .lanes = 2};
    struct speaker *s = NULL;
    utter_error error = {0};
    (void)state;
    for (int n = 1; n <= 2; n++) {
        support_fail_at(SUPPORT_MALLOC, n);
        assert_int_equal(speaker_start(&s, &settings, tasks, N, &store, &error), UTTER_E_MEMORY);
        support_fail_off();
    }
    support_fail_at(SUPPORT_THREAD, 1);
    assert_int_equal(speaker_start(&s, &settings, tasks, N, &store, &error), UTTER_E_MEMORY);
    support_fail_off();
    assert_ptr_equal(strstr(error.text, "no thread can be started: "), error.text);
    assert_null(s);
    support_fail_at(SUPPORT_THREAD, 2); /* that of the keeper */
    s = start(2);
    const struct speaker_state told = wait_for(s);
    support_fail_off();
    assert_int_equal(told.status, UTTER_E_MEMORY);
    assert_non_null(strstr(told.error.text, "no thread can be started: "));
    speaker_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_section_is_a_reading_of_its_own),
        cmocka_unit_test_setup_teardown(what_is_ready_is_not_spoken, begin, end),
        cmocka_unit_test_setup_teardown(a_failure_ends_it, begin, end),
        cmocka_unit_test_setup_teardown(it_ends_when_it_is_told, begin, end),
        cmocka_unit_test_setup_teardown(no_section_begins_behind_the_end, begin, end),
        cmocka_unit_test_setup_teardown(without_memory_it_does_not_start, begin, end),
    };
    return cmocka_run_group_tests_name("speaker", tests, open_model, close_model);
}
