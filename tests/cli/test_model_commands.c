/* SPDX-License-Identifier: Apache-2.0
 * The commands about models, as people type them: info, tokens, verify, models, use, quantize, align-heads and
 * bench. */
#include <math.h>
#include <sys/stat.h>

#include "tests/cli/typed.h"
#include "tests/heap.h"
#include "utter.h"

#define CHECKPOINTS "build/checkpoints/"
#define MODEL CHECKPOINTS "tiny06-custom_voice"
#define ON_CPU " --threads 1 --device cpu"
#define NOT_HERE                                                                                       \
    "utter: 0.6b: no folder or file, and the model Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice is not in "    \
    "@home (utter pull 0.6b gets it)\n"
#define WITH_MODEL " -m " MODEL ON_CPU

/* ---- tokens ---- */

static void tokens_are_printed_as_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *words, *prints;
    } rows[] = {
        {"Hello there.", "709 293 78 261 305 13\n"},
        {"Hello   there.", "709 293 78 261 305 13\n"},
        {"--json Hello there.", "{\"ids\":[709,293,78,261,305,13]}\n"},
        {"a", "64\n"},
        {"--json a", "{\"ids\":[64]}\n"},
        {"--pretokenizer native 2026", "17 15 17 21\n"},
        {"-f @text", "709 293 78 261 305 13 198\n"},
    };
    support_write_file(support_path("text"), "Hello there.\n", 13);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[256];
        snprintf(words, sizeof words, "-m " MODEL " %s", rows[i].words);
        typed_assert(COMMAND_TOKENS, words, 0, rows[i].prints, "");
    }
    typed_assert(
        COMMAND_TOKENS, "-m " MODEL " -f @none", 1, "", "utter: @none: No such file or directory\n");
    assert_int_equal(typed_run(COMMAND_TOKENS, "-m " MODEL " a\xff"), 1);
    assert_string_equal(typed_printed, "");
    assert_int_equal(strncmp(typed_said, "utter: ", 7), 0);
    typed_assert(COMMAND_TOKENS, "-m @none a", 1, "",
        "utter: @none: there is no such folder (check the name)\n");
}

/* ---- models ---- */

/* A repository in the hub's cache, of these bytes beside its config. */
static void put_repository(const char *name, const char *type, size_t bytes)
{
    static const char zeros[1 << 21];
    char path[PATH_MAX], config[128];
    static const char *const folders[] = {
        "", "/refs", "/snapshots", "/snapshots/c0ffee", "/snapshots/c0ffee/deep"};
    mkdir(support_path("home"), 0700);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "home/models--%s%s", name, folders[i]);
        mkdir(support_path(path), 0700);
    }
    snprintf(path, sizeof path, "home/models--%s/refs/main", name);
    support_write_file(support_path(path), "c0ffee", 6);
    snprintf(path, sizeof path, "home/models--%s/snapshots/c0ffee/config.json", name);
    int n = snprintf(config, sizeof config, "{\"model_type\":\"%s\"}", type);
    support_write_file(support_path(path), config, (size_t)n);
    snprintf(path, sizeof path, "home/models--%s/snapshots/c0ffee/deep/data", name);
    support_write_file(support_path(path), zeros, bytes - (size_t)n);
}

static void write_config(const char *text)
{
    mkdir(support_path("home/utter"), 0700);
    support_write_file(support_path("home/utter/config"), text, strlen(text));
}

