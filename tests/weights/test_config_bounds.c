/* SPDX-License-Identifier: Apache-2.0
 * Every number of a checkpoint's small files at both ends of its range: the ends are taken, what lies beyond them is
 * refused with the range in words; and what is taken for a member that is not there. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "weights/config.h"
#include "weights/config_parts.h"

#define CHECKPOINT "build/checkpoints/tiny06-base/"

enum { CONFIG, GENERATION, CODEC, N_FILES };
static const char *const names[N_FILES] = {
    "config.json", "generation_config.json", "speech_tokenizer/config.json"};
static json_t *files[N_FILES]; /* as the checkpoint has them */

static int read_files(void **state)
{
    (void)state;
    mkdir(support_path("model"), 0700);
    mkdir(support_path("model/speech_tokenizer"), 0700);
    for (int i = 0; i < N_FILES; i++) {
        char path[256];
        snprintf(path, sizeof path, CHECKPOINT "%s", names[i]);
        files[i] = json_load_file(path, 0, NULL);
        assert_non_null(files[i]);
    }
    return 0;
}

static int forget_files(void **state)
{
    (void)state;
    for (int i = 0; i < N_FILES; i++) {
        json_decref(files[i]);
    }
    return 0;
}

static json_t *part_of(json_t *root, const char *part)
{
    char names_of_parts[128], *rest = NULL;
    snprintf(names_of_parts, sizeof names_of_parts, "%s", part);
    for (char *name = strtok_r(names_of_parts, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
        root = json_object_get(root, name);
    }
    return root;
}

/* The model with one member set to `value`, which becomes the file's; NULL: without the member. */
static utter_status open_with(struct config **config, int file, const char *part, const char *key,
    json_t *value, utter_error *error)
{
    for (int i = 0; i < N_FILES; i++) {
        json_t *root = json_deep_copy(files[i]);
        if (i == file && value) {
            assert_int_equal(json_object_set_new(part_of(root, part), key, value), 0);
        } else if (i == file) {
            json_object_del(part_of(root, part), key);
        }
        char path[64], *text = json_dumps(root, 0);
        snprintf(path, sizeof path, "model/%s", names[i]);
        support_write_file(support_path(path), text, strlen(text));
        free(text);
        json_decref(root);
    }
    error->text[0] = 0;
    return config_open(config, support_path("model"), error);
}

/* Whether the value is refused for its range; it may be for what it does to others. */
static void assert_bound(
    int file, const char *part, const char *key, json_t *value, const char *range, bool is_good)
{
    struct config *config;
    utter_error error;
    const utter_status status = open_with(&config, file, part, key, value, &error);
    const bool is_told = strstr(error.text, range) != NULL;
    if (is_told == is_good || (is_told && (status != UTTER_E_FILE || config))) {
        fail_msg("%s of %s: \"%s\", and the range is %s", key, part, error.text, range);
    }
    config_close(&config);
}

#define TALKER "talker_config"
#define PREDICTOR "talker_config/code_predictor_config"
#define DECODER "decoder_config"
#define ENCODER "encoder_config"
#define SPEAKER "speaker_encoder_config"
#define STACK(file, part)                                                                              \
    {file, part, "hidden_size", 2, CONFIG_MAX_WIDTH},                                                  \
        {file, part, "intermediate_size", 1, CONFIG_MAX_WIDTH},                                        \
        {file, part, "num_hidden_layers", 1, 512}, {file, part, "num_attention_heads", 1, 1024},       \
        {file, part, "num_key_value_heads", 1, 1024},                                                  \
    {                                                                                                  \
        file, part, "head_dim", 2, 1024                                                                \
    }

static const struct {
    int file;
    const char *part, *key;
    int64_t low, high;
} whole[] = {
    STACK(CONFIG, TALKER),
    STACK(CONFIG, PREDICTOR),
    STACK(CODEC, DECODER),
    STACK(CODEC, ENCODER),
    {CONFIG, TALKER, "max_position_embeddings", 16, 1 << 20},
    {CONFIG, TALKER, "text_vocab_size", 1, 1 << 22},
    {CONFIG, TALKER, "text_hidden_size", 1, CONFIG_MAX_WIDTH},
    {CONFIG, TALKER, "vocab_size", 1, 1 << 22},
    {CONFIG, TALKER, "num_code_groups", 2, CONFIG_MAX_CODEBOOKS},
    {CONFIG, TALKER, "codec_pad_id", 0, 1087}, /* of 1,088 codes */
    {CONFIG, TALKER, "codec_bos_id", 0, 1087},
    {CONFIG, TALKER, "codec_eos_token_id", 0, 1087},
    {CONFIG, TALKER, "codec_think_id", 0, 1087},
    {CONFIG, TALKER, "codec_nothink_id", 0, 1087},
    {CONFIG, TALKER, "codec_think_bos_id", 0, 1087},
    {CONFIG, TALKER, "codec_think_eos_id", 0, 1087},
    {CONFIG, PREDICTOR, "vocab_size", 1, 1088},
    {CONFIG, PREDICTOR, "num_code_groups", 2, CONFIG_MAX_CODEBOOKS},
    {CONFIG, "", "im_start_token_id", 0, 1343}, /* of 1,344 tokens */
    {CONFIG, "", "im_end_token_id", 0, 1343},
    {CONFIG, "", "assistant_token_id", 0, 1343},
    {CONFIG, "", "tts_pad_token_id", 0, 1343},
    {CONFIG, "", "tts_bos_token_id", 0, 1343},
    {CONFIG, "", "tts_eos_token_id", 0, 1343},
    {CONFIG, SPEAKER, "enc_dim", 1, CONFIG_MAX_WIDTH},
    {CONFIG, SPEAKER, "mel_dim", 1, 512},
    {CONFIG, SPEAKER, "enc_res2net_scale", 1, CONFIG_SPEAKER_GROUPS},
    {CONFIG, SPEAKER, "enc_attention_channels", 1, CONFIG_MAX_WIDTH},
    {CONFIG, SPEAKER, "enc_se_channels", 1, CONFIG_MAX_WIDTH},
    {CONFIG, SPEAKER, "sample_rate", 1, 1 << 20},
    {GENERATION, "", "top_k", 0, 1 << 30},
    {GENERATION, "", "subtalker_top_k", 0, 1 << 30},
    {GENERATION, "", "max_new_tokens", 1, 1 << 30},
    {CODEC, "", "output_sample_rate", 1000, 384000},
    {CODEC, "", "decode_upsample_rate", 1, 1 << 20},
    {CODEC, DECODER, "sliding_window", 1, 1 << 16},
    {CODEC, DECODER, "num_quantizers", 2, CONFIG_MAX_CODEBOOKS},
    {CODEC, DECODER, "num_semantic_quantizers", 1, 16}, /* of 16 codebooks */
    {CODEC, DECODER, "codebook_size", 1, 1 << 22},
    {CODEC, DECODER, "codebook_dim", 2, CONFIG_MAX_WIDTH},
    {CODEC, DECODER, "latent_dim", 1, CONFIG_MAX_WIDTH},
    {CODEC, DECODER, "decoder_dim", 1, CONFIG_MAX_WIDTH},
    {CODEC, ENCODER, "codebook_dim", 1, CONFIG_MAX_WIDTH},
    {CODEC, ENCODER, "codebook_size", 1, 1 << 22},
    {CODEC, ENCODER, "num_quantizers", 1, 1024},
    {CODEC, ENCODER, "vector_quantization_hidden_dimension", 1, CONFIG_MAX_WIDTH},
};

static void whole_numbers_reach_to_their_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        const int64_t values[] = {whole[i].low, whole[i].high, whole[i].low - 1, whole[i].high + 1};
        for (int k = 0; k < 4; k++) {
            char range[160];
            snprintf(range, sizeof range, "\"%s\" must be a whole number from %lld to %lld, found %lld",
                whole[i].key, (long long)whole[i].low, (long long)whole[i].high, (long long)values[k]);
            assert_bound(
                whole[i].file, whole[i].part, whole[i].key, json_integer(values[k]), range, k < 2);
        }
    }
}

