/* SPDX-License-Identifier: Apache-2.0
 * A book as an m4b, with a program in the place of ffmpeg that writes down how it is called. */
#include "book/sink.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support.h"

enum { RATE = 24000 };

static unsigned char cover[] = "\x89PNG and more";
static char names[][20] = {"One", "Two", "The book", "Ann Able"};
static struct chapter chapters[] = {{.title = names[0]}, {.title = names[1]}};
static struct book book = {
    .title = names[2], .author = names[3], .chapters = chapters, .n_chapters = 2};

static bool go_on(void)
{
    return false;
}

static bool stop(void)
{
    return true;
}

static int n_asked;

/* While the second call works. */
static bool stop_meanwhile(void)
{
    return ++n_asked > 1;
}

/* Once that has ended too, and the file is brought to the disk. */
static bool stop_behind(void)
{
    siginfo_t ended;
    return ++n_asked > 1 && waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 &&
           errno == ECHILD;
}

/* Writes its words, a line each, behind those of earlier calls; and into "how" what it reads and writes, whether it has
 * a group of its own, and which signals it does not get. The first call takes sound until its end; the second
 * puts the sound and what was written about the book into the file. A file "refuses" keeps from taking a cover, "fails"
 * from anything but the sound, "ends" even from that; "slow" takes a while to take it, "hangs" takes for ever;
 * "waits" is for whoever stops the second call. */
static const char posed[] =
    "#!/bin/sh\ncd \"${0%/*}\"\nprintf '%s\\n' \"$@\" --- >> words\nfor last; do :; "
    "done\nout=${last#file:}\n"
    "own=no\n"
    "[ \"$(cut -d ' ' -f 5 /proc/$$/stat 2> /dev/null)\" = $$ ] && own=own\n"
    "echo $(readlink /proc/$$/fd/0 | cut -c -9) $(readlink /proc/$$/fd/1) $own"
    " $((0x$(sed -n 's/^SigIgn:.//p' /proc/$$/status) & 0x7fffffff)) >> how\n"
    "[ -e ends ] && exit 1\n"
    "case \" $* \" in *' pipe:0 '*) [ -e slow ] && sleep 0.2; [ -e hangs ] && exec sleep 600; "
    "exec cat > \"$out\";; esac\n"
    "[ -e fails ] && exit 1\n"
    "case \" $* \" in *' 2:v '*) cat folder/*-cover > taken; [ -e refuses ] && exit 1;; esac\n"
    "[ -e waits ] && exec sleep 600\n"
    "cat folder/*-sound.m4a folder/*-about > \"$out\"\n";

static char tools[4096], folder[4200], path_before[8192];

static const char *tool(const char *name)
{
    static char paths[8][5000];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", tools, name);
    return path;
}

static int pose(void **state)
{
    (void)state;
    snprintf(tools, sizeof tools, "%s", support_path("tools"));
    snprintf(folder, sizeof folder, "%s/folder", tools);
    snprintf(path_before, sizeof path_before, "%s", getenv("PATH"));
    if (mkdir(tools, 0700) || mkdir(folder, 0700)) {
        return -1;
    }
    support_write_file(tool("ffmpeg"), posed, sizeof posed - 1);
    signal(SIGPIPE, SIG_IGN);
    char path[8192 + 5000];
    snprintf(path, sizeof path, "/no/where::%s:%s", tools, path_before);
    return chmod(tool("ffmpeg"), 0700) || setenv("PATH", path, 1);
}

static int unpose(void **state)
{
    (void)state;
    static const char *const made[] = {"ffmpeg", "words", "how", "taken", "refuses", "fails", "ends",
        "slow", "waits", "hangs", "out.m4b"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        unlink(tool(made[i]));
    }
    return rmdir(folder) || rmdir(tools) || setenv("PATH", path_before, 1);
}

