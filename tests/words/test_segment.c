/* SPDX-License-Identifier: Apache-2.0
 * Words of ten languages and of what else people write, whole and in pieces of any size. */
#include "tests/support.h"

#include <string.h>

#include "words/segment.h"

static struct segmenter cut(const char *text, size_t piece)
{
    struct segmenter s = {0};
    size_t n = strlen(text);
    for (size_t at = 0; at < n; at += piece) {
        assert_int_equal(
            segmenter_text(&s, text + at, n - at < piece ? n - at : piece, NULL), UTTER_OK);
    }
    assert_int_equal(segmenter_finish(&s, NULL), UTTER_OK);
    return s;
}

/* `wanted`: the words, with a bar behind each. */
static void check(const char *text, const char *wanted)
{
    for (size_t piece = 1; piece < 40; piece += piece < 8 ? 1 : 13) {
        char found[512] = "";
        struct segmenter s = cut(text, piece);
        for (size_t i = 0; i < s.n; i++) {
            assert_true(strlen(found) + s.at[i].bytes + 2 < sizeof found);
            strncat(found, text + s.at[i].at, s.at[i].bytes);
            strcat(found, "|");
        }
        assert_string_equal(found, wanted);
        segmenter_fini(&s);
    }
}

static void test_words(void **state)
{
    (void)state;
    check("Don't stop: it's 3.14, isn't it?", "Don't|stop|it's|3.14|isn't|it|");
    check("well-known \u201cquotes\u201d \u2014 dash", "well|known|quotes|dash|");
    check("L\u2019\u00e9t\u00e9 na\u00efve cafe\u0301", "L\u2019\u00e9t\u00e9|na\u00efve|cafe\u0301|");
    check("\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u4f60|\u597d|\u4e16|\u754c|");
    check("\u6771\u4eac\u3078\u884c\u304f", "\u6771|\u4eac|\u3078|\u884c|\u304f|");
    check("\uc548\ub155 \uc138\uacc4", "\uc548\ub155|\uc138\uacc4|");
    check("\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
        "\u041f\u0440\u0438\u0432\u0435\u0442|\u043c\u0438\u0440|");
    check("see https://example.com/a?b=1 now", "see|https|example.com|a|b|1|now|");
    check("fine \U0001F600 \U0001F469\u200d\U0001F469\u200d\U0001F467 day", "fine|day|");
    check("1,000 in 2024 (two)", "1,000|in|2024|two|");
    check("  \n!?\n", "");
    check("one", "one|");
}

/* A word is known two borders before the end of the text so far, and the last ones once there is no more. */
static void test_certain(void **state)
{
    (void)state;
    static const char text[] = "one two, three";
    static const size_t known[] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}; /* after each byte */
    struct segmenter s = {0};
    for (size_t i = 0; i < sizeof text - 1; i++) {
        assert_int_equal(segmenter_text(&s, text + i, 1, NULL), UTTER_OK);
        assert_int_equal(s.n, known[i]);
    }
    assert_int_equal(segmenter_finish(&s, NULL), UTTER_OK);
    assert_int_equal(s.n, 3);
    segmenter_fini(&s);
}

/* An endless word is cut, in linear time; nothing is lost. */
static void test_endless(void **state)
{
    (void)state;
    static char text[200001];
    memset(text, 'a', sizeof text - 1);
    struct segmenter s = cut(text, 1000);
    uint64_t sum = 0;
    for (size_t i = 0; i < s.n; i++) {
        assert_int_equal(s.at[i].at, sum);
        sum += s.at[i].bytes;
    }
    assert_int_equal(sum, sizeof text - 1);
    segmenter_fini(&s);
}

/* At 4,096 bytes. */
static void test_endless_to_the_byte(void **state)
{
    (void)state;
    static char text[10001];
    static const uint32_t wanted[] = {4096, 4096, 1808};
    memset(text, 'a', sizeof text - 1);
    struct segmenter s = cut(text, 64);
    assert_int_equal(s.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(s.at[i].bytes, wanted[i]);
        assert_int_equal(s.at[i].weight, wanted[i]);
    }
    segmenter_fini(&s);
}

/* A letter is 1, a digit 4, a character of East Asia that is a word 3. */
static void test_weights(void **state)
{
    (void)state;
    static const char text[] =
        "ab \u00e9 3.14 \u4f60 \u30ab \u2167 \u00bd \u05d0\u05d1 x2 cafe\u0301 Z";
    static const uint32_t wanted[] = {2, 1, 12, 3, 3, 4, 4, 2, 5, 4, 1};
    struct segmenter s = cut(text, 3);
    assert_int_equal(s.n, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < s.n; i++) {
        assert_int_equal(s.at[i].weight, wanted[i]);
    }
    segmenter_fini(&s);
}

/* More words than there is room for at first; each failure is told, and leaves whole words. */
static void test_memory(void **state)
{
    (void)state;
    enum { N = 300 };
    char text[2 * N + 1];
    for (int i = 0; i < N; i++) {
        memcpy(text + (size_t)(2 * i), "a ", 3);
    }
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct segmenter s = {0};
        utter_error error = {.text = ""};
        utter_status status = UTTER_OK;
        for (size_t at = 0; at < 2 * N && !status; at += 100) {
            status = segmenter_text(&s, text + at, 100, &error);
        }
        status = status ? status : segmenter_finish(&s, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(error.text[0] != 0, status != UTTER_OK);
        assert_true(status ? s.n < N : s.n == N);
        for (size_t i = 0; i < s.n; i++) {
            assert_true(s.at[i].at == 2 * i && s.at[i].bytes == 1);
        }
        segmenter_fini(&s);
    }
}

/* A line's end and marks but quotes; what is no mark, and what stands before all words, is none. */
static void test_marks(void **state)
{
    (void)state;
    static const bool wanted[] = {
        false, false, false, false, true, true, false, true, true, true, false};
    struct segmenter s = cut("...a b' c\" d\u2019 e\nf - g + h\u3002i (j _ k", 1);
    assert_int_equal(s.n, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < s.n; i++) {
        assert_int_equal(s.at[i].breathes, wanted[i]);
    }
    segmenter_fini(&s);
}

static void test_pauses(void **state)
{
    (void)state;
    struct segmenter s = cut("One, two 'three' four. Five", 5);
    static const bool wanted[] = {true, false, false, true, false};
    assert_int_equal(s.n, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(s.at[i].breathes, wanted[i]);
    }
    segmenter_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_certain),
        cmocka_unit_test(test_endless),
        cmocka_unit_test(test_endless_to_the_byte),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
