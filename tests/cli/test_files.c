/* SPDX-License-Identifier: Apache-2.0
 * Files that the program reads and writes: texts, codes, kinds by first bytes, and what no result may replace. */
#include <limits.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/file_kind.h"
#include "cli/overwrite.h"
#include "cli/speak/codes_file.h"
#include "cli/speak/markup.h"
#include "cli/speak/text_source.h"
#include "cli/speak/trace.h"
#include "cli/text_file.h"
#include "tests/cli/heard.h"

static void put(const char *name, const char *text)
{
    support_write_file(support_path(name), text, strlen(text));
}

static void assert_holds(const char *name, const char *wanted)
{
    size_t n;
    char *text = support_read_file(support_path(name), &n);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

/* ---- Texts that come in ---- */

static const struct command say = {.bit = COMMAND_SAY, .name = "say"};

/* A source of these words, or of the file. */
static int open_source(struct text_source *source, int n_words, const char **words, const char *file)
{
    struct invocation invocation = {.command = &say,
        .words = words,
        .n_words = n_words,
        .settings.file = {.given = file != NULL, .text = file}};
    return text_source_open(source, &invocation);
}

static void words_are_joined_by_blanks(void **state)
{
    (void)state;
    const char *words[] = {"one", "", "two  three", "-"};
    struct text_source source;
    assert_int_equal(open_source(&source, 4, words, NULL), 0);
    assert_string_equal(source.text, "one  two  three -");
    assert_int_equal(source.bytes, 17);
    assert_int_equal(source.descriptor, -1);
    free(source.text);
    assert_int_equal(open_source(&source, 1, words + 3, NULL), 0);
    assert_int_equal(source.descriptor, STDIN_FILENO);
    assert_null(source.text);
    assert_string_equal(source.name, "standard input");
    assert_int_equal(open_source(&source, 0, NULL, "-"), 0);
    assert_int_equal(source.descriptor, STDIN_FILENO);
    text_source_close(&source);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    heard_begin();
    int code = open_source(&source, 1, words, "file");
    heard_assert("utter: say: the text is given twice, by --file and as 'one' (give one of them)");
    assert_int_equal(code, 1);
    char path[PATH_MAX], why[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s", support_path("none"));
    heard_begin();
    code = open_source(&source, 0, NULL, path);
    snprintf(why, sizeof why, "utter: %s: No such file or directory", path);
    heard_assert(why);
    assert_int_equal(code, 1);
}

static void a_file_is_read_whole(void **state)
{
    (void)state;
    enum { N = 200001 };
    char *text = malloc(N), path[PATH_MAX];
    struct text_source source;
    assert_non_null(text);
    for (size_t i = 0; i < N; i++) {
        text[i] = (char)('a' + i % 26);
    }
    snprintf(path, sizeof path, "%s", support_path("long"));
    static const size_t sizes[] = {0, 1, (1 << 16) - 2, (1 << 16) - 1, 1 << 16, N};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        support_write_file(path, text, sizes[i]);
        assert_int_equal(open_source(&source, 0, NULL, path), 0);
        assert_string_equal(source.name, path);
        support_short_io(i % 2 ? 1000 : 0);
        assert_int_equal(text_source_read_all(&source), 0);
        support_short_io(0);
        assert_int_equal(source.bytes, sizes[i]);
        assert_memory_equal(source.text, text, sizes[i]);
        assert_int_equal(source.text[sizes[i]], 0);
        assert_int_equal(source.descriptor, -1);
        free(source.text);
    }
    free(text);
    char why[PATH_MAX + 64];
    assert_int_equal(open_source(&source, 0, NULL, support_folder()), 0);
    heard_begin();
    int code = text_source_read_all(&source);
    snprintf(why, sizeof why, "utter: %s: Is a directory", support_folder());
    heard_assert(why);
    assert_int_equal(code, 1);
    free(source.text);
    text_source_close(&source);
    put("fails", "x");
    snprintf(path, sizeof path, "%s", support_path("fails"));
    assert_int_equal(open_source(&source, 0, NULL, path), 0);
    support_fail_read_at(1);
    heard_begin();
    code = text_source_read_all(&source);
    support_fail_off();
    snprintf(why, sizeof why, "utter: %s: Input/output error", path);
    heard_assert(why);
    assert_int_equal(code, 2);
    free(source.text);
    text_source_close(&source);
}

static void lines_come_one_by_one(void **state)
{
    (void)state;
    static const char *const texts[] = {"one\n\nthree\r\nlast", "one\n\nthree\r\nlast\n"};
    static const char *const wanted[] = {"one", "", "three\r", "last"};
    for (size_t round = 0; round < 6; round++) {
        struct text_source source;
        char *line, path[PATH_MAX];
        size_t n;
        put("lines", texts[round % 2]);
        snprintf(path, sizeof path, "%s", support_path("lines"));
        assert_int_equal(open_source(&source, 0, NULL, path), 0);
        support_short_io(round / 2 * 3);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(text_source_line(&source, &line, &n), 0);
            assert_non_null(line);
            assert_int_equal(n, strlen(wanted[i]));
            assert_memory_equal(line, wanted[i], n);
        }
        assert_int_equal(text_source_line(&source, &line, &n), 0);
        support_short_io(0);
        assert_null(line);
        free(source.text);
        text_source_close(&source);
    }
}

