/* SPDX-License-Identifier: Apache-2.0
 * What a model is opened with reaches the engine, and what it tells of itself is what the engine has. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"

#define MODEL "build/checkpoints/tiny17-custom_voice"
#define SMALL "build/checkpoints/tiny06-custom_voice"

static utter_model *open_with(const char *path, utter_weights weights, uint64_t snapshot_bytes)
{
    utter_model *model;
    utter_error error = {.text = ""};
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = 1;
    o.weights = weights;
    o.snapshot_bytes = snapshot_bytes;
    utter_model_open(&model, path, &o, &error);
    assert_string_equal(error.text, "");
    return model;
}

static utter_model_info info_of(const utter_model *model)
{
    utter_model_info info = {.size = sizeof info};
    assert_int_equal(utter_model_get_info(model, &info), UTTER_OK);
    return info;
}

static bool take(void *user, const float *pcm, size_t n)
{
    (void)user, (void)pcm, (void)n;
    return true;
}

static void speak(utter_model *model)
{
    utter_stream_options o;
    utter_stream_options_init(&o, model);
    o.max_frames = 2;
    assert_int_equal(utter_say(model, "Hello.", &o, take, NULL, NULL), UTTER_OK);
}

static void beginnings_are_kept_where_there_is_room(void **state)
{
    (void)state;
    for (int room = 0; room < 2; room++) {
        utter_model *model = open_with(MODEL, UTTER_WEIGHTS_STORED, room ? 64 << 20 : 0);
        speak(model);
        const utter_model_info info = info_of(model);
        assert_int_equal(info.n_snapshots, room);
        assert_true((info.snapshot_bytes > 0) == room);
        assert_int_equal(info.snapshot_bytes, model->engine.context.snapshots.used_bytes);
        utter_model_close(&model);
    }
}

static void numbers_are_those_of_the_engine(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, UTTER_WEIGHTS_STORED, 0);
    const utter_model_info info = info_of(model);
    const struct stream_context *on = &model->engine.context;
    struct backend_memory memory = {.lane_bytes = 0};
    on->ops->memory(on->backend, &memory);
    assert_true(info.talker_frame_bytes > 0 && info.predictor_frame_bytes > 0);
    assert_int_equal(info.talker_frame_bytes, on->model->talker_frame_bytes);
    assert_int_equal(info.predictor_frame_bytes, on->model->predictor_frame_bytes);
    assert_int_equal(info.vocoder_frame_bytes, on->model->vocoder_frame_bytes);
    assert_int_equal(info.talker_parameters, on->model->talker_parameters);
    assert_int_equal(info.all_parameters, on->model->all_parameters);
    assert_int_equal(info.most_lanes, memory.most_lanes);
    assert_memory_equal(info.step_s, memory.step_s, sizeof info.step_s);
    assert_true(info.device_gb_per_s == 1e-9 * memory.bytes_per_s);
    utter_model_close(&model);
}

static void weights_are_as_they_are_asked_for(void **state)
{
    (void)state;
    utter_model *stored = open_with(SMALL, UTTER_WEIGHTS_STORED, 0),
                *packed = open_with(SMALL, UTTER_WEIGHTS_Q8, 0);
    assert_string_not_equal(info_of(stored).weights, info_of(packed).weights);
    assert_true(info_of(packed).frame_bytes < info_of(stored).frame_bytes);
    utter_model_close(&stored);
    utter_model_close(&packed);
}

/* A repository's folder in the cache of the hub's client stands for its snapshot, to be opened and to be packed. */
static void a_repository_is_opened_and_packed(void **state)
{
    char *place = realpath(SMALL, NULL);
    utter_error error = {.text = ""};
    struct stat about;
    (void)state;
    assert_non_null(place);
    assert_int_equal(mkdir(support_path("hub"), 0755), 0);
    assert_int_equal(mkdir(support_path("hub/snapshots"), 0755), 0);
    assert_int_equal(symlink(place, support_path("hub/snapshots/only")), 0);
    free(place);
    utter_model *model = open_with(support_path("hub"), UTTER_WEIGHTS_STORED, 0);
    utter_model_close(&model);
    const char *file = support_path("packed.utter");
    utter_model_quantize(support_path("hub"), UTTER_WEIGHTS_Q8, file, &error);
    assert_string_equal(error.text, "");
    assert_true(stat(file, &about) == 0 && about.st_size > 0);
    model = open_with(file, UTTER_WEIGHTS_STORED, 0);
    utter_model_close(&model);
}

static char said[256];

static void keep_line(void *user, const char *line)
{
    assert_ptr_equal(user, said);
    snprintf(said, sizeof said, "%s", line);
}

/* What a model cannot do for a stream its log says, and what is known of a stream's words its numbers. */
static void a_stream_is_told_of(void **state)
{
    utter_model *model;
    utter_model_options o;
    utter_stream_options v;
    utter_stream *stream;
    utter_stream_stats stats = {.size = sizeof stats};
    (void)state;
    utter_model_options_init(&o);
    o.n_threads = 1;
    o.device = "cpu";
    o.log = keep_line;
    o.log_user = said;
    o.cache = "/nowhere/heads";
    assert_int_equal(utter_model_open(&model, SMALL, &o, NULL), UTTER_OK);
    assert_string_equal(said, "");
    assert_string_equal(model->engine.context.learning.folder, "/nowhere/heads");
    utter_stream_options_init(&v, model);
    for (int i = 0; i < 2; i++) {
        v.instruct = i ? "Speak calmly." : NULL;
        v.words = i;
        assert_int_equal(utter_stream_open(&stream, model, &v, NULL), UTTER_OK);
        assert_string_equal(
            said, i ? "this model takes no instructions; the instruction was left out" : "");
        assert_int_equal(utter_stream_get_stats(stream, &stats), UTTER_OK);
        assert_int_equal(stats.words_approximate, i); /* no head is known yet */
        utter_stream_free(&stream);
    }
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beginnings_are_kept_where_there_is_room),
        cmocka_unit_test(numbers_are_those_of_the_engine),
        cmocka_unit_test(weights_are_as_they_are_asked_for),
        cmocka_unit_test(a_repository_is_opened_and_packed),
        cmocka_unit_test(a_stream_is_told_of),
    };
    return cmocka_run_group_tests_name("told", tests, NULL, NULL);
}