static const struct {
    int file;
    const char *part, *key;
    double low, high;
} fractions[] = {
    {CONFIG, TALKER, "rms_norm_eps", 1e-12, 1},
    {CONFIG, TALKER, "rope_theta", 1, 1e12},
    {CONFIG, PREDICTOR, "rms_norm_eps", 1e-12, 1},
    {CONFIG, PREDICTOR, "rope_theta", 1, 1e12},
    {CODEC, DECODER, "rms_norm_eps", 1e-12, 1},
    {CODEC, DECODER, "rope_theta", 1, 1e12},
    {CODEC, ENCODER, "norm_eps", 1e-12, 1},
    {CODEC, ENCODER, "rope_theta", 1, 1e12},
    {GENERATION, "", "temperature", 0, 100},
    {GENERATION, "", "top_p", 1e-6, 1},
    {GENERATION, "", "repetition_penalty", 1e-3, 1e3},
    {GENERATION, "", "subtalker_temperature", 0, 100},
    {GENERATION, "", "subtalker_top_p", 1e-6, 1},
};

static void fractions_reach_to_their_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++) {
        const double low = fractions[i].low, high = fractions[i].high;
        const double values[] = {low, high, low > 0 ? low * 0.99 : -0.01, high * 1.001};
        for (int k = 0; k < 4; k++) {
            char range[160];
            snprintf(range, sizeof range, "\"%s\" must be a number from %g to %g, found %g",
                fractions[i].key, low, high, values[k]);
            assert_bound(fractions[i].file, fractions[i].part, fractions[i].key, json_real(values[k]),
                range, k < 2);
        }
    }
}

