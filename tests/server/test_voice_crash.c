/* SPDX-License-Identifier: Apache-2.0
 * The power goes at every file call of saving and deleting a voice with what was said of it, and the file system has
 * kept any part of what it was not told to keep: after each such end the voice is that of before or the new one, whole,
 * with its own words.
 *
 * The calls are noted by wrappers (--wrap). What may be on the disk after the first n of them: of each file what was
 * written up to its last fsync, and then all, half or none of what came behind; of the folder the entries up to its
 * last fsync, and then any of the later ones. */
#include "tests/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "server/speech/voices_parts.h"
#include "voice/voice.h"

enum {
    STEPS = SUPPORT_SANITIZED ? 20 : 240,
    MAX_EVENTS = 16 * STEPS,
    MAX_FILES = 2 * STEPS,
    MAX_NAMES = 16,
    MAX_BYTES = 1 << 14,
    NAME = 64
};

enum kind { CREATED, WRITTEN, SYNCED, NAMED, RENAMED, REMOVED, FOLDER_SYNCED };
struct event {
    enum kind kind;
    int file;                  /* which, in order of creation */
    const char *data;          /* WRITTEN, with the next two */
    size_t bytes, at;          /* at: where in the file */
    char from[NAME], to[NAME]; /* names in the folder */
};

static struct event events[MAX_EVENTS];
static int n_events, n_files, file_of_fd[1024]; /* 1 + file; 0: none of ours */
static char written[1 << 20];                   /* what WRITTEN refers to */
static size_t n_written;
static char store[PATH_MAX]; /* the folder of voices while calls are noted; "" while they are not */

/* The name in the store, or NULL. */
static const char *name_of(const char *path)
{
    size_t n = strlen(store);
    return n && strncmp(path, store, n) == 0 && path[n] == '/' && path[n + 1] ? path + n + 1 : NULL;
}

static struct event *note(enum kind kind)
{
    assert_true(n_events < MAX_EVENTS);
    struct event *e = &events[n_events++];
    *e = (struct event){.kind = kind};
    return e;
}

