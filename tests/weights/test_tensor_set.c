/* SPDX-License-Identifier: Apache-2.0
 * Writing files, reading them back, folders with one file or shards, files that shrink. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "weights/safetensors.h"

static const float floats[6] = {0.0f, -1.5f, 3e38f, 1e-40f, 7.0f, INFINITY};
static const uint16_t halves[3] = {1, 2, 3};
static const double doubles[1] = {0.1};
static const uint8_t octets[5] = {9, 8, 7, 6, 5};

static const struct tensor samples[] = {
    {"octets", DTYPE_U8, 1, {5}, octets, 5},
    {"halves", DTYPE_BF16, 2, {3, 1}, halves, 6},
    {"empty", DTYPE_I64, 2, {4, 0}, NULL, 0},
    {"floats", DTYPE_F32, 3, {1, 2, 3}, floats, 24},
    {"scalar", DTYPE_F64, 0, {0}, doubles, 8},
};
enum { N_SAMPLES = sizeof samples / sizeof samples[0] };

static void written_files_read_the_same(void **state)
{
    (void)state;
    static const char *const metadata[] = {"format", "pt", "who", "a \"test\"\n", NULL};
    const char *path = support_path("written.safetensors");
    struct tensor_set *set;
    utter_error error;
    assert_int_equal(tensor_file_write(path, samples, N_SAMPLES, metadata, &error), UTTER_OK);
    assert_int_equal(tensor_set_open_file(&set, path, &error), UTTER_OK);
    assert_int_equal(tensor_set_count(set), N_SAMPLES);
    for (int i = 0; i < N_SAMPLES; i++) {
        const struct tensor *t = tensor_set_find(set, samples[i].name);
        assert_non_null(t);
        assert_int_equal(t->type, samples[i].type);
        assert_int_equal(t->n_dims, samples[i].n_dims);
        assert_memory_equal(t->dims, samples[i].dims, sizeof t->dims);
        assert_int_equal(t->bytes, samples[i].bytes);
        if (t->bytes) {
            assert_memory_equal(t->data, samples[i].data, t->bytes);
        }
    }
    assert_string_equal(tensor_set_metadata(set, "who"), "a \"test\"\n");
    tensor_set_close(&set);
    size_t n;
    char *bytes = support_read_file(path, &n);
    assert_int_equal(bytes[0] % 8, 0); /* the header is padded */
    free(bytes);
    /* None at all. */
    assert_int_equal(tensor_file_write(path, NULL, 0, NULL, &error), UTTER_OK);
    assert_int_equal(tensor_set_open_file(&set, path, &error), UTTER_OK);
    assert_int_equal(tensor_set_count(set), 0);
    assert_null(tensor_set_find(set, "a"));
    assert_null(tensor_set_metadata(set, "a"));
    tensor_set_close(&set);
}

/* The header and its length end at a multiple of 64, the next there is, and the data begins there. */
static void a_header_ends_with_its_line(void **state)
{
    (void)state;
    const char *path = support_path("lines.safetensors");
    for (int length = 0; length < 130; length++) {
        char value[160];
        size_t n;
        snprintf(value, sizeof value, "%.*s", length,
            "0123456789012345678901234567890123456789012345678901234567890123456789"
            "0123456789012345678901234567890123456789012345678901234567890123456789");
        const char *const metadata[] = {"a", value, NULL};
        assert_int_equal(tensor_file_write(path, samples, 1, metadata, NULL), UTTER_OK);
        char *bytes = support_read_file(path, &n);
        const size_t header = (size_t)(uint8_t)bytes[0] | (size_t)(uint8_t)bytes[1] << 8;
        assert_int_equal((8 + header) % 64, 0);
        assert_int_equal(n, 8 + header + samples[0].bytes);
        assert_memory_equal(bytes + 8 + header, octets, sizeof octets);
        size_t n_spaces = 0;
        while (bytes[8 + header - 1 - n_spaces] == ' ') {
            n_spaces++;
        }
        assert_int_equal(bytes[8 + header - 1 - n_spaces], '}');
        assert_true(n_spaces < 64);
        free(bytes);
    }
}

