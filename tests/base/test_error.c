/* SPDX-License-Identifier: Apache-2.0
 * Errors are one line that shows nothing harmful, cut at a character where they are long. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tests/utf8.h"

static void error_set_formats_and_returns(void **state)
{
    (void)state;
    utter_error error;
    assert_int_equal(error_set(&error, UTTER_E_FILE, "%s: %d", "a", 7), UTTER_E_FILE);
    assert_int_equal(error.code, UTTER_E_FILE);
    assert_string_equal(error.text, "a: 7");
    assert_int_equal(error_set(NULL, UTTER_E_IO, "%s", "a"), UTTER_E_IO);
    assert_int_equal(error_memory(&error, "the cache"), UTTER_E_MEMORY);
    assert_non_null(strstr(error.text, "the cache"));
}

static void reasons_are_one_harmless_line(void **state)
{
    (void)state;
    utter_error error;
    error_set(&error, UTTER_E_FILE, "%s: \"%s\" \xc3\xa9", "a\x1b[31m\n", "\xe2\x80\xae\xff\xc2\x9b");
    assert_string_equal(error.text, "a\\x1b[31m\\n: \"\\u202e\\xff\\u009b\" \xc3\xa9");
    error_set(&error, UTTER_E_FILE, "again: %s", error.text); /* of itself, and no second time */
    assert_string_equal(error.text, "again: a\\x1b[31m\\n: \"\\u202e\\xff\\u009b\" \xc3\xa9");
    char text[3 * sizeof error.text];
    memset(text, 1, sizeof text - 1);
    text[sizeof text - 1] = 0;
    error_set(&error, UTTER_E_FILE, "%s", text);
    assert_true(strlen(error.text) < sizeof error.text);
    assert_string_equal(error.text + strlen(error.text) - 7, "\\x01...");
}

/* A reason that is too long ends before the character that no longer fits, for every way to cut it. */
static void long_reasons_are_cut_at_a_character(void **state)
{
    (void)state;
    static const char *const characters[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (int c = 0; c < 4; c++) {
        for (int shift = 0; shift < 4; shift++) {
            char text[3 * sizeof((utter_error *)0)->text];
            size_t n = strlen(characters[c]), used = (size_t)shift;
            memset(text, '.', used);
            while (used + n < sizeof text) {
                memcpy(text + used, characters[c], n);
                used += n;
            }
            text[used] = 0;
            utter_error error;
            error_set(&error, UTTER_E_FILE, "%s", text);
            size_t length = strlen(error.text), room = sizeof error.text - 1;
            assert_int_equal(length, shift + (room - (size_t)shift) / n * n);
            assert_memory_equal(error.text, text, length);
        }
    }
}

static void quote_escapes_what_does_not_print(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        const char *quoted;
    } cases[] = {
        {"", 0, ""}, {"plain", 5, "plain"}, {"a\nb\tc\rd", 7, "a\\nb\\tc\\rd"},
        {"\0\x1b[0m\x7f", 6, "\\x00\\x1b[0m\\x7f"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xc3", 1, "\\xc3"},     /* ends early */
        {"\xc3\xa9", 1, "\\xc3"}, /* is cut by its length */
        {"ab\xc3\xa9", 3, "ab\\xc3"}, {"\xc3\xa9\xe2\x82\xac", 4, "\xc3\xa9\\xe2\\x82"},
        {"\xff\x80", 2, "\\xff\\x80"},                   /* never begins a character */
        {"\xc0\x80", 2, "\\xc0\\x80"},                   /* longer than needed */
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},          /* a surrogate */
        {"\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"}, /* beyond U+10FFFF */
        {"\xc2\x9b"
         "1m",
            4, "\\u009b1m"}, /* a terminal would obey */
        {"\xe2\x80\xae"
         "x",
            4, "\\u202ex"},             /* turns the line round */
        {"\xe2\x80\xa8", 3, "\\u2028"}, /* another line break */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[64];
        assert_ptr_equal(error_quote(out, sizeof out, cases[i].text, cases[i].bytes), out);
        assert_string_equal(out, cases[i].quoted);
    }
}

