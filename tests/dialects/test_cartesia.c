/* SPDX-License-Identifier: Apache-2.0
 * Cartesia's interface, field by field: what it asks becomes ours, and what it is told. */
#include "tests/dialects/expected.h"

#include <stdio.h>

#include "server/dialects/cartesia/cartesia_message.h"

static void expect_cartesia(const char *asked, bool with_text, bool raw, const char *fields)
{
    json_t *json = json_of(asked), *got = cartesia_fields(json, with_text, raw, &refusal);
    if (!got) {
        fail_msg("%s: %s", asked, refusal.message);
    }
    expect_json(got, fields);
    json_decref(json);
}

static void cartesia_s_fields_become_ours(void **state)
{
    (void)state;
    expect_cartesia("{\"transcript\":\"Hi\"}", true, true,
        "{\"response_format\":\"pcm\",\"sample_rate\":44100,\"sample_format\":\"f32\",\"speed\":1.0,"
        "\"volume_multiplier\":1.0,\"input\":\"Hi\"}");
    expect_cartesia("{\"transcript\":\"Hi\",\"language\":\"fr\",\"speed\":\"slow\",\"output_format\":{"
                    "\"container\":\"wav\",\"encoding\":\"pcm_mulaw\",\"sample_rate\":8000}}",
        false, false,
        "{\"response_format\":\"wav\",\"sample_rate\":8000,\"sample_format\":\"ulaw\",\"speed\":0.8,"
        "\"volume_multiplier\":1.0,\"language\":\"fr\"}");
    expect_cartesia("{\"language\":\"fr\",\"locale\":\"de-DE\",\"speed\":\"fast\",\"output_format\":{"
                    "\"container\":\"mp3\",\"sample_rate\":48000.0,\"bit_rate\":32000}}",
        false, false,
        "{\"response_format\":\"mp3\",\"sample_rate\":48000,\"bit_rate\":32000,\"speed\":1.25,"
        "\"volume_multiplier\":1.0,\"language\":\"de-DE\"}");
    expect_cartesia("{\"speed\":\"fast\",\"locale\":null,\"output_format\":{\"container\":\"raw\","
                    "\"encoding\":\"pcm_alaw\"},\"generation_config\":{\"speed\":0.25,\"volume\":4}}",
        false, true,
        "{\"response_format\":\"pcm\",\"sample_rate\":44100,\"sample_format\":\"alaw\",\"speed\":0.25,"
        "\"volume_multiplier\":4.0}");
    expect_cartesia("{\"speed\":\"normal\",\"output_format\":{\"container\":\"mp3\","
                    "\"encoding\":\"pcm_s16le\"},\"generation_config\":{\"speed\":4,\"volume\":0}}",
        false, false,
        "{\"response_format\":\"mp3\",\"sample_rate\":44100,\"bit_rate\":128000,\"speed\":4.0,"
        "\"volume_multiplier\":0.0}");
    expect_cartesia("{\"output_format\":{\"encoding\":\"pcm_s16le\"}}", false, true,
        "{\"response_format\":\"pcm\",\"sample_rate\":44100,\"sample_format\":\"s16\",\"speed\":1.0,"
        "\"volume_multiplier\":1.0}");
}

