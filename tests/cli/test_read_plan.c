/* SPDX-License-Identifier: Apache-2.0
 * Before a book is read out: the names of its files, the language, and which sections of an earlier run are those of
 * this one. A key that misses something lets two voices speak one book; one that has too much throws hours of work
 * away. */
#include "cli/speak/read_plan.h"

#include <sys/stat.h>

#include "base/memory.h"
#include "cli/model/checkpoint.h"
#include "tests/cli/heard.h"

#define MODEL "build/checkpoints/eos-first"

static struct invocation typed;
static utter_model *model;

static void parse(const char *words, const char *book)
{
    static char kept[8192];
    static char *arguments[32];
    int n = 0;
    size_t i = 0;
    while (command_table[i].bit != COMMAND_READ) {
        i++;
    }
    snprintf(kept, sizeof kept, "%s %s", words, book);
    for (char *word = strtok(kept, " "); word; word = strtok(NULL, " ")) {
        arguments[n++] = word;
    }
    free(typed.words);
    assert_true(options_parse(&typed, &command_table[i], n, arguments));
}

static int start(void **state)
{
    (void)state;
    utter_model_options o;
    utter_model_options_init(&o);
    o.device = "cpu";
    o.n_threads = 1;
    mkdir(support_path("tools"), 0700);
    support_write_file(support_path("tools/ffmpeg"), "#!/bin/sh\n", 10);
    return chmod(support_path("tools/ffmpeg"), 0700) || setenv("XDG_DATA_HOME", support_folder(), 1) ||
           utter_model_open(&model, MODEL, &o, NULL);
}

static int end(void **state)
{
    (void)state;
    free(typed.words);
    utter_model_close(&model);
    return 0;
}

/* ---- Where it goes ---- */

static void find_place(const char *options, const char *path, bool has_ffmpeg, struct book *book,
    struct read_place *place, int code, const char *said)
{
    char before[8192];
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    parse(options, path);
    setenv("PATH", has_ffmpeg ? support_path("tools") : "/no/where", 1);
    heard_begin();
    int result = read_place_find(place, &typed, book);
    heard_assert(said);
    setenv("PATH", before, 1);
    assert_int_equal(result, code);
}

