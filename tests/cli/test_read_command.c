/* SPDX-License-Identifier: Apache-2.0
 * utter read, as people type it: which chapters, what is printed, said and left behind, and that an interrupted run
 * goes on. With a small model that says two frames of every text. */
#include <signal.h>
#include <sys/stat.h>

#include "cli/speak/read_chapters.h"
#include "cli/speak/saying.h"
#include "tests/cli/typed.h"

#define WITH_MODEL " -m build/checkpoints/eos-first --threads 1 --device cpu"
#define BOOK "# One\n\nHello there.\n\n## Two\n\nMore of it.\n"
#define LONG "They looked at each other for a long, long while, and said not one word of it. "

static void put(const char *name, const char *text)
{
    support_write_file(support_path(name), text, strlen(text));
}

static void assert_gone(const char *name)
{
    assert_int_not_equal(access(support_path(name), F_OK), 0);
}

static int start(void **state)
{
    put("book.md", BOOK);
    put("long.md", "# One\n\nHi.\n\n# Two\n\n" LONG LONG LONG "\n");
    return typed_start(state);
}

/* ---- Chapters ---- */

enum { N = 12 };

static const struct {
    const char *list,
        *have; /* of twelve, an x for each that is wanted; NULL: it is no list; "": there are not so many */
} lists[] = {
    {"1", "x..........."},
    {"12", "...........x"},
    {"2-5", ".xxxx......."},
    {"9-9", "........x..."},
    {"9-12", "........xxxx"},
    {"3-", "..xxxxxxxxxx"},
    {"12-", "...........x"},
    {"1,4-6", "x..xxx......"},
    {"4-6,1", "x..xxx......"},
    {"1,10-", "x........xxx"},
    {"10-,1", "x........xxx"},
    {"2,2,2-3", ".xx........."},
    {"09", "........x..."},
    {"13", ""},
    {"1-13", ""},
    {"13-", ""},
    {"1,13", ""},
    {"0", NULL},
    {"0-3", NULL},
    {"5-2", NULL},
    {"1,", NULL},
    {",1", NULL},
    {"1,,2", NULL},
    {"-3", NULL},
    {"1-,", NULL},
    {"1-x", NULL},
    {"1-/", NULL},
    {"1-:", NULL},
    {"x", NULL},
    {"/", NULL},
    {":", NULL},
    {"1x", NULL},
    {"1-2x", NULL},
    {"1-2-3", NULL},
    {"1--2", NULL},
    {"1;2", NULL},
    {" 1", NULL},
};

static void chapters_are_numbers_and_ranges(void **state)
{
    (void)state;
    const struct book book = {.n_chapters = N};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const struct settings s = {.chapters = {.given = true, .text = lists[i].list}};
        char why[128];
        snprintf(why, sizeof why,
            lists[i].have
                ? "utter: --chapters: '%s': there are 12 chapters (utter read --list shows them)"
                : "utter: --chapters: '%s' is no list of chapters (2, 2-5, 2-, 1,4-6)",
            lists[i].list);
        bool good = lists[i].have && lists[i].have[0];
        heard_begin();
        int code = read_chapters_check(&s, &book);
        heard_assert(good ? "" : why);
        assert_int_equal(code, !good);
        for (size_t k = 0; k < N && good; k++) {
            if (read_chapters_have(&s, k) != (lists[i].have[k] == 'x')) {
                fail_msg("%s: %zu", lists[i].list, k + 1);
            }
        }
    }
    const struct settings all = {.chapters = {.given = false, .text = "1"}};
    assert_int_equal(read_chapters_check(&all, &book), 0);
    assert_true(read_chapters_have(&all, 0) && read_chapters_have(&all, N - 1));
}