int __real_open(const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __real_pwrite(int fd, const void *data, size_t n, off_t at);
int __real_fsync(int fd);
int __real_linkat(int a, const char *from, int b, const char *to, int flags);
int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_write(int fd, const void *data, size_t n);
ssize_t __wrap_pwrite(int fd, const void *data, size_t n, off_t at);
int __wrap_fsync(int fd);
int __wrap_linkat(int a, const char *from, int b, const char *to, int flags);
int __wrap_rename(const char *from, const char *to);
int __wrap_unlink(const char *path);

static char root[] = P_tmpdir "/utter-crash-XXXXXX";

static void path_to(char *out, const char *name)
{
    snprintf(out, PATH_MAX, "%s/%s", root, name);
}

static void write_whole(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static bool is_store(const char *path)
{
    size_t n = strlen(store);
    return n && strncmp(path, store, n) == 0 && strspn(path + n, "/") == strlen(path + n);
}

int __wrap_open(const char *path, int flags, ...)
{
    int fd = __real_open(path, flags, 0666);
    if (fd < 0) {
        return fd;
    }
    assert_true(fd < 1024);
    bool makes = (flags & O_TMPFILE) == O_TMPFILE ? is_store(path) : (flags & O_CREAT) && name_of(path);
    file_of_fd[fd] = is_store(path) && !makes ? -1 : 0;
    if (makes) {
        struct event *e = note(CREATED);
        assert_true(n_files < MAX_FILES);
        e->file = n_files++;
        file_of_fd[fd] = 1 + e->file;
        if (name_of(path)) {
            struct event *named = note(NAMED);
            named->file = e->file;
            snprintf(named->to, NAME, "%s", name_of(path));
        }
    }
    return fd;
}

static void note_write(int fd, const void *data, size_t n, size_t at)
{
    if (!store[0] || file_of_fd[fd] <= 0) {
        return;
    }
    struct event *e = note(WRITTEN);
    e->file = file_of_fd[fd] - 1;
    e->at = at;
    e->bytes = n;
    assert_true(n_written + n <= sizeof written);
    e->data = memcpy(written + n_written, data, n);
    n_written += n;
}

ssize_t __wrap_write(int fd, const void *data, size_t n)
{
    off_t at = lseek(fd, 0, SEEK_CUR);
    note_write(fd, data, n, at > 0 ? (size_t)at : 0);
    return __real_write(fd, data, n);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t n, off_t at)
{
    note_write(fd, data, n, (size_t)at);
    return __real_pwrite(fd, data, n, at);
}

int __wrap_fsync(int fd)
{
    if (store[0] && file_of_fd[fd] != 0) {
        note(file_of_fd[fd] < 0 ? FOLDER_SYNCED : SYNCED)->file = file_of_fd[fd] - 1;
    }
    return 0;
}

int __wrap_linkat(int a, const char *from, int b, const char *to, int flags)
{
    int fd;
    if (name_of(to) && sscanf(from, "/proc/self/fd/%d", &fd) == 1) {
        struct event *e = note(NAMED);
        e->file = file_of_fd[fd] - 1;
        snprintf(e->to, NAME, "%s", name_of(to));
    }
    return __real_linkat(a, from, b, to, flags);
}

int __wrap_rename(const char *from, const char *to)
{
    if (name_of(to)) {
        struct event *e = note(RENAMED);
        snprintf(e->from, NAME, "%s", name_of(from));
        snprintf(e->to, NAME, "%s", name_of(to));
    }
    return __real_rename(from, to);
}

int __wrap_unlink(const char *path)
{
    if (name_of(path)) {
        snprintf(note(REMOVED)->from, NAME, "%s", name_of(path));
    }
    return __real_unlink(path);
}

/* What a disk holds: names, and which file each is of. */
struct disk {
    int n;
    struct {
        char name[NAME];
        int file;
    } entries[MAX_NAMES];
};

static int find(const struct disk *d, const char *name)
{
    for (int i = 0; i < d->n; i++) {
        if (strcmp(d->entries[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static void take_away(struct disk *d, const char *name)
{
    int i = find(d, name);
    if (i >= 0) {
        d->entries[i] = d->entries[--d->n];
    }
}

static void put(struct disk *d, const char *name, int file)
{
    int i = find(d, name);
    i = i >= 0 ? i : d->n++;
    assert_true(i < MAX_NAMES);
    snprintf(d->entries[i].name, NAME, "%s", name);
    d->entries[i].file = file;
}

static bool is_of_folder(const struct event *e)
{
    return e->kind == NAMED || e->kind == RENAMED || e->kind == REMOVED;
}

/* `all`: the folder as processes see it, which tells what a rename moves. */
static void apply(struct disk *d, struct disk *all, const struct event *e, bool kept)
{
    int i = e->kind == RENAMED ? find(all, e->from) : -1;
    int file = e->kind == RENAMED ? (i < 0 ? -1 : all->entries[i].file) : e->file;
    struct disk *both[] = {all, kept ? d : NULL};
    for (int k = 0; k < 2; k++) {
        if (both[k] && e->kind != NAMED) {
            take_away(both[k], e->from);
        }
        if (both[k] && e->kind != REMOVED && file >= 0) {
            put(both[k], e->to, file);
        }
    }
}

/* What a file holds after n events, when of the writes behind its last fsync the first `part` halves were kept.
 * Returns its size. */
static size_t content_of(char data[MAX_BYTES], int file, int n, int part)
{
    size_t bytes = 0;
    int synced = 0;
    for (int i = 0; i < n; i++) {
        synced = events[i].kind == SYNCED && events[i].file == file ? i : synced;
    }
    for (int i = 0; i < n; i++) {
        const struct event *e = &events[i];
        if (e->kind == WRITTEN && e->file == file) {
            size_t kept = i < synced ? e->bytes : e->bytes * (size_t)part / 2;
            assert_true(e->at + e->bytes <= MAX_BYTES);
            memcpy(data + e->at, e->data, kept);
            bytes = kept && e->at + kept > bytes ? e->at + kept : bytes;
        }
    }
    return bytes;
}

struct told_voice {
    float value;      /* of the x-vector; 0: there is no voice */
    const char *said; /* NULL: nothing */
};

static bool is_this(const char *folder, const struct told_voice *expected)
{
    char path[PATH_MAX];
    utter_error error;
    snprintf(path, sizeof path, "%s/ann%s", folder, VOICE_ENDING);
    if (!file_exists(path)) {
        return expected->value == 0;
    }
    utter_voice *voice = NULL;
    json_t *told = told_read(path);
    const char *said = json_string_value(json_object_get(told, "consent"));
    bool is = utter_voice_load(&voice, path, &error) == UTTER_OK &&
              voice->vector[0] == expected->value &&
              (said ? expected->said && strcmp(said, expected->said) == 0 : !expected->said);
    utter_voice_free(&voice);
    json_decref(told);
    return is;
}

static void empty_folder(const char *folder)
{
    char path[PATH_MAX + 257];
    DIR *all = opendir(folder);
    for (const struct dirent *e; all && (e = readdir(all));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        remove(path);
    }
    closedir(all);
}

/* One thing that may be on the disk; `part` of 0 to 2: how much of what was not synced. */
static void write_disk(const struct disk *d, int n, int part, const char *folder)
{
    empty_folder(folder);
    for (int i = 0; i < d->n; i++) {
        char path[PATH_MAX + NAME + 1], data[MAX_BYTES] = {0};
        size_t bytes = content_of(data, d->entries[i].file, n, part);
        snprintf(path, sizeof path, "%s/%s", folder, d->entries[i].name);
        write_whole(path, data, bytes);
    }
}

/* Every state after the first n events; returns how many. `ended`: the work was said to be done. */
static long try_states(int n, const struct told_voice *before, const struct told_voice *after,
    bool ended, const char *folder)
{
    int pending[32], n_pending = 0;
    long states = 0;
    struct disk sure = {0}, all = {0};
    int synced = 0;
    for (int i = 0; i < n; i++) {
        synced = events[i].kind == FOLDER_SYNCED ? i : synced;
    }
    for (int i = 0; i < n; i++) {
        if (is_of_folder(&events[i]) && i > synced) {
            pending[n_pending++] = i;
        }
    }
    assert_true(n_pending < 10);
    for (unsigned kept = 0; kept < 1u << n_pending; kept++) {
        sure = all = (struct disk){0};
        for (int i = 0, k = 0; i < n; i++) {
            if (is_of_folder(&events[i])) {
                bool there = k < n_pending && pending[k] == i ? kept >> k++ & 1 : true;
                apply(&sure, &all, &events[i], there);
            }
        }
        for (int part = 0; part < 3; part++) {
            write_disk(&sure, n, part, folder);
            bool is_old = is_this(folder, before), is_new = is_this(folder, after);
            if (!(is_new || (is_old && !ended))) {
                fail_msg("after call %d of %d, kept %x, part %d", n, n_events, kept, part);
            }
            states++;
        }
    }
    return states;
}

static void save(const struct told_voice *v, const char *path, const char *told, const char *scratch)
{
    enum { WIDTH = 8 };
    float vector[WIDTH] = {v->value, 1, 2, 3, 4, 5, 6, 7};
    utter_voice *voice;
    utter_error error;
    char text[256];
    snprintf(text, sizeof text, v->said ? "{\"consent\":\"%s\"}" : "{}", v->said);
    write_whole(told, text, strlen(text));
    const char *words = v->said ? told : NULL;
    assert_int_equal(voice_new_clone(&voice, "Ann", vector, WIDTH, NULL, 0, 0, NULL, &error), UTTER_OK);
    if (told_save(voice, path, words, scratch, &error) != UTTER_OK) {
        fail_msg("%s", error.text);
    }
    utter_voice_free(&voice);
}

static void remove_voice(char *path)
{
    struct voice_entry entry = {.file = path};
    assert_true(voices_unlink(&entry));
}

static void the_power_goes_at_every_call(void **state)
{
    static const float values[] = {0, 0.25F, 0.5F, 0.75F};
    static const char *const words[] = {NULL, "yes", "for this book"};
    uint32_t draw = 20261124;
    (void)state;
    char folder[PATH_MAX], path[PATH_MAX + 16], scratch[PATH_MAX], told[PATH_MAX], disk[PATH_MAX];
    struct told_voice before = {0};
    long states = 0;
    int done = 0;
    assert_non_null(mkdtemp(root));
    path_to(folder, "voices");
    path_to(disk, "disk");
    path_to(scratch, "1.voice");
    path_to(told, "1.json");
    snprintf(path, sizeof path, "%s/ann%s", folder, VOICE_ENDING);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(disk, 0700), 0);
    for (int i = 0; i < STEPS; i++) {
        struct told_voice after = {0};
        draw = draw * 1664525 + 1013904223;
        if (i > 0 && i + 1 < STEPS) { /* the first and the last take a voice away */
            after = (struct told_voice){values[draw >> 30], words[(draw >> 20) % 3]};
        }
        strcpy(store, folder);
        if (after.value == 0) {
            remove_voice(path);
        } else {
            save(&after, path, told, scratch);
        }
        store[0] = 0;
        for (int n = done; n <= n_events; n++) {
            states += try_states(n, &before, &after, n == n_events, disk);
        }
        done = n_events;
        before = after;
    }
    empty_folder(folder);
    empty_folder(disk);
    empty_folder(root);
    assert_int_equal(rmdir(root), 0);
    print_message("%ld states of the disk\n", states);
    assert_true(states > 40 * STEPS);
}

/* NAME.json, of an earlier server, goes with the voice that it was for. */
static void old_words_do_not_pass_on(void **state)
{
    static char folder[] = P_tmpdir "/utter-words-XXXXXX";
    (void)state;
    char path[PATH_MAX], old[PATH_MAX], scratch[PATH_MAX], told[PATH_MAX];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/ann" VOICE_ENDING, folder);
    snprintf(old, sizeof old, "%s/ann.json", folder);
    snprintf(scratch, sizeof scratch, "%s/1", folder);
    snprintf(told, sizeof told, "%s/2", folder);
    save(&(struct told_voice){0.5F, NULL}, path, told, scratch);
    write_whole(old, "{\"consent\":\"yes\"}", 17);
    assert_true(is_this(folder, &(struct told_voice){0.5F, "yes"}));
    save(&(struct told_voice){0.25F, NULL}, path, told, scratch);
    assert_true(is_this(folder, &(struct told_voice){0.25F, NULL}));
    assert_false(file_exists(old));
    /* A voice that cannot be read at the moment keeps its words. */
    write_whole(told, "{\"consent\":\"yes\"}", 17);
    save(&(struct told_voice){0.75F, "yes"}, path, told, scratch);
    assert_int_equal(rename(path, old), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    told_sweep(path);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rename(old, path), 0);
    assert_true(is_this(folder, &(struct told_voice){0.75F, "yes"}));
    empty_folder(folder);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_power_goes_at_every_call), cmocka_unit_test(old_words_do_not_pass_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
