/* SPDX-License-Identifier: Apache-2.0
 * What a model says while it is opened of a GPU that it does not use. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "utter.h"

static char said[512];

static void keep(void *user, const char *line)
{
    (void)user;
    snprintf(said, sizeof said, "%s", line);
}

static void open_on(const char *device)
{
    utter_model *model;
    utter_error error = {0};
    utter_model_options o;
    utter_model_options_init(&o);
    o.device = device;
    o.n_threads = 1;
    o.log = keep;
    said[0] = 0;
    assert_int_equal(utter_model_open(&model, "build/checkpoints/tiny06-base", &o, &error), UTTER_OK);
    utter_model_close(&model);
}

/* NVIDIA's driver is here, and the program cannot use its GPU: because it was built without CUDA, or because no GPU is
 * shown to the tests. */
static void test_a_driver_that_is_not_used_is_told(void **state)
{
    char version[] = "/tmp/utter-driver-XXXXXX";
    (void)state;
    const int fd = mkstemp(version);
    assert_true(fd >= 0 && write(fd, "535.161.08\n", 11) == 11);
    close(fd);
    support_stand_in("/sys/module/nvidia/version", version);
    open_on("auto");
    assert_non_null(strstr(said, "the cpu speaks: "));
    open_on("cpu");
    assert_string_equal(said, "");
    support_stand_in("/sys/module/nvidia/version", "/nowhere"); /* no driver: nothing is missed */
    open_on("auto");
    assert_null(strstr(said, "NVIDIA's driver is here"));
    support_stand_in(NULL, NULL);
    unlink(version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_driver_that_is_not_used_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
