/* SPDX-License-Identifier: Apache-2.0
 * A model in one file: it holds what its folder holds, and what is wrong with a bad one is said. */
#include "tests/support.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/numeric.h"
#include "model/model.h"

#define CHECKPOINT "build/checkpoints/tiny17-base"

static char path[PATH_MAX];

static void write_file(enum dtype type)
{
    struct model *model;
    assert_int_equal(model_open(&model, CHECKPOINT, NULL), UTTER_OK);
    snprintf(path, sizeof path, "%s", support_path("model.safetensors"));
    assert_int_equal(model_file_write(model, CHECKPOINT, type, path, NULL, NULL), UTTER_OK);
    model_close(&model);
}

/* Who is told: what was said last and the largest step to it, how often, and after how many times it wants no more (0:
 * never). */
struct told {
    double last, step;
    int n, most;
};

static bool tell(void *user, double done)
{
    struct told *told = user;
    assert_true(done >= told->last && done <= 1);
    told->step = fmax(told->step, done - told->last);
    told->last = done;
    return ++told->n != told->most;
}

/* Writes the file anew, as one who asks to be told. */
static utter_status write_told(struct told *told)
{
    struct model *model;
    utter_error error = {0};
    struct progress progress = {.tell = tell, .user = told, .what = "the packing"};
    unlink(path);
    assert_int_equal(model_open(&model, CHECKPOINT, NULL), UTTER_OK);
    utter_status status = model_file_write(model, CHECKPOINT, DTYPE_Q8, path, &progress, &error);
    model_close(&model);
    assert_true(!status || strcmp(error.text, "the packing was stopped") == 0);
    return status;
}

/* Each stage is told of, in order and to the end, and the file is that of a work nobody asks about. Wherever it is
 * stopped, no file is left, nor a part of one. */
static void packing_is_told(void **state)
{
    (void)state;
    size_t bytes, n_again;
    write_file(DTYPE_Q8);
    char *plain = support_read_file(path, &bytes);
    struct told whole = {0};
    assert_int_equal(write_told(&whole), UTTER_OK);
    assert_true(whole.last > 0.999 && whole.n > 100 && whole.step < 0.2);
    char *again = support_read_file(path, &n_again);
    assert_int_equal(n_again, bytes);
    assert_memory_equal(again, plain, bytes);
    free(plain);
    free(again);
    unlink(path);
    int n_files = support_count_files(support_folder());
    for (int most = 1; most <= whole.n; most += most < 4 ? 1 : 7) {
        struct told told = {.most = most};
        assert_int_equal(write_told(&told), UTTER_E_CANCELLED);
        assert_int_equal(told.n, most);
        assert_int_equal(support_count_files(support_folder()), n_files);
    }
}

static void same_weight(const struct weight *a, const struct weight *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    assert_memory_equal(a->data, b->data, matrix_bytes(a));
}

/* In the file in 16 bits, rounded to the nearest. */
static void same_in_16_bits(const struct weight *folder, const struct weight *file)
{
    assert_int_equal(folder->type, DTYPE_F32);
    assert_int_equal(file->type, DTYPE_F16);
    assert_int_equal(folder->rows, file->rows);
    assert_int_equal(folder->cols, file->cols);
    for (int64_t i = 0; i < folder->rows * folder->cols; i++) {
        assert_int_equal(
            f16_from_float(((const float *)folder->data)[i]), ((const uint16_t *)file->data)[i]);
    }
}

/* Of up to a million values, in four matrices of attention and three behind it, it stays at 8 bits. */
static void a_small_predictor_is_not_narrowed(void **state)
{
    static const struct {
        int64_t q_rows, k_rows, cols, gate_rows, gate_cols;
        bool small;
    } cases[] = {{1, 1, 262141, 2, 2, true}, {1, 1, 262141, 1, 5, false}, {1, 1, 262144, 0, 1, true},
        {2, 1, 174762, 2, 1, false}, {2, 1, 174762, 1, 1, true}, {0, 0, 1, 591, 591, true},
        {0, 0, 1, 592, 591, false}};
    struct model *m;
    (void)state;
    assert_int_equal(model_open(&m, CHECKPOINT, NULL), UTTER_OK);
    const int n_layers = m->config->predictor.n_layers, n_talker = 7 * m->config->talker.n_layers;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weight **list;
        int n, n_narrow;
        for (int k = 0; k < n_layers; k++) { /* all of them in the last layer */
            struct layer_weights *l = &m->predictor.stack.layers[k];
            const bool last = k + 1 == n_layers;
            l->q.rows = last ? cases[i].q_rows : 0;
            l->k.rows = last ? cases[i].k_rows : 0;
            l->q.cols = cases[i].cols;
            l->gate.rows = last ? cases[i].gate_rows : 0;
            l->gate.cols = cases[i].gate_cols;
        }
        assert_int_equal(model_packable(m, &list, &n, &n_narrow, NULL), UTTER_OK);
        assert_int_equal(n_narrow, cases[i].small ? n_talker : n - m->config->n_codebooks);
        memory_free(list);
    }
    model_close(&m);
}

