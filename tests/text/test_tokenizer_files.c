/* SPDX-License-Identifier: Apache-2.0
 * The three files of a tokenizer: every way we know in which they are wrong, every prefix, every flipped
 * bit, every failing allocation and read. */
#include "tests/support.h"

#include "tests/text/small.h"

static const char *const files[] = {"vocab.json", "merges.txt", "tokenizer_config.json"};

/* Opens support_folder(); a failure must say which file and why in one line. */
static utter_status try_open(char *said, size_t size)
{
    struct tokenizer *tokenizer;
    utter_error error = {0};
    utter_status status =
        tokenizer_open(&tokenizer, support_folder(), file_read, PRETOKENIZER_MISTRAL, &error);
    snprintf(said, size, "%.500s", error.text);
    if (status == UTTER_OK) {
        tokenizer_close(&tokenizer);
    } else {
        assert_null(tokenizer);
        assert_true(error.text[0] != 0 && strchr(error.text, '\n') == NULL);
    }
    return status;
}

static void expect_failure(const char *name, const char *text, const char *reason)
{
    char said[512];
    small_files();
    small_write(name, text);
    utter_status status = try_open(said, sizeof said);
    if ((status != UTTER_E_FILE && status != UTTER_E_MODEL) || !strstr(said, name) ||
        !strstr(said, reason)) {
        fail_msg("%.40s: status %d, \"%s\", wanted %s: %s", text, (int)status, said, name, reason);
    }
}

static void wrong_vocabularies(void **state)
{
    static const char *const ends[][2] = {{",\"ab\":300", "second time"},
        {",\"xy\":256", "id that another"}, {",\"xy\":257", "id that another"},
        {",\"xy\":-1", "whole number"}, {",\"xy\":1.0", "whole number"},
        {",\"xy\":1e3", "whole number"}, {",\"xy\":0300", "whole number"},
        {",\"xy\":4194304", "from 0 to 4194303"}, {",\"xy\":99999999999999999999", "whole number"},
        {",\"xy\":\"1\"", "whole number"}, {",\"xy\":null", "whole number"},
        {",\"xy\":", "whole number"}, {",\"xy\" 300", "':'"}, {",\"\":300", "empty token"},
        {",\"x y\":300", "stands for no byte"}, {",\"x\u3042\":300", "stands for no byte"},
        {",\"x\\u0151\":300", "stands for no byte"}, {",\"x\\u0144\":300", "stands for no byte"},
        {",\"x\\n\":300", "stands for no byte"}, {",\"x\n\":300", "stands for no byte"},
        {",\"x\xff\":300", "stands for no byte"}, {",\"x\\y\":300", "escape"},
        {",\"x\\u12g4\":300", "escape"}, {",\"xy\":300,", "token in quotes"},
        {",xy:300", "token in quotes"}, {" \"xy\":300", "',' or '}'"}, {"}x", "goes on"},
        {"}}", "goes on"}, {",\"xy", "ends inside a token"}};
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char text[SMALL_BYTES];
        small_vocabulary(text, ends[i][0]);
        expect_failure("vocab.json", text, ends[i][1]);
    }
    expect_failure("vocab.json", "", "an object");
    expect_failure("vocab.json", "[]", "an object");
    expect_failure("vocab.json", "{}", "no token for the byte 0x00");
    expect_failure("vocab.json", "{\"a\":97}", "no token for the byte 0x00");
    char text[SMALL_BYTES];
    small_vocabulary(text, "");
    char *a = strstr(text, ",\"a\":97");
    memmove(a, a + 7, strlen(a + 7) + 1);
    expect_failure("vocab.json", text, "no token for the byte 0x61");
}

