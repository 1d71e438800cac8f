/* SPDX-License-Identifier: Apache-2.0
 * From what was typed, variables and files to the settings of a command. */
#include <limits.h>
#include <sys/stat.h>

#include "cli/defaults.h"
#include "cli/options.h"
#include "cli/serve_defaults.h"
#include "tests/cli/heard.h"

static const struct command *command_of(unsigned bit)
{
    size_t i = 0;
    while (command_table[i].bit != bit) {
        assert_true(++i < n_commands);
    }
    return &command_table[i];
}

static struct invocation now;

/* Reads words that a blank parts. */
static bool parse(unsigned command, const char *typed)
{
    static char kept[1024];
    static char *arguments[32];
    int n = 0;
    free(now.words);
    snprintf(kept, sizeof kept, "%s", typed);
    for (char *word = strtok(kept, " "); word; word = strtok(NULL, " ")) {
        arguments[n++] = word;
    }
    return options_parse(&now, command_of(command), n, arguments);
}

static void good(unsigned command, const char *typed)
{
    heard_begin();
    bool is_good = parse(command, typed);
    heard_assert("");
    assert_true(is_good);
}

static void refused(unsigned command, const char *typed, const char *why)
{
    heard_begin();
    bool is_good = parse(command, typed);
    heard_assert(why);
    assert_false(is_good);
}

/* ---- The command line ---- */

static void options_are_read_in_every_way_of_writing(void **state)
{
    (void)state;
    static const char *const ways[] = {"-o a -v b", "-oa -vb", "--output a --voice b",
        "--output=a --voice=b", "--voice=x -o x -o a -v b"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        good(COMMAND_SAY, ways[i]);
        assert_true(now.settings.output.given && now.settings.voice.given);
        assert_string_equal(now.settings.output.text, "a");
        assert_string_equal(now.settings.voice.text, "b");
        assert_int_equal(now.n_words, 0);
        assert_false(now.settings.model.given);
        assert_null(now.settings.model.text);
    }
    good(COMMAND_SAY, "one -q two - three");
    assert_true(now.settings.quiet.given);
    assert_int_equal(now.n_words, 4);
    assert_string_equal(now.words[0], "one");
    assert_string_equal(now.words[1], "two");
    assert_string_equal(now.words[2], "-");
    assert_string_equal(now.words[3], "three");
    good(COMMAND_SAY, "-- -q -- --x");
    assert_false(now.settings.quiet.given);
    assert_int_equal(now.n_words, 3);
    assert_string_equal(now.words[1], "--");
    good(COMMAND_SAY, "--output -q");
    assert_string_equal(now.settings.output.text, "-q");
    assert_false(now.settings.quiet.given);
}

static void what_nobody_types_is_the_tables(void **state)
{
    (void)state;
    good(COMMAND_SAY, "a");
    assert_true(now.settings.speed.number == 1 && !now.settings.speed.given);
    assert_true(now.settings.volume.number == 1);
    assert_int_equal(now.settings.seed.integer, 0);
    assert_int_equal(now.settings.rate.integer, 0);
    assert_string_equal(now.settings.markup.text, "none");
    good(COMMAND_SERVE, "");
    assert_int_equal(now.settings.plain.serve.port, 8080);
    assert_string_equal(now.settings.plain.serve.host, "127.0.0.1");
    assert_int_equal(now.settings.plain.serve.queue, 64);
    assert_false(now.settings.plain.serve.quiet);
    assert_true(now.settings.plain.serve.idle_minutes == 0);
    good(COMMAND_SERVE, "--port 0 -q --idle 1.5 --host ::1 --background shared");
    assert_int_equal(now.settings.plain.serve.port, 0);
    assert_true(now.settings.plain.serve.quiet);
    assert_true(now.settings.plain.serve.idle_minutes == 1.5);
    assert_string_equal(now.settings.plain.serve.host, "::1");
    assert_string_equal(now.settings.plain.serve.background, "shared");
}