static void markup_that_nobody_asked_for_is_seen(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_so;
    } cases[] = {{"<speak>", true}, {" \t\r\n<speak a=\"b\">", true}, {"<?xml", true},
        {"<speaker>", false}, {"<speak", false}, {"a <speak>", false}, {"", false}, {" ", false},
        {"<?xm", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(markup_is_forgotten(cases[i].text, strlen(cases[i].text)), cases[i].is_so);
    }
    assert_false(markup_is_forgotten("<speak>", 6));
}

/* Why there is none is told where it is looked for, and in the answer for whom. */
static void a_text_calls_voices_by_name(void **state)
{
    (void)state;
    char place[PATH_MAX], why[PATH_MAX + 64], said[PATH_MAX + 128];
    snprintf(place, sizeof place, "%s", support_folder());
    const struct settings s = {.markup.text = "tags", .voices = {.given = true, .text = place}};
    struct markup m = {0};
    utter_reading_options options;
    utter_voice *voice;
    utter_error error;
    utter_reading_options_init(&options);
    assert_int_equal(markup_open(&m, &options, &s, NULL), 0);
    heard_begin();
    utter_status status = options.find_voice(options.find_voice_user, "eve", &voice, &error);
    snprintf(said, sizeof said,
        "utter: unknown voice \"eve\": no eve.voice in %s (utter voices lists what there is)", place);
    heard_assert(said);
    assert_int_equal(status, UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the text calls for the voice \"eve\"");
    /* A model has voices of its own. */
    utter_model *model;
    assert_int_equal(utter_model_open(&model, "build/checkpoints/eos-first", NULL, NULL), UTTER_OK);
    markup_close(&m);
    assert_int_equal(markup_open(&m, &options, &s, model), 0);
    assert_int_equal(options.find_voice(options.find_voice_user, "Ryan", &voice, &error), UTTER_OK);
    snprintf(why, sizeof why, "%s", utter_voice_name(voice));
    utter_voice_free(&voice);
    markup_close(&m);
    utter_model_close(&model);
    assert_string_equal(why, "ryan");
}

static void markup_is_as_the_settings_say(void **state)
{
    (void)state;
    static const char *const kinds[] = {"none", "auto", "tags", "ssml"};
    static const int wanted[] = {
        UTTER_MARKUP_NONE, UTTER_MARKUP_AUTO, UTTER_MARKUP_TAGS, UTTER_MARKUP_SSML};
    char cast[PATH_MAX], lexicon[PATH_MAX], why[PATH_MAX + 64];
    put("cast", "a = b");
    put("lexicon", "c = d");
    snprintf(cast, sizeof cast, "%s", support_path("cast"));
    snprintf(lexicon, sizeof lexicon, "%s", support_path("lexicon"));
    for (size_t i = 0; i < 4; i++) {
        struct markup m = {0};
        utter_reading_options options;
        struct settings s = {.markup.text = kinds[i]};
        s.cast = (struct setting){.given = i > 0, .text = cast};
        s.lexicon = (struct setting){.given = i > 1, .text = lexicon};
        s.spell_out.given = i == 2;
        s.carry.given = i == 3;
        utter_reading_options_init(&options);
        assert_int_equal(markup_open(&m, &options, &s, NULL), 0);
        assert_int_equal(options.markup, wanted[i]);
        assert_int_equal(options.spell_out, i == 2);
        assert_int_equal(options.carry, i == 3);
        assert_ptr_equal(options.find_voice_user, &m);
        assert_int_equal(options.cast != NULL, i > 0);
        assert_int_equal(options.lexicon != NULL, i > 1);
        if (i > 1) {
            assert_string_equal(options.cast, "a = b");
            assert_string_equal(options.lexicon, "c = d");
        }
        markup_close(&m);
        assert_null(m.cast);
    }
    support_write_file(cast, "a\0b", 3);
    struct markup m = {0};
    utter_reading_options options;
    utter_reading_options_init(&options);
    const struct settings s = {.markup.text = "none", .cast = {.given = true, .text = cast}};
    heard_begin();
    int code = markup_open(&m, &options, &s, NULL);
    snprintf(why, sizeof why, "utter: %s: this is no text", cast);
    heard_assert(why);
    assert_int_equal(code, 1);
    markup_close(&m);
}