static void wrong_merges(void **state)
{
    static const char *const cases[][2] = {{"a\n", "line 1"}, {"a b c\n", "line 1"},
        {"a b\na  b\n", "line 2"}, {" a b\n", "line 1"}, {"a b \n", "line 1"},
        {"a b\nq r\n", "\"qr\" are no token"}, {"a xyz\n", "\"xyz\" are no token"},
        {"xyz a\n", "\"xyz\" are no token"}, {"a b\na b\n", "second time"},
        {"a b\n#version: 0.2\n", "line 2"}, {"a\tb\n", "line 1"}, {"a \xff\n", "line 1"},
        {"\x80 a\n", "line 1"}, {"a \xc4\n", "line 1"}, {"a \xa1\n", "line 1"}, {"a \xc4", "line 1"},
        {"a \u3042\n", "line 1"}, {"a b\rab c\n", "line 1"}, {"", "0 merges, and 6"},
        {"a b\nab c\n# #\n\u0120 a\na a\n", "5 merges, and 6"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_failure("merges.txt", cases[i][0], cases[i][1]);
    }
}

static void wrong_added_tokens(void **state)
{
    static const char *const cases[][2] = {{"", ""}, {"[]", "added_tokens_decoder"},
        {"{}", "added_tokens_decoder"}, {"{\"added_tokens_decoder\":[]}", "added_tokens_decoder"},
        {"{\"added_tokens_decoder\":{\"x\":{}}}", "\"x\""},
        {"{\"added_tokens_decoder\":{\"0262\":{}}}", "\"0262\""},
        {"{\"added_tokens_decoder\":{\"262\":7}}", "\"262\""},
        {"{\"added_tokens_decoder\":{\"99999999\":{}}}", "\"99999999\""},
        {"{\"added_tokens_decoder\":{\"262\":{}}}", "content"},
        {"{\"added_tokens_decoder\":{\"262\":{\"content\":\"\"}}}", "1 to 256"},
        {"{\"added_tokens_decoder\":{\"262\":{\"content\":\"x\\u0000\"}}}", ""},
        {"{\"added_tokens_decoder\":{\"262\":{\"content\":\"xy\",\"lstrip\":true}}}", "not supported"},
        {"{\"added_tokens_decoder\":{\"262\":{\"content\":\"xy\",\"single_word\":true}}}",
            "not supported"},
        {"{\"added_tokens_decoder\":{\"262\":{\"content\":\"xy\",\"special\":1}}}", "special"},
        {"{\"added_tokens_decoder\":{\"263\":{\"content\":\"xy\"}}}", "must be 262"},
        {"{\"added_tokens_decoder\":{\"262\":{\"content\":\"abc\"}}}", "must be 257"},
        {"{\"added_tokens_decoder\":{\"262\":{\"content\":\"xy\"},\"264\":{\"content\":\"xz\"}}}",
            "must be 263"},
        {"{\"added_tokens_decoder\":{\"262\":{\"content\":\"xy\"},\"263\":{\"content\":\"xy\"}}}",
            "same content"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_failure("tokenizer_config.json", cases[i][0], cases[i][1]);
    }
    char long_token[400];
    snprintf(long_token, sizeof long_token,
        "{\"added_tokens_decoder\":{\"262\":{\"content\":\"%0257d\"}}}", 1);
    expect_failure("tokenizer_config.json", long_token, "1 to 256");
}

static void files_written_by_other_tools(void **state)
{
    (void)state;
    char said[512];
    small_files();
    small_write("merges.txt", "#version: 0.2\r\na b\r\nab c\r\n\r\n# #\r\n\u0120 a\r\na a\r\naa aa");
    small_write("tokenizer_config.json",
        "{\"added_tokens_decoder\":{\"257\":{\"content\":\"abc\",\"special\":true}}}");
    assert_int_equal(try_open(said, sizeof said), UTTER_OK);
    small_write(
        "tokenizer_config.json", /* in any order; of a letter, and with what is none of the alphabet */
        "{\"added_tokens_decoder\":{\"263\":{\"content\":\"xy\"},\"97\":{\"content\":\"a\"},"
        "\"262\":{\"content\":\"ab c\"}}}");
    assert_int_equal(try_open(said, sizeof said), UTTER_OK);
    small_write("merges.txt", SMALL_MERGES "x y\n");
    small_write(
        "tokenizer_config.json", "{\"added_tokens_decoder\":{\"4194303\":{\"content\":\"xy\"}}}");
    char text[SMALL_BYTES];
    small_vocabulary(text, " , \r\n\t\"xy\" : 4194303 ");
    small_write("vocab.json", text);
    assert_int_equal(try_open(said, sizeof said), UTTER_OK);
}

static void missing_files(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        char said[512];
        small_files();
        assert_int_equal(remove(support_path(files[i])), 0);
        assert_int_equal(try_open(said, sizeof said), UTTER_E_FILE);
        assert_non_null(strstr(said, files[i]));
    }
}

static void every_prefix_and_flipped_bit(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        small_files();
        size_t n, n_good = 0;
        char *text = support_read_file(support_path(files[i]), &n), said[512];
        for (size_t cut = 0; cut < n; cut++) {
            support_write_file(support_path(files[i]), text, cut);
            /* Both JSON files need their last brace; merges all but the end of their last line. */
            utter_status status = try_open(said, sizeof said);
            assert_int_equal(status, i == 1 && cut == n - 1 ? UTTER_OK : UTTER_E_FILE);
        }
        for (size_t bit = 0; bit < n * 8; bit++) {
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
            support_write_file(support_path(files[i]), text, n);
            utter_status status = try_open(said, sizeof said);
            assert_true(status == UTTER_OK || status == UTTER_E_FILE || status == UTTER_E_MODEL);
            n_good += status == UTTER_OK;
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        }
        assert_true(n_good < n * 8 / 2);
        free(text);
    }
}

