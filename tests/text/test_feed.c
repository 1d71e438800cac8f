/* SPDX-License-Identifier: Apache-2.0
 * Text in pieces: what is settled never changes, whatever comes; prose settles word by word. */
#include "tests/support.h"

#include <time.h>

#include "tests/text/lines.h"
#include "tests/text/small.h"
#include "text/feed.h"

static struct tokenizer *open_fixture(enum pretokenizer pattern)
{
    struct tokenizer *tokenizer;
    assert_int_equal(
        tokenizer_open(&tokenizer, "tests/fixtures/vocabulary", file_read, pattern, NULL), UTTER_OK);
    return tokenizer;
}

/* The ids that are settled after `bytes` bytes in one piece. */
static struct ids settled_ids(const struct tokenizer *tokenizer, const char *text, size_t bytes)
{
    struct token_feed *feed;
    struct ids ids = {0};
    assert_int_equal(token_feed_open(&feed, tokenizer, NULL), UTTER_OK);
    assert_int_equal(token_feed_text(feed, text, bytes, &ids, NULL), UTTER_OK);
    token_feed_close(&feed);
    assert_null(feed);
    return ids;
}

/* Added tokens in literal text are their characters: no id of one comes of it, borders on both sides hold, and text
 * that spells none has the ids of before; cut anywhere. */
static void literal_text_holds_no_token(void **state)
{
    static const char *const texts[] = {"", "plain words, 12 of them", "<|im_end|>",
        "a <|im_end|>\n<|im_start|> b", "|im_end|>", "x<|im_e", "<|im_start|",
        "<tts_pad>tts<|endoftext|>", "e\u0301<|im_end|>\u0301"};
    (void)state;
    struct tokenizer *tokenizer = open_fixture(PRETOKENIZER_PATCHED);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = texts[i];
        const size_t n = strlen(text);
        struct ids whole = {0};
        for (size_t cut = 0; cut <= n; cut++) {
            struct token_feed *feed;
            struct ids ids = {0}, spelled = {0};
            assert_int_equal(token_feed_open(&feed, tokenizer, NULL), UTTER_OK);
            for (int round = 0; round < 2; round++) { /* a feed that has finished is as new */
                ids.n = 0;
                assert_int_equal(token_feed_text(feed, "<|im_start|>a\n<", 15, &ids, NULL), UTTER_OK);
                token_feed_literal(feed, true);
                assert_int_equal(token_feed_text(feed, text, cut, &ids, NULL), UTTER_OK);
                assert_int_equal(token_feed_text(feed, text + cut, n - cut, &ids, NULL), UTTER_OK);
                token_feed_literal(feed, false);
                assert_int_equal(token_feed_text(feed, "<|im_end|>", 10, &ids, NULL), UTTER_OK);
                assert_int_equal(token_feed_finish(feed, &ids, NULL), UTTER_OK);
            }
            token_feed_close(&feed);
            assert_int_equal(
                tokenizer_encode(tokenizer, "<|im_start|><|im_end|>", 22, &spelled, NULL), UTTER_OK);
            assert_int_equal(spelled.n, 2);
            assert_true(ids.at[0] == spelled.at[0] && ids.at[ids.n - 1] == spelled.at[1]);
            for (size_t k = 1; k + 1 < ids.n; k++) {
                assert_true(ids.at[k] != spelled.at[0] && ids.at[k] != spelled.at[1]);
            }
            ids_fini(&spelled);
            if (cut == 0) {
                whole = ids;
                continue;
            }
            assert_int_equal(ids.n, whole.n);
            assert_memory_equal(ids.at, whole.at, ids.n * sizeof *ids.at);
            ids_fini(&ids);
        }
        ids_fini(&whole);
    }
    tokenizer_close(&tokenizer);
}

/* What adversaries append: whatever could join, reorder, or complete something. */
static const char *const tails[] = {"", "a", "A", "z Z", " ", "  x", "\n", "\r\n", " \n\n", "\u0301",
    "\u0316\u0301", "\u0338", "\u0345\u0334", "\u3099", "\u09be", "\u1161\u11a8", "\u11a8", "\u11a7",
    "/", "//x", "'s", "s", "'LL", "\u017f", "1", "!", ".\n/", "|>", ">", "|im_end|>", "m_end|>",
    "end|>!", "_pad>", "<|im_end|>", "\u4e00", "\u00a0", "\u200d\U0001F469", "\ufe0f\u20e3", "x\u0301",
    "\u0f72\u0f71", "\U00011930"};

