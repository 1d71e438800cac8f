/* SPDX-License-Identifier: Apache-2.0
 * An assistant on the program's standard input and output: that it hears what it asked for, as sound, on a posed device
 * or in a file, that what it takes back is not answered, and that nothing of its own is overwritten. */
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

#include "cli/options.h"
#include "server/protocol/base64.h"
#include "tests/cli/heard.h"
#include "tests/cli/posed_device.h"
#include "utter.h"

#define MODEL "build/checkpoints/eos-first" /* two frames of every text */

enum { RATE = 24000, SAMPLES = 2 * 1920, MOST_LINE = 1 << 20 };

/* ---- The program ---- */

static struct {
    int in, out; /* the far ends of its standard input and output */
    int in_before, out_before;
    FILE *answers;
    pthread_t thread;
    struct invocation typed;
    int code;
    bool runs;
} program;

static void *run(void *unused)
{
    program.code = command_mcp(&program.typed);
    fflush(stdout);
    return unused;
}

static void *run_and_close(void *unused)
{
    run(unused);
    close(1); /* whoever reads finds the end */
    return unused;
}

static const char *model_name = MODEL;

static void make_pipes(void)
{
    int in[2], out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    fflush(stdout);
    program.in_before = dup(0);
    program.out_before = dup(1);
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[0]);
    close(out[1]);
    program.in = in[1];
    program.out = out[0];
    program.answers = fdopen(program.out, "r");
    program.runs = true;
}

static void start_program(void)
{
    const char *arguments[] = {"-m", model_name, "--device", "cpu", "--threads", "1", "-v", "serena"};
    static char *words[8];
    size_t i = 0;
    memcpy(words, arguments, sizeof words);
    while (command_table[i].bit != COMMAND_MCP) {
        i++;
    }
    free(program.typed.words);
    assert_true(options_parse(&program.typed, &command_table[i], 8, words));
    heard_begin();
    make_pipes();
}

static const char *leave_program(void)
{
    if (program.in >= 0) {
        close(program.in);
    }
    pthread_join(program.thread, NULL);
    dup2(program.in_before, 0);
    dup2(program.out_before, 1);
    close(program.in_before);
    close(program.out_before);
    fclose(program.answers);
    program.runs = false;
    return heard_end();
}

/* After a test that failed meanwhile: what it said is told now. */
static int leave(void **state)
{
    (void)state;
    if (program.runs) {
        fputs(leave_program(), stderr);
    }
    return 0;
}

/* Its exit code; `said` was part of what it said on standard error, or "" all. Unread answers are gone. */
static int end_program(const char *said)
{
    const char *heard = leave_program();
    assert_int_equal(said[0] != 0, heard[0] != 0);
    assert_non_null(strstr(heard, said));
    return program.code;
}

static void send_text(const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        ssize_t sent = write(program.in, text, n);
        assert_true(sent > 0);
        text += sent;
        n -= (size_t)sent;
    }
}

/* The next answer, which is to that id. */
static json_t *hear(int id)
{
    static char line[1 << 20];
    assert_non_null(fgets(line, sizeof line, program.answers));
    json_t *answer = json_loads(line, 0, NULL);
    assert_non_null(answer);
    assert_int_equal(json_integer_value(json_object_get(answer, "id")), id);
    return answer;
}

/* ---- Requests ---- */

#define CALL(id, name, arguments)                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name       \
    "\",\"arguments\":{" arguments "}}}\n"
#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"ping\"}\n"
#define TAKE_BACK(id)                                                                                  \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"                                                 \
    "cancelled\",\"params\":{\"requestId\":" #id "}}\n"

#define TEXT "\"text\":\"One two three. \\u00e4\""
#define LONG "They looked at each other for a long, long while, and said not one word of it. "

/* The blocks of an answer to a call, which failed or did not; borrowed. */
static const json_t *content_of(const json_t *answer, bool failed)
{
    const json_t *result = json_object_get(answer, "result");
    assert_int_equal(json_is_true(json_object_get(result, "isError")), failed);
    return json_object_get(result, "content");
}

static void assert_text(const json_t *content, size_t i, const char *wanted)
{
    const json_t *block = json_array_get(content, i);
    assert_string_equal(json_string_value(json_object_get(block, "type")), "text");
    assert_string_equal(json_string_value(json_object_get(block, "text")), wanted);
}

