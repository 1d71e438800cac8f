/* SPDX-License-Identifier: Apache-2.0
 * The backend door on the CPU: requests that are wrong, allocations that fail, and its reports. */
#include "tests/support.h"

#include <string.h>

#include "base/threads.h"
#include "tests/cpu/backend_run.h"

static void test_wrong_options(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    struct backend *b = NULL;
    utter_error error;
    struct backend_options none = {.n_threads = 1, .lane_positions = 10};
    struct backend_options unknown = {
        .n_lanes = 1, .n_threads = 1, .cpu_kernels = "sse9", .lane_positions = 10};
    assert_int_equal(cpu->open(&b, model, &none, &error), UTTER_E_ARGUMENT);
    assert_null(b);
    assert_int_equal(cpu->open(&b, model, &unknown, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "sse9"));
    assert_null(b);
    cpu->close(&b); /* nothing there */
    model_close(&model);
}

static void test_wrong_lanes(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    struct backend *b = open_backend(model, 2, 1);
    struct frame_in in[3] = {{0, 0, NULL}, {1, 0, NULL}, {0, 0, NULL}}, far = {2, 0, NULL};
    struct row row = {.text = 0};
    struct lane_out out;
    int32_t codes[MAX_CODEBOOKS] = {0};
    int two = 2;
    assert_int_equal(cpu->lane_reset(b, 2, &SETTINGS, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->lane_reset(b, -1, &SETTINGS, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 2, &row, 1, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->frame(b, &far, 1, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->frame(b, in, 3, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->frame(b, in, 1, NULL), UTTER_E_ARGUMENT); /* no prompt */
    assert_int_equal(cpu->feed(b, 2, codes, 1, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->vocode(b, &two, 1, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->collect(b, 2, &out, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(out.n_frames, 0);
    cpu->close(&b);
    model_close(&model);
}

static void test_wrong_ids(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    const struct config *c = model->config;
    struct backend *b = open_backend(model, 2, 1);
    int32_t codes[MAX_CODEBOOKS] = {0};
    codes[c->n_codebooks - 1] = c->predictor_vocabulary;
    const struct row wrong[] = {{.text = c->text_vocabulary}, {.text = -2},
        {.codec = ROW_ID, .id = c->codec_vocabulary}, {.codec = ROW_ID, .id = -1},
        {.codec = ROW_CODES, .codes = codes}};
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(cpu->prefill(b, 0, &wrong[i], 1, NULL), UTTER_E_ARGUMENT);
    }
    assert_int_equal(cpu->feed(b, 0, codes, 1, NULL), UTTER_E_ARGUMENT);
    codes[c->n_codebooks - 1] = 0;
    assert_int_equal(cpu->feed(b, 0, codes, 0, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->feed(b, 0, codes, BACKEND_MAX_FEED + 1, NULL), UTTER_E_ARGUMENT);
    start(b, c, 1, 1);
    codes[0] = -1;
    struct frame_in in = {1, 0, codes};
    assert_int_equal(cpu->frame(b, &in, 1, NULL), UTTER_E_ARGUMENT);
    in.forced = NULL;
    assert_int_equal(cpu->frame(b, &in, 1, NULL), UTTER_OK);
    in.text = c->text_vocabulary;
    assert_int_equal(cpu->frame(b, &in, 1, NULL), UTTER_E_ARGUMENT);
    cpu->close(&b);
    model_close(&model);
}

/* A lane holds what was asked for at open, and rows come before frames. */
static void test_full_lane(void **state)
{
    (void)state;
    enum { ROOM = N_ROWS + 2 * N_FRAMES };
    struct model *model = open_model(MODEL);
    struct backend *b = open_backend(model, 2, 1);
    struct row rows[ROOM + 1];
    struct frame_in in[] = {{0, 0, NULL}, {1, 0, NULL}};
    utter_error error;
    make_rows(model->config, 1, rows, ROOM + 1);
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 0, rows, 0, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->prefill(b, 0, rows, ROOM + 1, &error), UTTER_E_MODEL);
    assert_non_null(strstr(error.text, "162"));
    assert_int_equal(cpu->prefill(b, 0, rows, ROOM, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 0, rows, 1, NULL), UTTER_E_MODEL);
    assert_int_equal(cpu->frame(b, in, 1, NULL), UTTER_OK);
    assert_int_equal(cpu->frame(b, in, 1, NULL), UTTER_E_MODEL);
    start(b, model->config, 1, 1);
    assert_int_equal(cpu->frame(b, in + 1, 1, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 1, rows, 1, NULL), UTTER_E_ARGUMENT);
    cpu->close(&b);
    model_close(&model);
}

static void test_reports(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    struct backend *b = open_backend(model, 3, 2);
    struct backend_memory memory;
    const char *used, *all;
    int n_threads;
    cpu->memory(b, &memory);
    const struct stack_config *s = &model->config->talker;
    assert_int_equal(memory.position_bytes, 2 * 4 * s->n_layers * s->n_kv_heads * s->head);
    assert_true(memory.lane_bytes > 0 && memory.shared_bytes > 0);
    cpu->kernels(b, &used, &all, &n_threads);
    assert_non_null(strstr(all, used));
    assert_int_equal(n_threads, 2);
    cpu->close(&b);
    model_close(&model);
}

/* Every allocation and thread that can fail, fails once. */
static void test_no_memory(void **state)
{
    (void)state;
    static const enum support_call CALLS[] = {SUPPORT_MALLOC, SUPPORT_MMAP, SUPPORT_THREAD};
    struct model *model = open_model(MODEL);
    struct backend_options options = {.n_lanes = 2, .n_threads = 2, .lane_positions = 100};
    long n_survived = 0, n_before = support_calls(SUPPORT_MALLOC);
    threads_available(); /* reads files; when that fails it is content with less */
    long n_tolerated = support_calls(SUPPORT_MALLOC) - n_before;
    for (int i = 0; i < 3; i++) {
        SUPPORT_EACH_FAILURE(CALLS[i], n)
        {
            struct backend *b = NULL;
            utter_error error = {0};
            utter_status status = cpu->open(&b, model, &options, &error);
            n_survived += support_failed() && status == UTTER_OK;
            assert_true(
                status == UTTER_OK ? b != NULL : status == UTTER_E_MEMORY && !b && error.text[0]);
            cpu->close(&b);
        }
    }
    assert_int_equal(n_survived, n_tolerated);
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_wrong_lanes),
        cmocka_unit_test(test_wrong_ids),
        cmocka_unit_test(test_full_lane),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
