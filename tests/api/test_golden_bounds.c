/* SPDX-License-Identifier: Apache-2.0
 * Golden files at their bounds: which numbers of a case are taken, and by which bytes files of each size are
 * compared. */
#include "tests/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/golden.h"

#define EOS_FIRST "tests/golden/eos-first.safetensors"

/* ---- Numbers ---- */

/* Case 0 with one number changed: of the case, or of its sound. */
static utter_status with_number(
    const char *in, const char *name, json_t *value, struct golden_case *c, utter_error *error)
{
    struct golden g;
    assert_int_equal(golden_open(&g, EOS_FIRST, NULL), UTTER_OK);
    json_t *object = json_array_get(g.cases, 0);
    object = in ? json_object_get(object, in) : object;
    assert_non_null(json_object_get(object, name));
    assert_int_equal(json_object_set_new(object, name, value), 0);
    const utter_status status = golden_case(&g, 0, 16, c, error);
    golden_close(&g);
    return status;
}

static void numbers_are_taken_up_to_their_bounds(void **state)
{
    static const struct {
        const char *in, *name;
        double low, high;
    } cases[] = {
        {NULL, "repetition_penalty", 1e-3, 1e3},
        {NULL, "max_frames", 1, 1 << 20},
        {"sound", "n", 0, 1e15},
        {"sound", "stride", 1, 1 << 30},
        {"sound", "rms", 0, 1e6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int high = 0; high < 2; high++) {
            struct golden_case c;
            utter_error error = {.text = ""};
            const double value = high ? cases[i].high : cases[i].low;
            const bool whole = i > 0 && i < 4;
            with_number(cases[i].in, cases[i].name,
                whole ? json_integer((json_int_t)value) : json_real(value), &c, &error);
            assert_string_equal(error.text, "");
            const double read[] = {(double)c.repetition_penalty, c.max_frames, (double)c.n_samples,
                (double)c.stride, c.rms};
            assert_true(read[i] == (i ? value : (double)(float)value));
        }
    }
}

/* What is wrong of a case without frames, and of one of very many, is that it has tensors of two. */
static void any_number_of_frames_may_be_named(void **state)
{
    static const int counts[] = {0, 1, 1 << 20};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct golden_case c;
        utter_error error = {.text = ""};
        assert_int_equal(
            with_number(NULL, "frames", json_integer(counts[i]), &c, &error), UTTER_E_FILE);
        assert_non_null(strstr(error.text, "its ids, codes, margins or samples are missing"));
        assert_int_equal(c.n_frames, counts[i]);
    }
}

/* What was read of the file is held once, and given back once. */
static void what_was_read_is_given_back(void **state)
{
    struct golden g;
    (void)state;
    assert_int_equal(golden_open(&g, EOS_FIRST, NULL), UTTER_OK);
    assert_true(g.files->refcount == 1 && g.cases->refcount == 1);
    json_t *files = json_incref(g.files), *cases = json_incref(g.cases);
    golden_close(&g);
    assert_true(files->refcount == 1 && cases->refcount == 1);
    assert_true(!g.set && !g.cases && !g.kind && !g.files);
    assert_int_equal(support_count_mappings("eos-first.safetensors"), 0);
    json_decref(files);
    json_decref(cases);
}

/* ---- Files ---- */

enum { EDGE = 65536 };

/* FNV-1a of the given bytes, from a state on. */
static uint64_t hash_on(uint64_t h, const unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return h;
}

/* As the format has it: a file of up to two edges is hashed whole. */
static uint64_t hash_of(const unsigned char *at, size_t n)
{
    const uint64_t begin = UINT64_C(0xcbf29ce484222325);
    return n <= 2 * EDGE ? hash_on(begin, at, n)
                         : hash_on(hash_on(begin, at, EDGE), at + n - EDGE, EDGE);
}

static json_t *entry_of(size_t bytes, uint64_t hash)
{
    char edges[17];
    snprintf(edges, sizeof edges, "%016" PRIx64, hash);
    return json_pack("{s:I, s:s}", "bytes", (json_int_t)bytes, "edges", edges);
}

static int n_mapped(void)
{
    char line[4096];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        n += strstr(line, support_folder()) != NULL;
    }
    fclose(maps);
    return n;
}

/* The file is what it was, and not what differs from it at one place, unless nobody looks there. */
static void check_file(unsigned char *data, size_t n)
{
    const size_t places[] = {0, 1, EDGE - 1, EDGE, n / 2, n - EDGE - 1, n - EDGE, n - 1};
    const uint64_t hash = hash_of(data, n);
    size_t n_files;
    const char *other;
    struct golden g = {.files = json_object()};
    json_object_set_new(g.files, "file", entry_of(n, hash));
    support_write_file(support_path("file"), data, n);
    assert_int_equal(golden_same_files(&g, support_folder(), &n_files, &other), 1);
    assert_true(n_files == 1 && !other);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i] < n) {
            data[places[i]] ^= 1;
            support_write_file(support_path("file"), data, n);
            const bool seen = n <= 2 * EDGE || places[i] < EDGE || places[i] >= n - EDGE;
            assert_int_equal(golden_same_files(&g, support_folder(), &n_files, &other), !seen);
            data[places[i]] ^= 1;
        }
    }
    golden_close(&g);
}

static void both_edges_of_a_file_are_compared(void **state)
{
    static const size_t sizes[] = {
        1, 2, EDGE - 1, EDGE, EDGE + 1, 2 * EDGE - 1, 2 * EDGE, 2 * EDGE + 1, 2 * EDGE + 2, 3 * EDGE};
    unsigned char *data = malloc(3 * EDGE);
    (void)state;
    for (size_t i = 0; i < 3 * EDGE; i++) {
        data[i] = (unsigned char)(i * 7 + i / 251);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_file(data, sizes[i]);
    }
    free(data);
    assert_int_equal(n_mapped(), 0);
}

/* All are counted, and of those that are others the first one is named. */
static void the_first_other_file_is_named(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    size_t n_files;
    const char *other;
    struct golden g = {.files = json_object()};
    (void)state;
    for (int i = 0; i < 4; i++) {
        support_write_file(support_path(names[i]), names[i], 1);
        const unsigned char said = (unsigned char)(names[i][0] + (i == 1 || i == 2));
        json_object_set_new(g.files, names[i], entry_of(1, hash_of(&said, 1)));
    }
    assert_int_equal(golden_same_files(&g, support_folder(), &n_files, &other), 2);
    assert_int_equal(n_files, 4);
    assert_string_equal(other, "b");
    unlink(support_path("d"));
    assert_int_equal(golden_same_files(&g, support_folder(), &n_files, &other), 1);
    assert_string_equal(other, "b");
    golden_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_taken_up_to_their_bounds),
        cmocka_unit_test(any_number_of_frames_may_be_named),
        cmocka_unit_test(what_was_read_is_given_back),
        cmocka_unit_test(both_edges_of_a_file_are_compared),
        cmocka_unit_test(the_first_other_file_is_named),
    };
    return cmocka_run_group_tests_name("bounds of golden files", tests, NULL, NULL);
}
