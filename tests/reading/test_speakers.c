/* SPDX-License-Identifier: Apache-2.0
 * The voices that a text calls by name. */
#include "reading/speaker.h"

#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "tests/heap.h"
#include "tests/support.h"

enum { N = 40, WIDTH = 2 };

static int n_asked;

/* Everybody has a voice but he who is called "nobody"; that of "wide" is of another model. */
static utter_status find(void *user, const char *name, utter_voice **voice, utter_error *error)
{
    static const float vector[WIDTH + 1] = {1, 2, 3};
    assert_ptr_equal(user, &n_asked);
    n_asked++;
    return strcmp(name, "nobody") == 0
               ? error_set(error, UTTER_E_ARGUMENT, "no voice of nobody")
               : voice_new_clone(
                     voice, name, vector, WIDTH + (strcmp(name, "wide") == 0), NULL, 0, 0, NULL, error);
}

static void each_voice_is_looked_for_once(void **state)
{
    (void)state;
    struct config config = {.kind = UTTER_MODEL_BASE, .talker.width = WIDTH};
    const struct model model = {.config = &config};
    struct speakers speakers = {.find = find, .user = &n_asked};
    const utter_voice *voices[N], *again;
    utter_error error;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            char name[32];
            snprintf(name, sizeof name, "speaker %d", i);
            assert_int_equal(speakers_find(&speakers, name, &model, &again, &error), UTTER_OK);
            assert_string_equal(again->name, name);
            assert_true(round == 0 || again == voices[i]);
            voices[i] = again;
        }
        assert_int_equal(n_asked, N);
    }
    assert_int_equal(speakers_find(&speakers, "nobody", &model, &again, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "no voice of nobody");
    assert_int_equal(speakers_find(&speakers, "wide", &model, &again, &error), UTTER_E_ARGUMENT);
    assert_int_equal(speakers_find(&speakers, "speaker 7", &model, &again, &error), UTTER_OK);
    assert_ptr_equal(again, voices[7]);
    assert_int_equal(n_asked, N + 2);
    speakers_fini(&speakers);
}

/* Also of those that were refused. */
static void nothing_stays_of_speakers(void **state)
{
    struct config config = {.kind = UTTER_MODEL_BASE, .talker.width = WIDTH};
    const struct model model = {.config = &config};
    (void)state;
    for (int round = 0; round < 16; round++) { /* until the heap has in store what it keeps */
        size_t before = heap_used();
        struct speakers speakers = {.find = find, .user = &n_asked};
        const utter_voice *voice;
        assert_int_equal(speakers_find(&speakers, "one", &model, &voice, NULL), UTTER_OK);
        assert_int_equal(speakers_find(&speakers, "wide", &model, &voice, NULL), UTTER_E_ARGUMENT);
        assert_int_equal(speakers_find(&speakers, "two", &model, &voice, NULL), UTTER_OK);
        speakers_fini(&speakers);
        assert_true(!speakers.list && speakers.n + speakers.room == 0 && !speakers.find);
        assert_true(round < 15 || heap_used() == before);
    }
}

/* What fails is told, and what is known stays known. */
static void memory_may_run_out(void **state)
{
    struct config config = {.kind = UTTER_MODEL_BASE, .talker.width = WIDTH};
    const struct model model = {.config = &config};
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct speakers speakers = {.find = find, .user = &n_asked};
        const utter_voice *voice = NULL;
        utter_error error = {0};
        utter_status status = speakers_find(&speakers, "one", &model, &voice, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(error.code, status);
        assert_int_equal(speakers.n, status == UTTER_OK);
        assert_int_equal(speakers_find(&speakers, "one", &model, &voice, &error), UTTER_OK);
        assert_string_equal(voice->name, "one");
        speakers_fini(&speakers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_voice_is_looked_for_once),
        cmocka_unit_test(nothing_stays_of_speakers), cmocka_unit_test(memory_may_run_out)};
    return cmocka_run_group_tests_name("speakers", tests, NULL, NULL);
}
