/* SPDX-License-Identifier: Apache-2.0
 * Growing strings, lists of ids, and UTF-8 by each byte that can be wrong. */
#include "tests/support.h"

#include <string.h>

#include "text/chars.h"
#include "text/ids.h"

static void room_is_made_once(void **state)
{
    struct chars c = {0};
    (void)state;
    assert_int_equal(chars_reserve(&c, 0, NULL), UTTER_OK);
    assert_non_null(c.at);
    assert_int_equal(c.n, 0);
    assert_int_equal(chars_add(&c, "abc", 3, NULL), UTTER_OK);
    const long made = support_calls(SUPPORT_MALLOC);
    const size_t capacity = c.capacity;
    memset(c.at + c.n, 'x', capacity - c.n);
    assert_int_equal(chars_reserve(&c, capacity - 3, NULL), UTTER_OK);
    assert_int_equal(c.capacity, capacity);
    assert_int_equal(support_calls(SUPPORT_MALLOC), made);
    assert_int_equal(chars_reserve(&c, capacity - 2, NULL), UTTER_OK);
    assert_true(c.capacity > capacity);
    assert_true(support_calls(SUPPORT_MALLOC) > made);
    assert_memory_equal(c.at, "abc", 3);
    chars_fini(&c);
    assert_null(c.at);
    assert_int_equal(c.capacity, 0);
}

/* A size that no memory has, also where its sum with what is there is small again. */
static void too_much_room_is_refused(void **state)
{
    static const size_t sizes[] = {
        SIZE_MAX, SIZE_MAX - 2, SIZE_MAX - 63, SIZE_MAX / 3 * 2 + 64, SIZE_MAX / 2};
    struct chars c = {0};
    (void)state;
    assert_int_equal(chars_add(&c, "abc", 3, NULL), UTTER_OK);
    const size_t capacity = c.capacity;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        utter_error error = {0};
        assert_int_equal(chars_reserve(&c, sizes[i], &error), UTTER_E_MEMORY);
        assert_int_equal(error.code, UTTER_E_MEMORY);
        assert_int_equal(c.capacity, capacity);
    }
    support_fail_malloc_at(1);
    assert_int_equal(chars_reserve(&c, capacity, NULL), UTTER_E_MEMORY);
    support_fail_off();
    assert_int_equal(c.n, 3);
    assert_memory_equal(c.at, "abc", 3);
    chars_fini(&c);
}

static void what_is_dropped_is_the_beginning(void **state)
{
    struct chars c = {0};
    (void)state;
    chars_drop(&c, 0);
    assert_int_equal(chars_add(&c, "abcdef", 6, NULL), UTTER_OK);
    assert_int_equal(chars_add(&c, NULL, 0, NULL), UTTER_OK);
    chars_drop(&c, 0);
    assert_int_equal(c.n, 6);
    chars_drop(&c, 1);
    assert_int_equal(c.n, 5);
    assert_memory_equal(c.at, "bcdef", 5);
    chars_drop(&c, 3);
    assert_int_equal(c.n, 2);
    assert_memory_equal(c.at, "ef", 2);
    chars_drop(&c, 2);
    assert_int_equal(c.n, 0);
    chars_fini(&c);
}

/* Behind some letters, so that what is looked at eight bytes at a time ends in the middle, at, or behind it. */
static void check_valid(const char *bytes, size_t n, size_t valid, bool is_bad)
{
    for (size_t before = 0; before < 18; before++) {
        char text[40];
        bool bad = !is_bad;
        memset(text, 'a', sizeof text);
        memcpy(text + before, bytes, n);
        assert_int_equal(utf8_valid(text, before + n, &bad), before + valid);
        assert_int_equal(bad, is_bad);
        if (valid == n) {
            assert_int_equal(utf8_valid(text, before + n + 12, &bad), before + n + 12);
            assert_false(bad);
        }
    }
}

