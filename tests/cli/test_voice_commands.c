/* SPDX-License-Identifier: Apache-2.0
 * The commands about voices and codes, as people type them: clone, design, voices, voices mix, codec encode and decode.
 * With small models and a short recording. */
#include <sys/stat.h>

#include "tests/cli/typed.h"

#define CHECKPOINTS "build/checkpoints/"
#define SPEAKER CHECKPOINTS "tiny06-custom_voice"
#define BASE CHECKPOINTS "tiny06-base"
#define DESIGNER CHECKPOINTS "tiny06-voice_design"
#define ON_CPU " --threads 1 --device cpu"
#define WITH_BASE " -m " BASE ON_CPU

#define CLONE(words) assert_int_equal(typed_run(COMMAND_CLONE, "@ref.wav -q" WITH_BASE words), 0)

static int start(void **state)
{
    typed_start(state);
    typed_record();
    mkdir(support_path("voices"), 0700);
    CLONE(" -o @voices/ann.voice -l english");
    CLONE(" -o @voices/bob.voice --name Robert --text One");
    support_write_file(support_path("voices/zoe.voice"), "no voice", 8);
    support_write_file(support_path("voices/.voice"), "no name", 7);
    support_write_file(support_path("voices/zoe.voices"), "no ending", 9);
    return 0;
}

/* ---- clone ---- */

static void a_recording_is_told_about(void **state)
{
    (void)state;
    typed_assert(COMMAND_CLONE, "@ref.wav -o @told.voice" WITH_BASE, 0, "",
        "utter: note: the recording is short, 1.2 s; 5 to 15 s of speech make a better "
        "voice\n"
        "utter: note: heard 1.20 s at 24000 Hz, 1 channel, level -16.5 dB, peak 0.30, 0.00% "
        "clipped\n");
}

static void a_part_of_a_recording_is_listened_to(void **state)
{
    (void)state;
    static const struct {
        const char *words, *length;
    } rows[] = {
        {"", "1.20"},
        {"--from 0.1", "1.10"},
        {"--from 0.1s", "1.10"},
        {"--from 0:0.1", "1.10"},
        {"--to 0:1.1s", "1.10"},
        {"--from .1 --to 1.1", "1.00"},
        {"--to 0:01", "1.00"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[256], made[128];
        snprintf(words, sizeof words, "@ref.wav -q -o @part.voice" WITH_BASE " %s", rows[i].words);
        typed_assert(COMMAND_CLONE, words, 0, "", "");
        assert_int_equal(typed_run(COMMAND_VOICES, "@part.voice"), 0);
        snprintf(made, sizeof made, "cloned from ref, %s s at 24000 Hz", rows[i].length);
        assert_non_null(strstr(typed_printed, made));
    }
    static const char *const wrong[] = {"x", "-1", "1:-1", "-1:30", "1:", ":1", "1:2:3", "s", "1ss",
        "1m", "nan", "1000001", "16666:41", "1e7"};
    for (size_t i = 0; i < 2 * sizeof wrong / sizeof *wrong; i++) {
        char words[256], why[128];
        const char *option = i % 2 ? "from" : "to", *time = wrong[i / 2];
        snprintf(words, sizeof words, "@ref.wav -q -o @part.voice" WITH_BASE " --%s=%s", option, time);
        snprintf(why, sizeof why, "utter: clone: --%s '%s' is no time (3s, 3.5 and 1:05 are)\n", option,
            time);
        typed_assert(COMMAND_CLONE, words, 1, "", why);
    }
    /* The last that is one: nothing is there. */
    assert_int_equal(
        typed_run(COMMAND_CLONE, "@ref.wav -q -o @part.voice --from 16666:40" WITH_BASE), 1);
    assert_null(strstr(typed_said, "is no time"));
}

static void a_voice_may_be_printed(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(typed_run(COMMAND_CLONE, i ? "@ref.wav -q --json --text One" WITH_BASE
                                                    : "@ref.wav -q --json" WITH_BASE),
            0);
        json_t *all = json_loads(typed_printed, 0, NULL);
        const json_t *codes = json_object_get(all, "codes"), *vector = json_object_get(all, "x_vector");
        assert_int_equal(json_object_size(all), i ? 3 : 2);
        assert_int_equal(typed_number(NULL, "frames"), i ? 15 : 0);
        assert_int_equal(json_array_size(vector), 64);
        assert_true(
            json_real_value(json_array_get(vector, 0)) != json_real_value(json_array_get(vector, 63)));
        assert_int_equal(json_array_size(codes), i ? 15 : 0);
        assert_int_equal(json_array_size(json_array_get(codes, 14)), i ? 16 : 0);
        json_decref(all);
    }
}

