/* SPDX-License-Identifier: Apache-2.0
 * Lines that are asked of a server, which a thread poses: what goes out, and what is made of its events. */
#include "tests/job/beside_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/base64.h"

/* ---- What goes out ---- */

static void assert_body(const char *wanted)
{
    json_t *body = json_loads(strstr(posed.asked, "\r\n\r\n") + 4, 0, NULL),
           *other = json_loads(wanted, 0, NULL);
    assert_true(body && other);
    if (!json_equal(body, other)) {
        fail_msg("%s, not %s", posed.asked, wanted);
    }
    json_decref(body);
    json_decref(other);
}

static void a_request_has_all_of_a_line(void **state)
{
    (void)state;
    open_speaker("secret");
    assert_int_equal(ask(GOOD ENDED), UTTER_END);
    assert_int_equal(strncmp(posed.asked, "POST /v1/audio/speech HTTP/1.1\r\n", 32), 0);
    assert_non_null(strstr(posed.asked, "\r\nAuthorization: Bearer secret\r\n"));
    assert_non_null(strstr(posed.asked, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(posed.asked, "\r\nUser-Agent: utter\r\n"));
    assert_null(strstr(posed.asked, "Expect:"));
    assert_body("{\"input\":\"Hello. \\u00e4\",\"seed\":0,\"word_timestamps\":true,\"background\":true,"
                "\"model_hash\":\"m\",\"voice_hash\":\"vh\",\"response_format\":\"pcm\","
                "\"sample_format\":\"f32\",\"stream_format\":\"sse\"}");
    clear();
    assert_int_equal(begin("{\"id\":\"a\",\"model\":\"m\",\"voice_hash\":\"vh\",\"called_hash\":\"\","
                           "\"format\":\"raw\",\"text\":\"b\",\"voice\":\"v\",\"language\":\"l\","
                           "\"instruct\":\"i\",\"markup\":\"tags\",\"seed\":12}"),
        UTTER_OK);
    assert_int_equal(finish(), UTTER_END);
    assert_body(
        "{\"input\":\"b\",\"voice\":\"v\",\"language\":\"l\",\"instructions\":\"i\","
        "\"markup\":\"tags\",\"seed\":12,\"word_timestamps\":false,\"background\":true,\"model_hash\":"
        "\"m\",\"voice_hash\":"
        "\"vh\",\"response_format\":\"pcm\",\"sample_format\":\"f32\",\"stream_format\":\"sse\"}");
    clear();
    speaker_close(&speaker);
    assert_null(speaker);
    posed.url[strlen(posed.url) - 1] = 0; /* the slash at its end may be left out */
    open_speaker(NULL);
    assert_int_equal(ask(GOOD ENDED), UTTER_END);
    assert_int_equal(strncmp(posed.asked, "POST /v1/audio/speech HTTP/1.1\r\n", 32), 0);
    assert_null(strstr(posed.asked, "Authorization"));
    strcat(posed.url, "/");
    clear();
    speaker_close(&speaker);
}

/* ---- What comes in ---- */

/* So many samples, of any bits but no blanks among their bytes. */
static void draw(float *pcm, size_t n)
{
    uint32_t drawn = 1;
    for (size_t i = 0; i < n; i++) {
        drawn = drawn * 1664525 + 1013904223;
        pcm[i] = (float)((double)drawn / UINT32_MAX - 0.5);
    }
}

static void samples_come_as_they_are(void **state)
{
    (void)state;
    static const size_t parts[] = {1, 1919, 1920, 1921, 3841, 2, 700};
    enum { ALL = 1 + 1919 + 1920 + 1921 + 3841 + 2 + 700 };
    static float pcm[ALL];
    char *answer = malloc(sizeof pcm * 2 + 4096), *at = answer;
    assert_non_null(answer);
    open_speaker(NULL);
    draw(pcm, ALL);
    at += sprintf(at, "%s: a remark\n\n", GOOD);
    for (size_t i = 0, from = 0; i < sizeof parts / sizeof *parts; from += parts[i++]) {
        json_t *text = base64_write(pcm + from, parts[i] * sizeof *pcm);
        at += sprintf(at, "data: {\"type\":\"speech.audio.delta\",\"audio\":\"%s\"}\n\n",
            json_string_value(text));
        json_decref(text);
    }
    sprintf(at, "%s", ENDED);
    for (size_t piece = 0; piece < 3; piece++) {
        posed.piece = piece * 1000 + piece % 2; /* whole, 1001, 2000 */
        assert_int_equal(ask(answer), UTTER_END);
        assert_int_equal(slot.n_samples, ALL);
        assert_int_equal(utter_sound_close(&slot.sound, NULL), UTTER_OK);
        size_t n;
        char *bytes = support_read_file(support_path("sound"), &n);
        assert_int_equal(n, sizeof pcm);
        assert_memory_equal(bytes, pcm, n);
        free(bytes);
        clear();
    }
    posed.piece = 0;
    /* What is no whole sample is none; what is no base64 ends it. */
    assert_int_equal(ask(GOOD "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAAPwAA\"}\n"
                              "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAAPw==AAAA\"}\n"
                              "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAA\"}\n"
                              "data: {\"type\":\"speech.audio.delta\"}\n" ENDED),
        UTTER_END);
    assert_int_equal(slot.n_samples, 2);
    clear();
    free(answer);
    speaker_close(&speaker);
}

static void words_and_counts_come_as_they_are(void **state)
{
    (void)state;
    open_speaker(NULL);
    assert_int_equal(
        ask(GOOD
            "data: "
            "{\"type\":\"speech.audio.words\",\"approximate\":true,\"words\":[{\"index\":1,\"at\":7,"
            "\"bytes\":2,\"start\":0.5,\"end\":1.25,\"certainty\":0.75,\"skipped\":true},{\"index\":-1}"
            ","
            "{\"index\":9,\"at\":3},{\"index\":0,\"at\":0,\"bytes\":5,\"start\":-1,\"end\":0.00002,"
            "\"final\":"
            "true}]}\n"
            "data: {\"type\":\"speech.audio.done\",\"finish\":\"loop\",\"pieces\":4,\"said_again\":3,"
            "\"not_whole\":2}\n"
            "data: {\"type\":\"speech.audio.done\",\"finish\":\"eos\"}"), /* whose line has no end */
        UTTER_END);
    const utter_word *w = slot.words;
    assert_int_equal(slot.n_words, 2);
    assert_true(
        w[0].at == 0 && w[0].bytes == 5 && w[0].start == 0 && w[0].end == 0 && w[0].certainty == 0);
    assert_true(w[0].final && !w[0].skipped);
    assert_true(w[1].at == 7 && w[1].bytes == 2 && w[1].start == 12000 && w[1].end == 30000);
    assert_true(w[1].certainty == 0.75F && !w[1].final && w[1].skipped);
    assert_true(slot.stats.words_approximate);
    assert_int_equal(slot.stats.finish, UTTER_FINISH_LOOP);
    assert_int_equal(slot.stats.n_pieces, 4);
    assert_int_equal(slot.stats.n_retries, 3);
    assert_int_equal(slot.stats.n_broken, 2);
    clear();
    /* As many words as the text has bytes. */
    assert_int_equal(
        ask(GOOD "data: {\"type\":\"speech.audio.words\",\"words\":[{\"index\":8,\"bytes\":1}]}\n"
                 "data: {\"type\":\"speech.audio.done\",\"finish\":\"stuck\",\"pieces\":-1}\n"),
        UTTER_END);
    assert_int_equal(slot.n_words, 9);
    assert_false(slot.stats.words_approximate);
    assert_int_equal(slot.stats.finish, UTTER_FINISH_STUCK);
    assert_int_equal(slot.stats.n_pieces, 0);
    clear();
    assert_int_equal(ask(GOOD "data: {\"type\":\"speech.audio.done\"}\n"), UTTER_END);
    assert_int_equal(slot.stats.finish, UTTER_FINISH_NONE);
    clear();
    speaker_close(&speaker);
}

/* ---- Before anything is asked ---- */

static void voices_of_files_are_not_a_servers(void **state)
{
    (void)state;
    char none[IDENTITY_SIZE], line[512];
    identity_of_bytes(none, NULL, 0);
    open_speaker(NULL);
    assert_int_equal(
        begin("{\"id\":\"a\",\"model\":\"m\",\"voice_hash\":\"\",\"called_hash\":\"x\",\"format\":"
              "\"raw\",\"text\":\"b\"}"),
        UTTER_E_ARGUMENT);
    assert_string_equal(why.text,
        "\"a\": its text calls for voices of files, which a server does not know (work "
        "without --server)");
    assert_true(speaker->misfit);
    assert_null(slot.making);
    clear();
    speaker->misfit = false;
    snprintf(line, sizeof line,
        "{\"id\":\"a\",\"model\":\"m\",\"voice_hash\":\"\",\"called_hash\":\"%s\",\"format\":\"raw\","
        "\"text\":\"b\"}",
        none);
    posed.answer = GOOD ENDED;
    posed.bytes = strlen(posed.answer);
    assert_int_equal(begin(line), UTTER_OK);
    clear(); /* while it is asked for */
    assert_null(slot.making);
    assert_false(speaker->misfit);
    speaker_close(&speaker);
    speaker_close(&speaker);
}

static void what_names_a_server_is_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "host", "ftp://host", "http:/host"};
    char text[2200];
    open_speaker(NULL);
    speaker_close(&speaker);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        settings.url = wrong[i];
        assert_int_equal(speaker_server_open(&speaker, &settings, &why), UTTER_E_ARGUMENT);
        snprintf(text, sizeof text, "--server %s: is not http[s]://HOST[:PORT]", wrong[i]);
        assert_string_equal(why.text, text);
        assert_null(speaker);
    }
    /* 2,047 bytes with the path, and a key of 1,001. */
    memset(text, 'h', sizeof text);
    memcpy(text, "https://", 8);
    text[2047 - 16] = 0;
    settings.url = text;
    assert_int_equal(speaker_server_open(&speaker, &settings, &why), UTTER_OK);
    speaker_close(&speaker);
    text[2047 - 16] = 'h';
    text[2048 - 16] = 0;
    assert_int_equal(speaker_server_open(&speaker, &settings, &why), UTTER_E_ARGUMENT);
    settings.url = posed.url;
    settings.key = text + 1000;
    text[1000 + 1002] = 0;
    assert_int_equal(speaker_server_open(&speaker, &settings, &why), UTTER_E_ARGUMENT);
    assert_string_equal(why.text, "--key: is too long");
    text[1000 + 1001] = 0;
    assert_int_equal(speaker_server_open(&speaker, &settings, &why), UTTER_OK);
    speaker_close(&speaker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_all_of_a_line),
        cmocka_unit_test(samples_come_as_they_are),
        cmocka_unit_test(words_and_counts_come_as_they_are),
        cmocka_unit_test(voices_of_files_are_not_a_servers),
        cmocka_unit_test(what_names_a_server_is_checked),
    };
    return cmocka_run_group_tests_name("speaker_server", tests, start, end);
}
