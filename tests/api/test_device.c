/* SPDX-License-Identifier: Apache-2.0
 * What the `device` option asks for, and what a model says while it is opened of a GPU that it does not use. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"

/* Which may be taken, the GPU's number, and the card that it is posed as. CPU kernels by name are for the CPU. */
static void test_a_device_is_what_was_asked_for(void **state)
{
    static const struct {
        const char *device, *kernels;
        bool gpu, cpu;
        int index;
        const char *as;
    } cases[] = {
        {NULL, NULL, true, true, 0, NULL},
        {"auto", NULL, true, true, 0, NULL},
        {"auto", "avx2", false, true, 0, NULL},
        {"cpu", NULL, false, true, 0, NULL},
        {"cuda", NULL, true, false, 0, NULL},
        {"cuda", "avx2", true, false, 0, NULL},
        {"cuda:0", NULL, true, false, 0, NULL},
        {"cuda:7", NULL, true, false, 7, NULL},
        {"cuda:12", NULL, true, false, 12, NULL},
        {"cuda:908", NULL, true, false, 908, NULL},
        {"cuda as a card", NULL, true, false, 0, "a card"},
        {"cuda:30 as x", NULL, true, false, 30, "x"},
        {"cuda:3 as ", NULL, true, false, 3, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *as = cases[i].as;
        struct device_choice choice = {.index = 99, .as = "before"};
        utter_model_options o;
        utter_model_options_init(&o);
        o.device = cases[i].device;
        o.cpu_kernels = cases[i].kernels;
        assert_int_equal(api_choose_device(&o, &choice, NULL), UTTER_OK);
        assert_true(choice.gpu == cases[i].gpu && choice.cpu == cases[i].cpu);
        assert_int_equal(choice.index, cases[i].index);
        assert_true(as ? choice.as && strcmp(choice.as, as) == 0 : !choice.as);
    }
}

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_device_is_what_was_asked_for),
        cmocka_unit_test(test_a_driver_that_is_not_used_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
