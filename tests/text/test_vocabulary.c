/* SPDX-License-Identifier: Apache-2.0
 * vocab.json by itself: the byte alphabet, how tokens and ids may be written, where the first wrong byte is, and that
 * nothing behind the file counts. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "tests/heap.h"
#include "tests/text/small.h"

enum { ALPHABET_END = 324 };

/* What stands in place of the file: its text, how much of that is the file, and how large it may be. */
static const char *file_text;
static size_t file_bytes, file_limit;

static utter_status read_text(
    const char *path, size_t limit, char **text, size_t *bytes, utter_error *error)
{
    const size_t n = strlen(file_text) + 1;
    file_limit = limit;
    *bytes = file_bytes;
    *text = memory_new(n, 1);
    if (!*text) {
        return error_memory(error, path);
    }
    memcpy(*text, file_text, n);
    return UTTER_OK;
}

static utter_status open_text(struct vocabulary *v, const char *text, size_t bytes, utter_error *error)
{
    file_text = text;
    file_bytes = bytes;
    return vocabulary_open(v, "v.json", read_text, error);
}

static void refused(const char *text, const char *reason)
{
    struct vocabulary v;
    utter_error error = {0};
    assert_int_equal(open_text(&v, text, strlen(text), &error), UTTER_E_FILE);
    assert_string_equal(error.text, reason);
    assert_null(v.bytes);
    assert_null(v.entry);
    assert_null(v.slot);
}

/* Printable characters of Latin-1 stand for themselves, and for the other bytes, in their order, those from U+0100 on:
 * no byte has two. */
static void each_byte_has_one_character(void **state)
{
    bool taken[256] = {false};
    int others = 0;
    (void)state;
    for (uint32_t code = 0; code < 256; code++) {
        const bool printable =
            (code > ' ' && code <= '~') || (code >= 0xa1 && code <= 0xff && code != 0xad);
        assert_int_equal(vocabulary_byte(code), printable ? (int)code : -1);
        taken[code] = printable;
    }
    for (uint32_t code = 256; code < ALPHABET_END; code++) {
        while (taken[others]) {
            others++;
        }
        assert_int_equal(vocabulary_byte(code), others++);
    }
    assert_int_equal(others, 0xae);
    static const uint32_t none[] = {ALPHABET_END, ALPHABET_END + 1, 0x1000, 0x110000, UINT32_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(vocabulary_byte(none[i]), -1);
    }
}

#define AT(byte) "v.json: byte " #byte ": "
#define ID "an id must be a whole number from 0 to 4194303"
#define ALPHABET "a token has a character that stands for no byte"
/* What is no vocabulary, and why. */
static const char *const wrong[][2] = {
    {"", AT(0) "an object of tokens and ids was expected"},
    {" \t[]", AT(2) "an object of tokens and ids was expected"},
    {"{\"a\":1 \"b\":2}", AT(7) "',' or '}' was expected"},
    {"{\"a\":1", AT(6) "',' or '}' was expected"},
    {"{\"a\":1,}", AT(7) "a token in quotes was expected"},
    {"{\v\"a\":1}", AT(1) "a token in quotes was expected"},
    {"{\f\"a\":1}", AT(1) "a token in quotes was expected"},
    {"{\b\"a\":1}", AT(1) "a token in quotes was expected"},
    {"{\016\"a\":1}", AT(1) "a token in quotes was expected"},
    {"{ \r\n\t\"a\" 1}", AT(9) "':' was expected"},
    {"{\"a\":-1}", AT(5) ID},
    {"{\"a\": }", AT(6) ID},
    {"{\"a\":/}", AT(5) ID},
    {"{\"a\"::}", AT(5) ID},
    {"{\"a\":", AT(5) ID},
    {"{\"a\":00}", AT(7) ID},
    {"{\"a\":01}", AT(7) ID},
    {"{\"a\":1.5}", AT(6) ID},
    {"{\"a\":1e5}", AT(6) ID},
    {"{\"a\":1E5}", AT(6) ID},
    {"{\"a\":4194304}", AT(12) ID},
    {"{\"a\":41943030}", AT(13) ID},
    {"{\"a\":1} x", AT(8) "the file goes on behind the object"},
    {"{} {}", AT(3) "the file goes on behind the object"},
    {"{\"\":1}", AT(3) "an empty token"},
    {"{\"a", AT(3) "the file ends inside a token"},
    {"{\"", AT(2) "the file ends inside a token"},
    {"{\"\\", AT(3) "not an escape of JSON"},
    {"{\"a\\x\":1}", AT(5) "not an escape of JSON"},
    {"{\"\\u004", AT(4) "not an escape of JSON"},
    {"{\"\\u00/1\":1}", AT(8) "not an escape of JSON"},
    {"{\"\\u00:1\":1}", AT(8) "not an escape of JSON"},
    {"{\"\\u00@1\":1}", AT(8) "not an escape of JSON"},
    {"{\"\\u00`1\":1}", AT(8) "not an escape of JSON"},
    {"{\"\\u006G\":1}", AT(8) "not an escape of JSON"},
    {"{\"\\u006g\":1}", AT(8) "not an escape of JSON"},
    {"{\"\\u0020\":1}", AT(8) ALPHABET},
    {"{\"a\\n\":1}", AT(5) ALPHABET},
    {"{\"a b\":1}", AT(4) ALPHABET},
    {"{\"\xc4\":1}", AT(4) ALPHABET},
    {"{\"\xc4", AT(3) ALPHABET},
    {"{\"\xc1\xa1\":1}", AT(3) ALPHABET},
    {"{\"\xc4\xe1\":1}", AT(4) ALPHABET},
    {"{\"\xc5\x84\":1}", AT(4) ALPHABET},
    {"{\"\xc6\x80\":1}", AT(3) ALPHABET},
    {"{\"a\":1, \"a\":2}", AT(9) "this token comes a second time"},
    {"{\"b\":7,\"a\":8,\"c\":8}", AT(14) "this token has an id that another one has too"},
    {"{}", "v.json: no token for the byte 0x00 (is this a byte-level vocabulary?)"},
    {"{\"\\u0100\":4194303,\"b\":0}",
        "v.json: no token for the byte 0x01 (is this a byte-level vocabulary?)"},
};
#undef AT

