/* SPDX-License-Identifier: Apache-2.0
 * Checkpoint folders: what opens, and what is said when one does not. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "model/model_parts.h"

#define CHECKPOINT "build/checkpoints/tiny17-custom_voice"

/* What a model owns takes what it is asked for and little more, is zero, and is listed however much there is. */
static void what_is_owned_takes_its_own_bytes(void **state)
{
    (void)state;
    enum { N = 300, BYTES = 10000, LITTLE = 256 }; /* the list has room for 256 at first */
    struct model m = {0};
    for (int i = 0; i < N; i++) {
        const bool grows = m.n_owned == m.owned_capacity;
        const size_t before = support_bytes();
        char *block = model_own(&m, BYTES);
        assert_non_null(block);
        assert_true(grows || support_bytes() - before <= BYTES + LITTLE);
        assert_int_equal(block[0] | block[BYTES - 1], 0);
        assert_int_equal(m.n_owned, i + 1);
        assert_ptr_equal(m.owned[i], block);
    }
    assert_int_equal(m.owned_capacity, 512);
    support_fail_malloc_at(1);
    assert_null(model_own(&m, BYTES));
    support_fail_off();
    assert_int_equal(m.n_owned, N);
    for (int i = 0; i < N; i++) {
        memory_free(m.owned[i]);
    }
    memory_free(m.owned);
}

/* The list's own memory may lack too. */
static void an_owner_without_a_list_owns_nothing(void **state)
{
    (void)state;
    for (int n = 1; n <= 2; n++) {
        struct model m = {0};
        struct model_bind mb = {.model = &m};
        support_fail_malloc_at(n);
        assert_null(model_new(&mb, 10, 4));
        support_fail_off();
        assert_true(mb.out_of_memory);
        assert_int_equal(m.n_owned, 0);
        memory_free(m.owned);
    }
}

static void every_variant_opens(void **state)
{
    static const char *const names[] = {"tiny06-base", "tiny06-custom_voice", "tiny06-voice_design",
        "tiny17-base", "tiny17-custom_voice", "tiny17-voice_design", "fine-tuned", "sharded",
        "unusual"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        struct model *model;
        utter_error error = {0};
        snprintf(path, sizeof path, "build/checkpoints/%s", names[i]);
        utter_status status = model_open(&model, path, &error);
        assert_string_equal(error.text, "");
        assert_int_equal(status, UTTER_OK);
        assert_int_equal(model->predictor.projection.data != NULL,
            model->config->predictor.width != model->config->talker.width);
        model_close(&model);
    }
}

static void geometry_comes_from_the_files(void **state)
{
    struct model *model;
    (void)state;
    assert_int_equal(model_open(&model, "build/checkpoints/unusual", NULL), UTTER_OK);
    const struct config *c = model->config;
    assert_int_equal(c->n_codebooks, 8);
    assert_int_equal(c->codec.codebook_size, 32);
    assert_int_equal(c->talker.n_layers, 3);
    assert_int_equal(c->talker.head, 20);
    assert_int_equal(c->talker.n_kv_heads, 1);
    assert_int_equal(c->codec.stack.window, 9);
    assert_int_equal(model->talker.stack.layers[2].q.rows, c->talker.n_heads * 20);
    assert_int_equal(model->talker.stack.layers[2].k.rows, 20);
    assert_int_equal(c->codec.frame_samples, 1920);
    model_close(&model);
}

/* Counted by a program of its own from the heads of the files and the shapes of the matrices. */
static void what_a_frame_reads_is_counted(void **state)
{
    static const struct {
        const char *path;
        uint64_t talker, predictor, vocoder, all, talker_bytes, predictor_bytes, vocoder_bytes;
    } known[] = {
        {"build/checkpoints/tiny06-custom_voice", 320304, 209344, 195593, 832587, 360448, 2703360,
            704548},
        {"build/checkpoints/tiny17-custom_voice", 483824, 246272, 195593, 1033035, 614400, 2887680,
            704548},
        {"build/checkpoints/unusual", 305292, 60192, 124187, 579609, 352512, 506240, 478828},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct model *m;
        assert_int_equal(model_open(&m, known[i].path, NULL), UTTER_OK);
        assert_int_equal(m->talker_parameters, known[i].talker);
        assert_int_equal(m->predictor_parameters, known[i].predictor);
        assert_int_equal(m->vocoder_parameters, known[i].vocoder);
        assert_int_equal(m->all_parameters, known[i].all);
        assert_int_equal(m->talker_frame_bytes, known[i].talker_bytes);
        assert_int_equal(m->predictor_frame_bytes, known[i].predictor_bytes);
        assert_int_equal(m->vocoder_frame_bytes, known[i].vocoder_bytes);
        model_shorten_sound(m); /* two bytes a value, where there were four */
        assert_int_equal(m->vocoder_frame_bytes, known[i].vocoder_bytes / 2);
        assert_int_equal(m->talker_frame_bytes, known[i].talker_bytes);
        model_close(&m);
    }
}