static void file_equals_folder(void **state)
{
    (void)state;
    for (enum dtype type = DTYPE_Q8; type <= DTYPE_Q4; type++) {
        struct model *folder, *file;
        utter_error error = {0};
        write_file(type);
        assert_int_equal(model_open(&folder, CHECKPOINT, NULL), UTTER_OK);
        assert_int_equal(model_pack(folder, type, 1, NULL), UTTER_OK);
        utter_status status = model_open(&file, path, &error);
        assert_string_equal(error.text, "");
        assert_int_equal(status, UTTER_OK);
        struct weight **a, **b;
        int n, n_narrow, n_file;
        assert_int_equal(model_packable(folder, &a, &n, &n_narrow, NULL), UTTER_OK);
        assert_int_equal(model_packable(file, &b, &n_file, &n_narrow, NULL), UTTER_OK);
        assert_int_equal(n, n_file);
        for (int i = 0; i < n; i++) {
            same_weight(a[i], b[i]);
            assert_int_equal((uintptr_t)b[i]->data % 64, 0);
            assert_true(i == 0 || b[i]->data > b[i - 1]->data); /* in the order they are read */
        }
        same_weight(&folder->talker.text_embedding, &file->talker.text_embedding);
        same_weight(&folder->speaker.out.w, &file->speaker.out.w);
        same_weight(&folder->vocoder.blocks[0].up.w, &file->vocoder.blocks[0].up.w);
        same_in_16_bits(&folder->vocoder.stack_in.w, &file->vocoder.stack_in.w);
        same_in_16_bits(&folder->vocoder.stack.layers[1].down, &file->vocoder.stack.layers[1].down);
        same_in_16_bits(&folder->vocoder.upsample[1].narrow.w, &file->vocoder.upsample[1].narrow.w);
        assert_true(file->has_encoder && file->has_speaker);
        assert_int_equal(folder->talker_parameters, file->talker_parameters);
        assert_int_equal(folder->predictor_parameters, file->predictor_parameters);
        assert_int_equal(folder->all_parameters, file->all_parameters);
        assert_int_equal(folder->talker_frame_bytes, file->talker_frame_bytes);
        assert_int_equal(folder->predictor_frame_bytes, file->predictor_frame_bytes);
        assert_int_equal(folder->vocoder_frame_bytes, file->vocoder_frame_bytes);
        assert_int_equal(
            model_pack(file, type == DTYPE_Q8 ? DTYPE_Q4 : DTYPE_Q8, 1, NULL), UTTER_E_ARGUMENT);
        memory_free(a);
        memory_free(b);
        model_close(&folder);
        assert_int_equal(
            model_file_write(file, path, type, support_path("again"), NULL, NULL), UTTER_E_ARGUMENT);
        model_close(&file);
    }
}

/* A new folder with the files of the checkpoint, but this generation_config.json; NULL: none. */
static void folder_with(char *folder, const char *generation)
{
    static int n_folders;
    char name[24];
    static const char *const names[] = {"config.json", "model.safetensors", "speech_tokenizer",
        "tokenizer_config.json", "vocab.json", "merges.txt"};
    char there[PATH_MAX], from[PATH_MAX + 64], to[PATH_MAX];
    snprintf(name, sizeof name, "folder %d", n_folders++);
    snprintf(folder, PATH_MAX, "%s", support_path(name));
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_non_null(realpath(CHECKPOINT, there));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, "%s/%s", there, names[i]);
        assert_int_equal(file_join(to, sizeof to, folder, names[i], NULL), UTTER_OK);
        assert_int_equal(symlink(from, to), 0);
    }
    if (generation) {
        assert_int_equal(file_join(to, sizeof to, folder, "generation_config.json", NULL), UTTER_OK);
        support_write_file(to, generation, strlen(generation));
    }
}