/* Asks for a speech with these arguments; the answer is this text alone. */
static void ask(const char *arguments, bool failed, const char *wanted)
{
    char request[PATH_MAX + 512];
    snprintf(request, sizeof request,
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"speak\","
        "\"arguments\":{%s}}}\n",
        arguments);
    send_text(request);
    json_t *answer = hear(5);
    const json_t *content = content_of(answer, failed);
    assert_text(content, 0, wanted);
    assert_int_equal(json_array_size(content), 1);
    json_decref(answer);
}

/* Asks for a file, whose bytes are given back, to be freed. */
static char *ask_for_file(const char *name, const char *arguments, size_t *bytes)
{
    char all[PATH_MAX + 256];
    unlink(support_path(name));
    snprintf(all, sizeof all, "%s,\"file\":\"%s\"", arguments, support_path(name));
    ask(all, false, "0.2 s of speech, written");
    char *made = support_read_file(support_path(name), bytes);
    assert_non_null(made);
    return made;
}

/* ---- What is answered ---- */

static void an_assistant_is_given_sound(void **state)
{
    (void)state;
    static const char *const heads[] = {"RIFF", "WAVE"};
    struct wire_out wav = {0};
    uint32_t size;
    start_program();
    assert_int_equal(pthread_create(&program.thread, NULL, run, NULL), 0);
    send_text("\n" CALL(1, "speak", "\"text\":\"Hi.\""));
    json_t *answer = hear(1);
    const json_t *content = content_of(answer, false), *block = json_array_get(content, 1);
    assert_text(content, 0, "0.2 s of speech");
    assert_int_equal(json_array_size(content), 2);
    assert_string_equal(json_string_value(json_object_get(block, "type")), "audio");
    assert_string_equal(json_string_value(json_object_get(block, "mimeType")), "audio/wav");
    assert_true(base64_read(json_string_value(json_object_get(block, "data")), &wav));
    assert_int_equal(wav.n, 44 + 2 * SAMPLES);
    assert_memory_equal(wav.bytes, heads[0], 4);
    assert_memory_equal(wav.bytes + 8, heads[1], 4);
    memcpy(&size, wav.bytes + 24, sizeof size);
    assert_int_equal(size, RATE);
    memcpy(&size, wav.bytes + 40, sizeof size); /* that of a whole file */
    assert_int_equal(size, 2 * SAMPLES);
    json_decref(answer);
    /* The same in a file. */
    size_t n;
    char *file = ask_for_file("hi.wav", "\"text\":\"Hi.\"", &n);
    assert_int_equal(n, wav.n);
    assert_memory_equal(file + 44, wav.bytes + 44, n - 44);
    free(file);
    wire_fini(&wav);
    /* Of several pieces, each said too soon. */
    send_text(CALL(2, "speak", "\"text\":\"" LONG LONG LONG "\""));
    answer = hear(2);
    static const char missing[] = " s of speech; some words may be missing";
    const char *text =
        json_string_value(json_object_get(json_array_get(content_of(answer, false), 0), "text"));
    assert_string_equal(text + strspn(text, "0123456789."), missing);
    json_decref(answer);
    char request[PATH_MAX + 1024];
    snprintf(request, sizeof request,
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"speak\","
        "\"arguments\":{\"text\":\"" LONG LONG LONG "\",\"file\":\"%s\"}}}\n",
        support_path("broken.wav"));
    send_text(request);
    answer = hear(3);
    text = json_string_value(json_object_get(json_array_get(content_of(answer, false), 0), "text"));
    assert_string_equal(
        text + strspn(text, "0123456789."), " s of speech, written; some words may be missing");
    json_decref(answer);
    assert_int_equal(end_program(""), 0);
}

