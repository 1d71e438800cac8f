/* SPDX-License-Identifier: Apache-2.0
 * Verification tells of a backend whose speech, frame by frame, is not what it makes of the same codes at once. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/json.h"
#include "weights/safetensors.h"

enum { FRAME = 1920 };

static bool speaks, bends; /* the last frames were chosen, and their sound is wrong */

static utter_status frame(struct backend *b, const struct frame_in *in, int n, utter_error *error)
{
    speaks = true;
    return cpu_backend.frame(b, in, n, error);
}

static utter_status feed(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    speaks = false;
    return cpu_backend.feed(b, lane, codes, n_frames, error);
}

static utter_status collect(struct backend *b, int lane, struct lane_out *out, utter_error *error)
{
    static float bent[FRAME];
    utter_status status = cpu_backend.collect(b, lane, out, error);
    if (status == UTTER_OK && speaks && bends && out->pcm) {
        memcpy(bent, out->pcm, sizeof bent);
        bent[FRAME / 2] += 1e-6f;
        out->pcm = bent;
    }
    return status;
}

/* Adds the stages that failed. */
static void note(void *user, const utter_check *check)
{
    char *failed = user; /* [256] */
    if (!check->passed) {
        snprintf(failed + strlen(failed), 256 - strlen(failed), "%s: %s;", check->stage, check->detail);
    }
}

static void streamed_is_whole(void **state)
{
    (void)state;
    utter_model *model;
    utter_error error = {0};
    assert_int_equal(utter_model_open(&model, "build/checkpoints/eos-first", NULL, &error), UTTER_OK);
    struct backend_ops ops = cpu_backend;
    ops.frame = frame;
    ops.feed = feed;
    ops.collect = collect;
    model->engine.context.ops = &ops;
    for (int i = 0; i < 2; i++) {
        char failed[256] = "";
        bends = i;
        assert_int_equal(
            utter_model_verify(model, "tests/golden/eos-first.safetensors", note, failed, &error),
            UTTER_OK);
        assert_string_equal(failed,
            i ? "streamed = whole: 0 of 2 cases, first in two-frames-full: other samples;" : "");
    }
    model->engine.context.ops = &cpu_backend;
    utter_model_close(&model);
}

static void name_failed(void *user, const utter_check *check)
{
    char *failed = user; /* [256] */
    if (!check->passed) {
        snprintf(failed + strlen(failed), 256 - strlen(failed), "%s;", check->stage);
    }
}

/* Three official numbers that are no longer the engine's: their stages fail, and no others. */
static void a_difference_is_told(void **state)
{
    static const char *const bent[] = {
        "english-full/prompt", "english-full/hidden", "english-full/logits"};
    const char *path = support_path("bent.safetensors");
    char failed[256] = "";
    struct tensor_set *set;
    utter_model *model;
    utter_error error = {0};
    size_t bytes;
    (void)state;
    char *data = support_read_file("tests/golden/unusual.safetensors", &bytes);
    assert_non_null(data);
    assert_int_equal(tensor_set_open_memory(&set, data, bytes, "golden", NULL), UTTER_OK);
    for (size_t i = 0; i < sizeof bent / sizeof *bent; i++) {
        const struct tensor *t = tensor_set_find(set, bent[i]);
        static const float far = 1e4f;
        assert_non_null(t);
        memcpy(data + ((const char *)t->data - data), &far, sizeof far);
    }
    tensor_set_close(&set);
    support_write_file(path, data, bytes);
    free(data);
    assert_int_equal(utter_model_open(&model, "build/checkpoints/unusual", NULL, &error), UTTER_OK);
    assert_int_equal(utter_model_verify(model, path, name_failed, failed, &error), UTTER_OK);
    assert_string_equal(failed, "prompt rows;talker state;talker logits;");
    utter_model_close(&model);
}

/* ---- How far the sounds are apart ---- */

static const char EOS_FIRST[] = "tests/golden/eos-first.safetensors";

static void note_value(void *user, const utter_check *check)
{
    double *values = user; /* [2] */
    if (strncmp(check->stage, "samples, ", 9) == 0) {
        values[strcmp(check->stage, "samples, rms") == 0] = check->value;
    }
}

