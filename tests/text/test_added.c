/* SPDX-License-Identifier: Apache-2.0
 * Added tokens and merges by themselves: what their files may say, where they are wrong, and how the tree of the added
 * ones is searched. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/heap.h"
#include "tests/text/small.h"
#include "text/added.h"
#include "text/bpe.h"

/* What stands in place of each file. */
static const char *file_text;
static size_t file_limit;

static utter_status read_text(
    const char *path, size_t limit, char **text, size_t *bytes, utter_error *error)
{
    file_limit = limit;
    *bytes = strlen(file_text);
    *text = memory_new(*bytes + 1, 1);
    if (!*text) {
        return error_memory(error, path);
    }
    memcpy(*text, file_text, *bytes + 1);
    return UTTER_OK;
}

static struct vocabulary vocabulary;

static int open_vocabulary(void **state)
{
    static char text[SMALL_BYTES];
    (void)state;
    small_vocabulary(text, "");
    file_text = text;
    return vocabulary_open(&vocabulary, "vocab.json", read_text, NULL);
}

static int close_vocabulary(void **state)
{
    (void)state;
    vocabulary_close(&vocabulary);
    return 0;
}

static utter_status open_added(struct added *added, const char *text, utter_error *error)
{
    file_text = text;
    return added_open(added, &vocabulary, "t.json", read_text, error);
}

static void refused(const char *decoder, utter_status status, const char *reason)
{
    struct added added;
    char text[1024];
    utter_error error = {0};
    snprintf(text, sizeof text, "{\"added_tokens_decoder\":{%s}}", decoder);
    assert_int_equal(open_added(&added, text, &error), status);
    assert_string_equal(error.text, reason);
    assert_null(added.raw.node);
    assert_null(added.normal.node);
    assert_int_equal(added.largest_id, -1);
}

static void each_wrong_added_token_is_named(void **state)
{
#define NEXT " (that of the same token in vocab.json, else the next free one)"
    static const struct {
        const char *decoder;
        utter_status status;
        const char *reason;
    } cases[] = {
        {"\"00\":{}", UTTER_E_FILE,
            "t.json: added_tokens_decoder: \"00\" must be an id and hold an object"},
        {"\"\":{}", UTTER_E_FILE,
            "t.json: added_tokens_decoder: \"\" must be an id and hold an object"},
        {"\"26a\":{}", UTTER_E_FILE,
            "t.json: added_tokens_decoder: \"26a\" must be an id and hold an object"},
        {"\"-1\":{}", UTTER_E_FILE,
            "t.json: added_tokens_decoder: \"-1\" must be an id and hold an object"},
        {"\"4194304\":{}", UTTER_E_FILE,
            "t.json: added_tokens_decoder: \"4194304\" must be an id and hold an object"},
        {"\"10000000\":{}", UTTER_E_FILE,
            "t.json: added_tokens_decoder: \"10000000\" must be an id and hold an object"},
        {"\"262\":[]", UTTER_E_FILE,
            "t.json: added_tokens_decoder: \"262\" must be an id and hold an object"},
        {"\"4194303\":{\"content\":\"<x>\"}", UTTER_E_FILE,
            "t.json: added token 4194303: the id must be 262" NEXT},
        {"\"9\":{\"content\":\"<x>\"}", UTTER_E_FILE, "t.json: added token 9: the id must be 262" NEXT},
        {"\"1\":{\"content\":\"\\u0100\"}", UTTER_E_FILE,
            "t.json: added token 1: the id must be 0" NEXT},
        {"\"262\":{\"content\":\"<x>\"},\"97\":{\"content\":\"a\"},\"265\":{\"content\":\"<y>\"}",
            UTTER_E_FILE, "t.json: added token 265: the id must be 263" NEXT},
        {"\"262\":{\"content\":\"\"}", UTTER_E_FILE,
            "t.json: added token 262: content must have 1 to 256 bytes"},
        {"\"262\":{\"content\":7}", UTTER_E_FILE,
            "t.json: added token 262: \"content\" must be a string, found 7"},
        {"\"262\":{\"content\":\"<x>\",\"rstrip\":true}", UTTER_E_MODEL,
            "t.json: added token 262: lstrip, rstrip and single_word are not supported"},
        {"\"262\":{\"content\":\"<x>\",\"lstrip\":true}", UTTER_E_MODEL,
            "t.json: added token 262: lstrip, rstrip and single_word are not supported"},
        {"\"262\":{\"content\":\"<x>\",\"single_word\":true}", UTTER_E_MODEL,
            "t.json: added token 262: lstrip, rstrip and single_word are not supported"},
        {"\"262\":{\"content\":\"<x>\"},\"263\":{\"content\":\"<x>\"}", UTTER_E_FILE,
            "t.json: added token 263: the same content as another added token"},
    };
#undef NEXT
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refused(cases[i].decoder, cases[i].status, cases[i].reason);
    }
    assert_int_equal(file_limit, 16777216);
}