static void the_first_wrong_byte_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        refused(wrong[i][0], wrong[i][1]);
    }
    assert_int_equal(file_limit, 268435456);
    for (int id = 4194296; id <= 4194303; id++) { /* whichever it is of eight in a row */
        char text[64];
        snprintf(text, sizeof text, "{\"a\":%d,\"b\":%d}", id, id);
        refused(text, "v.json: byte 14: this token has an id that another one has too");
        snprintf(text, sizeof text, "{\"a\":%d,\"b\":%d}", id, id - 1);
        refused(text, "v.json: no token for the byte 0x00 (is this a byte-level vocabulary?)");
    }
}

static ptrdiff_t find(const struct vocabulary *v, const char *text)
{
    return vocabulary_find(v, text, strlen(text));
}

/* Entries stand in the order of the file, decoded, however their characters are written. */
static void tokens_are_found_by_their_bytes(void **state)
{
    static const char *const tokens[] = {"J:Oo", "jk", "/a", "a\"b", "b\\c", "\xe4\xc4", " \t",
        "eightlet", "ninelette", "sixteen-letters-"};
    char text[SMALL_BYTES];
    struct vocabulary v;
    (void)state;
    small_vocabulary(text,
        ",\"\\u004a\\u003A\\u004f\\u006F\" : "
        "300,\"\\u006A\\u006b\":299,\"\\/a\":301,\"a\\\"b\":302,\"b\\\\c\":303,"
        "\"\\u00e4\\u00C4\":304,\"\\u0120\\u0109\":4194303,\"eightlet\":305,\"ninelette\":306,"
        "\"sixteen-letters-\":307 \r\n} \n");
    *strrchr(text, '}') = 0;
    const size_t n_file = strlen(text);
    /* What lies behind the file is none of it. */
    strcat(text, " x");
    assert_int_equal(open_text(&v, text, n_file, NULL), UTTER_OK);
    assert_int_equal(v.n, SMALL_END + sizeof tokens / sizeof *tokens);
    assert_int_equal(v.largest_id, 4194303);
    assert_true(v.capacity >= v.n);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        const size_t index = SMALL_END + i, n = strlen(tokens[i]);
        assert_int_equal(find(&v, tokens[i]), index);
        assert_int_equal(v.entry[index].bytes, n);
        assert_memory_equal(v.bytes + v.entry[index].offset, tokens[i], n);
        assert_true(vocabulary_is(&v, index, tokens[i], n));
        assert_false(vocabulary_is(&v, index, tokens[i], n - 1));
        assert_false(vocabulary_is(&v, index - 1, tokens[i], n));
    }
    assert_false(vocabulary_is(&v, v.n, "ab", 2));
    assert_int_equal(v.entry[find(&v, "jk")].id, 299);
    assert_int_equal(v.entry[find(&v, " \t")].id, 4194303);
    assert_int_equal(find(&v, "sixteen-letters"), -1);
    assert_int_equal(find(&v, "sixteen-letters_"), -1);
    assert_int_equal(find(&v, "jkk"), -1);
    for (int byte = 0; byte < 256; byte++) {
        const char one = (char)byte;
        assert_int_equal(vocabulary_find(&v, &one, 1), byte);
        assert_int_equal(v.entry[byte].id, byte);
    }
    vocabulary_close(&v);
    assert_int_equal(v.n, 0);
    vocabulary_close(&v);
}

/* Neither of one that was closed nor of one that was refused. */
static void nothing_stays_of_a_vocabulary(void **state)
{
    char text[SMALL_BYTES], twice[SMALL_BYTES];
    (void)state;
    small_vocabulary(text, "");
    small_vocabulary(twice, ",\"ab\":400");
    for (int round = 0; round < 16;
         round++) { /* until the heap has in store what it keeps of freed blocks */
        const size_t before = heap_used();
        struct vocabulary v;
        assert_int_equal(open_text(&v, text, strlen(text), NULL), UTTER_OK);
        vocabulary_close(&v);
        assert_int_equal(open_text(&v, twice, strlen(twice), NULL), UTTER_E_FILE);
        assert_true(round < 15 || heap_used() == before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_has_one_character),
        cmocka_unit_test(the_first_wrong_byte_is_told),
        cmocka_unit_test(tokens_are_found_by_their_bytes),
        cmocka_unit_test(nothing_stays_of_a_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
