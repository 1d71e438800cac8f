/* SPDX-License-Identifier: Apache-2.0
 * Two runs of ffmpeg: one encodes AAC as samples come; at the end one puts chapters, title and cover around it, and
 * copies the sound as it is. */
#include "book/encoder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"

extern char **environ;

enum { MOST_ARGUMENTS = 48 };

struct encoder {
    pid_t pid;
    int pipe, rate;
    char sound[PATH_MAX], whole[PATH_MAX], about[PATH_MAX], cover[PATH_MAX]; /* on the way */
};

/* ---- ffmpeg ---- */

bool encoder_is_here(void)
{
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at; at += *at == ':') {
        char file[PATH_MAX];
        size_t n = strcspn(at, ":");
        if (n > 0 && n < sizeof file - 8) {
            snprintf(file, sizeof file, "%.*s/ffmpeg", (int)n, at);
            if (access(file, X_OK) == 0) {
                return true;
            }
        }
        at += n;
    }
    return false;
}

/* Ctrl-C on a terminal is ours alone: the child has a group of its own and sees the end of its input. */
static pid_t start(char *const *arguments, int input)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t usual;
    pid_t pid = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    if (input >= 0) {
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    } else {
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    sigfillset(&usual);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    if (posix_spawnp(&pid, "ffmpeg", &actions, &attributes, arguments, environ) != 0) {
        pid = -1;
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* Until it has ended; or, where there is a `stop`, until that says so: then it is ended, UTTER_AGAIN. */
static utter_status wait_for(pid_t pid, bool (*stop)(void), utter_error *error)
{
    static const struct timespec moment = {.tv_nsec = 5000000};
    int how = 0;
    bool stopped = false;
    for (pid_t got = 0; pid > 0 && (got == 0 || (got < 0 && errno == EINTR));) {
        got = waitpid(pid, &how, stop && !stopped ? WNOHANG : 0);
        if (got == 0 && stop()) {
            stopped = true;
            kill(pid, SIGKILL);
        } else if (got == 0) {
            nanosleep(&moment, NULL);
        }
    }
    return stopped ? UTTER_AGAIN
           : pid > 0 && WIFEXITED(how) && WEXITSTATUS(how) == 0
               ? UTTER_OK
               : error_set(error, UTTER_E_IO,
                     "ffmpeg cannot make the m4b (what it says stands above; "
                     "-o NAME.mp3 needs no ffmpeg)");
}

struct arguments {
    const char *at[MOST_ARGUMENTS];
    int n;
};

static void add(struct arguments *a, const char *const *words)
{
    while (*words && a->n < MOST_ARGUMENTS - 1) {
        a->at[a->n++] = *words++;
    }
}

#define ADD(a, ...) add(a, (const char *const[]){__VA_ARGS__, NULL})

/* Without -xerror ffmpeg says that all is well when a disk is full at the very end of a file. */
#define OPTIONS "ffmpeg", "-hide_banner", "-loglevel", "error", "-xerror", "-y"

/* ---- What the book is ---- */

static void put_value(FILE *out, const char *key, const char *value)
{
    fprintf(out, "%s=", key);
    for (const char *c = value; *c; c++) {
        if (strchr("=;#\\\n", *c)) {
            fputc('\\', out);
        }
        fputc(*c, out);
    }
    fputc('\n', out);
}

static bool write_about(
    const struct encoder *e, const struct book *book, const struct encoder_mark *marks, size_t n)
{
    FILE *out = fopen(e->about, "we");
    if (!out) {
        return false;
    }
    fputs(";FFMETADATA1\n", out);
    put_value(out, "title", book->title);
    put_value(out, "album", book->title);
    put_value(out, "artist", book->author);
    put_value(out, "genre", "Audiobook");
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "[CHAPTER]\nTIMEBASE=1/%d\nSTART=%llu\nEND=%llu\n", e->rate,
            (unsigned long long)marks[i].begin, (unsigned long long)marks[i].end);
        put_value(out, "title", marks[i].title);
    }
    bool good = !ferror(out);
    return fclose(out) == 0 && good;
}

