/* SPDX-License-Identifier: Apache-2.0
 * The fields of a speech request: what each is without being given, its first and last value, and the sentence and the
 * field of each refusal. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/speech/aliases.h"
#include "server/speech/fields.h"
#include "utter.h"

static const char *const languages[] = {"english", "german", "french"};
static const struct fields_model preset = {"m", "custom_voice", languages, 3, true, ENCODE_MP3},
                                 plain = {"m", "custom_voice", languages, 1, false, ENCODE_WAV},
                                 design = {"d", "voice_design", languages, 2, true, ENCODE_PCM},
                                 base = {"b", "base", languages, 2, false, ENCODE_MP3};

static struct refusal refusal;

static bool parse_with(struct fields *f, const char *text, const char *defaults, enum fields_for what,
    const struct fields_model *model)
{
    json_t *object = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL),
           *others = defaults ? json_loads(defaults, 0, NULL) : NULL;
    assert_non_null(object);
    refusal = (struct refusal){0};
    bool good = fields_parse(f, object, others, what, model, &refusal);
    assert_int_equal(good, refusal.status == 0);
    json_decref(object);
    json_decref(others); /* those tests that have some look at no string of them */
    return good;
}

static bool parse(struct fields *f, const char *text, const struct fields_model *model)
{
    return parse_with(f, text, NULL, FIELDS_FOR_SPEECH, model);
}

/* The request is refused: with this status, for this field, in these words. */
static void expect(int status, const char *param, const char *message, const char *text,
    enum fields_for what, const struct fields_model *model)
{
    struct fields f;
    if (parse_with(&f, text, NULL, what, model) || refusal.status != status ||
        strcmp(refusal.param, param) != 0 || strcmp(refusal.message, message) != 0) {
        fail_msg("%s: %d, %s: %s", text, refusal.status, refusal.param, refusal.message);
    }
    fields_fini(&f);
    assert_null(f.object);
}

static void what_is_not_given_has_its_default(void **state)
{
    struct fields f;
    (void)state;
    assert_true(parse(&f, "{\"input\": \"a\\u00e9\\u4e2d\\ud83d\\ude00\"}", &preset));
    assert_string_equal(f.input, "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80");
    assert_int_equal(f.input_chars, 4);
    assert_true(!f.voice && !f.instructions && !f.language && !f.ref_audio && !f.ref_text &&
                !f.voice_file && !f.model_hash && !f.voice_hash);
    assert_int_equal(f.sound.format, ENCODE_MP3);
    assert_int_equal(f.sound.samples, SAMPLES_S16);
    assert_true(
        f.sound.speed == 1 && f.sound.volume == 1 && f.sound.sample_rate == 0 && f.sound.bit_rate == 0);
    assert_int_equal(f.streaming, FIELDS_RAW);
    assert_int_equal(f.cut, FIELDS_CUT_NONE);
    assert_int_equal(f.layout, UTTER_LAYOUT_AUTO);
    assert_int_equal(f.markup, UTTER_MARKUP_NONE);
    assert_false(f.spell_out || f.carry || f.x_vector_only || f.words || f.background);
    assert_true(f.seed == 0 && f.max_frames == 0 && f.n_unknown == 0);
    for (int i = 0; i < parameter_count; i++) {
        assert_true(parameter_table[i].integer ? f.sampling[i] == -1 : isnan(f.sampling[i]));
    }
    assert_int_equal(f.object->refcount, 1); /* it is kept */
    fields_fini(&f);
    assert_null(f.object);
}