/* ---- Damaged folders: a copy of a good one with one file changed ---- */

static const char *const FILES[] = {"config.json", "generation_config.json", "model.safetensors",
    "speech_tokenizer/config.json", "speech_tokenizer/model.safetensors"};

static void copy_checkpoint(const char *to)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf %s && cp -r " CHECKPOINT " %s", to, to);
    assert_int_equal(system(command), 0);
}

/* Replaces the first `from` in a file with `to`. */
static void replace_in(const char *path, const char *from, const char *to)
{
    size_t bytes;
    char *text = support_read_file(path, &bytes);
    char *at = text ? memmem(text, bytes, from, strlen(from)) : NULL;
    assert_non_null(at);
    char *changed = malloc(bytes + strlen(to) + 1);
    size_t head = (size_t)(at - text);
    memcpy(changed, text, head);
    memcpy(changed + head, to, strlen(to));
    memcpy(changed + head + strlen(to), at + strlen(from), bytes - head - strlen(from));
    support_write_file(path, changed, bytes - strlen(from) + strlen(to));
    free(text);
    free(changed);
}

static void refused(
    const char *file, const char *from, const char *to, utter_status want, const char *say)
{
    char path[512];
    utter_error error = {0};
    struct model *model;
    const char *folder = support_path("damaged");
    copy_checkpoint(folder);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    replace_in(path, from, to);
    utter_status status = model_open(&model, folder, &error);
    if (status != want || !strstr(error.text, say)) {
        fail_msg("%s: \"%s\" -> \"%s\": status %d: %s (wanted %d: %s)", file, from, to, status,
            error.text, want, say);
    }
    assert_null(model);
}

static void wrong_configs_are_named(void **state)
{
    (void)state;
    refused("config.json", "\"model_type\": \"qwen3_tts\"", "\"model_type\": \"llama\"", UTTER_E_MODEL,
        "llama");
    refused("config.json", "\"custom_voice\"", "\"singing\"", UTTER_E_MODEL, "singing");
    refused("config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 5", UTTER_E_MODEL,
        "5 heads");
    refused("config.json", "\"head_dim\": 32", "\"head_dim\": 33", UTTER_E_MODEL, "odd");
    refused("config.json", "\"hidden_size\": 96", "\"hidden_size\": 999999999", UTTER_E_FILE,
        "hidden_size");
    refused("config.json", "\"hidden_size\": 96", "\"hidden_size\": -1", UTTER_E_FILE, "hidden_size");
    refused("config.json", "\"hidden_size\": 96,", "", UTTER_E_FILE, "hidden_size");
    refused("config.json", "\"codec_eos_token_id\": 166", "\"codec_eos_token_id\": 1088", UTTER_E_FILE,
        "codec_eos_token_id");
    refused("config.json", "\"serena\": 1082", "\"serena\": 4000", UTTER_E_MODEL, "serena");
    refused("config.json", "\"eric\": \"sichuan_dialect\"", "\"eric\": \"klingon\"", UTTER_E_MODEL,
        "klingon");
    refused("config.json", "{", "[", UTTER_E_FILE, "config.json");
    refused("config.json", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"", UTTER_E_MODEL,
        "talker_config: another kind of hidden_act");
    refused("config.json", "\"attention_bias\": false", "\"attention_bias\": true", UTTER_E_MODEL,
        "attention_bias");
    refused("config.json", "\"use_sliding_window\": false", "\"use_sliding_window\": true",
        UTTER_E_MODEL, "use_sliding_window");
    refused("config.json", "\"rope_scaling\": null", "\"rope_scaling\": 4", UTTER_E_MODEL,
        "code_predictor_config: another kind of rope_scaling");
    refused("config.json", "\"rope_type\": \"default\"", "\"rope_type\": \"yarn\"", UTTER_E_MODEL,
        "talker_config: another kind of rope_scaling");
    refused("speech_tokenizer/config.json", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu\"",
        UTTER_E_MODEL, "hidden_act");
    refused("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", UTTER_E_MODEL,
        "layers.1.input_layernorm.weight: more layers than the 1 that the config says");
    refused("speech_tokenizer/config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1",
        UTTER_E_MODEL, "more layers than the 1");
    refused("generation_config.json", "0.9", "-1", UTTER_E_FILE, "temperature");
    refused("speech_tokenizer/config.json", "\"num_quantizers\": 16", "\"num_quantizers\": 12",
        UTTER_E_MODEL, "codebooks");
    refused("speech_tokenizer/config.json", "\"decode_upsample_rate\": 1920",
        "\"decode_upsample_rate\": 2000", UTTER_E_MODEL, "decode_upsample_rate");
}

