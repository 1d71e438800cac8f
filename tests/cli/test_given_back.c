/* SPDX-License-Identifier: Apache-2.0
 * What a command takes of the machine it gives back, whether it ends well or not: the same command, once more, leaves
 * the heap, the open files and the mappings as they were. Who calls the commands may be no program that ends then. */
#include <sys/stat.h>

#include "tests/cli/typed.h"
#include "tests/heap.h"

#define CHECKPOINTS "build/checkpoints/"
#define ON_CPU " --threads 1 --device cpu"
#define SPEAKER " -m " CHECKPOINTS "eos-first" ON_CPU
#define BASE " -m " CHECKPOINTS "tiny06-base" ON_CPU
#define DESIGNER " -m " CHECKPOINTS "tiny06-voice_design" ON_CPU " --for " CHECKPOINTS "tiny06-base"

static int start(void **state)
{
    static const char book[] = "# One\n\nHello there.\n\n## Two\n\nMore of it.\n";
    static const char lines[] = "{\"id\":\"one\",\"text\":\"Hi.\"}\n";
    typed_start(state);
    typed_record();
    support_write_file(support_path("book.md"), book, sizeof book - 1);
    support_write_file(support_path("lines"), lines, sizeof lines - 1);
    support_write_file(support_path("text"), "Hi.\n\nHo.\n", 9);
    support_write_file(support_path("bad.voice"), "bad", 3);
    support_write_file(support_path("cast"), "ann = ryan\n", 11);
    return typed_run(COMMAND_CLONE, "@ref.wav -q -o @ann.voice --text One" BASE) ||
           typed_run(COMMAND_CODEC_ENCODE, "@ref.wav -q -o @codes.json" BASE);
}

static bool heap_is_told;

struct row {
    unsigned command;
    const char *words;
    int code;
};

static void assert_given_back(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t before = 0, after = 0;
        int files_before = 0, files_after = 0;
        for (int run = 0; run < 3; run++) { /* the first may keep something for good */
            before = after;
            files_before = files_after;
            int code = typed_run(rows[i].command, rows[i].words);
            if (code != rows[i].code) {
                fail_msg("%s: %d: %s", rows[i].words, code, typed_said);
            }
            free(typed_printed);
            typed_printed = NULL;
            after = heap_used();
            files_after = support_count_files("/proc/self/fd");
        }
        assert_true(fcntl(0, F_GETFD) >= 0); /* which nobody has given it */
        if ((heap_is_told && after > before) || files_after != files_before) {
            fail_msg("%s: %zu bytes and %d files are kept", rows[i].words, after - before,
                files_after - files_before);
        }
    }
}

static void commands_about_models_give_back_what_they_took(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {COMMAND_TOKENS, "Hi. -m " CHECKPOINTS "eos-first", 0},
        {COMMAND_TOKENS, "-f @text -m " CHECKPOINTS "eos-first", 0},
        {COMMAND_TOKENS, "Hi. -m 0.6b", 1},
        {COMMAND_MODELS, "", 0},
        {COMMAND_MODELS, "--json", 0},
        {COMMAND_USE, "builtin -v ann", 0},
        {COMMAND_USE, "nothing-here", 1},
        {COMMAND_INFO, "" SPEAKER, 0},
        {COMMAND_INFO, "--json" SPEAKER, 0},
        {COMMAND_VERIFY, "tests/golden/eos-first.safetensors" SPEAKER, 0},
        {COMMAND_VERIFY, "--json tests/golden/eos-first.safetensors" SPEAKER, 0},
        {COMMAND_VERIFY, "@book.md" SPEAKER, 1},
        {COMMAND_QUANTIZE, "-q --weights q8 -o @packed -m " CHECKPOINTS "eos-first", 0},
        {COMMAND_QUANTIZE, "-q --weights q8 -o @no/packed -m " CHECKPOINTS "eos-first", 2},
        {COMMAND_ALIGN_HEADS, "-q --max-frames 8 -o @heads One~two." SPEAKER, 1},
        {COMMAND_ALIGN_HEADS, "--json -q --max-frames 8 -o @heads One~two." SPEAKER, 1},
        {COMMAND_ALIGN_HEADS, "-v nobody One~two." SPEAKER, 1},
        {COMMAND_BENCH, "--json --words 2 --runs 1 --max-frames 4" SPEAKER, 0},
        {COMMAND_BENCH, "-v ryan --json --words 2 --runs 1 --max-frames 4" SPEAKER, 0},
    };
    assert_given_back(rows, sizeof rows / sizeof *rows);
}

