/* SPDX-License-Identifier: Apache-2.0
 * ElevenLabs' interface, field by field: what it asks becomes ours, and what it is told. */
#include "tests/dialects/expected.h"

#include <stdio.h>

#include "server/dialects/elevenlabs/elevenlabs_message.h"

static void elevenlabs_fields_become_ours(void **state)
{
    static const struct {
        struct elevenlabs_query query;
        const char *body, *fields;
        bool with_text;
    } cases[] = {
        {{.seed = NULL}, NULL,
            "{\"response_format\":\"mp3\",\"sample_rate\":44100,\"bit_rate\":128000,\"seed\":0}",
            false},
        {{.output_format = "pcm_8000", .language_code = "fr", .seed = "4294967295"},
            "{\"text\":\"Hi\"}",
            "{\"response_format\":\"pcm\",\"sample_rate\":8000,\"seed\":4294967295,\"input\":\"Hi\","
            "\"language\":\"fr\"}",
            true},
        {{.output_format = "ulaw_8000", .language_code = "fr", .seed = "5"},
            "{\"text\":\"Hi\",\"language_code\":\"de\",\"seed\":6}",
            "{\"response_format\":\"pcm\",\"sample_rate\":8000,\"sample_format\":\"ulaw\",\"seed\":6,"
            "\"language\":\"de\"}",
            false},
        {{.output_format = "alaw_8000", .language_code = ""}, "{\"seed\":null,\"voice_settings\":null}",
            "{\"response_format\":\"pcm\",\"sample_rate\":8000,\"sample_format\":\"alaw\",\"seed\":0}",
            false},
        {{.output_format = "opus_48000_32"}, "{\"voice_settings\":{\"speed\":0.25}}",
            "{\"response_format\":\"opus\",\"sample_rate\":48000,\"bit_rate\":32000,\"seed\":0,"
            "\"speed\":0.25}",
            false},
        {{.output_format = "mp3_24000_48"}, "{\"voice_settings\":{\"speed\":4}}",
            "{\"response_format\":\"mp3\",\"sample_rate\":24000,\"bit_rate\":48000,\"seed\":0,"
            "\"speed\":4.0}",
            false},
        {{.output_format = "pcm_48000"}, "{\"voice_settings\":{\"speed\":null,\"stability\":1}}",
            "{\"response_format\":\"pcm\",\"sample_rate\":48000,\"seed\":0}", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *body = json_of(cases[i].body),
               *got = elevenlabs_fields(body, &cases[i].query, cases[i].with_text, &refusal);
        if (!got) {
            fail_msg("%zu: %s", i, refusal.message);
        }
        expect_json(got, cases[i].fields);
        json_decref(body);
    }
    assert_null(elevenlabs_format(-1));
    assert_string_equal(elevenlabs_format(0), "mp3_22050_32");
    assert_string_equal(elevenlabs_format(20), "opus_48000_192");
    assert_null(elevenlabs_format(21));
    assert_null(elevenlabs_format(22));
}

static void what_elevenlabs_has_not_is_refused(void **state)
{
    static const char seed[] = "\"seed\" must be a whole number from 0 to 4294967295",
                      speed[] = "\"speed\" must be a number from 0.25 to 4";
    static const struct {
        struct elevenlabs_query query;
        const char *body;
        int status;
        const char *param, *message;
    } cases[] = {{{.seed = NULL}, NULL, 422, "text", "\"text\" must be a string without NUL"},
        {{.seed = NULL}, "{\"text\":\"a\\u0000\"}", 422, "text",
            "\"text\" must be a string without NUL"},
        {{.output_format = "mp3"}, "{\"text\":\"a\"}", 400, "output_format",
            "the output format 'mp3' is not known (mp3_44100_128, pcm_24000, ulaw_8000, opus_48000_64 "
            "are)"},
        {{.seed = "-1"}, "{\"text\":\"a\"}", 400, "seed", seed},
        {{.seed = "4294967296"}, "{\"text\":\"a\"}", 400, "seed", seed},
        {{.seed = "1x"}, "{\"text\":\"a\"}", 400, "seed", seed},
        {{.seed = NULL}, "{\"text\":\"a\",\"seed\":-1}", 400, "seed", seed},
        {{.seed = NULL}, "{\"text\":\"a\",\"seed\":4294967296}", 400, "seed", seed},
        {{.seed = NULL}, "{\"text\":\"a\",\"seed\":1.5}", 400, "seed", seed},
        {{.seed = NULL}, "{\"text\":\"a\",\"voice_settings\":[]}", 400, "voice_settings",
            "\"voice_settings\" must be an object"},
        {{.seed = NULL}, "{\"text\":\"a\",\"voice_settings\":{\"speed\":0.24}}", 400, "voice_settings",
            speed},
        {{.seed = NULL}, "{\"text\":\"a\",\"voice_settings\":{\"speed\":4.1}}", 400, "voice_settings",
            speed},
        {{.seed = NULL}, "{\"text\":\"a\",\"voice_settings\":{\"speed\":\"1\"}}", 400, "voice_settings",
            speed}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *body = json_of(cases[i].body);
        assert_null(elevenlabs_fields(body, &cases[i].query, true, &refusal));
        expect_refusal(cases[i].status, cases[i].param, cases[i].message);
        json_decref(body);
    }
}

static void elevenlabs_messages_are_read(void **state)
{
    static const struct {
        const char *text, *param, *message;
    } bad[] = {{"[]", "", "a message must be a JSON object"},
        {"{\"context_id\":1}", "context_id", "\"context_id\" must be a string of at most 128 bytes"},
        {"{\"context_id\":\"a\\u0000\"}", "context_id",
            "\"context_id\" must be a string of at most 128 bytes"},
        {"{\"text\":1}", "text", "\"text\" must be a string without NUL"},
        {"{\"text\":\"\\u0000\"}", "text", "\"text\" must be a string without NUL"},
        {"{\"flush\":1}", "flush", "\"flush\" must be true or false"},
        {"{\"close_context\":\"x\"}", "close_context", "\"close_context\" must be true or false"},
        {"{\"close_socket\":0}", "close_socket", "\"close_socket\" must be true or false"}};
    struct elevenlabs_message m;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *json = json_of(bad[i].text);
        assert_false(elevenlabs_read(&m, json, &refusal));
        expect_refusal(400, bad[i].param, bad[i].message);
        json_decref(json);
    }
    json_t *json =
        json_of("{\"text\":null,\"context_id\":null,\"flush\":null,\"close_context\":false}");
    assert_true(elevenlabs_read(&m, json, &refusal));
    assert_string_equal(m.context, "");
    assert_true(!m.text && m.bytes == 0 && !m.flush && !m.close_context && !m.close_socket);
    json_decref(json);
    json = json_of("{\"text\":\"\\u00e9\",\"context_id\":\"c\",\"flush\":true,\"close_context\":true,"
                   "\"close_socket\":true}");
    assert_true(elevenlabs_read(&m, json, &refusal));
    assert_string_equal(m.context, "c");
    assert_string_equal(m.text, "\xC3\xA9");
    assert_true(m.bytes == 2 && m.flush && m.close_context && m.close_socket);
    json_decref(json);
    for (size_t n = 128; n <= 129; n++) {
        char name[130];
        memset(name, 'n', n), name[n] = 0;
        json = json_pack("{s:s}", "context_id", name);
        assert_int_equal(elevenlabs_read(&m, json, &refusal), n == 128);
        json_decref(json);
    }
}