static void models_that_are_here_are_listed(void **state)
{
    (void)state;
    put_repository("me--mine", "qwen3_tts", 1650000);
    put_repository("who--else", "bert", 100);
    put_repository("Qwen--Qwen3-TTS-12Hz-0.6B-Base", "qwen3_tts", 260000);
    put_repository("nobodys", "qwen3_tts", 100);
    setenv("UTTER_MODEL", "me/mine", 1);
    typed_assert(COMMAND_MODELS, "", 0,
        "  0.6b       Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice       not here\n"
        "  0.6b-base  Qwen/Qwen3-TTS-12Hz-0.6B-Base                0.3 MB\n"
        "  1.7b       Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice       not here\n"
        "  1.7b-base  Qwen/Qwen3-TTS-12Hz-1.7B-Base              not here\n"
        "  design     Qwen/Qwen3-TTS-12Hz-1.7B-VoiceDesign       not here\n"
        "*            me/mine                                      1.6 MB\n",
        "");
    typed_assert(COMMAND_MODELS, "--json", 0,
        "{\"cache\":\"@home\",\"models\":[{\"name\":\"0.6b\","
        "\"repository\":\"Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice\",\"path\":null,\"bytes\":0,"
        "\"chosen\":false},{\"name\":\"0.6b-base\","
        "\"repository\":\"Qwen/Qwen3-TTS-12Hz-0.6B-Base\","
        "\"path\":\"@home/models--Qwen--Qwen3-TTS-12Hz-0.6B-Base/snapshots/c0ffee\","
        "\"bytes\":260000,\"chosen\":false},{\"name\":\"1.7b\","
        "\"repository\":\"Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice\",\"path\":null,\"bytes\":0,"
        "\"chosen\":false},{\"name\":\"1.7b-base\","
        "\"repository\":\"Qwen/Qwen3-TTS-12Hz-1.7B-Base\",\"path\":null,\"bytes\":0,"
        "\"chosen\":false},{\"name\":\"design\",\"repository\":\"Qwen/Qwen3-TTS-12Hz-1.7B-Voi"
        "ceDesign\",\"path\":null,\"bytes\":0,\"chosen\":false},{\"name\":null,"
        "\"repository\":\"me/mine\",\"path\":\"@home/models--me--mine/snapshots/c0ffee\","
        "\"bytes\":1650000,\"chosen\":true}]}\n",
        "");
    setenv("UTTER_MODEL", "0.6b-base", 1);
    typed_run(COMMAND_MODELS, "");
    assert_non_null(strstr(typed_printed, "\n* 0.6b-base "));
    assert_non_null(strstr(typed_printed, "\n             me/mine "));
    write_config("modle = x\n");
    typed_assert(COMMAND_MODELS, "--json", 1, "",
        "utter: @home/utter/config, line 1: is not \"model = NAME\", \"voice = NAME\" or \"device = "
        "NAME\"\n");
    unsetenv("UTTER_MODEL");
}

/* ---- use ---- */

static void assert_config(const char *text)
{
    support_assert_content(support_path("home/utter/config"), typed_in_folder(text));
}

static void what_is_chosen_is_kept(void **state)
{
    (void)state;
    char whole[PATH_MAX], text[PATH_MAX + 64];
    assert_non_null(realpath(MODEL, whole));
    put_repository("me--mine", "qwen3_tts", 100);
    typed_assert(COMMAND_USE, "me/mine -v ryan --device cpu", 0, "", "");
    assert_config("model = me/mine\nvoice = ryan\ndevice = cpu\n");
    typed_assert(COMMAND_USE, MODEL, 0, "", "");
    snprintf(text, sizeof text, "model = %s\n", whole);
    assert_config(text);
    typed_assert(COMMAND_USE, "builtin -v clara", 0, "", "");
    assert_config("voice = clara\n");
    typed_assert(COMMAND_USE, "--device cuda:1", 0, "", "");
    assert_config("device = cuda:1\n");
    typed_assert(COMMAND_USE, "builtin", 0, "", "");
    assert_config("");
    struct stat about;
    assert_int_equal(stat(support_path("home/utter"), &about), 0);
    assert_true(S_ISDIR(about.st_mode));
}