static void numbers_have_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *typed, *why;
    } wrong[] = {
        {"--rate 7999", "utter: --rate: '7999' is not a whole number from 8000 to 48000"},
        {"--rate 48001", "utter: --rate: '48001' is not a whole number from 8000 to 48000"},
        {"--rate +8000", "utter: --rate: '+8000' is not a whole number from 8000 to 48000"},
        {"--rate 8000x", "utter: --rate: '8000x' is not a whole number from 8000 to 48000"},
        {"--rate :", "utter: --rate: ':' is not a whole number from 8000 to 48000"},
        {"--rate /", "utter: --rate: '/' is not a whole number from 8000 to 48000"},
        {"--seed -1", "utter: --seed: '-1' is not a whole number from 0 to 2^64 - 1"},
        {"--seed 18446744073709551616",
            "utter: --seed: '18446744073709551616' is not a whole number from 0 to 2^64 - 1"},
        {"--speed 0.24", "utter: --speed: '0.24' is not a number from 0.25 to 4"},
        {"--speed 4.01", "utter: --speed: '4.01' is not a number from 0.25 to 4"},
        {"--speed nan", "utter: --speed: 'nan' is not a number from 0.25 to 4"},
        {"--speed 0x1", "utter: --speed: '0x1' is not a number from 0.25 to 4"},
        {"--speed 1e", "utter: --speed: '1e' is not a number from 0.25 to 4"},
        {"--speed=", "utter: --speed: '' is not a number from 0.25 to 4"},
        {"--format aac", "utter: --format: 'aac' is none of wav|raw|flac|ogg|opus|mp3"},
        {"--format wa", "utter: --format: 'wa' is none of wav|raw|flac|ogg|opus|mp3"},
        {"--format wav|raw", "utter: --format: 'wav|raw' is none of wav|raw|flac|ogg|opus|mp3"},
        {"--format=", "utter: --format: '' is none of wav|raw|flac|ogg|opus|mp3"},
        {"--output=", "utter: --output: the value is empty"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        refused(COMMAND_SAY, wrong[i].typed, wrong[i].why);
    }
    good(COMMAND_SAY, "--rate 8000 --speed .25 --seed 18446744073709551615 --format mp3");
    assert_int_equal(now.settings.rate.integer, 8000);
    assert_true(now.settings.speed.number == 0.25);
    assert_true(now.settings.seed.integer == UINT64_MAX);
    assert_string_equal(now.settings.format.text, "mp3");
    good(COMMAND_SAY, "--rate 48000 --speed 4 --volume 0 --format wav");
    assert_int_equal(now.settings.rate.integer, 48000);
    assert_true(now.settings.speed.number == 4);
    assert_true(now.settings.volume.given && now.settings.volume.number == 0);
}

/* Each has a place of its own. */
static void what_a_model_samples_by_is_kept_apart(void **state)
{
    (void)state;
    char words[1024] = "", value[64];
    for (int i = 0; i < parameter_count; i++) {
        const struct parameter *p = &parameter_table[i];
        size_t n = strlen(words);
        snprintf(value, sizeof value, p->integer ? "%d" : "0.%d", i + 1);
        snprintf(words + n, sizeof words - n, " --%s %s", p->option, value);
    }
    good(COMMAND_SAY, words);
    for (int i = 0; i < parameter_count; i++) {
        const struct setting *s = &now.settings.sampling[i];
        assert_true(s->given);
        if (parameter_table[i].integer) {
            assert_int_equal(s->integer, i + 1);
        } else {
            snprintf(value, sizeof value, "0.%d", i + 1);
            assert_true(s->number == strtod(value, NULL));
        }
    }
    good(COMMAND_SAY, "a");
    for (int i = 0; i < parameter_count; i++) {
        assert_false(now.settings.sampling[i].given);
    }
}