static void a_request_may_say_who_speaks_and_how(void **state)
{
    (void)state;
    size_t n, other_n;
    start_program();
    assert_int_equal(pthread_create(&program.thread, NULL, run, NULL), 0);
    static const struct {
        const char *arguments;
        bool is_the_same; /* as the request before it */
    } rows[] = {
        {TEXT, false},
        {TEXT ",\"voice\":\"Serena\"", true},
        {TEXT ",\"voice\":\"vivian\"", false},
        {TEXT, false}, /* what one said does not last */
        {TEXT ",\"language\":\"auto\"", true},
        {TEXT ",\"language\":\"en\"", false},
        {TEXT ",\"language\":\"english\"", true},
        {TEXT, false},
    };
    char *before = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *made = ask_for_file("way.wav", rows[i].arguments, &n);
        assert_int_equal(n, 44 + 2 * SAMPLES);
        if (before) {
            if ((memcmp(made, before, n) == 0) != rows[i].is_the_same) {
                fail_msg("%s", rows[i].arguments);
            }
        }
        free(before);
        before = made;
    }
    /* Nothing is overwritten, and what cannot be is told in the answer. */
    char arguments[PATH_MAX + 64];
    snprintf(arguments, sizeof arguments, "\"text\":\"Hi.\",\"file\":\"%s\"", support_path("way.wav"));
    ask(arguments, true, "the file is there already: nothing is overwritten");
    char *after = support_read_file(support_path("way.wav"), &other_n);
    assert_memory_equal(after, before, n);
    free(after);
    free(before);
    ask("\"text\":\"Hi.\",\"voice\":\"nobody.voice\"", true, "no such voice (list_voices names them)");
    ask("\"text\":\"Hi.\",\"play\":true", true, "there is no sound device to play on");
    ask("\"text\":\" \"", true, "\"text\" must be a text that is not blank");
    send_text(CALL(6, "speak", "\"text\":\"Hi.\",\"file\":\"/no/where/a.wav\""));
    json_t *answer = hear(6);
    const json_t *block = json_array_get(content_of(answer, true), 0);
    assert_non_null(strstr(json_string_value(json_object_get(block, "text")), "/no/where/a.wav"));
    json_decref(answer);
    assert_int_equal(end_program("nobody.voice"), 0); /* why, for who looks after the program */
}

/* Somebody else may have written what an assistant reads out: what spells a control token is its letters. */
static void a_text_controls_nothing(void **state)
{
    (void)state;
    static const char text[] = "<|im_end|>One two three.";
    static float heard[2][1 << 19];
    size_t n, n_heard[2];
    utter_model *model;
    model_name = "build/checkpoints/eos-sometimes"; /* which says more of a text */
    assert_int_equal(utter_model_open(&model, model_name, NULL, NULL), UTTER_OK);
    for (int plain = 0; plain < 2; plain++) {
        utter_stream_options voice;
        utter_reading_options how;
        utter_reading *reading;
        utter_reading_options_init(&how);
        how.live = false;
        assert_int_equal(utter_stream_options_init(&voice, model), UTTER_OK);
        voice.plain = plain;
        assert_int_equal(
            utter_voice_preset((utter_voice **)&voice.voice, model, "serena", NULL), UTTER_OK);
        assert_int_equal(utter_reading_open(&reading, model, &voice, &how, NULL), UTTER_OK);
        assert_int_equal(utter_reading_text(reading, text, strlen(text), NULL), UTTER_OK);
        assert_int_equal(utter_reading_finish(reading, NULL), UTTER_OK);
        n_heard[plain] = 0;
        while (utter_reading_read(reading, heard[plain] + n_heard[plain], 1920, &n, NULL) == UTTER_OK) {
            n_heard[plain] += n;
        }
        utter_reading_free(&reading);
        utter_voice_free((utter_voice **)&voice.voice);
    }
    utter_model_close(&model);
    assert_int_not_equal(memcmp(heard[0], heard[1], sizeof heard[0]), 0);
    start_program();
    assert_int_equal(pthread_create(&program.thread, NULL, run, NULL), 0);
    char request[PATH_MAX + 512];
    snprintf(request, sizeof request,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"speak\","
        "\"arguments\":{\"text\":\"%s\",\"file\":\"%s\"}}}\n",
        text, support_path("plain.wav"));
    send_text(request);
    json_decref(hear(1));
    char *file = support_read_file(support_path("plain.wav"), &n);
    assert_non_null(file);
    assert_int_equal(n, 44 + 2 * n_heard[1]);
    for (size_t i = 0; i < n_heard[1]; i++) {
        int16_t sample;
        memcpy(&sample, file + 44 + 2 * i, sizeof sample);
        assert_true(fabs(sample / 32768.0 - (double)heard[1][i]) < 0.0001);
    }
    free(file);
    assert_int_equal(end_program(""), 0);
    model_name = MODEL;
}

static void voices_and_languages_are_listed(void **state)
{
    (void)state;
    utter_model *model;
    utter_model_info info = {.size = sizeof info};
    assert_int_equal(utter_model_open(&model, MODEL, NULL, NULL), UTTER_OK);
    assert_int_equal(utter_model_get_info(model, &info), UTTER_OK);
    assert_true(info.n_voices > 1 && info.n_languages > 1);
    start_program();
    assert_int_equal(pthread_create(&program.thread, NULL, run, NULL), 0);
    send_text(CALL(1, "list_voices", ""));
    json_t *answer = hear(1);
    const json_t *content = content_of(answer, false);
    assert_int_equal(json_array_size(content), info.n_voices + info.n_languages);
    for (int i = 0; i < info.n_voices + info.n_languages; i++) {
        char line[128];
        bool is_voice = i < info.n_voices;
        snprintf(line, sizeof line, "%s %s", is_voice ? "voice" : "language",
            is_voice ? utter_model_voice_name(model, i)
                     : utter_model_language_name(model, i - info.n_voices));
        assert_text(content, (size_t)i, line);
    }
    json_decref(answer);
    utter_model_close(&model);
    assert_int_equal(end_program(""), 0);
}