static void a_choice_that_cannot_be_kept_is_refused(void **state)
{
    (void)state;
    typed_run(COMMAND_USE, "-v kept");
    typed_assert(COMMAND_USE, "nothing-here", 1, "",
        "utter: use: nothing-here: there is no such model (utter models lists them)\n");
    typed_assert(COMMAND_USE, "0.6b", 1, "",
        "utter: 0.6b: no folder or file, and the model Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice is not in "
        "@home "
        "(utter pull 0.6b gets it)\n");
    typed_assert(COMMAND_USE, "@none", 1, "",
        "utter: use: @none: there is no such model (utter models lists them)\n");
    typed_assert(COMMAND_USE, "-v a#b", 1, "", "utter: use: a name is too long, or has a '#' in it\n");
    assert_config("voice = kept\n");
    /* "voice = NAME" with its end is 12,287 bytes at most. */
    for (int more = 0; more < 2; more++) {
        char words[3 * PATH_MAX + 8] = "-v ";
        memset(words + 3, 'n', 3 * PATH_MAX - 10 + more);
        words[3 + 3 * PATH_MAX - 10 + more] = 0;
        typed_assert(COMMAND_USE, words, more, "",
            more ? "utter: use: a name is too long, or has a '#' in it\n" : "");
    }
    support_write_file(support_path("file"), "", 0);
    setenv("XDG_CONFIG_HOME", support_path("file/deep"), 1);
    typed_assert(
        COMMAND_USE, "-v ann", 2, "", "utter: @file/deep: cannot make the folder: Not a directory\n");
    setenv("XDG_CONFIG_HOME", support_path("new/deep"), 1);
    mode_t mask = umask(0);
    typed_assert(COMMAND_USE, "-v ann", 0, "", "");
    umask(mask);
    support_assert_content(support_path("new/deep/utter/config"), "voice = ann\n");
    struct stat about;
    assert_int_equal(stat(support_path("new/deep/utter"), &about), 0);
    assert_int_equal(about.st_mode & 07777, 0755);
    unsetenv("XDG_CONFIG_HOME");
    char home[PATH_MAX];
    snprintf(home, sizeof home, "%s", getenv("HOME"));
    unsetenv("HOME");
    typed_assert(
        COMMAND_USE, "-v ann", 1, "", "utter: use: no folder for the choice (HOME names none)\n");
    setenv("HOME", home, 1);
    typed_start(NULL);
}

/* ---- info and verify ---- */

