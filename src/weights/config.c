/* SPDX-License-Identifier: Apache-2.0
 * Config files -> struct config. Every number is range-checked here, so that the rest of the program may
 * multiply sizes without looking; nothing falls back to the defaults of the Python classes, which are
 * those of another codec. */
#include "weights/config.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "weights/checkpoint.h"
#include "weights/config_parts.h"
#include "weights/safetensors_file.h"

enum {
    CONFIG_LIMIT = 1 << 20, /* bytes of a config file; the released ones have 2 to 10 KB */
    MAX_WIDTH = CONFIG_MAX_WIDTH,
    MAX_VOCABULARY = 1 << 22,
    MAX_NAMES = 4096,
    MAX_POSITIONS = 1 << 20,
};

static struct json_fields fields_of(const json_t *object, const char *where, utter_error *error)
{
    return (struct json_fields){object, where, error, UTTER_OK};
}

/* What a stack of this family does not have: a model that was trained with it would open, and speak wrongly. */
static utter_status check_known(const json_t *object, const char *where, utter_error *error)
{
    struct json_fields f = fields_of(object, where, error);
    const json_t *rope = json_object_get(object, "rope_scaling");
    const char *wrong = NULL;
    if (strcmp(json_take_string(&f, "hidden_act", "silu"), "silu") != 0) {
        wrong = "hidden_act (known: silu)";
    } else if (json_take_bool(&f, "attention_bias", false)) {
        wrong = "attention_bias (known: false)";
    } else if (json_take_bool(&f, "use_sliding_window", false)) {
        wrong = "use_sliding_window (known: false)";
    } else if (rope && !json_is_null(rope)) {
        /* Its sections say nothing here: text and sound have one position each, the same for all sections. */
        struct json_fields r = fields_of(json_is_object(rope) ? rope : NULL, where, error);
        const char *type = json_is_object(rope) ? json_take_string(&r, "rope_type", NULL) : "";
        type = type ? type : json_take_string(&r, "type", "default");
        wrong = strcmp(type, "default") != 0 ? "rope_scaling (known: null, type default)" : NULL;
    }
    return f.status || !wrong ? f.status
                              : error_set(error, UTTER_E_MODEL, "%s: another kind of %s", where, wrong);
}

utter_status config_read_stack(struct stack_config *s, const json_t *object, const char *where,
    const char *eps_key, utter_error *error)
{
    struct json_fields f = fields_of(object, where, error);
    s->width = (int)json_need_int(&f, "hidden_size", 2, MAX_WIDTH);
    s->inner = (int)json_need_int(&f, "intermediate_size", 1, MAX_WIDTH);
    s->n_layers = (int)json_need_int(&f, "num_hidden_layers", 1, 512);
    s->n_heads = (int)json_need_int(&f, "num_attention_heads", 1, 1024);
    s->n_kv_heads = (int)json_take_int(&f, "num_key_value_heads", 1, 1024, s->n_heads);
    s->head = (int)json_need_int(&f, "head_dim", 2, 1024);
    s->norm_eps = (float)json_need_number(&f, eps_key, 1e-12, 1.0);
    s->rope_theta = json_need_number(&f, "rope_theta", 1.0, 1e12);
    if (f.status == UTTER_OK && s->n_heads % s->n_kv_heads != 0) {
        return error_set(error, UTTER_E_MODEL, "%s: %d heads do not divide over %d key-value heads",
            where, s->n_heads, s->n_kv_heads);
    }
    if (f.status == UTTER_OK && s->head % 2 != 0) {
        return error_set(error, UTTER_E_MODEL, "%s: head_dim %d is odd, rotary positions need pairs",
            where, s->head);
    }
    return f.status;
}

/* An object {name: id} -> a list. */
static utter_status read_ids(struct named_id **list, int *n, const json_t *object, const char *what,
    int n_ids, utter_error *error)
{
    size_t size = json_object_size(object);
    if (size > MAX_NAMES) {
        return error_set(error, UTTER_E_MODEL, "config.json: %s has %zu entries, more than %d", what,
            size, MAX_NAMES);
    }
    *list = memory_new(size, sizeof **list);
    if (!*list) {
        return error_memory(error, what);
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0 || id >= n_ids) {
            char name[64];
            error_quote(name, sizeof name, key, strlen(key));
            return error_set(error, UTTER_E_MODEL, "config.json: %s: the id of \"%s\" is not in 0..%d",
                what, name, n_ids - 1);
        }
        struct named_id *entry = &(*list)[*n];
        entry->name = memory_string(key);
        entry->id = (int)id;
        if (!entry->name) {
            return error_memory(error, what);
        }
        ++*n;
    }
    return UTTER_OK;
}