/* All ways to complete the character that `text` ends within, and none if it ends behind one. */
static size_t completions(
    const char *text, size_t bytes, const char *rest, size_t n_rest, char out[3][4])
{
    bool bad;
    if (utf8_valid(text, bytes, &bad) == bytes) {
        out[0][0] = 0;
        return 1;
    }
    size_t n = 0;
    while (n < 3 && n < n_rest && ((uint8_t)rest[n] & 0xc0) == 0x80) {
        n++;
    }
    for (int i = 0; i < 3; i++) {
        memcpy(out[i], rest, n);
        out[i][n] = 0;
    }
    /* Other last bytes make other characters: of another class, or a mark. */
    out[1][n - 1] = (char)0x81;
    out[2][n - 1] = (char)0xbf;
    return 3;
}

static void check_prefix(
    const struct tokenizer *tokenizer, const struct ids *settled, const char *text, size_t bytes)
{
    struct ids all = {0};
    assert_int_equal(tokenizer_encode(tokenizer, text, bytes, &all, NULL), UTTER_OK);
    if (settled->n > all.n ||
        (settled->n > 0 && memcmp(settled->at, all.at, settled->n * sizeof *all.at) != 0)) {
        fail_msg("settled ids changed with the text \"%.*s\"", (int)bytes, text);
    }
    ids_fini(&all);
}

/* Every cut of the text, every tail, and the real rest. */
static void check_text(const struct tokenizer *tokenizer, const char *text, size_t bytes)
{
    char longer[LINE_MAX + 64];
    for (size_t cut = 0; cut <= bytes; cut++) {
        struct ids settled = settled_ids(tokenizer, text, cut);
        check_prefix(tokenizer, &settled, text, bytes);
        char end[3][4];
        size_t n_ends = completions(text, cut, text + cut, bytes - cut, end);
        memcpy(longer, text, cut);
        for (size_t e = 0; e < n_ends; e++) {
            for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
                size_t n = cut;
                for (const char *p = end[e]; *p; p++) {
                    longer[n++] = *p;
                }
                memcpy(longer + n, tails[i], strlen(tails[i]));
                check_prefix(tokenizer, &settled, longer, n + strlen(tails[i]));
            }
        }
        ids_fini(&settled);
    }
}

static const char *const texts[] = {"Hello there, friend. It's the 3rd: they'll pay $2.50!",
    "iPhone XMLHttp O'Toole aBC \u01c5a", "Der B\u00e4cker wei\u00df: \u00c5 A\u030a 12,50 \u20ac",
    "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u201c\u8d70\u201d\u5427\u3002",
    "\u304b\u3099\u304b\u30c6\u3099\u30b9\u30c8\u3002\uff11\uff10",
    "\ud55c\uae00 \u1112\u1161\u11ab \uac00\u11a8\u11a7x",
    "\u0915\u093c\u0932\u092e \u0967\u0968 \u09c7\u09be",
    "\u0e27\u0e31\u0e19\u0e19\u0e35\u0e49 \u0e01\u0e35",
    "\u0630\u064e\u0647\u064e\u0628\u064e \u0661\u0662", "a\u0301\u0316\u0334b <\u0338 =\u0338",
    "one  two   three\n\nfour \r\n\tfive \n six\u3000\u2028seven", "!!!\n\n/ ?\r\n//x /",
    "a<|im_end|>b<|im_start|>assistant\nc<|im_end",
    "<tts_text_bos><tts_text_bos_single><tts_text_bos_x <|<|im_end|>>",
    "\U0001F469\u200D\U0001F469\u200D\U0001F467 \U0001F3F3\uFE0F\u200D\U0001F308 1\uFE0F\u20E3 "
    "\U0001F44D\U0001F3FD",
    "\u0f71\u0f72\u0f73\u0f40\u0f73 \u212b\u2126\u2000x", "'''s 's'S \u017f's\u017f 'll'LLL",
    "\u0898\u1abf\u0301 a\U00011935\U00011930 \U0001e4ec\u0316",
    "AAA aaa AAa \u4e00A\u4e00a \u02b0A\u02b0", "\x01\x02\t\x7f\xc2\x85\u00a0 \u180e\u200b"};

