/* SPDX-License-Identifier: Apache-2.0
 * The options of all commands: one table (option_table.c) gives parsing, ranges, defaults and help. Comes in:
 * argv. Goes out: struct settings, whose strings point into argv or the table. An option that `utter serve` or `utter
 * load` alone has goes straight into their own structs (server/loop/serve_options.h, server/load/load_options.h). */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/tables/parameters.h"
#include "cli/commands.h"
#include "server/front/serve.h"
#include "server/load/load.h"

/* What one option was set to. Without `given` the rest holds the table's default, or zeros. */
struct setting {
    bool given;
    const char *text;
    const char *rule; /* what chose a text that nobody typed: a variable, or the config file */
    uint64_t integer;
    double number;
};

struct settings {
    struct setting help;
    struct setting model, device, threads, kernels, weights;
    struct setting voice, language, instruct, file, layout;
    struct setting markup, cast, lexicon, spell_out, print_text, carry;
    struct setting output, format, sample, codes, times;
    struct setting speed, volume, rate;
    struct setting list, chapters, split, loudness, fit, fresh, reading_lanes;
    struct setting greedy, seed, max_frames, no_guard, retries, lines;
    struct setting sampling[MOST_PARAMETERS]; /* of parameter_table */
    struct setting stats, trace, json, quiet;
    struct setting pretokenizer;
    struct setting rule, chunk;
    struct setting runs, words, lanes, snapshots, as;
    struct setting voices, load_words;
    struct setting text, name, base;
    struct setting from, to;                                               /* of a recording */
    struct setting config;                                                 /* of utter serve */
    struct setting queue, results, until_empty, tries, quick, server, key; /* of utter job */
    /* Plain members, which say nothing of `given`: an int, a double, a bool or a string, by the kind of the option. */
    struct {
        struct serve_options serve;
        struct load_options load;
    } plain;
};

enum option_kind {
    OPTION_FLAG,
    OPTION_TEXT,
    OPTION_INTEGER,    /* low .. high, no sign */
    OPTION_NUMBER,     /* low .. high; low DBL_MIN means above 0 */
    OPTION_CHOICE,     /* one of the words of `value`, a|b|c */
    OPTION_PARAMETERS, /* in the table only: a row for each of parameter_table stands here */
};

struct option {
    unsigned commands; /* COMMAND_ bits of those that take it */
    const char *group; /* heading in the help */
    char letter;       /* or 0 */
    const char *name;
    const char *value; /* what stands for the value in the help; NULL for a flag */
    enum option_kind kind;
    double low, high;
    size_t setting; /* offset in struct settings: of a struct setting, or of a member of `plain` */
    const char *fallback; /* NULL, or the default as it would be typed */
    const char *help;     /* NULL: for who measures; help and completion leave it out */
};

/* What was typed after the command. `words` are the arguments that are no options. */
struct invocation {
    const struct command *command;
    struct settings settings;
    const char **words;
    int n_words;
};

struct command {
    unsigned bit;
    const char *name;     /* "codec decode" */
    const char *summary;  /* a few words, for the list of commands */
    const char *synopsis; /* what follows the name */
    const char *about;    /* paragraphs of the help, lines broken */
    const char *examples[2];
    int least_words, most_words; /* how many arguments that are no options */
    int (*run)(const struct invocation *invocation);
};

/* Whether the command tells of the option. */
static inline bool option_is_shown(const struct option *option, const struct command *command)
{
    return option->help && (option->commands & command->bit);
}

/* Row i of the table. */
struct option option_at(size_t i);
size_t options_count(void);
extern const struct command command_table[];
extern const size_t n_commands;

/* Fills *invocation from the n arguments after the command's name. False after a message on stderr.
 * invocation->words is the caller's, to be freed. */
bool options_parse(
    struct invocation *invocation, const struct command *command, int n, char **arguments);

/* Sets the option of this name, as `called` (a variable, a line of a file) has it; a flag is on or off by its value.
 * The text stays the caller's. False after a message on stderr. */
bool options_take(
    struct invocation *invocation, const char *name, const char *value, const char *called);

/* The help of one command. */
void options_help(const struct command *command, FILE *out);

#endif