/* spk_is_dialect: {voice: false | "some_dialect"}; the dialect must be one of the languages. */
static utter_status read_dialects(struct config *c, const json_t *object, utter_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        int voice = config_find(c->voices, c->n_voices, key);
        if (voice < 0 || !json_is_string(value)) {
            continue;
        }
        const char *dialect = json_string_value(value);
        if (config_find(c->languages, c->n_languages, dialect) < 0) {
            char name[64], language[64];
            error_quote(name, sizeof name, key, strlen(key));
            error_quote(language, sizeof language, dialect, strlen(dialect));
            return error_set(error, UTTER_E_MODEL,
                "config.json: voice \"%s\" speaks \"%s\", which is no language of this model", name,
                language);
        }
        char *copy = memory_string(dialect);
        if (!copy) {
            return error_memory(error, "voice names");
        }
        memory_free(c->voices[voice].dialect);
        c->voices[voice].dialect = copy;
    }
    return UTTER_OK;
}

static utter_status read_talker(struct config *c, const json_t *object, utter_error *error)
{
    const char *where = "config.json: talker_config";
    utter_status status = config_read_stack(&c->talker, object, where, "rms_norm_eps", error);
    if (status || (status = check_known(object, where, error))) {
        return status;
    }
    struct json_fields f = fields_of(object, where, error);
    c->max_positions = (int)json_need_int(&f, "max_position_embeddings", 16, MAX_POSITIONS);
    c->text_vocabulary = (int)json_need_int(&f, "text_vocab_size", 1, MAX_VOCABULARY);
    c->text_width = (int)json_need_int(&f, "text_hidden_size", 1, MAX_WIDTH);
    c->codec_vocabulary = (int)json_need_int(&f, "vocab_size", 1, MAX_VOCABULARY);
    c->n_codebooks = (int)json_need_int(&f, "num_code_groups", 2, CONFIG_MAX_CODEBOOKS);
    int last = f.status ? 0 : c->codec_vocabulary - 1;
    c->codec_pad = (int)json_need_int(&f, "codec_pad_id", 0, last);
    c->codec_bos = (int)json_need_int(&f, "codec_bos_id", 0, last);
    c->codec_eos = (int)json_need_int(&f, "codec_eos_token_id", 0, last);
    c->think = (int)json_need_int(&f, "codec_think_id", 0, last);
    c->nothink = (int)json_need_int(&f, "codec_nothink_id", 0, last);
    c->think_bos = (int)json_need_int(&f, "codec_think_bos_id", 0, last);
    c->think_eos = (int)json_need_int(&f, "codec_think_eos_id", 0, last);
    const json_t *predictor = json_need_object(&f, "code_predictor_config");
    const json_t *languages = json_need_object(&f, "codec_language_id");
    const json_t *voices = json_take_object(&f, "spk_id");
    const json_t *dialects = json_take_object(&f, "spk_is_dialect");
    if (f.status) {
        return f.status;
    }
    if ((status = read_ids(&c->languages, &c->n_languages, languages, "codec_language_id",
             c->codec_vocabulary, error)) ||
        (status = read_ids(&c->voices, &c->n_voices, voices, "spk_id", c->codec_vocabulary, error)) ||
        (status = read_dialects(c, dialects, error))) {
        return status;
    }
    where = "config.json: code_predictor_config";
    if ((status = config_read_stack(&c->predictor, predictor, where, "rms_norm_eps", error)) ||
        (status = check_known(predictor, where, error))) {
        return status;
    }
    f = fields_of(predictor, where, error);
    c->predictor_vocabulary = (int)json_need_int(&f, "vocab_size", 1, c->codec_vocabulary);
    int groups = (int)json_take_int(&f, "num_code_groups", 2, CONFIG_MAX_CODEBOOKS, c->n_codebooks);
    if (f.status == UTTER_OK && groups != c->n_codebooks) {
        return error_set(error, UTTER_E_MODEL, "%s: num_code_groups is %d, the talker's is %d", where,
            groups, c->n_codebooks);
    }
    return f.status;
}