/* The model without this member, to be closed; it must open. */
static struct config *without(int file, const char *part, const char *key)
{
    struct config *config;
    utter_error error;
    if (open_with(&config, file, part, key, NULL, &error) != UTTER_OK) {
        fail_msg("without %s: %s", key, error.text);
    }
    return config;
}

static void what_is_not_said_is_the_usual(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        utter_sampling talker, predictor;
        int max_new_tokens;
    } cases[] = {
        {"temperature", {0.9f, 7, 0.5f, 2}, {0.7f, 5, 0.3f, 1}, 99},
        {"top_k", {0.8f, 50, 0.5f, 2}, {0.7f, 5, 0.3f, 1}, 99},
        {"top_p", {0.8f, 7, 1, 2}, {0.7f, 5, 0.3f, 1}, 99},
        {"repetition_penalty", {0.8f, 7, 0.5f, 1.05f}, {0.7f, 5, 0.3f, 1}, 99},
        {"subtalker_temperature", {0.8f, 7, 0.5f, 2}, {0.9f, 5, 0.3f, 1}, 99},
        {"subtalker_top_k", {0.8f, 7, 0.5f, 2}, {0.7f, 50, 0.3f, 1}, 99},
        {"subtalker_top_p", {0.8f, 7, 0.5f, 2}, {0.7f, 5, 1, 1}, 99},
        {"max_new_tokens", {0.8f, 7, 0.5f, 2}, {0.7f, 5, 0.3f, 1}, 2048},
        {"do_sample", {0.8f, 7, 0.5f, 2}, {0.7f, 5, 0.3f, 1}, 99},
        {"subtalker_dosample", {0.8f, 7, 0.5f, 2}, {0.7f, 5, 0.3f, 1}, 99},
    };
    json_t *as_it_is = files[GENERATION];
    files[GENERATION] = json_pack("{sf si sf sf sf si sf si sb sb}", "temperature", 0.8, "top_k", 7,
        "top_p", 0.5, "repetition_penalty", 2.0, "subtalker_temperature", 0.7, "subtalker_top_k", 5,
        "subtalker_top_p", 0.3, "max_new_tokens", 99, "do_sample", 1, "subtalker_dosample", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config *c = without(GENERATION, "", cases[i].key);
        assert_memory_equal(&c->talker_sampling, &cases[i].talker, sizeof c->talker_sampling);
        assert_memory_equal(&c->predictor_sampling, &cases[i].predictor, sizeof c->predictor_sampling);
        assert_int_equal(c->max_new_tokens, cases[i].max_new_tokens);
        config_close(&c);
        assert_null(c);
    }
    json_decref(files[GENERATION]);
    files[GENERATION] = as_it_is;
}