static void what_is_no_option_is_told(void **state)
{
    (void)state;
    refused(COMMAND_SAY, "--sped 1", "utter: say: no option '--sped' (did you mean --speed?)");
    refused(COMMAND_SAY, "--sped=1", "utter: say: no option '--sped' (did you mean --speed?)");
    refused(COMMAND_SAY, "--port 1",
        "utter: say: '--port' is an option of other commands (utter say --help lists its own)");
    refused(COMMAND_SAY, "--port=1",
        "utter: say: '--port' is an option of other commands (utter say --help lists its own)");
    refused(COMMAND_SAY, "--xyzzyx=1",
        "utter: say: no option '--xyzzyx=1' (utter say --help lists them; -- before a text that begins "
        "with a dash)");
    refused(COMMAND_SAY, "-Z",
        "utter: say: no option '-Z' (utter say --help lists them; -- before a text that begins with a "
        "dash)");
    refused(COMMAND_SAY, "--quiet=1", "utter: --quiet: takes no value, and '1' was given");
    refused(COMMAND_SAY, "-q1", "utter: --quiet: takes no value, and '1' was given");
    refused(COMMAND_SAY, "-o", "utter: --output: its value is missing (FILE)");
    refused(COMMAND_SAY, "a --speed", "utter: --speed: its value is missing (X)");
    refused(COMMAND_SAY, "--=1",
        "utter: say: no option '--=1' (utter say --help lists them; -- before a text that begins with "
        "a dash)");
    refused(COMMAND_SAY, "--por",
        "utter: say: no option '--por' (utter say --help lists them; -- before a text that begins with "
        "a dash)");
    refused(COMMAND_SAY, "--portx",
        "utter: say: no option '--portx' (utter say --help lists them; -- before a text that begins "
        "with a dash)");
    support_fail_malloc_at(1);
    refused(COMMAND_SAY, "a", "utter: out of memory");
    support_fail_off();
}

static void words_are_as_many_as_the_command_takes(void **state)
{
    (void)state;
    refused(COMMAND_QUANTIZE, "a b c",
        "utter: quantize: 'a' is one argument too many (utter quantize --help)");
    refused(COMMAND_READ, "",
        "utter: read: something is missing: utter read [-m DIR] [-v VOICE] [-o FILE] [options] "
        "BOOK");
    good(COMMAND_READ, "--help");
    assert_true(now.settings.help.given);
    good(COMMAND_READ, "book");
}

static void an_option_may_have_another_source(void **state)
{
    (void)state;
    static const char *const on[] = {"yes", "true", "on", "1"}, *const off[] = {
                                                                    "no", "false", "off", "0"};
    good(COMMAND_SERVE, "");
    for (size_t i = 0; i < 4; i++) {
        assert_true(options_take(&now, "quiet", on[i], "here"));
        assert_true(now.settings.plain.serve.quiet);
        assert_true(options_take(&now, "quiet", off[i], "here"));
        assert_false(now.settings.plain.serve.quiet);
    }
    heard_begin();
    bool taken = options_take(&now, "quiet", "perhaps", "here");
    heard_assert("utter: here: 'perhaps' is neither yes nor no");
    assert_false(taken);
    heard_begin();
    taken = options_take(&now, "pord", "1", "here");
    heard_assert("utter: here: utter serve has no option 'pord' (did you mean port?)");
    assert_false(taken);
    heard_begin();
    taken = options_take(&now, "xyzzyx", "1", "here");
    heard_assert("utter: here: utter serve has no option 'xyzzyx'");
    assert_false(taken);
    heard_begin();
    taken = options_take(&now, "port", "70000", "here");
    heard_assert("utter: here: '70000' is not a whole number from 0 to 65535");
    assert_false(taken);
}

/* ---- The model, voice and device of all commands ---- */

static const char *const variables[] = {"UTTER_MODEL", "UTTER_VOICE", "UTTER_DEVICE"};