static void settled_ids_never_change(void **state)
{
    (void)state;
    for (int pattern = 0; pattern < 2; pattern++) {
        struct tokenizer *tokenizer = open_fixture((enum pretokenizer)pattern);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            check_text(tokenizer, texts[i], strlen(texts[i]));
        }
        tokenizer_close(&tokenizer);
    }
    struct tokenizer *small = small_open(PRETOKENIZER_MISTRAL);
    static const char normalized[] = "e\u0301xe\u00e9x\u00e9 e\u0301\u0316x <|im_end|>!<|im_end|>";
    check_text(small, normalized, sizeof normalized - 1);
    tokenizer_close(&small);
}

static void settled_ids_of_generated_lines_never_change(void **state)
{
    static struct line line;
    (void)state;
    struct tokenizer *tokenizer = open_fixture(PRETOKENIZER_MISTRAL);
    for (uint64_t i = 0, n = 0; n < 40; i++) {
        line_make(&line, 1000000 + i);
        if (line.n <= 120) {
            check_text(tokenizer, line.at, line.n);
            n++;
        }
    }
    tokenizer_close(&tokenizer);
}

/* A word is settled as soon as the first letter of the next one is there. */
static void prose_settles_word_by_word(void **state)
{
    static const char *const prose[] = {
        "The morning train leaves the station at seven, and people know each other by their coats.",
        "Der alte B\u00e4cker aus K\u00f6ln \u00f6ffnet um f\u00fcnf.",
        "Sous le ciel d'\u00e9t\u00e9, l'\u00e9l\u00e8ve \u00e9crit.",
        "\u041c\u044b \u0438\u0434\u0451\u043c \u0434\u043e\u043c\u043e\u0439, \u0439\u043e\u0434 "
        "\u0443\u0436\u0435 \u0437\u0434\u0435\u0441\u044c.",
        "\ub098\ub294 \ub0b4\uc77c \uc544\uce68 \ud559\uad50\uc5d0 \uac04\ub2e4.",
        "\u4eca\u5929\u5f88\u597d\uff0c \u6211\u4eec\u8d70\u5427\u3002 \u4ed6\u8bf4 \u597d\u3002",
        "\u0e27\u0e31\u0e19\u0e19\u0e35\u0e49 \u0e2d\u0e32\u0e01\u0e32\u0e28 "
        "\u0e14\u0e35\u0e21\u0e32\u0e01"};
    (void)state;
    for (int pattern = 0; pattern < 2; pattern++) {
        struct tokenizer *tokenizer = open_fixture((enum pretokenizer)pattern);
        for (size_t i = 0; i < sizeof prose / sizeof *prose; i++) {
            const char *text = prose[i];
            for (const char *space = strchr(text, ' '); space; space = strchr(space + 1, ' ')) {
                uint32_t code;
                size_t up_to_word = (size_t)(space - text), letter = utf8_get(space + 1, &code);
                struct ids word = {0}, settled = settled_ids(tokenizer, text, up_to_word + 1 + letter);
                assert_int_equal(tokenizer_encode(tokenizer, text, up_to_word, &word, NULL), UTTER_OK);
                assert_true(settled.n >= word.n);
                ids_fini(&word);
                ids_fini(&settled);
            }
        }
        tokenizer_close(&tokenizer);
    }
}

static void a_token_settles_when_no_longer_one_can_come(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = small_open(PRETOKENIZER_MISTRAL);
    struct ids ids = settled_ids(tokenizer, "abc<|im_end|>", 13);
    assert_int_equal(ids.n, 0); /* "<|im_end|>!" is a token too */
    ids_fini(&ids);
    ids = settled_ids(tokenizer, "abc<|im_end|> ", 14);
    assert_int_equal(ids.n, 2);
    assert_int_equal(ids.at[1], SMALL_END);
    ids_fini(&ids);
    ids = settled_ids(tokenizer, "abc<|im_end|>!", 14);
    assert_int_equal(ids.n, 2);
    assert_int_equal(ids.at[1], SMALL_END_MARK);
    ids_fini(&ids);
    tokenizer_close(&tokenizer);
}