/* Each switch is of its own table. */
static void who_does_not_sample_is_greedy(void **state)
{
    (void)state;
    static const char *const keys[] = {"do_sample", "subtalker_dosample"};
    for (int i = 0; i < 2; i++) {
        struct config *c;
        utter_error error;
        assert_int_equal(open_with(&c, GENERATION, "", keys[i], json_false(), &error), UTTER_OK);
        assert_true((c->talker_sampling.temperature == 0) == (i == 0));
        assert_true((c->predictor_sampling.temperature == 0) == (i == 1));
        config_close(&c);
    }
}

static void numbers_that_others_give_need_not_be_said(void **state)
{
    (void)state;
    struct config *c = without(CONFIG, PREDICTOR, "num_code_groups");
    assert_int_equal(c->n_codebooks, 16);
    config_close(&c);
    c = without(CODEC, DECODER, "num_semantic_quantizers");
    assert_int_equal(c->codec.n_semantic, 1);
    config_close(&c);
    c = without(CONFIG, TALKER, "num_key_value_heads");
    assert_int_equal(c->talker.n_kv_heads, c->talker.n_heads);
    config_close(&c);
    c = without(CONFIG, "", "transformers_version");
    assert_null(c->transformers_version);
    config_close(&c);
    c = without(CONFIG, "", "speaker_encoder_config");
    assert_false(c->has_speaker_encoder);
    config_close(&c);
}

/* Neither another codec's table of factors nor one code too many goes by. */
static void the_codec_must_be_the_talkers(void **state)
{
    (void)state;
    struct config *c;
    utter_error error;
    json_object_del(files[CODEC], "encoder_config"); /* whose codebooks are compared before */
    assert_int_equal(
        open_with(&c, CODEC, DECODER, "codebook_size", json_integer(65), &error), UTTER_E_MODEL);
    assert_null(c);
    assert_non_null(strstr(error.text, "16 codebooks of 65 codes, the talker 16 of 64"));
    assert_int_equal(
        open_with(&c, CODEC, "", "output_sample_rate", json_integer(24001), &error), UTTER_E_MODEL);
    assert_non_null(
        strstr(error.text, "output_sample_rate is 24001, the speaker encoder hears 24000 Hz"));
    assert_int_equal(
        open_with(&c, CODEC, DECODER, "head_dim", json_integer(33), &error), UTTER_E_MODEL);
    assert_non_null(strstr(error.text, "head_dim 33 is odd"));
}