/* The id of the added token that begins a text, in one of the trees, and how long it is; -1: none, -2: it is open. */
static int32_t match(const struct added_tree *tree, const char *text, bool final, size_t *length)
{
    int32_t id = -3;
    const enum added_match found = added_match(tree, text, strlen(text), final, length, &id);
    return found == ADDED_FOUND ? id : found == ADDED_OPEN ? -2 : -1;
}

static void the_longest_token_is_found(void **state)
{
    struct added added;
    size_t n = 0;
    (void)state;
    /* In any order; one of the vocabulary keeps its id, and those in the normal form lie in a tree of their own. */
    assert_int_equal(open_added(&added,
                         "{\"added_tokens_decoder\":{\"264\":{\"content\":\"<xyz>\",\"special\":true},"
                         "\"0\":{\"content\":\"\\u0100\",\"special\":true},"
                         "\"262\":{\"content\":\"<x\",\"special\":true},"
                         "\"97\":{\"content\":\"a\",\"normalized\":false},"
                         "\"263\":{\"content\":\"e\\u0301\",\"special\":false}}}",
                         NULL),
        UTTER_OK);
    assert_int_equal(added.largest_id, 264);
    assert_int_equal(match(&added.raw, "<x", true, &n), 262);
    assert_int_equal(n, 2);
    assert_int_equal(match(&added.raw, "<x", false, &n), -2);
    assert_int_equal(match(&added.raw, "<xyz", true, &n), 262);
    assert_int_equal(n, 2);
    assert_int_equal(match(&added.raw, "<xyz", false, &n), -2);
    assert_int_equal(match(&added.raw, "<xyz>", false, &n), 264);
    assert_int_equal(n, 5);
    assert_int_equal(match(&added.raw, "<xyz>>", false, &n), 264);
    assert_int_equal(match(&added.raw, "<xyw", false, &n), 262);
    assert_int_equal(n, 2);
    assert_int_equal(match(&added.raw, "<", false, &n), -2);
    assert_int_equal(match(&added.raw, "<", true, &n), -1);
    assert_int_equal(match(&added.raw, "<y", false, &n), -1);
    assert_int_equal(match(&added.raw, "ab", false, &n), 97);
    assert_int_equal(n, 1);
    assert_int_equal(match(&added.raw, "\u0100", false, &n), 0);
    assert_int_equal(match(&added.raw, "\u00e9", true, &n), -1);
    assert_int_equal(match(&added.normal, "\u00e9", false, &n), 263);
    assert_int_equal(n, 2);
    for (int byte = 0; byte < 256; byte++) {
        assert_int_equal(added.raw.begins[byte], byte == '<' || byte == 'a' || byte == 0xc4);
        assert_int_equal(added.normal.begins[byte], byte == 0xc3);
    }
    added_close(&added);
    assert_null(added.raw.node);
    added_close(&added);
}