/* Each first byte with each second: what can become a character, and how long it is. */
static void every_beginning_of_a_character(void **state)
{
    (void)state;
    for (int first = 0; first < 256; first++) {
        const size_t length = first < 0x80   ? 1
                              : first < 0xc2 ? 0
                              : first < 0xe0 ? 2
                              : first < 0xf0 ? 3
                              : first < 0xf5 ? 4
                                             : 0;
        char text[4] = {(char)first, 0, (char)0x80, (char)0xbf};
        check_valid(text, 1, length == 1, length == 0);
        for (int second = 0; second < 256 && length > 1; second++) {
            /* No long forms, no surrogates, nothing above U+10FFFF. */
            const bool good = second >= 0x80 && second < 0xc0 && !(first == 0xe0 && second < 0xa0) &&
                              !(first == 0xed && second > 0x9f) && !(first == 0xf0 && second < 0x90) &&
                              !(first == 0xf4 && second > 0x8f);
            text[1] = (char)second;
            check_valid(text, 2, good && length == 2 ? 2 : 0, !good);
            check_valid(text, length, good ? length : 0, !good);
        }
    }
}

/* The third and fourth byte have the whole range, whatever the first was. */
static void every_end_of_a_character(void **state)
{
    static const char *const begins[] = {"\xe0\xa0", "\xe1\x80", "\xed\x9f", "\xef\xbf", "\xf0\x90\x80",
        "\xf1\x80\xbf", "\xf4\x8f\x80", "\xf0\x9f", "\xf4\x80"};
    (void)state;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const size_t n = strlen(begins[i]), length = (uint8_t)begins[i][0] < 0xf0 ? 3 : 4;
        for (int last = 0; last < 256; last++) {
            char text[4];
            const bool good = last >= 0x80 && last < 0xc0;
            memcpy(text, begins[i], n);
            text[n] = (char)last;
            check_valid(text, n + 1, good && n + 1 == length ? length : 0, !good);
        }
    }
}

/* From a code point to bytes and back, all of them. */
static void every_code_point(void **state)
{
    size_t n_characters = 0;
    (void)state;
    for (uint32_t code = 0; code < 0x110000; code++) {
        char text[4] = {0};
        uint32_t again;
        bool bad;
        const size_t n = utf8_put(code, text), want = code < 0x80      ? 1
                                                      : code < 0x800   ? 2
                                                      : code < 0x10000 ? 3
                                                                       : 4;
        if (n != want || utf8_get(text, &again) != n || again != code) {
            fail_msg("U+%04X", (unsigned)code);
        }
        const bool surrogate = code >= 0xd800 && code < 0xe000;
        n_characters += utf8_valid(text, n, &bad) == n && !bad && !surrogate;
    }
    assert_int_equal(n_characters, 0x110000 - 0x800);
}

/* Of each id its place stays with it, however many come. */
static void ids_keep_their_places(void **state)
{
    struct ids ids = {0};
    (void)state;
    for (int32_t i = 0; i < 1000; i++) {
        assert_int_equal(ids_add(&ids, 7 * i, ((uint64_t)i << 40) + 1, NULL), UTTER_OK);
        assert_int_equal(ids.n, i + 1);
        assert_true(ids.capacity >= ids.n && ids.capacity <= 2 * ids.n + 64);
    }
    for (int32_t i = 0; i < 1000; i++) {
        assert_int_equal(ids.at[i], 7 * i);
        assert_true(ids.begin[i] == ((uint64_t)i << 40) + 1);
    }
    ids_fini(&ids);
    assert_true(!ids.at && !ids.begin && ids.n == 0 && ids.capacity == 0);
}

static void a_list_that_cannot_grow_stays(void **state)
{
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct ids ids = {0};
        utter_error error = {0};
        utter_status status = UTTER_OK;
        size_t added = 0;
        while (status == UTTER_OK && added < 300) {
            status = ids_add(&ids, (int32_t)added, added, &error);
            added += status == UTTER_OK;
        }
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(error.code, status);
        assert_int_equal(ids.n, added);
        for (size_t i = 0; i < added; i++) {
            assert_true(ids.at[i] == (int32_t)i && ids.begin[i] == i);
        }
        ids_fini(&ids);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_made_once),
        cmocka_unit_test(too_much_room_is_refused),
        cmocka_unit_test(what_is_dropped_is_the_beginning),
        cmocka_unit_test(every_beginning_of_a_character),
        cmocka_unit_test(every_end_of_a_character),
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(ids_keep_their_places),
        cmocka_unit_test(a_list_that_cannot_grow_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
