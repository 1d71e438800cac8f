/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints that were made to mislead (crafted_*.h): each gets its verdict, and the reason in one line, in at most
 * ten milliseconds (or five times what a good one takes, where that is more: emulated processors are slow) and with at
 * most two megabytes asked of the heap; so sizes that no memory could hold are refused before memory is taken. Odd ones
 * that are valid open. */
#include "tests/weights/crafted_settings.h"
#include "tests/weights/crafted_shards.h"
#include "tests/weights/crafted_tensors.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "model/model.h"
#include "tests/text/small.h"
#include "weights/safetensors.h"

enum { MOST_HEAP = 2 << 20, TRIES = 5 };

static double most_ms = 10;

static double thread_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int n_wrong;

/* ---- One row: opened by `open`, judged ---- */

struct subject {
    const char *name, *reason; /* NULL: opens */
    /* Opens it and closes it again; what it was made of stands in the fields below. */
    utter_status (*open)(const struct subject *s, utter_error *error);
    const void *data;
    size_t bytes, n_tensors;
};

static void judge(const struct subject *s)
{
    utter_error error = {.text = ""};
    size_t asked = support_bytes();
    double began = thread_ms();
    utter_status status = s->open(s, &error);
    double ms = thread_ms() - began;
    asked = support_bytes() - asked;
    for (int i = 1; i < TRIES && ms > most_ms; i++) { /* a processor's caches are not only ours */
        began = thread_ms();
        s->open(s, NULL);
        ms = thread_ms() - began;
    }
    bool refused = status == UTTER_E_FILE || status == UTTER_E_MODEL;
    bool right = s->reason ? refused && strstr(error.text, s->reason) : status == UTTER_OK;
    bool plain = !strpbrk(error.text, "\n\x1b");
    if (!right || !plain || asked > MOST_HEAP || (ms > most_ms && !SUPPORT_SANITIZED)) {
        print_error("%s: status %d, \"%s\", wanted \"%s\"; %zu bytes of the heap, %.1f ms\n", s->name,
            (int)status, error.text, s->reason ? s->reason : "it opens", asked, ms);
        n_wrong++;
    }
}

/* `text` with `times` times `filler` for its '@'; to be freed. */
static char *expand(const char *text, const char *filler, size_t times)
{
    const char *mark = filler ? strchr(text, '@') : NULL;
    size_t n = mark ? strlen(filler) : 0, head = mark ? (size_t)(mark - text) : strlen(text);
    char *out = malloc(strlen(text) + n * times + 1), *at = out + head;
    assert_non_null(out);
    memcpy(out, text, head);
    for (size_t i = 0; i < times && n; i++, at += n) {
        memcpy(at, filler, n);
    }
    strcpy(at, mark ? mark + 1 : "");
    return out;
}

/* ---- safetensors files ---- */

static utter_status open_tensors(const struct subject *s, utter_error *error)
{
    struct tensor_set *set;
    utter_status status = tensor_set_open_memory(&set, s->data, s->bytes, "crafted", error);
    if (status == UTTER_OK) {
        size_t n_bytes = 0;
        unsigned sum = 0;
        assert_int_equal(tensor_set_count(set), s->n_tensors);
        for (size_t i = 0; i < tensor_set_count(set); i++) {
            const struct tensor *t = tensor_set_at(set, i);
            assert_ptr_equal(tensor_set_find(set, t->name), t);
            for (size_t k = 0; k < t->bytes; k++) {
                sum += ((const uint8_t *)t->data)[k];
            }
            n_bytes += t->bytes;
        }
        assert_int_equal(sum, n_bytes); /* every byte of the data is a one */
    }
    assert_true((status == UTTER_OK) == (set != NULL));
    assert_true(set || !error || strncmp(error->text, "crafted", 7) == 0);
    tensor_set_close(&set);
    return status;
}

