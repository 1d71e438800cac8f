/* SPDX-License-Identifier: Apache-2.0
 * What stands in front of a text or behind it is not looked at: texts up to each of their bytes, characters that were
 * cut among them, lie beside memory that nobody may touch. */
#include "reading/cut.h"
#include "reading/marks.h"
#include "reading/reading_parts.h"
#include "tests/fence.h"

static const char *const texts[] = {"One. Two! Three... ", "\"Mr. X?!\" (etc.) b",
    " \t\r\n\r\n- Item\n\n## x ",
    "\xe5\xa4\xa9\xe3\x80\x82\xe3\x80\x8d\xe3\x81\xa8 \xe5\xa4\xa9\xef\xbc\x8c\xe3\x80\x82\xe3\x81\xa8",
    "3\xef\xbc\x8e"
    "5 \xc2\xbb ! \xe2\x80\xa2 \xe2\x80\x94",
    "\xf0\x9f\x98\x80\xf0\x9d\x90\x80.\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",
    "U.S. \xd0\xb3. \xe2\x80\x9c"
    "e.g.\xe2\x80\x9d 12. x",
    "\x80\x80\x80\x80\x80 \xff\xc3."};

/* All that is asked of a text, in numbers. */
static void ask(const char *text, size_t n, size_t answers[64])
{
    uint32_t code = 0;
    size_t k = 0;
    answers[k++] = cut_sentence(text, n, false);
    answers[k++] = cut_sentence(text, n, true);
    answers[k++] = cut_end_of(text, n);
    answers[k++] = whole_length(text, n);
    answers[k++] = marks_is_short_form(text, n, 'X');
    answers[k++] = marks_is_short_form(text, n, '1');
    for (size_t at = 0; at < n; at++) {
        size_t length = marks_get(text + at, n - at, &code), last;
        assert_true(length <= n - at);
        last = marks_last(text, at + 1, &code);
        assert_true(last <= at + 1);
        answers[k] = 7 * length + last + code;
        answers[++k] = marks_is_short_form(text + at, n - at, 'x');
        k += at % 2;
        assert_true(k < 64);
    }
}

static void texts_end_where_they_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t n = 1; n <= strlen(texts[i]); n++) {
            size_t in_front[64] = {0}, behind[64] = {0};
            ask(fence(texts[i], n, true), n, in_front);
            ask(fence(texts[i], n, false), n, behind);
            assert_memory_equal(in_front, behind, sizeof behind);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_end_where_they_end)};
    return cmocka_run_group_tests_name("ends of texts that are read", tests, NULL, NULL);
}
