/* SPDX-License-Identifier: Apache-2.0
 * Gives every file of the folders on the command line to a fuzz target, as a normal test: a fault ends the program.
 * Without folders, tests/fuzz/corpus/NAME for the program replay_NAME. And of what comes of each file when it is cut
 * anywhere, or one byte of it is any other, every 499th; with --every N every N-th, 1: all of them; with --bits
 * everything that comes of cutting it or of turning one bit. With --share K/N a K-th (0 to N-1) of what these say, so
 * that N programs do it all. An input that takes 20 s of a processor, and a beginning of a file that its target takes
 * for a whole one (tests/fuzz/took.h), are faults. */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/fuzz/took.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

bool replay_took;

static unsigned long every = 499, skipped, n_changes, n_changed,
                     n_taken; /* changes that there are; that were tried; that were taken */
static bool bits_only;

static void on_too_long(int signal)
{
    static const char reason[] = "an input takes 20 s of a processor\n";
    (void)signal;
    (void)!write(STDERR_FILENO, reason, sizeof reason - 1);
    abort();
}

/* Of the program's own time: a machine may be busy with other things. */
static void allow_seconds(time_t seconds)
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

static bool is_taken(const uint8_t *data, size_t bytes)
{
    replay_took = false;
    allow_seconds(20);
    LLVMFuzzerTestOneInput(data, bytes);
    allow_seconds(0);
    return replay_took;
}

/* `bytes` bytes of `data`, the one `at` in place of what stands there. A block of exactly the size, so that a sanitizer
 * sees every read beyond it. */
static bool try_change(const uint8_t *data, size_t bytes, size_t at, uint8_t byte)
{
    if (n_changes++ % every != skipped) {
        return false;
    }
    uint8_t *changed = malloc(bytes ? bytes : 1);
    if (!changed) {
        perror("replay");
        exit(1);
    }
    memcpy(changed, data, bytes);
    if (at < bytes) {
        changed[at] = byte;
    }
    bool taken = is_taken(changed, bytes);
    free(changed);
    n_changed++;
    n_taken += taken;
    return taken;
}

/* Blanks behind a text are not missed. */
static bool is_blank(const uint8_t *data, size_t bytes)
{
    while (bytes && (data[bytes - 1] == ' ' || data[bytes - 1] == '\n')) {
        bytes--;
    }
    return bytes == 0;
}

static void try_changes(const uint8_t *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at++) {
        if (try_change(data, at, at, 0) && !is_blank(data + at, bytes - at)) {
            fprintf(stderr, "the first %zu bytes are taken for the whole\n", at);
            abort();
        }
        for (int other = 1; other < 256; other++) {
            if (!bits_only || (other & (other - 1)) == 0) {
                try_change(data, bytes, at, (uint8_t)(data[at] ^ other));
            }
        }
    }
}

static void replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    long bytes = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        bytes = ftell(f);
        rewind(f);
    }
    uint8_t *data = bytes >= 0 ? malloc(bytes ? (size_t)bytes : 1) : NULL;
    if (!data || fread(data, 1, (size_t)bytes, f) != (size_t)bytes) {
        perror(path);
        exit(1);
    }
    fclose(f);
    printf("%s\n", path);
    fflush(stdout); /* so that the last name is the one that failed */
    is_taken(data, (size_t)bytes);
    try_changes(data, (size_t)bytes);
    free(data);
}

static int replay_folder(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) {
        perror(folder);
        exit(1);
    }
    int n = 0;
    for (struct dirent *entry; (entry = readdir(d));) {
        if (entry->d_name[0] != '.') {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            replay_file(path);
            n++;
        }
    }
    closedir(d);
    return n;
}

/* The first argument that is no option. */
static int read_options(int argc, char **argv)
{
    int at = 1;
    unsigned long shares = 1, share = 0;
    for (; at < argc && argv[at][0] == '-'; at++) {
        const char *value = at + 1 < argc ? argv[at + 1] : "";
        if (strcmp(argv[at], "--bits") == 0) {
            every = 1;
            bits_only = true;
        } else if (strcmp(argv[at], "--every") == 0 && (every = strtoul(value, NULL, 10)) > 0) {
            at++;
        } else if (strcmp(argv[at], "--share") == 0 && sscanf(value, "%lu/%lu", &share, &shares) == 2 &&
                   share < shares) {
            at++;
        } else {
            fprintf(stderr, "usage: replay_NAME [--bits | --every N] [--share K/N] [FOLDER ...]\n");
            exit(2);
        }
    }
    skipped = every * share;
    every *= shares;
    return at;
}

int main(int argc, char **argv)
{
    int n = 0;
    signal(SIGPROF, on_too_long);
    const int first = read_options(argc, argv);
    for (int i = first; i < argc; i++) {
        n += replay_folder(argv[i]);
    }
    const char *name = strstr(argv[0], "replay_");
    if (argc == first && name) {
        char folder[1024];
        snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name + strlen("replay_"));
        n = replay_folder(folder);
    }
    printf("%lu of %lu changes were tried, %lu taken\n", n_changed, n_changes, n_taken);
    printf("[  PASSED  ] %d test(s).\n", n);
    return n ? 0 : 1;
}
