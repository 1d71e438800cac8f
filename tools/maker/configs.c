/* SPDX-License-Identifier: Apache-2.0
 * The JSON files of a checkpoint, with the fields of the released ones. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tools/maker/maker.h"

struct named_id {
    const char *name;
    int id; /* as in the released models */
    const char *dialect;
};

static const struct named_id languages[] = {
    {"chinese", 2055, NULL},
    {"english", 2050, NULL},
    {"german", 2053, NULL},
    {"italian", 2070, NULL},
    {"portuguese", 2071, NULL},
    {"spanish", 2054, NULL},
    {"japanese", 2058, NULL},
    {"korean", 2064, NULL},
    {"french", 2061, NULL},
    {"russian", 2069, NULL},
    {"beijing_dialect", 2074, NULL},
    {"sichuan_dialect", 2062, NULL},
};
enum { N_LANGUAGES = 10, N_WITH_DIALECTS = 12 };

static const struct named_id speakers[] = {
    {"serena", 3066, NULL},
    {"vivian", 3065, NULL},
    {"uncle_fu", 3010, NULL},
    {"ryan", 3061, NULL},
    {"aiden", 2861, NULL},
    {"ono_anna", 2873, NULL},
    {"sohee", 2864, NULL},
    {"eric", 2875, "sichuan_dialect"},
    {"dylan", 2878, "beijing_dialect"},
};
static const struct named_id fine_tuned_speaker = {"my_voice", 3000, NULL};

static void write_json(const char *folder, const char *name, json_t *root, const char *end)
{
    char path[4096];
    FILE *out = root ? fopen(path_in(path, sizeof path, folder, name), "wb") : NULL;
    if (!out || json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) != 0 ||
        fputs(end, out) < 0 || fclose(out) != 0) {
        fail("cannot write %s/%s", folder, name);
    }
    json_decref(root);
}

static void add(json_t *object, json_t *more)
{
    if (!object || !more || json_object_update(object, more) != 0) {
        fail("out of memory");
    }
    json_decref(more);
}

static void add_speakers(json_t *talker, const struct request *r)
{
    json_t *ids = json_object(), *dialects = json_object();
    bool none = r->variant != VARIANT_CUSTOM_VOICE;
    const struct named_id *list = r->fine_tuned ? &fine_tuned_speaker : speakers;
    size_t n = none ? 0 : r->fine_tuned ? 1 : sizeof speakers / sizeof *speakers;
    for (size_t i = 0; i < n; i++) {
        json_object_set_new(ids, list[i].name, json_integer(shape_control_id(&r->shape, list[i].id)));
        json_object_set_new(
            dialects, list[i].name, list[i].dialect ? json_string(list[i].dialect) : json_false());
    }
    json_object_set_new(talker, "spk_id", ids);
    json_object_set_new(talker, "spk_is_dialect", dialects);
}

static json_t *stack_config(const struct stack *s)
{
    return json_pack("{s:b, s:i, s:i, s:s, s:i, s:f, s:i, s:i, s:i, s:i, s:f, s:i, s:n, s:b, s:b}",
        "attention_bias", 0, "attention_dropout", 0, "head_dim", s->head_dim, "hidden_act", "silu",
        "hidden_size", s->width, "initializer_range", 0.02, "intermediate_size", s->inner,
        "num_attention_heads", s->heads, "num_hidden_layers", s->layers, "num_key_value_heads",
        s->kv_heads, "rms_norm_eps", 1e-6, "rope_theta", MAKER_ROPE_THETA, "sliding_window",
        "use_sliding_window", 0, "use_cache", 1);
}

static json_t *predictor_config(const struct shape *s)
{
    json_t *c = stack_config(&s->predictor), *types = json_array();
    for (int i = 0; i < s->predictor.layers; i++) {
        json_array_append_new(types, json_string("full_attention"));
    }
    add(c, json_pack("{s:o, s:i, s:s, s:i, s:n, s:i, s:i}", "layer_types", types,
               "max_position_embeddings", 65536, "model_type", "qwen3_tts_talker_code_predictor",
               "num_code_groups", s->codebooks, "rope_scaling", "vocab_size", s->codebook_size,
               "max_window_layers", 28));
    return c;
}

