/* SPDX-License-Identifier: Apache-2.0
 * The program itself, as a shell starts it: which command the words name, what is said of words that name none, and the
 * exit codes, also with streams that are closed or take nothing. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/cli/typed.h"

#define MODEL "build/checkpoints/eos-first"

/* ---- The program ---- */

/* It lies two folders above this test. */
static const char *program(void)
{
    static char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    assert_true(n > 0);
    path[n] = 0;
    strcpy(strrchr(path, '/'), "/../../utter");
    return path;
}

/* How its standard streams are: closed, each for itself; or standard output takes nothing, no more than a few bytes, or
 * has nobody who reads it. */
enum { NO_INPUT = 1, NO_OUTPUT = 2, NO_ERROR = 4, FULL = 8, FEW_BYTES = 16, UNREAD = 32 };

static void start_program(const char *words, int streams)
{
    static char kept[8 * PATH_MAX], name[] = "utter", *arguments[32] = {name};
    static const int usual[] = {SIGPIPE, SIGXFSZ};
    const struct rlimit few = {4, 4};
    int n = 1, ends[2];
    snprintf(kept, sizeof kept, "%s", typed_in_folder(words));
    for (char *word = strtok(kept, " "); word; word = strtok(NULL, " ")) {
        arguments[n++] = word;
    }
    arguments[n] = NULL;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        signal(usual[i], SIG_DFL);
    }
    int files[] = {open("/dev/null", O_RDONLY),
        open(
            streams & FULL ? "/dev/full" : support_path("printed"), O_WRONLY | O_CREAT | O_TRUNC, 0600),
        open(support_path("said"), O_WRONLY | O_CREAT | O_TRUNC, 0600)};
    if (streams & UNREAD) {
        if (pipe(ends) != 0) {
            _exit(98);
        }
        close(ends[0]);
        files[1] = ends[1];
    }
    for (int i = 0; i < 3; i++) {
        dup2(files[i], i);
    }
    for (int i = 0; i < 3; i++) {
        close(files[i]);
        if (streams & (1 << i)) {
            close(i);
        }
    }
    if (streams & FEW_BYTES) {
        setrlimit(RLIMIT_FSIZE, &few);
    }
    execv(program(), arguments);
    _exit(99);
}

static char *printed, *said;

/* Its exit code, or 1000 + the signal that ended it; what it printed and said is kept. */
static int run(const char *words, int streams)
{
    int status;
    size_t n;
    if (access(program(), X_OK) != 0) { /* nobody has made it: `make all` does */
        skip();
    }
    free(printed);
    free(said);
    unlink(support_path("printed"));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        start_program(words, streams);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    printed = support_read_file(support_path("printed"), &n);
    said = support_read_file(support_path("said"), &n);
    assert_non_null(said);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void assert_run(const char *words, int streams, int code, const char *prints, const char *says)
{
    int ended = run(words, streams);
    if (ended != code || strcmp(said, typed_in_folder(says)) != 0) {
        fail_msg("%s: %d: %s", words, ended, said);
    }
    assert_string_equal(printed ? printed : "", prints);
}

static int end(void **state)
{
    (void)state;
    free(printed);
    free(said);
    return 0;
}

/* ---- Help ---- */

/* What the program says of all commands, to be freed. */
static char *help_of_all(void)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    fprintf(out,
        "utter %s: speaks text with the Qwen3-TTS family\n\nUsage: utter COMMAND [options] "
        "...\n\nCommands\n",
        utter_version_text());
    for (size_t i = 0; i < n_commands; i++) {
        fprintf(out, "  %-14s %s\n", command_table[i].name, command_table[i].summary);
    }
    fputs(
        "\nutter COMMAND --help tells more; utter --version tells the version.\n"
        "Exit codes: 0 done, 1 wrong request, 2 the machine failed, 3 not all was spoken, 130 Ctrl-C.\n"
        "\nExamples\n"
        "  utter say -m models/custom -v ryan -o hello.wav \"Hello there.\"\n"
        "  utter voices -m models/custom\n",
        out);
    fclose(out);
    return text;
}

