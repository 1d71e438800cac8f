/* SPDX-License-Identifier: Apache-2.0
 * Checks requests by the table of fields, and by what depends on the model. */
#include "server/speech/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/tables/languages.h"
#include "base/tables/nearest.h"
#include "server/speech/aliases.h"

struct reader {
    const json_t *object, *defaults;
    struct refusal *refusal;
    bool failed;
};

static const json_t *get(const struct reader *r, const char *key)
{
    const json_t *value = json_object_get(r->object, key);
    value = json_is_null(value) ? NULL : value;
    if (!value) {
        value = json_object_get(r->defaults, key);
    }
    return json_is_null(value) ? NULL : value;
}

#define FAIL(r, ...)                                                                                   \
    do {                                                                                               \
        if (!(r)->failed) {                                                                            \
            (r)->failed = !refuse((r)->refusal, 400, __VA_ARGS__);                                     \
        }                                                                                              \
    } while (0)

static const char *take_string(struct reader *r, const char *key)
{
    const json_t *value = get(r, key);
    if (value && !json_is_string(value)) {
        FAIL(r, key, "\"%s\" must be a string", key);
        return NULL;
    }
    if (value && strlen(json_string_value(value)) != json_string_length(value)) {
        FAIL(r, key, "\"%s\" must not hold a NUL", key);
        return NULL;
    }
    return json_string_value(value);
}

/* A number of a field with this name and range. */
static double take_number_in(
    struct reader *r, const char *key, double low, double high, double fallback)
{
    const json_t *value = get(r, key);
    if (!value) {
        return fallback;
    }
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= low && number <= high)) {
        FAIL(r, key, "\"%s\" must be a number from %g to %g", key, low, high);
        return fallback;
    }
    return number;
}

static double take_number(struct reader *r, enum field field, double fallback)
{
    const struct field_row *row = &field_table[field];
    return take_number_in(r, row->name, row->low, row->high, fallback);
}

static long long take_integer_in(
    struct reader *r, const char *key, long long low, long long high, long long fallback)
{
    const json_t *value = get(r, key);
    if (!value) {
        return fallback;
    }
    long long number = json_integer_value(value);
    if (!json_is_integer(value) || number < low || number > high) {
        FAIL(r, key, "\"%s\" must be a whole number from %lld to %lld", key, low, high);
        return fallback;
    }
    return number;
}

static long long take_integer(struct reader *r, enum field field, long long fallback)
{
    const struct field_row *row = &field_table[field];
    /* INT64_MAX, the bound of a seed, is 2^63 as a double. */
    long long high = row->high >= 0x1p63 ? INT64_MAX : (long long)row->high;
    return take_integer_in(r, row->name, (long long)row->low, high, fallback);
}

