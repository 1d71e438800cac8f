/* SPDX-License-Identifier: Apache-2.0
 * Whole texts: merges, added tokens, what is no UTF-8, texts that want quadratic time. */
#include "tests/support.h"

#include <time.h>

#include "tests/text/small.h"

static void expect(const struct tokenizer *tokenizer, const char *text, size_t n, const int32_t *wanted)
{
    struct ids ids = {0};
    utter_error error = {0};
    if (tokenizer_encode(tokenizer, text, strlen(text), &ids, &error) != UTTER_OK) {
        fail_msg("%s: %s", text, error.text);
    }
    if (ids.n != n || memcmp(ids.at, wanted, n * sizeof *wanted) != 0) {
        for (size_t i = 0; i < ids.n; i++) {
            print_message("%d ", (int)ids.at[i]);
        }
        fail_msg("these are the ids of \"%s\"", text);
    }
    ids_fini(&ids);
}

#define EXPECT(tokenizer, text, ...)                                                                   \
    expect(                                                                                            \
        tokenizer, text, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (int32_t[]){__VA_ARGS__})

static void merges_in_order_of_rank(void **state)
{
    (void)state;
    struct tokenizer *t = small_open(PRETOKENIZER_NATIVE);
    EXPECT(t, "abc", SMALL_ABC);
    EXPECT(t, "aab", 'a', SMALL_AB); /* "a b" comes before "a a" */
    EXPECT(t, "aaa", SMALL_AA, 'a'); /* leftmost first */
    EXPECT(t, "aaaaaaa", SMALL_AAAA, SMALL_AA, 'a');
    EXPECT(t, " aabc", SMALL_SPACE_A, SMALL_ABC); /* "ab" is taken before " a" reaches the second a */
    EXPECT(t, "###", SMALL_HASHES, '#');          /* a merge whose line begins with '#' */
    EXPECT(t, "\xc3\xa4", 0xc3, 0xa4);
    EXPECT(t, "a b", 'a', ' ', 'b');
    assert_int_equal(tokenizer_vocabulary(t), SMALL_EX + 1);
    struct ids none = {0};
    assert_int_equal(tokenizer_encode(t, "", 0, &none, NULL), UTTER_OK);
    assert_int_equal(none.n, 0);
    ids_fini(&none);
    tokenizer_close(&t);
    assert_null(t);
    tokenizer_close(&t);
}

static void added_tokens(void **state)
{
    (void)state;
    struct tokenizer *t = small_open(PRETOKENIZER_MISTRAL);
    EXPECT(t, "<|im_end|>", SMALL_END);
    EXPECT(t, "<|im_end|>!", SMALL_END_MARK); /* the longest */
    EXPECT(t, "a<|im_end|><|im_end|>!b", 'a', SMALL_END, SMALL_END_MARK, 'b');
    EXPECT(t, "<<|im_end|>", '<', SMALL_END);
    EXPECT(t, "<|im_end|", '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|');
    EXPECT(t, "<|im_<|im_end|>", '<', '|', 'i', 'm', '_', SMALL_END);
    /* Searched in the raw text, before normalisation could change what follows. */
    EXPECT(t, "<|im_end|>\u0338", SMALL_END, 0xcc, 0xb8);
    /* A "normalized" token is found in both spellings. */
    EXPECT(t, "e\u0301x\u00e9x", SMALL_EX, SMALL_EX);
    EXPECT(t, "a\u00e9xb", 'a', SMALL_EX, 'b');
    EXPECT(t, "\u00e9", 0xc3, 0xa9);
    tokenizer_close(&t);
}

/* A vocabulary of 100,000 entries: the bytes, the small merges, "aB", then numbers from 10 on, each the number in front
 * of its last digit and that digit; one more with `and_one`. */
static void write_large(bool and_one)
{
    enum { N_ENTRIES = 100000 };
    char *text = malloc(N_ENTRIES * 24), *merges = malloc(N_ENTRIES * 24);
    assert_true(text && merges);
    small_vocabulary(text, ",\"aB\":262");
    char *at = strrchr(text, '}'), *merge = merges + sprintf(merges, SMALL_MERGES "a B\n");
    for (int id = SMALL_END + 1, number = 10; id < N_ENTRIES + and_one; id++, number++) {
        at += sprintf(at, ",\"%d\":%d", number, id);
        merge += sprintf(merge, "%d %d\n", number / 10, number % 10);
    }
    strcpy(at, "}");
    small_write("vocab.json", text);
    small_write("merges.txt", merges);
    small_write("tokenizer_config.json", "{\"added_tokens_decoder\":{}}");
    free(text);
    free(merges);
}

