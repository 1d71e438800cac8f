/* SPDX-License-Identifier: Apache-2.0
 * The scripts that complete commands in a shell: that each command, option and choice is offered where it belongs, in
 * words that the shell reads as they are meant. */
#include "cli/options.h"
#include "tests/cli/heard.h"

static char *script_of(const char *shell)
{
    const char *words[] = {shell};
    const struct invocation invocation = {.words = words, .n_words = 1};
    printed_begin("script");
    int code = command_completion(&invocation);
    char *script = printed_end("script");
    assert_int_equal(code, 0);
    return script;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)); text++) {
        n++;
    }
    return n;
}

/* Each of these stands there once. */
static void assert_lines(const char *script, const char *const *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (count(script, lines[i]) != 1) {
            fail_msg("%zu times: %s", count(script, lines[i]), lines[i]);
        }
    }
}

static void bash_is_given_words_and_where_they_go(void **state)
{
    (void)state;
    static const char *const lines[] = {
        /* The first words, those of two words once. */
        "\n        commands='say read job clone design voices info models pull use completion tokens "
        "codec verify quantize align-heads bench serve mcp load '\n",
        "    case \"$command ${COMP_WORDS[2]}\" in\n"
        "    'job submit' | 'job work' | 'job status' | 'job retry' | 'job collect' | 'voices mix' | "
        "'codec decode' | 'codec encode') command=\"$command ${COMP_WORDS[2]}\" ;;\n"
        "    esac\n",
        /* What is nothing without a second word. `utter voices` is something. */
        "    case \"$command\" in\n"
        "    job) COMPREPLY=($(compgen -W 'submit work status retry collect' -- \"$cur\")); return ;;\n"
        "    codec) COMPREPLY=($(compgen -W 'decode encode' -- \"$cur\")); return ;;\n"
        "    completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\")); return ;;\n"
        "    pull | use) options='0.6b 0.6b-base 1.7b 1.7b-base design ' ;;\n"
        "    esac\n",
        "return ;;\n    esac\n    case \"$command\" in\n    'say') options+='",
        "\n    'say:--sample') COMPREPLY=($(compgen -W 's16 f32' -- \"$cur\")); return ;;\n",
        "\n    'codec decode:--rule') COMPREPLY=($(compgen -W 'whole official' -- \"$cur\")); return "
        ";;\n",
        "\n    'job submit:--format') COMPREPLY=($(compgen -W 'wav flac ogg opus mp3 raw' -- "
        "\"$cur\")); return ;;\n",
        "\n    'completion') options+='--help ' ;;\n",
        "\n    'pull') options+='--quiet --help ' ;;\n",
        "\n    'models') options+='--json --help ' ;;\n",
        "\n    'quantize') options+='--model --output --weights --quiet --help ' ;;\n",
        "\n    esac\n    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n}\n"
        "complete -o default -F _utter utter\n",
    };
    char *script = script_of("bash");
    assert_lines(script, lines, sizeof lines / sizeof *lines);
    assert_int_equal(strncmp(script, "_utter() {\n", 11), 0);
    assert_null(strstr(script, "--as ")); /* an option that the help does not show */
    assert_null(strstr(script, ":--output')"));
    assert_non_null(strstr(script, "--temperature "));
    /* zsh reads the same. */
    char *zsh = script_of("zsh");
    static const char first[] = "autoload -Uz bashcompinit && bashcompinit\n";
    assert_int_equal(strncmp(zsh, first, sizeof first - 1), 0);
    assert_string_equal(zsh + sizeof first - 1, script);
    free(zsh);
    free(script);
}

