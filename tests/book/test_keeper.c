/* SPDX-License-Identifier: Apache-2.0
 * Sound on its way into the store: every sample of a section, in whatever pieces it comes. */
#include "book/keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