static void commands_about_voices_give_back_what_they_took(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {COMMAND_VOICES, "-m " CHECKPOINTS "eos-first --voices @", 0},
        {COMMAND_VOICES, "--json -m " CHECKPOINTS "eos-first --voices @", 0},
        {COMMAND_VOICES, "--json -m " CHECKPOINTS "eos-first --voices @none", 1},
        {COMMAND_VOICES, "ann --voices @", 0},
        {COMMAND_VOICES, "ann --json --voices @ -m " CHECKPOINTS "eos-first", 0},
        {COMMAND_VOICES, "bad --json --voices @ -m " CHECKPOINTS "eos-first", 1},
        {COMMAND_CODEC_ENCODE, "@ref.wav -o @again.json" BASE, 0},
        {COMMAND_CODEC_ENCODE, "@none.wav -o @again.json" BASE, 1},
        {COMMAND_CODEC_DECODE, "@codes.json -o @again.wav" BASE, 0},
        {COMMAND_CODEC_DECODE, "@codes.json -o @no/again.wav" BASE, 2},
        {COMMAND_CODEC_DECODE, "@book.md -o @again.wav" BASE, 1},
        {COMMAND_CLONE, "@ref.wav -q -o @bob.voice" BASE, 0},
        {COMMAND_CLONE, "@ref.wav -q --json --text One -o @bob.voice" BASE, 0},
        {COMMAND_CLONE, "@none.wav -q -o @bob.voice" BASE, 1},
        {COMMAND_VOICES_MIX, "ann ann:0.5 --voices @ -o @both.voice", 0},
        {COMMAND_VOICES_MIX, "ann ann:0 --voices @ -o @both.voice", 1},
        {COMMAND_VOICES_MIX, "ann nobody --voices @ -o @both.voice", 1},
        {COMMAND_DESIGN, "-q --instruct Hell. -l german --seed 2 -o @eve.voice" DESIGNER, 0},
        {COMMAND_DESIGN, "-q --instruct Calm. -o @no/eve.voice" DESIGNER, 2},
    };
    assert_given_back(rows, sizeof rows / sizeof *rows);
}

static void commands_that_speak_give_back_what_they_took(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {COMMAND_SAY, "-q -o @a.wav --codes @a.json --times @a.srt --trace @trace Hi." SPEAKER, 0},
        {COMMAND_SAY, "-q -o @a.flac -v ryan --json --times @times.json Hi." SPEAKER, 0},
        {COMMAND_SAY, "-q -o @no/a.wav Hi." SPEAKER, 2},
        {COMMAND_SAY, "-q -o @a.wav --codes @no/a.json Hi." SPEAKER, 2},
        {COMMAND_SAY, "-q -o @a.wav -v nobody Hi." SPEAKER, 1},
        {COMMAND_SAY, "-q -o @a.wav --lines -f @text" SPEAKER, 0},
        {COMMAND_SAY, "-q -o @a.wav --cast @cast -f @text --markup tags" SPEAKER, 0},
        {COMMAND_SAY, "-q --print-text --cast @cast -f @text" SPEAKER, 0},
        {COMMAND_SAY, "-q --print-text --cast @none -f @text" SPEAKER, 1},
    };
    assert_given_back(rows, sizeof rows / sizeof *rows);
}

static void books_and_jobs_give_back_what_they_took(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {COMMAND_READ, "--list @book.md", 0},
        {COMMAND_READ, "--list --json @book.md", 0},
        {COMMAND_READ, "-q -o @book.wav @book.md" SPEAKER, 0},
        {COMMAND_READ, "-q --json -o @book.wav @book.md -v ryan" SPEAKER, 0},
        {COMMAND_READ, "-q -o @book.wav @book.md -v nobody" SPEAKER, 1},
        {COMMAND_READ, "-q -o @no/book.wav @book.md" SPEAKER, 1},
        {COMMAND_READ, "-q @none.md" SPEAKER, 1},
        {COMMAND_JOB_SUBMIT, "@lines --queue @queue --results @results -m " CHECKPOINTS "eos-first", 0},
        {COMMAND_JOB_STATUS, "@lines --queue @queue --results @results -m " CHECKPOINTS "eos-first", 0},
        {COMMAND_JOB_STATUS,
            "@lines --json --queue @queue --results @results -m " CHECKPOINTS "eos-first", 0},
        {COMMAND_JOB_COLLECT, "@lines --results @results -o @out -m " CHECKPOINTS "eos-first", 3},
        {COMMAND_JOB_COLLECT, "@none --results @results -o @out -m " CHECKPOINTS "eos-first", 1},
        {COMMAND_JOB_WORK, "--until-empty -q --queue @queue --results @results" SPEAKER, 0},
        {COMMAND_JOB_WORK, "--until-empty -q --queue @none --results @results" SPEAKER, 1},
    };
    assert_given_back(rows, sizeof rows / sizeof *rows);
}

int main(int n, char **arguments)
{
    (void)n;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_about_models_give_back_what_they_took),
        cmocka_unit_test(commands_about_voices_give_back_what_they_took),
        cmocka_unit_test(commands_that_speak_give_back_what_they_took),
        cmocka_unit_test(books_and_jobs_give_back_what_they_took),
    };
    /* Again, without the cache that hides from heap_used what is free; as it is where that cannot be. */
    static const char uncached[] = "glibc.malloc.tcache_count=0";
    const char *tuned = getenv("GLIBC_TUNABLES");
    heap_is_told = tuned && strcmp(tuned, uncached) == 0;
    if (!tuned) {
        setenv("GLIBC_TUNABLES", uncached, 1);
        execv("/proc/self/exe", arguments);
    }
    return cmocka_run_group_tests_name("given_back", tests, start, typed_end);
}