static void every_type_is_written_and_read(void **state)
{
    (void)state;
    const char *path = support_path("types.safetensors");
    struct tensor all[N_DTYPES];
    for (int i = 0; i < N_DTYPES; i++) {
        const char *name = dtype_name((enum dtype)i), *bits = strpbrk(name, "0123456789");
        /* A name ends in its width, but BOOL, a byte. */
        assert_int_equal(dtype_bytes((enum dtype)i) * 8, bits ? strtoul(bits, NULL, 10) : 8);
        all[i] = (struct tensor){name, (enum dtype)i, 1, {3}, floats, 3 * dtype_bytes((enum dtype)i)};
    }
    assert_int_equal(tensor_file_write(path, all, N_DTYPES, NULL, NULL), UTTER_OK);
    struct tensor_set *set;
    assert_int_equal(tensor_set_open_file(&set, path, NULL), UTTER_OK);
    for (int i = 0; i < N_DTYPES; i++) {
        assert_int_equal(tensor_set_find(set, all[i].name)->type, i);
    }
    tensor_set_close(&set);
}

static void wrong_tensors_are_not_written(void **state)
{
    (void)state;
    const char *path = support_path("wrong.safetensors");
    utter_error error;
    struct tensor two[2] = {samples[0], samples[0]};
    assert_int_equal(tensor_file_write(path, two, 2, NULL, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "tensor octets: the name is taken"));
    two[0].bytes = 4;
    assert_int_equal(tensor_file_write(path, two, 1, NULL, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "its size is not that of its shape"));
    two[1].name = "__metadata__";
    assert_int_equal(tensor_file_write(path, two + 1, 1, NULL, &error), UTTER_E_ARGUMENT);
    assert_false(support_read_file(path, &(size_t){0}));
    assert_int_equal(
        tensor_file_write(support_path("no/folder"), samples, 1, NULL, &error), UTTER_E_FILE);
}

static void failing_calls_leave_no_file(void **state)
{
    (void)state;
    static const enum support_call calls[] = {SUPPORT_MALLOC, SUPPORT_WRITE, SUPPORT_RENAME};
    static const char *const metadata[] = {"format", "pt", NULL};
    assert_int_equal(mkdir(support_path("fails"), 0700), 0);
    const char *folder = support_path("fails"), *path = support_path("fails/file");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        SUPPORT_EACH_FAILURE(calls[i], n)
        {
            unlink(path);
            utter_status status = tensor_file_write(path, samples, N_SAMPLES, metadata, NULL);
            assert_int_equal(status == UTTER_OK, !support_failed());
            assert_int_equal(support_count_files(folder), !support_failed());
        }
    }
}

/* ---- Folders ---- */

