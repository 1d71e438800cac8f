/* SPDX-License-Identifier: Apache-2.0
 * By what a model is known: each version gives the same, since books and lines that were begun go on by it. */
#include "book/identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support.h"

/* SHA-256 over names and sizes before what is hashed of each file: all of a small one; of a large one 64 KB at each
 * 16 MB and at its end. Computed by Python's hashlib. */
static const char known[] = "a0de188807d269a9b1ad59ae793319374a71818407b4945ca1fc7b5530f52be3";

enum { LARGE = (16 << 20) + (192 << 10) + 5 };

static void identity(char hex[IDENTITY_SIZE])
{
    utter_error error = {0};
    assert_int_equal(identity_of_model(hex, "model", &error), UTTER_OK);
}

/* Writes over a byte of the large file; returns what was there. */
static char change(off_t at, char byte)
{
    char before;
    int file = open("model/weights", O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(pread(file, &before, 1, at), 1);
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    close(file);
    return before;
}

static void test_model(void **state)
{
    (void)state;
    char hex[IDENTITY_SIZE];
    identity(hex);
    assert_string_equal(hex, known);
}

/* The ends of what is hashed of a large file; what lies between them is not looked at. */
static void test_large(void **state)
{
    static const struct {
        off_t at;
        bool seen;
    } places[] = {{0, true}, {(64 << 10) - 1, true}, {64 << 10, false}, {16 << 20, true},
        {(16 << 20) + (64 << 10) - 1, true}, {(16 << 20) + (64 << 10), false},
        {LARGE - (64 << 10) - 1, false}, {LARGE - (64 << 10), true}, {LARGE - 1, true}};
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char hex[IDENTITY_SIZE];
        char before = change(places[i].at, 'x');
        identity(hex);
        assert_int_equal(strcmp(hex, known) != 0, places[i].seen);
        change(places[i].at, before);
    }
}

/* Each text counts with its length; values of Python's hashlib. */
static void test_texts(void **state)
{
    static const char *const one[] = {"a", "bc", "", NULL}, *const other[] = {"ab", "c", "", NULL},
                             *const none[] = {NULL};
    char hex[IDENTITY_SIZE];
    (void)state;
    identity_of_texts(hex, one);
    assert_string_equal(hex, "4bba87d4404fb83649a19d4ee7df22a3405c514ad8d0638797e4988e0b7cd541");
    identity_of_texts(hex, other);
    assert_string_equal(hex, "03bbec117707a23f74de53c77d0ac02d9db8dcb0cb4947584373fdcac2a5dfae");
    identity_of_texts(hex, none);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    identity_of_bytes(hex, "abcd", 3);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    identity_of_bytes(hex, "", 0);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* All of a file, of whatever size, its size in front; a model of one file goes by 64 KB of each 16 MB, where it is
 * larger than two of them. */
static void test_file(void **state)
{
    enum { TWO = 2 << 16 };
    char hex[IDENTITY_SIZE], before[IDENTITY_SIZE];
    utter_error error = {0};
    (void)state;
    write_file("file", "abc");
    assert_int_equal(identity_of_file(hex, "file", &error), UTTER_OK);
    assert_string_equal(hex, "ce91dc5eec0139adf091900d225971d6ad246a845bad791b5693a9d0d55dd391");
    const int open_before = support_count_files("/proc/self/fd");
    assert_int_equal(identity_of_file(hex, "file", &error), UTTER_OK);
    assert_int_equal(support_count_files("/proc/self/fd"), open_before);
    assert_int_equal(identity_of_model(before, "file", &error), UTTER_OK);
    assert_string_equal(before, hex);
    for (int more = 0; more < 2; more++) {
        assert_int_equal(truncate("file", TWO + more), 0);
        assert_int_equal(identity_of_model(before, "file", &error), UTTER_OK);
        assert_int_equal(identity_of_file(hex, "file", &error), UTTER_OK);
        assert_int_equal(strcmp(before, hex) == 0, !more);
        int file = open("file", O_RDWR | O_CLOEXEC);
        assert_int_equal(pwrite(file, "x", 1, TWO / 2), 1);
        assert_int_equal(identity_of_model(hex, "file", &error), UTTER_OK);
        assert_int_equal(strcmp(before, hex) == 0, more); /* between the first 64 KB and the last */
        assert_int_equal(pwrite(file, "", 1, TWO / 2), 1);
        close(file);
    }
    /* The block at 16 MB is also the last: it counts twice, by Python's hashlib. */
    assert_int_equal(truncate("file", (1 << 24) + TWO / 2), 0);
    assert_int_equal(identity_of_model(hex, "file", &error), UTTER_OK);
    assert_string_equal(hex, "ac9c3604275754199a446ffad43efbd84f1e71575c000f099414a1e163f19167");
    unlink("file");
    assert_int_equal(identity_of_file(hex, "file", &error), UTTER_E_FILE);
    assert_int_equal(strncmp(error.text, "file: ", 6), 0);
    assert_int_equal(identity_of_model(hex, "file", &error), UTTER_E_FILE);
}

/* What lies two folders deep is not looked at, nor what is neither file nor folder; what cannot be read is told. */
static void test_folders(void **state)
{
    char hex[IDENTITY_SIZE];
    utter_error error = {0};
    (void)state;
    assert_int_equal(mkdir("model/part/deep", 0700), 0);
    identity(hex);
    assert_string_not_equal(hex, known); /* its name is */
    char before[IDENTITY_SIZE];
    memcpy(before, hex, sizeof hex);
    write_file("model/part/deep/file", "x");
    identity(hex);
    assert_string_equal(hex, before);
    unlink("model/part/deep/file");
    rmdir("model/part/deep");
    write_file("model/empty", "");
    identity(hex);
    assert_string_not_equal(hex, known);
    support_fail_at(SUPPORT_OPEN, 1);
    assert_true(identity_of_model(hex, "model", &error) < 0);
    support_fail_off();
    assert_non_null(strstr(error.text, "model/config.json"));
    unlink("model/empty");
    identity(hex);
    assert_string_equal(hex, known);
}

static int make_model(void **state)
{
    static char folder[] = "/tmp/identity-XXXXXX";
    assert_non_null(*state = mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("model", 0700) || mkdir("model/part", 0700), 0);
    write_file("model/config.json", "{}");
    write_file("model/part/config.json", "{\"a\":1}");
    write_file("model/.hidden", "not looked at");
    write_file("model/weights", "w");
    return truncate("model/weights", LARGE);
}

static int remove_model(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", (const char *)*state);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_folders),
    };
    return cmocka_run_group_tests_name("identity", tests, make_model, remove_model);
}