static void elevenlabs_is_told_of_letters_and_errors(void **state)
{
    struct elevenlabs_alignment a;
    (void)state;
    for (int of_socket = 0; of_socket < 2; of_socket++) {
        elevenlabs_alignment_begin(&a, of_socket, 2);
        const json_t *none = elevenlabs_alignment_end(&a);
        assert_true(json_is_null(none));
        elevenlabs_alignment_begin(&a, of_socket, 2);
        elevenlabs_alignment_letter(&a, "\xC3\xA9x", 2, 2.25, 2.5004);
        elevenlabs_alignment_letter(&a, "\xA9", 1, 2.5004, 2.5016); /* a part of a letter */
        json_t *told = elevenlabs_alignment_end(&a);
        if (of_socket) {
            expect_json(told, "{\"chars\":[\"\\u00e9\",\"\"],\"charStartTimesMs\":[250,500],"
                              "\"charDurationsMs\":[250,2]}");
            continue;
        }
        json_t *starts = json_object_get(told, "character_start_times_seconds"),
               *ends = json_object_get(told, "character_end_times_seconds");
        assert_true(json_object_size(told) == 3 && json_array_size(starts) == 2);
        assert_true(json_real_value(json_array_get(starts, 0)) == 0.25);
        assert_true(json_real_value(json_array_get(ends, 0)) == 2.5004 - 2);
        assert_true(json_real_value(json_array_get(ends, 1)) == 2.5016 - 2);
        expect_json(json_incref(json_object_get(told, "characters")), "[\"\\u00e9\",\"\"]");
        json_decref(told);
    }
    static const struct {
        int status, close;
        const char *word;
    } cases[] = {{400, 1008, "invalid_request"}, {401, 1008, "invalid_api_key"},
        {404, 1008, "not_found"}, {422, 1008, "validation_error"},
        {429, 1008, "too_many_concurrent_requests"}, {500, 1011, "internal_error"},
        {502, 1011, "internal_error"}, {503, 1011, "system_busy"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct refusal r;
        char want[200];
        refuse(&r, cases[i].status, "p", "why");
        snprintf(want, sizeof want,
            "{\"detail\":{\"status\":\"%s\",\"message\":\"why\",\"param\":\"p\"}}", cases[i].word);
        expect_json(elevenlabs_refusal(&r), want);
        snprintf(want, sizeof want, "{\"message\":\"why\",\"error\":\"%s\",\"code\":%d}", cases[i].word,
            cases[i].close);
        expect_json(elevenlabs_error(&r, ""), want);
        r.code = "own", r.param[0] = 0;
        expect_json(elevenlabs_refusal(&r),
            "{\"detail\":{\"status\":\"own\",\"message\":\"why\",\"param\":null}}");
        snprintf(want, sizeof want,
            "{\"message\":\"why\",\"error\":\"own\",\"code\":%d,\"contextId\":\"c\"}", cases[i].close);
        expect_json(elevenlabs_error(&r, "c"), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elevenlabs_fields_become_ours),
        cmocka_unit_test(what_elevenlabs_has_not_is_refused),
        cmocka_unit_test(elevenlabs_messages_are_read),
        cmocka_unit_test(elevenlabs_is_told_of_letters_and_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