static void files_have_names(void **state)
{
    (void)state;
    static const char without[] = "utter: note: m4b needs ffmpeg, which is not here (apt-get install "
                                  "ffmpeg): each chapter is a file of its own";
    static const struct {
        const char *options, *path;
        bool timed, has_ffmpeg, m4b, split;
        const char *output, *first;
    } rows[] = {
        {"", "/b.c/my.book.epub", false, true, true, false, "my.book.m4b", "my.book.m4b"},
        {"", "book", false, true, true, false, "book.m4b", "book.m4b"},
        {"", "/b.c/book", false, true, true, false, "book.m4b", "book.m4b"},
        {"", "b/.hidden", false, true, true, false, ".hidden.m4b", ".hidden.m4b"},
        {"", "a.srt", true, true, false, false, "a.wav", "a.wav"},
        {"--format mp3", "a.srt", true, true, false, false, "a.mp3", "a.mp3"},
        {"--format m4b", "a.srt", true, true, true, false, "a.m4b", "a.m4b"},
        {"--format mp3", "a.txt", false, false, false, false, "a.mp3", "a.mp3"},
        {"-o x/y.m4a", "a.txt", false, true, true, false, "x/y.m4a", "x/y.m4a"},
        {"-o y.M4B", "a.txt", false, true, true, false, "y.M4B", "y.M4B"},
        {"-o m4b", "a.txt", false, true, false, false, "m4b", "m4b"},
        {"-o y.mp3", "a.txt", false, false, false, false, "y.mp3", "y.mp3"},
        {"-o y.m4b --format wav", "a.txt", false, true, false, false, "y.m4b", "y.m4b"},
        {"-o y --format m4b", "a.txt", false, true, true, false, "y", "y"},
        {"--split --format mp3", "a.txt", false, true, false, true, "a.mp3", "a-0001.mp3"},
        {"--split --format mp3 --chapters 3-", "a.txt", false, true, false, true, "a.mp3",
            "a-0003.mp3"},
        {"--chapters 3-", "a.txt", false, true, true, false, "a.m4b", "a.m4b"},
        /* Without ffmpeg there are files that need none. */
        {"", "a.txt", false, false, false, true, "a.opus", "a-0001.opus"},
        {"--split", "a.txt", false, false, false, true, "a.opus", "a-0001.opus"},
        {"-o x.y/b.m4b", "a.txt", false, false, false, true, "x.y/b.opus", "x.y/b-0001.opus"},
        {"-o x.y/b --format m4b", "a.txt", false, false, false, true, "x.y/b.opus", "x.y/b-0001.opus"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char folder[256], shown[256];
        struct read_place place;
        struct book book = {.timed = rows[i].timed, .title = memory_string("T")};
        const bool goes_without = strstr(rows[i].output, ".opus") != NULL;
        find_place(rows[i].options, rows[i].path, rows[i].has_ffmpeg, &book, &place, 0,
            goes_without ? without : "");
        snprintf(folder, sizeof folder, "%s.parts", rows[i].output);
        snprintf(shown, sizeof shown, "%s%s", rows[i].first, rows[i].split ? " ..." : "");
        assert_string_equal(place.output, rows[i].output);
        assert_string_equal(place.first, rows[i].first);
        assert_string_equal(place.shown, shown);
        assert_string_equal(place.folder, folder);
        assert_int_equal(place.m4b, rows[i].m4b);
        assert_int_equal(place.split, rows[i].split);
        assert_string_equal(book.title, "T");
        memory_free(book.title);
        read_place_fini(&place);
        assert_null(place.output);
    }
}

static void a_book_without_a_title_has_its_files(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"/b.c/my.book.epub", "my.book"}, {"book", "book"}, {"b/.hidden", ".hidden"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct read_place place;
        struct book book = {.title = memory_string("")};
        find_place("", rows[i][0], true, &book, &place, 0, "");
        assert_string_equal(book.title, rows[i][1]);
        memory_free(book.title);
        read_place_fini(&place);
    }
}

static void what_cannot_be_written_is_refused(void **state)
{
    (void)state;
    char options[6000] = "--split --format mp3 -o ", said[6000];
    struct read_place place;
    struct book book = {.title = memory_string("T")};
    find_place("--split", "a.txt", true, &book, &place, 1,
        "utter: --split: an m4b holds all chapters (--format mp3, opus, flac or wav makes a file of "
        "each)");
    read_place_fini(&place);
    size_t n = strlen(options);
    memset(options + n, 'n', PATH_MAX - 5); /* and -0001 */
    snprintf(said, sizeof said, "utter: %.*s: the name is too long", PATH_MAX - 5, options + n);
    find_place(options, "a.txt", true, &book, &place, 1, said);
    read_place_fini(&place);
    memory_free(book.title);
}

static void names_that_memory_lacks_for_are_told(void **state)
{
    (void)state;
    static const char *const options[] = {"--format mp3", "--split --format mp3 -o x.mp3"};
    for (int k = 0; k < 2; k++) {
        parse(options[k], "a.txt");
        SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, i)
        {
            struct read_place place;
            struct book nameless = {.title = NULL};
            char title[] = "";
            nameless.title = k ? memory_string("T") : memory_string(title);
            if (!nameless.title) {
                continue;
            }
            heard_begin();
            int code = read_place_find(&place, &typed, &nameless);
            heard_assert(support_failed() ? "utter: out of memory" : "");
            assert_int_equal(code, support_failed() ? 2 : 0);
            read_place_fini(&place);
            memory_free(nameless.title);
        }
    }
}