/* The file of `utter use`, with this in it; NULL: none. */
static void write_config(const char *text)
{
    mkdir(support_path("config"), 0700);
    mkdir(support_path("config/utter"), 0700);
    assert_int_equal(setenv("XDG_CONFIG_HOME", support_path("config"), 1), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(unsetenv(variables[i]), 0);
    }
    unlink(support_path("config/utter/config"));
    if (text) {
        support_write_file(support_path("config/utter/config"), text, strlen(text));
    }
}

static void assert_chosen(
    unsigned command, const char *typed, const char *model, const char *voice, const char *device)
{
    const struct setting *const settings[] = {
        &now.settings.model, &now.settings.voice, &now.settings.device};
    const char *const wanted[] = {model, voice, device};
    good(command, typed);
    heard_begin();
    int code = defaults_apply(&now);
    heard_assert("");
    assert_int_equal(code, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(wanted[i] != NULL, settings[i]->text != NULL);
        if (wanted[i]) {
            assert_string_equal(settings[i]->text, wanted[i]);
        }
    }
}

static void what_is_not_typed_is_chosen_by_variables_then_the_file(void **state)
{
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", support_path("config/utter/config"));
    write_config(NULL);
    assert_chosen(COMMAND_SAY, "a", NULL, NULL, "auto");
    assert_null(now.settings.model.rule);
    write_config("# chosen\n\n model=m1 \nvoice = \tann\t\r\n\tdevice = cpu");
    assert_chosen(COMMAND_SAY, "a", "m1", "ann", "cpu");
    assert_string_equal(now.settings.model.rule, path);
    assert_string_equal(defaults_file(), path);
    assert_false(now.settings.model.given);
    /* A voice of the file is one of its model's. */
    assert_chosen(COMMAND_SAY, "-m m2 a", "m2", NULL, "cpu");
    assert_chosen(COMMAND_SAY, "-v bob a", "m1", "bob", "cpu");
    assert_int_equal(setenv("UTTER_MODEL", "m3", 1), 0);
    assert_chosen(COMMAND_SAY, "a", "m3", NULL, "cpu");
    assert_string_equal(now.settings.model.rule, "UTTER_MODEL");
    assert_int_equal(setenv("UTTER_VOICE", "eve", 1), 0);
    assert_chosen(COMMAND_SAY, "a", "m3", "eve", "cpu");
    assert_chosen(COMMAND_SAY, "-m m2 a", "m2", "eve", "cpu");
    assert_int_equal(setenv("UTTER_MODEL", "", 1), 0);
    assert_chosen(COMMAND_SAY, "a", "m1", "eve", "cpu");
    /* What a command does not take it is not given; a server's listeners have its own. */
    assert_chosen(COMMAND_INFO, "", "m1", NULL, "cpu");
    assert_chosen(COMMAND_LOAD, "", NULL, NULL, "auto");
    write_config("model = builtin\nvoice = builtin\ndevice = auto\n");
    assert_chosen(COMMAND_SAY, "a", NULL, "builtin", "auto");
    assert_string_equal(now.settings.model.rule, path);
    /* `utter use` shows all three, and begins anew where something is typed. */
    write_config("model = m1\nvoice = ann\ndevice = cpu\n");
    assert_chosen(COMMAND_USE, "", "m1", "ann", "cpu");
    assert_chosen(COMMAND_USE, "m2", NULL, NULL, "auto");
    assert_chosen(COMMAND_USE, "-v bob", NULL, "bob", "auto");
}