static void all_that_is_given_is_taken(void **state)
{
    struct fields f;
    (void)state;
    assert_true(parse(&f,
        "{\"model\":\"m\",\"input\":\"x\",\"voice\":\"v\",\"instructions\":\"low\",\"language\":"
        "\"german\","
        "\"response_format\":\"WAV\",\"speed\":0.25,\"volume_multiplier\":4,\"sample_rate\":8000,"
        "\"sample_format\":\"ulaw\",\"bit_rate\":6000,\"seed\":9223372036854775807,"
        "\"max_new_tokens\":1000000,\"stream\":false,\"markup\":\"ssml\",\"spell_out\":true,"
        "\"carry\":true,\"word_timestamps\":true,\"background\":true,\"model_hash\":\"mh\","
        "\"voice_hash\":\"vh\",\"x_vector_only_mode\":true,\"ref_text\":\"said\",\"temperature\":0.5,"
        "\"top_k\":7,\"top_p\":0.25,\"repetition_penalty\":1.5,\"subtalker_temperature\":0.75,"
        "\"subtalker_top_k\":9,\"subtalker_top_p\":1,\"non_streaming_mode\":true,\"type\":1,\"items\":"
        "2,"
        "\"task_type\":\"customvoice\",\"initial_codec_chunk_frames\":64,\"stream_audio\":false,"
        "\"unheard_of\":1,\"strange\":null}",
        &preset));
    assert_string_equal(f.voice, "v");
    assert_string_equal(f.instructions, "low");
    assert_string_equal(f.language, "german");
    assert_string_equal(f.ref_text, "said");
    assert_string_equal(f.model_hash, "mh");
    assert_string_equal(f.voice_hash, "vh");
    assert_true(f.sound.format == ENCODE_WAV && f.sound.samples == SAMPLES_ULAW);
    assert_true(f.sound.speed == 0.25 && f.sound.volume == 4 && f.sound.sample_rate == 8000 &&
                f.sound.bit_rate == 6000);
    assert_true(f.seed == INT64_MAX && f.max_frames == 1000000);
    assert_int_equal(f.streaming, FIELDS_WHOLE);
    assert_int_equal(f.markup, UTTER_MARKUP_SSML);
    assert_int_equal(f.layout, UTTER_LAYOUT_FULL);
    assert_true(f.spell_out && f.carry && f.words && f.background && f.x_vector_only);
    const double sampling[] = {0.5, 7, 0.25, 1.5, 0.75, 9, 1};
    assert_int_equal(parameter_count, 7);
    for (int i = 0; i < 7; i++) {
        assert_true(f.sampling[i] == sampling[i]);
    }
    assert_int_equal(f.n_unknown, 2);
    fields_fini(&f);
}

static void a_session_differs_from_a_speech(void **state)
{
    struct fields f;
    (void)state;
    assert_true(parse_with(&f, "{}", NULL, FIELDS_FOR_SESSION, &preset));
    assert_true(!f.input && f.input_chars == 0 && f.layout == UTTER_LAYOUT_STREAM);
    fields_fini(&f);
    assert_true(parse_with(&f, "{\"non_streaming_mode\":true,\"split_granularity\":\"clause\"}", NULL,
        FIELDS_FOR_SESSION, &preset));
    assert_true(f.layout == UTTER_LAYOUT_FULL && f.cut == FIELDS_CUT_CLAUSE);
    fields_fini(&f);
    assert_true(
        parse_with(&f, "{\"split_granularity\":\"sentence\"}", NULL, FIELDS_FOR_SESSION, &preset));
    assert_int_equal(f.cut, FIELDS_CUT_SENTENCE);
    fields_fini(&f);
    expect(400, "background", "\"background\": somebody hears a session, so it is none",
        "{\"background\":true}", FIELDS_FOR_SESSION, &preset);
    expect(400, "markup", "\"markup\" needs \"split_granularity\" none: it spans sentences",
        "{\"split_granularity\":\"clause\",\"markup\":\"auto\"}", FIELDS_FOR_SESSION, &preset);
    assert_true(parse(&f, "{\"input\":\"x\",\"non_streaming_mode\":false}", &preset));
    assert_int_equal(f.layout, UTTER_LAYOUT_STREAM);
    fields_fini(&f);
}

static void defaults_stand_behind_what_is_given(void **state)
{
    static const char defaults[] =
        "{\"speed\":2,\"seed\":5,\"response_format\":\"flac\",\"stream\":false,\"unheard_of\":1}";
    struct fields f;
    (void)state;
    assert_true(parse_with(
        &f, "{\"input\":\"x\",\"seed\":6,\"speed\":null}", defaults, FIELDS_FOR_SPEECH, &preset));
    assert_true(f.sound.speed == 2 && f.seed == 6 && f.sound.format == ENCODE_FLAC);
    assert_int_equal(f.streaming, FIELDS_WHOLE);
    assert_int_equal(f.n_unknown, 0); /* those of the object alone are counted */
    fields_fini(&f);
    assert_true(parse_with(&f, "{\"input\":\"x\"}", "{\"seed\":null}", FIELDS_FOR_SPEECH, &preset));
    assert_int_equal(f.seed, 0);
    fields_fini(&f);
}