static bool take_bool(struct reader *r, enum field field, bool fallback)
{
    const char *key = field_table[field].name;
    const json_t *value = get(r, key);
    if (value && !json_is_boolean(value)) {
        FAIL(r, key, "\"%s\" must be true or false", key);
    }
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

/* The position of a word in the field's list a|b|c, any case; `fallback` without the field. */
static int take_word(struct reader *r, enum field field, int fallback)
{
    const char *key = field_table[field].name, *list = field_table[field].words;
    const char *text = take_string(r, key);
    if (!text) {
        return fallback;
    }
    int i = 0;
    for (const char *at = list; at; i++) {
        size_t n = strcspn(at, "|");
        if (strlen(text) == n && strncasecmp(at, text, n) == 0) {
            return i;
        }
        at = at[n] ? at + n + 1 : NULL;
    }
    FAIL(r, key, "\"%s\" must be one of %s, not '%.40s'", key, list, text);
    return fallback;
}

/* Characters of UTF-8 that jansson has already checked. */
static size_t count_chars(const char *text)
{
    size_t n = 0;
    for (; *text; text++) {
        n += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return n;
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n\v\f")] == 0;
}

static const char *take_text(struct reader *r, enum field field, size_t *n_chars)
{
    const char *key = field_table[field].name, *text = take_string(r, key);
    const size_t most = (size_t)field_table[field].high;
    *n_chars = text ? count_chars(text) : 0;
    if (*n_chars > most) {
        FAIL(r, key, "\"%s\" has %zu characters, at most %zu are taken", key, *n_chars, most);
    }
    return text;
}

/* "voice" or "speaker": a name, or {"id": name}. */
static const char *take_voice(struct reader *r)
{
    const char *key = get(r, "voice") ? "voice" : "speaker";
    const json_t *value = get(r, key);
    const json_t *id = json_is_object(value) ? json_object_get(value, "id") : value;
    if (!id) {
        if (value) {
            FAIL(r, key, "\"%s\" must be a name, or an object with \"id\"", key);
        }
        return NULL;
    }
    if (!json_is_string(id) || json_string_length(id) == 0 || json_string_length(id) > 200 ||
        strlen(json_string_value(id)) != json_string_length(id)) {
        FAIL(r, key, "\"%s\" must be a name of 1 to 200 bytes", key);
        return NULL;
    }
    return json_string_value(id);
}

static const char *take_language(struct reader *r, const struct fields_model *model)
{
    const char *key = get(r, "language") ? "language" : "lang_code", *text = take_string(r, key);
    if (!text || strcasecmp(text, "auto") == 0) {
        return NULL;
    }
    const char *name = language_name(text);
    struct nearest nearest = nearest_begin(text);
    char list[512] = "auto", hint[128];
    for (int i = 0; i < model->n_languages; i++) {
        if (strcasecmp(model->languages[i], name) == 0) {
            return name; /* the model's own word goes with its worker */
        }
        strncat(list, ", ", sizeof list - strlen(list) - 1);
        strncat(list, model->languages[i], sizeof list - strlen(list) - 1);
        nearest_offer(&nearest, model->languages[i]);
    }
    FAIL(r, key, "\"%s\": this model does not speak '%.40s' (%sit speaks %s)", key, text,
        nearest_hint(&nearest, hint, sizeof hint), list);
    return NULL;
}

static void check_model(struct reader *r, const struct fields_model *model)
{
    const char *name = take_string(r, "model"), *alias;
    if (!name || strcmp(name, model->id) == 0 || alias_is_model(name)) {
        return;
    }
    char list[256] = "";
    for (int i = 0; (alias = alias_model(i)); i++) {
        strncat(list, ", ", sizeof list - strlen(list) - 1);
        strncat(list, alias, sizeof list - strlen(list) - 1);
    }
    FAIL(r, "model", "the model '%.80s' is not served here (served: %s%s)", name, model->id, list);
    r->refusal->status = 404;
    r->refusal->code = "model_not_found";
}

static void take_sound(struct reader *r, struct fields *f, const struct fields_model *model)
{
    f->sound.format =
        (enum encode_format)take_word(r, FIELD_RESPONSE_FORMAT, (int)model->default_format);
    f->sound.speed = take_number(r, FIELD_SPEED, 1);
    f->sound.volume = take_number(r, FIELD_VOLUME, 1);
    f->sound.sample_rate = (int)take_integer(r, FIELD_SAMPLE_RATE, 0);
    f->sound.samples = (enum samples)take_word(r, FIELD_SAMPLE_FORMAT, SAMPLES_S16);
    f->sound.bit_rate = (int)take_integer(r, FIELD_BIT_RATE, 0);
    char why[160];
    if (!r->failed && !encode_check(&f->sound, why, sizeof why)) {
        FAIL(r, f->sound.samples == SAMPLES_S16 ? "sample_rate" : "sample_format",
            "the sound asked for: %s", why);
    }
    int format = take_word(r, FIELD_STREAM_FORMAT, 0);
    bool stream = take_bool(r, FIELD_STREAM, true);
    f->streaming = format == 1 ? FIELDS_SSE : stream ? FIELDS_RAW : FIELDS_WHOLE;
}

static double take_parameter(struct reader *r, const struct parameter *p)
{
    if (p->integer) {
        return (double)take_integer_in(r, p->field, (long long)p->least_json, (long long)p->most_asked,
            (long long)parameter_own(p));
    }
    return take_number_in(r, p->field, p->least_json, p->most_asked, parameter_own(p));
}

/* Of several faults the first one is told: integers are looked at last. */
static void take_head(struct reader *r, struct fields *f, bool predictor)
{
    for (int integers = 0; integers <= 1; integers++) {
        for (int i = 0; i < parameter_count; i++) {
            const struct parameter *p = &parameter_table[i];
            if (p->predictor == predictor && p->integer == integers) {
                f->sampling[i] = take_parameter(r, p);
            }
        }
    }
}

static void take_sampling(struct reader *r, struct fields *f)
{
    take_head(r, f, false);
    take_head(r, f, true);
    f->seed = (uint64_t)take_integer(r, FIELD_SEED, 0);
    f->max_frames = (int)take_integer(r, FIELD_MAX_NEW_TOKENS, 0);
    /* The first chunk is one frame whatever is asked. */
    take_integer(r, FIELD_INITIAL_CODEC_CHUNK_FRAMES, 1);
}

static void take_kind(struct reader *r, struct fields *f, const struct fields_model *model)
{
    int task = take_word(r, FIELD_TASK_TYPE, -1);
    static const char *const kinds[] = {"custom_voice", "voice_design", "base"};
    if (task >= 0 && strcmp(kinds[task], model->kind) != 0) {
        FAIL(r, "task_type", "\"task_type\": the model served here is of the kind %s", model->kind);
    }
    if (f->instructions && *f->instructions && !model->takes_instructions) {
        f->instructions = NULL; /* as the official package does */
    }
    if (strcmp(model->kind, "voice_design") == 0 && (!f->instructions || is_blank(f->instructions))) {
        FAIL(r, "instructions",
            "\"instructions\" must describe the voice: this is a voice design model");
    }
    f->ref_audio = take_string(r, "ref_audio");
    f->ref_text = take_string(r, "ref_text");
    f->x_vector_only = take_bool(r, FIELD_X_VECTOR_ONLY_MODE, false);
    if (f->ref_audio && strcmp(model->kind, "base") != 0) {
        FAIL(
            r, "ref_audio", "\"ref_audio\" needs a base model, the one served here is %s", model->kind);
    }
    if (f->ref_audio && strncasecmp(f->ref_audio, "data:", 5) != 0 && strstr(f->ref_audio, "://")) {
        FAIL(
            r, "ref_audio", "\"ref_audio\" must be a data URL or base64: nothing is fetched from here");
    }
    if (get(r, "speaker_embedding") || get(r, "references")) {
        const char *key = get(r, "references") ? "references" : "speaker_embedding";
        FAIL(r, key, "\"%s\" is not known here (upload a voice, or send \"ref_audio\")", key);
    }
}

static bool is_known(const char *key)
{
    /* Those that say which request it is, and what a batch holds. */
    static const char *const frame[] = {"type", "items"};
    bool known = strcmp(key, frame[0]) == 0 || strcmp(key, frame[1]) == 0;
    for (int i = 0; i < parameter_count && !known; i++) {
        known = strcmp(parameter_table[i].field, key) == 0;
    }
    for (int i = 0; i < N_FIELDS && !known; i++) {
        known = strcmp(field_table[i].name, key) == 0;
    }
    return known;
}

static int count_unknown(const json_t *object)
{
    int n = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        n += !is_known(key);
    }
    return n;
}

bool fields_parse(struct fields *f, json_t *object, const json_t *defaults, enum fields_for what,
    const struct fields_model *model, struct refusal *refusal)
{
    *f = (struct fields){0};
    struct reader r = {object, defaults, refusal, false};
    size_t n_chars;
    if (!json_is_object(object)) {
        return refuse(refusal, 400, NULL, "the body must be a JSON object");
    }
    if (json_object_size(object) > FIELDS_MAX_KEYS) {
        return refuse(refusal, 400, NULL, "the object has more than %d fields", FIELDS_MAX_KEYS);
    }
    check_model(&r, model);
    if (what == FIELDS_FOR_SPEECH) {
        f->input = take_text(&r, FIELD_INPUT, &f->input_chars);
        if (!f->input || is_blank(f->input)) {
            FAIL(&r, "input", "\"input\" must be a text that is not blank");
        }
    }
    f->voice = take_voice(&r);
    f->instructions = take_text(&r, FIELD_INSTRUCTIONS, &n_chars);
    f->language = take_language(&r, model);
    take_sound(&r, f, model);
    take_sampling(&r, f);
    take_kind(&r, f, model);
    bool whole_first = take_bool(&r, FIELD_NON_STREAMING_MODE, false);
    f->layout = whole_first                     ? UTTER_LAYOUT_FULL
                : what == FIELDS_FOR_SESSION    ? UTTER_LAYOUT_STREAM
                : get(&r, "non_streaming_mode") ? UTTER_LAYOUT_STREAM
                                                : UTTER_LAYOUT_AUTO;
    f->cut = (enum fields_cut)take_word(&r, FIELD_SPLIT_GRANULARITY, FIELDS_CUT_NONE);
    f->markup = take_word(&r, FIELD_MARKUP, UTTER_MARKUP_NONE);
    f->spell_out = take_bool(&r, FIELD_SPELL_OUT, false);
    f->carry = take_bool(&r, FIELD_CARRY, false);
    f->words = take_bool(&r, FIELD_WORD_TIMESTAMPS, false);
    f->background = take_bool(&r, FIELD_BACKGROUND, false);
    f->model_hash = take_string(&r, "model_hash");
    f->voice_hash = take_string(&r, "voice_hash");
    if (f->background && what == FIELDS_FOR_SESSION) {
        FAIL(&r, "background", "\"background\": somebody hears a session, so it is none");
    }
    if (f->cut != FIELDS_CUT_NONE && f->markup != UTTER_MARKUP_NONE) {
        FAIL(&r, "markup", "\"markup\" needs \"split_granularity\" none: it spans sentences");
    }
    take_bool(&r, FIELD_STREAM_AUDIO, true);
    f->n_unknown = count_unknown(object);
    f->object = json_incref(object);
    return !r.failed;
}

void fields_fini(struct fields *f)
{
    json_decref(f->object);
    *f = (struct fields){0};
}