static void a_book_is_read_in_its_language(void **state)
{
    (void)state;
    struct book book = {0};
    parse("", "a.txt");
    for (int i = 0; utter_model_language_name(model, i); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", utter_model_language_name(model, i));
        name[0] ^= ' ';
        book.language = name;
        assert_ptr_equal(
            read_language(model, &typed.settings, &book), utter_model_language_name(model, i));
    }
    static char en[] = "en-GB", unknown[] = "", other[] = "tlh";
    book.language = en;
    assert_string_equal(read_language(model, &typed.settings, &book), "english");
    book.language = unknown;
    assert_string_equal(read_language(model, &typed.settings, &book), "auto");
    book.language = other;
    assert_string_equal(read_language(model, &typed.settings, &book), "auto");
    parse("-l german", "a.txt");
    book.language = en;
    assert_string_equal(read_language(model, &typed.settings, &book), "german");
}

/* ---- Its sections ---- */

static char one[64] = "One two three.\n\nFour.", two[] = "Five six.", none[] = "";
static struct chapter chapters[] = {{.title = none, .level = 1, .text = one},
    {.title = none, .level = 1, .text = two}, {.title = none, .level = 1, .text = none}};
static struct book book = {.title = none, .chapters = chapters, .n_chapters = 3};
static utter_reading_options reading;
static struct read_plan plan;
static char parts[PATH_MAX];

/* Plans the book by these options; `reading` is as it was left. */
static utter_status open_plan(const char *options, utter_error *error)
{
    char words[PATH_MAX + 512];
    utter_stream_options stream;
    utter_voice *voice;
    struct read_place place = {.folder = parts};
    snprintf(parts, sizeof parts, "%s", support_path("parts"));
    snprintf(words, sizeof words, "-m " MODEL " --device cpu %s", options);
    parse(words, "a.txt");
    assert_int_equal(checkpoint_stream_options(&stream, &voice, model, &typed.settings), 0);
    utter_status status =
        read_plan_open(&plan, &book, &place, model, &stream, &reading, &typed.settings, error);
    utter_voice_free(&voice);
    return status;
}

/* The key of the first section. */
static void key_of(char key[IDENTITY_SIZE], const char *options)
{
    assert_int_equal(open_plan(options, NULL), UTTER_OK);
    memcpy(key, plan.tasks[0].entry.key, IDENTITY_SIZE);
    store_remove(&plan.store);
    read_plan_close(&plan);
}

static void a_key_has_all_that_a_sound_depends_on(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        bool is_the_same;
    } rows[] = {
        {"", true},
        {"--threads 2 -q --lanes 1 --speed 2 --volume 0.5 --rate 8000 -o x.wav", true},
        {"--chapters 1", true},
        {"-l german", false},
        {"--instruct Calm.", false},
        {"--seed 1", false},
        {"--no-guard", false},
        {"--greedy", false},
        {"--temperature 0.5", false},
        {"--top-k 7", false},
        {"--top-p 0.5", false},
        {"--repetition-penalty 1.5", false},
        {"--sub-temperature 0.5", false},
        {"--sub-top-k 7", false},
        {"--sub-top-p 0.5", false},
    };
    char base[IDENTITY_SIZE], key[IDENTITY_SIZE];
    utter_reading_options_init(&reading);
    key_of(base, "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        key_of(key, rows[i].options);
        if ((strcmp(key, base) == 0) != rows[i].is_the_same) {
            fail_msg("%s", rows[i].options);
        }
    }
    /* Who speaks: the first voice does so anyway. */
    for (int i = 0; i < 2; i++) {
        char voice[64];
        snprintf(voice, sizeof voice, "-v %s", utter_model_voice_name(model, i));
        key_of(key, voice);
        assert_int_equal(strcmp(key, base) == 0, i == 0);
    }
    /* And the text. */
    memcpy(one, "Two", 3);
    key_of(key, "");
    assert_string_not_equal(key, base);
    memcpy(one, "One", 3);
    key_of(key, "");
    assert_string_equal(key, base);
}