static void a_line_of_the_file_that_is_wrong_is_told(void **state)
{
    (void)state;
    static const char *const wrong[] = {"model\n", "model =\n", "modell = a\n", "= a\n", "seed = 1\n"};
    char text[5000], why[5400], path[PATH_MAX];
    snprintf(path, sizeof path, "%s", support_path("config/utter/config"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "# one\nvoice = a\n%s", wrong[i]);
        write_config(text);
        good(COMMAND_SAY, "a");
        heard_begin();
        int code = defaults_apply(&now);
        snprintf(why, sizeof why,
            "utter: %s, line 3: is not \"model = NAME\", \"voice = NAME\" or \"device = NAME\"", path);
        heard_assert(why);
        assert_int_equal(code, 1);
    }
    /* 4,158 bytes and a line's end fit. */
    for (int more = 0; more < 2; more++) {
        size_t n = 4096 + 64 - 2 + (size_t)more;
        memset(text, 'x', sizeof text);
        memcpy(text, "model = ", 8);
        text[n] = '\n';
        text[n + 1] = 0;
        write_config(text);
        good(COMMAND_SAY, "a");
        heard_begin();
        int code = defaults_apply(&now);
        snprintf(why, sizeof why, "utter: %s, line 1: is longer than 4158 bytes", path);
        heard_assert(more ? why : "");
        assert_int_equal(code, more);
    }
    /* A folder of that name cannot be read. */
    write_config(NULL);
    assert_int_equal(mkdir(path, 0700), 0);
    good(COMMAND_SAY, "a");
    heard_begin();
    int code = defaults_apply(&now);
    snprintf(why, sizeof why, "utter: %s: cannot read: Is a directory", path);
    heard_assert(why);
    assert_int_equal(code, 1);
    assert_int_equal(rmdir(path), 0);
}

/* Somebody who may not read it, as where HOME is another's. */
static void be_a_stranger(void)
{
    static const char *const words[] = {"-q a", "a", "a"};
    if (getuid() == 0 && (setgid(1) != 0 || setuid(1) != 0)) {
        _exit(1);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!parse(COMMAND_SAY, words[i]) || defaults_apply(&now) != 0 || now.settings.model.text) {
            _exit(1);
        }
        fprintf(stderr, "%zu\n", i);
    }
}

