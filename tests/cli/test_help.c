/* SPDX-License-Identifier: Apache-2.0
 * What a command says of itself: whole, as it was last agreed on, and that every option is told, once, in its group,
 * within the width of a page. */
#include <string.h>

#include "tests/cli/typed.h"

enum { COLUMN = 32, WIDTH = 100 };

/* To be freed. */
static char *help_of(const struct command *command)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    options_help(command, out);
    fclose(out);
    return text;
}

/* tests/cli/help has a file for each command. Who changes an option has them written anew by the program:
 *   build/release/utter voices mix --help > tests/cli/help/voices-mix.txt */
static void a_help_is_this(void **state)
{
    (void)state;
    for (size_t c = 0; c < n_commands; c++) {
        char name[128];
        snprintf(name, sizeof name, "tests/cli/help/%s.txt", command_table[c].name);
        for (char *blank; (blank = strchr(name, ' '));) {
            *blank = '-';
        }
        char *help = help_of(&command_table[c]);
        support_assert_content(name, help);
        free(help);
    }
}

/* The words of `help`, behind the name of the option, with one blank between them. Returns where the next begins. */
static const char *read_told(const char *line, char told[1024])
{
    size_t n = 0;
    const char *at = line;
    do {
        const char *end = strchr(at, '\n');
        size_t length = (size_t)(end - at);
        assert_true(length <= WIDTH || !memchr(at + COLUMN, ' ', length - COLUMN));
        if (length > COLUMN && (at != line || at[COLUMN - 1] == ' ')) {
            assert_int_equal(at[COLUMN - 1], ' ');
            assert_int_not_equal(at[COLUMN], ' ');
            n += (size_t)snprintf(
                told + n, 1024 - n, "%s%.*s", n ? " " : "", (int)(length - COLUMN), at + COLUMN);
        }
        at = end + 1;
    } while (strncmp(at, "                                ", COLUMN) == 0);
    return at;
}

static void every_option_is_told(void **state)
{
    (void)state;
    for (size_t c = 0; c < n_commands; c++) {
        const struct command *command = &command_table[c];
        char *help = help_of(command), head[256], told[1024], wanted[1024];
        const char *group = "", *at = strstr(help, "\n\n");
        snprintf(head, sizeof head, "utter %s: %s\n\nUsage: utter %s %s\n", command->name,
            command->summary, command->name, command->synopsis);
        assert_int_equal(strncmp(help, head, strlen(head)), 0);
        at = help + strlen(head) + (command->about[0] ? 1 : 0);
        assert_int_equal(strncmp(at, command->about, strlen(command->about)), 0);
        at += strlen(command->about);
        for (size_t i = 0; i < options_count(); i++) {
            const struct option o = option_at(i);
            if (!option_is_shown(&o, command)) {
                continue;
            }
            if (strcmp(o.group, group) != 0) {
                group = o.group;
                snprintf(head, sizeof head, "\n%s\n", group);
                assert_int_equal(strncmp(at, head, strlen(head)), 0);
                at += strlen(head);
            }
            char letter[8] = "    ";
            if (o.letter) {
                snprintf(letter, sizeof letter, "-%c, ", o.letter);
            }
            snprintf(head, sizeof head, "  %s--%s %s", letter, o.name, o.value ? o.value : "");
            assert_int_equal(strncmp(at, head, strlen(head)), 0);
            at = read_told(at, told);
            snprintf(wanted, sizeof wanted, o.fallback ? "%s (default %s)" : "%s", o.help, o.fallback);
            assert_string_equal(told, wanted);
        }
        snprintf(
            head, sizeof head, "\nExamples\n  %s\n  %s\n", command->examples[0], command->examples[1]);
        assert_string_equal(at, head);
        free(help);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_help_is_this),
        cmocka_unit_test(every_option_is_told),
    };
    return cmocka_run_group_tests_name("help", tests, typed_start, typed_end);
}
