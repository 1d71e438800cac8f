/* SPDX-License-Identifier: Apache-2.0
 * JSON from anywhere: what is refused is named, what is deep costs nothing, fields are in their ranges. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "tests/heap.h"

static utter_status parse(json_t **root, const char *text, utter_error *error)
{
    return json_text(root, text, strlen(text), JSON_SMALL, "a.json", error);
}

static void refused_texts_are_named_with_line_and_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "a.json: not usable JSON: line 1"},
        {"nonsense", "line 1, column 8"},
        {"{\n\"a\": 1,\n}", "line 3, column 1"},
        {"{\"a\":1} x", "end of file expected"},
        {"{\"a\":1,\"a\":2}", "duplicate object key"},
        {"{\"a\":[1,{\"b\":1,\"b\":1}]}", "duplicate object key"},
        {"{\"a\":99999999999999999999}", "too big integer"},
        {"{\"a\":1e999}", "real number overflow"},
        {"{\"a\":NaN}", "invalid token"},
        {"{\"a\":\"\\ud800\"}", "invalid Unicode"},
        {"{\"a\":\"\xff\"}", "unable to decode byte 0xff"},
        {"{\"a\":\"\n\"}", "line 1"},
        {"\xef\xbb\xbf{}", "line 1"},
        {"\"a string\"", "line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *root = (json_t *)1;
        utter_error error = {.text = ""};
        utter_status status = parse(&root, cases[i].text, &error);
        if (status != UTTER_E_FILE || root || !strstr(error.text, cases[i].words) ||
            strchr(error.text, '\n')) {
            fail_msg("%s: status %d, \"%s\", want \"%s\"", cases[i].text, status, error.text,
                cases[i].words);
        }
    }
}

static void values_are_counted_outside_strings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {{"", 1}, {"{\"a\": 1, \"b\": 2}", 3}, {"[[], {}, \"[{,\\\",\"]", 6}, {"[\"\\", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *root;
        utter_error error = {.text = ""};
        const size_t bytes = strlen(cases[i].text);
        json_decref(json_text(&root, cases[i].text, bytes, cases[i].n, "a.json", &error) ? NULL : root);
        assert_null(strstr(error.text, "values"));
        assert_int_equal(
            json_text(&root, cases[i].text, bytes, cases[i].n - 1, "a.json", &error), UTTER_E_FILE);
        assert_null(root);
        assert_non_null(strstr(error.text, "a.json has more than"));
    }
}

static void depth_is_bounded_outside_strings(void **state)
{
    (void)state;
    char text[512];
    json_t *root;
    utter_error error;
    for (int depth = 63; depth < 67; depth++) {
        for (int open = 0; open < 2; open++) {
            char *at = text;
            for (int i = 0; i < depth; i++) {
                at += strlen(strcpy(at, open ? "[" : i + 1 == depth ? "{" : "{\"\":"));
            }
            for (int i = 0; i < depth; i++) {
                *at++ = open ? ']' : '}';
            }
            *at = 0;
            assert_int_equal(parse(&root, text, &error), depth <= 64 ? UTTER_OK : UTTER_E_FILE);
            if (depth > 64) {
                assert_non_null(strstr(error.text, "line 1: nested deeper than 64"));
            }
            json_decref(root);
        }
    }
    /* Brackets in strings, and behind quotes that are escaped, do not count; closed ones count no more. */
    strcpy(text, "[\"\\\"");
    memset(text + 4, '[', 100);
    strcpy(text + 104, "\\\\\"]");
    assert_int_equal(parse(&root, text, &error), UTTER_OK);
    json_decref(root);
    strcpy(text, "[0");
    for (int i = 0; i < 100; i++) {
        strcpy(text + 2 + 3 * i, i % 2 ? ",[]" : ",{}");
    }
    strcpy(text + 302, "]");
    assert_int_equal(parse(&root, text, &error), UTTER_OK);
    json_decref(root);
    memset(text, ']', 100);
    strcpy(text + 100, "[]");
    assert_int_equal(parse(&root, text, &error), UTTER_E_FILE);
}