/* ---- What there is ---- */

static void voices_are_listed(void **state)
{
    (void)state;
    typed_assert(COMMAND_VOICES, "--voices @voices -m " BASE, 0,
        "no preset voices: this is a base model\n"
        "\n"
        "languages: auto, chinese, english, german, italian, portuguese, spanish, japanese, "
        "korean, french, russian\n"
        "\n"
        "voice files\n"
        "ann              x-vector           width 64  @voices/ann.voice\n"
        "bob              1.2 s in context   width 64  @voices/bob.voice\n"
        "zoe              not usable: @voices/zoe.voice: no sealed file, or damaged: its "
        "seal is missing\n",
        "");
    typed_assert(COMMAND_VOICES, "--json --voices @voices -m " BASE, 0,
        "{\"kind\":\"base\",\"voices\":[],\"languages\":[\"chinese\",\"english\",\"german\","
        "\"italian\",\"portuguese\",\"spanish\",\"japanese\",\"korean\",\"french\","
        "\"russian\"],\"files\":[{\"path\":\"@voices/ann.voice\",\"voice\":\"ann\","
        "\"name\":\"ann\",\"kind\":\"vector\",\"width\":64,\"frames\":0},"
        "{\"path\":\"@voices/bob.voice\",\"voice\":\"bob\",\"name\":\"Robert\","
        "\"kind\":\"context\",\"width\":64,\"frames\":15},{\"path\":\"@voices/zoe.voice\","
        "\"voice\":\"zoe\",\"error\":\"@voices/zoe.voice: no sealed file, or damaged: its "
        "seal is missing\"}]}\n",
        "");
    typed_assert(COMMAND_VOICES, "--json -m " SPEAKER, 0,
        "{\"kind\":\"custom_voice\",\"voices\":[{\"name\":\"serena\",\"dialect\":null},"
        "{\"name\":\"vivian\",\"dialect\":null},{\"name\":\"uncle_fu\",\"dialect\":null},"
        "{\"name\":\"ryan\",\"dialect\":null},{\"name\":\"aiden\",\"dialect\":null},"
        "{\"name\":\"ono_anna\",\"dialect\":null},{\"name\":\"sohee\",\"dialect\":null},"
        "{\"name\":\"eric\",\"dialect\":\"sichuan_dialect\"},{\"name\":\"dylan\","
        "\"dialect\":\"beijing_dialect\"}],\"languages\":[\"chinese\",\"english\",\"german\","
        "\"italian\",\"portuguese\",\"spanish\",\"japanese\",\"korean\",\"french\","
        "\"russian\"],\"files\":[]}\n",
        "");
    typed_assert(COMMAND_VOICES, "-m " SPEAKER, 0,
        "serena\n"
        "vivian\n"
        "uncle_fu\n"
        "ryan\n"
        "aiden\n"
        "ono_anna\n"
        "sohee\n"
        "eric  (Chinese: sichuan_dialect)\n"
        "dylan  (Chinese: beijing_dialect)\n"
        "\n"
        "languages: auto, chinese, english, german, italian, portuguese, spanish, japanese, "
        "korean, french, russian\n",
        "");
    typed_assert(COMMAND_VOICES, "--voices @none -m " BASE, 1,
        "no preset voices: this is a base model\n"
        "\n"
        "languages: auto, chinese, english, german, italian, portuguese, spanish, japanese, "
        "korean, french, russian\n",
        "utter: @none: is no folder that can be read\n");
    typed_assert(COMMAND_VOICES, "--json --voices @none -m " BASE, 1, "",
        "utter: @none: is no folder that can be read\n");
}

