/* SPDX-License-Identifier: Apache-2.0
 * Frames of the Wyoming protocol: where they end, what they hold, and what a program says that it can. */
#include "tests/dialects/expected.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/dialects/wyoming/wyoming_message.h"

static void an_event_is_a_line_and_what_it_announces(void **state)
{
    static const char frame[] = "{\"type\":\"t\",\"data\":{\"a\":\"1\",\"b\":\"2\"},\"data_length\":20,"
                                "\"payload_length\":3}\n{\"b\":\"3\",\"c\":\"4\"}   xyzmore";
    const size_t line = (size_t)(strchr(frame, '\n') - frame) + 1, whole = line + 20 + 3;
    struct wyoming_event e;
    (void)state;
    for (size_t n = 0; n < sizeof frame; n++) {
        size_t used = 0;
        enum wyoming_progress progress = wyoming_read(&e, (const uint8_t *)frame, n, &used);
        assert_int_equal(progress, n < whole ? WYOMING_MORE : WYOMING_EVENT);
        assert_int_equal(used, n < line ? 0 : whole);
        if (progress == WYOMING_EVENT) {
            assert_string_equal(e.type, "t");
            assert_int_equal(e.payload_bytes, 3);
            assert_string_equal(wyoming_string(&e, "a"), "1");
            assert_string_equal(wyoming_string(&e, "b"), "3"); /* what comes later holds */
            assert_string_equal(wyoming_string(&e, "c"), "4");
            assert_null(wyoming_string(&e, "d"));
        }
        wyoming_event_fini(&e);
        assert_true(!e.json && !e.type && !e.data && e.payload_bytes == 0);
    }
}

static void events_without_data_have_an_empty_one(void **state)
{
    static const char *const good[] = {"{\"type\":\"t\"}\n", "{\"type\":\"t\",\"data\":null}\n",
        "{\"type\":\"t\",\"data_length\":null,\"payload_length\":null}\n",
        "{\"type\":\"t\",\"data\":{},\"data_length\":0}\n", "{\"type\":\"t\",\"data_length\":2}\n{}"},
                             *const bad[] = {"\n", "{}\n", "[]\n", "{\"type\":1}\n",
                                 "{\"type\":\"t\"\n", "{\"type\":\"t\",\"data\":[]}\n",
                                 "{\"type\":\"t\",\"data_length\":-1}\n",
                                 "{\"type\":\"t\",\"data_length\":\"1\"}\n",
                                 "{\"type\":\"t\",\"data_length\":1.0}\n",
                                 "{\"type\":\"t\",\"payload_length\":-1}\n",
                                 "{\"type\":\"t\",\"data_length\":2}\n[]",
                                 "{\"type\":\"t\",\"data_length\":2}\n{x",
                                 "{\"type\":\"t\",\"data_length\":524289}\n",
                                 "{\"type\":\"t\",\"payload_length\":262145}\n"},
                             *const more[] = {"{\"type\":\"t\",\"data_length\":524288}\n",
                                 "{\"type\":\"t\",\"payload_length\":262144}\n"};
    struct wyoming_event e;
    size_t used;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t n = strlen(good[i]);
        assert_int_equal(wyoming_read(&e, (const uint8_t *)good[i], n, &used), WYOMING_EVENT);
        assert_true(used == n && json_is_object(e.data) && json_object_size(e.data) == 0);
        assert_int_equal(e.payload_bytes, 0);
        wyoming_event_fini(&e);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (wyoming_read(&e, (const uint8_t *)bad[i], strlen(bad[i]), &used) != WYOMING_BAD) {
            fail_msg("%s", bad[i]);
        }
        assert_null(e.json);
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        assert_int_equal(
            wyoming_read(&e, (const uint8_t *)more[i], strlen(more[i]), &used), WYOMING_MORE);
        assert_int_equal(used, strlen(more[i]) + (i ? WYOMING_PAYLOAD : WYOMING_DATA));
    }
    char *line = malloc(WYOMING_LINE + 1); /* one that has no end */
    assert_non_null(line);
    memset(line, ' ', WYOMING_LINE);
    line[WYOMING_LINE] = '\n';
    assert_int_equal(wyoming_read(&e, (uint8_t *)line, WYOMING_LINE - 1, &used), WYOMING_MORE);
    assert_int_equal(wyoming_read(&e, (uint8_t *)line, WYOMING_LINE, &used), WYOMING_BAD);
    assert_int_equal(wyoming_read(&e, (uint8_t *)line, WYOMING_LINE + 1, &used), WYOMING_BAD);
    memcpy(line, "{\"type\":\"t\"}", 12);
    line[WYOMING_LINE - 1] = '\n';
    assert_int_equal(wyoming_read(&e, (uint8_t *)line, WYOMING_LINE, &used), WYOMING_EVENT);
    wyoming_event_fini(&e);
    free(line);
}

