/* SPDX-License-Identifier: Apache-2.0
 * Rows, mode by mode, against the layout tables of docs/model.md; and text in pieces against text at once. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prompt/prompt.h"

struct world {
    struct config *config;
    struct tokenizer *tokenizer;
};

static struct world open_world(const char *name)
{
    struct world w;
    char path[256];
    snprintf(path, sizeof path, "build/checkpoints/%s", name);
    assert_int_equal(config_open(&w.config, path, NULL), UTTER_OK);
    assert_int_equal(
        tokenizer_open(&w.tokenizer, path, file_read, PRETOKENIZER_MISTRAL, NULL), UTTER_OK);
    return w;
}

static void close_world(struct world *w)
{
    tokenizer_close(&w->tokenizer);
    config_close(&w->config);
}

static struct prompt *ask(
    struct world *w, const char *voice, const char *language, const char *instruct, utter_layout layout)
{
    struct prompt *prompt;
    utter_voice *v = NULL;
    if (voice) {
        assert_int_equal(voice_new_preset(&v, w->config, voice, NULL), UTTER_OK);
    }
    struct prompt_request request = {
        .voice = v, .language = language, .instruct = instruct, .layout = layout};
    utter_error error = {0};
    utter_status status = prompt_open(&prompt, w->config, w->tokenizer, &request, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, UTTER_OK);
    voice_free(&v);
    return prompt;
}

static void say(struct prompt *prompt, const char *text)
{
    assert_int_equal(prompt_text(prompt, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(prompt_finish(prompt, NULL), UTTER_OK);
}

/* The expected rows, written as text id, code id (-1: none). */
struct expected {
    int32_t at[512][2];
    int n;
};

static void want(struct expected *e, int32_t text, int32_t code)
{
    e->at[e->n][0] = text;
    e->at[e->n][1] = code;
    e->n++;
}

static void want_text(
    struct world *w, struct expected *e, const char *text, int skip, int drop, int32_t code)
{
    struct ids ids = {0};
    assert_int_equal(tokenizer_encode(w->tokenizer, text, strlen(text), &ids, NULL), UTTER_OK);
    for (int i = skip; i < (int)ids.n - drop; i++) {
        want(e, ids.at[i], code);
    }
    ids_fini(&ids);
}

static void check_rows(const struct prompt *prompt, const struct expected *e)
{
    int n;
    const struct row *rows = prompt_rows(prompt, &n);
    assert_non_null(rows);
    assert_int_equal(n, e->n);
    for (int i = 0; i < n; i++) {
        if (rows[i].text != e->at[i][0] || (rows[i].codec == ROW_ID ? rows[i].id : -1) != e->at[i][1]) {
            fail_msg("row %d: text %d code %d, wanted %d %d", i, rows[i].text, rows[i].id, e->at[i][0],
                e->at[i][1]);
        }
    }
}

#define WRAPPED(text) "<|im_start|>assistant\n" text "<|im_end|>\n<|im_start|>assistant\n"
static const char HELLO[] = "Hello there, friend.";

/* think, language (-1: none), voice (-1: none), begin: everything between header and body. */
static void want_think(struct world *w, struct expected *e, int language, int voice)
{
    const struct config *c = w->config;
    want(e, c->tts_pad, language < 0 ? c->nothink : c->think);
    want(e, c->tts_pad, c->think_bos);
    if (language >= 0) {
        want(e, c->tts_pad, language);
    }
    want(e, c->tts_pad, c->think_eos);
    if (voice >= 0) {
        want(e, c->tts_pad, voice);
    }
    want(e, c->tts_bos, c->codec_pad);
}

static int language_id(struct world *w, const char *name)
{
    return w->config->languages[config_find(w->config->languages, w->config->n_languages, name)].id;
}

static int voice_id(struct world *w, const char *name)
{
    return w->config->voices[config_find(w->config->voices, w->config->n_voices, name)].id;
}

static void full_layout(void **state)
{
    struct world w = open_world("tiny17-custom_voice");
    struct prompt *p = ask(&w, "Ryan", "English", NULL, UTTER_LAYOUT_AUTO);
    const struct config *c = w.config;
    struct expected e = {.n = 0};
    (void)state;
    say(p, HELLO);
    want_text(&w, &e, "<|im_start|>assistant\n", 0, 0, -1);
    want_think(&w, &e, language_id(&w, "english"), voice_id(&w, "ryan"));
    assert_int_equal(e.n, 9);
    want_text(&w, &e, WRAPPED("Hello there, friend."), 3, 5, c->codec_pad);
    want(&e, c->tts_eos, c->codec_pad);
    want(&e, c->tts_pad, c->codec_bos);
    check_rows(p, &e);
    for (int frame = 0; frame < 5; frame++) {
        assert_int_equal(prompt_trailing(p, frame), c->tts_pad);
        assert_true(prompt_consumed(p, frame));
    }
    assert_int_equal(prompt_text_tokens(p), e.n - 9 - 2);
    prompt_close(&p);
    close_world(&w);
}