static void one_voice_is_told_about(void **state)
{
    (void)state;
    typed_assert(COMMAND_VOICES, "ann --voices @voices", 0,
        "file         @voices/ann.voice\n"
        "name         ann\n"
        "kind         an x-vector\n"
        "fits         base models of width 64\n"
        "language     english\n"
        "made         cloned from ref, 1.20 s at 24000 Hz, by utter 0.1.0\n",
        "");
    typed_assert(COMMAND_VOICES, "@voices/bob.voice", 0,
        "file         @voices/bob.voice\n"
        "name         Robert\n"
        "kind         in context: an x-vector, 15 frames of 16 codes (1.2 s)\n"
        "fits         base models of width 64\n"
        "transcript   One\n"
        "made         cloned from ref, 1.20 s at 24000 Hz, by utter 0.1.0\n",
        "");
    typed_assert(COMMAND_VOICES, "bob --json --voices @voices", 0,
        "{\"path\":\"@voices/bob.voice\",\"name\":\"Robert\",\"kind\":\"context\","
        "\"width\":64,\"frames\":15,\"codebooks\":16,\"transcript\":\"One\","
        "\"language\":null,\"provenance\":\"cloned from ref, 1.20 s at 24000 Hz, by utter "
        "0.1.0\"}\n",
        "");
}

static void a_voice_fits_a_model_or_not(void **state)
{
    (void)state;
    typed_assert(COMMAND_VOICES, "bob --voices @voices -m " BASE, 0,
        "file         @voices/bob.voice\n"
        "name         Robert\n"
        "kind         in context: an x-vector, 15 frames of 16 codes (1.2 s)\n"
        "fits         base models of width 64\n"
        "this model   yes\n"
        "transcript   One\n"
        "made         cloned from ref, 1.20 s at 24000 Hz, by utter 0.1.0\n",
        "");
    typed_assert(COMMAND_VOICES, "bob --json --voices @voices -m " BASE, 0,
        "{\"path\":\"@voices/bob.voice\",\"name\":\"Robert\",\"kind\":\"context\","
        "\"width\":64,\"frames\":15,\"codebooks\":16,\"transcript\":\"One\","
        "\"language\":null,\"provenance\":\"cloned from ref, 1.20 s at 24000 Hz, by utter "
        "0.1.0\",\"fits\":true,\"reason\":null}\n",
        "");
    typed_assert(COMMAND_VOICES, "ann --voices @voices -m " SPEAKER, 0,
        "file         @voices/ann.voice\n"
        "name         ann\n"
        "kind         an x-vector\n"
        "fits         base models of width 64\n"
        "this model   no: cloned voices need a base model, this is a custom_voice model\n"
        "language     english\n"
        "made         cloned from ref, 1.20 s at 24000 Hz, by utter 0.1.0\n",
        "");
    typed_assert(COMMAND_VOICES, "ann --json --voices @voices -m " SPEAKER, 0,
        "{\"path\":\"@voices/ann.voice\",\"name\":\"ann\",\"kind\":\"vector\",\"width\":64,"
        "\"frames\":0,\"codebooks\":0,\"transcript\":null,\"language\":\"english\","
        "\"provenance\":\"cloned from ref, 1.20 s at 24000 Hz, by utter 0.1.0\","
        "\"fits\":false,\"reason\":\"cloned voices need a base model, this is a custom_voice "
        "model\"}\n",
        "");
    typed_assert(COMMAND_VOICES, "zoe --voices @voices", 1, "",
        "utter: @voices/zoe.voice: no sealed file, or damaged: its seal is missing\n");
    typed_assert(COMMAND_VOICES, "eve --voices @voices", 1, "",
        "utter: unknown voice \"eve\": no eve.voice in @voices (utter voices lists what there is)\n");
}

/* ---- mix ---- */