/* ---- Texts that go out ---- */

static void a_text_appears_when_it_is_complete(void **state)
{
    (void)state;
    struct text_file file;
    char path[PATH_MAX];
    put("text", "before");
    snprintf(path, sizeof path, "%s", support_path("text"));
    assert_int_equal(text_file_open(&file, path), 0);
    fputs("after", file.lines);
    assert_holds("text", "before");
    assert_int_equal(text_file_close(&file), 0);
    assert_null(file.lines);
    assert_holds("text", "after");
    text_file_abort(&file);
    assert_int_equal(text_file_open(&file, path), 0);
    fputs("never", file.lines);
    text_file_abort(&file);
    assert_null(file.out);
    assert_holds("text", "after");
    assert_int_equal(text_file_open(&file, path), 0);
    fputs("lost", file.lines);
    support_fail_write_at(1);
    heard_begin();
    int code = text_file_close(&file);
    support_fail_off();
    assert_non_null(strstr(heard_end(), "No space left on device"));
    assert_int_equal(code, 2);
    assert_holds("text", "after");
    heard_begin();
    code = text_file_open(&file, support_path("no/such/folder"));
    assert_non_null(strstr(heard_end(), "No such file or directory"));
    assert_int_equal(code, 2);
    text_file_abort(&file);
}

static void codes_come_back_as_they_were(void **state)
{
    (void)state;
    static const int32_t written[] = {0, 1, 2, 3, 4, 1023};
    struct codes_file c;
    char path[PATH_MAX];
    int32_t *codes;
    size_t n;
    snprintf(path, sizeof path, "%s", support_path("codes"));
    assert_int_equal(codes_file_open(&c, path, 2), 0);
    codes_file_add(&c, written, 1);
    codes_file_add(&c, written + 2, 2);
    assert_int_equal(c.n_frames, 3);
    assert_int_equal(codes_file_finish(&c, UTTER_FINISH_EOS), 0);
    assert_holds("codes",
        "{\"codebooks\":2,\"codes\":[\n[0,1],\n[2,3],\n[4,1023]],\"frames\":3,\"finish\":\"eos\"}\n");
    assert_int_equal(codes_file_read(&codes, &n, path, 2, 1024), 0);
    assert_int_equal(n, 3);
    assert_memory_equal(codes, written, sizeof written);
    free(codes);
    codes_file_abort(&c);
}

static void codes_that_are_none_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } wrong[] = {{"{}", "has no array \"codes\" (utter say --codes writes such files)"},
        {"{\"codes\":3}", "has no array \"codes\" (utter say --codes writes such files)"},
        {"{\"codes\":[]}", "holds no frames"},
        {"{\"codes\":[[1,2]],\"frames\":2}", "\"frames\" is not the number of its frames, 1"},
        {"{\"codes\":[[1,2],[1]]}", "frame 1 is not 2 integers from 0 to 1023"},
        {"{\"codes\":[[1,2,3]]}", "frame 0 is not 2 integers from 0 to 1023"},
        {"{\"codes\":[3]}", "frame 0 is not 2 integers from 0 to 1023"},
        {"{\"codes\":[[1,1024]]}", "frame 0 is not 2 integers from 0 to 1023"},
        {"{\"codes\":[[-1,1]]}", "frame 0 is not 2 integers from 0 to 1023"},
        {"{\"codes\":[[1,1.5]]}", "frame 0 is not 2 integers from 0 to 1023"}};
    char path[PATH_MAX], why[PATH_MAX + 128];
    int32_t *codes;
    size_t n;
    snprintf(path, sizeof path, "%s", support_path("wrong"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put("wrong", wrong[i].text);
        heard_begin();
        int code = codes_file_read(&codes, &n, path, 2, 1024);
        snprintf(why, sizeof why, "utter: %s: %s", path, wrong[i].why);
        heard_assert(why);
        assert_int_equal(code, 1);
        assert_null(codes);
    }
    put("wrong", "{\"codes\":[[1,1023]]}"); /* which promises nothing */
    assert_int_equal(codes_file_read(&codes, &n, path, 2, 1024), 0);
    assert_int_equal(n, 1);
    free(codes);
}

