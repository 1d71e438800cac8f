/* SPDX-License-Identifier: Apache-2.0
 * Config of what listens: encoders that this program does not know are refused with the field; a checkpoint without
 * encoders opens and says that it cannot listen. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/backend.h"

#define CHECKPOINT "build/checkpoints/tiny06-base"
#define CODEC "speech_tokenizer/config.json"

/* A copy of the checkpoint in which `file` went through sed. Valid until the next call. */
static const char *changed(const char *file, const char *sed)
{
    static int n;
    char name[16], command[1024];
    snprintf(name, sizeof name, "c%d", n++ % 4);
    const char *folder = support_path(name);
    snprintf(command, sizeof command,
        "rm -rf %s && cp -r " CHECKPOINT " %s && sed -E -i '%s' %s/%s && ! cmp -s " CHECKPOINT
        "/%s %s/%s",
        folder, folder, sed, folder, file, file, folder, file);
    assert_int_equal(system(command), 0);
    return folder;
}

static void refused(const char *file, const char *sed, const char *reason)
{
    struct model *model;
    utter_error error = {0};
    utter_status status = model_open(&model, changed(file, sed), &error);
    assert_true(
        status == UTTER_E_MODEL || status == UTTER_E_FILE); /* a field out of its range: the latter */
    assert_null(model);
    if (!strstr(error.text, reason)) {
        fail_msg("%s: \"%s\" does not say \"%s\"", sed, error.text, reason);
    }
}

/* What is missing is as it usually is. */
static void what_is_usual_may_be_missing(void **state)
{
    static const char *const fields[] = {"use_causal_conv", "use_conv_shortcut", "num_residual_layers",
        "audio_channels", "num_semantic_quantizers", "pad_mode", "hidden_act",
        "vector_quantization_hidden_dimension", "encoder_valid_num_quantizers",
        "encode_downsample_rate", "input_sample_rate"};
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        struct model *model;
        utter_error error = {.text = ""};
        char sed[200];
        snprintf(sed, sizeof sed, "s/\"%s\":/\"no_such_field\":/", fields[i]);
        if (model_open(&model, changed(CODEC, sed), &error) != UTTER_OK) {
            fail_msg("without %s: %s", fields[i], error.text);
        }
        model_close(&model);
    }
}

/* A number at either end of its range may misfit the others, but is not out of it. */
static void numbers_have_bounds(void **state)
{
    static const struct {
        const char *field;
        long least, most;
    } bounds[] = {{"num_filters", 1, 4096}, {"compress", 1, 64}, {"kernel_size", 1, 64},
        {"residual_kernel_size", 1, 64}, {"last_kernel_size", 1, 64}, {"num_residual_layers", 0, 64},
        {"audio_channels", 1, 64}, {"encoder_valid_num_quantizers", 1, 1024},
        {"encode_downsample_rate", 1, 1 << 20}, {"input_sample_rate", 1000, 384000}};
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const long values[] = {
            bounds[i].least - 1, bounds[i].least, bounds[i].most, bounds[i].most + 1};
        for (int k = 0; k < 4; k++) {
            struct model *model;
            utter_error error = {.text = ""};
            char sed[200], range[100];
            snprintf(sed, sizeof sed, "s/\"%s\": *-?[0-9]+/\"%s\": %ld /", bounds[i].field,
                bounds[i].field, values[k]);
            snprintf(range, sizeof range, "from %ld to %ld", bounds[i].least, bounds[i].most);
            model_open(&model, changed(CODEC, sed), &error);
            const bool is_out = strstr(error.text, range) != NULL;
            if (is_out != (k == 0 || k == 3)) {
                fail_msg("%s %ld: \"%s\"", bounds[i].field, values[k], error.text);
            }
            model_close(&model);
        }
    }
}

static void unknown_encoders(void **state)
{
    (void)state;
    refused(
        CODEC, "s/\"use_causal_conv\": *true/\"use_causal_conv\":false/", "another kind of encoder");
    refused(CODEC, "s/\"use_conv_shortcut\": *false/\"use_conv_shortcut\":true/", "another kind");
    refused(CODEC, "s/\"pad_mode\": *\"constant\"/\"pad_mode\":\"reflect\"/", "another kind");
    refused(CODEC, "s/\"hidden_act\": *\"gelu\"/\"hidden_act\":\"relu\"/", "another kind");
    refused(CODEC, "s/\"num_residual_layers\": *1/\"num_residual_layers\":2/", "another kind");
    refused(CODEC, "s/\"norm_eps\": *[0-9.e-]+/\"norm_eps\":5/", "norm_eps");
    refused(CODEC, "s/\"num_filters\": *[0-9]+/\"num_filters\":0/", "num_filters");
    refused(CODEC, "s/\"num_filters\": *[0-9]+/\"num_filters\":5/", "does not divide");
    refused(CODEC, "s/\"num_filters\": *[0-9]+/\"num_filters\":8/", "tensors do not fit");
    refused(CODEC, "s/\"kernel_size\": *7/\"kernel_size\":100/", "kernel_size");
    refused(CODEC, "s/\"encode_downsample_rate\": *1920/\"encode_downsample_rate\":960/",
        "is 960; its convolutions make a frame of 1920 samples");
    refused(CODEC, "s/\"encoder_valid_num_quantizers\": *16/\"encoder_valid_num_quantizers\":8/",
        "8 codebooks");
    refused(CODEC, "s/\"input_sample_rate\": *24000/\"input_sample_rate\":16000/", "24000 Hz");
}