static void what_is_written_is_read(void **state)
{
    struct wire_out out = {0};
    struct wyoming_event e;
    size_t used;
    (void)state;
    json_t *data = json_pack("{s:s}", "a", "b");
    wyoming_write(&out, "audio", json_incref(data), "xyz", 3);
    assert_int_equal(data->refcount, 1); /* it was taken over */
    json_decref(data);
    static const char line[] =
        "{\"type\":\"audio\",\"version\":\"1.10.2\",\"data_length\":9,\"payload_length\":3}\n"
        "{\"a\":\"b\"}xyz";
    assert_int_equal(out.n, strlen(line));
    assert_memory_equal(out.bytes, line, out.n);
    wyoming_write(&out, "stop", NULL, NULL, 0); /* behind it */
    assert_int_equal(
        wyoming_read(&e, out.bytes + strlen(line), out.n - strlen(line), &used), WYOMING_EVENT);
    assert_int_equal(used, out.n - strlen(line));
    assert_string_equal(e.type, "stop");
    assert_true(!out.failed && e.payload_bytes == 0 && json_object_size(e.data) == 0);
    wyoming_event_fini(&e);
    wire_fini(&out);
}

static void a_voice_is_a_speaker_or_a_name(void **state)
{
    static const struct {
        const char *voice, *name, *language;
    } cases[] = {{"{\"name\":\"n\",\"speaker\":\"s\",\"language\":\"l\"}", "s", "l"},
        {"{\"name\":\"n\"}", "n", NULL}, {"{\"speaker\":null,\"name\":7}", NULL, NULL},
        {"{\"language\":7}", NULL, NULL}, {"7", NULL, NULL}, {"null", NULL, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wyoming_event e;
        char frame[200];
        size_t used;
        const char *language = "unset";
        int n =
            snprintf(frame, sizeof frame, "{\"type\":\"t\",\"data\":{\"voice\":%s}}\n", cases[i].voice);
        assert_int_equal(wyoming_read(&e, (uint8_t *)frame, (size_t)n, &used), WYOMING_EVENT);
        const char *name = wyoming_voice(&e, &language);
        assert_true(cases[i].name ? name && strcmp(name, cases[i].name) == 0 : !name);
        assert_true(
            cases[i].language ? language && strcmp(language, cases[i].language) == 0 : !language);
        wyoming_event_fini(&e);
    }
}

#define ARTIFACT(name, what)                                                                           \
    "\"name\":\"" name "\",\"description\":\"" what "\",\"version\":\"1.2\",\"installed\":true,"       \
    "\"attribution\":{\"name\":\"utter\",\"url\":\"\"}"
#define OTHERS ",\"asr\":[],\"handle\":[],\"intent\":[],\"wake\":[],\"mic\":[],\"snd\":[]"

static void a_program_says_what_it_can(void **state)
{
    (void)state;
    expect_json(
        wyoming_info("1.2", json_of("[\"a\",\"b\"]"), json_of("[\"english\",\"german\",\"elvish\"]")),
        "{\"tts\":[{" ARTIFACT(
            "utter", "utter") ",\"supports_synthesize_streaming\":true,\"voices\":[{" ARTIFACT("a",
            "a") ",\"languages\":[\"en\",\"de\",\"elvish\"]},{" ARTIFACT("b",
            "b") ",\"languages\":[\"en\",\"de\",\"elvish\"]}]}]" OTHERS "}");
    expect_json(wyoming_info("1.2", json_of("[\"a\"]"), json_of("[]")), /* English where none is told */
        "{\"tts\":[{" ARTIFACT(
            "utter", "utter") ",\"supports_synthesize_streaming\":true,\"voices\":[{" ARTIFACT("a",
            "a") ",\"languages\":[\"en\"]}]}]" OTHERS "}");
    json_t *config = json_of(
               "{\"talker_config\":{\"spk_id\":{\"x\":1,\"y\":2},\"codec_language_id\":{\"z\":3}}}"),
           *voices, *languages;
    wyoming_config(config, &voices, &languages);
    expect_json(voices, "[\"x\",\"y\"]");
    expect_json(languages, "[\"z\"]");
    json_decref(config);
    wyoming_config(NULL, &voices, &languages);
    expect_json(voices, "[]");
    expect_json(languages, "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_a_line_and_what_it_announces),
        cmocka_unit_test(events_without_data_have_an_empty_one),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_voice_is_a_speaker_or_a_name),
        cmocka_unit_test(a_program_says_what_it_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
