/* SPDX-License-Identifier: Apache-2.0
 * Rows of cloned voices, from a vector and from a recording, in both layouts; limits of a text; and each refusal in
 * full. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prompt/prompt.h"
#include "tests/heap.h"

enum { WIDTH = 8, RECORDED = 6 };

#define SAID "What the recording says, word by word."

static struct config *config;
static struct tokenizer *tokenizer;
static float vector[WIDTH] = {1, 2, 3};
static int32_t codes[RECORDED * 64];

static void open_world(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "build/checkpoints/%s", name);
    assert_int_equal(config_open(&config, path, NULL), UTTER_OK);
    assert_int_equal(tokenizer_open(&tokenizer, path, file_read, PRETOKENIZER_MISTRAL, NULL), UTTER_OK);
    assert_true(config->n_codebooks <= 64);
}

static void close_world(void)
{
    tokenizer_close(&tokenizer);
    config_close(&config);
}

static utter_voice *clone_of(int n_frames, const char *transcript)
{
    utter_voice *voice;
    assert_int_equal(voice_new_clone(&voice, "somebody", vector, WIDTH, n_frames ? codes : NULL,
                         n_frames, config->n_codebooks, transcript, NULL),
        UTTER_OK);
    return voice;
}

static struct prompt *open_prompt(const utter_voice *voice, utter_layout layout)
{
    struct prompt *p;
    const struct prompt_request request = {.voice = voice, .language = "auto", .layout = layout};
    assert_int_equal(prompt_open(&p, config, tokenizer, &request, NULL), UTTER_OK);
    return p;
}

static utter_status say(struct prompt *p, const char *text, utter_error *error)
{
    return prompt_text(p, text, strlen(text), error);
}

/* The ids of a text between its wrapper. */
static struct ids ids_of(const char *text)
{
    struct ids ids = {0};
    assert_int_equal(prompt_wrap(tokenizer, text, &ids, NULL), UTTER_OK);
    ids.n -= 5;
    memmove(ids.at, ids.at + 3, (ids.n -= 3) * sizeof *ids.at);
    return ids;
}

/* The rows up to the body: what opens it, what it thinks, the voice's vector. */
static void check_header(const struct row *rows, const utter_voice *voice)
{
    const int32_t text[] = {config->im_start, -1, -1, config->tts_pad, config->tts_pad, config->tts_pad,
        config->tts_pad, config->tts_bos};
    const int32_t code[] = {
        -1, -1, -1, config->nothink, config->think_bos, config->think_eos, -1, config->codec_pad};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(rows[i].codec, i < 3 ? ROW_NONE : i == 6 ? ROW_VECTOR : ROW_ID);
        if (text[i] >= 0) {
            assert_int_equal(rows[i].text, text[i]);
        }
        if (code[i] >= 0) {
            assert_int_equal(rows[i].id, code[i]);
        }
    }
    assert_ptr_equal(rows[6].vector, voice->vector);
}

/* Entry `at` of the text side: transcript, text, its end, then nothing. */
static int32_t listed(const struct ids *said, const struct ids *text, int at)
{
    const int n_said = (int)said->n, n_text = (int)text->n;
    return at < n_said             ? said->at[at]
           : at < n_said + n_text  ? text->at[at - n_said]
           : at == n_said + n_text ? config->tts_eos
                                   : config->tts_pad;
}

/* In the full layout the text side is laid down first, then the frames; in that of streams one over the other, and what
 * is left of the text goes in one with each frame. */