/* The golden file with `by` added to a sample of the first case; the largest of its samples goes to *peak. */
static const char *with_sample(size_t index, float by, double *peak)
{
    struct tensor_set *set;
    size_t bytes;
    char *data = support_read_file(EOS_FIRST, &bytes);
    assert_non_null(data);
    assert_int_equal(tensor_set_open_memory(&set, data, bytes, "golden", NULL), UTTER_OK);
    const struct tensor *t = tensor_set_find(set, "two-frames-full/samples");
    assert_non_null(t);
    float *sample = (float *)(data + ((const char *)t->data - data)) + index;
    *sample += by;
    *peak = 0;
    for (size_t i = 0; i < t->bytes / sizeof *sample; i++) {
        *peak = fmax(*peak, fabs((double)((const float *)t->data)[i]));
    }
    tensor_set_close(&set);
    support_write_file(support_path("moved.safetensors"), data, bytes);
    free(data);
    return support_path("moved.safetensors");
}

/* The largest difference counts in parts of the peak, and the mean of all in parts of the sound's own. */
static void differences_count_by_the_loudness(void **state)
{
    enum { N_SAMPLES = 3840, N_STRIDED = (N_SAMPLES + 96) / 97 };
    const double rms = 0.06064550416362786, by = 0.01;
    double peak, values[2];
    utter_model *model;
    (void)state;
    assert_int_equal(utter_model_open(&model, "build/checkpoints/eos-first", NULL, NULL), UTTER_OK);
    static const size_t places[] = {0, 1111, N_SAMPLES - 1};
    for (size_t i = 0; i < 3; i++) {
        const char *path = with_sample(places[i], (float)by, &peak);
        assert_int_equal(utter_model_verify(model, path, note_value, values, NULL), UTTER_OK);
        assert_true(peak > 0 && peak < 1);
        assert_true(fabs(values[0] - by / peak) <= 1e-3 * by / peak);
        const double wanted = by / sqrt(N_SAMPLES + N_STRIDED) / rms;
        assert_true(fabs(values[1] - wanted) <= 1e-3 * wanted);
    }
    utter_model_close(&model);
}

static void note_prompt(void *user, const utter_check *check)
{
    if (strcmp(check->stage, "prompt rows") == 0) {
        *(double *)user = check->value;
    }
}

/* Of an activation the largest difference counts in parts of the largest official value. */
static void activations_count_by_their_largest(void **state)
{
    const char *path = support_path("prompt.safetensors");
    struct tensor_set *set;
    utter_model *model;
    size_t bytes;
    double largest = 0, value = -1;
    (void)state;
    char *data = support_read_file("tests/golden/unusual.safetensors", &bytes);
    assert_int_equal(tensor_set_open_memory(&set, data, bytes, "golden", NULL), UTTER_OK);
    const struct tensor *t = tensor_set_find(set, "english-full/prompt");
    assert_non_null(t);
    float *at = (float *)(data + ((const char *)t->data - data));
    for (size_t i = 0; i < t->bytes / sizeof *at; i++) {
        largest = fmax(largest, fabs((double)at[i]));
    }
    at[3] += at[3] > 0 ? -(float)largest / 4 : (float)largest / 4; /* which stays below the largest */
    tensor_set_close(&set);
    support_write_file(path, data, bytes);
    free(data);
    assert_int_equal(utter_model_open(&model, "build/checkpoints/unusual", NULL, NULL), UTTER_OK);
    assert_int_equal(utter_model_verify(model, path, note_prompt, &value, NULL), UTTER_OK);
    assert_true(largest > 0 && fabs(largest - 1) > 0.01);
    assert_true(fabs(value - 0.25) <= 1e-3);
    utter_model_close(&model);
}

/* Where all that is official is silent, the difference itself counts. */
static void of_silence_the_difference_counts(void **state)
{
    const char *path = support_path("silent.safetensors");
    struct tensor_set *set;
    utter_model *model;
    size_t bytes;
    double largest = 0, value = -1;
    (void)state;
    char *data = support_read_file("tests/golden/unusual.safetensors", &bytes);
    assert_int_equal(tensor_set_open_memory(&set, data, bytes, "golden", NULL), UTTER_OK);
    const struct tensor *t = tensor_set_find(set, "english-full/prompt");
    float *at = (float *)(data + ((const char *)t->data - data));
    for (size_t i = 0; i < t->bytes / sizeof *at; i++) {
        largest = fmax(largest, fabs((double)at[i]));
        at[i] = 0;
    }
    tensor_set_close(&set);
    support_write_file(path, data, bytes);
    free(data);
    assert_int_equal(utter_model_open(&model, "build/checkpoints/unusual", NULL, NULL), UTTER_OK);
    assert_int_equal(utter_model_verify(model, path, note_prompt, &value, NULL), UTTER_OK);
    assert_true(fabs(value - largest) <= 1e-3 * largest);
    utter_model_close(&model);
}