static void file_has_the_sampling_of_its_folder(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"do_sample\":false,\"temperature\":0.25,\"top_k\":7,\"top_p\":0.5,\"repetition_penalty\":1."
        "5,"
        "\"subtalker_temperature\":0.75,\"subtalker_top_k\":9,\"max_new_tokens\":33}",
        NULL};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char folder[PATH_MAX];
        struct model *from, *file;
        folder_with(folder, texts[i]);
        snprintf(path, sizeof path, "%s", support_path("sampling.safetensors"));
        assert_int_equal(model_open(&from, folder, NULL), UTTER_OK);
        assert_int_equal(model_file_write(from, folder, DTYPE_Q8, path, NULL, NULL), UTTER_OK);
        assert_int_equal(model_open(&file, path, NULL), UTTER_OK);
        const struct config *a = from->config, *b = file->config;
        assert_int_equal(b->max_new_tokens, i == 0 ? 33 : 2048);
        assert_true(b->talker_sampling.temperature == (i == 0 ? 0 : 0.9f));
        assert_true(b->talker_sampling.top_p == a->talker_sampling.top_p);
        assert_true(b->talker_sampling.repetition_penalty == a->talker_sampling.repetition_penalty);
        assert_true(b->predictor_sampling.temperature == (i == 0 ? 0.75f : 0.9f));
        assert_int_equal(b->talker_sampling.top_k, i == 0 ? 7 : 50);
        assert_int_equal(b->predictor_sampling.top_k, i == 0 ? 9 : 50);
        model_close(&from);
        model_close(&file);
    }
}

/* A tensor without elements lies where the next one begins. */
static void empty_tensors_are_not_taken_for_others(void **state)
{
    (void)state;
    char folder[PATH_MAX], to[PATH_MAX];
    struct tensor_set *set;
    struct model *from, *file;
    assert_int_equal(tensor_set_open_folder(&set, CHECKPOINT, NULL), UTTER_OK);
    size_t n = tensor_set_count(set);
    struct tensor *tensors = calloc(2 * n, sizeof *tensors);
    char(*names)[24] = calloc(n, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        tensors[2 * i + 1] = *tensor_set_at(set, i);
        snprintf(names[i], sizeof names[i], "%zu", i);
        tensors[2 * i] = (struct tensor){names[i], tensors[2 * i + 1].type, 1, {0}, NULL, 0};
    }
    folder_with(folder, "{}");
    assert_int_equal(file_join(to, sizeof to, folder, "model.safetensors", NULL), UTTER_OK);
    assert_int_equal(unlink(to), 0);
    assert_int_equal(tensor_file_write(to, tensors, 2 * n, NULL, NULL), UTTER_OK);
    tensor_set_close(&set);
    free(tensors);
    free(names);
    snprintf(path, sizeof path, "%s", support_path("empty.safetensors"));
    assert_int_equal(model_open(&from, folder, NULL), UTTER_OK);
    assert_int_equal(model_file_write(from, folder, DTYPE_Q8, path, NULL, NULL), UTTER_OK);
    assert_int_equal(model_open(&file, path, NULL), UTTER_OK);
    for (int i = 0; i < file->config->talker.n_layers; i++) {
        assert_int_equal(file->talker.stack.layers[i].q.type, DTYPE_Q8);
        assert_int_equal(file->talker.stack.layers[i].down.type, DTYPE_Q8);
    }
    model_close(&from);
    model_close(&file);
}

static void refused(const char *why)
{
    struct model *model;
    utter_error error = {0};
    utter_status status = model_open(&model, path, &error);
    assert_true(status == UTTER_E_FILE || status == UTTER_E_MODEL);
    if (!strstr(error.text, why)) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, why);
    }
    assert_null(model);
}

/* The file with one byte, or one text, in another's place. */
static void change(char *bytes, size_t n, size_t at, const char *text)
{
    size_t length = strlen(text);
    char kept[64];
    memcpy(kept, bytes + at, length);
    memcpy(bytes + at, text, length);
    support_write_file(path, bytes, n);
    memcpy(bytes + at, kept, length);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    size_t n;
    write_file(DTYPE_Q4);
    char *bytes = support_read_file(path, &n);
    assert_non_null(bytes);
    support_write_file(path, bytes, n - 1);
    refused("cut short");
    support_write_file(path, bytes, n / 2);
    refused("cut short");
    for (size_t at = n / 7; at + 1 < n; at += n / 7) {
        char one[2] = {(char)(bytes[at] ^ 4), 0};
        if (one[0]) {
            change(bytes, n, at, one);
            refused("");
        }
    }
    char *version = memmem(bytes, n, "\"version\":\"1\"", 13),
         *format = memmem(bytes, n, "utter model", 11);
    assert_non_null(version);
    assert_non_null(format);
    change(bytes, n, (size_t)(version - bytes) + 11, "7");
    refused(
        "a model file of version 7, and this program reads 1 (it was made by a newer one: update this "
        "program)");
    change(bytes, n, (size_t)(version - bytes) + 11, "0");
    refused("a model file of version 0, and this program reads 1 (make it again)");
    change(bytes, n, (size_t)(format - bytes), "other");
    refused("tensors without a model");
    change(bytes, n, n - 100, "X#");
    refused("seal");
    free(bytes);
}