static void how_an_answer_comes_is_chosen(void **state)
{
    static const struct {
        const char *more;
        enum fields_streaming streaming;
    } cases[] = {{"\"stream\":true", FIELDS_RAW}, {"\"stream\":false", FIELDS_WHOLE},
        {"\"stream_format\":\"sse\"", FIELDS_SSE}, {"\"stream_format\":\"audio\"", FIELDS_RAW},
        {"\"stream_format\":\"SSE\",\"stream\":false", FIELDS_SSE},
        {"\"stream_format\":\"audio\",\"stream\":false", FIELDS_WHOLE}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fields f;
        char text[200];
        snprintf(text, sizeof text, "{\"input\":\"x\",%s}", cases[i].more);
        assert_true(parse(&f, text, &plain));
        assert_int_equal(f.streaming, cases[i].streaming);
        assert_int_equal(f.sound.format, ENCODE_WAV); /* the server's own */
        fields_fini(&f);
    }
}

/* Every number of the table at its bounds, and beside them. */
static void numbers_have_bounds(void **state)
{
    static const struct {
        const char *field, *value, *message; /* NULL: it is taken */
    } cases[] = {
        {"speed", "0.25", NULL},
        {"speed", "4", NULL},
        {"speed", "4.0", NULL},
        {"speed", "0.2499", "\"speed\" must be a number from 0.25 to 4"},
        {"speed", "4.0001", "\"speed\" must be a number from 0.25 to 4"},
        {"speed", "\"1\"", "\"speed\" must be a number from 0.25 to 4"},
        {"speed", "true", "\"speed\" must be a number from 0.25 to 4"},
        {"volume_multiplier", "0", NULL},
        {"volume_multiplier", "4", NULL},
        {"volume_multiplier", "-0.01", "\"volume_multiplier\" must be a number from 0 to 4"},
        {"volume_multiplier", "4.01", "\"volume_multiplier\" must be a number from 0 to 4"},
        {"sample_rate", "8000", NULL},
        {"sample_rate", "48000", NULL},
        {"sample_rate", "7999", "\"sample_rate\" must be a whole number from 8000 to 48000"},
        {"sample_rate", "48001", "\"sample_rate\" must be a whole number from 8000 to 48000"},
        {"sample_rate", "16000.0", "\"sample_rate\" must be a whole number from 8000 to 48000"},
        {"bit_rate", "6000", NULL},
        {"bit_rate", "320000", NULL},
        {"bit_rate", "5999", "\"bit_rate\" must be a whole number from 6000 to 320000"},
        {"bit_rate", "320001", "\"bit_rate\" must be a whole number from 6000 to 320000"},
        {"seed", "0", NULL},
        {"seed", "9223372036854775807", NULL},
        {"seed", "-1", "\"seed\" must be a whole number from 0 to 9223372036854775807"},
        {"max_new_tokens", "1", NULL},
        {"max_new_tokens", "1000000", NULL},
        {"max_new_tokens", "0", "\"max_new_tokens\" must be a whole number from 1 to 1000000"},
        {"max_new_tokens", "1000001", "\"max_new_tokens\" must be a whole number from 1 to 1000000"},
        {"initial_codec_chunk_frames", "1", NULL},
        {"initial_codec_chunk_frames", "64", NULL},
        {"initial_codec_chunk_frames", "0",
            "\"initial_codec_chunk_frames\" must be a whole number from 1 to 64"},
        {"initial_codec_chunk_frames", "65",
            "\"initial_codec_chunk_frames\" must be a whole number from 1 to 64"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fields f;
        char text[200];
        snprintf(text, sizeof text, "{\"input\":\"x\",\"response_format\":\"wav\",\"%s\":%s}",
            cases[i].field, cases[i].value);
        if (cases[i].message) {
            expect(400, cases[i].field, cases[i].message, text, FIELDS_FOR_SPEECH, &preset);
        } else {
            assert_true(parse(&f, text, &preset));
            fields_fini(&f);
        }
    }
}

static void values_of_another_kind_are_refused(void **state)
{
    static const char *const flags[] = {"stream", "spell_out", "carry", "non_streaming_mode",
        "x_vector_only_mode", "word_timestamps", "background", "stream_audio"},
                             *const texts[] = {"model", "instructions", "language", "lang_code",
                                 "response_format", "sample_format", "stream_format", "markup",
                                 "task_type", "ref_audio", "ref_text", "split_granularity",
                                 "model_hash", "voice_hash"};
    char text[200], message[200];
    (void)state;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        snprintf(text, sizeof text, "{\"input\":\"x\",\"%s\":1}", flags[i]);
        snprintf(message, sizeof message, "\"%s\" must be true or false", flags[i]);
        expect(400, flags[i], message, text, FIELDS_FOR_SPEECH, &preset);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(text, sizeof text, "{\"input\":\"x\",\"%s\":1}", texts[i]);
        snprintf(message, sizeof message, "\"%s\" must be a string", texts[i]);
        expect(400, texts[i], message, text, FIELDS_FOR_SPEECH, &preset);
        snprintf(text, sizeof text, "{\"input\":\"x\",\"%s\":\"a\\u0000\"}", texts[i]);
        snprintf(message, sizeof message, "\"%s\" must not hold a NUL", texts[i]);
        expect(400, texts[i], message, text, FIELDS_FOR_SPEECH, &preset);
    }
}

