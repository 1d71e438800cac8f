/* SPDX-License-Identifier: Apache-2.0
 * The table of sampling parameters: each row has its own names and its own member, and the doors ask for nothing that
 * the library refuses. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/tables/parameters.h"

static utter_stream_options usual(void)
{
    return (utter_stream_options){.talker = {0.9f, 50, 1, 1.05f}, .predictor = {0.9f, 50, 1, 1}};
}

static void a_row_is_a_member(void **state)
{
    utter_stream_options o = usual();
    (void)state;
    for (int i = 0; i < parameter_count; i++) {
        parameter_set(&parameter_table[i], &o, i + 1);
        assert_true(parameter_get(&parameter_table[i], &o) == i + 1);
    }
    assert_true(o.talker.temperature == 1 && o.talker.top_k == 2 && o.talker.top_p == 3);
    assert_true(o.talker.repetition_penalty == 4 && o.predictor.temperature == 5);
    assert_true(
        o.predictor.top_k == 6 && o.predictor.top_p == 7 && o.predictor.repetition_penalty == 1);
    for (int i = 0; i < parameter_count; i++) {
        const struct parameter *p = &parameter_table[i];
        parameter_set(p, &o, parameter_own(p));
        assert_true(parameter_get(p, &o) == i + 1);
        assert_int_equal(p->predictor, strncmp(p->name, "predictor.", 10) == 0);
        assert_int_equal(p->greedy, strstr(p->name, ".temperature") != NULL);
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(p->name, parameter_table[k].name);
            assert_string_not_equal(p->option, parameter_table[k].option);
            assert_string_not_equal(p->field, parameter_table[k].field);
        }
    }
}

static void the_ends_of_a_range(void **state)
{
    (void)state;
    for (int i = 0; i < parameter_count; i++) {
        const struct parameter *p = &parameter_table[i];
        double least = p->integer ? 1 : 1e-9;
        const struct {
            double value;
            bool good;
        } asked[] = {{p->least_json, true}, {p->most_asked, true}, {p->high, p->high < INFINITY},
            {p->high * 1.001, false}, {p->low, !p->above}, {p->low + least, true},
            {p->low - least, false}, {NAN, false}};
        for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
            utter_stream_options o = usual();
            utter_error error = {0};
            if (isinf(asked[k].value) || (p->integer && isnan(asked[k].value))) {
                continue; /* an int is never that */
            }
            if (p->integer) {
                *(int *)(void *)((char *)&o + p->offset) = (int)asked[k].value;
            } else {
                *(float *)(void *)((char *)&o + p->offset) = (float)asked[k].value;
            }
            utter_status status = parameters_check(&o, &error);
            assert_int_equal(status, asked[k].good ? UTTER_OK : UTTER_E_ARGUMENT);
            assert_true(asked[k].good || strncmp(error.text, p->name, strlen(p->name)) == 0);
        }
    }
}

static void errors_say_what_is_allowed(void **state)
{
    utter_stream_options o = usual();
    utter_error error;
    (void)state;
    o.predictor.top_p = 0;
    assert_int_equal(parameters_check(&o, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "predictor.top_p 0 is not above 0 and at most 1");
    o.predictor.top_k = -1;
    assert_int_equal(parameters_check(&o, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "predictor.top_k -1 is not at least 0");
    o.talker.temperature = 101;
    assert_int_equal(parameters_check(&o, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "talker.temperature 101 is not in 0..100");
}

/* The text of a file, up to 64 KiB. */
static void read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

/* What the server takes is told by the server itself: /openapi.json, from the same table. */
static void the_manual_has_every_row(void **state)
{
    static char manual[65536];
    (void)state;
    read_text("docs/utter.1", manual, sizeof manual);
    for (int i = 0; i < parameter_count; i++) {
        char option[64] = "\\-\\-";
        size_t n = strlen(option);
        for (const char *c = parameter_table[i].option; *c; c++) {
            if (*c == '-') {
                option[n++] = '\\';
            }
            option[n++] = *c;
        }
        option[n] = 0;
        strcat(option, " \"");
        if (!strstr(manual, option)) {
            fail_msg("%s is not in docs/utter.1", option);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_a_member),
        cmocka_unit_test(the_ends_of_a_range),
        cmocka_unit_test(errors_say_what_is_allowed),
        cmocka_unit_test(the_manual_has_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
