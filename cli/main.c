/* SPDX-License-Identifier: Apache-2.0
 * The program `utter`: finds the command, reads its options, runs it. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tables/nearest.h"
#include "cli/defaults.h"
#include "cli/options.h"
#include "cli/overwrite.h"
#include "cli/report.h"
#include "cli/voice/shared_voices.h"
#include "server/front/serve.h"
#include "utter.h"

/* A closed standard stream would give its number to the next file that is opened. What stands in fails the
 * way a closed stream does. */
static void open_standard_streams(void)
{
    for (int i = 0; i <= 2; i++) {
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", i == 0 ? O_WRONLY : O_RDONLY) != i) {
            _exit(2);
        }
    }
}

static void print_help(FILE *out)
{
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
}

/* The command that arguments[0], or [0] and [1] together, name; *n_taken says how many were used. */
static const struct command *command_find(int n, char **arguments, int *n_taken)
{
    for (size_t i = 0; i < n_commands; i++) {
        const char *name = command_table[i].name;
        const char *blank = strchr(name, ' ');
        size_t length = blank ? (size_t)(blank - name) : strlen(name);
        if (strncmp(name, arguments[0], length) != 0 || arguments[0][length]) {
            continue;
        }
        if (!blank) {
            *n_taken = 1;
            return &command_table[i];
        }
        if (n > 1 && strcmp(arguments[1], blank + 1) == 0) {
            *n_taken = 2;
            return &command_table[i];
        }
    }
    return NULL;
}

static int fail_command(int n, char **arguments)
{
    char typed[256];
    bool two = strcmp(arguments[0], "codec") == 0 && n > 1 && arguments[1][0] != '-';
    snprintf(typed, sizeof typed, "%s%s%s", arguments[0], two ? " " : "", two ? arguments[1] : "");
    if (strcmp(typed, "codec") == 0) {
        return fail(
            1, "codec: what should it do? (utter codec decode --help, utter codec encode --help)");
    }
    const char *kind = typed[0] == '-' ? "option" : "command";
    struct nearest nearest = nearest_begin(typed);
    for (size_t i = 0; i < n_commands; i++) {
        nearest_offer(&nearest, command_table[i].name);
    }
    nearest_offer(&nearest, "--version");
    nearest_offer(&nearest, "--help");
    return nearest.name ? fail(1, "no %s '%s' (did you mean %s?)", kind, typed, nearest.name)
                        : fail(1, "no %s '%s' (utter --help lists the commands)", kind, typed);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

int main(int n, char **arguments)
{
    open_standard_streams();
    /* A closed pipe and a file that may not grow are errors of the write, reported as every other. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (n < 2) {
        print_help(stderr);
        return 1;
    }
    n--;
    arguments++;
    if (strcmp(arguments[0], "--version") == 0) {
        printf("utter %s\n", utter_version_text());
        return finish_output(0);
    }
    int child = serve_child(n, arguments);
    if (child >= 0) {
        return child;
    }
    bool help = is_help(arguments[0]) ||
                (strcmp(arguments[0], "codec") == 0 && n == 2 && is_help(arguments[1]));
    if (help && n > 1 && arguments[0][0] == 'h') {
        n--;
        arguments++;
    } else if (help) {
        print_help(stdout);
        return finish_output(0);
    }
    int n_taken = 0;
    const struct command *command = command_find(n, arguments, &n_taken);
    if (!command) {
        return fail_command(n, arguments);
    }
    struct invocation invocation;
    int code = 1;
    if (help) {
        options_help(command, stdout);
        return finish_output(0);
    }
    if (options_parse(&invocation, command, n - n_taken, arguments + n_taken)) {
        if (invocation.settings.help.given) {
            options_help(command, stdout);
            code = 0;
        } else {
            code = defaults_apply(&invocation);
            code = code ? code : overwrite_check(&invocation);
            code = code ? code : shared_voices_open(&invocation.settings);
            code = code ? code : command->run(&invocation);
        }
        code = finish_output(code);
    }
    free(invocation.words);
    return code;
}