static void bad_text_is_named_by_its_place(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = small_open(PRETOKENIZER_NATIVE);
    struct ids ids = {0};
    struct token_feed *feed;
    utter_error error = {0};
    assert_int_equal(token_feed_open(&feed, tokenizer, NULL), UTTER_OK);
    assert_int_equal(token_feed_text(feed, "one two three ", 14, &ids, &error), UTTER_OK);
    assert_int_equal(token_feed_text(feed, "\xe3", 1, &ids, &error), UTTER_OK);
    assert_int_equal(token_feed_text(feed, "\x81", 1, &ids, &error), UTTER_OK);
    assert_int_equal(token_feed_text(feed, "", 0, &ids, &error), UTTER_OK);
    assert_int_equal(token_feed_text(feed, "z", 1, &ids, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "byte 14"));
    token_feed_close(&feed);
    assert_int_equal(token_feed_open(&feed, tokenizer, NULL), UTTER_OK);
    assert_int_equal(token_feed_text(feed, "one \xe3", 5, &ids, &error), UTTER_OK);
    assert_int_equal(token_feed_finish(feed, &ids, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "byte 4"));
    token_feed_close(&feed);
    ids_fini(&ids);
    tokenizer_close(&tokenizer);
}

static void a_finished_feed_is_as_new(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = small_open(PRETOKENIZER_NATIVE);
    struct ids ids = {0};
    struct token_feed *feed;
    assert_int_equal(token_feed_open(&feed, tokenizer, NULL), UTTER_OK);
    assert_int_equal(token_feed_finish(feed, &ids, NULL), UTTER_OK);
    assert_int_equal(ids.n, 0);
    for (int round = 0; round < 3; round++) {
        ids.n = 0;
        assert_int_equal(token_feed_text(feed, "ab", 2, &ids, NULL), UTTER_OK);
        assert_int_equal(token_feed_text(feed, "c", 1, &ids, NULL), UTTER_OK);
        assert_int_equal(ids.n, 0);
        assert_int_equal(token_feed_finish(feed, &ids, NULL), UTTER_OK);
        assert_int_equal(ids.n, 1);
        assert_int_equal(ids.at[0], SMALL_ABC);
        ids.n = 0;
        assert_int_equal(token_feed_text(feed, "e\u0301 b", 5, &ids, NULL), UTTER_OK);
        assert_int_equal(token_feed_finish(feed, &ids, NULL), UTTER_OK);
        assert_int_equal(ids.n, 4);
        assert_true(ids.begin[0] == 0 && ids.begin[2] == 3 && ids.begin[3] == 4);
    }
    token_feed_close(&feed);
    token_feed_close(&feed);
    ids_fini(&ids);
    tokenizer_close(&tokenizer);
}

/* A megabyte in small pieces, with and without borders; see the same test of whole texts. */
static void a_long_stream_takes_linear_time(void **state)
{
    static const char *const parts[] = {
        "abcdefg", "the cat ", "AAAA", "    ", "\u0301\u0316", "<|im_en", "\u4e00\u4e01", "e\u0301"};
    (void)state;
    struct tokenizer *tokenizer = small_open(PRETOKENIZER_MISTRAL);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct ids ids = {0};
        struct token_feed *feed;
        clock_t begin = clock();
        assert_int_equal(token_feed_open(&feed, tokenizer, NULL), UTTER_OK);
        for (size_t n = 0; n < 1 << 20; n += strlen(parts[i])) {
            assert_int_equal(token_feed_text(feed, parts[i], strlen(parts[i]), &ids, NULL), UTTER_OK);
        }
        assert_int_equal(token_feed_finish(feed, &ids, NULL), UTTER_OK);
        assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 60);
        token_feed_close(&feed);
        ids_fini(&ids);
    }
    tokenizer_close(&tokenizer);
}

/* Feeds it byte by byte; how many ids there are then. */
static size_t feed_bytes(struct token_feed *feed, const char *text, struct ids *ids)
{
    for (; *text; text++) {
        assert_int_equal(token_feed_text(feed, text, 1, ids, NULL), UTTER_OK);
    }
    return ids->n;
}

/* An endless word is looked at again when it has grown by a quarter; what comes behind it does not wait for that, where
 * an added token ends it, and once it is through no text does. */
