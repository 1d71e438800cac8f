/* SPDX-License-Identifier: Apache-2.0
 * Recordings that ffmpeg has to read, with a script in its place: which they are, what it is asked, and what is left
 * when it cannot. And long work, which tells how far it is on a terminal and ends at a signal. */
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/voice/long_work.h"
#include "cli/voice/readable.h"
#include "cli/voice/shared_voices.h"
#include "tests/cli/heard.h"

static char path_before[8192];

/* In ffmpeg's place: tells its words, and what follows. */
static void pose(const char *then)
{
    char script[PATH_MAX + 512], tool[PATH_MAX];
    snprintf(tool, sizeof tool, "%s", support_path("tools/ffmpeg"));
    snprintf(script, sizeof script,
        "#!/bin/sh\necho said\necho told >&2\nprintf '%%s\\n' \"$@\" > '%s'\nfor to; do :; done\n%s\n",
        support_path("words"), then);
    support_write_file(tool, script, strlen(script));
    assert_int_equal(chmod(tool, 0700), 0);
    unlink(support_path("words"));
}

static int start(void **state)
{
    (void)state;
    char path[PATH_MAX + 8192];
    snprintf(path_before, sizeof path_before, "%s", getenv("PATH"));
    snprintf(path, sizeof path, "%s:%s", support_path("tools"), path_before);
    return mkdir(support_path("tools"), 0700) || mkdir(support_path("place"), 0700) ||
           setenv("PATH", path, 1) || setenv("TMPDIR", support_path("place"), 1);
}

static int end(void **state)
{
    (void)state;
    return setenv("PATH", path_before, 1) || unlink(support_path("tools/ffmpeg")) ||
           rmdir(support_path("tools")) || rmdir(support_path("place"));
}

/* ---- Which kinds ---- */

static void kinds_are_known_by_their_first_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        size_t n;
        bool is_asked;
    } rows[] = {
        {"\0\0\0\40ftypM4A ", 12, true},
        {"\0\0\0\40ftyp", 8, true},
        {"\0\0\0\40ftyp", 7, false}, /* no recording is so short */
        {"\0\0\0ftyp\0", 8, false},
        {"ftypftyX", 8, false},
        {"\x1a\x45\xdf\xa3....", 8, true},
        {"\x1a\x45\xdf\xa2....", 8, false},
        {"ADIF....", 8, true},
        {"ADIX....", 8, false},
        {"\xff\xf1......", 8, true},
        {"\xff\xf9......", 8, true},
        {"\xff\xfb......", 8, false}, /* mp3, which libsndfile reads */
        {"\xfe\xf1......", 8, false},
        {"#!AMR...", 8, true},
        {"#!AMX...", 8, false},
        {"\x30\x26\xb2\x75....", 8, true},
        {"\x30\x26\xb2\x76....", 8, false},
        {"RIFF....", 8, false},
        {"OggS....", 8, false},
        {"", 0, false},
    };
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", support_path("sound"));
    pose("echo made > \"$to\"");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct readable r;
        support_write_file(path, rows[i].head, rows[i].n);
        assert_int_equal(readable_open(&r, path), 0);
        if ((access(support_path("words"), F_OK) == 0) != rows[i].is_asked) {
            fail_msg("row %zu", i);
        }
        assert_string_equal(r.path, rows[i].is_asked ? r.made : path);
        readable_close(&r);
        unlink(support_path("words"));
    }
    struct readable r;
    assert_int_equal(readable_open(&r, support_path("none")), 0); /* who reads it will tell */
    assert_string_equal(r.path, support_path("none"));
    readable_close(&r);
}

/* ---- What is asked ---- */

static const char *put_sound(const char *name)
{
    const char *path = support_path(name);
    support_write_file(path, "\0\0\0\40ftypM4A ", 12);
    return path;
}