static void ffmpeg_is_looked_for_in_the_path(void **state)
{
    char path[8192];
    (void)state;
    assert_true(encoder_is_here());
    snprintf(path, sizeof path, "%s", getenv("PATH"));
    static const char *const none[] = {"", ":", "/no/where", "/no/where:/and/there:"};
    for (int i = 0; i < 4; i++) {
        setenv("PATH", none[i], 1);
        assert_false(encoder_is_here());
    }
    unsetenv("PATH");
    assert_false(encoder_is_here());
    setenv("PATH", tools, 1);
    assert_true(encoder_is_here());
    chmod(tool("ffmpeg"), 0600);
    assert_int_equal(encoder_is_here(), geteuid() == 0 && access(tool("ffmpeg"), X_OK) == 0);
    chmod(tool("ffmpeg"), 0700);
    setenv("PATH", path, 1);
}

static void content_is(const char *path, const char *text, size_t n)
{
    size_t bytes;
    char *have = support_read_file(path, &bytes);
    assert_non_null(have);
    if (bytes != n || memcmp(have, text, n) != 0) {
        fail_msg("\"%s\"\nis not\n\"%s\"", have, text);
    }
    free(have);
}

static const float pcm[] = {0.5f, -0.5f, 1, -2, 1.4f / 32768, -1.6f / 32768};
static const char sound[] = "\0\x40\0\xc0\xff\x7f\0\x80\1\0\xfe\xff";
enum { N = 6 };

static struct encoder *open_encoder(int rate)
{
    struct encoder *e;
    utter_error error = {0};
    encoder_open(&e, &book, folder, rate, &error);
    assert_string_equal(error.text, "");
    support_short_io(5); /* as a pipe that is full, and a signal then */
    assert_int_equal(encoder_write(e, pcm, N, &error), UTTER_OK);
    support_short_io(0);
    return e;
}

/* What a terminal sends is the reader's alone, and what ffmpeg says otherwise is no sound. */
static void ffmpeg_is_started_apart(void **state)
{
    (void)state;
    unlink(tool("how"));
    struct encoder *e = open_encoder(RATE);
    assert_int_equal(encoder_close(&e, tool("out.m4b"), &book, NULL, 0, go_on, NULL), UTTER_OK);
    size_t bytes;
    char *have = support_read_file(tool("how"), &bytes);
    assert_non_null(have);
    assert_int_equal(strncmp(have, "pipe:", 5), 0);
    assert_string_equal(strchr(have, ' '), " /dev/null own 0\n/dev/null /dev/null own 0\n");
    free(have);
}

/* The words of both calls, in full: who has another ffmpeg hears nothing else. */
static void an_m4b_has_chapters_and_a_cover(void **state)
{
    static const struct encoder_mark marks[] = {{"One", 0, 4}, {"Two = 2; #x\\y\nz", 4, 6}};
    static const char about[] =
        ";FFMETADATA1\ntitle=The book\nalbum=The book\nartist=Ann Able\ngenre=Audiobook\n"
        "[CHAPTER]\nTIMEBASE=1/22050\nSTART=0\nEND=4\ntitle=One\n"
        "[CHAPTER]\nTIMEBASE=1/22050\nSTART=4\nEND=6\ntitle=Two \\= 2\\; \\#x\\\\y\\\nz\n";
    static const char calls[] = "-hide_banner\n-loglevel\nerror\n-xerror\n-y\n-f\ns16le\n-ar\n22050\n-"
                                "ac\n1\n-i\npipe:0\n-f\nffmetadata\n-i\n"
                                "file:@-about\n-map\n0:a\n-map_metadata\n1\n-c:a\naac\n-b:a\n48k\n-"
                                "threads\n1\n-fflags\n+bitexact\n-flags:a\n"
                                "+bitexact\n-f\nmp4\nfile:@-sound.m4a\n---\n"
                                "-hide_banner\n-loglevel\nerror\n-xerror\n-y\n-protocol_"
                                "whitelist\nfile\n-i\nfile:@-sound.m4a\n-f\n"
                                "ffmetadata\n-i\nfile:@-about\n-f\npng_pipe\n-i\nfile:@-cover\n-map\n2:"
                                "v\n-disposition:v:0\nattached_pic\n"
                                "-map\n0:a\n-c\ncopy\n-map_metadata\n1\n-map_chapters\n1\n-fflags\n+"
                                "bitexact\n-movflags\n+faststart\n-f\nipod\n"
                                "file:@-whole.m4b\n---\n";
    const char *path = tool("out.m4b");
    char words[40000] = "", whole[1024];
    (void)state;
    book.cover = cover;
    book.cover_bytes = sizeof cover;
    struct encoder *e = open_encoder(22050);
    assert_int_equal(encoder_close(&e, path, &book, marks, 2, go_on, NULL), UTTER_OK);
    assert_null(e);
    memcpy(whole, sound, 2 * N);
    memcpy(whole + 2 * N, about, sizeof about);
    content_is(path, whole, 2 * N + sizeof about - 1);
    content_is(tool("taken"), (const char *)cover, sizeof cover);
    for (size_t i = 0, n = 0; calls[i]; i++) { /* "@" stands for how each file on the way begins */
        n += (size_t)(calls[i] == '@' ? snprintf(words + n, sizeof words - n, "%s/encoding-%ld", folder,
                                            (long)getpid())
                                      : snprintf(words + n, sizeof words - n, "%c", calls[i]));
    }
    content_is(tool("words"), words, strlen(words));
    assert_int_equal(support_count_files(folder), 0);
    /* A JPEG, at a rate that deserves more bits. */
    unlink(tool("words"));
    cover[0] = 0xFF;
    e = open_encoder(24000);
    assert_int_equal(encoder_close(&e, path, &book, marks, 2, go_on, NULL), UTTER_OK);
    size_t bytes;
    char *have = support_read_file(tool("words"), &bytes);
    assert_non_null(strstr(have, "\n-b:a\n64k\n"));
    assert_non_null(strstr(have, "\n-f\nmjpeg\n"));
    free(have);
    cover[0] = 0x89;
}