static utter_status read_top(struct config *c, const json_t *root, utter_error *error)
{
    struct json_fields f = fields_of(root, "config.json", error);
    static const char *const kinds[] = {"base", "custom_voice", "voice_design"};
    const char *type = json_take_string(&f, "model_type", "");
    const char *kind = json_need_string(&f, "tts_model_type");
    const char *size = json_need_string(&f, "tts_model_size");
    const char *version = json_take_string(&f, "transformers_version", NULL);
    const json_t *talker = json_need_object(&f, "talker_config");
    if (strcmp(type, "qwen3_tts") != 0) {
        char name[64];
        error_quote(name, sizeof name, type, strlen(type));
        return error_set(error, UTTER_E_MODEL,
            "config.json: model_type is \"%s\", not \"qwen3_tts\" (this folder holds another kind of "
            "model)",
            name);
    }
    if (f.status) {
        return f.status;
    }
    int k = 0;
    while (k < 3 && strcmp(kind, kinds[k]) != 0) {
        k++;
    }
    if (k == 3) {
        char name[64];
        error_quote(name, sizeof name, kind, strlen(kind));
        return error_set(error, UTTER_E_MODEL,
            "config.json: tts_model_type is \"%s\" (known: base, custom_voice, voice_design)", name);
    }
    c->kind = (utter_model_kind)k;
    c->kind_name = memory_string(kind);
    c->size_name = memory_string(size);
    c->transformers_version = version ? memory_string(version) : NULL;
    if (!c->kind_name || !c->size_name || (version && !c->transformers_version)) {
        return error_memory(error, "config");
    }
    utter_status status = read_talker(c, talker, error);
    if (status) {
        return status;
    }
    int last = c->text_vocabulary - 1;
    c->im_start = (int)json_need_int(&f, "im_start_token_id", 0, last);
    c->im_end = (int)json_need_int(&f, "im_end_token_id", 0, last);
    c->assistant = (int)json_need_int(&f, "assistant_token_id", 0, last);
    c->tts_pad = (int)json_need_int(&f, "tts_pad_token_id", 0, last);
    c->tts_bos = (int)json_need_int(&f, "tts_bos_token_id", 0, last);
    c->tts_eos = (int)json_need_int(&f, "tts_eos_token_id", 0, last);
    const json_t *speaker = json_take_object(&f, "speaker_encoder_config");
    if (speaker && c->kind == UTTER_MODEL_BASE) {
        struct json_fields s = fields_of(speaker, "config.json: speaker_encoder_config", error);
        c->has_speaker_encoder = true;
        c->speaker_width = (int)json_need_int(&s, "enc_dim", 1, MAX_WIDTH);
        utter_status read = s.status ? s.status : config_read_speaker(&c->speaker, &s);
        if (read) {
            return read;
        }
    }
    return f.status;
}

/* generation_config.json holds what the official wrapper takes when the caller says nothing; without the
 * file its hard defaults apply, which differ in max_new_tokens only. */
static utter_status read_generation(struct config *c, const char *folder, utter_error *error)
{
    char path[4096];
    json_t *root = NULL;
    utter_status status = file_join(path, sizeof path, folder, "generation_config.json", error);
    if (status == UTTER_OK && checkpoint_exists(path)) {
        status = checkpoint_json(&root, path, CONFIG_LIMIT, JSON_SMALL, error);
    }
    if (status) {
        return status;
    }
    if (root && !json_is_object(root)) {
        json_decref(root);
        return error_set(error, UTTER_E_FILE, "%s is not an object", path);
    }
    struct json_fields f = fields_of(root, "generation_config.json", error);
    c->talker_sampling = (utter_sampling){
        .temperature = (float)json_take_number(&f, "temperature", 0, 100, 0.9),
        .top_k = (int)json_take_int(&f, "top_k", 0, 1 << 30, 50),
        .top_p = (float)json_take_number(&f, "top_p", 1e-6, 1, 1.0),
        .repetition_penalty = (float)json_take_number(&f, "repetition_penalty", 1e-3, 1e3, 1.05),
    };
    c->predictor_sampling = (utter_sampling){
        .temperature = (float)json_take_number(&f, "subtalker_temperature", 0, 100, 0.9),
        .top_k = (int)json_take_int(&f, "subtalker_top_k", 0, 1 << 30, 50),
        .top_p = (float)json_take_number(&f, "subtalker_top_p", 1e-6, 1, 1.0),
        .repetition_penalty = 1,
    };
    if (!json_take_bool(&f, "do_sample", true)) {
        c->talker_sampling.temperature = 0;
    }
    if (!json_take_bool(&f, "subtalker_dosample", true)) {
        c->predictor_sampling.temperature = 0;
    }
    c->max_new_tokens = (int)json_take_int(&f, "max_new_tokens", 1, 1 << 30, 2048);
    json_decref(root);
    return f.status;
}