/* In the words that are kept beside the sections, so that people see by what they were spoken. */
static void settings_are_written_beside_the_sections(void **state)
{
    (void)state;
    size_t n;
    char texts[IDENTITY_SIZE], wanted[512];
    utter_reading_options_init(&reading);
    reading.markup = UTTER_MARKUP_TAGS;
    reading.spell_out = reading.carry = true;
    reading.retries = 7;
    reading.cast = "ANN = ryan";
    reading.lexicon = "one = won";
    assert_int_equal(open_plan("-l german --instruct Calm. --layout stream --seed 18446744073709551615 "
                               "--temperature 0.5 --top-k 7 --top-p 0.25 --repetition-penalty 1.5 "
                               "--sub-temperature 0.75 --sub-top-k 8 --sub-top-p 0.125",
                         NULL),
        UTTER_OK);
    identity_of_texts(texts, (const char *const[]){"Calm.", "ANN = ryan", "one = won", NULL});
    snprintf(wanted, sizeof wanted,
        "weights bf16, language german, texts %.16s, layout 2, talker 0.5/7/0.25/1.5, predictor "
        "0.75/8/0.125/1, seed 18446744073709551615, frames 8191, guard 1, retries 7, markup 2, spelled "
        "1, "
        "carry 1",
        texts);
    char *manifest = support_read_file(support_path("parts/manifest.jsonl"), &n);
    assert_non_null(manifest);
    if (!strstr(manifest, wanted)) {
        fail_msg("%s", manifest);
    }
    free(manifest);
    store_remove(&plan.store);
    read_plan_close(&plan);
}

/* What the reading is told. */
static void a_key_has_what_changes_the_text(void **state)
{
    (void)state;
    char base[IDENTITY_SIZE], key[IDENTITY_SIZE];
    utter_reading_options_init(&reading);
    key_of(base, "");
    static const struct {
        utter_reading_options o;
        bool is_the_same;
    } readings[] = {
        {{.retries = 2}, true},
        {{.retries = 3}, false},
        {{.retries = 2, .markup = UTTER_MARKUP_TAGS}, false},
        {{.retries = 2, .spell_out = true}, false},
        {{.retries = 2, .carry = true}, false},
        {{.retries = 2, .lexicon = "one = won"}, false},
        {{.retries = 2, .cast = "ANN = ryan"}, false},
    };
    assert_int_equal(reading.retries, 2);
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        utter_reading_options_init(&reading);
        reading.retries = readings[i].o.retries;
        reading.markup = readings[i].o.markup;
        reading.spell_out = readings[i].o.spell_out;
        reading.carry = readings[i].o.carry;
        reading.lexicon = readings[i].o.lexicon;
        reading.cast = readings[i].o.cast;
        key_of(key, "");
        if ((strcmp(key, base) == 0) != readings[i].is_the_same) {
            fail_msg("reading %zu", i);
        }
    }
}

/* Weights are no part of what a model tells of itself. */
static void a_key_is_of_one_model(void **state)
{
    (void)state;
    char base[IDENTITY_SIZE], key[IDENTITY_SIZE];
    utter_reading_options_init(&reading);
    key_of(base, "");
    key_of(key, "-m build/checkpoints/tiny06-custom_voice");
    assert_string_not_equal(key, base);
}

/* Some minutes of text, which begin so. */
static void put_long(char *text, size_t size, const char *begin)
{
    snprintf(text, size, "%s", begin);
    while (strlen(text) + 200 < size) {
        strcat(
            text, "They looked at each other for a long, long while, and said not one word of it.\n\n");
    }
}