/* Up to 8 factors of up to 64, and with the two of 2 behind them a frame of up to a million samples. */
static void factors_reach_to_their_ends(void **state)
{
    (void)state;
    static const struct {
        const char *rates, *said; /* NULL: what is wrong is that others do not fit to them */
    } cases[] = {
        {"[64,64,64]", NULL},
        {"[64,64,64,2]", "upsampling_ratios[1] is not a factor in 1..64"},
        {"[64,64,64,64]", "upsample_rates[3] is not a factor in 1..64"},
        {"[1]", NULL},
        {"[0]", "upsample_rates[0] is not a factor in 1..64"},
        {"[8,65]", "upsample_rates[1] is not a factor in 1..64"},
        {"[8,2.0]", "upsample_rates[1] is not a factor in 1..64"},
        {"[1,1,1,1,1,1,1,1]", NULL},
        {"[1,1,1,1,1,1,1,1,1]", "upsample_rates has 9 entries, not 1..8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config *c;
        utter_error error;
        json_t *rates = json_loads(cases[i].rates, 0, NULL);
        assert_int_not_equal(open_with(&c, CODEC, DECODER, "upsample_rates", rates, &error), UTTER_OK);
        const bool is_told = strstr(error.text, "factor in") || strstr(error.text, "entries");
        if (cases[i].said ? !strstr(error.text, cases[i].said) : is_told) {
            fail_msg("%s: \"%s\"", cases[i].rates, error.text);
        }
    }
}

/* ---- The speaker encoder ---- */

/* Each list has 3 numbers at least, as many as there may be blocks at most, and each number a range. */
static void lists_reach_to_their_ends(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int most;
    } lists[] = {{"enc_channels", CONFIG_MAX_WIDTH}, {"enc_kernel_sizes", 63}, {"enc_dilations", 64}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const int most = lists[i].most;
        const struct {
            int n, last;
            bool is_good;
        } cases[] = {{3, 1, true}, {3, most, true}, {CONFIG_SPEAKER_BLOCKS, 1, true}, {2, 1, false},
            {0, 1, false}, {3, 0, false}, {3, most + 1, false}, {CONFIG_SPEAKER_BLOCKS + 1, 1, false}};
        char range[100];
        snprintf(range, sizeof range, "%s is not a list of 3 to %d numbers in 1..%d", lists[i].key,
            CONFIG_SPEAKER_BLOCKS, most);
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            struct config *config;
            utter_error error;
            json_t *list = json_array();
            for (int j = 1; j <= cases[k].n; j++) {
                json_array_append_new(list, json_integer(j == cases[k].n ? cases[k].last : 1));
            }
            open_with(&config, CONFIG, SPEAKER, lists[i].key, list, &error);
            if ((strstr(error.text, range) == NULL) != cases[k].is_good) {
                fail_msg("%d numbers of %s, the last %d: \"%s\"", cases[k].n, lists[i].key,
                    cases[k].last, error.text);
            }
            config_close(&config);
        }
    }
}

/* As the released models have it, which do not say so. */
static void a_speaker_encoder_is_the_usual(void **state)
{
    (void)state;
    static const int channels[] = {512, 512, 512, 512, 1536}, taps[] = {5, 3, 3, 3, 1},
                     dilations[] = {1, 2, 3, 4, 1};
    json_t *as_it_is = json_deep_copy(json_object_get(files[CONFIG], SPEAKER));
    json_object_set_new(files[CONFIG], SPEAKER, json_pack("{si}", "enc_dim", 64));
    struct config *c = without(CONFIG, "", "no such member");
    const struct speaker_config *s = &c->speaker;
    assert_memory_equal(s->channels, channels, sizeof channels);
    assert_memory_equal(s->taps, taps, sizeof taps);
    assert_memory_equal(s->dilations, dilations, sizeof dilations);
    assert_true(s->n_blocks == 4 && s->last_channels == 1536 && s->n_mels == 128 && s->groups == 8);
    assert_true(s->attention_channels == 128 && s->squeeze_channels == 128);
    assert_int_equal(c->speaker_width, 64);
    config_close(&c);
    json_object_set_new(files[CONFIG], SPEAKER, as_it_is);
}

