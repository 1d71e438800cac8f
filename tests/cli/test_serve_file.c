/* SPDX-License-Identifier: Apache-2.0
 * Which file a server reads that nobody has named: the user's own before the system's, whose place is posed. */
#include <sys/stat.h>

#include "cli/serve_defaults.h"
#include "tests/cli/typed.h"

static bool is_there; /* the system's */
static int n_asked;   /* for it */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

int __wrap_access(const char *path, int mode)
{
    if (strcmp(path, "/etc/utter/serve.conf") == 0) {
        n_asked++;
        assert_int_equal(mode, F_OK);
        return is_there ? 0 : -1;
    }
    return __real_access(path, mode);
}

/* What is said of the file; "" where there is none, or it is good. */
static void assert_read(const char *says, int port)
{
    heard_begin();
    bool good = options_parse(&typed, typed_command(COMMAND_SERVE), 0, NULL);
    heard_assert(says);
    assert_int_equal(good, !says[0]);
    assert_true(!good || typed.settings.plain.serve.port == port);
    free(typed.words);
    typed.words = NULL;
}

static void the_users_own_file_comes_before_the_systems(void **state)
{
    (void)state;
    char home[PATH_MAX];
    /* That is not here, whatever is said of it. */
    static const char lost[] = "utter: /etc/utter/serve.conf: cannot read: No such file or directory";
    if (__real_access("/etc/utter/serve.conf", F_OK) == 0) {
        skip();
    }
    snprintf(home, sizeof home, "%s", support_path("home"));
    mkdir(home, 0700);
    mkdir(support_path("home/utter"), 0700);
    setenv("XDG_CONFIG_HOME", home, 1);
    assert_read("", 8080);
    assert_int_equal(n_asked, 1);
    is_there = true;
    assert_read(lost, 0);
    support_write_file(support_path("home/utter/serve.conf"), "port = 81\n", 10);
    n_asked = 0;
    assert_read("", 81);
    assert_int_equal(n_asked, 0);
    /* Without a home, and with one whose name is too long, there is the system's. */
    unsetenv("XDG_CONFIG_HOME");
    char user[PATH_MAX], deep[4200];
    snprintf(user, sizeof user, "%s", getenv("HOME"));
    setenv("HOME", "relative", 1);
    assert_read(lost, 0);
    setenv("HOME", user, 1);
    for (size_t n = 4095 - strlen("/utter/config") - 4; n < 4095; n++) {
        memset(deep, 'n', n);
        deep[0] = '/';
        deep[n] = 0;
        setenv("XDG_CONFIG_HOME", deep, 1);
        assert_read(lost, 0);
    }
    is_there = false;
    assert_read("", 8080);
    setenv("XDG_CONFIG_HOME", home, 1);
    /* A model or device of every command comes before the file. */
    support_write_file(support_path("home/utter/serve.conf"), "device = cpu\n", 13);
    assert_true(options_parse(&typed, typed_command(COMMAND_SERVE), 0, NULL));
    assert_string_equal(typed.settings.device.text, "cpu");
    free(typed.words);
    setenv("UTTER_DEVICE", "cuda", 1);
    assert_true(options_parse(&typed, typed_command(COMMAND_SERVE), 0, NULL));
    assert_string_equal(typed.settings.device.text, "auto");
    unsetenv("UTTER_DEVICE");
    free(typed.words);
    typed.words = NULL;
}

/* 4,158 bytes and a line's end fit. */
static void a_line_of_it_has_a_bound(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        char text[5000], says[PATH_MAX + 128];
        const size_t n = 4158 + more;
        size_t begin = (size_t)snprintf(text, sizeof text, "# one\n#");
        memset(text + begin, 'x', n - 1);
        snprintf(text + begin + n - 1, sizeof text - begin - n + 1, "\nport = 82\n");
        support_write_file(support_path("home/utter/serve.conf"), text, strlen(text));
        snprintf(says, sizeof says, "utter: %s, line 2: is longer than 4158 bytes",
            support_path("home/utter/serve.conf"));
        assert_read(more ? says : "", 82);
    }
}

static int start(void **state)
{
    unsetenv("UTTER_SERVE_CONFIG");
    return typed_start(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_users_own_file_comes_before_the_systems),
        cmocka_unit_test(a_line_of_it_has_a_bound),
    };
    return cmocka_run_group_tests_name("serve_file", tests, start, typed_end);
}