static void what_cartesia_has_not_is_refused(void **state)
{
    static const struct {
        const char *asked, *param, *message;
    } cases[] = {{"{\"output_format\":1}", "output_format", "\"output_format\" must be an object"},
        {"{\"output_format\":{\"container\":1}}", "container",
            "\"container\" must be a string of at most 16 bytes without NUL"},
        {"{\"output_format\":{\"encoding\":\"12345678901234567\"}}", "encoding",
            "\"encoding\" must be a string of at most 16 bytes without NUL"},
        {"{\"output_format\":{\"sample_rate\":7999}}", "sample_rate",
            "\"sample_rate\" must be a number from 8000 to 48000"},
        {"{\"output_format\":{\"sample_rate\":48001}}", "sample_rate",
            "\"sample_rate\" must be a number from 8000 to 48000"},
        {"{\"output_format\":{\"bit_rate\":31999}}", "bit_rate",
            "\"bit_rate\" must be a number from 32000 to 192000"},
        {"{\"output_format\":{\"bit_rate\":192001}}", "bit_rate",
            "\"bit_rate\" must be a number from 32000 to 192000"},
        {"{\"output_format\":{\"container\":\"ogg\"}}", "container",
            "the container 'ogg' is not known (raw, wav and mp3 are)"},
        {"{\"output_format\":{\"container\":\"wav\"}}", "container",
            "only the container raw is sent here"},
        {"{\"output_format\":{\"container\":\"mp3\"}}", "container",
            "only the container raw is sent here"},
        {"{\"output_format\":{\"encoding\":\"pcm\"}}", "encoding",
            "the encoding 'pcm' is not known (pcm_s16le, pcm_f32le, pcm_mulaw and pcm_alaw are)"},
        {"{\"generation_config\":[]}", "generation_config", "\"generation_config\" must be an object"},
        {"{\"generation_config\":{\"speed\":0.2}}", "speed",
            "\"speed\" must be a number from 0.25 to 4"},
        {"{\"generation_config\":{\"speed\":4.1}}", "speed",
            "\"speed\" must be a number from 0.25 to 4"},
        {"{\"generation_config\":{\"volume\":-1}}", "volume",
            "\"volume\" must be a number from 0 to 4"},
        {"{\"generation_config\":{\"volume\":\"1\"}}", "volume",
            "\"volume\" must be a number from 0 to 4"},
        {"{\"speed\":\"slower\"}", "speed", "\"speed\" must be slow, normal or fast"},
        {"{\"speed\":1}", "speed", "\"speed\" must be slow, normal or fast"},
        {"{\"language\":\"123456789012345678901234567890123\"}", "language",
            "\"language\" must be a string of at most 32 bytes without NUL"},
        {"{\"locale\":1}", "locale", "\"locale\" must be a string of at most 32 bytes without NUL"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *json = json_of(cases[i].asked);
        assert_null(cartesia_fields(json, false, true, &refusal));
        expect_refusal(400, cases[i].param, cases[i].message);
        json_decref(json);
    }
}

static void cartesia_s_messages_are_read(void **state)
{
    static const struct {
        const char *text, *param, *message;
    } bad[] = {{"{}", "transcript", "\"transcript\" must be a string without NUL"},
        {"{\"transcript\":\"a\\u0000\"}", "transcript", "\"transcript\" must be a string without NUL"},
        {"{\"cancel\":1}", "cancel", "\"cancel\" must be true or false"},
        {"{\"continue\":\"x\"}", "continue", "\"continue\" must be true or false"},
        {"{\"flush\":0}", "flush", "\"flush\" must be true or false"},
        {"{\"add_timestamps\":[]}", "add_timestamps", "\"add_timestamps\" must be true or false"},
        {"{\"max_buffer_delay_ms\":5001}", "max_buffer_delay_ms",
            "\"max_buffer_delay_ms\" must be a number from 0 to 5000"},
        {"{\"max_buffer_delay_ms\":-1}", "max_buffer_delay_ms",
            "\"max_buffer_delay_ms\" must be a number from 0 to 5000"},
        {"{\"voice\":{}}", "voice", "\"voice\" must be {\"mode\": \"id\", \"id\": ID}"},
        {"{\"voice\":7}", "voice", "\"voice\" must be {\"mode\": \"id\", \"id\": ID}"},
        {"{\"voice\":\"a\\u0000\"}", "voice", "\"voice\" must be {\"mode\": \"id\", \"id\": ID}"},
        {"{\"context_id\":1}", "context_id",
            "\"context_id\" must be a string of at most 128 bytes without NUL"}};
    struct cartesia_message m;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *json = json_of(bad[i].text);
        assert_false(cartesia_read(&m, json, &refusal));
        expect_refusal(400, bad[i].param, bad[i].message);
        json_decref(json);
    }
    json_t *json = json_of("{\"transcript\":\"Hi\\u00e9\"}");
    assert_true(cartesia_read(&m, json, &refusal));
    assert_string_equal(m.transcript, "Hi\xC3\xA9");
    assert_string_equal(m.context, "");
    assert_true(m.bytes == 4 && !m.voice && m.delay_s == 3);
    assert_false(m.goes_on || m.flush || m.cancel || m.add_timestamps);
    json_decref(json);
    json = json_of("{\"transcript\":\"\",\"context_id\":\"c\",\"voice\":{\"mode\":\"id\",\"id\":\"v\"},"
                   "\"continue\":true,\"flush\":true,\"add_timestamps\":true,\"cancel\":null,"
                   "\"max_buffer_delay_ms\":500}");
    assert_true(cartesia_read(&m, json, &refusal));
    assert_true(m.bytes == 0 && m.goes_on && m.flush && m.add_timestamps && !m.cancel);
    assert_true(m.delay_s == 0.5);
    assert_string_equal(m.context, "c");
    assert_string_equal(m.voice, "v");
    json_decref(json);
    json = json_of("{\"context_id\":\"c\",\"cancel\":true,\"voice\":\"w\"}"); /* needs no text */
    assert_true(cartesia_read(&m, json, &refusal));
    assert_true(m.cancel && !m.transcript);
    assert_string_equal(m.voice, "w");
    json_decref(json);
    for (size_t n = 128; n <= 201; n++) { /* of a context and of a voice */
        char name[202];
        memset(name, 'n', n), name[n] = 0;
        json_t *context = json_pack("{s:s,s:s}", "transcript", "", "context_id", name),
               *voice = json_pack("{s:s,s:s}", "transcript", "", "voice", name);
        assert_int_equal(cartesia_read(&m, context, &refusal), n <= 128);
        assert_int_equal(cartesia_read(&m, voice, &refusal), n <= 200);
        json_decref(context);
        json_decref(voice);
    }
}