/* One more than the largest id, be it that of an added token or one of the vocabulary. */
static void the_vocabulary_ends_behind_the_largest_id(void **state)
{
    static const struct {
        const char *last, *added;
        size_t n;
    } cases[] = {{"", "", SMALL_END}, {"", "\"262\":{\"content\":\"<x>\"}", SMALL_END + 1},
        {",\"abcabc\":5000", "", 5001}, {",\"abcabc\":5000", "\"263\":{\"content\":\"<x>\"}", 5001},
        {",\"abcabc\":262", "\"263\":{\"content\":\"<x>\"}", 264},
        {"", "\"97\":{\"content\":\"a\"}", SMALL_END}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer *t;
        char text[SMALL_BYTES];
        small_vocabulary(text, cases[i].last);
        small_write("vocab.json", text);
        small_write("merges.txt", cases[i].last[0] ? SMALL_MERGES "abc abc\n" : SMALL_MERGES);
        snprintf(text, sizeof text, "{\"added_tokens_decoder\":{%s}}", cases[i].added);
        small_write("tokenizer_config.json", text);
        assert_int_equal(
            tokenizer_open(&t, support_folder(), file_read, PRETOKENIZER_NATIVE, NULL), UTTER_OK);
        assert_int_equal(tokenizer_vocabulary(t), cases[i].n);
        tokenizer_close(&t);
    }
}

static void the_patch_is_for_large_vocabularies(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        struct tokenizer *t;
        write_large(large);
        utter_error error = {0};
        if (tokenizer_open(&t, support_folder(), file_read, PRETOKENIZER_PATCHED, &error) != UTTER_OK) {
            fail_msg("%s", error.text);
        }
        if (large) {
            EXPECT(t, "aB", 'a', 'B'); /* this pattern splits at the capital */
        } else {
            EXPECT(t, "aB", 262);
        }
        tokenizer_close(&t);
    }
}

static void text_that_is_no_utf8(void **state)
{
    static const struct {
        const char *text;
        size_t offset;
    } cases[] = {{"\x80", 0}, {"abc\xff", 3}, {"a\xc0\x80", 1}, {"\xc1\xbf", 0}, {"\xe0\x9f\xbf", 0},
        {"ab\xed\xa0\x80", 2}, {"\xf0\x8f\xbf\xbf", 0}, {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0}, {"\xe4\xb8", 0}, {"abcdefghi\xe4\xb8z", 9}, {"abcdefg\xf0\x9f\x98", 7},
        {"\xc3(", 0}, {"\xc3\xc0", 0}, {"\xe4\xb8\xc0", 0}};
    (void)state;
    struct tokenizer *t = small_open(PRETOKENIZER_MISTRAL);
    struct ids ids = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_error error = {0};
        char wanted[32];
        snprintf(wanted, sizeof wanted, "byte %zu", cases[i].offset);
        assert_int_equal(
            tokenizer_encode(t, cases[i].text, strlen(cases[i].text), &ids, &error), UTTER_E_ARGUMENT);
        assert_non_null(strstr(error.text, wanted));
        assert_int_equal(ids.n, 0);
    }
    static const char good[] =
        "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
    assert_int_equal(tokenizer_encode(t, good, sizeof good, &ids, NULL), UTTER_OK); /* with its zero */
    assert_int_equal(ids.n, sizeof good);
    ids_fini(&ids);
    tokenizer_close(&t);
}

/* One megabyte made of a short text. Quadratic time would be minutes; the limit is processor time and far
 * above what a slow machine with a sanitizer takes. */
static void a_megabyte_takes_linear_time(void **state)
{
    static const char *const texts[] = {"The quick brown fox doesn't jump. ", "abcdefghij", "a", "A",
        " ", "\n", "aB", "\u0301", "\u0301\u0316\u0334", "\u1112\u1161\u11ab", "<|im_end|>", "<|im_en",
        "!", " /", "\r\n", "1", "\u4eca\u5929", "e\u0301", "\u3000 \u2003", "A\u4e00", "' ",
        "\u0f71\u0f72"};
    enum { MEGABYTE = 1 << 20, LIMIT_S = 60 };
    (void)state;
    char *text = malloc(MEGABYTE + 64);
    assert_non_null(text);
    for (int pattern = 0; pattern < 2; pattern++) {
        struct tokenizer *t = small_open((enum pretokenizer)pattern);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            size_t n = 0, length = strlen(texts[i]);
            while (n < MEGABYTE) {
                memcpy(text + n, texts[i], length);
                n += length;
            }
            clock_t begin = clock();
            struct ids ids = {0};
            assert_int_equal(tokenizer_encode(t, text, n, &ids, NULL), UTTER_OK);
            assert_true(ids.n > 0);
            assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < LIMIT_S);
            ids_fini(&ids);
        }
        tokenizer_close(&t);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_in_order_of_rank),
        cmocka_unit_test(added_tokens),
        cmocka_unit_test(the_vocabulary_ends_behind_the_largest_id),
        cmocka_unit_test(the_patch_is_for_large_vocabularies),
        cmocka_unit_test(text_that_is_no_utf8),
        cmocka_unit_test(a_megabyte_takes_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