/* A picture that ffmpeg does not take is left out; without one nothing is said of it. */
static void a_cover_may_be_left_out(void **state)
{
    const char *path = tool("out.m4b");
    (void)state;
    for (int has = 0; has < 2; has++) {
        unlink(tool("words"));
        unlink(path);
        support_write_file(tool("refuses"), "", 0);
        book.cover = has ? cover : NULL;
        struct encoder *e = open_encoder(RATE);
        assert_int_equal(encoder_close(&e, path, &book, NULL, 0, go_on, NULL), UTTER_OK);
        assert_int_equal(access(path, F_OK), 0);
        size_t bytes, n_calls = 0, n_covers = 0;
        char *have = support_read_file(tool("words"), &bytes);
        for (const char *at = have; (at = strstr(at, "---\n")); at++, n_calls++) {
        }
        for (const char *at = have; (at = strstr(at, "png_pipe\n")); at++, n_covers++) {
        }
        free(have);
        assert_int_equal(n_calls, has ? 3 : 2);
        assert_int_equal(n_covers, has);
        assert_int_equal(support_count_files(folder), 0);
    }
    book.cover = NULL;
    unlink(tool("refuses"));
}

static void what_ffmpeg_cannot_is_told(void **state)
{
    static const char *const files[] = {"fails", "ends"};
    const char *path = tool("out.m4b");
    struct encoder *e;
    utter_error error = {0};
    (void)state;
    unlink(path);
    for (int i = 0; i < 2; i++) {
        support_write_file(tool(files[i]), "", 0);
        if (encoder_open(&e, &book, folder, RATE, NULL)) {
            fail();
        }
        assert_int_equal(encoder_close(&e, path, &book, NULL, 0, go_on, &error), UTTER_E_IO);
        assert_string_equal(error.text,
            "ffmpeg cannot make the m4b (what it says stands above; -o NAME.mp3 needs no ffmpeg)");
        assert_int_equal(support_count_files(folder), 0);
        assert_int_not_equal(access(path, F_OK), 0);
        unlink(tool(files[i]));
    }
    /* It has ended, and nobody takes the sound: more of it than a pipe holds. */
    static const float silence[1 << 16];
    support_write_file(tool("ends"), "", 0);
    assert_int_equal(encoder_open(&e, &book, folder, RATE, NULL), UTTER_OK);
    assert_int_equal(encoder_write(e, silence, 1 << 16, &error), UTTER_E_IO);
    assert_string_equal(error.text, "ffmpeg has ended too early (what it says stands above)");
    encoder_abort(&e);
    assert_null(e);
    encoder_abort(&e);
    unlink(tool("ends"));
    /* The book cannot have its name. */
    e = open_encoder(RATE);
    assert_int_equal(
        encoder_close(&e, tool("no/out.m4b"), &book, NULL, 0, go_on, &error), UTTER_E_FILE);
    assert_ptr_equal(strstr(error.text, tools), error.text);
    assert_int_equal(support_count_files(folder), 0);
    /* It cannot be opened again, or does not come to the disk. */
    static const enum support_call calls[] = {SUPPORT_OPEN, SUPPORT_FSYNC};
    for (int i = 0; i < 2; i++) {
        e = open_encoder(RATE);
        support_fail_at(calls[i], 1);
        assert_true(encoder_close(&e, path, &book, NULL, 0, go_on, &error) < 0);
        assert_true(support_failed());
        support_fail_off();
        assert_ptr_equal(strstr(error.text, path), error.text);
        assert_non_null(strstr(error.text, ": cannot write: "));
        assert_int_not_equal(access(path, F_OK), 0);
        assert_int_equal(support_count_files(folder), 0);
    }
    /* It is not there, or there is no folder. */
    char before[8192];
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    setenv("PATH", "/no/where", 1);
    assert_int_equal(encoder_open(&e, &book, folder, RATE, &error), UTTER_E_IO);
    assert_string_equal(error.text, "ffmpeg cannot be started");
    assert_int_equal(support_count_files(folder), 0);
    setenv("PATH", before, 1);
    assert_true(encoder_open(&e, &book, "/no/where", RATE, &error) < 0);
    assert_ptr_equal(strstr(error.text, "/no/where/encoding-"), error.text);
}

