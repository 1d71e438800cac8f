/* SPDX-License-Identifier: Apache-2.0
 * Deepgram's interface, field by field: what it asks becomes ours, and what it is told. */
#include "tests/dialects/expected.h"

#include <stdio.h>

#include "server/dialects/deepgram/deepgram_message.h"

static void deepgram_s_query_becomes_our_fields(void **state)
{
    static const struct {
        struct deepgram_query query;
        const char *body, *fields;
    } cases[] = {{{.encoding = NULL}, NULL,
                     "{\"response_format\":\"pcm\",\"sample_format\":\"s16\",\"speed\":1.0}"},
        {{.encoding = NULL}, "{\"text\":\"Hi\"}",
            "{\"response_format\":\"mp3\",\"speed\":1.0,\"input\":\"Hi\"}"},
        {{.encoding = "linear16"}, "{\"text\":\"Hi\"}",
            "{\"response_format\":\"wav\",\"sample_format\":\"s16\",\"speed\":1.0,\"input\":\"Hi\"}"},
        {{.encoding = "linear16", .container = "none"}, "{\"text\":\"Hi\"}",
            "{\"response_format\":\"pcm\",\"sample_format\":\"s16\",\"speed\":1.0,\"input\":\"Hi\"}"},
        {{.encoding = "linear16", .container = "wav", .sample_rate = "16000"}, NULL,
            "{\"response_format\":\"pcm\",\"sample_format\":\"s16\",\"sample_rate\":16000,\"speed\":1."
            "0}"},
        {{.encoding = "mulaw"}, NULL,
            "{\"response_format\":\"pcm\",\"sample_format\":\"ulaw\",\"sample_rate\":8000,\"speed\":1."
            "0}"},
        {{.encoding = "alaw", .sample_rate = "48000"}, "{\"text\":\"\"}",
            "{\"response_format\":\"wav\",\"sample_format\":\"alaw\",\"sample_rate\":48000,\"speed\":1."
            "0,"
            "\"input\":\"\"}"},
        {{.encoding = "opus", .container = "ogg", .bit_rate = "6000", .speed = "0.25"},
            "{\"text\":\"Hi\"}",
            "{\"response_format\":\"opus\",\"bit_rate\":6000,\"speed\":0.25,\"input\":\"Hi\"}"},
        {{.encoding = "aac", .bit_rate = "320000", .speed = "4"}, "{\"text\":\"Hi\"}",
            "{\"response_format\":\"aac\",\"bit_rate\":320000,\"speed\":4.0,\"input\":\"Hi\"}"},
        {{.encoding = "flac", .sample_rate = "8000"}, "{\"text\":\"Hi\"}",
            "{\"response_format\":\"flac\",\"sample_rate\":8000,\"speed\":1.0,\"input\":\"Hi\"}"},
        {{.encoding = "mp3"}, "{\"text\":\"Hi\"}",
            "{\"response_format\":\"mp3\",\"speed\":1.0,\"input\":\"Hi\"}"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *body = json_of(cases[i].body), *got = deepgram_fields(&cases[i].query, body, &refusal);
        if (!got) {
            fail_msg("%zu: %s", i, refusal.message);
        }
        expect_json(got, cases[i].fields);
        json_decref(body);
    }
}

static void what_deepgram_has_not_is_refused(void **state)
{
    static const struct {
        struct deepgram_query query;
        const char *body, *param, *message;
    } cases[] = {
        {{.encoding = NULL}, "{}", "text", "the body must be {\"text\": a string without NUL}"},
        {{.encoding = NULL}, "{\"text\":\"\\u0000\"}", "text",
            "the body must be {\"text\": a string without NUL}"},
        {{.encoding = "mp3"}, NULL, "encoding",
            "the encoding 'mp3' is not known here (linear16, mulaw and alaw are)"},
        {{.encoding = "amr"}, "{\"text\":\"Hi\"}", "encoding",
            "the encoding 'amr' is not known here (linear16, mulaw, alaw, mp3, opus, flac and aac "
            "are)"},
        {{.container = "mp4"}, NULL, "container",
            "the container 'mp4' is not known (none, wav and ogg are)"},
        {{.sample_rate = "7999"}, NULL, "sample_rate",
            "\"sample_rate\" must be a number from 8000 to 48000"},
        {{.sample_rate = "48001"}, NULL, "sample_rate",
            "\"sample_rate\" must be a number from 8000 to 48000"},
        {{.sample_rate = ""}, NULL, "sample_rate",
            "\"sample_rate\" must be a number from 8000 to 48000"},
        {{.sample_rate = "16000x"}, NULL, "sample_rate",
            "\"sample_rate\" must be a number from 8000 to 48000"},
        {{.bit_rate = "5999"}, NULL, "bit_rate", "\"bit_rate\" must be a number from 6000 to 320000"},
        {{.bit_rate = "320001"}, NULL, "bit_rate", "\"bit_rate\" must be a number from 6000 to 320000"},
        {{.speed = "0.24"}, NULL, "speed", "\"speed\" must be a number from 0.25 to 4"},
        {{.speed = "4.1"}, NULL, "speed", "\"speed\" must be a number from 0.25 to 4"},
        {{.speed = "nan"}, NULL, "speed", "\"speed\" must be a number from 0.25 to 4"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *body = json_of(cases[i].body);
        assert_null(deepgram_fields(&cases[i].query, body, &refusal));
        expect_refusal(400, cases[i].param, cases[i].message);
        json_decref(body);
    }
}

static void deepgram_s_messages_are_read(void **state)
{
    static const struct {
        const char *type;
        enum deepgram_kind kind;
        bool aura, flux;
    } kinds[] = {{"Speak", DEEPGRAM_SPEAK, true, true}, {"Flush", DEEPGRAM_FLUSH, true, true},
        {"Clear", DEEPGRAM_CLEAR, true, false}, {"Interrupt", DEEPGRAM_INTERRUPT, false, true},
        {"Configure", DEEPGRAM_CONFIGURE, false, true}, {"Close", DEEPGRAM_CLOSE, true, true},
        {"speak", DEEPGRAM_SPEAK, false, false}};
    struct deepgram_message m;
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        json_t *json = json_pack("{s:s,s:s}", "type", kinds[i].type, "text", "ab");
        for (int flux = 0; flux < 2; flux++) {
            bool good = deepgram_read(&m, json, flux, &refusal);
            assert_int_equal(good, flux ? kinds[i].flux : kinds[i].aura);
            if (good) {
                assert_int_equal(m.kind, kinds[i].kind);
                assert_true(m.bytes == (i == 0 ? 2 : 0) && m.played_ms == -1);
                assert_true(m.speed == (m.kind == DEEPGRAM_CONFIGURE ? -1 : 0));
                assert_true(i == 0 ? strcmp(m.text, "ab") == 0 : !m.text);
            } else {
                expect_refusal(400, "type",
                    flux ? "\"type\" must be Speak, Flush, Interrupt, Configure or Close"
                         : "\"type\" must be Speak, Flush, Clear or Close");
            }
        }
        json_decref(json);
    }
}

static void deepgram_s_messages_have_their_fields(void **state)
{
    static const struct {
        const char *text, *param, *message;
        double played_ms, speed;
    } cases[] = {
        {"{\"type\":1}", "type", "\"type\" must be Speak, Flush, Interrupt, Configure or Close", 0, 0},
        {"{}", "type", "\"type\" must be Speak, Flush, Interrupt, Configure or Close", 0, 0},
        {"{\"type\":\"Speak\"}", "text", "\"text\" must be a string without NUL", 0, 0},
        {"{\"type\":\"Speak\",\"text\":\"a\\u0000b\"}", "text", "\"text\" must be a string without NUL",
            0, 0},
        {"{\"type\":\"Configure\",\"speed\":1.5}", NULL, NULL, -1, 1.5},
        {"{\"type\":\"Configure\",\"speed\":2}", NULL, NULL, -1, 2},
        {"{\"type\":\"Configure\",\"speed\":\"2\"}", NULL, NULL, -1, -1},
        {"{\"type\":\"Interrupt\",\"playback_offset\":null}", NULL, NULL, -1, 0},
        {"{\"type\":\"Interrupt\",\"playback_offset\":{\"type\":\"time_ms\",\"value\":0}}", NULL, NULL,
            0, 0},
        {"{\"type\":\"Interrupt\",\"playback_offset\":{\"type\":\"time_ms\",\"value\":12.5}}", NULL,
            NULL, 12.5, 0},
        {"{\"type\":\"Flush\",\"playback_offset\":7}", NULL, NULL, -1, 0},
        {"{\"type\":\"Interrupt\",\"playback_offset\":7}", "playback_offset",
            "\"playback_offset\" must be {\"type\": \"time_ms\", \"value\": MILLISECONDS}", 0, 0},
        {"{\"type\":\"Interrupt\",\"playback_offset\":{\"type\":\"time_s\",\"value\":7}}",
            "playback_offset",
            "\"playback_offset\" must be {\"type\": \"time_ms\", \"value\": MILLISECONDS}", 0, 0},
        {"{\"type\":\"Interrupt\",\"playback_offset\":{\"type\":\"time_ms\",\"value\":-1}}",
            "playback_offset",
            "\"playback_offset\" must be {\"type\": \"time_ms\", \"value\": MILLISECONDS}", 0, 0},
        {"{\"type\":\"Interrupt\",\"playback_offset\":{\"type\":\"time_ms\",\"value\":\"7\"}}",
            "playback_offset",
            "\"playback_offset\" must be {\"type\": \"time_ms\", \"value\": MILLISECONDS}", 0, 0}};
    struct deepgram_message m;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *json = json_of(cases[i].text);
        assert_int_equal(deepgram_read(&m, json, true, &refusal), !cases[i].message);
        if (cases[i].message) {
            expect_refusal(400, cases[i].param, cases[i].message);
        } else {
            assert_true(m.played_ms == cases[i].played_ms && m.speed == cases[i].speed);
        }
        json_decref(json);
    }
}

