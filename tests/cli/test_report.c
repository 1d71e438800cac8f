/* SPDX-License-Identifier: Apache-2.0
 * Lines for people: one whatever is in it, on what standard error was, with the exit code that it goes with. */
#include "cli/report.h"

#include <sys/resource.h>

#include "tests/cli/heard.h"

static void a_line_stays_one_and_steers_nothing(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"plain text", "plain text"},
        {"a\nb\tc\rd", "a b c d"},
        {"\1a\x1f!", " a !"},
        {"a\x7f~", "a ~"},
        {"\x1b[31m", " [31m"},
        {"\xc2\x7f\xc2", "\xc2 \xc2"},
        {"\xc2\x80|\xc2\x9f", "  |  "},
        {"\xc2\xa0\xc2\xbf", "\xc2\xa0\xc2\xbf"},
        {"\xc3\x80\xc1\x80\xc3\x9f", "\xc3\x80\xc1\x80\xc3\x9f"},
        {"100 % of %s", "100 % of %s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[64];
        snprintf(line, sizeof line, "utter: %s", rows[i][1]);
        heard_begin();
        int code = (fail)(7, "%s", rows[i][0]);
        heard_assert(line);
        assert_int_equal(code, 7);
        snprintf(line, sizeof line, "utter: note: %s", rows[i][1]);
        heard_begin();
        note_from_library(NULL, rows[i][0]);
        heard_assert(line);
        snprintf(line, sizeof line, "%s\n", rows[i][1]);
        printed_begin("printed");
        put_line("%s", rows[i][0]);
        char *printed = printed_end("printed");
        assert_string_equal(printed, line);
        free(printed);
    }
}

/* What is too long for a line is cut, where all that the library says still fits. */
static void a_line_has_a_bound(void **state)
{
    (void)state;
    enum { MOST = sizeof(utter_error) + 255 };
    static char text[MOST + 2], line[MOST + 16];
    for (size_t n = MOST - 1; n < sizeof text; n++) {
        memset(text, 'x', n);
        text[n] = 0;
        snprintf(line, sizeof line, "utter: %.*s", MOST, text);
        heard_begin();
        bool no = say_no("%s", text);
        heard_assert(line);
        assert_false(no);
    }
}

static void lines_of_a_list_have_a_number(void **state)
{
    (void)state;
    heard_begin();
    report_line(1);
    (fail)(1, "no");
    note("%d", 2);
    report_line(0);
    note("3");
    heard_assert("utter: line 1: no\nutter: note: line 1: 2\nutter: note: 3");
}