static void voices_are_mixed_by_weight(void **state)
{
    (void)state;
    static const struct {
        const char *words, *made;
    } rows[] = {
        {"ann bob", "mixed from ann 1, Robert 1,"},
        {"ann:3 bob:0.5", "mixed from ann 3, Robert 0.5,"},
        {"ann:3 bob", "mixed from ann 3, Robert 1,"},
        {"@voices/ann.voice:1 bob:3", "mixed from ann 1, Robert 3,"},
        {"bob", "mixed from Robert 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[256];
        snprintf(words, sizeof words, "%s --voices @voices -o @mixed.voice", rows[i].words);
        typed_assert(COMMAND_VOICES_MIX, words, 0, "", "");
        assert_int_equal(typed_run(COMMAND_VOICES, "@mixed.voice"), 0);
        assert_non_null(strstr(typed_printed, "name         mixed\n"));
        if (!strstr(typed_printed, rows[i].made)) {
            fail_msg("%s: %s", rows[i].words, typed_printed);
        }
    }
    typed_assert(COMMAND_VOICES_MIX, "ann bob --name Both --voices @voices -o @mixed.voice", 0, "", "");
    assert_int_equal(typed_run(COMMAND_VOICES, "@mixed.voice"), 0);
    assert_non_null(strstr(typed_printed, "name         Both\n"));
}

static void what_cannot_be_mixed_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *words, *says;
    } rows[] = {
        {":1", "utter: voices mix: ':1' names no voice\n"},
        {"ann bob:", "utter: unknown voice \"bob:\": no bob:.voice in @voices (did you mean bob? utter "
                     "voices lists "
                     "what there is)\n"},
        {"ann bob:x", "utter: unknown voice \"bob:x\": no bob:x.voice in @voices (did you mean bob? "
                      "utter voices lists "
                      "what there is)\n"},
        {"ann:1x", "utter: unknown voice \"ann:1x\": no ann:1x.voice in @voices (utter voices lists "
                   "what there is)\n"},
        {"ann eve", "utter: unknown voice \"eve\": no eve.voice in @voices (utter voices lists what "
                    "there is)\n"},
        {"ann:0", "utter: the weight 0 of \"ann\" is not above 0 and at most 1e6\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[256];
        snprintf(words, sizeof words, "%s --voices @voices -o @none.voice", rows[i].words);
        typed_assert(COMMAND_VOICES_MIX, words, 1, "", rows[i].says);
        assert_int_not_equal(access(support_path("none.voice"), F_OK), 0);
    }
    typed_assert(COMMAND_VOICES_MIX, "ann --voices @voices", 1, "",
        "utter: voices mix: where should the voice go? (-o NAME.voice)\n");
    typed_assert(COMMAND_VOICES_MIX, "ann --voices @voices -o -", 1, "",
        "utter: voices mix: a voice file cannot go to standard output (give a name with -o)\n");
}

/* ---- design ---- */