static void help_is_printed_where_it_is_asked_for(void **state)
{
    (void)state;
    static const char *const of_all[] = {
        "--help", "-h", "help", "--help say", "-h say", "codec --help", "codec -h", "codec help"};
    char *all = help_of_all();
    for (size_t i = 0; i < sizeof of_all / sizeof *of_all; i++) {
        assert_run(of_all[i], 0, 0, all, "");
    }
    /* Who says nothing is told on standard error, and has asked for nothing. */
    assert_int_equal(run("", 0), 1);
    assert_string_equal(said, all);
    assert_string_equal(printed, "");
    free(all);
    static const struct {
        const char *words;
        unsigned command;
    } of_one[] = {{"help say", COMMAND_SAY}, {"say --help", COMMAND_SAY}, {"say -h", COMMAND_SAY},
        {"say Hello. --help --port", 0}, {"help voices", COMMAND_VOICES},
        {"help voices mix", COMMAND_VOICES_MIX}, {"voices mix --help", COMMAND_VOICES_MIX},
        {"voices --help mix", COMMAND_VOICES}, {"help job", COMMAND_JOB},
        {"help codec decode", COMMAND_CODEC_DECODE}, {"codec encode --help", COMMAND_CODEC_ENCODE},
        {"help load", COMMAND_LOAD}};
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++) {
        char *help = NULL;
        size_t n;
        if (of_one[i].command) {
            FILE *out = open_memstream(&help, &n);
            options_help(typed_command(of_one[i].command), out);
            fclose(out);
            assert_run(of_one[i].words, 0, 0, help, "");
            free(help);
        } else {
            assert_int_equal(run(of_one[i].words, 0), 1);
        }
    }
    char version[64];
    snprintf(version, sizeof version, "utter %s\n", utter_version_text());
    assert_run("--version", 0, 0, version, "");
    assert_run("--version say", 0, 0, version, "");
}

/* ---- What is no command ---- */

static void what_is_no_command_is_told(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"sayy", "no command 'sayy' (did you mean say?)"},
        {"saying", "no command 'saying' (utter --help lists the commands)"},
        {"sa", "no command 'sa' (did you mean say?)"},
        {"help sayy", "no command 'sayy' (did you mean say?)"},
        {"laod", "no command 'laod' (did you mean load?)"}, /* the last of the list */
        {"xyzzyx Hello.", "no command 'xyzzyx' (utter --help lists the commands)"},
        {"--versoin", "no option '--versoin' (did you mean --version?)"},
        {"--hlep", "no option '--hlep' (did you mean --help?)"},
        {"--xyzzyx", "no option '--xyzzyx' (utter --help lists the commands)"},
        {"-q say", "no option '-q' (utter --help lists the commands)"},
        {"codec", "codec: what should it do? (utter codec decode --help, utter codec encode --help)"},
        {"codec -o x",
            "codec: what should it do? (utter codec decode --help, utter codec encode --help)"},
        {"codec decod x", "no command 'codec decod' (did you mean codec decode?)"},
        {"codec help decode", "no command 'codec help' (utter --help lists the commands)"},
        {"codecx decode", "no command 'codecx' (utter --help lists the commands)"},
        {"job summit",
            "job: 'summit' is none of submit, work, status, retry, collect (utter job --help)"},
        {"job", "job: what should it do? (utter job --help)"},
        {"voices --voices @none mixx",
            "unknown voice \"mixx\": no mixx.voice in @none (utter voices lists "
            "what there is)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char says[512];
        snprintf(says, sizeof says, "utter: %s\n", rows[i][1]);
        assert_run(rows[i][0], 0, 1, "", says);
    }
}

/* ---- What a command goes through ---- */

static void write_config(const char *text)
{
    mkdir(support_path("home"), 0700);
    mkdir(support_path("home/utter"), 0700);
    support_write_file(support_path("home/utter/config"), text, strlen(text));
}