static void a_model_is_told_about(void **state)
{
    (void)state;
    static const char first[] = "model        " CHECKPOINTS "unusual (-m)\n"
                                "kind         custom_voice, takes instructions\n"
                                "voices       9, languages 10\n"
                                "talker       3 layers, width 72, 0.3 M parameters\n"
                                "predictor    1 layers, width 40, 0.1 M parameters\n"
                                "vocoder      0.1 M parameters\n"
                                "in all       0.6 M parameters\n"
                                "frame        1920 samples at 24000 Hz, 8 codes of 0..31\n"
                                "positions    32768\n"
                                "files        1.6 MB mapped\n"
                                "memory       ";
    assert_int_equal(typed_run(COMMAND_INFO, "-m " CHECKPOINTS "unusual" ON_CPU), 0);
    assert_int_equal(strncmp(typed_printed, first, sizeof first - 1), 0);
    assert_non_null(strstr(typed_printed, " MB on top\n"
                                          "each frame   reads 1.3 MB of weights, mostly bf16\n"
                                          "device       cpu, threads 1 (--device)\n"
                                          "kernels      "));
    assert_int_equal(typed_run(COMMAND_INFO, "--threads 1 -m " MODEL), 0);
    assert_non_null(strstr(typed_printed, ", threads 1 (nobody chose)\n"));
    assert_int_equal(typed_run(COMMAND_INFO, "--json -m " MODEL ON_CPU), 0);
    static const struct {
        const char *name;
        int value;
    } numbers[] = {{"voices", 9}, {"languages", 10}, {"width", 64}, {"layers", 2},
        {"predictor_width", 64}, {"predictor_layers", 2}, {"codebooks", 16}, {"codebook_size", 64},
        {"frame_samples", 1920}, {"sample_rate", 24000}, {"positions", 32768},
        {"talker_parameters", 320304}, {"predictor_parameters", 209344}, {"vocoder_parameters", 195593},
        {"parameters", 832587}, {"file_bytes", 2323348}, {"frame_bytes", 3768356}, {"threads", 1},
        {"most_lanes", 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_int_equal(typed_number(NULL, numbers[i].name), numbers[i].value);
    }
    typed_assert(COMMAND_INFO, "-m 0.6b", 1, "", NOT_HERE);
}

static void a_model_is_verified(void **state)
{
    (void)state;
    static const char good[] = "ok    checkpoint        1            (limit 1)  3 of 3 files\n"
                               "ok    tokens            1            (limit 1)  2 of 2 texts\n"
                               "ok    codes             1            (limit 1)  64 of 64 codes\n"
                               "ok    finish            1            (limit 1)  2 of 2 cases\n"
                               "ok    streamed = whole  1            (limit 1)  2 of 2 cases\n"
                               "ok    samples, largest  ";
    assert_int_equal(typed_run(COMMAND_VERIFY,
                         "tests/golden/eos-first.safetensors -m " CHECKPOINTS "eos-first" ON_CPU),
        0);
    assert_int_equal(strncmp(typed_printed, good, sizeof good - 1), 0);
    assert_non_null(strstr(typed_printed, "\nEQUAL: 7 of 7 stages agree\n"));
    assert_int_equal(typed_run(COMMAND_VERIFY, "tests/golden/eos-first.safetensors" WITH_MODEL), 1);
    assert_non_null(
        strstr(typed_printed, "FAIL  finish            0            (limit 1)  0 of 2 cases, first"));
    assert_non_null(strstr(typed_printed, "\nDIFFERENT: 3 of 6 stages agree\n"));
    assert_string_equal(typed_said, "");
    assert_int_equal(
        typed_run(COMMAND_VERIFY, "--json tests/golden/eos-first.safetensors" WITH_MODEL), 1);
    assert_true(typed_number(NULL, "checks") == 6 && typed_number(NULL, "failed") == 3);
    assert_non_null(strstr(typed_printed, "{\"stage\":\"codes\",\"passed\":false,\"value\":0.21875,"
                                          "\"limit\":1.0,\"detail\":\"7 of 32 codes"));
    typed_assert(COMMAND_VERIFY, "@none" WITH_MODEL, 1, "",
        "utter: @none: cannot open: No such file or directory (check the name)\n");
}

/* ---- quantize ---- */

static void a_model_is_packed_into_a_file(void **state)
{
    (void)state;
    typed_assert(COMMAND_QUANTIZE, "--weights q8 -o @packed -m " MODEL, 0, "",
        "utter: note: @packed holds the model, 1.9 MB (utter say -m @packed ...); embeddings and "
        "encoders stay as they were\n");
    typed_assert(COMMAND_QUANTIZE, "--weights q4 -o @packed4 -m " MODEL, 0, "",
        "utter: note: @packed4 holds the model, 1.9 MB (utter say -m @packed4 ...); embeddings and "
        "encoders stay as they were\n");
    typed_assert(COMMAND_QUANTIZE, "--weights q4 -q -o @packed -m " MODEL, 0, "", "");
    typed_assert(COMMAND_QUANTIZE, "--weights q4 -o @packed5 -m @packed", 1, "",
        "utter: @packed: it is packed already (pack the checkpoint that it was made from)\n");
    typed_assert(COMMAND_QUANTIZE, "--weights q4 -m " MODEL, 1, "",
        "utter: quantize: no file to write (-o FILE; it is read back by its name, so not -)\n");
    typed_assert(COMMAND_QUANTIZE, "--weights q4 -o - -m " MODEL, 1, "",
        "utter: quantize: no file to write (-o FILE; it is read back by its name, so not -)\n");
    typed_assert(COMMAND_QUANTIZE, "-o @x -m " MODEL, 1, "",
        "utter: quantize: how many bits is not said (--weights q8 or --weights q4)\n");
    typed_assert(COMMAND_QUANTIZE, "--weights q4 -o @no/x -m " MODEL, 2, "",
        "utter: @no/x: cannot create: No such file or directory (check the name)\n");
    typed_assert(COMMAND_QUANTIZE, "--weights q4 -o @x -m 0.6b", 1, "", NOT_HERE);
}

/* ---- align-heads ---- */

#define ONE_TEXT "alpha~beta~gamma~delta~epsilon~zeta~eta~theta~iota~kappa~lambda~mu~nu~xi"
#define FOLLOWS                                                                                        \
    "--layout stream --max-frames 57 -o @heads -m " CHECKPOINTS "follows" ON_CPU " " ONE_TEXT          \
    " " ONE_TEXT " " ONE_TEXT

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++) {
        n += *text == '\n';
    }
    return n;
}