/* Sealed as it should be, but with the configuration of another model. */
static void weights_of_another_model_are_refused(void **state)
{
    (void)state;
    static const char *const others[] = {
        "build/checkpoints/tiny06-custom_voice", "build/checkpoints/unusual"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct model *model;
        assert_int_equal(model_open(&model, CHECKPOINT, NULL), UTTER_OK);
        assert_int_equal(model_file_write(model, others[i], DTYPE_Q4, path, NULL, NULL), UTTER_OK);
        model_close(&model);
        refused("tensors do not fit");
    }
}

/* A checkpoint with one matrix of a stack in packed blocks among others as they were. */
static void packed_beside_others_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *why;
        enum dtype type;
    } cases[] = {
        {"talker.model.layers.0.self_attn.k_proj.weight", "talker mixes matrices in bf16 and q8",
            DTYPE_Q8},
        {"talker.model.layers.1.mlp.up_proj.weight", "talker mixes matrices in bf16 and q4", DTYPE_Q4},
        {"talker.code_predictor.model.layers.0.self_attn.q_proj.weight",
            "predictor mixes matrices in q4 and bf16", DTYPE_Q4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char folder[PATH_MAX];
        struct tensor_set *set;
        folder_with(folder, "{}");
        assert_int_equal(tensor_set_open_folder(&set, CHECKPOINT, NULL), UTTER_OK);
        size_t n = tensor_set_count(set);
        struct tensor *tensors = calloc(n, sizeof *tensors), *t = NULL;
        for (size_t j = 0; j < n; j++) {
            tensors[j] = *tensor_set_at(set, j);
            t = strcmp(tensors[j].name, cases[i].name) == 0 ? &tensors[j] : t;
        }
        assert_non_null(t);
        size_t block = pack_block_bytes(cases[i].type, t->dims[1]);
        int64_t n_blocks = pack_blocks(t->dims[0]);
        void *packed = calloc((size_t)n_blocks, block);
        *t = (struct tensor){
            t->name, DTYPE_U32, 2, {n_blocks, (int64_t)block / 4}, packed, (size_t)n_blocks * block};
        assert_int_equal(file_join(path, sizeof path, folder, "model.safetensors", NULL), UTTER_OK);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(tensor_file_write(path, tensors, n, NULL, NULL), UTTER_OK);
        snprintf(path, sizeof path, "%s", folder);
        refused(cases[i].why);
        tensor_set_close(&set);
        free(tensors);
        free(packed);
    }
}

static void no_memory_and_no_disk(void **state)
{
    (void)state;
    write_file(DTYPE_Q8);
    char out[512];
    snprintf(out, sizeof out, "%s", support_path("second.safetensors"));
    static const enum support_call calls[] = {SUPPORT_MALLOC, SUPPORT_WRITE, SUPPORT_RENAME};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (long n = 1; n < 400; n += n < 40 ? 1 : 37) {
            struct model *model;
            assert_int_equal(model_open(&model, CHECKPOINT, NULL), UTTER_OK);
            support_fail_at(calls[i], n);
            utter_status status = model_file_write(model, CHECKPOINT, DTYPE_Q8, out, NULL, NULL);
            bool failed = support_failed();
            support_fail_off();
            assert_true(status == UTTER_OK || failed);
            model_close(&model);
            if (!failed) {
                break;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_predictor_is_not_narrowed),
        cmocka_unit_test(file_equals_folder),
        cmocka_unit_test(packing_is_told),
        cmocka_unit_test(file_has_the_sampling_of_its_folder),
        cmocka_unit_test(empty_tensors_are_not_taken_for_others),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(weights_of_another_model_are_refused),
        cmocka_unit_test(packed_beside_others_is_refused),
        cmocka_unit_test(no_memory_and_no_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