static void stream_layout(void **state)
{
    struct world w = open_world("tiny17-custom_voice");
    struct prompt *p = ask(&w, "vivian", "auto", NULL, UTTER_LAYOUT_STREAM);
    const struct config *c = w.config;
    struct expected e = {.n = 0}, text = {.n = 0};
    (void)state;
    say(p, HELLO);
    want_text(&w, &text, WRAPPED("Hello there, friend."), 3, 5, c->codec_bos);
    want_text(&w, &e, "<|im_start|>assistant\n", 0, 0, -1);
    want_think(&w, &e, -1, voice_id(&w, "vivian"));
    assert_int_equal(e.n, 8);
    want(&e, text.at[0][0], c->codec_bos);
    check_rows(p, &e);
    for (int frame = 0; frame + 1 < text.n; frame++) {
        assert_int_equal(prompt_trailing(p, frame), text.at[frame + 1][0]);
        assert_false(prompt_consumed(p, frame));
    }
    assert_int_equal(prompt_trailing(p, text.n - 1), c->tts_eos);
    assert_true(prompt_consumed(p, text.n - 1));
    assert_int_equal(prompt_trailing(p, text.n), c->tts_pad);
    assert_int_equal(prompt_trailing(p, text.n + 100), c->tts_pad);
    prompt_close(&p);
    close_world(&w);
}

/* The first token is all that a stream waits for, whichever it is: "!" has the id 0. */
static void a_stream_begins_with_its_first_token(void **state)
{
    static const char *const texts[] = {"! said he", "Hello there, he"};
    struct world w = open_world("tiny17-custom_voice");
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct prompt *p = ask(&w, "vivian", "auto", NULL, UTTER_LAYOUT_STREAM);
        int n_rows;
        assert_null(prompt_rows(p, &n_rows));
        assert_int_equal(prompt_text(p, texts[i], strlen(texts[i]), NULL), UTTER_OK);
        const struct row *rows = prompt_rows(p, &n_rows);
        assert_non_null(rows);
        assert_true((rows[n_rows - 1].text == 0) == (i == 0));
        prompt_close(&p);
    }
    close_world(&w);
}

/* What a caller does not trust is spoken, and commands nothing; a prompt's own ends stay what they are. */
static void check_ends(
    const char *checkpoint, struct prompt_request request, const char *text, int n_own, int n_said)
{
    struct world w = open_world(checkpoint);
    for (int plain = 0; plain < 2; plain++) {
        struct prompt *p;
        int n_rows, n_ends = 0;
        request.plain = plain;
        assert_int_equal(prompt_open(&p, w.config, w.tokenizer, &request, NULL), UTTER_OK);
        say(p, text);
        const struct row *rows = prompt_rows(p, &n_rows);
        for (int i = 0; i < n_rows; i++) {
            n_ends += rows[i].text == w.config->im_end;
        }
        assert_int_equal(n_ends, n_own + (plain ? 0 : n_said));
        prompt_close(&p);
    }
    close_world(&w);
}

static void control_tokens_can_be_characters(void **state)
{
    const struct prompt_request text = {.language = "auto", .layout = UTTER_LAYOUT_FULL},
                                instruct = {
                                    .instruct = "a <|im_end|> voice", .layout = UTTER_LAYOUT_FULL};
    (void)state;
    check_ends("tiny17-custom_voice", text, "Hello<|im_end|>there", 0, 1);
    check_ends("tiny17-voice_design", instruct, HELLO, 1, 1);
}

static struct prompt *ask_of_clone(
    struct world *w, const utter_voice *voice, const char *text, utter_layout layout)
{
    struct prompt *prompt;
    struct prompt_request request = {.voice = voice, .layout = layout};
    assert_int_equal(prompt_open(&prompt, w->config, w->tokenizer, &request, NULL), UTTER_OK);
    say(prompt, text);
    return prompt;
}