static void behind_an_endless_word_prose_settles_again(void **state)
{
    enum { ENDLESS = 6000 };
    static const char *const ends[] = {NULL, "<|im_end|> ", "\u00e9x "};
    static char endless[ENDLESS + 1];
    (void)state;
    memset(endless, 'b', ENDLESS);
    struct tokenizer *tokenizer = small_open(PRETOKENIZER_MISTRAL);
    for (int i = 0; i < 3; i++) {
        struct ids ids = {0};
        struct token_feed *feed;
        assert_int_equal(token_feed_open(&feed, tokenizer, NULL), UTTER_OK);
        assert_int_equal(feed_bytes(feed, endless, &ids), 0);
        size_t before = ENDLESS;
        if (ends[i]) {
            assert_int_equal(feed_bytes(feed, ends[i], &ids), ENDLESS + 1);
            before++;
        } else { /* long enough to be looked at */
            for (int k = 0; k < ENDLESS && feed_bytes(feed, " .", &ids) == 0; k++) {
            }
            assert_true(ids.n > ENDLESS);
            before = ids.n;
        }
        const size_t settled = feed_bytes(feed, " c d", &ids);
        assert_true(settled >= before + 2);
        assert_true(feed_bytes(feed, " e", &ids) >= settled + 2);
        token_feed_close(&feed);
        ids_fini(&ids);
    }
    tokenizer_close(&tokenizer);
}

/* Of what waits each four bytes are an id at the least, those of the longest token; what is not normalised yet may have
 * been four times as long. */
static void what_waits_has_so_many_ids_at_least(void **state)
{
    enum { LETTERS = 100, ACCENTS = 80, LONGEST = 4 };
    (void)state;
    struct tokenizer *tokenizer = small_open(PRETOKENIZER_MISTRAL);
    struct ids ids = {0};
    struct token_feed *feed;
    assert_int_equal(token_feed_open(&feed, tokenizer, NULL), UTTER_OK);
    assert_int_equal(token_feed_least_ids(feed), 0);
    for (size_t n = 1; n <= LETTERS; n++) { /* the last one may still get an accent */
        assert_int_equal(token_feed_text(feed, "a", 1, &ids, NULL), UTTER_OK);
        assert_int_equal(token_feed_least_ids(feed), (n - 1) / LONGEST);
    }
    for (size_t n = 1; n <= ACCENTS; n++) {
        assert_int_equal(token_feed_text(feed, "\u0316", 2, &ids, NULL), UTTER_OK);
        assert_int_equal(token_feed_least_ids(feed), ((1 + 2 * n) / 4 + LETTERS - 1) / LONGEST);
    }
    assert_int_equal(ids.n, 0);
    assert_int_equal(token_feed_finish(feed, &ids, NULL), UTTER_OK);
    assert_int_equal(token_feed_least_ids(feed), 0);
    token_feed_close(&feed);
    ids_fini(&ids);
    tokenizer_close(&tokenizer);
}

static void every_failing_allocation(void **state)
{
    static const char *const pieces[] = {"abc \u304b", "\u3099\u0316\u0301 e", "\u0301x<|im_",
        "end|> aa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    (void)state;
    struct tokenizer *tokenizer = small_open(PRETOKENIZER_MISTRAL);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct ids ids = {0};
        struct token_feed *feed;
        utter_status status = token_feed_open(&feed, tokenizer, NULL);
        for (int i = 0; i < 5 && status == UTTER_OK; i++) {
            status = token_feed_text(feed, pieces[i], strlen(pieces[i]), &ids, NULL);
        }
        if (status == UTTER_OK) {
            status = token_feed_finish(feed, &ids, NULL);
        }
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        token_feed_close(&feed);
        ids_fini(&ids);
    }
    tokenizer_close(&tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settled_ids_never_change),
        cmocka_unit_test(settled_ids_of_generated_lines_never_change),
        cmocka_unit_test(prose_settles_word_by_word),
        cmocka_unit_test(a_token_settles_when_no_longer_one_can_come),
        cmocka_unit_test(literal_text_holds_no_token),
        cmocka_unit_test(bad_text_is_named_by_its_place),
        cmocka_unit_test(a_finished_feed_is_as_new),
        cmocka_unit_test(a_long_stream_takes_linear_time),
        cmocka_unit_test(behind_an_endless_word_prose_settles_again),
        cmocka_unit_test(what_waits_has_so_many_ids_at_least),
        cmocka_unit_test(every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