/* As long as may be, and a byte longer. */
static void a_token_has_up_to_256_bytes(void **state)
{
    enum { MOST = 256 };
    char content[MOST + 2], text[1024];
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct added added;
        size_t n;
        utter_error error = {0};
        memset(content, 'q', sizeof content);
        content[MOST + more] = 0;
        snprintf(
            text, sizeof text, "{\"added_tokens_decoder\":{\"262\":{\"content\":\"%s\"}}}", content);
        assert_int_equal(open_added(&added, text, &error), more ? UTTER_E_FILE : UTTER_OK);
        if (!more) {
            assert_int_equal(match(&added.normal, content, false, &n), 262);
            assert_int_equal(n, MOST);
            added_close(&added);
        }
    }
}

/* A file of 65,536 values has room for half as many. */
static void there_may_be_many_added_tokens(void **state)
{
    enum { MANY = 32000, EACH = 40, FIRST = 262 };
    char *text = malloc((MANY + 1000) * EACH);
    (void)state;
    assert_non_null(text);
    for (int more = 0; more < 1000; more += 999) {
        struct added added;
        size_t n;
        utter_error error = {0};
        char *at = text + sprintf(text, "{\"added_tokens_decoder\":{");
        for (int i = 0; i < MANY + more; i++) {
            at += sprintf(at, "%s\"%d\":{\"content\":\"<%d>\"}", i ? "," : "", FIRST + i, i);
        }
        strcpy(at, "}}");
        assert_int_equal(open_added(&added, text, &error), more ? UTTER_E_FILE : UTTER_OK);
        assert_string_equal(error.text, more ? "t.json has more than 65536 values" : "");
        if (!more) {
            assert_int_equal(match(&added.normal, "<31999>", true, &n), FIRST + MANY - 1);
            assert_int_equal(n, 7);
            assert_int_equal(match(&added.normal, "<0>", true, &n), FIRST);
            assert_int_equal(added.largest_id, FIRST + MANY - 1);
            added_close(&added);
        }
    }
    free(text);
}

/* ---- Merges ---- */

static utter_status open_merges(struct bpe *bpe, const char *text, utter_error *error)
{
    file_text = text;
    return bpe_open(bpe, &vocabulary, "m.txt", read_text, error);
}

static void each_wrong_merge_is_told_with_its_line(void **state)
{
#define TWO "two tokens with a space between were expected"
    static const char *const cases[][2] = {{"a\n", "m.txt: line 1: " TWO},
        {"a b\n a\n", "m.txt: line 2: " TWO}, {"\n\na b \n", "m.txt: line 3: " TWO},
        {"#version: 0.2\na\n", "m.txt: line 2: " TWO},
        {"a b\n#version: 0.2\n", "m.txt: line 2: the bytes \"#version:\" are no token of vocab.json"},
        {"#version 0.2\n", "m.txt: line 1: the bytes \"#version\" are no token of vocab.json"},
        {"#version:", "m.txt: 0 merges, and 6 tokens of vocab.json need one each (is it cut short?)"},
        {"#version", "m.txt: line 1: " TWO},
        {"a c\n", "m.txt: line 1: the bytes \"ac\" are no token of vocab.json"},
        {"a \u010abc\n", "m.txt: line 1: the bytes \"\\nbc\" are no token of vocab.json"},
        {"zz a\n", "m.txt: line 1: the bytes \"zz\" are no token of vocab.json"},
        {"a b\r\nab c\r\na b\r\n", "m.txt: line 3: this merge comes a second time"},
        {"a \r\n", "m.txt: line 1: " TWO}, {"a b\r\r\n", "m.txt: line 1: " TWO},
        {"\n\n", "m.txt: 0 merges, and 6 tokens of vocab.json need one each (is it cut short?)"},
        {"# #\na a\naa aa\na b\nab c",
            "m.txt: 5 merges, and 6 tokens of vocab.json need one each (is it cut short?)"}};
#undef TWO
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bpe bpe;
        utter_error error = {0};
        assert_int_equal(open_merges(&bpe, cases[i][0], &error), UTTER_E_FILE);
        assert_string_equal(error.text, cases[i][1]);
        assert_null(bpe.slot);
    }
    assert_int_equal(file_limit, 268435456);
}