/* ---- The sound ---- */

static utter_status name_files(struct encoder *e, const char *folder, utter_error *error)
{
    static const char *const names[] = {"sound.m4a", "whole.m4b", "about", "cover"};
    char *const places[] = {e->sound, e->whole, e->about, e->cover};
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "encoding-%ld-%s", (long)getpid(), names[i]);
        utter_status status = file_join(places[i], PATH_MAX, folder, name, error);
        if (status) {
            return status;
        }
    }
    return UTTER_OK;
}

static void drop_files(const struct encoder *e)
{
    unlink(e->sound);
    unlink(e->whole);
    unlink(e->about);
    unlink(e->cover);
}

utter_status encoder_open(
    struct encoder **encoder, const struct book *book, const char *folder, int rate, utter_error *error)
{
    struct encoder *e = memory_new(1, sizeof *e);
    int ends[2] = {-1, -1};
    char hz[16], sound[PATH_MAX + 8], about[PATH_MAX + 8];
    if (!e || name_files(e, folder, error) || pipe2(ends, O_CLOEXEC) != 0) {
        memory_free(e);
        return error_memory(error, "an encoder");
    }
    e->rate = rate;
    e->pipe = ends[1];
    snprintf(hz, sizeof hz, "%d", rate);
    snprintf(sound, sizeof sound, "file:%s", e->sound);
    snprintf(about, sizeof about, "file:%s", e->about);
    if (!write_about(e, book, NULL, 0)) {
        utter_status status = file_error(error, e->about, "write", errno);
        close(ends[0]);
        close(ends[1]);
        drop_files(e);
        memory_free(e);
        return status;
    }
    struct arguments a = {.n = 0};
    ADD(&a, OPTIONS, "-f", "s16le", "-ar", hz, "-ac", "1", "-i", "pipe:0", "-f", "ffmetadata", "-i",
        about, "-map", "0:a", "-map_metadata", "1", "-c:a", "aac", "-b:a",
        rate >= 24000 ? "64k" : "48k", "-threads", "1", "-fflags", "+bitexact", "-flags:a", "+bitexact",
        "-f", "mp4", sound);
    e->pid = start((char *const *)a.at, ends[0]);
    close(ends[0]);
    if (e->pid < 0) {
        close(e->pipe);
        drop_files(e);
        memory_free(e);
        return error_set(error, UTTER_E_IO, "ffmpeg cannot be started");
    }
    *encoder = e;
    return UTTER_OK;
}

utter_status encoder_write(struct encoder *e, const float *pcm, size_t n, utter_error *error)
{
    enum { BLOCK = 4096 };
    int16_t block[BLOCK];
    while (n > 0) {
        size_t part = min(n, BLOCK);
        for (size_t i = 0; i < part; i++) {
            float x = pcm[i] * 32768.0f;
            block[i] = (int16_t)lrintf(x > 32767 ? 32767 : x < -32768 ? -32768 : x);
        }
        const char *at = (const char *)block;
        for (size_t left = part * sizeof *block; left > 0;) {
            ssize_t put = write(e->pipe, at, left);
            if (put < 0 && errno != EINTR) {
                return error_set(
                    error, UTTER_E_IO, "ffmpeg has ended too early (what it says stands above)");
            }
            at += put > 0 ? put : 0;
            left -= put > 0 ? (size_t)put : 0;
        }
        pcm += part;
        n -= part;
    }
    return UTTER_OK;
}

/* ---- The book around it ---- */

static bool write_cover(const struct encoder *e, const struct book *book)
{
    struct file_out *out = NULL;
    return file_out_open(&out, e->cover, NULL) == UTTER_OK &&
           file_out_write(out, book->cover, book->cover_bytes, NULL) == UTTER_OK &&
           file_out_close(&out, NULL) == UTTER_OK;
}

