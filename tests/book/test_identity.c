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

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model), cmocka_unit_test(test_large)};
    return cmocka_run_group_tests_name("identity", tests, make_model, remove_model);
}