static void heads_that_follow_the_text_are_told(void **state)
{
    (void)state;
    static const char none[] = "utter: align-heads: no head follows the text well enough: the times of "
                               "words stay approximate\n";
    for (int quiet = 0; quiet < 2; quiet++) {
        assert_int_equal(typed_run(COMMAND_ALIGN_HEADS, quiet ? "-q " FOLLOWS : FOLLOWS), 0);
        assert_string_equal(
            typed_said, quiet ? "" : "utter: note: words of this model are timed by 1 head\n");
        /* The one, and five of the others. */
        assert_int_equal(count_lines(typed_printed), 1 + 1 + 5);
        assert_int_equal(strncmp(typed_printed, "head    score\n 1.3     0.", 25), 0);
        const char *follows = strstr(typed_printed, "  follows the text\n");
        assert_non_null(follows);
        assert_null(strstr(follows + 3, "follows"));
    }
    support_assert_content(support_path("heads"), "{\"alignment_heads\": [[1, 3]], \"lead_ms\": 0}\n");
    assert_int_equal(typed_run(COMMAND_ALIGN_HEADS, "--json " FOLLOWS), 0);
    static const char one[] = "{\"approximate\":false,\"heads\":[{\"layer\":1,\"head\":3,\"score\":0.";
    assert_int_equal(strncmp(typed_printed, one, sizeof one - 1), 0);
    assert_non_null(strstr(typed_printed, ",\"follows\":true},{\"layer\":"));
    assert_string_equal(typed_said, "");
    assert_int_equal(typed_run(COMMAND_ALIGN_HEADS, "--max-frames 8 One~two~three." WITH_MODEL), 1);
    assert_int_equal(count_lines(typed_printed), 1 + 5);
    assert_string_equal(typed_said, none);
    assert_int_equal(
        typed_run(COMMAND_ALIGN_HEADS, "--json --max-frames 8 One~two~three." WITH_MODEL), 1);
    assert_non_null(strstr(typed_printed, "{\"approximate\":true,\"heads\":[{"));
    assert_string_equal(typed_said, "");
    /* Six sentences of its own where none is given. */
    for (int quiet = 0; quiet < 2; quiet++) {
        static const char shown[] = "speaking 6 texts ...\r\033[K";
        typed_parse(COMMAND_ALIGN_HEADS,
            quiet ? "-q --json --max-frames 2" WITH_MODEL : "--json --max-frames 2" WITH_MODEL);
        printed_begin("printed");
        terminal_begin();
        int code = typed.command->run(&typed);
        const char *all = terminal_end();
        free(printed_end("printed"));
        assert_string_equal(all, quiet ? "" : shown);
        assert_int_equal(code, 1);
    }
    typed_assert(COMMAND_ALIGN_HEADS, "-v nobody" WITH_MODEL, 1, "",
        "utter: unknown voice \"nobody\" (known: serena, vivian, uncle_fu, ryan, aiden, ono_anna, "
        "sohee, eric, dylan)\n");
}

/* ---- bench ---- */

static void a_list_of_a_measurement_has_bounds(void **state)
{
    (void)state;
#define SIXTEEN "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"
    static const struct {
        const char *option, *list;
        int most;
    } rows[] = {
        {"words", "0", 1000},
        {"words", "1001", 1000},
        {"words", "x", 1000},
        {"words", "1,", 1000},
        {"words", ",1", 1000},
        {"words", "1,,2", 1000},
        {"words", "1;2", 1000},
        {"words", "-1", 1000},
        {"words", "+1", 1000},
        {"words", SIXTEEN ",17", 1000},
        {"lanes", "0", 256},
        {"lanes", "257", 256},
        {"lanes", ":", 256},
        {"lanes", "/", 256},
        {"lanes", "4294967297", 256},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[256], why[256];
        snprintf(words, sizeof words, "--%s=%.*s -m " MODEL, rows[i].option,
            (int)strcspn(rows[i].list, " "), rows[i].list);
        snprintf(why, sizeof why,
            "utter: --%s: '%.*s' is not a list of at most 16 whole numbers from 1 to %d\n",
            rows[i].option, (int)strcspn(rows[i].list, " "), rows[i].list, rows[i].most);
        typed_assert(COMMAND_BENCH, words, 1, "", why);
    }
    /* What is a list comes as far as the model, which is not here. */
    typed_assert(COMMAND_BENCH, "--words 1000," SIXTEEN " -m 0.6b", 1, "",
        "utter: --words: '1000,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16' is not a list of at most 16 "
        "whole "
        "numbers from 1 to 1000\n");
    typed_assert(COMMAND_BENCH,
        "--words 1000,2,3,4,5,6,7,8,9,10,11,12,13,14,15,1 --lanes 1,256 -m 0.6b", 1, "", NOT_HERE);
}

