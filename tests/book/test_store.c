/* SPDX-License-Identifier: Apache-2.0
 * What a killed run leaves to the next one: lines of the manifest to the byte, what is found again, what is dropped,
 * and what is left alone. */
#include "book/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support.h"

static const struct store_about about = {"a book", "a model", "a voice", "rate \"1\""};

/* A key of 64 digits that ends with this one. */
static const char *key_of(char digit)
{
    static char key[IDENTITY_SIZE];
    memset(key, '0', IDENTITY_SIZE - 1);
    key[IDENTITY_SIZE - 2] = digit;
    return key;
}

static char folder[4096];

static const char *inside(const char *name)
{
    static char paths[4][4200];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void open_store(struct store *store, bool fresh)
{
    utter_error error = {0};
    store_open(store, folder, &about, fresh, &error);
    assert_string_equal(error.text, "");
}

static void write_sound(const struct store *store, char digit, const char *content)
{
    char path[PATH_MAX];
    store_path(store, path, key_of(digit));
    support_write_file(path, content, strlen(content));
}

static void add(struct store *store, char digit, const char *content)
{
    struct store_entry e = {
        .seed = 42, .n_pieces = 3, .n_retries = 2, .n_broken = 1, .seconds = 1.0 / 3};
    snprintf(e.key, sizeof e.key, "%s", key_of(digit));
    write_sound(store, digit, content);
    assert_int_equal(store_add(store, &e, NULL), UTTER_OK);
    assert_int_equal(strlen(e.sound), IDENTITY_SIZE - 1);
}

static void manifest_is(const char *text)
{
    size_t bytes;
    char *have = support_read_file(inside("manifest.jsonl"), &bytes);
    assert_non_null(have);
    assert_string_equal(have, text);
    free(have);
}

static void append(const char *text, size_t n)
{
    FILE *file = fopen(inside("manifest.jsonl"), "a");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    fclose(file);
}

static int make_folder(void **state)
{
    static int number;
    char name[32];
    (void)state;
    snprintf(name, sizeof name, "store-%d", number++);
    snprintf(folder, sizeof folder, "%s", support_path(name));
    return 0;
}

#define ZEROS "000000000000000000000000000000000000000000000000000000000000000"
/* SHA-256 of the size, 8 bytes, and the content "abc". */
#define HASH_OF_ABC "ce91dc5eec0139adf091900d225971d6ad246a845bad791b5693a9d0d55dd391"

static void the_manifest_says_what_was_made(void **state)
{
    struct store store;
    char line[1024];
    (void)state;
    open_store(&store, false);
    snprintf(line, sizeof line,
        "{\"utter\":\"%s\",\"book\":\"a book\",\"model\":\"a model\",\"voice\":\"a "
        "voice\",\"settings\":\"rate "
        "\\\"1\\\"\"}\n",
        utter_version_text());
    manifest_is(line);
    add(&store, 'a', "abc");
    store_close(&store);
    assert_int_equal(store.manifest, -1);
    strcat(line,
        "{\"key\":\"" ZEROS "a\",\"sha256\":\"" HASH_OF_ABC
        "\",\"seed\":42,\"pieces\":3,\"retries\":2,\"not_whole\":1,\"seconds\":0.333333333}\n");
    manifest_is(line);
    open_store(&store, false);
    store_close(&store);
    const size_t n = strlen(line), first = (size_t)(strchr(line, '\n') + 1 - line);
    memcpy(line + n, line, first);
    line[n + first] = 0;
    manifest_is(line);
}

static void what_was_made_is_found_again(void **state)
{
    struct store store;
    (void)state;
    open_store(&store, false);
    for (char c = '0'; c < '0' + 70; c++) { /* more than there was room for at first */
        add(&store, c, c == 'b' ? "abc" : "other");
    }
    assert_null(store_find(&store, key_of('b'))); /* of this run nothing is asked */
    store_close(&store);
    open_store(&store, false);
    assert_int_equal(store.n, 70);
    const struct store_entry *e = store_find(&store, key_of('b'));
    assert_non_null(e);
    assert_string_equal(e->key, ZEROS "b");
    assert_string_equal(e->sound, HASH_OF_ABC);
    assert_true(e->seed == 42 && e->n_pieces == 3 && e->n_retries == 2 && e->n_broken == 1);
    assert_true(e->seconds == 0.333333333);
    assert_non_null(store_find(&store, key_of('0')));
    assert_non_null(store_find(&store, key_of('0' + 69)));
    assert_null(store_find(&store, key_of('0' + 70)));
    /* Another content, and none. */
    write_sound(&store, 'b', "abd");
    assert_null(store_find(&store, key_of('b')));
    char path[PATH_MAX];
    store_path(&store, path, key_of('c'));
    assert_string_equal(path, inside(ZEROS "c.flac"));
    unlink(path);
    assert_null(store_find(&store, key_of('c')));
    store_close(&store);
}

/* The last line of a key is what counts. */
static void the_last_line_of_a_key_counts(void **state)
{
    struct store store;
    (void)state;
    open_store(&store, false);
    add(&store, 'a', "abc");
    add(&store, 'a', "other");
    store_close(&store);
    open_store(&store, false);
    assert_non_null(store_find(&store, key_of('a')));
    write_sound(&store, 'a', "abc");
    assert_null(store_find(&store, key_of('a')));
    store_close(&store);
}

/* What is torn, or of another kind, is passed over, and the next line begins anew. */
static void lines_that_are_none_are_passed_over(void **state)
{
    static const char odd[] =
        "no json\n[1]\n{}\n{\"key\":7,\"sha256\":\"x\"}\n{\"key\":\"k1\"}\n"
        "{\"key\":\"k2\",\"sha256\":\"x\",\"pieces\":-1}\n\n"
        "{\"key\":\"k3\",\"sha256\":\"x\",\"seconds\":-1}\n{\"key\":\"k4\",\"sha256\":\"x\"}\n"
        "{\"key\":\"k5\",\"sha256\":\"x\",\"retries\":-1}\n"
        "{\"key\":\"k6\",\"sha256\":\"x\",\"not_whole\":-1}\n"
        "{\"key\":\"k7\",\"sha256\":\"x\",\"seed\":-1,\"pieces\":0,\"retries\":0,\"not_whole\":0,"
        "\"seconds\":0}\n";
    struct store store;
    (void)state;
    open_store(&store, false);
    add(&store, 'a', "abc");
    store_close(&store);
    append(odd, sizeof odd - 1);
    append("{\"key\":\"torn\",\"sha256\":\"x\"}", 27); /* whole, but for its end */
    open_store(&store, false);
    assert_int_equal(store.n, 3);
    assert_non_null(store_find(&store, key_of('a')));
    for (size_t i = 1; i <= 2; i++) { /* of which nothing is said, and nothing but noughts */
        const struct store_entry *e = &store.entries[i];
        assert_string_equal(e->key, i == 1 ? "k4" : "k7");
        assert_int_equal(e->seed, i == 1 ? 0 : UINT64_MAX);
        assert_true(e->n_pieces == 0 && e->n_retries == 0 && e->n_broken == 0 && !(e->seconds > 0));
    }
    add(&store, 'b', "abc");
    store_close(&store);
    open_store(&store, false);
    assert_int_equal(store.n, 5);
    assert_non_null(store_find(&store, key_of('b')));
    store_close(&store);
}

/* Whatever it begins with. */
static void a_manifest_may_begin_with_a_section(void **state)
{
    static const char line[] = "{\"key\":\"k\",\"sha256\":\"x\"}\n";
    struct store store;
    (void)state;
    open_store(&store, false);
    store_close(&store);
    support_write_file(inside("manifest.jsonl"), line, sizeof line - 1);
    open_store(&store, false);
    assert_int_equal(store.n, 1);
    store_close(&store);
}

/* Its end cannot be written: then nothing is behind it. */
static void a_torn_line_that_stays_is_told(void **state)
{
    struct store store;
    utter_error error = {0};
    (void)state;
    open_store(&store, false);
    store_close(&store);
    append("torn", 4);
    support_fail_write_at(1);
    assert_int_equal(store_open(&store, folder, &about, false, &error), UTTER_E_IO);
    support_fail_off();
    assert_ptr_equal(strstr(error.text, inside("manifest.jsonl: cannot write: ")), error.text);
    store_close(&store);
    size_t bytes;
    char *have = support_read_file(inside("manifest.jsonl"), &bytes);
    assert_string_equal(have + bytes - 5, "\ntorn");
    free(have);
}

/* Of a file that was being written when a run was killed. */
static void halves_of_files_go_after_a_minute(void **state)
{
    static const int ages_s[] = {61, 61, 0};
    struct store store;
    (void)state;
    open_store(&store, false);
    store_close(&store);
    for (int i = 0; i < 3; i++) {
        const char *path = inside(".utter-0123456789abcdef");
        const struct timespec then = {.tv_sec = time(NULL) - ages_s[i]};
        support_write_file(path, "", 0);
        assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){then, then}, 0), 0);
        open_store(&store, i == 1);
        assert_int_equal(access(path, F_OK) == 0, i == 2);
        store_close(&store);
    }
}