static void words_are_one_of_a_list(void **state)
{
    static const struct {
        const char *field, *value, *list;
    } cases[] = {{"response_format", "mp", ENCODE_FORMAT_LIST},
        {"response_format", "mp33", ENCODE_FORMAT_LIST}, {"response_format", "", ENCODE_FORMAT_LIST},
        {"response_format", "mp3|wav", ENCODE_FORMAT_LIST}, {"sample_format", "s1", SAMPLES_LIST},
        {"stream_format", "ss", "audio|sse"}, {"markup", "tag", "none|auto|tags|ssml"},
        {"task_type", "Basement", "CustomVoice|VoiceDesign|Base"},
        {"split_granularity", "word", "none|sentence|clause"}};
    char text[200], message[200];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "{\"input\":\"x\",\"%s\":\"%s\"}", cases[i].field, cases[i].value);
        snprintf(message, sizeof message, "\"%s\" must be one of %s, not '%s'", cases[i].field,
            cases[i].list, cases[i].value);
        expect(400, cases[i].field, message, text, FIELDS_FOR_SPEECH, &preset);
    }
    expect(400, "markup",
        "\"markup\" must be one of none|auto|tags|ssml, not 'aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd'",
        "{\"input\":\"x\",\"markup\":\"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeee\"}",
        FIELDS_FOR_SPEECH, &preset);
}

static void a_text_is_needed_and_has_a_length(void **state)
{
    struct fields f;
    (void)state;
    static const char blank[] = "\"input\" must be a text that is not blank";
    expect(400, "input", blank, "{}", FIELDS_FOR_SPEECH, &preset);
    expect(400, "input", blank, "{\"input\":\"\"}", FIELDS_FOR_SPEECH, &preset);
    expect(400, "input", blank, "{\"input\":\" \\t\\r\\n\\u000b\\f\"}", FIELDS_FOR_SPEECH, &preset);
    expect(400, "input", "\"input\" must be a string", "{\"input\":[1]}", FIELDS_FOR_SPEECH, &preset);
    expect(400, "", "the body must be a JSON object", "[]", FIELDS_FOR_SPEECH, &preset);
    const struct {
        const char *field;
        size_t most;
    } texts[] = {{"input", FIELDS_MAX_INPUT}, {"instructions", FIELDS_MAX_INSTRUCTIONS}};
    for (size_t i = 0; i < 2; i++) { /* in characters, not in bytes */
        char *long_text = malloc(2 * texts[i].most + 100), message[200];
        assert_non_null(long_text);
        for (size_t more = 0; more < 2; more++) {
            char *at = long_text + sprintf(long_text, "{\"%s\":\"", texts[i].field);
            for (size_t k = 0; k < texts[i].most + more; k++) {
                memcpy(at, "\xC3\xA9", 2), at += 2;
            }
            strcpy(at, i == 0 ? "\"}" : "\",\"input\":\"x\"}");
            assert_int_equal(parse(&f, long_text, &preset), !more);
            assert_true(more || i > 0 || f.input_chars == FIELDS_MAX_INPUT);
            fields_fini(&f);
        }
        snprintf(message, sizeof message, "\"%s\" has %zu characters, at most %zu are taken",
            texts[i].field, texts[i].most + 1, texts[i].most);
        assert_string_equal(refusal.message, message);
        assert_string_equal(refusal.param, texts[i].field);
        free(long_text);
    }
}