static void long_chapters_are_cut_unless_they_are_one_thing(void **state)
{
    (void)state;
    static const struct {
        const char *begin;
        int markup;
        bool timed, is_cut;
    } rows[] = {
        {"", UTTER_MARKUP_NONE, false, true},
        {"<speak>", UTTER_MARKUP_NONE, false, true},
        {"", UTTER_MARKUP_TAGS, false, true},
        {"<speak>", UTTER_MARKUP_TAGS, false, true},
        {"", UTTER_MARKUP_AUTO, false, true},
        {"<speak>", UTTER_MARKUP_AUTO, false, false},
        {"", UTTER_MARKUP_NONE, true, false},
    };
    static char text[4000];
    utter_reading_options_init(&reading);
    chapters[0].text = text;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_long(text, rows[i].is_cut ? sizeof text : sizeof text - 200, rows[i].begin);
        strcat(text, rows[i].begin[0] ? "</speak>" : "");
        reading.markup = rows[i].markup;
        book.timed = rows[i].timed;
        assert_int_equal(open_plan("--chapters 1", NULL), UTTER_OK);
        assert_int_equal(plan.n_tasks > 1, rows[i].is_cut);
        store_remove(&plan.store);
        read_plan_close(&plan);
    }
    book.timed = false;
    /* Tags hold in what comes behind them, and so does its key. */
    char keys[2][IDENTITY_SIZE];
    reading.markup = UTTER_MARKUP_TAGS;
    for (int i = 0; i < 2; i++) {
        put_long(text, sizeof text, i ? "[rate:1.4]" : "[rate:1.5]");
        assert_int_equal(open_plan("--chapters 1", NULL), UTTER_OK);
        assert_true(plan.n_tasks > 1);
        memcpy(keys[i], plan.tasks[1].entry.key, IDENTITY_SIZE);
        store_remove(&plan.store);
        read_plan_close(&plan);
    }
    assert_string_not_equal(keys[0], keys[1]);
    chapters[0].text = one;
}

/* A voice file that a text calls for is another one when it has changed. */
static void a_voice_that_a_text_calls_for_is_of_the_key(void **state)
{
    (void)state;
    char key[IDENTITY_SIZE], other[IDENTITY_SIZE], options[PATH_MAX];
    utter_reading_options_init(&reading);
    reading.markup = UTTER_MARKUP_TAGS;
    snprintf(options, sizeof options, "--voices %s", support_folder());
    static char called[] = "[voice:ann]One two three.";
    chapters[0].text = called;
    support_write_file(support_path("ann.voice"), "one", 3);
    key_of(key, options);
    support_write_file(support_path("ann.voice"), "two", 3);
    key_of(other, options);
    assert_string_not_equal(other, key);
    support_write_file(support_path("ann.voice"), "one", 3);
    key_of(other, options);
    assert_string_equal(other, key);
    chapters[0].text = one;
}

/* What is kept says of which sections it is. */
static void a_book_is_known_by_all_its_sections(void **state)
{
    (void)state;
    static const char *const options[] = {"", "--chapters 1", "--chapters 2", ""};
    char books[4][IDENTITY_SIZE], wanted[IDENTITY_SIZE];
    utter_reading_options_init(&reading);
    for (int i = 0; i < 4; i++) {
        size_t n;
        assert_int_equal(open_plan(options[i], NULL), UTTER_OK);
        const char *keys[3] = {NULL};
        for (size_t k = 0; k < plan.n_tasks; k++) {
            keys[k] = plan.tasks[k].entry.key;
        }
        identity_of_texts(wanted, keys);
        char *manifest = support_read_file(support_path("parts/manifest.jsonl"), &n);
        const char *book_of = strstr(manifest, "\"book\":\"");
        assert_non_null(book_of);
        snprintf(books[i], IDENTITY_SIZE, "%.64s", book_of + 8);
        assert_string_equal(books[i], wanted);
        free(manifest);
        store_remove(&plan.store);
        read_plan_close(&plan);
    }
    assert_string_not_equal(books[0], books[1]);
    assert_string_not_equal(books[1], books[2]);
    assert_string_equal(books[0], books[3]);
}