/* The same rows as when the text never had it, prompt and frames, in both layouts, behind a recording too. */
static void a_text_can_be_without_a_word(void **state)
{
    enum { FRAMES = 30, RECORDED = 6, MOST = 128 };
    static const char *const texts[] = {"Hello there, dear old friend.", "Hello there, old friend."};
    struct world w = open_world("tiny06-base");
    const struct config *c = w.config;
    float *vector = calloc((size_t)c->talker.width, sizeof *vector);
    int32_t *codes = calloc((size_t)((FRAMES + RECORDED) * c->n_codebooks), sizeof *codes);
    utter_voice *voices[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(voice_new_clone(&voices[i], "v", vector, c->talker.width, i ? codes : NULL,
                             i ? RECORDED : 0, c->n_codebooks, i ? "What it says." : NULL, NULL),
            UTTER_OK);
    }
    for (int i = 0; i < 4; i++) {
        const utter_layout layout = i % 2 ? UTTER_LAYOUT_FULL : UTTER_LAYOUT_STREAM;
        struct prompt *with = ask_of_clone(&w, voices[i / 2], texts[0], layout),
                      *without = ask_of_clone(&w, voices[i / 2], texts[1], layout);
        struct row rows[MOST];
        int from = 0, first, n_wanted, to;
        const struct row *wanted = prompt_rows(without, &n_wanted);
        while (prompt_token_begins(with)[from] < strlen("Hello there,")) {
            from++;
        }
        to = from + prompt_text_tokens(with) - prompt_text_tokens(without);
        assert_true(to > from);
        const int n = prompt_rows_without(with, from, to, codes, FRAMES, rows, &first);
        assert_int_equal(n, n_wanted + FRAMES);
        assert_int_equal(first, n_wanted - 1);
        for (int k = 0; k < n_wanted; k++) {
            assert_memory_equal(&rows[k].codec, &wanted[k].codec, sizeof rows[k].codec);
            assert_int_equal(rows[k].text, wanted[k].text);
            assert_int_equal(rows[k].id, wanted[k].id);
            assert_ptr_equal(rows[k].codes, wanted[k].codes);
        }
        for (int frame = 0; frame < FRAMES; frame++) {
            assert_int_equal(rows[n_wanted + frame].text, prompt_trailing(without, frame));
            assert_ptr_equal(rows[n_wanted + frame].codes, codes + (ptrdiff_t)frame * c->n_codebooks);
        }
        prompt_close(&with);
        prompt_close(&without);
    }
    voice_free(&voices[0]);
    voice_free(&voices[1]);
    free(vector);
    free(codes);
    close_world(&w);
}

/* Where the transcript goes on behind the recording, all rows but the last are the voice's, whatever is said. */
static void rows_of_a_voice_are_fixed(void **state)
{
    struct world w = open_world("tiny06-base");
    float *vector = calloc((size_t)w.config->talker.width, sizeof *vector);
    int32_t *codes = calloc((size_t)w.config->n_codebooks, sizeof *codes);
    utter_voice *voice;
    int n_rows;
    (void)state;
    assert_int_equal(voice_new_clone(&voice, "v", vector, w.config->talker.width, codes, 1,
                         w.config->n_codebooks, "It says more than there are frames.", NULL),
        UTTER_OK);
    struct prompt *stream = ask_of_clone(&w, voice, "Hello.", UTTER_LAYOUT_STREAM),
                  *full = ask_of_clone(&w, voice, "Hello.", UTTER_LAYOUT_FULL);
    prompt_rows(stream, &n_rows);
    assert_int_equal(prompt_fixed_rows(stream), n_rows - 1);
    prompt_rows(full, &n_rows);
    assert_int_equal(prompt_fixed_rows(full), prompt_text_position(full));
    prompt_close(&stream);
    prompt_close(&full);
    voice_free(&voice);
    free(vector);
    free(codes);
    close_world(&w);
}

static void designed_voice_with_instruction(void **state)
{
    struct world w = open_world("tiny17-voice_design");
    struct prompt *p = ask(&w, NULL, "german", "a calm voice", UTTER_LAYOUT_AUTO);
    struct expected e = {.n = 0};
    (void)state;
    say(p, HELLO);
    want_text(&w, &e, "<|im_start|>user\na calm voice<|im_end|>\n", 0, 0, -1);
    want_text(&w, &e, "<|im_start|>assistant\n", 0, 0, -1);
    want_think(&w, &e, language_id(&w, "german"), -1);
    want_text(&w, &e, WRAPPED("Hello there, friend."), 3, 5, w.config->codec_pad);
    want(&e, w.config->tts_eos, w.config->codec_pad);
    want(&e, w.config->tts_pad, w.config->codec_bos);
    check_rows(p, &e);
    assert_null(prompt_note(p));
    prompt_close(&p);
    close_world(&w);
}