static void tensors(void **state)
{
    (void)state;
    n_wrong = 0;
    for (size_t i = 0; i < sizeof crafted_files / sizeof *crafted_files; i++) {
        const struct crafted_file *f = &crafted_files[i];
        char *header = expand(f->header, f->filler, f->times);
        size_t n = strlen(header), padded = f->as_is ? n : (n + 7) & ~(size_t)7;
        uint64_t told = (uint64_t)padded + (uint64_t)f->longer;
        size_t written = 8 + padded + f->data_bytes, bytes = written + f->zeros - f->cut;
        /* Of exactly that size, so that a sanitizer sees every read beyond it. */
        uint8_t *image = memory_new(written, 1), *file = memory_new(bytes, 1);
        assert_non_null(image);
        assert_non_null(file);
        for (int k = 0; k < 8; k++) {
            image[k] = (uint8_t)(told >> 8 * k);
        }
        memset(image + 8, ' ', padded);
        memcpy(image + 8, header, n);
        memset(image + 8 + padded, 1, f->data_bytes);
        memcpy(file, image, min(written, bytes));
        memory_free(image);
        judge(&(struct subject){f->name, f->reason, open_tensors, file, bytes, f->n_tensors});
        memory_free(file);
        free(header);
    }
    assert_int_equal(n_wrong, 0);
}

/* ---- Shards ---- */

/* A file with a tensor of one byte for each letter of `names`, without its last `cut` bytes. */
static void write_shard(const char *path, const char *names, size_t cut)
{
    char header[512];
    uint8_t file[600] = {0};
    size_t n = 0, n_names = strlen(names);
    for (size_t i = 0; i < n_names; i++) {
        n += (size_t)snprintf(header + n, sizeof header - n,
            "%c\"%c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}", i ? ',' : '{',
            names[i], i, i + 1);
    }
    header[n++] = '}';
    file[0] = (uint8_t)n;
    file[1] = (uint8_t)(n >> 8);
    memcpy(file + 8, header, n);
    support_write_file(path, file, 8 + n + n_names - cut);
}

static void make_shards(void)
{
    static const char hole[] =
        "\x35\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}..";
    assert_int_equal(mkdir(support_path("shards"), 0700), 0);
    write_shard(support_path("shards/one"), "abc", 0);
    write_shard(support_path("shards/two"), "de", 0);
    write_shard(support_path("shards/copy"), "bcd", 0);
    write_shard(support_path("shards/cut"), "de", 1);
    support_write_file(support_path("shards/hole"), hole, sizeof hole - 1);
    support_write_file(support_path("shards/empty"), "", 0);
    small_write("shards/text", "This is no safetensors file.\n");
    assert_int_equal(mkdir(support_path("shards/folder"), 0700), 0);
    assert_int_equal(mkfifo(support_path("shards/pipe"), 0600), 0);
    assert_int_equal(symlink("two", support_path("shards/linked")), 0);
    assert_int_equal(symlink("loop", support_path("shards/loop")), 0);
}

static utter_status open_folder(const struct subject *s, utter_error *error)
{
    struct tensor_set *set;
    utter_status status = tensor_set_open_folder(&set, s->data, error);
    assert_true((status == UTTER_OK) == (set != NULL));
    tensor_set_close(&set);
    return status;
}

static void shards(void **state)
{
    (void)state;
    make_shards();
    n_wrong = 0;
    for (size_t i = 0; i < sizeof crafted_indexes / sizeof *crafted_indexes; i++) {
        const struct crafted_index *x = &crafted_indexes[i];
        char *text = expand(x->text, x->filler, x->times);
        small_write("shards/model.safetensors.index.json", text);
        judge(&(struct subject){x->name, x->reason, open_folder, support_path("shards"), 0, 0});
        free(text);
    }
    assert_int_equal(n_wrong, 0);
}

/* ---- Config and tokenizer files ---- */

/* The file of the row as `good` makes it, changed, at `path`. */
static void write_settings(const struct crafted_settings *c, const char *good, const char *path)
{
    char *text = strdup(good);
    for (int i = 0; i < 4 && c->edits[i].to; i++) {
        const char *from = c->edits[i].from;
        char *to = expand(c->edits[i].to, c->filler, c->times), *at = from ? strstr(text, from) : text;
        if (!at) {
            fail_msg("%s: no %s in the file", c->name, from);
        }
        size_t head = (size_t)(at - text), behind = from ? head + strlen(from) : strlen(text);
        char *changed = malloc(head + strlen(to) + strlen(text + behind) + 1);
        assert_non_null(changed);
        memcpy(changed, text, head);
        strcpy(changed + head, to);
        strcat(changed + head, text + behind);
        free(text);
        free(to);
        text = changed;
    }
    support_write_file(path, text, strlen(text));
    free(text);
}