static void chapters_that_are_wanted_are_planned(void **state)
{
    (void)state;
    utter_error error;
    utter_reading_options_init(&reading);
    assert_int_equal(open_plan("", &error), UTTER_OK);
    assert_int_equal(plan.n_tasks, 2);
    assert_int_equal(read_plan_chapters(&plan), 2);
    assert_ptr_equal(plan.tasks[1].section, &plan.sections.at[1]);
    assert_int_equal(plan.tasks[1].section->chapter, 1);
    assert_string_not_equal(plan.tasks[0].entry.key, plan.tasks[1].entry.key);
    store_remove(&plan.store);
    read_plan_close(&plan);
    assert_int_equal(open_plan("--chapters 2-", &error), UTTER_OK);
    assert_int_equal(plan.n_tasks, 1);
    assert_int_equal(plan.tasks[0].section->chapter, 1);
    assert_int_equal(read_plan_chapters(&plan), 1);
    store_remove(&plan.store);
    read_plan_close(&plan);
    assert_int_equal(open_plan("--chapters 3", &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "--chapters: there is no text in them");
    read_plan_close(&plan);
}

/* ---- What an earlier run has left ---- */

static void leave(size_t i)
{
    char path[PATH_MAX];
    struct store_entry entry = {.n_pieces = i + 1, .seconds = 2};
    memcpy(entry.key, plan.tasks[i].entry.key, IDENTITY_SIZE);
    store_path(&plan.store, path, entry.key);
    support_write_file(path, "sound", 5);
    assert_int_equal(store_add(&plan.store, &entry, NULL), UTTER_OK);
}

static void assert_found(
    const char *options, size_t n_found, size_t n_first, bool has_one, bool has_two)
{
    assert_int_equal(open_plan(options, NULL), UTTER_OK);
    assert_int_equal(plan.n_found, n_found);
    assert_int_equal(plan.n_first, n_first);
    assert_int_equal(plan.tasks[0].ready, has_one);
    assert_int_equal(plan.tasks[1].ready, has_two);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(plan.tasks[i].entry.n_pieces, plan.tasks[i].ready ? i + 1 : 0);
    }
}

static void what_is_left_is_found(void **state)
{
    (void)state;
    utter_reading_options_init(&reading);
    assert_found("", 0, 0, false, false);
    leave(1);
    read_plan_close(&plan);
    assert_found("", 1, 0, false, true);
    leave(0);
    read_plan_close(&plan);
    assert_found("", 2, 2, true, true);
    read_plan_close(&plan);
    assert_found("--seed 1", 0, 0, false, false);
    leave(0);
    read_plan_close(&plan);
    assert_found("--seed 1", 1, 1, true, false);
    read_plan_close(&plan);
    assert_found("", 2, 2, true, true); /* it stays for who comes back */
    read_plan_close(&plan);
    assert_found("--fresh", 0, 0, false, false);
    store_remove(&plan.store);
    read_plan_close(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_have_names),
        cmocka_unit_test(a_book_without_a_title_has_its_files),
        cmocka_unit_test(what_cannot_be_written_is_refused),
        cmocka_unit_test(names_that_memory_lacks_for_are_told),
        cmocka_unit_test(a_book_is_read_in_its_language),
        cmocka_unit_test(a_key_has_all_that_a_sound_depends_on),
        cmocka_unit_test(settings_are_written_beside_the_sections),
        cmocka_unit_test(a_key_has_what_changes_the_text),
        cmocka_unit_test(a_key_is_of_one_model),
        cmocka_unit_test(long_chapters_are_cut_unless_they_are_one_thing),
        cmocka_unit_test(a_voice_that_a_text_calls_for_is_of_the_key),
        cmocka_unit_test(a_book_is_known_by_all_its_sections),
        cmocka_unit_test(chapters_that_are_wanted_are_planned),
        cmocka_unit_test(what_is_left_is_found),
    };
    return cmocka_run_group_tests_name("read_plan", tests, start, end);
}