/* Tells each character of a text as a letter of a tenth of a second; "|" asks for what has ended. */
static char *cartesia_words_of(const char *text)
{
    static char all[400];
    struct cartesia_words w = {.from_s = 0};
    double at_s = 0;
    all[0] = 0;
    for (size_t i = 0, bytes; text[i]; i += bytes) {
        for (bytes = 1; (text[i + bytes] & 0xC0) == 0x80; bytes++) {
        }
        if (text[i] != '|') {
            cartesia_words_letter(&w, text + i, bytes, at_s, at_s + 0.1);
            at_s += 0.1;
        }
        json_t *told = text[i] == '|'    ? cartesia_words_take(&w)
                       : text[i + bytes] ? NULL
                                         : cartesia_words_end(&w);
        json_t *words = json_object_get(told, "words"), *word;
        size_t k;
        json_array_foreach(words, k, word)
        {
            sprintf(all + strlen(all), "%s %.1f-%.1f,", json_string_value(word),
                json_real_value(json_array_get(json_object_get(told, "start"), k)),
                json_real_value(json_array_get(json_object_get(told, "end"), k)));
        }
        json_decref(told);
    }
    return all;
}

static void letters_become_cartesia_s_words(void **state)
{
    (void)state;
    assert_string_equal(cartesia_words_of("ab cd"), "ab 0.0-0.2,cd 0.3-0.5,");
    assert_string_equal(cartesia_words_of(" \t\n a."), "a. 0.4-0.5,"); /* a mark takes no time */
    assert_string_equal(cartesia_words_of("\"a\"!"), "\"a\"! 0.0-0.2,");
    assert_string_equal(cartesia_words_of("a|b| |"), "ab 0.0-0.2,");
    assert_string_equal(cartesia_words_of("a-b|c d|"), "a-bc 0.0-0.4,"); /* the last may go on */
    assert_string_equal(cartesia_words_of(""), "");
    /* Each character of Chinese and Japanese is a word; other scripts have words. */
    static const char *const alone[] = {"⺀", "々", "か", "中", "鿿", "豈", "ｶ", "𠀀"};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        char text[8], wanted[64];
        snprintf(text, sizeof text, "a%sb", alone[i]);
        snprintf(wanted, sizeof wanted, "a 0.0-0.1,%s 0.1-0.2,b 0.2-0.3,", alone[i]);
        assert_string_equal(cartesia_words_of(text), wanted);
    }
    assert_string_equal(cartesia_words_of("⹿é한국😀🤠x"), "⹿é한국😀🤠x 0.0-0.7,");
    struct cartesia_words w = {.from_s = 0};
    for (int i = 0; i < 513; i++) { /* a word has so many bytes at most */
        cartesia_words_letter(&w, "x", 1, i, i + 1);
    }
    json_t *told = cartesia_words_end(&w);
    assert_int_equal(json_string_length(json_array_get(json_object_get(told, "words"), 0)), 512);
    assert_int_equal(json_string_length(json_array_get(json_object_get(told, "words"), 1)), 1);
    json_decref(told);
}