static void generation_is_an_object(void **state)
{
    utter_error error = {0};
    struct model *model;
    const char *folder = support_path("listed");
    char path[512];
    (void)state;
    copy_checkpoint(folder);
    snprintf(path, sizeof path, "%s/generation_config.json", folder);
    support_write_file(path, "[]", 2);
    assert_int_equal(model_open(&model, folder, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "generation_config.json is not an object"));
}

static void every_misfit_is_reported_together(void **state)
{
    utter_error error = {0};
    struct model *model;
    const char *folder = support_path("misfit");
    char path[512];
    (void)state;
    copy_checkpoint(folder);
    snprintf(path, sizeof path, "%s/config.json", folder);
    replace_in(path, "\"intermediate_size\": 224", "\"intermediate_size\": 225");
    assert_int_equal(model_open(&model, folder, &error), UTTER_E_MODEL);
    assert_non_null(strstr(error.text, "6 tensors"));
    assert_non_null(strstr(error.text, "talker.model.layers.0.mlp.gate_proj.weight"));
    assert_non_null(strstr(error.text, "talker.model.layers.1.mlp.down_proj.weight"));
    assert_non_null(strstr(error.text, "225"));
    assert_non_null(strstr(error.text, "224"));
}

/* What the official package needs only to train, and the encoder's quantizers that make no code of a model. */
static bool is_of_no_use(const char *name)
{
    enum { N_ACOUSTIC = 15 };
    static const char layers[] = "encoder.quantizer.acoustic_residual_vector_quantizer.layers.";
    const size_t n = sizeof layers - 1;
    return strstr(name, ".initialized") ||
           (strncmp(name, "decoder.quantizer.", 18) == 0 && strstr(name, ".input_proj.")) ||
           (strncmp(name, "encoder.quantizer.", 18) == 0 && strstr(name, ".output_proj.")) ||
           (strncmp(name, layers, n) == 0 && atoi(name + n) >= N_ACOUSTIC);
}

/* A file in which every tensor has another name: as many are missed as it has of use. */
static void every_tensor_is_asked_for(void **state)
{
    static const struct {
        const char *folder, *file;
    } cases[] = {{"build/checkpoints/tiny17-base", "model.safetensors"},
        {"build/checkpoints/tiny17-base/speech_tokenizer", "speech_tokenizer/model.safetensors"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = support_path("renamed");
        char command[512], path[512], wanted[128];
        struct tensor_set *set;
        struct model *model;
        utter_error error = {0};
        snprintf(command, sizeof command, "rm -rf %s && cp -r build/checkpoints/tiny17-base %s", folder,
            folder);
        assert_int_equal(system(command), 0);
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].file);
        assert_int_equal(tensor_set_open_folder(&set, cases[i].folder, NULL), UTTER_OK);
        const size_t n = tensor_set_count(set);
        struct tensor *tensors = calloc(n, sizeof *tensors);
        char(*names)[128] = calloc(n, sizeof *names);
        size_t n_asked = 0;
        for (size_t k = 0; k < n; k++) {
            tensors[k] = *tensor_set_at(set, k);
            n_asked += !is_of_no_use(tensors[k].name);
            snprintf(names[k], sizeof names[k], "%s'", tensors[k].name);
            tensors[k].name = names[k];
        }
        assert_int_equal(tensor_file_write(path, tensors, n, NULL, NULL), UTTER_OK);
        assert_int_equal(model_open(&model, folder, &error), UTTER_E_MODEL);
        snprintf(wanted, sizeof wanted, "%s: %zu tensors do not fit: ", cases[i].file, n_asked);
        if (strncmp(error.text, wanted, strlen(wanted)) != 0) {
            fail_msg("\"%s\" is not \"%s\"", error.text, wanted);
        }
        tensor_set_close(&set);
        free(tensors);
        free(names);
    }
}

