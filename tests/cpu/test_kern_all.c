/* SPDX-License-Identifier: Apache-2.0
 * Every kernel of every instruction set that runs here, on one piece of the model's work, against plain C. A kernel of
 * struct kern that has no case in kernel_cases.h is a failure.
 *
 * With --bench [WORD ...] the same calls are also timed: one line for each case whose kernel has one of the words in
 * its name (`make bench-kernels ONLY='WORD ...'`). The data is in the caches, so this compares instructions and not
 * memory; `utter bench` has the speed of whole frames. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/cpu/kernel_cases.h"

static const char *const TABLES[] = {
    "c", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};
enum { N_TABLES = sizeof TABLES / sizeof *TABLES };

/* What the call makes, compared with what plain C makes. */
static bool same_as_c(struct call *call, struct call *plain)
{
    struct call *both[] = {plain, call};
    for (int i = 0; i < 2; i++) {
        call->the_case->run(both[i]);
        if (call->the_case->settle) {
            call->the_case->settle(both[i]);
        }
    }
    double largest = 0, off = 0;
    for (int64_t i = 0; i < plain->n_y; i++) {
        largest = fmax(largest, fabs((double)plain->y[i]));
        double difference = fabs((double)call->y[i] - (double)plain->y[i]);
        off = difference <= off ? off : difference; /* NaN is a difference too */
    }
    bool same = plain->n_y == call->n_y && largest > 0 && off <= call->the_case->most * largest;
    if (!same) {
        printf("%s, %s: %s is %g of %g from plain C\n", call->the_case->name, call->the_case->work,
            call->kern->name, off, largest);
    }
    return same;
}

static bool case_is_same(const struct kernel_case *the_case)
{
    bool same = true;
    for (int i = 0; i < N_TABLES; i++) {
        const struct kern *kern = kern_find(TABLES[i]);
        if (kern) {
            struct call call = call_new(the_case, kern), plain = call_new(the_case, &kern_c);
            same = same_as_c(&call, &plain) && same;
            call_free(&call);
            call_free(&plain);
        }
    }
    return same;
}

static void same_as_plain_c(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        assert_true(case_is_same(&CASES[i]));
    }
}

/* struct kern is pointers to functions, but for its name and for what the words of `integer` are. */
static void every_kernel_has_a_case(void **state)
{
    (void)state;
    enum { N_SLOTS = sizeof(struct kern) / sizeof(void *) };
    bool has_case[N_SLOTS] = {0};
    has_case[offsetof(struct kern, name) / sizeof(void *)] = true;
    has_case[offsetof(struct kern, integer_words) / sizeof(void *)] = true;
    for (int i = 0; i < N_CASES; i++) {
        has_case[CASES[i].slot / sizeof(void *)] = true;
    }
    for (int i = 0; i < N_SLOTS; i++) {
        assert_true(has_case[i]);
    }
}

/* ---- Times ---- */

enum { SAMPLES = 101 };

static int64_t time_of(struct call *call, int n)
{
    int64_t begin = clock_ns();
    for (int i = 0; i < n; i++) {
        call->the_case->run(call);
    }
    return clock_ns() - begin;
}

/* So many calls that the clock's own step does not count. */
static int calls_of_a_sample(struct call *call)
{
    enum { LEAST_NS = 50000, MOST = 1 << 16 };
    int n = 1;
    while (n < MOST && time_of(call, n) < LEAST_NS) {
        n *= 2;
    }
    return n;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Samples of the tables take turns: what else the machine does meanwhile falls on all alike. */
static void time_case(const struct kernel_case *the_case)
{
    struct call calls[N_TABLES];
    static double ns[N_TABLES][SAMPLES];
    int n_calls[N_TABLES] = {0};
    for (int i = 0; i < N_TABLES; i++) {
        const struct kern *kern = kern_find(TABLES[i]);
        if (kern) {
            calls[i] = call_new(the_case, kern);
            n_calls[i] = calls_of_a_sample(&calls[i]);
        }
    }
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < N_TABLES; i++) {
            ns[i][s] = n_calls[i] ? (double)time_of(&calls[i], n_calls[i]) / n_calls[i] : 0;
        }
    }
    printf("%-12s %-30s", the_case->name, the_case->work);
    for (int i = 0; i < N_TABLES; i++) {
        if (n_calls[i]) {
            qsort(ns[i], SAMPLES, sizeof **ns, by_size);
            double median = ns[i][SAMPLES / 2];
            printf(i ? " %9.0f %5.1fx" : " %9.0f", median, ns[0][SAMPLES / 2] / median);
            call_free(&calls[i]);
        }
    }
    printf("\n");
    fflush(stdout);
}

static int bench(int n_words, char **words)
{
    printf("Nanoseconds a call (median of %d), and how many times faster than plain C.\n%-43s", SAMPLES,
        "kernel");
    for (int i = 0; i < N_TABLES; i++) {
        if (kern_find(TABLES[i])) {
            printf(i ? " %16s" : " %9s", TABLES[i]);
        }
    }
    printf("\n");
    int wrong = 0;
    for (int i = 0; i < N_CASES; i++) {
        const struct kernel_case *the_case = &CASES[i];
        bool asked = n_words == 0;
        for (int k = 0; k < n_words; k++) {
            asked = asked || strstr(the_case->name, words[k]);
        }
        if (asked && case_is_same(the_case)) {
            time_case(the_case);
        } else {
            wrong += asked;
        }
    }
    return wrong != 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        return bench(argc - 2, argv + 2);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_has_a_case),
        cmocka_unit_test(same_as_plain_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