static void a_file_of_somebody_else_chooses_nothing(void **state)
{
    (void)state;
    char path[PATH_MAX], said[PATH_MAX + 256];
    snprintf(path, sizeof path, "%s", support_path("config/utter/config"));
    write_config("model = m1\n");
    assert_int_equal(chmod(path, 0), 0);
    heard_begin();
    int end = support_child_end(be_a_stranger);
    snprintf(said, sizeof said,
        "0\nutter: note: %s: cannot read: Permission denied (it chooses no model, voice or "
        "device)\n1\n2",
        path);
    heard_assert(said);
    assert_int_equal(end, 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static void folders_are_the_users(void **state)
{
    (void)state;
    assert_int_equal(setenv("XDG_CONFIG_HOME", "relative", 1), 0);
    assert_int_equal(setenv("HOME", "/home/ann", 1), 0);
    assert_string_equal(defaults_file(), "/home/ann/.config/utter/config");
    assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
    assert_string_equal(defaults_file(), "/home/ann/.config/utter/config");
    assert_int_equal(setenv("XDG_CONFIG_HOME", "/etc/xdg", 1), 0);
    assert_string_equal(defaults_file(), "/etc/xdg/utter/config");
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_string_equal(defaults_cache(), "/home/ann/.cache/utter");
    assert_int_equal(setenv("XDG_CACHE_HOME", "/var/cache", 1), 0);
    assert_string_equal(defaults_cache(), "/var/cache/utter");
    assert_int_equal(setenv("HOME", "home", 1), 0);
    assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
    assert_null(defaults_file());
    /* A path of 4,095 bytes is the longest. */
    for (size_t more = 0; more < 2; more++) {
        char home[5000];
        size_t n = 4095 - strlen("/.config/utter/config") + more;
        memset(home, 'n', n);
        home[0] = '/';
        home[n] = 0;
        assert_int_equal(setenv("HOME", home, 1), 0);
        assert_int_equal(defaults_file() != NULL, !more);
    }
    /* A file in the place of the folder is no fault, and chooses nothing. */
    write_config(NULL);
    support_write_file(support_path("file"), "", 0);
    assert_int_equal(setenv("XDG_CONFIG_HOME", support_path("file"), 1), 0);
    assert_chosen(COMMAND_SAY, "a", NULL, NULL, "auto");
    assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
    char text[] = " \t a b \t\r\n";
    assert_string_equal(defaults_trim(text), "a b");
    char blank[] = " \n";
    assert_string_equal(defaults_trim(blank), "");
}

/* ---- utter serve ---- */

static void write_serve(const char *text)
{
    write_config(NULL);
    support_write_file(support_path("config/utter/serve.conf"), text, strlen(text));
}

static void a_server_reads_a_file_then_variables_then_what_was_typed(void **state)
{
    (void)state;
    char typed[5000];
    write_serve("# a server\nport = 81\nquiet = yes\nhost=a\n\n queue =\t7 \n");
    good(COMMAND_SERVE, "");
    assert_int_equal(now.settings.plain.serve.port, 81);
    assert_true(now.settings.plain.serve.quiet);
    assert_int_equal(now.settings.plain.serve.queue, 7);
    assert_int_equal(setenv("UTTER_SERVE_PORT", "82", 1), 0);
    assert_int_equal(setenv("UTTER_SERVE_API_KEY_FILE", "keys", 1), 0);
    assert_int_equal(setenv("UTTER_SERVE_QUEUE", "", 1), 0);
    assert_int_equal(setenv("UTTER_SERVE_QUIET", "no", 1), 0);
    assert_int_equal(setenv("UTTER_SERVE_HELP", "1", 1), 0);
    good(COMMAND_SERVE, "");
    assert_int_equal(now.settings.plain.serve.port, 82);
    assert_string_equal(now.settings.plain.serve.key_file, "keys");
    assert_int_equal(now.settings.plain.serve.queue, 7);
    assert_false(now.settings.plain.serve.quiet);
    assert_string_equal(now.settings.plain.serve.host, "a");
    good(COMMAND_SERVE, "--port 83");
    assert_int_equal(now.settings.plain.serve.port, 83);
    /* Other files: named by a variable, and before that by what was typed. */
    support_write_file(support_path("named"), "queue = 8\n", 10);
    support_write_file(support_path("typed"), "queue = 9\n", 10);
    assert_int_equal(setenv("UTTER_SERVE_CONFIG", support_path("named"), 1), 0);
    good(COMMAND_SERVE, "");
    assert_int_equal(now.settings.plain.serve.queue, 8);
    assert_string_equal(now.settings.plain.serve.host, "127.0.0.1");
    snprintf(typed, sizeof typed, "--config %s", support_path("typed"));
    good(COMMAND_SERVE, typed);
    assert_int_equal(now.settings.plain.serve.queue, 9);
    snprintf(typed, sizeof typed, "--config=%s", support_path("typed"));
    good(COMMAND_SERVE, typed);
    assert_int_equal(now.settings.plain.serve.queue, 9);
    assert_int_equal(setenv("UTTER_SERVE_PORT", "x", 1), 0);
    refused(COMMAND_SERVE, "", "utter: UTTER_SERVE_PORT: 'x' is not a whole number from 0 to 65535");
    /* Who asks for help gets it, whatever is wrong. */
    good(COMMAND_SERVE, "--help");
    good(COMMAND_SERVE, "-h");
    good(COMMAND_SERVE, "--help --config none");
    good(COMMAND_SERVE, "--config none --help");
    static const char *const names[] = {"PORT", "API_KEY_FILE", "QUEUE", "QUIET", "HELP", "CONFIG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(typed, sizeof typed, "UTTER_SERVE_%s", names[i]);
        assert_int_equal(unsetenv(typed), 0);
    }
}

static void a_line_of_a_servers_file_that_is_wrong_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *line, *why;
    } wrong[] = {
        {"port", "is not OPTION = VALUE"},
        {"port = 70000", "port: '70000' is not a whole number from 0 to 65535"},
        {"pord = 1", "pord: utter serve has no option 'pord' (did you mean port?)"},
    };
    char text[8192], why[5000];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "\n%s\n", wrong[i].line);
        write_serve(text);
        snprintf(why, sizeof why, "utter: %s, line 2: %s", support_path("config/utter/serve.conf"),
            wrong[i].why);
        refused(COMMAND_SERVE, "", why);
    }
    static const char *const apart[] = {"config", "help"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%s = x\n", apart[i]);
        write_serve(text);
        snprintf(why, sizeof why, "utter: %s, line 1: '%s' cannot stand in a file",
            support_path("config/utter/serve.conf"), apart[i]);
        refused(COMMAND_SERVE, "", why);
    }
    /* 256 lines, and one more. */
    for (int more = 0; more < 2; more++) {
        size_t n = 256 + (size_t)more;
        memset(text, '\n', n);
        text[n] = 0;
        write_serve(text);
        if (more) {
            snprintf(why, sizeof why, "utter: %s: has more than 256 lines",
                support_path("config/utter/serve.conf"));
            refused(COMMAND_SERVE, "", why);
        } else {
            good(COMMAND_SERVE, "");
        }
    }
    static const char *const unread[] = {"none", ""};
    static const char *const reasons[] = {"No such file or directory", "Is a directory"};
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "--config %s", support_path(unread[i]));
        snprintf(why, sizeof why, "utter: %s: cannot read: %s", support_path(unread[i]), reasons[i]);
        refused(COMMAND_SERVE, text, why);
    }
    write_serve("");
    refused(COMMAND_SERVE, "--port 1 --config", "utter: --config: its value is missing (FILE)");
    free(now.words);
    now.words = NULL;
}