/* The language row of a prompt, -1 when it has none. */
static int language_of(struct world *w, const char *voice, const char *language)
{
    struct prompt *p = ask(w, voice, language, NULL, UTTER_LAYOUT_FULL);
    int n;
    say(p, "Hi");
    const struct row *rows = prompt_rows(p, &n);
    int id = rows[3].id == w->config->think ? rows[5].id : -1;
    prompt_close(&p);
    return id;
}

static void dialects(void **state)
{
    struct world w = open_world("tiny17-custom_voice");
    (void)state;
    assert_int_equal(language_of(&w, "eric", NULL), language_id(&w, "sichuan_dialect"));
    assert_int_equal(language_of(&w, "eric", "Auto"), language_id(&w, "sichuan_dialect"));
    assert_int_equal(language_of(&w, "dylan", "CHINESE"), language_id(&w, "beijing_dialect"));
    assert_int_equal(language_of(&w, "dylan", "english"), language_id(&w, "english"));
    assert_int_equal(language_of(&w, "ryan", "chinese"), language_id(&w, "chinese"));
    assert_int_equal(language_of(&w, "ryan", "auto"), -1);
    assert_int_equal(language_of(&w, "ryan", "en"), language_id(&w, "english"));
    assert_int_equal(language_of(&w, "ryan", "de-AT"), language_id(&w, "german"));
    assert_int_equal(language_of(&w, "dylan", "zh"), language_id(&w, "beijing_dialect"));
    close_world(&w);
}

static void instruction_for_a_small_model_is_left_out(void **state)
{
    struct world w = open_world("tiny06-custom_voice");
    struct prompt *p = ask(&w, "ryan", NULL, "whisper", UTTER_LAYOUT_FULL);
    int n;
    (void)state;
    assert_non_null(prompt_note(p));
    say(p, "Hi");
    assert_int_equal(prompt_rows(p, &n)[0].text, w.config->im_start);
    assert_int_equal(prompt_rows(p, &n)[3].id, w.config->nothink);
    prompt_close(&p);
    close_world(&w);
}

/* White space with a line break at the start merges with the line break of the header. */
static void header_is_what_the_tokenizer_makes(void **state)
{
    struct world w = open_world("tiny17-custom_voice");
    struct prompt *p = ask(&w, "ryan", NULL, NULL, UTTER_LAYOUT_FULL);
    struct expected e = {.n = 0};
    int n;
    (void)state;
    say(p, " \nHello");
    want_text(&w, &e, WRAPPED(" \nHello"), 0, 0, -1);
    assert_int_equal(prompt_rows(p, &n)[2].text, e.at[2][0]);
    struct expected plain = {.n = 0};
    want_text(&w, &plain, WRAPPED("Hello"), 0, 0, -1);
    assert_int_not_equal(e.at[2][0], plain.at[2][0]);
    prompt_close(&p);
    close_world(&w);
}

static void line_breaks_at_the_ends_change_nothing(void **state)
{
    struct world w = open_world("tiny17-custom_voice");
    struct prompt *a = ask(&w, "ryan", NULL, NULL, UTTER_LAYOUT_FULL),
                  *b = ask(&w, "ryan", NULL, NULL, UTTER_LAYOUT_FULL);
    int n_a, n_b;
    (void)state;
    say(a, "Hello\nyou");
    say(b, "\n\r\nHello\nyou\n\n");
    const struct row *rows_a = prompt_rows(a, &n_a), *rows_b = prompt_rows(b, &n_b);
    assert_int_equal(n_a, n_b);
    for (int i = 0; i < n_a; i++) {
        assert_int_equal(rows_a[i].text, rows_b[i].text);
    }
    prompt_close(&a);
    prompt_close(&b);
    close_world(&w);
}

/* Cuts a text into pieces of `step` bytes; rows and trailing ids must be those of the text at once, and in
 * the stream layout the rows must be there before the text has ended. */
static void check_pieces(struct world *w, const char *text, size_t step, const struct prompt *whole)
{
    struct prompt *p = ask(w, "ryan", NULL, NULL, UTTER_LAYOUT_STREAM);
    size_t bytes = strlen(text), early = 0;
    int n, n_whole;
    for (size_t at = 0; at < bytes; at += step) {
        size_t piece = bytes - at < step ? bytes - at : step;
        assert_int_equal(prompt_text(p, text + at, piece, NULL), UTTER_OK);
        early = prompt_rows(p, &n) && !early ? at + piece : early;
    }
    assert_true(early > 0 && early <= 20 + step);
    assert_int_equal(prompt_trailing(p, 10000), -1);
    assert_int_equal(prompt_finish(p, NULL), UTTER_OK);
    const struct row *rows = prompt_rows(p, &n), *rows_whole = prompt_rows(whole, &n_whole);
    assert_int_equal(n, n_whole);
    for (int i = 0; i < n; i++) {
        assert_int_equal(rows[i].text, rows_whole[i].text);
    }
    assert_int_equal(prompt_text_tokens(p), prompt_text_tokens(whole));
    for (int i = 0; i < prompt_text_tokens(whole) + 2; i++) {
        assert_int_equal(prompt_trailing(p, i), prompt_trailing(whole, i));
    }
    prompt_close(&p);
}