static void deep_text_is_cheap_to_refuse(void **state)
{
    (void)state;
    static char text[1 << 20];
    memset(text, '[', sizeof text);
    text[10] = '\n';
    json_t *root;
    utter_error error;
    assert_int_equal(
        json_text(&root, text, sizeof text, sizeof text + 1, "a.json", &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "line 2: nested"));
}

static const char object_text[] =
    "{\"int\": 7, \"real\": 2.5, \"text\": \"hi\", \"yes\": true, \"null\": null,"
    " \"object\": {}, \"array\": [], \"large\": 4611686018427387904}";

static void fields_give_values_in_range(void **state)
{
    (void)state;
    json_t *root;
    utter_error error;
    assert_int_equal(parse(&root, object_text, &error), UTTER_OK);
    struct json_fields f = {.object = root, .where = "a.json: part", .error = &error};
    assert_int_equal(json_need_int(&f, "int", 7, 7), 7);
    assert_int_equal(json_take_int(&f, "int", 0, 9, 1), 7);
    assert_int_equal(json_take_int(&f, "null", 0, 9, 12), 12);
    assert_int_equal(json_take_int(&f, "missing", 0, 9, -3), -3);
    assert_int_equal(json_need_int(&f, "large", 0, INT64_MAX), 4611686018427387904);
    assert_true(json_need_number(&f, "real", 2.5, 2.5) == 2.5);
    assert_true(json_need_number(&f, "int", 0, 10) == 7.0);
    assert_true(json_take_number(&f, "missing", 0, 10, -1.5) == -1.5);
    assert_true(json_take_bool(&f, "yes", false));
    assert_true(json_take_bool(&f, "missing", true));
    assert_false(json_take_bool(&f, "null", false));
    assert_string_equal(json_need_string(&f, "text"), "hi");
    assert_string_equal(json_take_string(&f, "text", NULL), "hi");
    assert_null(json_take_string(&f, "null", NULL));
    assert_non_null(json_need_object(&f, "object"));
    assert_null(json_take_object(&f, "null"));
    assert_non_null(json_need_array(&f, "array"));
    assert_int_equal(f.status, UTTER_OK);
    json_decref(root);
}

/* Calls one getter that must fail and looks for the words. */
#define FIELD_FAILS(call, words)                                                                       \
    do {                                                                                               \
        f.status = UTTER_OK;                                                                           \
        error.text[0] = 0;                                                                             \
        (void)(call);                                                                                  \
        assert_int_equal(f.status, UTTER_E_FILE);                                                      \
        assert_string_equal(error.text, "a.json: part: " words);                                       \
    } while (0)

static void fields_name_what_is_wrong(void **state)
{
    (void)state;
    json_t *root;
    utter_error error;
    assert_int_equal(parse(&root, object_text, &error), UTTER_OK);
    struct json_fields f = {.object = root, .where = "a.json: part", .error = &error};
    FIELD_FAILS(json_need_int(&f, "int", 8, 9), "\"int\" must be a whole number from 8 to 9, found 7");
    FIELD_FAILS(json_need_int(&f, "int", 0, 6), "\"int\" must be a whole number from 0 to 6, found 7");
    FIELD_FAILS(
        json_need_int(&f, "real", 0, 6), "\"real\" must be a whole number from 0 to 6, found 2.5");
    FIELD_FAILS(json_take_int(&f, "text", 0, 6, 1),
        "\"text\" must be a whole number from 0 to 6, found \"hi\"");
    FIELD_FAILS(
        json_need_int(&f, "null", 0, 6), "\"null\" must be a whole number from 0 to 6, found null");
    FIELD_FAILS(
        json_need_number(&f, "real", 3, 4.5), "\"real\" must be a number from 3 to 4.5, found 2.5");
    FIELD_FAILS(json_need_number(&f, "real", 0, 2), "\"real\" must be a number from 0 to 2, found 2.5");
    FIELD_FAILS(json_need_number(&f, "missing", 3, 4),
        "\"missing\" must be a number from 3 to 4, found nothing");
    FIELD_FAILS(json_take_bool(&f, "int", true), "\"int\" must be true or false, found 7");
    FIELD_FAILS(json_need_string(&f, "array"), "\"array\" must be a string, found an array");
    FIELD_FAILS(json_take_string(&f, "yes", ""), "\"yes\" must be a string, found true");
    FIELD_FAILS(json_need_object(&f, "array"), "\"array\" must be an object, found an array");
    FIELD_FAILS(json_take_object(&f, "text"), "\"text\" must be an object, found \"hi\"");
    FIELD_FAILS(json_need_array(&f, "object"), "\"object\" must be an array, found an object");
    /* What is returned is in range, and the first reason stays. */
    assert_int_equal(json_need_int(&f, "text", 3, 9), 3);
    assert_string_equal(json_need_string(&f, "int"), "");
    assert_string_equal(error.text, "a.json: part: \"object\" must be an array, found an object");
    json_decref(root);
}