static void an_object_has_so_many_fields(void **state)
{
    (void)state;
    for (int n = FIELDS_MAX_KEYS; n <= FIELDS_MAX_KEYS + 1; n++) {
        json_t *object = json_pack("{s:s}", "input", "x");
        for (int i = 1; i < n; i++) {
            char name[20];
            snprintf(name, sizeof name, "x%d", i);
            json_object_set_new(object, name, json_null());
        }
        struct fields f;
        refusal = (struct refusal){0};
        assert_int_equal(
            fields_parse(&f, object, NULL, FIELDS_FOR_SPEECH, &preset, &refusal), n == FIELDS_MAX_KEYS);
        assert_int_equal(f.n_unknown, n == FIELDS_MAX_KEYS ? n - 1 : 0);
        fields_fini(&f);
        json_decref(object);
    }
    assert_string_equal(refusal.message, "the object has more than 256 fields");
}

static void a_voice_is_a_name(void **state)
{
    static const struct {
        const char *more, *name;
    } good[] = {{"\"voice\":\"a\"", "a"}, {"\"speaker\":\"b\"", "b"},
        {"\"speaker\":\"b\",\"voice\":\"a\"", "a"}, {"\"voice\":null,\"speaker\":\"b\"", "b"},
        {"\"voice\":{\"id\":\"c\"}", "c"}, {"\"speaker\":{\"id\":\"d\",\"x\":1}", "d"}};
    static const struct {
        const char *more, *field, *message;
    } bad[] = {{"\"voice\":\"\"", "voice", "\"voice\" must be a name of 1 to 200 bytes"},
        {"\"speaker\":7", "speaker", "\"speaker\" must be a name of 1 to 200 bytes"},
        {"\"voice\":{\"id\":7}", "voice", "\"voice\" must be a name of 1 to 200 bytes"},
        {"\"voice\":\"a\\u0000\"", "voice", "\"voice\" must be a name of 1 to 200 bytes"},
        {"\"voice\":{\"name\":\"a\"}", "voice", "\"voice\" must be a name, or an object with \"id\""},
        {"\"speaker\":{}", "speaker", "\"speaker\" must be a name, or an object with \"id\""}};
    struct fields f;
    char text[400], name[202];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(text, sizeof text, "{\"input\":\"x\",%s}", good[i].more);
        assert_true(parse(&f, text, &preset));
        assert_string_equal(f.voice, good[i].name);
        fields_fini(&f);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "{\"input\":\"x\",%s}", bad[i].more);
        expect(400, bad[i].field, bad[i].message, text, FIELDS_FOR_SPEECH, &preset);
    }
    for (int n = 200; n <= 201; n++) {
        memset(name, 'n', sizeof name), name[n] = 0;
        snprintf(text, sizeof text, "{\"input\":\"x\",\"voice\":\"%s\"}", name);
        assert_int_equal(parse(&f, text, &preset), n == 200);
        fields_fini(&f);
    }
}