/* Each range of what is escaped, and its neighbours; the first and last character of each length. */
static void quote_escapes_no_more_than_that(void **state)
{
    static const uint32_t ranges[][2] = {{1, 0x1f}, {0x7f, 0x9f}, {0x200b, 0x200f}, {0x2028, 0x202e},
        {0x2060, 0x2069}, {0xfeff, 0xfeff}};
    static const uint32_t plain[] = {0x20, 0x7e, 0xa0, 0x7ff, 0x800, 0x200a, 0x2010, 0x2027, 0x202f,
        0x205f, 0x206a, 0xd7ff, 0xe000, 0xfefe, 0xff00, 0xffff, 0x10000, 0x10ffff};
    char text[5], out[16], escaped[16];
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        for (uint32_t c = ranges[i][0]; c <= ranges[i][1]; c++) {
            utf8_put(text, c);
            snprintf(escaped, sizeof escaped, c < 0x80 ? "\\x%02x" : "\\u%04x", c);
            error_quote(out, sizeof out, text, strlen(text));
            if (c == '\n' || c == '\t' || c == '\r') {
                assert_true(out[0] == '\\' && strlen(out) == 2);
            } else {
                assert_string_equal(out, escaped);
            }
        }
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        utf8_put(text, plain[i]);
        assert_string_equal(error_quote(out, sizeof out, text, strlen(text)), text);
    }
}

/* Every character is itself or its number, and every byte that begins none, is one too many or comes too early is its
 * own number. */
static void quote_keeps_every_character(void **state)
{
    char text[8], out[40], wanted[40];
    (void)state;
    for (uint32_t c = 0x10; c < 0x110000; c += c < 0x3000 ? 1 : 61) {
        const size_t n = utf8_put(text, c);
        error_quote(out, sizeof out, text, n);
        if (c >= 0xd800 && c < 0xe000) {
            snprintf(wanted, sizeof wanted, "\\x%02x\\x%02x\\x%02x", text[0] & 0xff, text[1] & 0xff,
                text[2] & 0xff);
            assert_string_equal(out, wanted);
        } else if (out[0] != '\\' || c == '\\') {
            assert_string_equal(out, text);
        } else {
            snprintf(wanted, sizeof wanted, c < 0x80 ? "\\x%02x" : "\\u%04x", (unsigned)c);
            assert_string_equal(out, wanted);
        }
    }
    for (int first = 0x80; first < 0x100; first++) {
        const size_t length = first < 0xc2   ? 0
                              : first < 0xe0 ? 2
                              : first < 0xf0 ? 3
                              : first < 0xf5 ? 4
                                             : 0;
        for (size_t n = 1; n <= 4; n++) {
            /* Good behind any first byte: of the three lengths none is a long form, a surrogate or too large. */
            const int second = first == 0xe0 || first == 0xf0 ? 0xa5 : 0x85;
            char *at = wanted;
            text[0] = (char)first;
            memset(text + 1, second, 4);
            text[n] = 'z';
            for (size_t i = 0; i < n; i++) {
                at += sprintf(at, "\\x%02x", text[i] & 0xff);
            }
            if (n == length) {
                memcpy(wanted, text, n);
                at = wanted + n;
                if (first == 0xc2) { /* U+0085 */
                    at = wanted + sprintf(wanted, "\\u0085");
                }
            } else if (length && n > length) {
                memcpy(wanted, text, length);
                at = wanted + length;
                if (first == 0xc2) {
                    at = wanted + sprintf(wanted, "\\u0085");
                }
                for (size_t i = length; i < n; i++) {
                    at += sprintf(at, "\\x%02x", second);
                }
            }
            strcpy(at, "z");
            error_quote(out, sizeof out, text, n + 1);
            assert_string_equal(out, wanted);
        }
    }
}

/* Whatever the room: what fits is unchanged, what does not ends in dots, no character is halved. */
static void quote_cuts_long_text(void **state)
{
    (void)state;
    static const char text[] = "ab\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n_";
    static const char whole[] = "ab\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\\n_";
    for (size_t size = 1; size < sizeof whole + 3; size++) {
        char out[32];
        memset(out, 'X', sizeof out);
        error_quote(out, size, text, sizeof text - 1);
        size_t n = strlen(out);
        assert_true(n < size);
        assert_int_equal(out[size], 'X');
        if (size >= sizeof whole) {
            assert_string_equal(out, whole);
        } else if (size > 3) {
            assert_string_equal(out + n - 3, "...");
            assert_memory_equal(out, whole, n - 3);
            assert_true(((unsigned char)whole[n - 3] & 0xc0) != 0x80);
        }
    }
}