static void missing_files_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        char path[512];
        utter_error error = {0};
        struct model *model;
        const char *folder = support_path("missing");
        copy_checkpoint(folder);
        snprintf(path, sizeof path, "%s/%s", folder, FILES[i]);
        assert_int_equal(remove(path), 0);
        utter_status status = model_open(&model, folder, &error);
        if (strcmp(FILES[i], "generation_config.json") == 0) { /* the official package can do without */
            assert_int_equal(status, UTTER_OK);
            assert_int_equal(model->config->max_new_tokens, 2048);
            model_close(&model);
            continue;
        }
        assert_int_equal(status, UTTER_E_FILE);
        const char *slash = strrchr(FILES[i], '/');
        if (!strstr(error.text, slash ? slash + 1 : FILES[i])) {
            fail_msg("%s: %s", FILES[i], error.text);
        }
    }
    struct model *model;
    assert_int_equal(model_open(&model, "build", NULL), UTTER_E_FILE);
    assert_int_equal(model_open(&model, "Makefile", NULL), UTTER_E_FILE);
    assert_int_equal(model_open(&model, "/nowhere", NULL), UTTER_E_FILE);
}

/* Every early call fails once, then ever fewer of the many thousand: most are the same few of the JSON reader. */
static void failing_calls_leak_nothing(void **state)
{
    (void)state;
    for (int call = SUPPORT_MALLOC; call <= SUPPORT_READ; call++) {
        bool failed = true;
        for (long n = 1; failed; n += 1 + n / 16) {
            struct model *model;
            utter_error error = {0};
            support_fail_at((enum support_call)call, n);
            utter_status status = model_open(&model, CHECKPOINT, &error);
            failed = support_failed();
            support_fail_off();
            assert_int_equal(status == UTTER_OK, model != NULL);
            if (status != UTTER_OK) {
                assert_true(error.text[0] != 0);
            }
            model_close(&model);
        }
    }
}

static void a_row_is_read_in_every_type(void **state)
{
    static const uint16_t bf16[] = {0x3f80, 0xc000, 0x0001}, f16[] = {0x3c00, 0xc000, 0x0001};
    static const float f32[] = {1, -2, 0.5f};
    float row[3];
    (void)state;
    weight_row(&(struct weight){bf16, DTYPE_BF16, 1, 3}, 0, row);
    assert_true(row[0] == 1 && row[1] == -2 && row[2] > 0 && row[2] < 1e-38f);
    weight_row(&(struct weight){f16, DTYPE_F16, 1, 3}, 0, row);
    assert_true(row[0] == 1 && row[1] == -2 && row[2] == 0x1p-24f);
    weight_row(&(struct weight){f32, DTYPE_F32, 1, 3}, 0, row);
    assert_true(row[0] == 1 && row[1] == -2 && row[2] == 0.5f);
    enum { COLS = 64 };
    float full[2][COLS], back[COLS];
    char *block = malloc(pack_block_bytes(DTYPE_Q8, COLS));
    for (int i = 0; i < 2 * COLS; i++) {
        full[i / COLS][i % COLS] = (float)i / (2 * COLS);
    }
    pack_block(block, DTYPE_Q8, full[0], 2, COLS);
    weight_row(&(struct weight){block, DTYPE_Q8, 2, COLS}, 1, back);
    for (int i = 0; i < COLS; i++) {
        assert_true(back[i] > full[1][i] - 0.01f && back[i] < full[1][i] + 0.01f);
    }
    free(block);
}

/* Whether row i of two matrices is the same, but for what 8 bits cannot tell. */
static bool rows_alike(const struct weight *one, const struct weight *other, int64_t i)
{
    float row[2][8192], most = 0;
    assert_true(one->rows == other->rows && one->cols == other->cols && one->cols <= 8192);
    weight_row(one, i, row[0]);
    weight_row(other, i, row[1]);
    for (int64_t k = 0; k < one->cols; k++) {
        most = fmaxf(most, fabsf(row[1][k]));
    }
    for (int64_t k = 0; k < one->cols; k++) {
        if (!(fabsf(row[0][k] - row[1][k]) <= 0.01f * most)) {
            return false;
        }
    }
    return true;
}

static void each_matrix_is_packed_for_itself(void **state)
{
    (void)state;
    struct model *packed, *plain;
    struct weight **list[2];
    int n[2], n_narrow;
    assert_int_equal(model_open(&packed, CHECKPOINT, NULL), UTTER_OK);
    assert_int_equal(model_open(&plain, CHECKPOINT, NULL), UTTER_OK);
    assert_int_equal(model_packable(packed, &list[0], &n[0], &n_narrow, NULL), UTTER_OK);
    assert_int_equal(model_packable(plain, &list[1], &n[1], &n_narrow, NULL), UTTER_OK);
    assert_int_equal(model_pack(packed, DTYPE_Q8, 2, NULL), UTTER_OK);
    assert_int_equal(n[0], n[1]);
    for (int i = 0; i < n[0]; i++) {
        assert_int_equal(list[0][i]->type, DTYPE_Q8);
        assert_true(rows_alike(list[0][i], list[1][i], 0));
        assert_true(rows_alike(list[0][i], list[1][i], list[0][i]->rows - 1));
    }
    memory_free(list[0]);
    memory_free(list[1]);
    model_close(&packed);
    model_close(&plain);
}