static void blocks_fit_together(void **state)
{
    (void)state;
    static const struct {
        const char *channels, *taps, *dilations;
        int groups, mels, rate;
        bool fit;
    } cases[] = {
        {"[8,8,8,16]", "[5,3,3,1]", "[1,2,3,1]", 4, 128, 24000, true},
        {"[8,8,8]", "[1,3,1]", "[1,2,1]", 8, 128, 24000, true},
        {"[8,8,8,24]", "[5,3,3,1]", "[1,2,3,1]", 4, 128, 24000, false},
        {"[8,8,8,8]", "[5,3,3,1]", "[1,2,3,1]", 4, 128, 24000, false},
        {"[8,16,8,16]", "[5,3,3,1]", "[1,2,3,1]", 4, 128, 24000, false},
        {"[8,8,16,16]", "[5,3,3,1]", "[1,2,3,1]", 4, 128, 24000, false},
        {"[8,8,8,16]", "[4,3,3,1]", "[1,2,3,1]", 4, 128, 24000, false},
        {"[8,8,8,16]", "[5,3,2,1]", "[1,2,3,1]", 4, 128, 24000, false},
        {"[8,8,8,16]", "[5,3,3,3]", "[1,2,3,1]", 4, 128, 24000, false},
        {"[8,8,8,16]", "[5,3,1]", "[1,2,3,1]", 4, 128, 24000, false},
        {"[8,8,8,16]", "[5,3,3,1,1]", "[1,2,3,1]", 4, 128, 24000, false},
        {"[8,8,8,16]", "[5,3,3,1]", "[1,2,3]", 4, 128, 24000, false},
        {"[8,8,8,16]", "[5,3,3,1]", "[1,2,3,1,1]", 4, 128, 24000, false},
        {"[8,8,8,16]", "[5,3,3,1]", "[1,2,3,1]", 3, 128, 24000, false},
        {"[8,8,8,16]", "[5,3,3,1]", "[1,2,3,1]", 4, 127, 24000, false},
        {"[8,8,8,16]", "[5,3,3,1]", "[1,2,3,1]", 4, 128, 24001, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config *c;
        utter_error error;
        json_t *speaker = json_pack("{si so so so si si si si si}", "enc_dim", 64, "enc_channels",
            json_loads(cases[i].channels, 0, NULL), "enc_kernel_sizes",
            json_loads(cases[i].taps, 0, NULL), "enc_dilations",
            json_loads(cases[i].dilations, 0, NULL), "enc_res2net_scale", cases[i].groups, "mel_dim",
            cases[i].mels, "sample_rate", cases[i].rate, "enc_attention_channels", 5, "enc_se_channels",
            6);
        assert_non_null(speaker);
        if ((open_with(&c, CONFIG, "", SPEAKER, speaker, &error) == UTTER_OK) != cases[i].fit) {
            fail_msg("case %zu: \"%s\"", i, error.text);
        }
        assert_true(cases[i].fit || strstr(error.text, "lists that do not fit together"));
        assert_true(!c || (c->speaker.attention_channels == 5 && c->speaker.squeeze_channels == 6));
        config_close(&c);
    }
}

/* ---- What is said ---- */

static json_t *languages(int n)
{
    json_t *list = json_object();
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "l%d", i);
        json_object_set_new(list, name, json_integer(i % 1088));
    }
    return list;
}