/* ---- The official sound in fp64, which decides ---- */

enum { N_KEPT = 3840, MOVED = 700 };

/* A golden file with one case out of that of eos-first: its sound is moved by `off` at a sample, and that in fp64 by
 * `off64`. The rms is `rms`, or the sound's own where that is below 0; the peak goes to *peak. */
static const char *with_fp64(double off, double off64, double rms, double *peak)
{
    static const char *const parts[] = {"ids", "codes", "margins", "samples", "strided"};
    static float official[N_KEPT], fp64[N_KEPT];
    struct tensor_set *set;
    struct tensor kept[7];
    assert_int_equal(tensor_set_open_file(&set, EOS_FIRST, NULL), UTTER_OK);
    for (size_t i = 0; i < 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "two-frames-full/%s", parts[i]);
        const struct tensor *t = tensor_set_find(set, name);
        assert_non_null(t);
        kept[i] = *t;
    }
    assert_int_equal(kept[3].bytes, sizeof official);
    memcpy(official, kept[3].data, sizeof official);
    memcpy(fp64, kept[3].data, sizeof fp64);
    *peak = 0;
    for (int i = 0; i < N_KEPT; i++) {
        *peak = fmax(*peak, fabs((double)official[i]));
    }
    official[MOVED] += (float)(off * *peak);
    fp64[MOVED] += (float)(off64 * *peak);
    kept[3].data = official;
    kept[5] = kept[3];
    kept[5].name = "two-frames-full/samples_fp64";
    kept[5].data = fp64;
    kept[6] = kept[4];
    kept[6].name = "two-frames-full/strided_fp64";
    json_t *cases = json_loads(tensor_set_metadata(set, "cases"), 0, NULL);
    json_array_remove(cases, 1);
    if (rms >= 0) {
        json_object_set_new(json_object_get(json_array_get(cases, 0), "sound"), "rms", json_real(rms));
    }
    char *text = json_dumps(cases, 0);
    const char *const metadata[] = {
        "utter_golden", "1", "checkpoint", tensor_set_metadata(set, "checkpoint"), "cases", text, NULL};
    const char *path = support_path("fp64.safetensors");
    assert_int_equal(tensor_file_write(path, kept, 7, metadata, NULL), UTTER_OK);
    free(text);
    json_decref(cases);
    tensor_set_close(&set);
    return path;
}

/* Of the stages of the largest difference: their values (-1: not told), and whether fp64 decided. */
struct decision {
    double fp32, fp64, official, from_this, rms;
    bool decided;
};

static void note_decision(void *user, const utter_check *check)
{
    struct decision *d = user;
    if (strcmp(check->stage, "samples, largest") == 0) {
        d->fp32 = check->value;
    }
    if (strcmp(check->stage, "samples, rms") == 0) {
        d->rms = check->value;
    }
    if (strcmp(check->stage, "fp64, largest") == 0) {
        d->fp64 = check->value;
        d->decided = strstr(check->detail, "; decides 1") != NULL;
        sscanf(check->detail,
            "1 cases, worst in two-frames-full, official fp32 %lf from it, %lf from this", &d->official,
            &d->from_this);
    }
}

static bool near(double value, double wanted)
{
    return fabs(value - wanted) < 2e-5;
}

/* It decides where the sound is too far from that in fp32, and near the one in fp64: within the limit, and no more than
 * a quarter further than the one in fp32 is from it. */