static void a_voice_is_designed_for_a_base_model(void **state)
{
    (void)state;
    typed_assert(COMMAND_DESIGN,
        "-q --for " BASE " --instruct Calm. -l german --seed 2 -o @designed.voice -m " DESIGNER ON_CPU,
        0, "", "");
    typed_assert(COMMAND_VOICES, "@designed.voice", 0,
        "file         @designed.voice\n"
        "name         designed\n"
        "kind         in context: an x-vector, 40 frames of 16 codes (3.2 s)\n"
        "fits         base models of width 64\n"
        "transcript   Der Zug heute Morgen hatte wieder Verspätung, also gingen wir am Fluss "
        "entlang. Hättest du auf ihn gewartet?\n"
        "language     german\n"
        "made         designed from \"Calm.\", seed 2, by utter 0.1.0\n",
        "");
    typed_assert(COMMAND_DESIGN,
        "-q --for " BASE " --instruct Calm. --name Eve -o @designed.voice -m " DESIGNER ON_CPU, 0, "",
        "");
    typed_assert(COMMAND_VOICES, "@designed.voice", 0,
        "file         @designed.voice\n"
        "name         Eve\n"
        "kind         in context: an x-vector, 421 frames of 16 codes (33.7 s)\n"
        "fits         base models of width 64\n"
        "transcript   The morning train was late again, so we walked along the river "
        "instead. Would you have waited for it?\n"
        "made         designed from \"Calm.\", seed 0, by utter 0.1.0\n",
        "");
    typed_assert(COMMAND_DESIGN, "--for " BASE " -o @x.voice -m " DESIGNER, 1, "",
        "utter: design: how should the voice sound? (--instruct TEXT)\n");
    typed_assert(COMMAND_DESIGN, "--instruct Calm. -o @x.voice -m " DESIGNER, 1, "",
        "utter: design: which base model is it for? (--for DIR)\n");
    typed_assert(COMMAND_DESIGN, "-o @x.voice -m " DESIGNER, 1, "",
        "utter: design: how should the voice sound? (--instruct TEXT)\n");
    typed_assert(COMMAND_DESIGN, "--instruct Calm. --for " BASE " -m " DESIGNER, 1, "",
        "utter: design: where should the voice go? (-o NAME.voice)\n");
    typed_assert(COMMAND_DESIGN, "--instruct Calm. --for @none -o @x.voice -m " DESIGNER, 1, "",
        "utter: @none: there is no such folder (check the name)\n");
    typed_assert(COMMAND_DESIGN, "--instruct Calm. --for " BASE " -o @x.voice -m @none", 1, "",
        "utter: @none: there is no such folder (check the name)\n");
    assert_int_not_equal(access(support_path("x.voice"), F_OK), 0);
}

/* ---- codec ---- */

static void a_recording_becomes_codes_and_sound_again(void **state)
{
    (void)state;
    typed_assert(COMMAND_CODEC_ENCODE, "@ref.wav -o @codes.json" WITH_BASE, 0, "", "");
    size_t n, m;
    char *codes = support_read_file(support_path("codes.json"), &n);
    typed_assert(COMMAND_CODEC_ENCODE, "@ref.wav" WITH_BASE, 0, codes, "");
    free(codes);
    typed_assert(COMMAND_CODEC_DECODE, "@codes.json -o @again.wav" WITH_BASE, 0, "", "");
    char *sound = support_read_file(support_path("again.wav"), &n);
    assert_int_equal(n, 44 + 15 * 1920 * 2);
    typed_assert(COMMAND_CODEC_DECODE, "@codes.json --chunk 1 -o @chunks.wav" WITH_BASE, 0, "", "");
    char *chunks = support_read_file(support_path("chunks.wav"), &m);
    assert_int_equal(m, n);
    assert_memory_equal(chunks, sound, n);
    free(chunks);
    free(sound);
    typed_assert(COMMAND_CODEC_DECODE, "@none.json -o @x.wav" WITH_BASE, 1, "",
        "utter: @none.json: cannot open: No such file or directory (check the name)\n");
    typed_assert(COMMAND_CODEC_ENCODE, "@none.wav -o @x.json" WITH_BASE, 1, "",
        "utter: @none.wav: cannot open: No such file or directory (check the name)\n");
    typed_assert(COMMAND_CODEC_ENCODE, "@ref.wav -o @no/x.json" WITH_BASE, 2, "",
        "utter: @no/x.json: cannot create: No such file or directory (check the name)\n");
    assert_int_not_equal(access(support_path("x.wav"), F_OK), 0);
    assert_int_not_equal(access(support_path("x.json"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_is_told_about),
        cmocka_unit_test(a_part_of_a_recording_is_listened_to),
        cmocka_unit_test(a_voice_may_be_printed),
        cmocka_unit_test(voices_are_listed),
        cmocka_unit_test(one_voice_is_told_about),
        cmocka_unit_test(a_voice_fits_a_model_or_not),
        cmocka_unit_test(voices_are_mixed_by_weight),
        cmocka_unit_test(what_cannot_be_mixed_is_told),
        cmocka_unit_test(a_voice_is_designed_for_a_base_model),
        cmocka_unit_test(a_recording_becomes_codes_and_sound_again),
    };
    return cmocka_run_group_tests_name("voice_commands", tests, start, typed_end);
}