/* Opens and encodes with the n-th call failing. */
static void fail_each(enum support_call call, utter_status wanted)
{
    small_files();
    SUPPORT_EACH_FAILURE(call, n)
    {
        struct tokenizer *tokenizer;
        struct ids ids = {0};
        utter_error error = {0};
        utter_status status =
            tokenizer_open(&tokenizer, support_folder(), file_read, PRETOKENIZER_NATIVE, &error);
        if (status == UTTER_OK) {
            static const char text[] = "abc \u3042\u3099\u0301<|im_end|>e\u0301x abcabc";
            status = tokenizer_encode(tokenizer, text, sizeof text - 1, &ids, &error);
            assert_int_equal(ids.n > 0, status == UTTER_OK);
        }
        assert_true(status == UTTER_OK || (support_failed() && status == wanted));
        assert_true(status == UTTER_OK || error.text[0] != 0);
        ids_fini(&ids);
        tokenizer_close(&tokenizer);
    }
}

/* One so long that the table of their letters grows: it is found whole, or the tokenizer does not open. */
static void a_long_added_token_is_whole_or_not_there(void **state)
{
    enum { LENGTH = 255, ID = 263 };
    char letters[LENGTH + 1] = "", config[1024];
    (void)state;
    memset(letters, 'y', LENGTH);
    snprintf(config, sizeof config,
        "{\"added_tokens_decoder\":{\"262\":{\"content\":\"<|im_end|>\",\"special\":true},"
        "\"263\":{\"content\":\"%s\",\"special\":true}}}",
        letters);
    small_files();
    small_write("tokenizer_config.json", config);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct tokenizer *tokenizer;
        struct ids ids = {0};
        utter_status status =
            tokenizer_open(&tokenizer, support_folder(), file_read, PRETOKENIZER_NATIVE, NULL);
        status = status ? status : tokenizer_encode(tokenizer, letters, LENGTH, &ids, NULL);
        assert_true(status || (ids.n == 1 && ids.at[0] == ID));
        ids_fini(&ids);
        tokenizer_close(&tokenizer);
    }
}

static void every_failing_call(void **state)
{
    (void)state;
    fail_each(SUPPORT_MALLOC, UTTER_E_MEMORY);
    fail_each(SUPPORT_OPEN, UTTER_E_FILE);
    fail_each(SUPPORT_READ, UTTER_E_IO);
    fail_each(SUPPORT_MMAP, UTTER_E_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_vocabularies),
        cmocka_unit_test(wrong_merges),
        cmocka_unit_test(wrong_added_tokens),
        cmocka_unit_test(files_written_by_other_tools),
        cmocka_unit_test(missing_files),
        cmocka_unit_test(every_prefix_and_flipped_bit),
        cmocka_unit_test(a_long_added_token_is_whole_or_not_there),
        cmocka_unit_test(every_failing_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