static void ffmpeg_is_asked_for_the_sound_alone(void **state)
{
    (void)state;
    struct readable r;
    char path[PATH_MAX], wanted[3 * PATH_MAX];
    size_t n;
    snprintf(path, sizeof path, "%s", put_sound("-a b.m4a"));
    /* It does not read what the program's own input holds. */
    pose("read -r line && exit 1\necho made > \"$to\"");
    support_write_file(support_path("input"), "text\n", 5);
    int input = dup(0), file = open(support_path("input"), O_RDONLY | O_CLOEXEC);
    dup2(file, 0);
    heard_begin();
    printed_begin("printed");
    int code = readable_open(&r, path);
    char *printed = printed_end("printed");
    dup2(input, 0);
    close(input);
    close(file);
    heard_assert(""); /* neither what it says nor what it prints */
    assert_string_equal(printed, "");
    free(printed);
    assert_int_equal(code, 0);
    assert_ptr_equal(r.path, r.made);
    snprintf(wanted, sizeof wanted, "%s/utter-", getenv("TMPDIR"));
    assert_int_equal(strncmp(r.folder, wanted, strlen(wanted)), 0);
    assert_int_equal(strlen(r.folder), strlen(wanted) + 6);
    snprintf(wanted, sizeof wanted, "%s/-a b.m4a.wav", r.folder); /* a voice takes its name from it */
    assert_string_equal(r.made, wanted);
    snprintf(wanted, sizeof wanted,
        "-nostdin\n-v\nerror\n-protocol_whitelist\nfile\n-i\nfile:%s\n-vn\n-map_metadata\n-1\n"
        "-c:a\npcm_s16le\n-f\nwav\n%s\n",
        path, r.made);
    char *words = support_read_file(support_path("words"), &n);
    assert_string_equal(words, wanted);
    free(words);
    /* What is said of the file that was made is said of the one that was given, and nothing else is. */
    utter_error error;
    error_set(&error, UTTER_E_FILE, "%s: too short", r.made);
    readable_name_given(&r, "mine.m4a", &error);
    assert_string_equal(error.text, "mine.m4a: too short");
    error_set(&error, UTTER_E_FILE, "in %s", r.made);
    readable_name_given(&r, "mine.m4a", &error);
    snprintf(wanted, sizeof wanted, "in %s", r.made);
    assert_string_equal(error.text, wanted);
    readable_close(&r);
    assert_int_equal(support_count_files(support_path("place")), 0);
    readable_close(&r); /* nothing by now */
    r.path = "plain.wav";
    error_set(&error, UTTER_E_FILE, "plain.wav: too short");
    readable_name_given(&r, "other", &error);
    assert_string_equal(error.text, "plain.wav: too short");
}

static void a_long_name_is_cut(void **state)
{
    (void)state;
    struct readable r;
    char name[256], path[PATH_MAX];
    memset(name, 'n', sizeof name);
    name[250] = 0;
    snprintf(path, sizeof path, "%s", put_sound(name));
    pose("echo made > \"$to\"");
    assert_int_equal(readable_open(&r, path), 0);
    assert_int_equal(strlen(strrchr(r.made, '/') + 1), 200 + 4);
    assert_int_equal(access(r.made, F_OK), 0);
    readable_close(&r);
    assert_int_equal(support_count_files(support_path("place")), 0);
    unlink(path);
}

/* As batch systems and continuous integration name theirs. */
static void a_folder_may_have_a_long_name(void **state)
{
    (void)state;
    struct readable r;
    char place[PATH_MAX], deep[PATH_MAX + 256], path[PATH_MAX];
    snprintf(path, sizeof path, "%s", put_sound("a.m4a"));
    snprintf(place, sizeof place, "%s", getenv("TMPDIR"));
    snprintf(deep, sizeof deep, "%s/%0200d", place, 0);
    assert_int_equal(mkdir(deep, 0700) || setenv("TMPDIR", deep, 1), 0);
    pose("echo made > \"$to\"");
    assert_int_equal(readable_open(&r, path), 0);
    assert_int_equal(access(r.made, F_OK), 0);
    assert_int_equal(strncmp(r.made, deep, strlen(deep)), 0);
    readable_close(&r);
    assert_int_equal(setenv("TMPDIR", place, 1) || rmdir(deep), 0);
}

static void what_ffmpeg_cannot_read_is_told(void **state)
{
    (void)state;
    struct readable r;
    char path[PATH_MAX], wanted[PATH_MAX + 128], place[PATH_MAX];
    snprintf(path, sizeof path, "%s", put_sound("a.m4a"));
    static const char *const ends[] = {"echo half > \"$to\"; exit 1", "exit 126", "kill -9 $$"};
    for (int i = 0; i < 3; i++) {
        pose(ends[i]);
        heard_begin();
        int code = readable_open(&r, path);
        snprintf(wanted, sizeof wanted, "utter: %s: ffmpeg finds no sound in it", path);
        heard_assert(wanted);
        assert_int_equal(code, 1);
        assert_string_equal(r.path, path);
        assert_int_equal(support_count_files(support_path("place")), 0);
    }
    /* Where there is none, who reads the file says so. */
    char tools[PATH_MAX + 8192];
    snprintf(tools, sizeof tools, "%s", getenv("PATH"));
    setenv("PATH", "/no/where", 1);
    heard_begin();
    int code = readable_open(&r, path);
    heard_assert("");
    assert_int_equal(code, 0);
    assert_string_equal(r.path, path);
    assert_int_equal(support_count_files(support_path("place")), 0);
    setenv("PATH", tools, 1);
    /* No folder. */
    snprintf(place, sizeof place, "%s", getenv("TMPDIR"));
    setenv("TMPDIR", "/no/where", 1);
    heard_begin();
    code = readable_open(&r, path);
    snprintf(wanted, sizeof wanted, "utter: no folder for what ffmpeg makes of %s (TMPDIR says where)",
        path);
    heard_assert(wanted);
    assert_int_equal(code, 1);
    readable_close(&r);
    setenv("TMPDIR", place, 1);
}