static void one_run_works_in_a_folder(void **state)
{
    struct store store, other;
    utter_error error = {0};
    char text[5000];
    (void)state;
    open_store(&store, false);
    add(&store, 'a', "abc");
    assert_int_equal(store_open(&other, folder, &about, true, &error), UTTER_E_IO);
    snprintf(text, sizeof text, "%s: another utter read works there (wait for it, or end it)", folder);
    assert_string_equal(error.text, text);
    store_close(&other);
    store_close(&store);
    open_store(&store, false);
    assert_int_equal(store.n, 1);
    store_close(&store);
}

static const char *const strange[] = {"notes.txt", "x.flac", ZEROS ".flac", ZEROS "00.flac",
    ZEROS "A.flac", ZEROS "a", "encoded-1", "manifest.json"};
enum { N_STRANGE = sizeof strange / sizeof *strange };

static void put_strange(void)
{
    for (int i = 0; i < N_STRANGE; i++) {
        support_write_file(inside(strange[i]), "x", 1);
    }
    support_write_file(inside("encoding-7-sound.m4a"), "x", 1);
}

/* Anew: what such a run has put there goes, and nothing else. */
static void a_fresh_run_keeps_what_is_not_its_own(void **state)
{
    struct store store;
    (void)state;
    open_store(&store, false);
    add(&store, 'a', "abc");
    store_close(&store);
    put_strange();
    open_store(&store, true);
    assert_int_equal(store.n, 0);
    assert_null(store_find(&store, key_of('a')));
    assert_int_equal(support_count_files(folder), N_STRANGE + 1);
    size_t bytes;
    char *have = support_read_file(inside("manifest.jsonl"), &bytes);
    assert_ptr_equal(strchr(have, '\n'), have + bytes - 1); /* one line, of this run */
    free(have);
    store_close(&store);
    for (int i = 0; i < N_STRANGE; i++) {
        assert_int_equal(access(inside(strange[i]), F_OK), 0);
    }
}