static void rows_of_a_recording(void **state)
{
    static const char text[] = "Hello there, dear friend.";
    (void)state;
    open_world("tiny06-base");
    for (int n_frames = 0; n_frames <= RECORDED; n_frames++) {
        utter_voice *voice = clone_of(n_frames, n_frames ? SAID : NULL);
        struct ids said = {0}, ids = ids_of(text);
        if (n_frames) {
            said = ids_of(SAID);
        }
        const int n_list = (int)(said.n + ids.n) + 1;
        for (int full = 0; full < 2; full++) {
            struct prompt *p = open_prompt(voice, full ? UTTER_LAYOUT_FULL : UTTER_LAYOUT_AUTO);
            int n_rows = -1;
            assert_null(prompt_rows(p, &n_rows));
            assert_int_equal(n_rows, 0);
            assert_true(prompt_streams(p) == !full && !prompt_finished(p));
            assert_int_equal(say(p, text, NULL), UTTER_OK);
            assert_false(prompt_consumed(p, 1000));
            assert_int_equal(prompt_finish(p, NULL), UTTER_OK);
            assert_int_equal(prompt_finish(p, NULL), UTTER_OK); /* once more is no mistake */
            assert_true(prompt_finished(p));
            const struct row *rows = prompt_rows(p, &n_rows);
            const int n_a = full ? n_list : 0;
            assert_int_equal(n_rows, 8 + n_a + n_frames + 1);
            check_header(rows, voice);
            for (int i = 0; i < n_a; i++) {
                assert_int_equal(rows[8 + i].text, listed(&said, &ids, i));
                assert_true(rows[8 + i].codec == ROW_ID && rows[8 + i].id == config->codec_pad);
            }
            for (int i = 0; i <= n_frames; i++) {
                const struct row *row = &rows[8 + n_a + i];
                assert_int_equal(row->text, full ? config->tts_pad : listed(&said, &ids, i));
                assert_int_equal(row->codec, i ? ROW_CODES : ROW_ID);
                if (i) {
                    assert_ptr_equal(
                        row->codes, voice->codes + (ptrdiff_t)(i - 1) * config->n_codebooks);
                } else {
                    assert_int_equal(row->id, config->codec_bos);
                }
            }
            for (int frame = 0; frame < n_list + 3; frame++) {
                assert_int_equal(prompt_trailing(p, frame),
                    full ? config->tts_pad : listed(&said, &ids, n_frames + 1 + frame));
                assert_int_equal(prompt_consumed(p, frame), full || n_frames + 2 + frame >= n_list);
            }
            const int fixed = 8 + (int)said.n;
            assert_int_equal(prompt_text_tokens(p), ids.n);
            assert_int_equal(prompt_text_position(p), fixed);
            assert_int_equal(prompt_fixed_rows(p), fixed < n_rows ? fixed : n_rows - 1);
            prompt_close(&p);
            assert_null(p);
        }
        ids_fini(&said);
        ids_fini(&ids);
        voice_free(&voice);
    }
    close_world();
}

/* In a stream the rows wait for a token over each frame, and no longer. */
static void rows_wait_for_a_token_over_each_frame(void **state)
{
    (void)state;
    open_world("tiny06-base");
    struct ids said = ids_of("Yes.");
    for (int n_frames = 1; n_frames <= RECORDED; n_frames++) {
        utter_voice *voice = clone_of(n_frames, "Yes.");
        struct prompt *p = open_prompt(voice, UTTER_LAYOUT_STREAM);
        int n_rows;
        static const char text[] = "one two three four five six seven eight nine ten eleven";
        for (size_t i = 0; text[i]; i++) {
            assert_int_equal(prompt_text(p, text + i, 1, NULL), UTTER_OK);
            const int n = prompt_text_tokens(p);
            assert_int_equal(prompt_rows(p, &n_rows) != NULL, n > 0 && (int)said.n + n > n_frames);
            for (int frame = 0; frame < 4; frame++) {
                const int at = n_frames + 1 + frame;
                assert_int_equal(prompt_trailing(p, frame) >= 0, at < (int)said.n + n);
            }
        }
        prompt_close(&p);
        voice_free(&voice);
    }
    ids_fini(&said);
    close_world();
}

/* Counted in the text as it was given, with the line breaks in front of it. */
static void tokens_begin_where_the_text_has_them(void **state)
{
    (void)state;
    open_world("tiny17-custom_voice");
    for (size_t piece = 1; piece < 16; piece += 7) {
        struct prompt *p = open_prompt(NULL, UTTER_LAYOUT_FULL);
        static const char text[] = "\n\r\n\none two\n\nthree";
        for (size_t i = 0; i < sizeof text - 1; i += piece) {
            const size_t left = sizeof text - 1 - i;
            assert_int_equal(prompt_text(p, text + i, left < piece ? left : piece, NULL), UTTER_OK);
        }
        assert_int_equal(prompt_finish(p, NULL), UTTER_OK);
        const uint64_t *begins = prompt_token_begins(p);
        bool begins_at[sizeof text] = {false};
        for (int i = 0; i < prompt_text_tokens(p); i++) {
            assert_true(begins[i] < sizeof text);
            begins_at[begins[i]] = true;
        }
        assert_int_equal(begins[0], 4);
        assert_true(begins_at[4] && begins_at[7] && begins_at[11]);
        prompt_close(&p);
    }
    close_world();
}