/* To the disk, in steps that end soon. UTTER_AGAIN: stopped. */
static utter_status sync_file(int file, bool (*stop)(void))
{
    enum { STEP = 8 << 20 };
    struct stat about;
    bool good = fstat(file, &about) == 0;
    for (off_t at = 0; good && at < about.st_size; at += STEP) {
        (void)!sync_file_range(file, at, STEP, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        if (stop()) {
            return UTTER_AGAIN;
        }
    }
    return good && fsync(file) == 0 ? UTTER_OK : UTTER_E_IO;
}

/* What was spoken is dropped once the book has its name: so it must be on the disk by then. */
static utter_status give_name(
    const char *made, const char *path, bool (*stop)(void), utter_error *error)
{
    int file = open(made, O_RDONLY | O_CLOEXEC);
    utter_status status = file >= 0 ? sync_file(file, stop) : UTTER_E_IO;
    if (status == UTTER_OK && rename(made, path) != 0) {
        status = UTTER_E_IO;
    }
    int reason = errno;
    if (file >= 0) {
        close(file);
    }
    return status < 0 ? file_error(error, path, "write", reason) : status;
}

static utter_status wrap(struct encoder *e, const char *path, const struct book *book,
    const struct encoder_mark *marks, size_t n_marks, bool (*stop)(void), utter_error *error)
{
    char sound[PATH_MAX + 8], about[PATH_MAX + 8], cover[PATH_MAX + 8], whole[PATH_MAX + 8];
    bool has_cover = book->cover && write_cover(e, book);
    snprintf(sound, sizeof sound, "file:%s", e->sound);
    snprintf(about, sizeof about, "file:%s", e->about);
    snprintf(cover, sizeof cover, "file:%s", e->cover);
    snprintf(whole, sizeof whole, "file:%s", e->whole);
    if (!write_about(e, book, marks, n_marks)) {
        return file_error(error, e->about, "write", errno);
    }
    struct arguments a = {.n = 0};
    ADD(&a, OPTIONS, "-protocol_whitelist", "file", "-i", sound, "-f", "ffmetadata", "-i", about);
    if (has_cover) {
        ADD(&a, "-f", book->cover[0] == 0xFF ? "mjpeg" : "png_pipe", "-i", cover, "-map", "2:v",
            "-disposition:v:0", "attached_pic");
    }
    ADD(&a, "-map", "0:a", "-c", "copy", "-map_metadata", "1", "-map_chapters", "1", "-fflags",
        "+bitexact", "-movflags", "+faststart", "-f", "ipod", whole);
    utter_status status = wait_for(start((char *const *)a.at, -1), stop, error);
    if (status < 0 && has_cover) { /* a picture that ffmpeg does not take */
        struct book plain = *book;
        plain.cover = NULL;
        return wrap(e, path, &plain, marks, n_marks, stop, error);
    }
    return status ? status : give_name(e->whole, path, stop, error);
}

utter_status encoder_close(struct encoder **encoder, const char *path, const struct book *book,
    const struct encoder_mark *marks, size_t n_marks, bool (*stop)(void), utter_error *error)
{
    struct encoder *e = *encoder;
    *encoder = NULL;
    close(e->pipe);
    utter_status status = wait_for(e->pid, NULL, error); /* for less than two seconds of sound */
    if (status == UTTER_OK) {
        status = stop() ? UTTER_AGAIN : wrap(e, path, book, marks, n_marks, stop, error);
    }
    if (status == UTTER_AGAIN && rename(e->sound, path) != 0) {
        status = file_error(error, path, "write", errno);
    }
    drop_files(e);
    memory_free(e);
    return status;
}

void encoder_abort(struct encoder **encoder)
{
    struct encoder *e = *encoder;
    *encoder = NULL;
    if (e) {
        close(e->pipe);
        kill(e->pid, SIGKILL);
        wait_for(e->pid, NULL, NULL);
        drop_files(e);
        memory_free(e);
    }
}