/* Where a file of ffmpeg's lies on its way. */
static const char *on_the_way(const char *name)
{
    static char path[5000];
    snprintf(path, sizeof path, "%s/encoding-%ld-%s", folder, (long)getpid(), name);
    return path;
}

/* What is said of the book finds no room, at first or at the end; nor does a picture, which is left out. */
static void what_finds_no_room_is_told(void **state)
{
    static const char ends[] = "-about: cannot write: No space left on device";
    struct encoder *e;
    utter_error error = {0};
    (void)state;
    assert_int_equal(symlink("/dev/full", on_the_way("about")), 0);
    assert_true(encoder_open(&e, &book, folder, RATE, &error) < 0);
    assert_non_null(strstr(error.text, ends));
    assert_int_equal(support_count_files(folder), 0);
    e = open_encoder(RATE);
    error = (utter_error){0};
    unlink(on_the_way("about"));
    assert_int_equal(symlink("/dev/full", on_the_way("about")), 0);
    assert_true(encoder_close(&e, tool("out.m4b"), &book, NULL, 0, go_on, &error) < 0);
    assert_non_null(strstr(error.text, ends));
    assert_int_equal(support_count_files(folder), 0);
    unlink(tool("words"));
    book.cover = cover;
    assert_int_equal(mkdir(on_the_way("cover"), 0700), 0);
    e = open_encoder(RATE);
    assert_int_equal(encoder_close(&e, tool("out.m4b"), &book, NULL, 0, go_on, &error), UTTER_OK);
    book.cover = NULL;
    assert_int_equal(rmdir(on_the_way("cover")), 0);
    size_t bytes;
    char *have = support_read_file(tool("words"), &bytes);
    assert_null(strstr(have, "png_pipe"));
    free(have);
}