/* ---- Voices that several machines share ---- */

static void voices_of_a_folder_have_no_store(void **state)
{
    (void)state;
    struct settings s = {.voices = {.given = true, .text = "s3"}};
    assert_false(shared_voices_look());
    assert_int_equal(shared_voices_open(&s), 0);
    assert_string_equal(s.voices.text, "s3");
    s.voices = (struct setting){.given = false, .text = "s3://bucket"};
    assert_int_equal(shared_voices_open(&s), 0);
    assert_string_equal(s.voices.text, "s3://bucket");
    s.voices.given = true;
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    heard_begin();
    int code = shared_voices_open(&s);
    heard_assert("utter: --voices s3://bucket: where is the copy to be? (set HOME or XDG_CACHE_HOME)");
    assert_int_equal(code, 1);
    assert_false(shared_voices_look());
}

/* ---- Long work ---- */

/* What a terminal is shown when so much is done. */
static const char *shown_at(struct long_work *work, double done)
{
    terminal_begin();
    bool goes_on = long_work_progress(work, done);
    const char *text = terminal_end();
    assert_true(goes_on);
    return text;
}

static void a_terminal_shows_how_far_it_is(void **state)
{
    (void)state;
    struct settings s = {0};
    struct long_work work;
    assert_int_equal(long_work_begin(&work, "listening", &s), 0);
    assert_false(work.quiet);
    assert_true(work.told_s == 0);
    double before = clock_seconds();
    assert_string_equal(shown_at(&work, 0.125), "listening: 12 %");
    assert_true(work.told_s >= before && work.told_s <= clock_seconds());
    work.told_s = clock_seconds() + 1000; /* it was told just now */
    assert_string_equal(shown_at(&work, 0.25), "");
    work.told_s = clock_seconds() - 0.2;
    assert_string_equal(shown_at(&work, 1), "\r\033[Klistening: 100 %");
    s.quiet.given = true;
    assert_int_equal(long_work_begin(&work, "listening", &s), 0);
    assert_string_equal(shown_at(&work, 0.5), "");
    /* A file is no terminal. The line that still stands there goes. */
    s.quiet.given = false;
    assert_int_equal(long_work_begin(&work, "listening", &s), 0);
    heard_begin();
    bool goes_on = long_work_progress(&work, 0.5);
    int code = long_work_end(UTTER_OK, NULL);
    assert_string_equal(heard_end(), "\r\033[K");
    assert_true(goes_on);
    assert_int_equal(code, 0);
    const utter_error error = {.text = "too short"};
    heard_begin();
    code = long_work_end(UTTER_E_FILE, &error);
    heard_assert("utter: too short");
    assert_int_equal(code, 1);
}

/* The last, since a signal stays: what it left unfinished is not told as a fault of the file. */
static void a_signal_ends_it(void **state)
{
    (void)state;
    struct readable r;
    struct settings s = {0};
    struct long_work work;
    assert_int_equal(long_work_begin(&work, "listening", &s), 0);
    pose("kill -TERM $PPID; exit 1");
    heard_begin();
    int code = readable_open(&r, put_sound("a.m4a"));
    heard_assert("utter: interrupted: nothing was written");
    assert_int_equal(code, 128 + SIGTERM);
    assert_int_equal(support_count_files(support_path("place")), 0);
    assert_false(long_work_progress(&work, 0.5));
    static const utter_error error = {.text = "too short"};
    for (int i = 0; i < 2; i++) { /* also where it came too late */
        heard_begin();
        code = long_work_end(i ? UTTER_E_FILE : UTTER_OK, &error);
        heard_assert("utter: interrupted: nothing was written");
        assert_int_equal(code, 128 + SIGTERM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_known_by_their_first_bytes),
        cmocka_unit_test(ffmpeg_is_asked_for_the_sound_alone),
        cmocka_unit_test(a_long_name_is_cut),
        cmocka_unit_test(a_folder_may_have_a_long_name),
        cmocka_unit_test(what_ffmpeg_cannot_read_is_told),
        cmocka_unit_test(voices_of_a_folder_have_no_store),
        cmocka_unit_test(a_terminal_shows_how_far_it_is),
        cmocka_unit_test(a_signal_ends_it),
    };
    return cmocka_run_group_tests_name("readable", tests, start, end);
}