static void cartesia_is_told(void **state)
{
    (void)state;
    expect_json(cartesia_chunk("c", json_string("AA=="), 12.5),
        "{\"type\":\"chunk\",\"context_id\":\"c\",\"done\":false,\"status_code\":206,\"data\":\"AA==\","
        "\"step_time\":12.5}");
    expect_json(cartesia_timestamps("", json_object(), true),
        "{\"type\":\"timestamps\",\"context_id\":null,\"done\":false,\"status_code\":206,"
        "\"word_timestamps\":{},\"approximate\":true}");
    expect_json(cartesia_timestamps("c", json_object(), false),
        "{\"type\":\"timestamps\",\"context_id\":\"c\",\"done\":false,\"status_code\":206,"
        "\"word_timestamps\":{}}");
    expect_json(cartesia_flush_done("c", 3), "{\"type\":\"flush_done\",\"context_id\":\"c\",\"done\":"
                                             "false,\"status_code\":206,\"flush_id\":3,"
                                             "\"flush_done\":true}");
    expect_json(cartesia_done("c"),
        "{\"type\":\"done\",\"context_id\":\"c\",\"done\":true,\"status_code\":200}");
    static const struct {
        int status;
        const char *title, *code;
    } cases[] = {{400, "Invalid request", "invalid_request_error"},
        {401, "Unauthorized", "invalid_request_error"}, {404, "Not found", "invalid_request_error"},
        {429, "Too many requests", "rate_limit_error"}, {500, "Internal error", "server_error"},
        {503, "Busy", "overloaded_error"}, {599, "Internal error", "server_error"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct refusal r;
        char want[300];
        refuse(&r, cases[i].status, NULL, "why");
        snprintf(want, sizeof want,
            "{\"type\":\"error\",\"context_id\":\"c\",\"done\":true,\"status_code\":%d,\"title\":\"%"
            "s\","
            "\"message\":\"why\",\"error_code\":\"%s\",\"error\":\"why\"}",
            cases[i].status, cases[i].title, cases[i].code);
        expect_json(cartesia_error(&r, "c"), want);
        r.code = "own";
        snprintf(want, sizeof want,
            "{\"status_code\":%d,\"title\":\"%s\",\"message\":\"why\",\"error_code\":\"own\"}",
            cases[i].status, cases[i].title);
        expect_json(cartesia_refusal(&r), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cartesia_s_fields_become_ours),
        cmocka_unit_test(what_cartesia_has_not_is_refused),
        cmocka_unit_test(cartesia_s_messages_are_read),
        cmocka_unit_test(letters_become_cartesia_s_words),
        cmocka_unit_test(cartesia_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