#define CHECKPOINT "build/checkpoints/tiny06-base"

/* A folder with links to the files of the good checkpoint. */
static void link_checkpoint(void)
{
    static const char *const files[] = {
        CONFIG, GENERATION, "model.safetensors", CODEC, "speech_tokenizer/model.safetensors"};
    mkdir(support_path("settings"), 0700);
    mkdir(support_path("settings/speech_tokenizer"), 0700);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[100], good[100], *whole;
        snprintf(name, sizeof name, "settings/%s", files[i]);
        snprintf(good, sizeof good, CHECKPOINT "/%s", files[i]);
        whole = realpath(good, NULL);
        assert_non_null(whole);
        unlink(support_path(name));
        assert_int_equal(symlink(whole, support_path(name)), 0);
        free(whole);
    }
}

/* Each row's file in place of the good checkpoint's. */
static void judge_settings(const struct crafted_settings *rows, size_t n,
    utter_status (*open)(const struct subject *s, utter_error *error))
{
    char name[100], good[100];
    n_wrong = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes;
        link_checkpoint();
        snprintf(name, sizeof name, "settings/%s", rows[i].file);
        snprintf(good, sizeof good, CHECKPOINT "/%s", rows[i].file);
        char *text = support_read_file(good, &bytes);
        assert_non_null(text);
        write_settings(&rows[i], text, support_path(name));
        judge(&(struct subject){rows[i].name, rows[i].reason, open, support_path("settings"), 0, 0});
        free(text);
    }
    assert_int_equal(n_wrong, 0);
}

static utter_status open_config(const struct subject *s, utter_error *error)
{
    struct config *config;
    utter_status status = config_open(&config, s->data, error);
    assert_true((status == UTTER_OK) == (config != NULL));
    config_close(&config);
    return status;
}

static void configs(void **state)
{
    (void)state;
    judge_settings(crafted_configs, sizeof crafted_configs / sizeof *crafted_configs, open_config);
}

static utter_status open_model(const struct subject *s, utter_error *error)
{
    struct model *model;
    utter_status status = model_open(&model, s->data, error);
    assert_true((status == UTTER_OK) == (model != NULL));
    model_close(&model);
    return status;
}

static void sizes(void **state)
{
    (void)state;
    judge_settings(crafted_sizes, sizeof crafted_sizes / sizeof *crafted_sizes, open_model);
}

static utter_status open_tokenizer(const struct subject *s, utter_error *error)
{
    struct tokenizer *tokenizer;
    utter_status status = tokenizer_open(&tokenizer, s->data, file_read, PRETOKENIZER_MISTRAL, error);
    assert_true((status == UTTER_OK) == (tokenizer != NULL));
    tokenizer_close(&tokenizer);
    return status;
}

static void tokenizers(void **state)
{
    (void)state;
    n_wrong = 0;
    for (size_t i = 0; i < sizeof crafted_tokenizers / sizeof *crafted_tokenizers; i++) {
        const struct crafted_settings *c = &crafted_tokenizers[i];
        size_t bytes;
        small_files();
        char *good = support_read_file(support_path(c->file), &bytes);
        assert_non_null(good);
        write_settings(c, good, support_path(c->file));
        judge(&(struct subject){c->name, c->reason, open_tokenizer, support_folder(), 0, 0});
        free(good);
    }
    assert_int_equal(n_wrong, 0);
}

static void allow_for_slow_processor(void)
{
    double least = INFINITY;
    for (int i = 0; i < TRIES; i++) {
        const double began = thread_ms();
        const struct subject good = {.data = CHECKPOINT};
        if (open_model(&good, NULL) != UTTER_OK) {
            return; /* the rows will tell */
        }
        least = min(least, thread_ms() - began);
    }
    most_ms = max(most_ms, 5 * least);
}

int main(void)
{
    json_object_seed(1); /* else jansson asks the system for one within the first row */
    allow_for_slow_processor();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors),
        cmocka_unit_test(shards),
        cmocka_unit_test(configs),
        cmocka_unit_test(sizes),
        cmocka_unit_test(tokenizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
