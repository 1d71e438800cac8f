/* SPDX-License-Identifier: Apache-2.0
 * The voice that comes with the library is found beside the program: this program copies itself into folders where a
 * voice lies at one of the known places, and each copy tells what it finds. */
#include "tests/support.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "utter.h"

/* What a copy says: the status and the path, or the reason. `size` is the room that it has for the path. */
static int tell(const char *name, size_t size)
{
    char path[PATH_MAX] = "";
    utter_error error = {.text = ""};
    const utter_status status =
        utter_model_find(path, size, strcmp(name, "NULL") ? name : NULL, NULL, &error);
    printf("%d %s", (int)status, status ? error.text : path);
    return 0;
}

/* support_folder()/name, with the folders that lead there. */
static const char *made(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", support_path(name));
    for (char *slash = path + strlen(support_folder()); (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
    return support_path(name);
}

static void put_voice(const char *folder)
{
    char name[256];
    snprintf(name, sizeof name, "%s/config.json", folder);
    support_write_file(made(name), "{}", 2);
}

static void put_program(const char *name)
{
    size_t bytes;
    char *program = support_read_file("/proc/self/exe", &bytes);
    assert_non_null(program);
    support_write_file(made(name), program, bytes);
    assert_int_equal(chmod(support_path(name), 0755), 0);
    free(program);
}

/* What the copy there says when it is asked for `model`. */
static const char *said_by(const char *program, const char *model, size_t size)
{
    static char said[PATH_MAX + 64];
    char command[PATH_MAX + 64];
    snprintf(command, sizeof command, "%s %s %zu", support_path(program), model, size);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    said[fread(said, 1, sizeof said - 1, pipe)] = 0;
    assert_int_equal(pclose(pipe), 0);
    return said;
}

static void check_found(const char *program, const char *model, const char *folder)
{
    char wanted[PATH_MAX + 64];
    snprintf(wanted, sizeof wanted, "%d %s", (int)UTTER_OK, support_path(folder));
    assert_string_equal(said_by(program, model, PATH_MAX), wanted);
}

/* Of several the nearest is taken, and its path has no ".." in it. */
static void it_lies_beside_the_program(void **state)
{
    (void)state;
    put_program("a/b/bin/program");
    put_voice("a/voice/builtin");
    check_found("a/b/bin/program", "NULL", "a/voice/builtin");
    put_voice("a/share/utter/builtin");
    check_found("a/b/bin/program", "NULL", "a/share/utter/builtin");
    put_voice("a/b/share/utter/builtin");
    check_found("a/b/bin/program", "NULL", "a/b/share/utter/builtin");
    put_voice("a/b/bin/builtin");
    check_found("a/b/bin/program", "NULL", "a/b/bin/builtin");
    check_found("a/b/bin/program", "builtin", "a/b/bin/builtin");
}

/* A path that just fits is whole, and one that does not is not taken short, though something lies there, too. */
static void a_path_is_found_whole_or_not_at_all(void **state)
{
    char wanted[PATH_MAX + 64];
    (void)state;
    put_program("c/program");
    put_voice("c/builtin");
    put_voice("c/builti");
    const char *folder = support_path("c/builtin");
    const size_t n = strlen(folder);
    snprintf(wanted, sizeof wanted, "%d %s", (int)UTTER_OK, folder);
    assert_string_equal(said_by("c/program", "NULL", n + 1), wanted);
    assert_string_not_equal(said_by("c/program", "NULL", n), wanted);
    snprintf(wanted, sizeof wanted, "%d %s", (int)UTTER_OK, support_path("c/builti"));
    assert_string_not_equal(said_by("c/program", "NULL", n), wanted);
}

/* A folder of that name where the program runs comes before it. */
static void a_folder_named_builtin_is_meant(void **state)
{
    char command[3 * PATH_MAX], said[64] = "";
    (void)state;
    put_program("d/program");
    put_voice("d/builtin");
    put_voice("d/here/builtin");
    snprintf(command, sizeof command, "cd %s && ../program builtin 4096", support_path("d/here"));
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    said[fread(said, 1, sizeof said - 1, pipe)] = 0;
    assert_int_equal(pclose(pipe), 0);
    assert_string_equal(said, "0 builtin");
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        return tell(argv[1], (size_t)atol(argv[2]));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_lies_beside_the_program),
        cmocka_unit_test(a_path_is_found_whole_or_not_at_all),
        cmocka_unit_test(a_folder_named_builtin_is_meant),
    };
    return cmocka_run_group_tests_name("the built-in voice", tests, NULL, NULL);
}
