/* SPDX-License-Identifier: Apache-2.0
 * utter completion: scripts for shells, made from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "base/tables/released.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/report.h"

/* The words of a choice, "a|b|c", with blanks between them; "" for other options. */
static void put_choices(const struct option *option)
{
    for (const char *c = option->kind == OPTION_CHOICE ? option->value : ""; *c; c++) {
        putchar(*c == '|' ? ' ' : *c);
    }
}

/* A text between single quotes of a shell, without the quotes. */
static void put_quoted(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else {
            putchar(*text);
        }
    }
}

/* The short names of the released models, with blanks between them. */
static void put_models(void)
{
    for (size_t i = 0; i < n_released; i++) {
        printf("%s%s", i > 0 ? " " : "", released_table[i].name);
    }
}

/* How many commands before this one begin with its first word. */
static size_t count_before(size_t command)
{
    const char *name = command_table[command].name;
    size_t n = strcspn(name, " "), count = 0;
    for (size_t i = 0; i < command; i++) {
        const char *other = command_table[i].name;
        count += strncmp(other, name, n) == 0 && (!other[n] || other[n] == ' ');
    }
    return count;
}

/* Whether the first word is nothing without a second: it has no option but --help. */
static bool is_group(const char *first, int length)
{
    bool has_options = false;
    for (size_t c = 0; c < n_commands; c++) {
        const char *name = command_table[c].name;
        bool is_it = strncmp(name, first, (size_t)length) == 0 && !name[length];
        for (size_t i = 0; i < options_count(); i++) {
            const struct option option = option_at(i);
            has_options = has_options || (is_it && (option.commands & command_table[c].bit) &&
                                             strcmp(option.name, "help") != 0);
        }
    }
    return !has_options;
}

/* A line for each group: its second words. */
static void put_groups(const char *begin, const char *between, const char *end)
{
    for (size_t c = 0; c < n_commands; c++) {
        const char *name = command_table[c].name, *blank = strchr(name, ' ');
        int length = blank ? (int)(blank - name) : 0;
        if (!blank || count_before(c) > 0 || !is_group(name, length)) {
            continue;
        }
        printf("%s%.*s%s", begin, length, name, between);
        for (size_t i = c; i < n_commands; i++) {
            const char *other = command_table[i].name;
            if (strncmp(other, name, (size_t)length + 1) == 0) {
                printf("%s%s", i > c ? " " : "", other + length + 1);
            }
        }
        fputs(end, stdout);
    }
}

static void put_bash(void)
{
    fputs("_utter() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= "
          "commands=\n"
          "    local command=${COMP_WORDS[1]}\n"
          "    case \"$command ${COMP_WORDS[2]}\" in\n"
          "    ",
        stdout);
    for (size_t i = 0, n = 0; i < n_commands; i++) {
        if (strchr(command_table[i].name, ' ')) {
            printf("%s'%s'", n++ > 0 ? " | " : "", command_table[i].name);
        }
    }
    fputs(") command=\"$command ${COMP_WORDS[2]}\" ;;\n"
          "    esac\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        commands='",
        stdout);
    for (size_t i = 0; i < n_commands; i++) {
        if (count_before(i) == 0) {
            printf("%.*s ", (int)strcspn(command_table[i].name, " "), command_table[i].name);
        }
    }
    fputs("'\n        COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n        return\n    fi\n"
          "    case \"$command\" in\n",
        stdout);
    put_groups("    ", ") COMPREPLY=($(compgen -W '", "' -- \"$cur\")); return ;;\n");
    fputs("    completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\")); return ;;\n"
          "    pull | use) options='",
        stdout);
    put_models();
    fputs(" ' ;;\n    esac\n    case \"$command:$before\" in\n", stdout);
    for (size_t c = 0; c < n_commands; c++) {
        for (size_t i = 0; i < options_count(); i++) {
            const struct option option = option_at(i);
            if ((option.commands & command_table[c].bit) && option.kind == OPTION_CHOICE) {
                printf("    '%s:--%s') COMPREPLY=($(compgen -W '", command_table[c].name, option.name);
                put_choices(&option);
                fputs("' -- \"$cur\")); return ;;\n", stdout);
            }
        }
    }
    fputs("    esac\n    case \"$command\" in\n", stdout);
    for (size_t c = 0; c < n_commands; c++) {
        printf("    '%s') options+='", command_table[c].name);
        for (size_t i = 0; i < options_count(); i++) {
            const struct option option = option_at(i);
            if (option_is_shown(&option, &command_table[c])) {
                printf("--%s ", option.name);
            }
        }
        fputs("' ;;\n", stdout);
    }
    fputs("    esac\n    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n}\n"
          "complete -o default -F _utter utter\n",
        stdout);
}

/* zsh reads what bash does. */
static void put_zsh(void)
{
    fputs("autoload -Uz bashcompinit && bashcompinit\n", stdout);
    put_bash();
}

static void put_fish_option(const struct command *command, const struct option *option)
{
    const char *blank = strchr(command->name, ' ');
    printf("complete -c utter -n '__fish_seen_subcommand_from %.*s", (int)strcspn(command->name, " "),
        command->name);
    if (blank) {
        printf("; and __fish_seen_subcommand_from%s", blank);
    }
    printf("' -l %s", option->name);
    if (option->letter) {
        printf(" -s %c", option->letter);
    }
    fputs(option->kind == OPTION_FLAG ? "" : " -r", stdout);
    if (option->kind == OPTION_CHOICE) {
        fputs(" -f -a '", stdout);
        put_choices(option);
        putchar('\'');
    }
    fputs(" -d '", stdout);
    put_quoted(option->help);
    fputs("'\n", stdout);
}

static void put_fish(void)
{
    for (size_t c = 0; c < n_commands; c++) {
        const struct command *command = &command_table[c];
        const char *blank = strchr(command->name, ' ');
        if (blank) {
            printf("complete -c utter -f -n '__fish_seen_subcommand_from %.*s' -a '%s' -d '",
                (int)(blank - command->name), command->name, blank + 1);
        } else {
            printf("complete -c utter -f -n __fish_use_subcommand -a '%s' -d '", command->name);
        }
        put_quoted(command->summary);
        fputs("'\n", stdout);
        for (size_t i = 0; i < options_count(); i++) {
            const struct option option = option_at(i);
            if (option_is_shown(&option, command)) {
                put_fish_option(command, &option);
            }
        }
    }
    fputs("complete -c utter -f -n __fish_use_subcommand -a codec -d 'codes and sound'\n"
          "complete -c utter -f -n '__fish_seen_subcommand_from pull use' -a '",
        stdout);
    put_models();
    fputs("'\n"
          "complete -c utter -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n",
        stdout);
}

int command_completion(const struct invocation *invocation)
{
    static const struct {
        const char *shell;
        void (*put)(void);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(invocation->words[0], shells[i].shell) == 0) {
            shells[i].put();
            return 0;
        }
    }
    return fail(1, "completion: '%s' is none of bash, zsh, fish", invocation->words[0]);
}