utter_status config_read_rates(int *rates, int *n, int *product, struct json_fields *f, const char *key)
{
    const json_t *array = json_need_array(f, key);
    if (f->status) {
        return f->status;
    }
    size_t size = json_array_size(array);
    if (size < 1 || size > CONFIG_MAX_RATES) {
        return f->status = error_set(f->error, UTTER_E_MODEL, "%s: %s has %zu entries, not 1..%d",
                   f->where, key, size, CONFIG_MAX_RATES);
    }
    for (size_t i = 0; i < size; i++) {
        const json_t *value = json_array_get(array, i);
        json_int_t rate = json_integer_value(value);
        if (!json_is_integer(value) || rate < 1 || rate > 64 || *product > (1 << 20) / rate) {
            return f->status = error_set(f->error, UTTER_E_MODEL,
                       "%s: %s[%zu] is not a factor in 1..64", f->where, key, i);
        }
        rates[i] = (int)rate;
        *product *= (int)rate;
    }
    *n = (int)size;
    return UTTER_OK;
}

static utter_status read_decoder(struct codec_config *d, const json_t *object, utter_error *error)
{
    const char *where = "speech_tokenizer/config.json: decoder_config";
    utter_status status = config_read_stack(&d->stack, object, where, "rms_norm_eps", error);
    if (status || (status = check_known(object, where, error))) {
        return status;
    }
    struct json_fields f = fields_of(object, where, error);
    d->stack.window = (int)json_need_int(&f, "sliding_window", 1, 1 << 16);
    d->n_codebooks = (int)json_need_int(&f, "num_quantizers", 2, CONFIG_MAX_CODEBOOKS);
    d->n_semantic = (int)json_take_int(&f, "num_semantic_quantizers", 1, d->n_codebooks, 1);
    d->codebook_size = (int)json_need_int(&f, "codebook_size", 1, MAX_VOCABULARY);
    d->codebook_dim = (int)json_need_int(&f, "codebook_dim", 2, MAX_WIDTH);
    d->latent = (int)json_need_int(&f, "latent_dim", 1, MAX_WIDTH);
    d->decoder_width = (int)json_need_int(&f, "decoder_dim", 1, MAX_WIDTH);
    d->frame_samples = 1;
    if (f.status || config_read_rates(d->rates, &d->n_rates, &d->frame_samples, &f, "upsample_rates") ||
        config_read_rates(d->ratios, &d->n_ratios, &d->frame_samples, &f, "upsampling_ratios")) {
        return f.status;
    }
    if (d->codebook_dim % 2 || d->decoder_width % (1 << d->n_rates)) {
        return error_set(error, UTTER_E_MODEL,
            "%s: codebook_dim %d or decoder_dim %d does not halve evenly", where, d->codebook_dim,
            d->decoder_width);
    }
    if (d->n_semantic != 1) {
        return error_set(error, UTTER_E_MODEL, "%s: %d semantic quantizers (this program knows one)",
            where, d->n_semantic);
    }
    return UTTER_OK;
}