static void unknown_speaker_encoders(void **state)
{
    (void)state;
    const char *file = "config.json";
    refused(file, "s/\"enc_dim\": *[0-9]+/\"enc_dim\":0/", "enc_dim");
    refused(file, "s/\"enc_dim\": *[0-9]+/\"enc_dim\":63/", "speaker_encoder.fc.weight");
    refused(file, "s/\"enc_dim\": *([0-9]+)/\"enc_dim\":\\1,\"enc_kernel_sizes\":[5,2,3,3,1]/",
        "do not fit together");
    refused(file, "s/\"enc_dim\": *([0-9]+)/\"enc_dim\":\\1,\"enc_kernel_sizes\":[5,3,3,1]/",
        "do not fit together");
    refused(file, "s/\"enc_dim\": *([0-9]+)/\"enc_dim\":\\1,\"enc_dilations\":[1,2,\"x\",4,1]/",
        "enc_dilations is not a list");
    refused(file, "s/\"enc_dim\": *([0-9]+)/\"enc_dim\":\\1,\"enc_res2net_scale\":7/",
        "do not fit together");
    refused(file, "s/\"enc_dim\": *([0-9]+)/\"enc_dim\":\\1,\"mel_dim\":80/", "do not fit together");
    refused(
        CODEC, "s/_sample_rate\": *24000/_sample_rate\":16000/g", "the speaker encoder hears 24000 Hz");
}

/* Without its config, or without its tensors, the codec still speaks. */
static void codec_without_encoder(void **state)
{
    static const struct {
        const char *file, *sed;
    } ways[] = {{CODEC, "s/\"encoder_config\"/\"no_config\"/"},
        {"speech_tokenizer/model.safetensors", "s/\"encoder\\./\"encodes./g"}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct model *model;
        struct backend *b;
        utter_error error = {0};
        utter_status status = model_open(&model, changed(ways[i].file, ways[i].sed), &error);
        assert_string_equal(error.text, "");
        assert_int_equal(status, UTTER_OK);
        assert_false(model->has_encoder);
        assert_true(model->has_speaker);
        struct backend_options options = {.n_lanes = 1, .n_threads = 1, .lane_positions = 8};
        assert_int_equal(cpu_backend.open(&b, model, &options, NULL), UTTER_OK);
        float pcm[100] = {0};
        int32_t codes[16];
        size_t n_frames;
        assert_int_equal(
            cpu_backend.encode(b, pcm, 100, codes, 1, &n_frames, NULL, NULL, &error), UTTER_E_MODEL);
        assert_non_null(strstr(error.text, "no codec encoder"));
        cpu_backend.close(&b);
        model_close(&model);
    }
}

/* The widest convolution has as many channels as any part may be wide, and no more. */
static void filters_grow_up_to_the_widest(void **state)
{
    static const struct {
        const char *rates; /* that make half a frame together */
        int filters;
        bool wide;
    } cases[] = {{"8,6,5,4", 4096, false}, {"8,6,5,2,2", 2048, false}, {"8,6,5,2,2", 4096, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sed[256];
        snprintf(sed, sizeof sed,
            "s/\"num_filters\": *[0-9]+/\"num_filters\":%d/;"
            "/\"encoder_config\"/,$s/\"upsampling_ratios\": *\\[/\"upsampling_ratios\": [%s], \"x\": "
            "[/",
            cases[i].filters, cases[i].rates);
        refused(CODEC, sed, cases[i].wide ? "grows too wide" : "tensors do not fit");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_usual_may_be_missing),
        cmocka_unit_test(numbers_have_bounds),
        cmocka_unit_test(unknown_encoders),
        cmocka_unit_test(filters_grow_up_to_the_widest),
        cmocka_unit_test(unknown_speaker_encoders),
        cmocka_unit_test(codec_without_encoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
