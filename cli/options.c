/* SPDX-License-Identifier: Apache-2.0
 * Reads the command line by the table and prints the help from the same table. */
#include "cli/options.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables/nearest.h"
#include "cli/report.h"
#include "cli/serve_defaults.h"

enum { NAME_MAX_LENGTH = 64, HELP_COLUMN = 32, HELP_WIDTH = 100 };

static bool choice_allows(const char *choices, const char *value)
{
    size_t length = strcspn(value, "|"); /* two of them are none */
    for (const char *at = choices; at && length > 0 && !value[length]; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, value, length) == 0 && (at[length] == '|' || at[length] == 0)) {
            return true;
        }
    }
    return false;
}

static bool parse_integer(
    struct setting *setting, const struct option *option, const char *value, const char *called)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    bool digits = value[0] >= '0' && value[0] <= '9';
    if (!digits || *end || errno || (double)number < option->low || (double)number > option->high) {
        char high[32];
        snprintf(high, sizeof high, "%.0f", option->high);
        return say_no("%s: '%s' is not a whole number from %.0f to %s", called, value, option->low,
            option->high < 1e15 ? high : "2^64 - 1");
    }
    setting->integer = number;
    return true;
}

static bool parse_number(
    struct setting *setting, const struct option *option, const char *value, const char *called)
{
    char *end = NULL;
    double number = strtod(value, &end);
    bool written =
        value[0] && strspn(value, "0123456789.eE+-") == strlen(value) && end != value && !*end;
    if (!written || !(number >= option->low && number <= option->high)) {
        bool above = option->low == DBL_MIN;
        return say_no("%s: '%s' is not a number %s %g to %g", called, value, above ? "above" : "from",
            above ? 0 : option->low, option->high);
    }
    setting->number = number;
    return true;
}

static bool parse_value(
    struct setting *setting, const struct option *option, const char *value, const char *called)
{
    setting->text = value;
    switch (option->kind) {
    case OPTION_INTEGER:
        return parse_integer(setting, option, value, called);
    case OPTION_NUMBER:
        return parse_number(setting, option, value, called);
    case OPTION_CHOICE:
        if (!choice_allows(option->value, value)) {
            return say_no("%s: '%s' is none of %s", called, value, option->value);
        }
        return true;
    case OPTION_TEXT:
        if (value[0] == 0) {
            return say_no("%s: the value is empty", called);
        }
        return true;
    case OPTION_FLAG:
    case OPTION_PARAMETERS:
        break;
    }
    return true;
}

/* A value of the option goes to its place in the settings; errors name it as it was `called`. */
static bool take_value(struct settings *settings, const struct option *option, const char *value,
    bool given, const char *called)
{
    void *at = (char *)settings + option->setting;
    struct setting plain = {0}, *setting = at;
    if (option->setting < offsetof(struct settings, plain)) {
        setting->given = given;
        return parse_value(setting, option, value, called);
    }
    if (!parse_value(&plain, option, value, called)) {
        return false;
    }
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)at = given;
        break;
    case OPTION_INTEGER:
        *(int *)at = (int)plain.integer;
        break;
    case OPTION_NUMBER:
        *(double *)at = plain.number;
        break;
    case OPTION_TEXT:
    case OPTION_CHOICE:
        *(const char **)at = plain.text;
        break;
    case OPTION_PARAMETERS:
        break;
    }
    return true;
}

/* The option of this command with the name, or the letter when `letter` is not 0. False: there is none. */
static bool option_find(
    struct option *option, const struct command *command, const char *name, size_t length, char letter)
{
    for (size_t i = 0; i < options_count(); i++) {
        *option = option_at(i);
        bool same = letter ? option->letter == letter
                           : strncmp(option->name, name, length) == 0 && option->name[length] == 0;
        if (same && (option->commands & command->bit)) {
            return true;
        }
    }
    return false;
}

/* The command's own option whose name is nearest. */
static struct nearest nearest_option(const struct command *command, const char *name)
{
    struct nearest nearest = nearest_begin(name);
    for (size_t i = 0; i < options_count(); i++) {
        const struct option option = option_at(i);
        if (option_is_shown(&option, command)) {
            nearest_offer(&nearest, option.name);
        }
    }
    return nearest;
}

/* Whether some command has an option of this name. */
static bool is_option_somewhere(const char *name)
{
    bool found = false;
    for (size_t i = 0; i < options_count() && !found; i++) {
        found = strcmp(option_at(i).name, name) == 0;
    }
    return found;
}

static bool refuse_unknown(const struct command *command, const char *typed)
{
    int length = (int)strcspn(typed, "=");
    char name[NAME_MAX_LENGTH] = ""; /* of a letter there is none */
    if (strncmp(typed, "--", 2) == 0) {
        snprintf(name, sizeof name, "%.*s", length - 2, typed + 2);
    }
    const struct nearest nearest = nearest_option(command, name);
    return is_option_somewhere(name)
               ? say_no("%s: '%.*s' is an option of other commands (utter %s --help lists its own)",
                     command->name, length, typed, command->name)
           : nearest.name ? say_no("%s: no option '%.*s' (did you mean --%s?)", command->name, length,
                                typed, nearest.name)
                          : say_no("%s: no option '%s' (utter %s --help lists them; -- before a text "
                                   "that begins with a dash)",
                                command->name, typed, command->name);
}