/* One run of one lane is what all of its numbers are about. */
static void a_measurement_adds_up(void **state)
{
    (void)state;
    assert_int_equal(typed_run(COMMAND_BENCH, "--json --words 3 --runs 1" WITH_MODEL), 0);
    static const char *const firsts[] = {"prompt", "prefill", "frame", "rest"};
    double frame_ms = typed_number("frame_ms", "median"), wall_ms = typed_number(NULL, "wall_ms");
    double ttfc_ms = typed_number("ttfc_ms", "median"), first_ms = 0,
           limit = typed_number(NULL, "limit_gb_per_s");
    for (size_t i = 0; i < 4; i++) {
        assert_true(typed_number("first_ms", firsts[i]) > 0);
        first_ms += typed_number("first_ms", firsts[i]);
    }
    assert_true(fabs(first_ms - ttfc_ms) < 1e-5);
    assert_true(typed_number("ttfc_ms", "p95") == ttfc_ms);
    assert_true(typed_number("frame_ms", "p95") >= frame_ms);
    assert_true(typed_number(NULL, "frames") == 3 * 5);
    assert_true(typed_number(NULL, "words") == 3 && typed_number(NULL, "lanes") == 1);
    assert_true(typed_number(NULL, "prefill_ms") == typed_number("first_ms", "prefill"));
    assert_true(typed_number(NULL, "wait_ms") == 0);
    assert_true(fabs(typed_number(NULL, "rtf") - wall_ms / (15 * 80)) < 1e-6);
    assert_true(ttfc_ms + 14 * frame_ms < 3 * wall_ms && wall_ms > ttfc_ms);
    assert_true(fabs(typed_number(NULL, "gb_per_s") * frame_ms - 3.768356) < 1e-5);
    double parts = typed_number(NULL, "talker_ms") + typed_number(NULL, "predictor_ms") +
                   typed_number(NULL, "vocoder_ms");
    assert_true(parts > 0 && 15 * parts < wall_ms);
    assert_true(limit > 0.1 && limit < 10000);
    assert_true(fabs(typed_number("bound_ms", "talker") * limit - 0.360453) < 1e-5);
    assert_true(typed_number(NULL, "thread_share") > 0 && typed_number(NULL, "thread_share") < 1.1);
    assert_true(typed_number(NULL, "peak_mb") > 5 && typed_number(NULL, "peak_mb") < 5000);
}

/* What a part reads is the same in each run; how fast is not. */
static void a_measurement_tells_what_each_part_reads(void **state)
{
    (void)state;
    assert_int_equal(typed_run(COMMAND_BENCH, "--words 1 --runs 1" WITH_MODEL), 0);
    double limit, frame_mb, part_ms[3];
    const char *line = strstr(typed_printed, "the memory gives ");
    assert_non_null(line);
    assert_int_equal(sscanf(line,
                         "the memory gives %lf GB/s; a frame reads %lf MB of weights\n"
                         "reading them takes: talker %lf ms, predictor %lf, vocoder %lf\n",
                         &limit, &frame_mb, &part_ms[0], &part_ms[1], &part_ms[2]),
        5);
    assert_true(fabs(frame_mb - 3.8) < 1e-9);
    static const double part_mb[] = {0.360453, 2.703356, 0.704550};
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(part_ms[i] - part_mb[i] / limit) < 0.006 + 0.02 * part_ms[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_printed_as_asked_for),
        cmocka_unit_test(models_that_are_here_are_listed),
        cmocka_unit_test(what_is_chosen_is_kept),
        cmocka_unit_test(a_choice_that_cannot_be_kept_is_refused),
        cmocka_unit_test(a_model_is_told_about),
        cmocka_unit_test(a_model_is_verified),
        cmocka_unit_test(a_model_is_packed_into_a_file),
        cmocka_unit_test(heads_that_follow_the_text_are_told),
        cmocka_unit_test(a_list_of_a_measurement_has_bounds),
        cmocka_unit_test(a_measurement_adds_up),
        cmocka_unit_test(a_measurement_tells_what_each_part_reads),
    };
    return cmocka_run_group_tests_name("model_commands", tests, typed_start, typed_end);
}