static void a_language_is_one_of_the_model(void **state)
{
    static const struct {
        const char *more, *name;
    } good[] = {{"\"language\":\"auto\"", NULL}, {"\"language\":\"AUTO\"", NULL},
        {"\"lang_code\":\"fr\"", "french"}, {"\"language\":\"de-DE\"", "german"},
        {"\"language\":\"en\",\"lang_code\":\"fr\"", "english"}};
    struct fields f;
    char text[200];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(text, sizeof text, "{\"input\":\"x\",%s}", good[i].more);
        assert_true(parse(&f, text, &preset));
        assert_true(
            good[i].name ? f.language && strcasecmp(f.language, good[i].name) == 0 : !f.language);
        fields_fini(&f);
    }
    expect(400, "language",
        "\"language\": this model does not speak 'klingon' (it speaks auto, english, german, french)",
        "{\"input\":\"x\",\"language\":\"klingon\"}", FIELDS_FOR_SPEECH, &preset);
    expect(400, "lang_code",
        "\"lang_code\": this model does not speak 'frensh' (did you mean french? it speaks auto, "
        "english, german, french)",
        "{\"input\":\"x\",\"lang_code\":\"frensh\"}", FIELDS_FOR_SPEECH, &preset);
    expect(400, "language", "\"language\": this model does not speak 'de' (it speaks auto, english)",
        "{\"input\":\"x\",\"language\":\"de\"}", FIELDS_FOR_SPEECH, &plain);
}

static void a_model_is_the_one_that_is_served(void **state)
{
    struct fields f;
    (void)state;
    assert_true(parse(&f, "{\"input\":\"x\",\"model\":\"d\",\"instructions\":\"low\"}", &design));
    assert_string_equal(f.instructions, "low");
    fields_fini(&f);
    expect(404, "model",
        "the model 'M' is not served here (served: m, tts-1, tts-1-hd, gpt-4o-mini-tts)",
        "{\"input\":\"x\",\"model\":\"M\"}", FIELDS_FOR_SPEECH, &preset);
    assert_string_equal(refusal.code, "model_not_found");
    for (int i = 0; alias_model(i); i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"input\":\"x\",\"model\":\"%s\"}", alias_model(i));
        assert_true(parse(&f, text, &preset));
        fields_fini(&f);
    }
    assert_false(alias_is_model("tts-"));
    assert_null(alias_model(3));
    assert_string_equal(alias_model(2), "gpt-4o-mini-tts");
}

static void kinds_of_models_want_different_things(void **state)
{
    struct fields f;
    (void)state;
    assert_true(parse(&f, "{\"input\":\"x\",\"instructions\":\"low\"}", &plain));
    assert_null(f.instructions); /* this one cannot follow them */
    fields_fini(&f);
    static const char needed[] =
        "\"instructions\" must describe the voice: this is a voice design model";
    expect(400, "instructions", needed, "{\"input\":\"x\"}", FIELDS_FOR_SPEECH, &design);
    expect(400, "instructions", needed, "{\"input\":\"x\",\"instructions\":\" \\n\"}",
        FIELDS_FOR_SPEECH, &design);
    assert_true(parse(&f, "{\"input\":\"x\",\"task_type\":\"Base\",\"ref_audio\":\"AAAA\"}", &base));
    assert_string_equal(f.ref_audio, "AAAA");
    fields_fini(&f);
    assert_true(
        parse(&f, "{\"input\":\"x\",\"instructions\":\"a\",\"task_type\":\"VOICEDESIGN\"}", &design));
    fields_fini(&f);
    assert_true(parse(&f, "{\"input\":\"x\",\"ref_audio\":\"DATA:x,http://y\"}", &base));
    fields_fini(&f);
    static const char *const kinds[] = {"CustomVoice", "VoiceDesign", "Base"};
    const struct fields_model *const models[] = {&preset, &design, &base};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            char text[200], message[200];
            snprintf(text, sizeof text, "{\"input\":\"x\",\"instructions\":\"a\",\"task_type\":\"%s\"}",
                kinds[i]);
            snprintf(message, sizeof message, "\"task_type\": the model served here is of the kind %s",
                models[k]->kind);
            if (i == k) {
                assert_true(parse(&f, text, models[k]));
                fields_fini(&f);
            } else {
                expect(400, "task_type", message, text, FIELDS_FOR_SPEECH, models[k]);
            }
        }
    }
    expect(400, "ref_audio", "\"ref_audio\" needs a base model, the one served here is custom_voice",
        "{\"input\":\"x\",\"ref_audio\":\"AAAA\"}", FIELDS_FOR_SPEECH, &preset);
    expect(400, "ref_audio", "\"ref_audio\" must be a data URL or base64: nothing is fetched from here",
        "{\"input\":\"x\",\"ref_audio\":\"https://h/a.wav\"}", FIELDS_FOR_SPEECH, &base);
    expect(400, "references",
        "\"references\" is not known here (upload a voice, or send \"ref_audio\")",
        "{\"input\":\"x\",\"references\":[],\"speaker_embedding\":[]}", FIELDS_FOR_SPEECH, &base);
    expect(400, "speaker_embedding",
        "\"speaker_embedding\" is not known here (upload a voice, or send \"ref_audio\")",
        "{\"input\":\"x\",\"speaker_embedding\":[]}", FIELDS_FOR_SPEECH, &base);
}