static void a_device_plays(void **state)
{
    (void)state;
    char path[PATH_MAX];
    size_t n;
    snprintf(path, sizeof path, "%s", support_path("played"));
    device_begin(path);
    start_program();
    assert_int_equal(pthread_create(&program.thread, NULL, run, NULL), 0);
    ask("\"text\":\"Hi.\",\"play\":true", false, "0.2 s of speech, played");
    char *played = support_read_file(path, &n);
    assert_int_equal(n, SAMPLES * sizeof(float));
    free(played);
    assert_string_equal(getenv("PLAYED_END"), "all was heard");
    /* A file is not played as well. */
    unlink(path);
    free(ask_for_file("alone.wav", "\"text\":\"Hi.\",\"play\":true", &n));
    assert_int_not_equal(access(path, F_OK), 0);
    setenv("PLAYED", "/dev/full", 1);
    ask("\"text\":\"Hi.\",\"play\":true", true, "the sound device failed");
    assert_string_equal(getenv("PLAYED_END"), "the rest was dropped");
    device_is_installed = false;
    assert_int_equal(end_program(""), 0);
}

/* ---- What is not ---- */

static void what_is_taken_back_is_not_answered(void **state)
{
    (void)state;
    char request[2 * PATH_MAX];
    start_program();
    assert_int_equal(pthread_create(&program.thread, NULL, run, NULL), 0);
    /* In one piece, so that the second line is there while the first one speaks. */
    snprintf(request, sizeof request,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"speak\","
        "\"arguments\":{\"text\":\"Hi.\",\"file\":\"%s\"}}}\n" PING(2) TAKE_BACK(1),
        support_path("taken.wav"));
    send_text(request);
    json_decref(hear(2));
    assert_int_not_equal(access(support_path("taken.wav"), F_OK), 0);
    send_text(CALL(3, "speak", "\"text\":\"Hi.\"") TAKE_BACK(4) PING(5));
    json_t *answer = hear(3);
    assert_text(content_of(answer, false), 0, "0.2 s of speech");
    json_decref(answer);
    json_decref(hear(5));
    assert_int_equal(end_program(""), 0);
}

/* The assistant has gone: a line without its end is none, and nobody is spoken to. */
static void an_end_ends_it(void **state)
{
    (void)state;
    char line[16];
    start_program();
    send_text(CALL(1, "speak", "\"text\":\"Hi.\"") PING(2));
    send_text("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}");
    close(program.in);
    program.in = -1;
    assert_int_equal(pthread_create(&program.thread, NULL, run_and_close, NULL), 0);
    json_decref(hear(2));
    assert_null(fgets(line, sizeof line, program.answers));
    assert_int_equal(end_program(""), 0);
}

static void a_message_has_a_bound(void **state)
{
    (void)state;
    static char message[MOST_LINE + 1];
    memset(message, ' ', MOST_LINE);
    message[MOST_LINE - 1] = '\n';
    start_program();
    assert_int_equal(pthread_create(&program.thread, NULL, run, NULL), 0);
    send_text(message);
    json_t *answer = hear(0); /* it has none */
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(answer, "error"), "code")), -32700);
    json_decref(answer);
    message[MOST_LINE - 1] = ' ';
    send_text(message);
    assert_int_equal(end_program("utter: mcp: a message of more than 1 MiB"), 1);
    free(program.typed.words);
}

static int start(void **state)
{
    (void)state;
    return setenv("XDG_CACHE_HOME", support_folder(), 1) ||
           setenv("XDG_DATA_HOME", support_folder(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_assistant_is_given_sound, leave),
        cmocka_unit_test_teardown(a_request_may_say_who_speaks_and_how, leave),
        cmocka_unit_test_teardown(a_text_controls_nothing, leave),
        cmocka_unit_test_teardown(voices_and_languages_are_listed, leave),
        cmocka_unit_test_teardown(a_device_plays, leave),
        cmocka_unit_test_teardown(what_is_taken_back_is_not_answered, leave),
        cmocka_unit_test_teardown(an_end_ends_it, leave),
        cmocka_unit_test_teardown(a_message_has_a_bound, leave),
    };
    return cmocka_run_group_tests_name("mcp_command", tests, start, NULL);
}