/* Of a value that is longer than what an error shows, as much as there is room for, between its quotes. */
static void long_values_are_shown_in_part(void **state)
{
    enum { LEAST = 80, MOST = 120 };
    (void)state;
    for (size_t n = LEAST; n <= MOST; n++) {
        char text[2 * MOST];
        json_t *root;
        utter_error error;
        snprintf(text, sizeof text, "{\"a\": \"%0*d\"}", (int)n, 0);
        assert_int_equal(parse(&root, text, &error), UTTER_OK);
        struct json_fields f = {.object = root, .where = "a.json", .error = &error};
        (void)json_need_int(&f, "a", 0, 1);
        const char *shown = strstr(error.text, "found ");
        assert_non_null(shown);
        shown += strlen("found ");
        assert_int_equal(strlen(shown), min(n + 2, 95u)); /* 96 bytes with the end */
        assert_int_equal(shown[0], '"');
        assert_int_equal(shown[strlen(shown) - 1], '"');
        json_decref(root);
    }
}

/* Every prefix and every bit flip ends in a status, and what is accepted can be asked anything. */
static void broken_texts_are_survived(void **state)
{
    (void)state;
    char text[sizeof object_text];
    json_t *root;
    for (size_t n = 0; n < sizeof text - 1; n++) {
        assert_int_equal(json_text(&root, object_text, n, JSON_SMALL, "a.json", NULL), UTTER_E_FILE);
    }
    for (size_t bit = 0; bit < 8 * (sizeof text - 1); bit++) {
        memcpy(text, object_text, sizeof text);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        utter_status status = json_text(&root, text, sizeof text - 1, JSON_SMALL, "a.json", NULL);
        assert_int_equal(status, root ? UTTER_OK : UTTER_E_FILE);
        struct json_fields f = {.object = root, .where = "a.json"};
        int64_t value = json_take_int(&f, "int", -3, 12, 5);
        assert_true(value >= -3 && value <= 12);
        json_decref(root);
    }
}

static void files_are_read_with_a_limit(void **state)
{
    (void)state;
    const char *path = support_path("a.json");
    json_t *root;
    utter_error error;
    support_write_file(path, object_text, sizeof object_text - 1);
    assert_int_equal(json_file(&root, path, sizeof object_text - 1, JSON_SMALL, &error), UTTER_OK);
    assert_int_equal(json_object_size(root), 8);
    json_decref(root);
    assert_int_equal(json_file(&root, path, sizeof object_text - 2, JSON_SMALL, &error), UTTER_E_FILE);
    assert_null(root);
    assert_int_equal(json_file(&root, support_path("b.json"), 100, JSON_SMALL, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "b.json: cannot open"));
    for (int call = SUPPORT_MALLOC; call <= SUPPORT_READ; call++) {
        SUPPORT_EACH_FAILURE((enum support_call)call, n)
        {
            utter_status status = json_file(&root, path, 1000, JSON_SMALL, &error);
            assert_int_equal(status == UTTER_OK, !support_failed());
            assert_int_equal(root != NULL, !support_failed());
            assert_true(call != SUPPORT_MALLOC || status == UTTER_OK || status == UTTER_E_MEMORY);
            json_decref(root);
        }
    }
}