/* Each number and name of a refusal at its place. */
static void refusals_are_told_in_full(void **state)
{
    (void)state;
    const struct {
        int file;
        const char *part, *key;
        json_t *value;
        const char *said;
    } cases[] = {
        {CONFIG, TALKER, "num_key_value_heads", json_integer(3),
            "config.json: talker_config: 4 heads do not divide over 3 key-value heads"},
        {CONFIG, TALKER, "codec_language_id", languages(4096), ""},
        {CONFIG, TALKER, "codec_language_id", languages(4097),
            "config.json: codec_language_id has 4097 entries, more than 4096"},
        {CONFIG, TALKER "/codec_language_id", "german", json_integer(1088),
            "config.json: codec_language_id: the id of \"german\" is not in 0..1087"},
        {CONFIG, PREDICTOR, "num_code_groups", json_integer(15),
            "config.json: code_predictor_config: num_code_groups is 15, the talker's is 16"},
        {CODEC, DECODER, "upsample_rates", json_array(),
            "speech_tokenizer/config.json: decoder_config: upsample_rates has 0 entries, not 1..8"},
        {CODEC, DECODER, "upsample_rates", json_pack("[ii]", 8, 65),
            "speech_tokenizer/config.json: decoder_config: upsample_rates[1] is not a factor in 1..64"},
        {CODEC, "", "input_sample_rate", json_integer(16000),
            "speech_tokenizer/config.json: encoder_config: 16 codebooks of 64 codes, 1920 samples a "
            "frame "
            "at 16000 Hz; the decoder has 16 of 64, 1920 at 24000 Hz"},
        {CODEC, ENCODER, "num_filters", json_integer(5),
            "speech_tokenizer/config.json: encoder_config: num_filters 5 does not divide by compress "
            "2, or "
            "grows too wide"},
        {CODEC, "", "decode_upsample_rate", json_integer(1921),
            "speech_tokenizer/config.json: decode_upsample_rate is 1921, the decoder's factors make "
            "1920"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config *c;
        utter_error error;
        open_with(&c, cases[i].file, cases[i].part, cases[i].key, cases[i].value, &error);
        assert_string_equal(error.text, cases[i].said);
        assert_true((c != NULL) == !cases[i].said[0]);
        config_close(&c);
    }
}

/* ---- Files that are not there ---- */

/* Without its settings a model takes the usual ones; without its codec it is not whole. */
static void files_that_lack_are_told(void **state)
{
    (void)state;
    struct config *c = without(CONFIG, "", "no such member");
    config_close(&c);
    utter_error error = {.text = ""};
    char wanted[512];
    assert_int_equal(unlink(support_path("model/generation_config.json")), 0);
    assert_int_equal(config_open(&c, support_path("model"), &error), UTTER_OK);
    assert_true(c->max_new_tokens == 2048 && c->talker_sampling.top_k == 50);
    config_close(&c);
    assert_int_equal(unlink(support_path("model/speech_tokenizer/config.json")), 0);
    assert_int_equal(config_open(&c, support_path("model"), &error), UTTER_E_FILE);
    assert_null(c);
    snprintf(wanted, sizeof wanted,
        "%s/speech_tokenizer/config.json: is not there: a part of the model is missing (utter pull "
        "brings all of a released one)",
        support_path("model"));
    assert_string_equal(error.text, wanted);
}

static void what_stands_in_place_of_a_model_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *name, *content, *said;
    } places[] = {{"nothing", NULL, "there is no such folder (check the name)"},
        {"empty", "/", "no config.json (not a Qwen3-TTS model folder)"},
        {"text", "Hello, this is a text.",
            "not a folder (a model is a folder with config.json and model.safetensors)"},
        {"nought", "", "not a folder (a model is a folder with config.json and model.safetensors)"},
        {"cut", "GGU", "not a folder (a model is a folder with config.json and model.safetensors)"},
        {"brief", "GGUF", "no model of this program (a GGUF file, which other programs read"},
        {"long", "GGUF1234567890", "no model of this program (a GGUF file"},
        {"pointer", "version https://git-lfs.github.com/spec/v1",
            "no model of this program (a pointer"},
        {"page", "<!DOCTYPE html>", "no model of this program (a page of the web"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct config *c;
        utter_error error;
        char wanted[512];
        const char *content = places[i].content, *path = support_path(places[i].name);
        if (content && strcmp(content, "/") == 0) {
            assert_int_equal(mkdir(path, 0700), 0);
        } else if (content) {
            support_write_file(path, content, strlen(content));
        }
        assert_int_equal(config_open(&c, path, &error), UTTER_E_FILE);
        assert_null(c);
        snprintf(wanted, sizeof wanted, "%s: %s", path, places[i].said);
        assert_int_equal(strncmp(error.text, wanted, strlen(wanted)), 0);
        assert_int_equal(support_count_mappings(places[i].name), 0);
    }
}

/* Whatever of it: nothing is left out. */
static void without_memory_there_is_none(void **state)
{
    struct config *c;
    utter_error error;
    (void)state;
    assert_int_equal(open_with(&c, CONFIG, "", "transformers_version", json_string("5.0"), &error), 0);
    config_close(&c);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_status status = config_open(&c, support_path("model"), &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        config_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_reach_to_their_ends),
        cmocka_unit_test(fractions_reach_to_their_ends),
        cmocka_unit_test(what_is_not_said_is_the_usual),
        cmocka_unit_test(who_does_not_sample_is_greedy),
        cmocka_unit_test(numbers_that_others_give_need_not_be_said),
        cmocka_unit_test(factors_reach_to_their_ends), cmocka_unit_test(lists_reach_to_their_ends),
        cmocka_unit_test(a_speaker_encoder_is_the_usual), cmocka_unit_test(blocks_fit_together),
        cmocka_unit_test(refusals_are_told_in_full), cmocka_unit_test(files_that_lack_are_told),
        cmocka_unit_test(what_stands_in_place_of_a_model_is_told),
        cmocka_unit_test(without_memory_there_is_none),
        cmocka_unit_test(the_codec_must_be_the_talkers), /* the last: it changes the codec */
    };
    return cmocka_run_group_tests(tests, read_files, forget_files);
}