#define METADATA                                                                                       \
    "\"speech_id\":\"id\",\"audio_duration_ms\":1235,\"input_character_count\":7,"                     \
    "\"billable_character_count\":7,\"controls_applied\":{\"pronunciations_applied\":0,"               \
    "\"breaks_applied\":0,\"pronunciation_warnings\":0}"

static void deepgram_is_told(void **state)
{
    const struct deepgram_turn turn = {"id", 1.2346, 7};
    struct refusal r;
    (void)state;
    expect_json(deepgram_speech_metadata(&turn), "{\"type\":\"SpeechMetadata\"," METADATA "}");
    expect_json(deepgram_interrupted(&turn, 99.6, "one two", 7, -1),
        "{\"type\":\"SpeechInterrupted\",\"speech_id\":\"id\",\"audio_played_ms\":100,\"metadata\":"
        "{" METADATA "}}");
    expect_json(deepgram_interrupted(&turn, 0, "one \t\r\ntwo", 10, 3),
        "{\"type\":\"SpeechInterrupted\",\"speech_id\":\"id\",\"audio_played_ms\":0,\"metadata\":"
        "{" METADATA "},\"text_spoken\":\"one\",\"text_remaining\":\"two\"}");
    expect_json(deepgram_interrupted(&turn, 0, "one", 3, 0),
        "{\"type\":\"SpeechInterrupted\",\"speech_id\":\"id\",\"audio_played_ms\":0,\"metadata\":"
        "{" METADATA "},\"text_spoken\":\"\",\"text_remaining\":\"one\"}");
    expect_json(deepgram_warning("C", "w"),
        "{\"type\":\"Warning\",\"code\":\"C\",\"description\":\"w\",\"warn_msg\":\"w\"}");
    refuse(&r, 404, NULL, "why");
    expect_json(deepgram_error(&r), "{\"type\":\"Error\",\"code\":\"INVALID_MODEL\",\"description\":"
                                    "\"why\",\"err_code\":\"INVALID_MODEL\","
                                    "\"err_msg\":\"why\"}");
    expect_json(deepgram_refusal(&r), "{\"err_code\":\"INVALID_MODEL\",\"err_msg\":\"why\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deepgram_s_query_becomes_our_fields),
        cmocka_unit_test(what_deepgram_has_not_is_refused),
        cmocka_unit_test(deepgram_s_messages_are_read),
        cmocka_unit_test(deepgram_s_messages_have_their_fields),
        cmocka_unit_test(deepgram_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