static void fp64_decides_over_fp32(void **state)
{
    static const struct {
        double off, off64;
        bool decided;
    } cases[] = {
        {1.05e-3, 0.55e-3, true},  /* 0.55 and 0.50: less than a quarter more */
        {1.05e-3, 0.61e-3, false}, /* 0.61 and 0.44 */
        {1.05e-3, 0.95e-3, false}, {0.95e-3, 0.40e-3, false},  /* there is nothing to decide */
        {-1.20e-3, 0.95e-3, true}, {-1.20e-3, 1.05e-3, false}, /* too far from both */
    };
    utter_model *model;
    double peak;
    (void)state;
    assert_int_equal(utter_model_open(&model, "build/checkpoints/eos-first", NULL, NULL), UTTER_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct decision d = {.fp32 = -1};
        const char *path = with_fp64(cases[i].off, cases[i].off64, -1, &peak);
        assert_int_equal(utter_model_verify(model, path, note_decision, &d, NULL), UTTER_OK);
        assert_int_equal(d.decided, cases[i].decided);
        assert_true(cases[i].decided ? d.fp32 == -1 : near(d.fp32, fabs(cases[i].off)));
        assert_true(near(d.fp64, fabs(cases[i].off64)));
        assert_true(near(d.official, fabs(cases[i].off - cases[i].off64)));
        assert_true(near(d.from_this, fabs(cases[i].off)));
    }
    struct decision d = {.fp32 = -1}; /* without an rms the largest difference stands for that of all */
    assert_int_equal(
        utter_model_verify(model, with_fp64(5e-4, 5e-4, 0, &peak), note_decision, &d, NULL), UTTER_OK);
    assert_true(near(d.fp32, 5e-4) && near(d.rms, 5e-4 * peak) && peak < 0.9);
    utter_model_close(&model);
}

/* "finish" of the only case of a golden file: it was said how the speech ended, and it ended so. */
static void note_finish(void *user, const utter_check *check)
{
    if (strcmp(check->stage, "finish") == 0) {
        *(bool *)user = check->passed;
    }
}

/* The official package has no guard: speech in a loop goes on for as many frames as the case has. */
static void speech_is_verified_without_a_guard(void **state)
{
    enum { N = 140, N_CODES = 16 };
    static const int32_t codes[N * N_CODES], ids[1];
    static const float margins[N * N_CODES];
    static const struct tensor tensors[] = {{"long/ids", DTYPE_I32, 1, {1}, ids, sizeof ids},
        {"long/codes", DTYPE_I32, 2, {N, N_CODES}, codes, sizeof codes},
        {"long/margins", DTYPE_F32, 2, {N, N_CODES}, margins, sizeof margins}};
    static const char *const metadata[] = {"utter_golden", "1", "checkpoint",
        "{\"kind\": \"custom_voice\"}", "cases",
        "[{\"name\": \"long\", \"kind\": \"speak\", \"text\": \"Hello\", \"layout\": \"full\", "
        "\"repetition_penalty\": 1.0, \"frames\": 140, \"max_frames\": 140, \"finish\": "
        "\"max_frames\"}]",
        NULL};
    const char *path = support_path("long.safetensors");
    utter_error error = {.text = ""};
    utter_model *model;
    bool ended_so = false;
    (void)state;
    assert_int_equal(tensor_file_write(path, tensors, 3, metadata, NULL), UTTER_OK);
    assert_int_equal(utter_model_open(&model, "build/checkpoints/loop", NULL, NULL), UTTER_OK);
    utter_model_verify(model, path, note_finish, &ended_so, &error);
    assert_string_equal(error.text, "");
    assert_true(ended_so);
    utter_model_close(&model);
}

/* A line for each stage that compares something exactly, and what fails. */
static void note_clones(void *user, const utter_check *check)
{
    char *said = user; /* [512] */
    if (!check->passed || check->limit == 1) {
        snprintf(said + strlen(said), 512 - strlen(said), "%s %s: %s\n", check->stage,
            check->passed ? "passes" : "fails", check->detail);
    }
}

