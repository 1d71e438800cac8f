/* SPDX-License-Identifier: Apache-2.0
 * What a command says of itself: whole where it is short, and of all that every option is told, once, in its group,
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

static const struct {
    unsigned command;
    const char *help;
} short_helps[] = {
    {COMMAND_QUANTIZE,
        "utter quantize: pack a model into one file of 8 or 4 bits\n"
        "\n"
        "Usage: utter quantize [-m DIR] --weights q8|q4 -o FILE\n"
        "\n"
        "The file holds everything (weights, codec, configs, vocabulary) under a hash, and every "
        "command takes\n"
        "it as -m FILE. What each frame reads is packed, the vocoder's matrices take 16 bits, the "
        "rest stays as it is.\n"
        "\n"
        "Model\n"
        "  -m, --model DIR               a name of utter models, a checkpoint folder in the "
        "official layout,\n"
        "                                or a file of utter quantize (default: what utter use has "
        "chosen,\n"
        "                                else the voice that comes with the program)\n"
        "\n"
        "Output\n"
        "  -o, --output FILE             the file to write\n"
        "\n"
        "Machine\n"
        "      --weights q8|q4           the bits of what every frame reads: 8 or 4\n"
        "\n"
        "Report\n"
        "  -q, --quiet                   no progress and no notes\n"
        "  -h, --help                    this help\n"
        "\n"
        "Examples\n"
        "  utter quantize -m models/custom --weights q8 -o custom-q8.safetensors\n"
        "  utter say -m custom-q8.safetensors \"Hello there.\"\n"},
    {COMMAND_CODEC_DECODE,
        "utter codec decode: turn codes into sound\n"
        "\n"
        "Usage: utter codec decode [-m DIR] CODES.json -o FILE [options]\n"
        "\n"
        "CODES.json is what utter say --codes writes; - is standard input.\n"
        "\n"
        "Model\n"
        "  -m, --model DIR               a name of utter models, a checkpoint folder in the "
        "official layout,\n"
        "                                or a file of utter quantize (default: what utter use has "
        "chosen,\n"
        "                                else the voice that comes with the program)\n"
        "\n"
        "Output\n"
        "  -o, --output FILE             the sound file, - is standard output; without it plays, "
        "or where\n"
        "                                nothing can play replaces utter.wav\n"
        "      --format wav|raw|flac|ogg|opus|mp3\n"
        "                                kind of file (default by its name; raw on standard "
        "output)\n"
        "      --sample s16|f32          kind of samples in wav and raw: 16-bit integers, or "
        "32-bit floats\n"
        "                                (default s16)\n"
        "      --speed X                 so many times as fast, at the same pitch (default 1)\n"
        "      --volume X                so many times as loud; 1 is as the model speaks (default "
        "1)\n"
        "      --rate HZ                 samples a second (default: the model's)\n"
        "\n"
        "Decoding\n"
        "      --rule whole|official     whole: one stream without seams; official: the official "
        "package's\n"
        "                                chunks of 300 frames (default whole)\n"
        "      --chunk N                 frames decoded in one call; the samples stay the same "
        "(default: the\n"
        "                                program's choice)\n"
        "\n"
        "Machine\n"
        "      --device auto|cpu|cuda[:N]\n"
        "                                where to compute; auto: on the first GPU where it can be "
        "used, else\n"
        "                                on the CPU; kernels by name mean the CPU unless cuda is "
        "given\n"
        "                                (default auto)\n"
        "      --threads N               0: one for each core; the samples do not depend on it "
        "(default 0)\n"
        "      --kernels NAME            a set of kernels that utter info names (default: the best "
        "one here)\n"
        "      --weights bf16|q8|q4|q8-predictor\n"
        "                                hold what every frame reads in 8 or 4 bits, or the "
        "predictor's part\n"
        "                                alone in 8; bf16: as the model has it, but a CPU makes "
        "the sound\n"
        "                                with 16 bits as beside 8 and 4 (default: exact)\n"
        "\n"
        "Report\n"
        "  -q, --quiet                   no progress and no notes\n"
        "  -h, --help                    this help\n"
        "\n"
        "Examples\n"
        "  utter codec decode -m models/custom codes.json -o again.wav\n"
        "  utter codec decode -m models/custom --rule official codes.json -o official.wav\n"},
    {COMMAND_COMPLETION, "utter completion: print the script that completes commands in a shell\n"
                         "\n"
                         "Usage: utter completion bash|zsh|fish\n"
                         "\n"
                         "Report\n"
                         "  -h, --help                    this help\n"
                         "\n"
                         "Examples\n"
                         "  eval \"$(utter completion bash)\"\n"
                         "  utter completion fish > ~/.config/fish/completions/utter.fish\n"},
    {COMMAND_LOAD,
        "utter load: ask a server for much speech, and tell what listeners heard\n"
        "\n"
        "Usage: utter load [options]\n"
        "\n"
        "Texts are asked for as PCM, as OpenAI's interface has it. First sound: its first byte. "
        "Audible: the\n"
        "first sample above -50 dB, as a player would play it. Underrun: a player that starts with "
        "the first\n"
        "byte had nothing left.\n"
        "\n"
        "Server\n"
        "      --host ADDRESS            where it listens (default 127.0.0.1)\n"
        "      --port N                  and its port (default 8080)\n"
        "      --key KEY                 an API key\n"
        "\n"
        "Load\n"
        "      --rate X                  requests a second, at random times that wait for no "
        "answer\n"
        "      --listeners N             instead: so many listeners, each asks again when it has "
        "heard the\n"
        "                                last answer out (default 8)\n"
        "      --eager                   listeners ask again as soon as they have the answer\n"
        "      --seconds X               how long requests are sent (default 20)\n"
        "      --words N[-N]             words of a text (default 5-60)\n"
        "      --word-frames N           ask for at most N frames of 80 ms a word, where a model "
        "does not end\n"
        "                                by itself\n"
        "  -v, --voice NAME              who speaks\n"
        "      --seed N                  the same seed sends the same texts at the same times "
        "(default 0)\n"
        "      --limit MS                goodput counts answers that are audible within MS and "
        "never run dry\n"
        "                                (default 300)\n"
        "\n"
        "Report\n"
        "      --json                    the result as JSON on standard output\n"
        "  -h, --help                    this help\n"
        "\n"
        "Examples\n"
        "  utter load --rate 5 --seconds 30\n"
        "  utter load --listeners 20 --json\n"},
};

static void a_short_help_is_this(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof short_helps / sizeof *short_helps; i++) {
        char *help = help_of(typed_command(short_helps[i].command));
        assert_string_equal(help, short_helps[i].help);
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
        cmocka_unit_test(a_short_help_is_this),
        cmocka_unit_test(every_option_is_told),
    };
    return cmocka_run_group_tests_name("help", tests, typed_start, typed_end);
}