static void what_is_no_option_and_what_is_for_all_commands(void **state)
{
    (void)state;
    /* Words behind -- are no options. */
    write_serve("");
    refused(COMMAND_SERVE, "-- --config none",
        "utter: serve: '--config' is one argument too many (utter serve --help)");
    refused(COMMAND_SERVE, "-- --help",
        "utter: serve: '--help' is one argument too many (utter serve --help)");
    /* A variable for every command comes before the file. */
    write_serve("device = cpu\nmodel = of-file\n");
    good(COMMAND_SERVE, "");
    assert_string_equal(now.settings.device.text, "cpu");
    assert_string_equal(now.settings.model.text, "of-file");
    assert_int_equal(setenv("UTTER_MODEL", "m", 1), 0);
    good(COMMAND_SERVE, "");
    assert_string_equal(now.settings.device.text, "cpu");
    assert_null(now.settings.model.text);
    free(now.words);
    now.words = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_somebody_else_chooses_nothing), /* before any other has chosen */
        cmocka_unit_test(options_are_read_in_every_way_of_writing),
        cmocka_unit_test(what_nobody_types_is_the_tables),
        cmocka_unit_test(numbers_have_bounds),
        cmocka_unit_test(what_a_model_samples_by_is_kept_apart),
        cmocka_unit_test(what_is_no_option_is_told),
        cmocka_unit_test(words_are_as_many_as_the_command_takes),
        cmocka_unit_test(an_option_may_have_another_source),
        cmocka_unit_test(what_is_not_typed_is_chosen_by_variables_then_the_file),
        cmocka_unit_test(a_line_of_the_file_that_is_wrong_is_told),
        cmocka_unit_test(folders_are_the_users),
        cmocka_unit_test(a_server_reads_a_file_then_variables_then_what_was_typed),
        cmocka_unit_test(a_line_of_a_servers_file_that_is_wrong_is_told),
        cmocka_unit_test(what_is_no_option_and_what_is_for_all_commands),
    };
    /* Nothing of the user's chooses anything. */
    unsetenv("UTTER_SERVE_CONFIG");
    setenv("XDG_CONFIG_HOME", support_path("nowhere"), 1);
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