static void a_trace_has_stages_up_to_the_end_of_a_call(void **state)
{
    (void)state;
    struct trace t = {0};
    trace_call(&t, NULL, 0, 1); /* without a file nothing is done */
    assert_int_equal(trace_close(&t), 0);
    assert_int_equal(trace_open(&t, support_path("trace")), 0);
    t.begin_s = 100;
    utter_reading_stats now = {.size = sizeof now, .prompt_s = 0.25, .prefill_s = 0.5};
    trace_call(&t, &now, 101, 102);
    now.n_frames = 1;
    now.talker_s = 0.125;
    now.predictor_s = 0.25;
    now.vocoder_s = 0.0625;
    now.wait_s = 0.5;
    trace_call(&t, &now, 102, 103);
    assert_int_equal(trace_close(&t), 0);
    assert_holds("trace",
        "[{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"calls\"}},\n"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"stages\"}},\n"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":3,\"args\":{\"name\":\"waits\"}},\n"
        "{\"name\":\"call\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1000000.000,\"dur\":1000000.000},\n"
        "{\"name\":\"prompt\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":1250000.000,\"dur\":250000.000},"
        "\n"
        "{\"name\":\"prefill\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":1500000.000,\"dur\":500000.000},"
        "\n"
        "{\"name\":\"frame\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":2000000.000,\"dur\":1000000.000},"
        "\n"
        "{\"name\":\"wait for the "
        "device\",\"ph\":\"X\",\"pid\":1,\"tid\":3,\"ts\":2500000.000,\"dur\":500000.000},\n"
        "{\"name\":\"talker\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":2562500.000,\"dur\":125000.000},"
        "\n"
        "{\"name\":\"predictor\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":2687500.000,\"dur\":250000."
        "000},\n"
        "{\"name\":\"vocoder\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":2937500.000,\"dur\":62500.000}]"
        "\n");
}

/* ---- What a file holds ---- */

#define TEXT_16 "text of 16 bytes"

static void a_file_is_known_by_its_first_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        enum file_kind kind;
    } cases[] = {{"", 0, FILE_NONE}, {"RIFF", 4, FILE_SOUND}, {"RF64", 4, FILE_SOUND},
        {"fLaC", 4, FILE_SOUND}, {"OggS", 4, FILE_SOUND}, {"ID3", 3, FILE_SOUND},
        {"FORM", 4, FILE_SOUND}, {".snd", 4, FILE_SOUND}, {"caff", 4, FILE_SOUND},
        {"\xff\xe0", 2, FILE_SOUND}, {"\xff\xdf", 2, FILE_TEXT}, {"\xfe\xe0", 2, FILE_TEXT},
        {"\xff\xfb", 2, FILE_SOUND}, {"a\0b", 3, FILE_OTHER},
        {TEXT_16 TEXT_16 TEXT_16 "text of 16 byte\1", 64, FILE_OTHER},
        {TEXT_16 TEXT_16 TEXT_16 TEXT_16 "\1", 65, FILE_TEXT}, /* which is not looked at */
        {"\0\0\0 ftypM4A ", 12, FILE_SOUND}, {"\x40\0\0\0\0\0\0\0{", 9, FILE_TENSORS},
        {"\x40\0\0\0\0\0\0\0[", 9, FILE_OTHER}, {"\x40\0\0\0\0\0\0\1{", 9, FILE_OTHER},
        {"{\"a\":1}", 7, FILE_TEXT}, {"a\tb\r\n", 5, FILE_TEXT}, {"a\x7f", 2, FILE_OTHER},
        {"a\x1f", 2, FILE_OTHER}, {"RIF", 3, FILE_TEXT}, {"\xc3\xa4 ", 3, FILE_TEXT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        support_write_file(support_path("kind"), cases[i].bytes, cases[i].n);
        if (file_kind(support_path("kind")) != cases[i].kind) {
            fail_msg("case %zu is of kind %d", i, (int)file_kind(support_path("kind")));
        }
    }
    assert_int_equal(file_kind(support_path("none")), FILE_NONE);
    assert_int_equal(file_kind(support_folder()), FILE_NONE);
    assert_string_equal(file_kind_text(FILE_NONE), "nothing");
    assert_string_equal(file_kind_text(FILE_SOUND), "a recording");
    assert_string_equal(file_kind_text(FILE_TENSORS), "a voice or a model");
    assert_string_equal(file_kind_text(FILE_TEXT), "a text");
    assert_string_equal(file_kind_text(FILE_OTHER), "of another kind");
}