/* The last 1,024 ids of the talker's table, as far as there are so many, and what the codec lacks. */
static void ids_that_are_never_chosen(void **state)
{
    static const int cases[][3] = {
        {3072, 2048, 2048}, {2500, 2048, 1476}, {4096, 2048, 2048}, {1000, 64, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct config c = {.codec_vocabulary = cases[i][0], .predictor_vocabulary = cases[i][1]};
        assert_int_equal(config_suppress_from(&c), cases[i][2]);
    }
}

/* Also where it is missing for the list of what the model owns: whoever binds on must know. */
static void missing_memory_is_noted(void **state)
{
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct model model = {.n_owned = 0};
        struct model_bind mb = {.model = &model};
        void *block = model_new(&mb, 1, 1);
        assert_int_equal(mb.out_of_memory, support_failed());
        assert_int_equal(block == NULL, support_failed());
        memory_free(block);
        memory_free(model.owned);
    }
}

static void small_numbers_fit_f16(void **state)
{
    const float most = 65000, values[] = {1, -most, most}, above[] = {1, nextafterf(most, 1e9f)},
                below[] = {nextafterf(-most, -1e9f), 1};
    (void)state;
    assert_true(values_fit_f16(values, 3));
    assert_false(values_fit_f16(above, 2));
    assert_true(values_fit_f16(above, 1));
    assert_false(values_fit_f16(below, 2));
}

/* What was learnt of heads is kept by the matrices that make them: each of them counts, and each in its place. */
static void heads_are_known_by_their_matrices(void **state)
{
    (void)state;
    struct model *m, *other;
    assert_int_equal(model_open(&m, "build/checkpoints/tiny17-custom_voice", NULL), UTTER_OK);
    assert_int_equal(model_open(&other, "build/checkpoints/tiny06-base", NULL), UTTER_OK);
    const uint64_t known = model_heads_fingerprint(m);
    assert_int_equal(model_heads_fingerprint(m), known);
    assert_true(model_heads_fingerprint(other) != known);
    const int n_layers = m->config->talker.n_layers;
    for (int i = 0; i < 2 * n_layers; i++) {
        struct layer_weights *l = &m->talker.stack.layers[i / 2];
        struct weight *w = i % 2 ? &l->k : &l->q, right = *w;
        void *wrong = calloc(1, matrix_bytes(w));
        w->data = wrong;
        assert_true(model_heads_fingerprint(m) != known);
        *w = right;
        free(wrong);
    }
    assert_int_equal(model_heads_fingerprint(m), known);
    model_close(&other);
    model_close(&m);
}

/* Voices keep the codec's fingerprint, and models on other machines must find it again: the hash XXH64 of the first
 * table, begun with 0. */
static void a_codec_is_known_by_its_first_table(void **state)
{
    static const char *const paths[] = {CHECKPOINT, "build/checkpoints/unusual"};
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct model *m;
        assert_int_equal(model_open(&m, paths[i], NULL), UTTER_OK);
        const struct weight *table = &m->vocoder.table_sum[0];
        assert_int_equal(table->rows, m->config->codec.codebook_size);
        assert_true(m->codec_fingerprint == XXH64(table->data, matrix_bytes(table), 0));
        model_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_owned_takes_its_own_bytes),
        cmocka_unit_test(an_owner_without_a_list_owns_nothing),
        cmocka_unit_test(every_variant_opens),
        cmocka_unit_test(geometry_comes_from_the_files),
        cmocka_unit_test(what_a_frame_reads_is_counted),
        cmocka_unit_test(wrong_configs_are_named),
        cmocka_unit_test(generation_is_an_object),
        cmocka_unit_test(every_misfit_is_reported_together),
        cmocka_unit_test(every_tensor_is_asked_for),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(failing_calls_leak_nothing),
        cmocka_unit_test(missing_memory_is_noted),
        cmocka_unit_test(small_numbers_fit_f16),
        cmocka_unit_test(a_row_is_read_in_every_type),
        cmocka_unit_test(each_matrix_is_packed_for_itself),
        cmocka_unit_test(ids_that_are_never_chosen),
        cmocka_unit_test(heads_are_known_by_their_matrices),
        cmocka_unit_test(a_codec_is_known_by_its_first_table),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