/* Whoever does not wait has all of the sound, without chapters; also while these are put around it. */
static void nobody_waits_for_chapters(void **state)
{
    bool (*const stops[])(void) = {stop, stop_meanwhile, stop_behind};
    const char *path = tool("out.m4b");
    (void)state;
    for (int i = 0; i < 3; i++) {
        unlink(path);
        unlink(tool("waits"));
        if (i == 1) {
            support_write_file(tool("waits"), "", 0);
        }
        struct encoder *e = open_encoder(RATE);
        utter_error error = {0};
        n_asked = 0;
        assert_int_equal(encoder_close(&e, path, &book, NULL, 0, stops[i], &error), UTTER_AGAIN);
        content_is(path, sound, 2 * N);
        assert_int_equal(support_count_files(folder), 0);
    }
    /* Where it cannot have its name, that is told in the place of it. */
    struct encoder *e = open_encoder(RATE);
    utter_error error = {0};
    assert_int_equal(encoder_close(&e, tool("no/out.m4b"), &book, NULL, 0, stop, &error), UTTER_E_FILE);
    assert_ptr_equal(strstr(error.text, tool("no/out.m4b: cannot write: ")), error.text);
    assert_int_equal(support_count_files(folder), 0);
}

static void hear_signal(int signal)
{
    (void)signal;
}

/* A timer of the program, a window that changes its size. */
static void signals_do_not_end_the_wait_for_sound(void **state)
{
    (void)state;
    const struct sigaction hear = {.sa_handler = hear_signal};
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    static const char ends[] = "genre=Audiobook\n";
    size_t bytes;
    unlink(tool("waits"));
    support_write_file(tool("slow"), "", 0);
    struct encoder *e = open_encoder(RATE);
    assert_int_equal(sigaction(SIGALRM, &hear, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    utter_status status = encoder_close(&e, tool("out.m4b"), &book, NULL, 0, go_on, NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    unlink(tool("slow"));
    assert_int_equal(status, UTTER_OK);
    char *have = support_read_file(tool("out.m4b"), &bytes);
    assert_memory_equal(have, sound, 2 * N);
    assert_memory_equal(have + bytes - strlen(ends), ends, strlen(ends));
    free(have);
}

static void a_dropped_m4b_leaves_nothing(void **state)
{
    (void)state;
    unlink(tool("out.m4b"));
    struct sink sink;
    const struct sink_settings settings = {
        .path = tool("out.m4b"), .format = "m4b", .rate = RATE, .folder = folder};
    assert_int_equal(sink_open(&sink, &settings, &book, NULL), UTTER_OK);
    assert_true(sink.m4b);
    assert_int_equal(sink_write(&sink, pcm, N, NULL), UTTER_OK);
    sink_fini(&sink);
    assert_int_equal(support_count_files(folder), 0);
    assert_int_not_equal(access(tool("out.m4b"), F_OK), 0);
    support_write_file(tool("hangs"), "", 0); /* nor is it waited for */
    assert_int_equal(sink_open(&sink, &settings, &book, NULL), UTTER_OK);
    sink_fini(&sink);
    unlink(tool("hangs"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sink_open(&sink, &settings, &book, NULL), UTTER_OK);
        assert_int_equal(sink_chapter(&sink, 0, NULL), UTTER_OK);
        assert_int_equal(sink_write(&sink, pcm, N, NULL), UTTER_OK);
        assert_int_equal(sink_close(&sink, i ? stop : go_on, NULL), i ? UTTER_AGAIN : UTTER_OK);
        assert_int_equal(sink.n_files, 1); /* it is a file, with chapters or without */
        assert_int_equal(sink.n_samples, N);
        assert_true(sink.marks[0].begin == 0 && sink.marks[0].end == N);
        sink_fini(&sink);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ffmpeg_is_looked_for_in_the_path),
        cmocka_unit_test(an_m4b_has_chapters_and_a_cover),
        cmocka_unit_test(ffmpeg_is_started_apart),
        cmocka_unit_test(a_cover_may_be_left_out),
        cmocka_unit_test(what_ffmpeg_cannot_is_told),
        cmocka_unit_test(what_finds_no_room_is_told),
        cmocka_unit_test(nobody_waits_for_chapters),
        cmocka_unit_test(signals_do_not_end_the_wait_for_sound),
        cmocka_unit_test(a_dropped_m4b_leaves_nothing),
    };
    return cmocka_run_group_tests_name("m4b", tests, pose, unpose);
}