static json_t *talker_config(const struct request *r)
{
    const struct shape *s = &r->shape;
    int half = s->talker.head_dim / 2, third = half * 20 / 64; /* 24, 20, 20 of 64 */
    json_t *c = stack_config(&s->talker), *ids = json_object();
    json_t *rope = json_pack("{s:b, s:[i,i,i], s:s, s:s}", "interleaved", 1, "mrope_section",
        half - 2 * third, third, third, "rope_type", "default", "type", "default");
    add(c, json_pack("{s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "code_predictor_config",
               predictor_config(s), "codec_bos_id", shape_control_id(s, 2149), "codec_eos_token_id",
               shape_control_id(s, 2150), "codec_pad_id", shape_control_id(s, 2148), "codec_think_id",
               shape_control_id(s, 2154), "codec_nothink_id", shape_control_id(s, 2155),
               "codec_think_bos_id", shape_control_id(s, 2156), "codec_think_eos_id",
               shape_control_id(s, 2157)));
    bool dialects = r->variant == VARIANT_CUSTOM_VOICE && !r->fine_tuned;
    for (int i = 0; i < (dialects ? N_WITH_DIALECTS : N_LANGUAGES); i++) {
        json_object_set_new(ids, languages[i].name, json_integer(shape_control_id(s, languages[i].id)));
    }
    add(c,
        json_pack("{s:o, s:i, s:s, s:i, s:i, s:o, s:i, s:i, s:i}", "codec_language_id", ids,
            "max_position_embeddings", 32768, "model_type", "qwen3_tts_talker", "num_code_groups",
            s->codebooks, "position_id_per_seconds", 13, "rope_scaling", rope, "text_hidden_size",
            s->text_width, "text_vocab_size", request_text_rows(r), "vocab_size", shape_codec_rows(s)));
    add_speakers(c, r);
    return c;
}

static json_t *speaker_encoder_config(const struct shape *s)
{
    int wide = s->speaker_channels;
    json_t *c = json_pack("{s:i, s:i}", "enc_dim", s->talker.width, "sample_rate", 24000);
    if (wide != 512) { /* the released files leave these at the defaults of the class */
        add(c, json_pack("{s:[i,i,i,i,i], s:i, s:i}", "enc_channels", wide, wide, wide, wide,
                   s->speaker_last, "enc_attention_channels", s->speaker_narrow, "enc_se_channels",
                   s->speaker_narrow));
    }
    return c;
}

static void write_main(const struct request *r)
{
    const struct vocabulary *v = &r->vocabulary;
    json_t *c = json_pack("{s:[s], s:i, s:i, s:i, s:i, s:i, s:i, s:s}", "architectures",
        "Qwen3TTSForConditionalGeneration", "assistant_token_id", v->assistant, "im_end_token_id",
        v->im_end, "im_start_token_id", v->im_start, "tts_bos_token_id", v->tts_bos, "tts_eos_token_id",
        v->tts_eos, "tts_pad_token_id", v->tts_pad, "model_type", "qwen3_tts");
    add(c, json_pack("{s:s, s:s, s:s, s:o, s:s}", "tokenizer_type", "qwen3_tts_tokenizer_12hz",
               "tts_model_size", r->shape.size, "tts_model_type", variant_name(r->variant),
               "talker_config", talker_config(r), "transformers_version", "4.57.3"));
    if (r->variant == VARIANT_BASE ||
        r->fine_tuned) { /* fine-tuning leaves the entry and drops the tensors */
        json_object_set_new(c, "speaker_encoder_config", speaker_encoder_config(&r->shape));
    }
    write_json(r->folder, "config.json", c, "\n");
}

static json_t *vocoder_config(const struct shape *s)
{
    const struct stack *v = &s->vocoder;
    json_t *c = json_pack("{s:b, s:f, s:i, s:i, s:i, s:i, s:s, s:i, s:i, s:i, s:f}", "attention_bias",
        0, "attention_dropout", 0.0, "latent_dim", s->latent, "codebook_dim", s->code_width,
        "codebook_size", s->codebook_size, "decoder_dim", s->conv_width, "hidden_act", "silu",
        "hidden_size", v->width, "intermediate_size", v->inner, "max_position_embeddings", 8000,
        "layer_scale_initial_scale", 0.01);
    add(c, json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:i, s:i, s:i, s:[i,i,i,i], s:[i,i], s:i}",
               "head_dim", v->head_dim, "num_attention_heads", v->heads, "num_hidden_layers", v->layers,
               "num_key_value_heads", v->kv_heads, "num_quantizers", s->codebooks,
               "num_semantic_quantizers", 1, "rms_norm_eps", 1e-5, "rope_theta", 10000,
               "semantic_codebook_size", 4096, "sliding_window", s->window, "upsample_rates", 8, 5, 4,
               3, "upsampling_ratios", 2, 2, "vector_quantization_hidden_dimension", 512));
    return c;
}