static void a_sound_is_one_that_can_be_made(void **state)
{
    struct fields f;
    (void)state;
    expect(400, "sample_rate",
        "the sound asked for: mp3 has 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100 and 48000 "
        "only",
        "{\"input\":\"x\",\"sample_rate\":9000}", FIELDS_FOR_SPEECH, &preset);
    expect(400, "sample_format",
        "the sound asked for: opus has no kinds of samples, only wav and pcm have",
        "{\"input\":\"x\",\"response_format\":\"opus\",\"sample_format\":\"f32\"}", FIELDS_FOR_SPEECH,
        &preset);
    static const char *const formats[] = {"wav", "pcm", "mp3", "opus", "flac", "aac"};
    static const int rates[] = {
        8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 8001, 47999};
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 11; k++) {
            char text[200];
            snprintf(text, sizeof text,
                "{\"input\":\"x\",\"response_format\":\"%s\",\"sample_rate\":%d}", formats[i],
                rates[k]);
            assert_int_equal(parse(&f, text, &preset), k < 9 || (i != 2 && i != 5));
            fields_fini(&f);
        }
    }
}

/* Those of the released models and of the voice that comes with the program; else any of the model's. */
static void a_voice_of_others_is_the_nearest_preset(void **state)
{
    static const char *const all[][3] = {{"alloy", "vivian", "clara"}, {"ash", "ryan", "miles"},
        {"ballad", "eric", "miles"}, {"coral", "serena", "clara"}, {"echo", "aiden", "miles"},
        {"fable", "dylan", "miles"}, {"onyx", "uncle_fu", "miles"}, {"nova", "vivian", "clara"},
        {"sage", "serena", "clara"}, {"shimmer", "ono_anna", "clara"}, {"verse", "ryan", "miles"},
        {"marin", "sohee", "clara"}, {"cedar", "aiden", "miles"}};
    static const char *const released[] = {"Aiden", "Dylan", "Eric", "Ono_anna", "Ryan", "Serena",
        "Sohee", "Uncle_fu", "Vivian"},
                             *const built_in[] = {"clara", "miles"}, *const strange[] = {"a", "b", "c"};
    (void)state;
    for (int i = 0; i < 13; i++) {
        assert_string_equal(alias_voice(i), all[i][0]);
        assert_true(strcasecmp(alias_preset(all[i][0], released, 9), all[i][1]) == 0);
        assert_string_equal(alias_preset(all[i][0], built_in, 2), all[i][2]);
        assert_string_equal(alias_preset(all[i][0], strange, 3), strange[i % 3]);
        assert_null(alias_preset(all[i][0], strange, 0));
    }
    assert_null(alias_voice(13));
    assert_null(alias_preset("clara", built_in, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_given_has_its_default),
        cmocka_unit_test(all_that_is_given_is_taken),
        cmocka_unit_test(a_session_differs_from_a_speech),
        cmocka_unit_test(defaults_stand_behind_what_is_given),
        cmocka_unit_test(how_an_answer_comes_is_chosen),
        cmocka_unit_test(numbers_have_bounds),
        cmocka_unit_test(values_of_another_kind_are_refused),
        cmocka_unit_test(words_are_one_of_a_list),
        cmocka_unit_test(a_text_is_needed_and_has_a_length),
        cmocka_unit_test(an_object_has_so_many_fields),
        cmocka_unit_test(a_voice_is_a_name),
        cmocka_unit_test(a_language_is_one_of_the_model),
        cmocka_unit_test(a_model_is_the_one_that_is_served),
        cmocka_unit_test(kinds_of_models_want_different_things),
        cmocka_unit_test(a_sound_is_one_that_can_be_made),
        cmocka_unit_test(a_voice_of_others_is_the_nearest_preset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