static void a_command_is_run_by_what_was_typed_and_chosen(void **state)
{
    (void)state;
    assert_run("tokens -m " MODEL " Hello there.", 0, 0, "709 293 78 261 305 13\n", "");
    assert_run("tokens --speed 2 Hello.", 0, 1, "",
        "utter: tokens: '--speed' is an option of other commands (utter tokens --help lists its "
        "own)\n");
    write_config("model = " MODEL "\n");
    assert_run("tokens Hello there.", 0, 0, "709 293 78 261 305 13\n", "");
    write_config("nothing\n");
    assert_run("tokens Hello there.", 0, 1, "",
        "utter: @home/utter/config, line 1: is not \"model = NAME\", \"voice = NAME\" or \"device = "
        "NAME\"\n");
    write_config("");
    /* Nothing is run that would replace what it reads, or that has no voices. */
    support_write_file(support_path("codes.json"), "{}", 2);
    assert_run("codec decode @codes.json -o @codes.json -m " MODEL, 0, 1, "",
        "utter: codec decode: @codes.json is read by this command and would be lost (choose another "
        "name)\n");
    setenv("XDG_CACHE_HOME", "relative", 1);
    char home[PATH_MAX];
    snprintf(home, sizeof home, "%s", getenv("HOME") ? getenv("HOME") : "/");
    setenv("HOME", "relative", 1);
    assert_run("voices --voices s3://bucket -m " MODEL, 0, 1, "",
        "utter: --voices s3://bucket: where is the copy to be? (set HOME or XDG_CACHE_HOME)\n");
    setenv("HOME", home, 1);
    setenv("XDG_CACHE_HOME", support_path("home"), 1);
    /* A process of the server's own takes the place of a command. */
    assert_int_not_equal(run("serve-worker 250", 0), 99);
    assert_null(strstr(said, "no command"));
    assert_run("serve-worker", 0, 1, "",
        "utter: no command 'serve-worker' (utter --help lists the commands)\n");
}

/* ---- Streams ---- */

static void what_cannot_be_printed_is_a_fault_of_the_machine(void **state)
{
    (void)state;
    static const char *const rows[] = {"--version", "--help", "help say", "say --help",
        "completion bash", "say --print-text Hello.", "tokens -m " MODEL " Hello there."};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_run(rows[i], FULL, 2, "", "utter: standard output: No space left on device\n");
        assert_run(rows[i], NO_OUTPUT, 2, "", "utter: standard output: Bad file descriptor\n");
        assert_run(rows[i], UNREAD, 2, "", "utter: standard output: Broken pipe\n");
        assert_int_equal(run(rows[i], FEW_BYTES), 2);
        assert_string_equal(said, "utte"); /* which may not grow either */
    }
    assert_run("align-heads -q --max-frames 2 -o @heads -m " MODEL " --device cpu One.", FULL, 2, "",
        "utter: align-heads: no head follows the text well enough: the times of words stay "
        "approximate\n"
        "utter: standard output: No space left on device\n");
    /* What failed before keeps its code. */
    assert_run("tokens -m @none Hello.", FULL, 1, "",
        "utter: @none: there is no such folder (check the name)\n");
}

/* The numbers of streams that are closed are given to no file. */
static void a_closed_stream_stays_closed(void **state)
{
    (void)state;
    assert_run(
        "tokens -m " MODEL " -f -", NO_INPUT, 2, "", "utter: standard input: Bad file descriptor\n");
    assert_run("tokens -m " MODEL " Hello there.", NO_INPUT, 0, "709 293 78 261 305 13\n", "");
    assert_run(
        "tokens -m " MODEL " Hello there.", NO_INPUT | NO_ERROR, 0, "709 293 78 261 305 13\n", "");
    assert_run("xyzzyx", NO_ERROR, 1, "", "");
    assert_run("xyzzyx", NO_INPUT | NO_OUTPUT | NO_ERROR, 1, "", "");
    assert_run("--version", NO_INPUT | NO_OUTPUT | NO_ERROR, 2, "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_is_printed_where_it_is_asked_for),
        cmocka_unit_test(what_is_no_command_is_told),
        cmocka_unit_test(a_command_is_run_by_what_was_typed_and_chosen),
        cmocka_unit_test(what_cannot_be_printed_is_a_fault_of_the_machine),
        cmocka_unit_test(a_closed_stream_stays_closed),
    };
    return cmocka_run_group_tests_name("main", tests, typed_start, end);
}