static void a_folder_is_removed_with_what_is_its_own(void **state)
{
    struct store store;
    (void)state;
    open_store(&store, false);
    add(&store, 'a', "abc");
    put_strange();
    store_remove(&store);
    assert_int_equal(support_count_files(folder), N_STRANGE);
    for (int i = 0; i < N_STRANGE; i++) {
        assert_int_equal(unlink(inside(strange[i])), 0);
    }
    store_remove(&store);
    assert_int_not_equal(access(folder, F_OK), 0);
    store_close(&store);
}

static int mode_of(const char *path)
{
    struct stat is;
    assert_int_equal(stat(path, &is), 0);
    return (int)(is.st_mode & ~(mode_t)S_IFMT);
}

/* Others may do with it what the user lets them; who is started beside it does not hold its lock. */
static void a_folder_is_the_users(void **state)
{
    struct store store;
    (void)state;
    const mode_t before = umask(0);
    open_store(&store, false);
    umask(before);
    assert_int_equal(mode_of(folder), 0777);
    assert_int_equal(mode_of(inside("manifest.jsonl")), 0666);
    assert_int_equal(fcntl(store.manifest, F_GETFD), FD_CLOEXEC);
    store_close(&store);
}

/* A line is whole, or not there. */
static void a_line_without_memory_is_not_there(void **state)
{
    static const char line[] =
        "{\"key\":\"" ZEROS "a\",\"sha256\":\"" HASH_OF_ABC
        "\",\"seed\":42,\"pieces\":3,\"retries\":2,\"not_whole\":1,\"seconds\":0.5}\n";
    struct store store;
    (void)state;
    open_store(&store, false);
    write_sound(&store, 'a', "abc");
    bool failed = true;
    for (long n = 1; failed; n++) {
        struct store_entry e = {
            .seed = 42, .n_pieces = 3, .n_retries = 2, .n_broken = 1, .seconds = 0.5};
        size_t before, behind;
        snprintf(e.key, sizeof e.key, "%s", key_of('a'));
        free(support_read_file(inside("manifest.jsonl"), &before));
        support_fail_malloc_at(n);
        utter_status status = store_add(&store, &e, NULL);
        failed = support_failed();
        support_fail_off();
        assert_int_equal(status != UTTER_OK, failed);
        char *have = support_read_file(inside("manifest.jsonl"), &behind);
        assert_string_equal(have + before, failed ? "" : line);
        free(have);
    }
    store_close(&store);
}