static void a_book_is_listed(void **state)
{
    (void)state;
    char text[2048];
    typed_assert(COMMAND_READ, "--list @book.md", 0,
        "One\n   1  about 0:01  One\n   2  about 0:01    Two\n", "");
    typed_assert(COMMAND_READ, "--list --chapters 2 @book.md", 0, "One\n   2  about 0:01    Two\n", "");
    typed_assert(COMMAND_READ, "--list --json --chapters 2 @book.md", 0,
        "{\"title\":\"One\",\"author\":\"\",\"language\":\"\",\"cover\":false,"
        "\"chapters\":[{\"number\":2,\"title\":\"Two\",\"level\":2,\"source\":\"\","
        "\"text\":\"Two\\n\\nMore of it.\"}]}\n",
        "");
    typed_assert(COMMAND_READ, "--list --chapters 3 @book.md", 1, "",
        "utter: --chapters: '3': there are 2 chapters (utter read --list shows them)\n");
    /* 15 bytes a second; without a title its first 60 bytes. */
    memset(text, 'a', sizeof text);
    text[61 * 15] = 0;
    put("plain.txt", text);
    typed_assert(COMMAND_READ, "--list @plain.txt", 0,
        "   1  about 1:01  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "");
    text[61 * 15 - 1] = 0;
    put("plain.txt", text);
    typed_assert(COMMAND_READ, "--list @plain.txt", 0,
        "   1  about 1:00  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "");
    put("two.srt", "1\n00:00:01,500 --> 00:00:02,000\nHi.\n\n2\n00:01:00,000 --> 00:01:02,250\nHo.\n");
    typed_assert(COMMAND_READ, "--list --json @two.srt", 0,
        "{\"title\":\"\",\"author\":\"\",\"language\":\"\",\"cover\":false,"
        "\"chapters\":[{\"number\":1,\"title\":\"1\",\"level\":1,\"source\":\"\","
        "\"text\":\"Hi.\",\"begin_s\":1.5,\"end_s\":2.0},{\"number\":2,\"title\":\"2\","
        "\"level\":1,\"source\":\"\",\"text\":\"Ho.\",\"begin_s\":60.0,\"end_s\":62.25}]}\n",
        "");
}

static void a_book_is_listed_with_who_wrote_it(void **state)
{
    (void)state;
    char title[] = "A Book", author[] = "Ann", none[] = "", first[] = "First", text[] = "Some text.";
    unsigned char cover[] = "a picture";
    struct chapter chapters[] = {
        {.title = first, .level = 1, .text = text}, {.title = none, .level = 3, .text = text}};
    char *const titles[] = {title, title, title, none}, *const authors[] = {
                                                            author, author, none, author};
    static const char *const lines[] = {
        "A Book, Ann (with a cover)\n", "A Book, Ann\n", "A Book\n", ""};
    const struct settings s = {.chapters = {.given = false}};
    for (size_t i = 0; i < 4; i++) {
        char wanted[256];
        const struct book book = {.title = titles[i],
            .author = authors[i],
            .language = none,
            .cover = i == 0 ? cover : NULL,
            .chapters = chapters,
            .n_chapters = 2};
        printed_begin("printed");
        int code = read_list(&book, &s);
        char *printed = printed_end("printed");
        snprintf(wanted, sizeof wanted, "%s   1  about 0:00  First\n   2  about 0:00      Some text.\n",
            lines[i]);
        assert_string_equal(printed, wanted);
        assert_int_equal(code, 0);
        free(printed);
    }
    const struct settings json = {.json.given = true};
    const struct book book = {.title = title,
        .author = author,
        .language = none,
        .cover = cover,
        .chapters = chapters,
        .n_chapters = 1};
    chapters[0].source = first;
    printed_begin("printed");
    int code = read_list(&book, &json);
    char *printed = printed_end("printed");
    assert_string_equal(printed,
        "{\"title\":\"A Book\",\"author\":\"Ann\",\"language\":\"\",\"cover\":true,"
        "\"chapters\":[{\"number\":1,\"title\":\"First\",\"level\":1,\"source\":\"First\","
        "\"text\":\"Some text.\"}]}\n");
    assert_int_equal(code, 0);
    free(printed);
}

/* ---- What is made ---- */

/* Samples in a file of sound of this rate, in seconds. */
static double seconds_in(const char *name, uint32_t rate)
{
    size_t n;
    uint32_t found;
    char *sound = support_read_file(support_path(name), &n);
    assert_non_null(sound);
    memcpy(&found, sound + 24, sizeof found);
    assert_int_equal(found, rate);
    free(sound);
    return (double)(n - 44) / 2 / rate;
}

static void a_book_becomes_a_file(void **state)
{
    (void)state;
    typed_assert(COMMAND_READ, "-o @book.wav @book.md" WITH_MODEL, 0, "",
        "utter: note: 0:00:02 of speech are in @book.wav\n");
    double all = seconds_in("book.wav", 24000);
    assert_gone("book.wav.parts");
    typed_assert(COMMAND_READ, "-q -o @book.wav @book.md" WITH_MODEL, 0, "", "");
    assert_int_equal(typed_run(COMMAND_READ, "-q --json -o @book.wav @book.md" WITH_MODEL), 0);
    assert_true(
        typed_number(NULL, "seconds") > all - 1e-6 && typed_number(NULL, "seconds") < all + 1e-6);
    static const struct {
        const char *words;
        int files, chapters;
    } rows[] = {{"-o @book.wav", 1, 2}, {"-o @book.wav --chapters 2", 1, 1},
        {"-o @book.flac --split", 2, 2}, {"-o @book.flac --split --chapters 2", 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[256];
        snprintf(words, sizeof words, "-q --json %s @book.md" WITH_MODEL, rows[i].words);
        assert_int_equal(typed_run(COMMAND_READ, words), 0);
        assert_int_equal(typed_number(NULL, "files"), rows[i].files);
        assert_int_equal(typed_number(NULL, "chapters"), rows[i].chapters);
        assert_int_equal(typed_number(NULL, "sections"), rows[i].chapters);
        assert_int_equal(typed_number(NULL, "kept"), 0);
        assert_int_equal(typed_number(NULL, "not_whole"), 0);
        assert_true(unlink(support_path("book-0001.flac")) == 0 || rows[i].files < 2);
    }
    typed_assert(COMMAND_READ, "-o @book.flac --split @book.md" WITH_MODEL, 0, "",
        "utter: note: 0:00:01 of speech are in @book-0001.flac ...\n");
    assert_int_equal(
        typed_run(COMMAND_READ, "-q --rate 8000 --speed 2 -o @fast.wav @book.md" WITH_MODEL), 0);
    double fast = seconds_in("fast.wav", 8000);
    assert_true(fast < all && fast > all / 4);
}

static void words_that_may_be_missing_are_told(void **state)
{
    (void)state;
    typed_assert(COMMAND_READ, "-q --retries 0 -o @long.wav @long.md" WITH_MODEL, EXIT_NOT_WHOLE, "",
        "utter: 2 of 4 pieces of the text may lack words, the first in chapter 2, after "
        "\"Two\\n\\nThey "
        "looked at each other for a lon\"\n");
    assert_int_equal(typed_run(COMMAND_READ, "-q --json --retries 0 -o @long.wav @long.md" WITH_MODEL),
        EXIT_NOT_WHOLE);
    assert_int_equal(typed_number(NULL, "not_whole"), 2);
    assert_gone("long.wav.parts");
}

static void subtitles_that_do_not_fit_are_told(void **state)
{
    (void)state;
    put("tight.srt",
        "1\n00:00:00,000 --> 00:00:00,100\nHi.\n\n2\n00:00:00,120 --> 00:00:00,200\nHo.\n\n"
        "3\n00:00:05,000 --> 00:00:09,000\nHa.\n");
    typed_assert(COMMAND_READ, "-o @tight.wav @tight.srt" WITH_MODEL, 0, "",
        "utter: note: 1 of 3 subtitles are spoken faster to fit, at most 1.5 times (--fit)\n"
        "utter: note: 0:00:05 of speech are in @tight.wav\n");
    typed_assert(COMMAND_READ, "-o @tight.wav --fit 1 @tight.srt" WITH_MODEL, 0, "",
        "utter: note: 0:00:05 of speech are in @tight.wav\n");
    typed_assert(COMMAND_READ, "-o @tight.wav --fit 4 @tight.srt" WITH_MODEL, 0, "",
        "utter: note: 1 of 3 subtitles are spoken faster to fit, at most 4 times (--fit)\n"
        "utter: note: 0:00:05 of speech are in @tight.wav\n");
}

static void what_cannot_be_read_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *words, *says;
        int code;
    } rows[] = {
        {"-o - @book.md", "utter: read: a book goes to files (-o FILE; utter say takes -o -)\n", 1},
        {"-o @book.wav @none.md",
            "utter: @none.md: cannot read: No such file or directory (check the name)\n", 1},
        {"-o @book.wav @book.md --chapters 3",
            "utter: --chapters: '3': there are 2 chapters (utter read --list shows them)\n", 1},
        {"-o @new.wav @book.md -v nobody" WITH_MODEL,
            "utter: unknown voice \"nobody\" (known: serena, vivian, uncle_fu, ryan, aiden, ono_anna, "
            "sohee, eric, dylan)\n",
            1},
        {"-o @new.xyz @book.md" WITH_MODEL,
            "utter: @new.xyz: no sound format 'xyz' (there are wav, raw, pcm, flac, ogg, opus, mp3)\n",
            1},
        {"-o @no/new.wav @book.md" WITH_MODEL,
            "utter: @no/new.wav.parts: cannot make: No such file or directory (check the name)\n", 1},
        {"-o @new.wav --cast @none @book.md" WITH_MODEL, "utter: @none: No such file or directory\n",
            1},
        {"-o @new.wav @book.md -m 0.6b",
            "utter: 0.6b: no folder or file, and the model Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice is not "
            "in "
            "@home (utter pull 0.6b gets it)\n",
            1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        typed_assert(COMMAND_READ, rows[i].words, rows[i].code, "", rows[i].says);
        assert_gone("new.wav");
        assert_gone("new.wav.parts");
        assert_gone("new.xyz.parts");
    }
}

static void a_terminal_shows_which_chapter_it_is(void **state)
{
    (void)state;
    static const char first[] = "chapter 2 of 2, ";
    typed_parse(COMMAND_READ, "--chapters 2 -o @shown.wav @book.md" WITH_MODEL);
    terminal_begin();
    int code = command_read(&typed);
    const char *shown = terminal_end();
    assert_int_equal(strncmp(shown, first, sizeof first - 1), 0);
    assert_non_null(strstr(shown, "utter: note: 0:00:01 of speech are in "));
    assert_int_equal(code, 0);
    typed_parse(COMMAND_READ, "-q -o @shown.wav @book.md" WITH_MODEL);
    terminal_begin();
    code = command_read(&typed);
    assert_string_equal(terminal_end(), "");
    assert_int_equal(code, 0);
}

/* ---- A signal ---- */

static void interrupt(void)
{
    raise(SIGTERM);
}

/* Before the second of two sections is whole. */
static void read_until_a_signal(void)
{
    typed_parse(COMMAND_READ, "-q --fresh --lanes 1 -o @stopped.wav @book.md" WITH_MODEL);
    support_happens_at(SUPPORT_FSYNC, 3, interrupt);
    _exit(command_read(&typed));
}

/* Leaves what a run has made before it was interrupted. How much of it is in the file by then is chance. */
static void interrupt_run(void)
{
    static const char begin[] = "utter: interrupted; ",
                      end[] = ", and the same command goes on from there\n";
    fflush(stdout);
    heard_begin();
    int code = support_child_end(read_until_a_signal);
    const char *said = heard_end();
    assert_int_equal(code, 128 + SIGTERM);
    assert_int_equal(strncmp(said, begin, sizeof begin - 1), 0);
    assert_string_equal(said + strlen(said) - (sizeof end - 1), end);
    /* The first section is in the manifest, behind its head. What the other thread may yet have put there goes. */
    size_t n;
    char *lines = support_read_file(support_path("stopped.wav.parts/manifest.jsonl"), &n);
    assert_non_null(lines);
    const char *rest = strchr(strchr(lines, '\n') + 1, '\n') + 1;
    support_write_file(support_path("stopped.wav.parts/manifest.jsonl"), lines, (size_t)(rest - lines));
    free(lines);
}

static void an_interrupted_run_goes_on(void **state)
{
    (void)state;
#define AGAIN "-o @stopped.wav @book.md" WITH_MODEL
    interrupt_run();
    typed_assert(COMMAND_READ, AGAIN, 0, "",
        "utter: note: 1 of 2 sections were spoken before (--fresh begins anew)\n"
        "utter: note: 0:00:02 of speech are in @stopped.wav\n");
    interrupt_run();
    assert_int_equal(typed_run(COMMAND_READ, "-q --json " AGAIN), 0);
    assert_string_equal(typed_said, "");
    assert_int_equal(typed_number(NULL, "kept"), 1);
    interrupt_run();
    typed_assert(
        COMMAND_READ, "--fresh " AGAIN, 0, "", "utter: note: 0:00:02 of speech are in @stopped.wav\n");
    assert_gone("stopped.wav.parts");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chapters_are_numbers_and_ranges),
        cmocka_unit_test(a_book_is_listed),
        cmocka_unit_test(a_book_is_listed_with_who_wrote_it),
        cmocka_unit_test(a_book_becomes_a_file),
        cmocka_unit_test(words_that_may_be_missing_are_told),
        cmocka_unit_test(subtitles_that_do_not_fit_are_told),
        cmocka_unit_test(what_cannot_be_read_is_refused),
        cmocka_unit_test(a_terminal_shows_which_chapter_it_is),
        cmocka_unit_test(an_interrupted_run_goes_on),
    };
    return cmocka_run_group_tests_name("read_command", tests, start, typed_end);
}