static void a_status_has_an_exit_code(void **state)
{
    (void)state;
    static const struct {
        utter_status status;
        const char *text, *line;
        int code, of_output;
    } rows[] = {
        {UTTER_E_ARGUMENT, "wrong", "utter: wrong", 1, 1},
        {UTTER_E_FILE, "bad", "utter: bad", 1, 2}, /* of a file that is written the place is wrong */
        {UTTER_E_IO, "full", "utter: full", 2, 2},
        {UTTER_E_DEVICE, "gone", "utter: gone", 2, 2},
        {UTTER_E_MEMORY, "", NULL, 2, 2},
        {UTTER_AGAIN, "later", "utter: later", 2, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        utter_error error = {.code = rows[i].status};
        char line[256];
        snprintf(error.text, sizeof error.text, "%s", rows[i].text);
        snprintf(line, sizeof line, "utter: %s", utter_status_text(rows[i].status));
        heard_begin();
        int code = fail_status(rows[i].status, &error);
        heard_assert(rows[i].line ? rows[i].line : line);
        assert_int_equal(code, rows[i].code);
        heard_begin();
        code = fail_output(rows[i].status, &error);
        heard_assert(rows[i].line ? rows[i].line : line);
        assert_int_equal(code, rows[i].of_output);
    }
}

static void progress_is_for_terminals(void **state)
{
    (void)state;
    heard_begin();
    progress("%d %%", 1);
    bool is_shown = progress_shown();
    progress_clear();
    heard_assert("");
    assert_false(is_shown);
    terminal_begin();
    is_shown = progress_shown();
    progress_clear(); /* of nothing */
    progress("%d %%", 1);
    progress("%d %%", 22);
    progress_clear();
    progress_clear();
    progress("3");
    (fail)(1, "no");
    note("so");
    assert_string_equal(
        terminal_end(), "1 %\r\033[K22 %\r\033[K3\r\033[Kutter: no\r\nutter: note: so\r\n");
    assert_true(is_shown);
}

/* Others who print on standard error, as coders do, are not heard meanwhile. */
static void standard_error_may_be_ours_alone(void **state)
{
    (void)state;
    heard_begin();
    for (int i = 0; i < 2; i++) {
        report_alone();
        assert_int_equal(write(2, "others\n", 7), 7);
        note("%d", i);
        report_with_others();
        assert_int_equal(write(2, "again\n", 6), 6);
        report_with_others(); /* which it is already */
    }
    heard_assert("utter: note: 0\nagain\nutter: note: 1\nagain");
    /* Which takes no descriptors away. */
    int before = dup(2), after;
    close(before);
    report_alone();
    report_with_others();
    after = dup(2);
    close(after);
    assert_int_equal(after, before);
    /* A line is there at once, whatever becomes of the program. */
    heard_begin();
    report_alone();
    note("so");
    size_t n;
    char *there = support_read_file(support_path("heard"), &n);
    report_with_others();
    heard_assert("utter: note: so");
    assert_string_equal(there, "utter: note: so\n");
    free(there);
    /* Where there are no descriptors for it, others are heard too. */
    for (int few = 0; few < 2; few++) {
        struct rlimit usual, limit;
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
        heard_begin();
        int next = dup(2);
        close(next);
        limit = usual;
        limit.rlim_cur = (rlim_t)(next + few);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        report_alone();
        assert_int_equal(write(2, "others\n", 7), 7);
        note("so");
        report_with_others();
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
        int after_it = dup(2);
        close(after_it);
        heard_assert("others\nutter: note: so");
        assert_int_equal(after_it, next);
    }
    terminal_begin();
    report_alone();
    bool is_shown = progress_shown();
    progress("half");
    report_with_others();
    progress_clear();
    assert_string_equal(terminal_end(), "half\r\033[K");
    assert_true(is_shown);
}

static void what_cannot_be_printed_is_told(void **state)
{
    (void)state;
    fflush(stdout);
    int before = dup(1), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    dup2(full, 1);
    close(full);
    heard_begin();
    printf("lost");
    int code = finish_output(0);
    dup2(before, 1);
    close(before);
    clearerr(stdout);
    heard_assert("utter: standard output: No space left on device");
    assert_int_equal(code, 2);
    printed_begin("printed");
    printf("kept");
    code = finish_output(3);
    char *printed = printed_end("printed");
    assert_string_equal(printed, "kept");
    assert_int_equal(code, 3);
    free(printed);
    /* What failed before has failed, also where the rest could be written. */
    before = dup(1);
    full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    fflush(stdout);
    dup2(full, 1);
    close(full);
    printf("lost");
    fflush(stdout);
    dup2(before, 1);
    close(before);
    heard_begin();
    code = finish_output(0);
    const char *said = heard_end();
    clearerr(stdout);
    assert_int_equal(strncmp(said, "utter: standard output: ", 24), 0);
    assert_int_equal(code, 2);
}

static void an_object_is_one_line_of_json(void **state)
{
    (void)state;
    printed_begin("printed");
    int code = report_json(json_pack("{s:i,s:f,s:o,s:o,s:o}", "n", 1, "x", 1 / 3.0, "name",
        json_name("a\xc3\xa4"), "odd", json_name("a\xff"), "none", json_name(NULL)));
    char *printed = printed_end("printed");
    assert_string_equal(printed,
        "{\"n\":1,\"x\":0.333333333,\"name\":\"a\xc3\xa4\",\"odd\":\"a\\\\xff\",\"none\":null}\n");
    assert_int_equal(code, 0);
    free(printed);
    heard_begin();
    code = report_json(NULL);
    heard_assert("utter: out of memory");
    assert_int_equal(code, 2);
    /* An object that memory lacks for in the middle is told, too. */
    json_t *object = json_pack("{s:{s:i}}", "a", "b", 1);
    support_fail_malloc_at(1);
    heard_begin();
    printed_begin("printed");
    code = report_json(object);
    free(printed_end("printed"));
    bool failed = support_failed();
    support_fail_off();
    const char *said = heard_end();
    assert_int_equal(strcmp(said, "utter: out of memory\n") == 0, failed);
    assert_int_equal(code, failed ? 2 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_stays_one_and_steers_nothing),
        cmocka_unit_test(a_line_has_a_bound),
        cmocka_unit_test(lines_of_a_list_have_a_number),
        cmocka_unit_test(a_status_has_an_exit_code),
        cmocka_unit_test(progress_is_for_terminals),
        cmocka_unit_test(standard_error_may_be_ours_alone),
        cmocka_unit_test(what_cannot_be_printed_is_told),
        cmocka_unit_test(an_object_is_one_line_of_json),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