/* In whatever order merges stand, each makes its own token, and comes as early as its line. */
static void merges_are_found_with_their_ranks(void **state)
{
    static const char *const orders[] = {SMALL_MERGES,
        "#version: 0.2\n\naa aa\n\u0120 a\n\n# #\nab c\na a\na b",
        "a b\r\nab c\r\n# #\r\n\u0120 a\r\na a\r\naa aa\r\n"};
    static const struct {
        int32_t left, right, id;
        uint32_t ranks[3];
    } merges[] = {{'a', 'b', SMALL_AB, {0, 5, 0}}, {SMALL_AB, 'c', SMALL_ABC, {1, 3, 1}},
        {'#', '#', SMALL_HASHES, {2, 2, 2}}, {' ', 'a', SMALL_SPACE_A, {3, 1, 3}},
        {'a', 'a', SMALL_AA, {4, 4, 4}}, {SMALL_AA, SMALL_AA, SMALL_AAAA, {5, 0, 5}}};
    (void)state;
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        struct bpe bpe;
        assert_int_equal(open_merges(&bpe, orders[k], NULL), UTTER_OK);
        for (int byte = 0; byte < 256; byte++) {
            assert_int_equal(bpe.byte_id[byte], byte);
        }
        for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
            const struct bpe_merge *merge = bpe_find(&bpe, merges[i].left, merges[i].right);
            assert_int_equal(merge->id, merges[i].id);
            assert_int_equal(merge->rank, merges[i].ranks[k]);
            assert_true(merge->pair == bpe_pair(merges[i].left, merges[i].right));
            assert_int_equal(bpe_find(&bpe, merges[i].right, merges[i].left)->id,
                merges[i].left == merges[i].right ? merges[i].id : -1);
        }
        size_t n_free = 0;
        for (size_t i = 0; i <= bpe.slot_mask; i++) {
            n_free += bpe.slot[i].id < 0;
        }
        assert_int_equal(n_free, bpe.slot_mask + 1 - 6);
        bpe_close(&bpe);
        bpe_close(&bpe);
    }
}

static void nothing_stays_of_the_files(void **state)
{
    static const char *const added_texts[] = {
        "{\"added_tokens_decoder\":{\"262\":{\"content\":\"e\\u0301x\"}}}",
        "{\"added_tokens_decoder\":{\"262\":{\"content\":\"<x>\"},\"263\":{\"content\":\"<x>\"}}}",
        "[]", "{"};
    static const char *const merge_texts[] = {SMALL_MERGES, "a b\na b\n"};
    (void)state;
    for (int round = 0; round < 16;
         round++) { /* until the heap has in store what it keeps of freed blocks */
        const size_t before = heap_used();
        for (size_t i = 0; i < sizeof added_texts / sizeof *added_texts; i++) {
            struct added added;
            if (open_added(&added, added_texts[i], NULL) == UTTER_OK) {
                added_close(&added);
            }
        }
        for (size_t i = 0; i < sizeof merge_texts / sizeof *merge_texts; i++) {
            struct bpe bpe;
            if (open_merges(&bpe, merge_texts[i], NULL) == UTTER_OK) {
                bpe_close(&bpe);
            }
        }
        struct tokenizer *t = small_open(PRETOKENIZER_NATIVE);
        struct ids ids = {0};
        assert_int_equal(tokenizer_encode(t, "abc e\u0301x \u0301", 11, &ids, NULL), UTTER_OK);
        assert_int_equal(tokenizer_encode(t, "abc \xff", 5, &ids, NULL), UTTER_E_ARGUMENT);
        ids_fini(&ids);
        tokenizer_close(&t);
        assert_true(round < 15 || heap_used() == before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_added_token_is_named),
        cmocka_unit_test(the_longest_token_is_found),
        cmocka_unit_test(a_token_has_up_to_256_bytes),
        cmocka_unit_test(there_may_be_many_added_tokens),
        cmocka_unit_test(each_wrong_merge_is_told_with_its_line),
        cmocka_unit_test(merges_are_found_with_their_ranks),
        cmocka_unit_test(nothing_stays_of_the_files),
    };
    return cmocka_run_group_tests(tests, open_vocabulary, close_vocabulary);
}
