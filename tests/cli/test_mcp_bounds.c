/* SPDX-License-Identifier: Apache-2.0
 * utter mcp with a posed reading: how much sound an answer may hold, what is answered of failures, and reads that are
 * interrupted. */
#include <errno.h>

#include "tests/cli/typed.h"

#define WITH_MODEL "-m build/checkpoints/eos-first --device cpu --threads 1"
#define CALL(arguments)                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"                                                \
    "call\",\"params\":{\"name\":\"speak\",\"arguments\":{"                                            \
    "\"text\":\"Hi.\"" arguments "}}}\n"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n"

enum { MOST_BYTES = 64 << 20, HEAD = 44 };

/* ---- The reading ---- */

static struct {
    size_t samples, given; /* that there are, before it fails; that were given */
    bool is_live;
    int sender; /* the assistant's end of standard input: it goes when the speech is over */
} posed;

utter_status __real_utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error);
utter_status __wrap_utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error);
utter_status __wrap_utter_reading_read(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error);
void __real_utter_reading_free(utter_reading **reading);
void __wrap_utter_reading_free(utter_reading **reading);

utter_status __wrap_utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error)
{
    posed.is_live = options->live;
    return __real_utter_reading_open(reading, model, voice, options, error);
}

utter_status __wrap_utter_reading_read(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    assert_non_null(reading);
    assert_int_equal(capacity, 1920);
    if (posed.given == posed.samples) {
        snprintf(error->text, sizeof error->text, "the device is gone");
        return UTTER_E_DEVICE;
    }
    size_t left = posed.samples - posed.given;
    *n = left < capacity ? left : capacity;
    memset(pcm, 0, *n * sizeof *pcm);
    posed.given += *n;
    return UTTER_OK;
}

void __wrap_utter_reading_free(utter_reading **reading)
{
    __real_utter_reading_free(reading);
    if (posed.sender >= 0) {
        close(posed.sender);
        posed.sender = -1;
    }
}

/* ---- An assistant ---- */

/* The exit code of the program when an assistant has sent this; `stays` until a speech is over. */
static int serve(const char *sent, bool stays)
{
    int ends[2], before = dup(0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], sent, strlen(sent)), (ssize_t)strlen(sent));
    dup2(ends[0], 0);
    close(ends[0]);
    posed.sender = stays ? ends[1] : -1;
    posed.given = 0;
    if (!stays) {
        close(ends[1]);
    }
    int code = typed_run(COMMAND_MCP, WITH_MODEL);
    dup2(before, 0);
    close(before);
    return code;
}

static void assert_answer(const char *sent, const char *text)
{
    char wanted[512];
    snprintf(wanted, sizeof wanted, "{\"type\":\"text\",\"text\":\"%s\"}],\"isError\":true", text);
    assert_int_equal(serve(sent, true), 0);
    if (!strstr(typed_printed, wanted)) {
        fail_msg("%.400s", typed_printed);
    }
}

static void an_answer_holds_so_much_sound(void **state)
{
    (void)state;
    posed.samples = (MOST_BYTES - HEAD) / 2;
    assert_answer(CALL(""), "the device is gone"); /* which is all that is wrong */
    assert_int_equal(posed.given, posed.samples);
    assert_false(posed.is_live);
    posed.samples++;
    assert_answer(CALL(""), "the sound is too long for an answer (give a file, or play it)");
    posed.samples = 0;
    assert_answer(CALL(""), "the device is gone");
}

static void a_file_that_fails_is_told_and_gone(void **state)
{
    (void)state;
    char sent[PATH_MAX + 512];
    snprintf(sent, sizeof sent,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
        "call\",\"params\":{\"name\":\"speak\",\"arguments\":{"
        "\"text\":\"Hi.\",\"file\":\"%s\"}}}\n",
        support_path("made.wav"));
    posed.samples = 1920;
    assert_answer(sent, "the device is gone");
    assert_int_not_equal(access(support_path("made.wav"), F_OK), 0);
    posed.samples = 10 * 24000;
    support_fail_from(SUPPORT_WRITE, 3);
    assert_int_equal(serve(sent, true), 0);
    assert_true(support_failed());
    support_fail_off();
    assert_non_null(strstr(typed_printed, "No space left on device"));
    assert_non_null(strstr(typed_printed, "\"isError\":true"));
    assert_int_not_equal(access(support_path("made.wav"), F_OK), 0);
}

/* A signal that ends a read ends nothing else; a terminal that is gone does. */
static void reads_may_be_interrupted(void **state)
{
    (void)state;
    static const int reasons[] = {EINTR, EAGAIN, EIO};
    long before = support_calls(SUPPORT_READ);
    assert_int_equal(serve(PING, false), 0);
    long n = support_calls(SUPPORT_READ) - before; /* the last finds the end */
    assert_non_null(strstr(typed_printed, "\"id\":7"));
    for (int i = 0; i < 3; i++) {
        support_fail_read_at(n - 1);
        support_fail_with(reasons[i]);
        assert_int_equal(serve(PING, false), 0);
        assert_true(support_failed());
        support_fail_off();
        assert_int_equal(strstr(typed_printed, "\"id\":7") != NULL, i < 2);
    }
}

static void a_line_that_memory_lacks_for_ends_it(void **state)
{
    (void)state;
    int n_told = 0;
    long before = support_calls(SUPPORT_MALLOC);
    assert_int_equal(serve(PING, false), 0);
    long n = support_calls(SUPPORT_MALLOC) - before;
    for (long i = n - 60; i <= n; i++) { /* the room for lines, and a line */
        support_fail_malloc_at(i);
        int code = serve(PING, false);
        support_fail_off();
        if (strcmp(typed_said, "utter: out of memory\n") == 0) {
            assert_int_equal(code, 2);
            n_told++;
        }
    }
    assert_int_equal(n_told, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_holds_so_much_sound),
        cmocka_unit_test(a_file_that_fails_is_told_and_gone),
        cmocka_unit_test(reads_may_be_interrupted),
        cmocka_unit_test(a_line_that_memory_lacks_for_ends_it),
    };
    return cmocka_run_group_tests_name("mcp_bounds", tests, typed_start, typed_end);
}