/* Of frames behind the last official one nothing is compared: the speech has ended too late. */
static void what_goes_on_too_long_is_told_once(void **state)
{
    static const char *const parts[] = {"ids", "codes", "margins"};
    struct tensor_set *set;
    struct tensor kept[3];
    char said[512] = "";
    utter_model *model;
    (void)state;
    assert_int_equal(tensor_set_open_file(&set, EOS_FIRST, NULL), UTTER_OK);
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "two-frames-full/%s", parts[i]);
        kept[i] = *tensor_set_find(set, name);
        kept[i].dims[0] /= i > 0 ? 2 : 1;
        kept[i].bytes /= i > 0 ? 2 : 1;
    }
    json_t *cases = json_loads(tensor_set_metadata(set, "cases"), 0, NULL);
    json_array_remove(cases, 1);
    json_object_set_new(json_array_get(cases, 0), "frames", json_integer(1));
    json_object_del(json_array_get(cases, 0), "sound");
    char *text = json_dumps(cases, 0);
    const char *const metadata[] = {
        "utter_golden", "1", "checkpoint", tensor_set_metadata(set, "checkpoint"), "cases", text, NULL};
    const char *path = support_path("late.safetensors");
    assert_int_equal(tensor_file_write(path, kept, 3, metadata, NULL), UTTER_OK);
    free(text);
    json_decref(cases);
    tensor_set_close(&set);
    assert_int_equal(utter_model_open(&model, "build/checkpoints/eos-first", NULL, NULL), UTTER_OK);
    assert_int_equal(utter_model_verify(model, path, note_clones, said, NULL), UTTER_OK);
    assert_string_equal(said,
        "checkpoint passes: 3 of 3 files\ntokens passes: 1 of 1 texts\ncodes passes: 16 of 16 "
        "codes\nfinish fails: 0 of 1 cases, first in two-frames-full: eos\n");
    utter_model_close(&model);
}

/* ---- Cloned voices ---- */

/* A golden file with the cases of these names alone, out of that of a base model. */
static const char *with_cases(const char *const *names, size_t n_names)
{
    enum { MOST = 64 };
    struct tensor_set *set;
    struct tensor kept[MOST];
    char owned[MOST][64];
    size_t n = 0;
    assert_int_equal(
        tensor_set_open_file(&set, "tests/golden/tiny06-base.safetensors", NULL), UTTER_OK);
    json_t *all = json_loads(tensor_set_metadata(set, "cases"), 0, NULL), *cases = json_array();
    for (size_t i = 0; i < json_array_size(all); i++) {
        json_t *one = json_array_get(all, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        for (size_t k = 0; k < n_names; k++) {
            static const char *const parts[] = {"x_vector", "reference_codes", "ids", "codes",
                "margins", "samples", "strided", "prompt", "hidden", "logits", "sub_logits"};
            for (size_t j = 0; strcmp(name, names[k]) == 0 && j < sizeof parts / sizeof *parts; j++) {
                assert_true(n < MOST);
                snprintf(owned[n], sizeof owned[n], "%s/%s", name, parts[j]);
                const struct tensor *t = tensor_set_find(set, owned[n]);
                if (t) {
                    kept[n] = *t;
                    kept[n].name = owned[n];
                    n++;
                }
            }
            assert_true(strcmp(name, names[k]) != 0 || json_array_append(cases, one) == 0);
        }
    }
    char *text = json_dumps(cases, 0);
    const char *const metadata[] = {
        "utter_golden", "1", "checkpoint", tensor_set_metadata(set, "checkpoint"), "cases", text, NULL};
    const char *path = support_path("clones.safetensors");
    assert_int_equal(tensor_file_write(path, kept, n, metadata, NULL), UTTER_OK);
    free(text);
    json_decref(cases);
    json_decref(all);
    tensor_set_close(&set);
    return path;
}

/* The codes of a voice's recording go before those that were spoken, and their sound is dropped. */
static void cloned_voices_speak_behind_their_recording(void **state)
{
    static const char *const names[] = {"activations", "english-context-stream", "italian-vector-full"};
    const char *path = with_cases(names, sizeof names / sizeof *names);
    utter_error error = {.text = ""};
    char said[512] = "";
    utter_model *model;
    (void)state;
    assert_int_equal(utter_model_open(&model, "build/checkpoints/tiny06-base", NULL, NULL), UTTER_OK);
    utter_model_verify(model, path, note_clones, said, &error);
    assert_string_equal(error.text, "");
    assert_string_equal(said,
        "checkpoint passes: 3 of 3 files\ntokens passes: 3 of 3 texts\ncodes passes: 240 of 240 codes\n"
        "finish passes: 3 of 3 cases\nstreamed = whole passes: 3 of 3 cases\n");
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(streamed_is_whole),
        cmocka_unit_test(a_difference_is_told), cmocka_unit_test(differences_count_by_the_loudness),
        cmocka_unit_test(activations_count_by_their_largest),
        cmocka_unit_test(of_silence_the_difference_counts), cmocka_unit_test(fp64_decides_over_fp32),
        cmocka_unit_test(speech_is_verified_without_a_guard),
        cmocka_unit_test(what_goes_on_too_long_is_told_once),
        cmocka_unit_test(cloned_voices_speak_behind_their_recording)};
    return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