/* A reason as long as the record, but for the bytes at its end; what does not fit is cut behind them. */
static void assert_cut(const char *end, const char *wanted_end)
{
    enum { ROOM = sizeof((utter_error *)0)->text - 1 };
    char text[2 * ROOM];
    utter_error error;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    memcpy(text + ROOM - strlen(end), end, strlen(end));
    assert_int_equal(error_set(&error, UTTER_E_IO, "%s", text), UTTER_E_IO);
    assert_int_equal(error.code, UTTER_E_IO);
    const size_t n = strlen(error.text), n_end = strlen(wanted_end);
    assert_true(n <= ROOM && n >= n_end);
    if (strcmp(error.text + n - n_end, wanted_end) != 0 || error.text[n - n_end - 1] != 'a') {
        fail_msg("it ends in \"%s\", not in \"%s\"", error.text + n - n_end - 1, wanted_end);
    }
}

/* Only what may be the beginning of a character is dropped with it. */
static void a_cut_drops_what_may_be_half_a_character(void **state)
{
    (void)state;
    assert_cut("\xc3", "");
    assert_cut("\xc3\xa9", "\xc3\xa9");
    assert_cut("\xe2\x82", "");
    assert_cut("\xe2\x82\xac", "\xe2\x82\xac");
    assert_cut("\xf0\x9f\x98", "");
    assert_cut("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80");
    assert_cut("\xc0", "");                    /* the least byte that would begin one */
    assert_cut("\xf0\x9f\x98\x80\x80", "..."); /* nothing begins at a byte too many: it is shown, cut */
    assert_cut("\xff\x80\x80\x80", "");
    assert_cut("\xff\x80\x80\x80\x80\x80", "..."); /* too far from where a character could begin */
}

static void quoting_needs_room(void **state)
{
    char out[8] = "before";
    (void)state;
    assert_string_equal(error_quote(out, 0, "text", 4), "");
    assert_string_equal(out, "before");
    assert_string_equal(error_quote(out, 5, "text", 4), "text");
    assert_string_equal(error_quote(out, 4, "text", 4), "...");
    assert_string_equal(error_quote(out, 3, "text", 4), "..");
    assert_string_equal(error_quote(out, 1, "text", 4), "");
    assert_string_equal(error_quote(out, 8, "text", 0), "");
    assert_string_equal(error_quote(out, 8, "te\0xt", 3), "te\\x00");
    assert_string_equal(error_quote(out, 8, "\xe2\x82\xac", 2), "\\xe2...");
}

static void memory_that_is_out_is_told_with_its_use(void **state)
{
    utter_error error;
    (void)state;
    assert_int_equal(error_memory(&error, "a\nb"), UTTER_E_MEMORY);
    assert_int_equal(error.code, UTTER_E_MEMORY);
    assert_string_equal(
        error.text, "out of memory: no room for a\\nb (close other programs, or use a smaller model)");
    assert_int_equal(error_memory(NULL, "a"), UTTER_E_MEMORY);
    assert_int_equal(error_exit_code(UTTER_AGAIN), 0);
    assert_int_equal(error_exit_code(UTTER_END), 0);
}

/* 1: what was asked for is wrong; 2: this machine cannot do it now. */
static void exit_codes(void **state)
{
    (void)state;
    static const utter_status asked[] = {UTTER_E_ARGUMENT, UTTER_E_FILE, UTTER_E_MODEL, UTTER_E_NUMBER},
                              machine[] = {UTTER_E_MEMORY, UTTER_E_IO, UTTER_E_DEVICE,
                                  UTTER_E_CANCELLED, UTTER_E_INTERNAL};
    assert_int_equal(error_exit_code(UTTER_OK), 0);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        assert_int_equal(error_exit_code(asked[i]), 1);
    }
    for (size_t i = 0; i < sizeof machine / sizeof *machine; i++) {
        assert_int_equal(error_exit_code(machine[i]), 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(error_set_formats_and_returns),
        cmocka_unit_test(reasons_are_one_harmless_line),
        cmocka_unit_test(long_reasons_are_cut_at_a_character),
        cmocka_unit_test(quote_escapes_what_does_not_print),
        cmocka_unit_test(quote_escapes_no_more_than_that),
        cmocka_unit_test(quote_keeps_every_character),
        cmocka_unit_test(quote_cuts_long_text),
        cmocka_unit_test(a_cut_drops_what_may_be_half_a_character),
        cmocka_unit_test(quoting_needs_room),
        cmocka_unit_test(memory_that_is_out_is_told_with_its_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