/* Reads the option at arguments[*i] and its value; moves *i to the last argument that it took. */
static bool parse_option(struct invocation *invocation, int n, char **arguments, int *i)
{
    const char *typed = arguments[*i], *value = NULL;
    struct option option;
    bool found;
    if (typed[1] == '-') {
        size_t length = strcspn(typed + 2, "=");
        found = option_find(&option, invocation->command, typed + 2, length, 0);
        value = typed[2 + length] == '=' ? typed + 3 + length : NULL;
    } else {
        found = option_find(&option, invocation->command, NULL, 0, typed[1]);
        value = found && typed[2] ? typed + 2 : NULL;
    }
    if (!found) {
        return refuse_unknown(invocation->command, typed);
    }
    if (option.kind == OPTION_FLAG && value) {
        return say_no("--%s: takes no value, and '%s' was given", option.name, value);
    }
    if (option.kind != OPTION_FLAG && !value) {
        if (*i + 1 >= n) {
            return say_no("--%s: its value is missing (%s)", option.name, option.value);
        }
        value = arguments[++*i];
    }
    char called[NAME_MAX_LENGTH];
    snprintf(called, sizeof called, "--%s", option.name);
    return take_value(&invocation->settings, &option, value, true, called);
}

/* Of a flag in a file or a variable; -1: neither. */
static int on_or_off(const char *value)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(value, words[i]) == 0) {
            return (int)(i % 2);
        }
    }
    return -1;
}

bool options_take(
    struct invocation *invocation, const char *name, const char *value, const char *called)
{
    struct option option;
    if (!option_find(&option, invocation->command, name, strlen(name), 0)) {
        const char *near = nearest_option(invocation->command, name).name;
        return say_no("%s: utter %s has no option '%s'%s%s%s", called, invocation->command->name, name,
            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    }
    int on = option.kind == OPTION_FLAG ? on_or_off(value) : 1;
    if (on < 0) {
        return say_no("%s: '%s' is neither yes nor no", called, value);
    }
    return take_value(&invocation->settings, &option, value, on, called);
}

static bool check_words(const struct invocation *invocation)
{
    const struct command *command = invocation->command;
    if (invocation->n_words > command->most_words) {
        return say_no("%s: '%s' is one argument too many (utter %s --help)", command->name,
            invocation->words[command->most_words], command->name);
    }
    if (invocation->n_words < command->least_words) {
        return say_no(
            "%s: something is missing: utter %s %s", command->name, command->name, command->synopsis);
    }
    return true;
}

bool options_parse(
    struct invocation *invocation, const struct command *command, int n, char **arguments)
{
    memset(invocation, 0, sizeof *invocation);
    invocation->command = command;
    for (size_t i = 0; i < options_count(); i++) {
        const struct option option = option_at(i);
        if (option.fallback &&
            !take_value(&invocation->settings, &option, option.fallback, false, option.name)) {
            return false;
        }
    }
    if (command->bit == COMMAND_SERVE && !serve_defaults(invocation, n, arguments)) {
        return false;
    }
    invocation->words = calloc((size_t)n + 1, sizeof *invocation->words);
    if (!invocation->words) {
        return say_no("out of memory");
    }
    bool ended = false;
    for (int i = 0; i < n; i++) {
        if (!ended && strcmp(arguments[i], "--") == 0) {
            ended = true;
        } else if (!ended && arguments[i][0] == '-' && arguments[i][1]) {
            if (!parse_option(invocation, n, arguments, &i)) {
                return false;
            }
        } else {
            invocation->words[invocation->n_words++] = arguments[i];
        }
    }
    return invocation->settings.help.given || check_words(invocation);
}

/* Prints `text` from column HELP_COLUMN on, broken between words; the line so far has `column` columns. */
static void print_wrapped(FILE *out, const char *text, int column)
{
    if (column >= HELP_COLUMN - 1) {
        fputc('\n', out);
        column = 0;
    }
    while (*text) {
        int length = (int)strcspn(text, " ");
        bool first = column < HELP_COLUMN;
        if (!first && column + 1 + length > HELP_WIDTH) {
            fputc('\n', out);
            column = 0;
            first = true;
        }
        int blanks = first ? HELP_COLUMN - column : 1;
        column += fprintf(out, "%*s%.*s", blanks, "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_option(FILE *out, const struct option *option)
{
    char left[96], right[512];
    char letter[] = {option->letter ? '-' : ' ', option->letter ? option->letter : ' ',
        option->letter ? ',' : ' ', 0};
    snprintf(
        left, sizeof left, "  %s --%s %s", letter, option->name, option->value ? option->value : "");
    snprintf(right, sizeof right, "%s%s%s%s", option->help, option->fallback ? " (default " : "",
        option->fallback ? option->fallback : "", option->fallback ? ")" : "");
    print_wrapped(out, right, fprintf(out, "%s", left));
}

void options_help(const struct command *command, FILE *out)
{
    fprintf(out, "utter %s: %s\n\nUsage: utter %s %s\n%s%s", command->name, command->summary,
        command->name, command->synopsis, command->about[0] ? "\n" : "", command->about);
    const char *group = "";
    for (size_t i = 0; i < options_count(); i++) {
        const struct option option = option_at(i);
        if (!option_is_shown(&option, command)) {
            continue;
        }
        if (strcmp(group, option.group) != 0) {
            group = option.group;
            fprintf(out, "\n%s\n", group);
        }
        print_option(out, &option);
    }
    fprintf(out, "\nExamples\n  %s\n  %s\n", command->examples[0], command->examples[1]);
}