/* Empties a folder of the test's own, or makes it. */
static const char *fresh_folder(void)
{
    static int n;
    char name[32];
    snprintf(name, sizeof name, "folder%d", n++);
    const char *folder = support_path(name);
    assert_int_equal(mkdir(folder, 0700), 0);
    return folder;
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[5200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    support_write_file(path, text, strlen(text));
}

static void write_shard(const char *folder, const char *name, int first, int n)
{
    char path[5200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(tensor_file_write(path, samples + first, (size_t)n, NULL, NULL), UTTER_OK);
}

static const char index_name[] = "model.safetensors.index.json";
static const char good_index[] = "{\"metadata\":{\"total_size\":43},\"weight_map\":{\"octets\":\"one\","
                                 "\"halves\":\"one\",\"empty\":\"one\","
                                 "\"floats\":\"two\",\"scalar\":\"two\"}}";

static void folder_with_one_file_opens(void **state)
{
    (void)state;
    struct tensor_set *set;
    utter_error error;
    const char *folder = fresh_folder();
    assert_int_equal(tensor_set_open_folder(&set, folder, &error), UTTER_E_FILE);
    assert_non_null(
        strstr(error.text, "holds no model.safetensors and no model.safetensors.index.json"));
    assert_null(set);
    write_text(folder, index_name, "{}"); /* the single file comes first */
    write_shard(folder, "model.safetensors", 0, N_SAMPLES);
    assert_int_equal(tensor_set_open_folder(&set, folder, &error), UTTER_OK);
    assert_int_equal(tensor_set_count(set), N_SAMPLES);
    tensor_set_close(&set);
    assert_int_equal(tensor_set_open_folder(&set, support_path("nowhere"), &error), UTTER_E_FILE);
}

static void folder_with_shards_opens(void **state)
{
    (void)state;
    struct tensor_set *set;
    utter_error error;
    const char *folder = fresh_folder();
    write_shard(folder, "one", 0, 3);
    write_shard(folder, "two", 3, 2);
    write_text(folder, index_name, good_index);
    assert_int_equal(tensor_set_open_folder(&set, folder, &error), UTTER_OK);
    assert_int_equal(tensor_set_count(set), N_SAMPLES);
    for (size_t i = 1; i < N_SAMPLES; i++) {
        assert_true(strcmp(tensor_set_at(set, i - 1)->name, tensor_set_at(set, i)->name) < 0);
    }
    assert_memory_equal(tensor_set_find(set, "floats")->data, floats, sizeof floats);
    assert_memory_equal(tensor_set_find(set, "octets")->data, octets, sizeof octets);
    tensor_set_close(&set);
    for (int call = SUPPORT_MALLOC; call <= SUPPORT_READ; call++) {
        SUPPORT_EACH_FAILURE((enum support_call)call, n)
        {
            utter_status status = tensor_set_open_folder(&set, folder, &error);
            assert_int_equal(status == UTTER_OK, !support_failed());
            assert_int_equal(set != NULL, !support_failed());
            tensor_set_close(&set);
        }
    }
}

static void broken_indexes_are_survived(void **state)
{
    (void)state;
    const char *folder = fresh_folder();
    char text[sizeof good_index];
    write_shard(folder, "one", 0, 3);
    write_shard(folder, "two", 3, 2);
    for (size_t bit = 0; bit < 8 * (sizeof text - 1); bit++) {
        struct tensor_set *set;
        memcpy(text, good_index, sizeof text);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        char path[5200];
        snprintf(path, sizeof path, "%s/%s", folder, index_name);
        support_write_file(path, text, sizeof text - 1);
        utter_status status = tensor_set_open_folder(&set, folder, NULL);
        assert_int_equal(status, set ? UTTER_OK : UTTER_E_FILE);
        tensor_set_close(&set);
        support_write_file(path, text, bit / 8);
        assert_int_equal(tensor_set_open_folder(&set, folder, NULL), UTTER_E_FILE);
    }
}

static void shrunk_checkpoints_read_as_zeros(void **state)
{
    (void)state;
    enum { N = 50000 };
    static float values[N];
    const char *path = support_path("shrinks.safetensors");
    struct tensor_set *set;
    support_leave_sigbus();
    for (int i = 0; i < N; i++) {
        values[i] = 1.0f;
    }
    const struct tensor t = {"w", DTYPE_F32, 1, {N}, values, sizeof values};
    assert_int_equal(tensor_file_write(path, &t, 1, NULL, NULL), UTTER_OK);
    assert_int_equal(tensor_set_open_file(&set, path, NULL), UTTER_OK);
    assert_false(tensor_set_damaged(set));
    assert_int_equal(truncate(path, N), 0);
    const float *w = tensor_set_find(set, "w")->data;
    double sum = 0;
    for (int i = 0; i < N; i++) {
        sum += w[i];
    }
    assert_true(sum > 0 && sum < N);
    assert_true(tensor_set_damaged(set));
    tensor_set_close(&set);
}

int main(void)
{
    json_object_seed(1); /* else jansson asks the system for one, with calls that would be counted */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_files_read_the_same),
        cmocka_unit_test(a_header_ends_with_its_line),
        cmocka_unit_test(every_type_is_written_and_read),
        cmocka_unit_test(wrong_tensors_are_not_written),
        cmocka_unit_test(failing_calls_leave_no_file),
        cmocka_unit_test(folder_with_one_file_opens),
        cmocka_unit_test(folder_with_shards_opens),
        cmocka_unit_test(broken_indexes_are_survived),
        cmocka_unit_test(shrunk_checkpoints_read_as_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