static json_t *encoder_config(const struct shape *s)
{
    const struct stack *e = &s->encoder;
    json_t *c = json_pack("{s:f, s:b, s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:i}", "_frame_rate",
        12.5, "attention_bias", 0, "attention_dropout", 0.0, "audio_channels", 1, "codebook_dim",
        s->encoder_code_width, "codebook_size", s->codebook_size, "compress", 2, "dilation_growth_rate",
        2, "head_dim", e->head_dim, "hidden_act", "gelu", "hidden_size", e->width);
    add(c, json_pack("{s:f, s:i, s:i, s:i, s:f, s:i, s:f, s:b, s:i, s:i, s:i, s:i, s:i}",
               "initializer_range", 0.02, "intermediate_size", e->inner, "kernel_size", 7,
               "last_kernel_size", 3, "layer_scale_initial_scale", 0.01, "max_position_embeddings",
               8000, "norm_eps", 1e-5, "normalize", 0, "num_attention_heads", e->heads, "num_filters",
               s->filters, "num_hidden_layers", e->layers, "num_key_value_heads", e->kv_heads,
               "num_quantizers", s->quantizers));
    add(c,
        json_pack("{s:i, s:i, s:s, s:i, s:f, s:i, s:i, s:f, s:i, s:[i,i,i,i], s:b, s:b, s:b, s:b, s:i}",
            "num_residual_layers", 1, "num_semantic_quantizers", 1, "pad_mode", "constant",
            "residual_kernel_size", 3, "rope_theta", 10000.0, "sampling_rate", 24000, "sliding_window",
            250, "trim_right_ratio", 1.0, "upsample_groups", e->width, "upsampling_ratios", 8, 6, 5, 4,
            "use_cache", 0, "use_causal_conv", 1, "use_conv_shortcut", 0, "use_streaming", 0,
            "vector_quantization_hidden_dimension", s->encoder_code_width));
    return c;
}

static void write_codec(const struct request *r)
{
    char folder[4096];
    path_in(folder, sizeof folder, r->folder, "speech_tokenizer");
    write_json(folder, "config.json",
        json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:s}", "architectures",
            "Qwen3TTSTokenizerV2Model", "model_type", "qwen3_tts_tokenizer_12hz",
            "encoder_valid_num_quantizers", r->shape.codebooks, "input_sample_rate", 24000,
            "output_sample_rate", 24000, "decode_upsample_rate", 1920, "encode_downsample_rate", 1920,
            "decoder_config", vocoder_config(&r->shape), "encoder_config", encoder_config(&r->shape),
            "transformers_version", "4.57.3"),
        "\n");
    write_json(folder, "preprocessor_config.json",
        json_pack("{s:n, s:s, s:i, s:n, s:s, s:f, s:b, s:i}", "chunk_length_s",
            "feature_extractor_type", "EncodecFeatureExtractor", "feature_size", 1, "overlap",
            "padding_side", "right", "padding_value", 0.0, "return_attention_mask", 1, "sampling_rate",
            24000),
        "\n");
    write_json(folder, "configuration.json",
        json_pack(
            "{s:s, s:s, s:b}", "framework", "pytorch", "task", "feature-extraction", "allow_remote", 1),
        "\n");
}

void configs_write(const struct request *r)
{
    write_codec(r);
    /* The released file, 245 bytes. */
    write_json(r->folder, "generation_config.json",
        json_pack("{s:b, s:f, s:f, s:f, s:i, s:b, s:f, s:f, s:i, s:i}", "do_sample", 1,
            "repetition_penalty", 1.05, "temperature", 0.9, "top_p", 1.0, "top_k", 50,
            "subtalker_dosample", 1, "subtalker_temperature", 0.9, "subtalker_top_p", 1.0,
            "subtalker_top_k", 50, "max_new_tokens", 8192),
        "");
    write_json(r->folder, "preprocessor_config.json",
        json_pack("{s:s, s:s, s:s}", "padding_side", "left", "padding_side_", "left", "processor_class",
            "Qwen3TTSProcessor"),
        "\n");
    write_main(r); /* last: a folder with a config.json is complete */
}
