/* SPDX-License-Identifier: Apache-2.0
 * Sound on its way into the store: every sample of a section, in whatever pieces it comes. */
#include "book/keeper.h"

#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/support.h"

enum { RATE = 24000 };

static void count(void *user, struct task *task, const struct store_entry *entry)
{
    struct store_entry *ended = user;
    assert_string_equal(entry->key, task->entry.key);
    assert_true(ended->seconds == 0);
    *ended = *entry;
}

/* A reader may get one sample at last, and one alone. */
static void test_pieces(void **state)
{
    static const size_t pieces[] = {1920, 1, 0, 700, 1};
    enum { ALL = 1920 + 1 + 700 + 1 };
    static const struct store_about about = {"a book", "a model", "a voice", "settings"};
    static float pcm[1920];
    char folder[] = "/tmp/keeper-XXXXXX", path[PATH_MAX], command[64];
    struct store store;
    struct task task = {
        .entry.key = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    struct store_entry ended = {.seconds = 0};
    struct keeper *keeper;
    utter_error error = {0};
    struct spoken *spoken = memory_new(1, sizeof *spoken);
    (void)state;
    assert_non_null(spoken);
    assert_non_null(mkdtemp(folder));
    assert_int_equal(store_open(&store, folder, &about, false, &error), UTTER_OK);
    const struct keeper_settings settings = {&store, RATE, 1, count, &ended};
    spoken->task = &task;
    store_path(&store, path, task.entry.key);
    assert_int_equal(
        utter_sound_create(&spoken->sound, path, "flac", UTTER_SAMPLE_S16, RATE, &error), UTTER_OK);
    assert_int_equal(keeper_start(&keeper, &settings, &error), UTTER_OK);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        assert_int_equal(keeper_add(keeper, spoken, pcm, pieces[i], &error), UTTER_OK);
        assert_int_equal(keeper_pass(keeper, &error), UTTER_OK);
    }
    assert_int_equal(keeper_end(keeper, spoken, &error), UTTER_OK);
    assert_int_equal(keeper_pass(keeper, &error), UTTER_OK);
    assert_int_equal(keeper_wait(keeper, &error), UTTER_OK);
    keeper_free(keeper);
    assert_true(ended.seconds == (double)ALL / RATE);
    store_close(&store);
    assert_int_equal(store_open(&store, folder, &about, false, &error), UTTER_OK);
    assert_non_null(store_find(&store, task.entry.key)); /* a run that goes on finds it */
    store_close(&store);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* ---- Several sections at once ---- */

enum { N_SECTIONS = 3 };

static struct task tasks[N_SECTIONS];
static struct store_entry entries[N_SECTIONS];
static struct store store;

static void note(void *user, struct task *task, const struct store_entry *entry)
{
    assert_ptr_equal(user, &store);
    entries[task - tasks] = *entry;
}

static struct spoken *new_spoken(int i)
{
    char path[PATH_MAX];
    struct spoken *spoken = memory_new(1, sizeof *spoken);
    snprintf(tasks[i].entry.key, sizeof tasks[i].entry.key, "section-%d", i);
    store_path(&store, path, tasks[i].entry.key);
    assert_int_equal(
        utter_sound_create(&spoken->sound, path, "flac", UTTER_SAMPLE_S16, RATE, NULL), UTTER_OK);
    spoken->task = &tasks[i];
    spoken->stats = (utter_reading_stats){.n_pieces = 5 + i, .n_retries = 3, .n_broken = 1};
    return spoken;
}

static int open_store(void **state)
{
    static const struct store_about about = {"a book", "a model", "a voice", "settings"};
    (void)state;
    memset(entries, 0, sizeof entries);
    return store_open(&store, support_path("store"), &about, false, NULL);
}

static int remove_store(void **state)
{
    (void)state;
    for (int i = 0; i < N_SECTIONS; i++) {
        char path[PATH_MAX];
        store_path(&store, path, tasks[i].entry.key);
        unlink(path);
    }
    store_remove(&store);
    store_close(&store);
    return support_count_files(support_folder());
}

/* Their samples come by turns, also without being passed: each file has its own, in their order. */
static void test_turns(void **state)
{
    enum { PIECE = 500, N_PIECES = 30 };
    const struct keeper_settings settings = {&store, RATE, 42, note, &store};
    struct keeper *keeper;
    struct spoken *spoken[N_SECTIONS];
    utter_error error = {0};
    float pcm[PIECE];
    (void)state;
    assert_int_equal(keeper_start(&keeper, &settings, &error), UTTER_OK);
    for (int i = 0; i < N_SECTIONS; i++) {
        spoken[i] = new_spoken(i);
    }
    for (int k = 0; k < N_PIECES; k++) {
        for (int i = 0; i < N_SECTIONS; i++) {
            for (int t = 0; t < PIECE; t++) {
                pcm[t] = (float)((k * PIECE + t) % 8000 + i * 8000) / 32768;
            }
            assert_int_equal(keeper_add(keeper, spoken[i], pcm, PIECE, &error), UTTER_OK);
        }
        if (k % 10 == 9) {
            assert_int_equal(keeper_pass(keeper, &error), UTTER_OK);
        }
    }
    for (int i = 0; i < N_SECTIONS; i++) {
        assert_int_equal(keeper_end(keeper, spoken[i], &error), UTTER_OK);
        assert_int_equal(entries[i].n_pieces, 0);
    }
    assert_int_equal(keeper_pass(keeper, &error), UTTER_OK);
    assert_int_equal(keeper_wait(keeper, &error), UTTER_OK);
    keeper_free(keeper);
    for (int i = 0; i < N_SECTIONS; i++) {
        char path[PATH_MAX];
        SF_INFO info = {0};
        static short steps[PIECE * N_PIECES];
        assert_true(entries[i].seed == 42 && entries[i].n_pieces == 5 + (uint64_t)i &&
                    entries[i].n_retries == 3 && entries[i].n_broken == 1);
        assert_true(entries[i].seconds == (double)(PIECE * N_PIECES) / RATE);
        assert_int_equal(strlen(entries[i].sound), IDENTITY_SIZE - 1);
        store_path(&store, path, tasks[i].entry.key);
        SNDFILE *file = sf_open(path, SFM_READ, &info);
        assert_int_equal(info.frames, PIECE * N_PIECES);
        assert_int_equal(sf_read_short(file, steps, PIECE * N_PIECES), PIECE * N_PIECES);
        for (int t = 0; t < PIECE * N_PIECES; t++) {
            assert_int_equal(steps[t], t % 8000 + i * 8000);
        }
        sf_close(file);
    }
}

/* The first failure is told with the next step and stays; nothing more is written, and nothing is told as whole. */
static void test_failure(void **state)
{
    const struct keeper_settings settings = {&store, RATE, 42, note, &store};
    static const float pcm[100];
    struct keeper *keeper;
    utter_error error = {0};
    (void)state;
    assert_int_equal(keeper_start(&keeper, &settings, &error), UTTER_OK);
    struct spoken *first = new_spoken(0), *second = new_spoken(1);
    assert_int_equal(keeper_add(keeper, first, pcm, 100, &error), UTTER_OK);
    assert_int_equal(keeper_end(keeper, first, &error), UTTER_OK);
    support_fail_at(SUPPORT_RENAME, 1); /* the file cannot have its name */
    assert_int_equal(keeper_pass(keeper, &error), UTTER_OK);
    assert_true(keeper_wait(keeper, &error) < 0);
    assert_true(support_failed());
    support_fail_off();
    assert_non_null(strstr(error.text, "section-0.flac"));
    error = (utter_error){0};
    assert_int_equal(keeper_add(keeper, second, pcm, 100, &error), UTTER_OK);
    assert_int_equal(keeper_end(keeper, second, &error), UTTER_OK);
    assert_true(keeper_pass(keeper, &error) < 0);
    assert_non_null(strstr(error.text, "section-0.flac"));
    keeper_free(keeper);
    assert_true(!entries[0].key[0] && !entries[1].key[0]);
    assert_int_equal(support_count_files(store.folder), 1); /* the manifest */
}

/* What was not passed is dropped; a section that has not ended stays the caller's. */
static void test_dropped(void **state)
{
    const struct keeper_settings settings = {&store, RATE, 42, note, &store};
    static const float pcm[100];
    struct keeper *keeper;
    utter_error error = {0};
    (void)state;
    keeper_free(NULL);
    assert_int_equal(keeper_start(&keeper, &settings, &error), UTTER_OK);
    struct spoken *ended = new_spoken(0), *open = new_spoken(1);
    assert_int_equal(keeper_pass(keeper, &error), UTTER_OK); /* nothing */
    assert_int_equal(keeper_add(keeper, ended, pcm, 100, &error), UTTER_OK);
    assert_int_equal(keeper_add(keeper, open, pcm, 100, &error), UTTER_OK);
    assert_int_equal(keeper_end(keeper, ended, &error), UTTER_OK);
    keeper_free(keeper);
    assert_true(!entries[0].key[0]);
    assert_int_equal(open->n_samples, 100);
    utter_sound_abort(&open->sound);
    memory_free(open);
    assert_int_equal(support_count_files(store.folder), 1);
}

static void test_memory(void **state)
{
    const struct keeper_settings settings = {&store, RATE, 42, note, &store};
    static const float pcm[100];
    struct keeper *keeper = NULL;
    utter_error error = {0};
    (void)state;
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_int_equal(keeper_start(&keeper, &settings, &error), UTTER_E_MEMORY);
    support_fail_at(SUPPORT_THREAD, 1);
    assert_int_equal(keeper_start(&keeper, &settings, &error), UTTER_E_MEMORY);
    assert_ptr_equal(strstr(error.text, "no thread can be started: "), error.text);
    support_fail_off();
    assert_int_equal(keeper_start(&keeper, &settings, &error), UTTER_OK);
    struct spoken *spoken = new_spoken(0);
    for (int n = 1; n <= 2; n++) { /* of samples, and of their place */
        support_fail_at(SUPPORT_MALLOC, n);
        assert_int_equal(keeper_add(keeper, spoken, pcm, 100, &error), UTTER_E_MEMORY);
        support_fail_off();
    }
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_int_equal(keeper_end(keeper, spoken, &error), UTTER_E_MEMORY);
    support_fail_off();
    assert_int_equal(keeper_add(keeper, spoken, pcm, 100, &error), UTTER_OK);
    assert_int_equal(keeper_pass(keeper, &error), UTTER_OK);
    assert_int_equal(keeper_wait(keeper, &error), UTTER_OK);
    assert_int_equal(spoken->n_samples, 100); /* of what failed nothing is left */
    keeper_free(keeper);
    utter_sound_abort(&spoken->sound);
    memory_free(spoken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test_setup_teardown(test_turns, open_store, remove_store),
        cmocka_unit_test_setup_teardown(test_failure, open_store, remove_store),
        cmocka_unit_test_setup_teardown(test_dropped, open_store, remove_store),
        cmocka_unit_test_setup_teardown(test_memory, open_store, remove_store),
    };
    return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