static void every_command_has_its_options(void **state)
{
    (void)state;
    char *script = script_of("bash");
    for (size_t c = 0; c < n_commands; c++) {
        char line[256], offered[2048], word[64];
        size_t n_shown = 0, n_choices = 0;
        snprintf(line, sizeof line, "\n    '%s') options+='", command_table[c].name);
        const char *options = strstr(script, line);
        assert_non_null(options);
        options += strlen(line);
        snprintf(offered, sizeof offered, " %.*s", (int)strcspn(options, "'"), options);
        for (size_t i = 0; i < options_count(); i++) {
            const struct option o = option_at(i);
            const bool is_shown = option_is_shown(&o, &command_table[c]);
            snprintf(word, sizeof word, " --%s ", o.name);
            assert_true(!is_shown || strstr(offered, word));
            n_shown += is_shown;
            n_choices += is_shown && o.kind == OPTION_CHOICE;
        }
        assert_int_equal(count(offered, " --"), n_shown);
        snprintf(line, sizeof line, "\n    '%s:--", command_table[c].name);
        assert_int_equal(count(script, line), n_choices);
    }
    free(script);
}

static void fish_is_given_a_line_for_each(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "complete -c utter -f -n __fish_use_subcommand -a 'say' -d 'speak a text'\n",
        "complete -c utter -f -n __fish_use_subcommand -a 'voices' -d 'list voices and languages, or "
        "tell what a voice file holds'\n",
        "complete -c utter -f -n '__fish_seen_subcommand_from voices' -a 'mix' -d 'mix cloned voices "
        "by weight'\n",
        "complete -c utter -f -n '__fish_seen_subcommand_from job' -a 'work' -d 'speak the lines of a "
        "queue'\n",
        /* With a letter and a value; without; of two words. */
        "complete -c utter -n '__fish_seen_subcommand_from quantize' -l output -s o -r -d 'the file to "
        "write'\n",
        "complete -c utter -n '__fish_seen_subcommand_from say' -l greedy -d 'always the likeliest "
        "code, in both models'\n",
        "complete -c utter -n '__fish_seen_subcommand_from job; and __fish_seen_subcommand_from "
        "collect' -l output -s o -r -d 'the folder to put each line'\\''s sound into, as ID.FORMAT, "
        "and "
        "results.jsonl'\n",
        /* A choice has its words, and no files. */
        "complete -c utter -n '__fish_seen_subcommand_from say' -l sample -r -f -a 's16 f32' -d 'kind "
        "of samples in wav and raw: 16-bit integers, or 32-bit floats'\n",
        "complete -c utter -n '__fish_seen_subcommand_from codec; and __fish_seen_subcommand_from "
        "decode' -l chunk -r -d 'frames decoded in one call; the samples stay the same (default: the "
        "program'\\''s choice)'\n",
        "complete -c utter -f -n __fish_use_subcommand -a codec -d 'codes and sound'\n"
        "complete -c utter -f -n '__fish_seen_subcommand_from pull use' -a '0.6b 0.6b-base 1.7b "
        "1.7b-base design'\n"
        "complete -c utter -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n",
    };
    char *script = script_of("fish");
    assert_lines(script, lines, sizeof lines / sizeof *lines);
    /* A line for each command, each option of each, and what stands last. */
    size_t n = 3 + n_commands;
    for (size_t c = 0; c < n_commands; c++) {
        for (size_t i = 0; i < options_count(); i++) {
            const struct option o = option_at(i);
            n += option_is_shown(&o, &command_table[c]);
        }
    }
    assert_int_equal(count(script, "\n"), n);
    assert_int_equal(count(script, "complete -c utter "), n);
    assert_null(strstr(script, "-l as "));
    free(script);
}

static void another_shell_is_refused(void **state)
{
    (void)state;
    const char *words[] = {"csh"};
    const struct invocation invocation = {.words = words, .n_words = 1};
    heard_begin();
    int code = command_completion(&invocation);
    heard_assert("utter: completion: 'csh' is none of bash, zsh, fish");
    assert_int_equal(code, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bash_is_given_words_and_where_they_go),
        cmocka_unit_test(every_command_has_its_options),
        cmocka_unit_test(fish_is_given_a_line_for_each),
        cmocka_unit_test(another_shell_is_refused),
    };
    return cmocka_run_group_tests_name("completion", tests, NULL, NULL);
}