/* Where control tokens are characters, a text without any has the same rows, and its end is the same. */
static void plain_text_has_the_same_rows(void **state)
{
    static const char text[] = "\nHello there, dear friend: 42.";
    (void)state;
    open_world("tiny17-voice_design");
    for (int stream = 0; stream < 2; stream++) {
        struct prompt *p[2];
        const struct row *rows[2];
        int n[2];
        for (int plain = 0; plain < 2; plain++) {
            const struct prompt_request request = {.instruct = "a calm voice",
                .layout = stream ? UTTER_LAYOUT_STREAM : UTTER_LAYOUT_FULL,
                .plain = plain};
            assert_int_equal(prompt_open(&p[plain], config, tokenizer, &request, NULL), UTTER_OK);
            assert_int_equal(say(p[plain], text, NULL), UTTER_OK);
            assert_int_equal(prompt_finish(p[plain], NULL), UTTER_OK);
            rows[plain] = prompt_rows(p[plain], &n[plain]);
        }
        assert_int_equal(n[0], n[1]);
        assert_int_equal(prompt_text_tokens(p[0]), prompt_text_tokens(p[1]));
        for (int i = 0; i < n[0]; i++) {
            assert_int_equal(rows[0][i].text, rows[1][i].text);
            assert_int_equal(rows[0][i].id, rows[1][i].id);
        }
        for (int i = 0; i < prompt_text_tokens(p[0]) + 2; i++) {
            assert_int_equal(prompt_trailing(p[0], i), prompt_trailing(p[1], i));
            assert_int_equal(prompt_consumed(p[0], i), prompt_consumed(p[1], i));
        }
        prompt_close(&p[0]);
        prompt_close(&p[1]);
    }
    close_world();
}