static utter_status read_codec(struct config *c, const char *folder, utter_error *error)
{
    char path[4096];
    json_t *root = NULL;
    utter_status status = file_join(path, sizeof path, folder, "speech_tokenizer/config.json", error);
    if (status == UTTER_OK && !checkpoint_exists(path)) {
        return checkpoint_missing(path, error);
    }
    if (status || (status = checkpoint_json(&root, path, CONFIG_LIMIT, JSON_SMALL, error))) {
        return status;
    }
    struct codec_config *d = &c->codec;
    struct json_fields f = fields_of(root, "speech_tokenizer/config.json", error);
    d->sample_rate = (int)json_need_int(&f, "output_sample_rate", 1000, 384000);
    int frame_samples = (int)json_need_int(&f, "decode_upsample_rate", 1, 1 << 20);
    const json_t *decoder = json_need_object(&f, "decoder_config");
    const json_t *encoder = json_take_object(&f, "encoder_config");
    status = f.status ? f.status : read_decoder(d, decoder, error);
    if (!status && encoder) {
        status = config_read_encoder(d, encoder, &f);
    }
    json_decref(root);
    if (status) {
        return status;
    }
    if (d->frame_samples != frame_samples) {
        return error_set(error, UTTER_E_MODEL,
            "speech_tokenizer/config.json: decode_upsample_rate is %d, the decoder's factors make %d",
            frame_samples, d->frame_samples);
    }
    if (c->has_speaker_encoder && d->sample_rate != CONFIG_SPEAKER_RATE) {
        return error_set(error, UTTER_E_MODEL,
            "speech_tokenizer/config.json: output_sample_rate is %d, the speaker encoder hears %d Hz",
            d->sample_rate, CONFIG_SPEAKER_RATE);
    }
    if (d->n_codebooks != c->n_codebooks || d->codebook_size != c->predictor_vocabulary) {
        return error_set(error, UTTER_E_MODEL,
            "the codec has %d codebooks of %d codes, the talker %d of %d (speech_tokenizer/ belongs to "
            "another model)",
            d->n_codebooks, d->codebook_size, c->n_codebooks, c->predictor_vocabulary);
    }
    return UTTER_OK;
}

/* What stands there in place of a model's folder. */
static utter_status refuse_place(const char *place, utter_error *error)
{
    struct file_map map = {0};
    const char *stranger = NULL, *why = "there is no such folder (check the name)";
    if (file_is_folder(place)) {
        why = "no config.json (not a Qwen3-TTS model folder)";
    } else if (file_exists(place)) {
        why = "not a folder (a model is a folder with config.json and model.safetensors)";
        stranger = file_map_open(&map, place, NULL) == UTTER_OK
                       ? safetensors_stranger(map.data, map.size)
                       : NULL;
    }
    file_map_close(&map);
    return stranger
               ? error_set(error, UTTER_E_FILE, "%s: no model of this program (%s)", place, stranger)
               : error_set(error, UTTER_E_FILE, "%s: %s", place, why);
}

utter_status config_open(struct config **config, const char *folder, utter_error *error)
{
    char path[4096];
    json_t *root = NULL;
    *config = NULL;
    utter_status status = file_join(path, sizeof path, folder, "config.json", error);
    if (status == UTTER_OK && !checkpoint_exists(path)) {
        return refuse_place(folder, error);
    }
    if (status || (status = checkpoint_json(&root, path, CONFIG_LIMIT, JSON_SMALL, error))) {
        return status;
    }
    struct config *c = memory_new(1, sizeof *c);
    if (!c) {
        json_decref(root);
        return error_memory(error, "config");
    }
    status = read_top(c, root, error);
    json_decref(root);
    if (status == UTTER_OK && (status = read_generation(c, folder, error)) == UTTER_OK) {
        status = read_codec(c, folder, error);
    }
    if (status) {
        config_close(&c);
    }
    *config = c;
    return status;
}

static void free_ids(struct named_id *list, int n)
{
    for (int i = 0; i < n; i++) {
        memory_free(list[i].name);
        memory_free(list[i].dialect);
    }
    memory_free(list);
}

void config_close(struct config **config)
{
    struct config *c = *config;
    if (c) {
        memory_free(c->kind_name);
        memory_free(c->size_name);
        memory_free(c->transformers_version);
        free_ids(c->languages, c->n_languages);
        free_ids(c->voices, c->n_voices);
        memory_free(c);
    }
    *config = NULL;
}

int config_find(const struct named_id *list, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcasecmp(list[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* The official rule is the last 1,024 ids of the table; ids that the codec lacks are no codes either. */
int config_suppress_from(const struct config *c)
{
    const int from = c->codec_vocabulary < 1024 ? 0 : c->codec_vocabulary - 1024;
    return min(from, c->predictor_vocabulary);
}

/* After the power and after the division. */
float config_rotary(const struct stack_config *s, int i)
{
    float power = (float)pow(s->rope_theta, (double)((float)(2 * i) / (float)s->head));
    return 1.0f / power;
}

bool config_is_dialect(const char *language)
{
    return strstr(language, "dialect") != NULL;
}