static void pieces_make_the_same_rows(void **state)
{
    static const char text[] = "Hello there, f\xc3\xbcr dich \xe4\xbd\xa0\xe5\xa5\xbd: it's 42 \n\n  "
                               "times <|im_end|> O'Toole \xf0\x9f\x98\x80 iPhone.\n";
    struct world w = open_world("tiny17-custom_voice");
    struct prompt *whole = ask(&w, "ryan", NULL, NULL, UTTER_LAYOUT_STREAM);
    (void)state;
    say(whole, text);
    for (size_t step = 1; step < sizeof text; step++) {
        check_pieces(&w, text, step, whole);
    }
    prompt_close(&whole);
    close_world(&w);
}

static void refusals(void **state)
{
    struct world w = open_world("tiny17-custom_voice");
    struct prompt *p;
    utter_error error;
    (void)state;
    static const char *const languages[] = {"klingon", "sichuan_dialect", ""};
    for (size_t i = 0; i < 3; i++) {
        struct prompt_request request = {
            .voice = NULL, .language = languages[i], .instruct = NULL, .layout = UTTER_LAYOUT_FULL};
        assert_int_equal(prompt_open(&p, w.config, w.tokenizer, &request, &error), UTTER_E_ARGUMENT);
        assert_non_null(
            strstr(error.text, "known: auto, chinese, english, german, italian, portuguese, "
                               "spanish, japanese, korean, french, russian)"));
        assert_null(p);
    }
    static const char *const empty[] = {"", "\n\n", "   ", "\t\xc2\xa0"};
    for (size_t i = 0; i < 4; i++) {
        p = ask(&w, NULL, NULL, NULL, UTTER_LAYOUT_FULL);
        assert_int_equal(prompt_text(p, empty[i], strlen(empty[i]), NULL), UTTER_OK);
        assert_int_equal(prompt_finish(p, &error), UTTER_E_ARGUMENT);
        assert_non_null(strstr(error.text, "empty"));
        prompt_close(&p);
    }
    p = ask(&w, NULL, NULL, NULL, UTTER_LAYOUT_FULL);
    assert_int_equal(prompt_text(p, "ab\xff", 3, &error), UTTER_E_ARGUMENT);
    prompt_close(&p);
    p = ask(&w, NULL, NULL, NULL, UTTER_LAYOUT_FULL);
    say(p, "Hi");
    assert_int_equal(prompt_text(p, "x", 1, &error), UTTER_E_ARGUMENT);
    prompt_close(&p);
    close_world(&w);
}

static void failing_allocations_leak_nothing(void **state)
{
    struct world w = open_world("tiny17-voice_design");
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct prompt *p;
        struct prompt_request request = {.voice = NULL,
            .language = "english",
            .instruct = "a calm voice",
            .layout = UTTER_LAYOUT_STREAM};
        utter_status status = prompt_open(&p, w.config, w.tokenizer, &request, NULL);
        status = status ? status : prompt_text(p, "Hello\nthere, you", 16, NULL);
        status = status ? status : prompt_finish(p, NULL);
        assert_true(status == UTTER_OK || status == UTTER_E_MEMORY);
        prompt_close(&p);
    }
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_layout),
        cmocka_unit_test(stream_layout),
        cmocka_unit_test(a_stream_begins_with_its_first_token),
        cmocka_unit_test(control_tokens_can_be_characters),
        cmocka_unit_test(a_text_can_be_without_a_word),
        cmocka_unit_test(rows_of_a_voice_are_fixed),
        cmocka_unit_test(designed_voice_with_instruction),
        cmocka_unit_test(dialects),
        cmocka_unit_test(instruction_for_a_small_model_is_left_out),
        cmocka_unit_test(header_is_what_the_tokenizer_makes),
        cmocka_unit_test(line_breaks_at_the_ends_change_nothing),
        cmocka_unit_test(pieces_make_the_same_rows),
        cmocka_unit_test(refusals),
        cmocka_unit_test(failing_allocations_leak_nothing),
    };
    return cmocka_run_group_tests_name("prompt", tests, NULL, NULL);
}