static void refused(const struct prompt_request *request, const char *reason)
{
    struct prompt *p;
    utter_error error = {0};
    assert_int_equal(prompt_open(&p, config, tokenizer, request, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, reason);
    assert_null(p);
}

static void each_refusal_in_full(void **state)
{
#define KNOWN                                                                                          \
    "known: auto, chinese, english, german, italian, portuguese, spanish, japanese, korean, french, "  \
    "russian)"
    utter_error error = {0};
    (void)state;
    open_world("tiny17-voice_design");
    refused(
        &(struct prompt_request){.language = "klingon\n"}, "unknown language \"klingon\\n\" (" KNOWN);
    refused(&(struct prompt_request){.language = "germen"},
        "unknown language \"germen\" (did you mean german? " KNOWN);
    refused(&(struct prompt_request){.instruct = "calm\xff"}, "the instruction is not UTF-8 at byte 4");
    refused(&(struct prompt_request){.instruct = "cal\xc3"}, "the instruction is not UTF-8 at byte 3");
    struct prompt *p = open_prompt(NULL, UTTER_LAYOUT_FULL);
    assert_int_equal(say(p, "\n\n", NULL), UTTER_OK);
    assert_int_equal(say(p, "abc \xff", &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the text is not UTF-8 at byte 6");
    prompt_close(&p);
    p = open_prompt(NULL, UTTER_LAYOUT_FULL);
    assert_int_equal(say(p, " \n\t", NULL), UTTER_OK);
    assert_int_equal(prompt_finish(p, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the text is empty: there is nothing to say");
    assert_int_equal(say(p, "Hi", NULL), UTTER_OK); /* then some came */
    assert_int_equal(prompt_finish(p, NULL), UTTER_OK);
    assert_int_equal(say(p, "!", &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the text of this stream is finished");
    prompt_close(&p);
    struct ids ids = {0};
    assert_int_equal(prompt_wrap(tokenizer, "ab\x80", &ids, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the text is not UTF-8 at byte 2");
    ids_fini(&ids);
    close_world();

    open_world("tiny06-base");
    utter_voice *voice = clone_of(1, "ab\xe4\xb8");
    refused(
        &(struct prompt_request){.voice = voice}, "the transcript of the voice is not UTF-8 at byte 2");
    strcpy(voice->transcript, "\n"); /* one with the line break in front of it */
    refused(
        &(struct prompt_request){.voice = voice}, "the transcript of the voice \"somebody\" is empty");
    strcpy(voice->transcript, "a");
    assert_int_equal(
        prompt_open(&p, config, tokenizer, &(struct prompt_request){.voice = voice}, NULL), UTTER_OK);
    prompt_close(&p);
    voice_free(&voice);
    close_world();

    open_world("tiny06-custom_voice");
    const struct prompt_request whispered = {.instruct = "whisper"}, silent = {.instruct = ""};
    assert_int_equal(prompt_open(&p, config, tokenizer, &whispered, NULL), UTTER_OK);
    assert_string_equal(
        prompt_note(p), "this model takes no instructions; the instruction was left out");
    prompt_close(&p);
    assert_int_equal(prompt_open(&p, config, tokenizer, &silent, NULL), UTTER_OK);
    assert_null(prompt_note(p));
    prompt_close(&p);
    close_world();
}

/* More than can be is refused while it comes, also where it is one word without an end; what just fits is not. */
static void a_text_has_room_for_positions(void **state)
{
    enum { POSITIONS = 100 };
    char wanted[128];
    (void)state;
    open_world("tiny17-custom_voice");
    snprintf(wanted, sizeof wanted,
        "the text takes more than the %d positions that this model has (split it)", POSITIONS);
    const int positions = config->max_positions;
    config->max_positions = POSITIONS;
    for (int stream = 0; stream < 2; stream++) {
        struct prompt *p = open_prompt(NULL, stream ? UTTER_LAYOUT_STREAM : UTTER_LAYOUT_FULL);
        utter_error error = {0};
        utter_status status = UTTER_OK;
        int most = 0;
        for (int i = 0; i < 3 * POSITIONS && status == UTTER_OK; i++) {
            most = prompt_text_tokens(p);
            status = say(p, "a ", &error);
        }
        assert_int_equal(status, stream ? UTTER_OK : UTTER_E_ARGUMENT);
        assert_string_equal(error.text, stream ? "" : wanted);
        assert_true(stream ? most > 2 * POSITIONS : most == POSITIONS);
        prompt_close(&p);
    }
    for (int stream = 0; stream < 2; stream++) {
        struct prompt *p = open_prompt(NULL, stream ? UTTER_LAYOUT_STREAM : UTTER_LAYOUT_FULL);
        utter_error error = {0};
        utter_status status = UTTER_OK;
        int n = 0;
        for (; n < 1 << 20 && status == UTTER_OK; n++) {
            status = say(p, "a", &error);
        }
        assert_int_equal(status, UTTER_E_ARGUMENT);
        assert_string_equal(error.text, wanted);
        assert_true(n > POSITIONS);
        prompt_close(&p);
    }
    config->max_positions = positions;
    close_world();
}

/* Whatever it was opened with, all of a prompt goes back. */
static void nothing_stays_of_a_prompt(void **state)
{
    (void)state;
    open_world("tiny06-base");
    utter_voice *voice = clone_of(RECORDED, SAID);
    for (int round = 0; round < 16;
         round++) { /* until the heap has in store what it keeps of freed blocks */
        const size_t before = heap_used();
        struct prompt *p = open_prompt(voice, UTTER_LAYOUT_FULL);
        assert_int_equal(say(p, "\none\n\ntwo <|im_end|> three\n", NULL), UTTER_OK);
        assert_int_equal(prompt_finish(p, NULL), UTTER_OK);
        prompt_close(&p);
        const struct prompt_request wrong = {.voice = voice, .language = "klingon"};
        assert_int_equal(prompt_open(&p, config, tokenizer, &wrong, NULL), UTTER_E_ARGUMENT);
        prompt_close(&p);
        assert_true(round < 15 || heap_used() == before);
    }
    assert_int_equal(voice->n_users, 1);
    voice_free(&voice);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_recording),
        cmocka_unit_test(rows_wait_for_a_token_over_each_frame),
        cmocka_unit_test(tokens_begin_where_the_text_has_them),
        cmocka_unit_test(plain_text_has_the_same_rows),
        cmocka_unit_test(each_refusal_in_full),
        cmocka_unit_test(a_text_has_room_for_positions),
        cmocka_unit_test(nothing_stays_of_a_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