/* Each allocation, also one in the middle of a string that grows: whole, or nothing and the reason. */
static void what_lacks_memory_is_told(void **state)
{
    static const char text[] = "{\"0123456789 0123456789 0123456789\": [\"012345678901234\", "
                               "\"0123456789012345678901234567890\", "
                               "\"012345678901234567890123456789012345678901234567890123456789012\", "
                               "1.25, {\"a\": \"\\u00e4\"}]}";
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        json_t *root;
        utter_error error = {.text = ""};
        utter_status status = parse(&root, text, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(root != NULL, status == UTTER_OK);
        assert_true(status == UTTER_OK || error.text[0]);
        json_decref(root);
    }
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        json_t *root = json_pack("{s:s}", "a", "b");
        json_object_set_new(
            root, "c", json_string("d")); /* left out without memory, and nobody looks */
        char *written = json_text_write(root, JSON_COMPACT);
        assert_int_equal(written != NULL, !support_failed());
        if (written) {
            assert_string_equal(written, "{\"a\":\"b\",\"c\":\"d\"}");
        }
        memory_plain_free(written);
        json_decref(root);
    }
}

/* A text that lacks a part is given back, and so is what a file was read into. */
static void nothing_stays_of_what_lacks(void **state)
{
    (void)state;
    support_write_file(support_path("s.json"), "{\"a\":1}", 7);
    for (int round = 0; round < 16;
         round++) { /* until the heap has in store what it keeps of freed blocks */
        const size_t before = heap_used();
        json_t *root = json_pack("{s:s}", "a", "b"), *read;
        support_fail_malloc_at(1);
        json_object_set_new(root, "c", json_string("d"));
        support_fail_off();
        assert_true(json_text_lacks());
        assert_null(json_text_write(root, JSON_COMPACT));
        assert_false(json_text_lacks());
        json_decref(root);
        assert_int_equal(json_file(&read, support_path("s.json"), 100, JSON_SMALL, NULL), UTTER_OK);
        json_decref(read);
        assert_true(round < 15 || heap_used() == before);
    }
}

static void what_is_never_written_is_no_loss(void **state)
{
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        json_decref(json_pack("{s:s}", "a", "b"));
        const bool lacked = support_failed();
        json_text_forget();
        json_t *next = json_string("next");
        char *written = json_text_write(next, JSON_ENCODE_ANY);
        assert_int_equal(written != NULL, lacked || !support_failed());
        memory_plain_free(written);
        json_decref(next);
    }
}

/* What the parser has made of it goes in another order then, and must not be looked for one by one. */
static void a_fault_at_the_end_costs_no_more(void **state)
{
    static const char part[] = "{\"a\":{}},";
    enum { N = 60000, BYTES = sizeof part - 1 };
    char *text = malloc(3 + (size_t)N * BYTES);
    clock_t took[2]; /* of a processor */
    (void)state;
    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < N; i++) {
        memcpy(text + 1 + i * BYTES, part, BYTES);
    }
    for (int bad = 0; bad < 2; bad++) {
        json_t *root;
        utter_error error;
        text[1 + (size_t)N * BYTES] = bad ? '!' : '0';
        text[2 + (size_t)N * BYTES] = ']';
        took[bad] = -clock();
        utter_status status = json_text(&root, text, 3 + (size_t)N * BYTES, JSON_LARGE, "it", &error);
        json_decref(root);
        took[bad] += clock();
        assert_int_equal(status, bad ? UTTER_E_FILE : UTTER_OK);
    }
    free(text);
    assert_true(took[1] < 10 * took[0] + CLOCKS_PER_SEC / 10);
}

int main(void)
{
    json_object_seed(1); /* else jansson asks the system for one, with calls that would be counted */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_texts_are_named_with_line_and_reason),
        cmocka_unit_test(values_are_counted_outside_strings),
        cmocka_unit_test(depth_is_bounded_outside_strings),
        cmocka_unit_test(deep_text_is_cheap_to_refuse),
        cmocka_unit_test(fields_give_values_in_range),
        cmocka_unit_test(fields_name_what_is_wrong),
        cmocka_unit_test(long_values_are_shown_in_part),
        cmocka_unit_test(broken_texts_are_survived),
        cmocka_unit_test(files_are_read_with_a_limit),
        cmocka_unit_test(what_lacks_memory_is_told),
        cmocka_unit_test(nothing_stays_of_what_lacks),
        cmocka_unit_test(what_is_never_written_is_no_loss),
        cmocka_unit_test(a_fault_at_the_end_costs_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