static void two_names_may_lead_to_one_file(void **state)
{
    (void)state;
    put("one", "x");
    put("two", "x");
    char one[PATH_MAX], two[PATH_MAX], linked[PATH_MAX], dotted[PATH_MAX];
    snprintf(one, sizeof one, "%s", support_path("one"));
    snprintf(two, sizeof two, "%s", support_path("two"));
    snprintf(linked, sizeof linked, "%s", support_path("linked"));
    assert_int_equal(symlink("one", linked), 0);
    assert_true(overwrite_same_file(one, linked));
    assert_false(overwrite_same_file(one, two));
    snprintf(dotted, sizeof dotted, "%s/./new", support_folder());
    assert_true(overwrite_same_file(support_path("new"), dotted)); /* which is not there yet */
    assert_false(overwrite_same_file(support_path("new"), support_path("other")));
    assert_true(overwrite_same_file("new", "./new"));
    assert_false(overwrite_same_file("new", dotted));
    assert_false(overwrite_same_file("no/folder/new", "no/./folder/new"));
}

/* What the check says of an output; "" where it may be written. */
static void assert_checked(unsigned bit, const struct settings *s, const char *word, const char *why)
{
    const struct command command = {.bit = bit, .name = "command"};
    const char *words[] = {word};
    struct invocation invocation = {
        .command = &command, .settings = *s, .words = words, .n_words = word != NULL};
    char line[PATH_MAX + 256];
    heard_begin();
    int code = overwrite_check(&invocation);
    snprintf(line, sizeof line, "utter: command: %s", why);
    heard_assert(why[0] ? line : "");
    assert_int_equal(code, why[0] != 0);
}

static void a_result_replaces_nothing_of_another_kind(void **state)
{
    (void)state;
    static const struct {
        unsigned bit;
        enum file_kind written;
    } commands[] = {{COMMAND_SAY, FILE_SOUND}, {COMMAND_CODEC_DECODE, FILE_SOUND},
        {COMMAND_CLONE, FILE_TENSORS}, {COMMAND_DESIGN, FILE_TENSORS},
        {COMMAND_VOICES_MIX, FILE_TENSORS}, {COMMAND_QUANTIZE, FILE_TENSORS},
        {COMMAND_CODEC_ENCODE, FILE_TEXT}, {COMMAND_ALIGN_HEADS, FILE_TEXT}};
    static const char *const contents[] = {"", "RIFF", "\x40...", "text", "\x7f"};
    char path[PATH_MAX], why[PATH_MAX + 128];
    snprintf(path, sizeof path, "%s", support_path("out.wav"));
    for (int there = FILE_NONE; there <= FILE_OTHER; there++) {
        put("out.wav", contents[there]);
        if (there == FILE_TENSORS) {
            support_write_file(path, "\x40\0\0\0\0\0\0\0{", 9);
        }
        assert_int_equal(file_kind(path), there);
        snprintf(why, sizeof why,
            "%s holds %s, which would be lost (choose another name, or remove it)", path,
            there == FILE_OTHER ? "something else" : file_kind_text((enum file_kind)there));
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
            bool good = there == FILE_NONE || there == (int)commands[i].written;
            const struct settings s = {.output = {.given = true, .text = path}};
            assert_checked(commands[i].bit, &s, NULL, good ? "" : why);
        }
        const struct settings codes = {.codes = {.given = true, .text = path}};
        const struct settings times = {.times = {.given = true, .text = path}};
        const struct settings trace = {.trace = {.given = true, .text = path}};
        bool good = there == FILE_NONE || there == FILE_TEXT;
        assert_checked(COMMAND_SAY, &codes, NULL, good ? "" : why);
        assert_checked(COMMAND_SAY, &times, NULL, good ? "" : why);
        assert_checked(COMMAND_SAY, &trace, NULL, good ? "" : why);
        /* Samples without a head may stand anywhere. */
        const struct settings raw = {.output = {.given = true, .text = path}, .format.text = "raw"};
        assert_checked(COMMAND_SAY, &raw, NULL, "");
    }
    char by_name[PATH_MAX];
    put("out.raw", "text");
    snprintf(by_name, sizeof by_name, "%s", support_path("out.raw"));
    const struct settings named = {.output = {.given = true, .text = by_name}};
    assert_checked(COMMAND_SAY, &named, NULL, "");
    const struct settings flac = {.output = {.given = true, .text = by_name}, .format.text = "flac"};
    snprintf(why, sizeof why,
        "%s holds a text, which would be lost (choose another name, or remove it)", by_name);
    assert_checked(COMMAND_SAY, &flac, NULL, why);
}