static void what_cannot_be_kept_is_told(void **state)
{
    struct store store;
    utter_error error = {0};
    (void)state;
    char path[4200];
    snprintf(path, sizeof path, "%s/no/where", folder);
    assert_true(store_open(&store, path, &about, false, &error) < 0);
    assert_ptr_equal(strstr(error.text, path), error.text);
    store_close(&store);
    support_write_file(folder, "x", 1); /* no folder */
    assert_true(store_open(&store, folder, &about, false, &error) < 0);
    assert_ptr_equal(strstr(error.text, inside("manifest.jsonl: cannot write")), error.text);
    store_close(&store);
    unlink(folder);
    SUPPORT_EACH_FAILURE(SUPPORT_WRITE, n)
    {
        utter_status status = store_open(&store, folder, &about, false, NULL);
        assert_int_equal(status < 0, support_failed());
        store_close(&store);
    }
    open_store(&store, false);
    struct store_entry e = {.key = "none"};
    assert_true(store_add(&store, &e, &error) < 0); /* there is no file */
    assert_non_null(strstr(error.text, "none.flac"));
    write_sound(&store, 'a', "abc");
    snprintf(e.key, sizeof e.key, "%s", key_of('a'));
    support_fail_at(SUPPORT_WRITE, 1);
    assert_true(store_add(&store, &e, &error) < 0);
    support_fail_off();
    assert_ptr_equal(strstr(error.text, folder), error.text);
    store_close(&store);
    SUPPORT_EACH_FAILURE(SUPPORT_OPEN, n)
    {
        utter_status status = store_open(&store, folder, &about, false, NULL);
        assert_int_equal(status < 0, support_failed());
        store_close(&store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_manifest_says_what_was_made, make_folder),
        cmocka_unit_test_setup(what_was_made_is_found_again, make_folder),
        cmocka_unit_test_setup(the_last_line_of_a_key_counts, make_folder),
        cmocka_unit_test_setup(lines_that_are_none_are_passed_over, make_folder),
        cmocka_unit_test_setup(a_manifest_may_begin_with_a_section, make_folder),
        cmocka_unit_test_setup(a_torn_line_that_stays_is_told, make_folder),
        cmocka_unit_test_setup(halves_of_files_go_after_a_minute, make_folder),
        cmocka_unit_test_setup(one_run_works_in_a_folder, make_folder),
        cmocka_unit_test_setup(a_fresh_run_keeps_what_is_not_its_own, make_folder),
        cmocka_unit_test_setup(a_folder_is_removed_with_what_is_its_own, make_folder),
        cmocka_unit_test_setup(a_folder_is_the_users, make_folder),
        cmocka_unit_test_setup(a_line_without_memory_is_not_there, make_folder),
        cmocka_unit_test_setup(what_cannot_be_kept_is_told, make_folder),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