static void a_result_replaces_nothing_that_is_read(void **state)
{
    (void)state;
    char path[PATH_MAX], folder[PATH_MAX], why[PATH_MAX + 128], weighed[PATH_MAX + 8];
    put("in.wav", "RIFF");
    snprintf(path, sizeof path, "%s", support_path("in.wav"));
    snprintf(folder, sizeof folder, "%s", support_folder());
    snprintf(
        why, sizeof why, "%s is read by this command and would be lost (choose another name)", path);
    struct settings s = {.output = {.given = true, .text = path}};
    assert_checked(COMMAND_CODEC_DECODE, &s, path, why);
    assert_checked(COMMAND_CODEC_DECODE, &s, "other", "");
    assert_checked(COMMAND_SAY, &s, path, ""); /* which is what is spoken */
    snprintf(weighed, sizeof weighed, "%s:0.5", path);
    assert_checked(COMMAND_CODEC_DECODE, &s, weighed, why);
    assert_checked(COMMAND_CODEC_DECODE, &s, folder, why); /* that it stands in, as a model's */
    /* Where a file has that name, no weight stands behind it. */
    put("in.wav:0.5", "other");
    assert_checked(COMMAND_CODEC_DECODE, &s, weighed, "");
    unlink(weighed);
    /* A device takes all. */
    const struct settings device = {
        .output = {.given = true, .text = "/dev/null"}, .file = {.given = true, .text = "/dev/null"}};
    assert_checked(COMMAND_SAY, &device, NULL, "");
    const struct settings lines = {.output = {.given = true, .text = path},
        .codes = {.given = true, .text = path},
        .times = {.given = true, .text = path},
        .trace = {.given = true, .text = path}};
    char text[PATH_MAX + 128];
    snprintf(text, sizeof text,
        "%s holds a recording, which would be lost (choose another name, or remove it)", path);
    assert_checked(COMMAND_SAY, &lines, NULL, text); /* told once */
    s.file = (struct setting){.given = true, .text = path};
    assert_checked(COMMAND_SAY, &s, NULL, why);
    s.file.given = false;
    assert_checked(COMMAND_SAY, &s, NULL, "");
    s.model = (struct setting){.given = true, .text = folder};
    assert_checked(COMMAND_SAY, &s, NULL, why);
    s.model.given = false;
    s.times = (struct setting){.given = true, .text = support_path("none.srt")};
    assert_checked(COMMAND_SAY, &s, NULL, "");
    s.output.text = "-";
    assert_checked(COMMAND_CODEC_DECODE, &s, "-", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_joined_by_blanks),
        cmocka_unit_test(a_file_is_read_whole),
        cmocka_unit_test(lines_come_one_by_one),
        cmocka_unit_test(markup_that_nobody_asked_for_is_seen),
        cmocka_unit_test(a_text_calls_voices_by_name),
        cmocka_unit_test(markup_is_as_the_settings_say),
        cmocka_unit_test(a_text_appears_when_it_is_complete),
        cmocka_unit_test(codes_come_back_as_they_were),
        cmocka_unit_test(codes_that_are_none_are_told),
        cmocka_unit_test(a_trace_has_stages_up_to_the_end_of_a_call),
        cmocka_unit_test(a_file_is_known_by_its_first_bytes),
        cmocka_unit_test(two_names_may_lead_to_one_file),
        cmocka_unit_test(a_result_replaces_nothing_of_another_kind),
        cmocka_unit_test(a_result_replaces_nothing_that_is_read),
    };
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
