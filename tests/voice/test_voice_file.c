/* SPDX-License-Identifier: Apache-2.0
 * Voice files: what is written is read, every damage is refused, a failed write or a crash leaves the
 * old file or the new one. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/heap.h"
#include "voice/voice_file.h"
#include "weights/safetensors.h"

enum { WIDTH = 6, FRAMES = 3, BOOKS = 4 };
static const float vector[WIDTH] = {0.5f, -1, 2, 3, 4, 5};
/* The first number is none when it is read as a float, which it is not, though it stands behind those of the vector. */
static const int32_t codes[FRAMES * BOOKS] = {0x7fc00000, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static utter_voice *make(bool context)
{
    utter_voice *voice;
    assert_int_equal(voice_new_clone(&voice, "Ada \xc3\xa9", vector, WIDTH, context ? codes : NULL,
                         context ? FRAMES : 0, context ? BOOKS : 0,
                         context ? "What I said, \"quoted\"." : NULL, NULL),
        UTTER_OK);
    voice->codec = context ? 0x0123456789abcdefu : 0;
    assert_int_equal(voice_describe(voice, "english", "ada.wav, 0.2 s", NULL), UTTER_OK);
    return voice;
}

static void what_is_saved_is_loaded(void **state)
{
    const char *path = support_path("a.voice");
    (void)state;
    for (int context = 0; context < 2; context++) {
        utter_voice *voice = make(context), *again;
        assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
        assert_int_equal(voice_load(&again, path, NULL), UTTER_OK);
        assert_string_equal(again->name, voice->name);
        assert_string_equal(again->language, "english");
        assert_string_equal(again->provenance, "ada.wav, 0.2 s");
        assert_int_equal(again->kind, context ? VOICE_CONTEXT : VOICE_VECTOR);
        assert_int_equal(again->width, WIDTH);
        assert_memory_equal(again->vector, vector, sizeof vector);
        assert_int_equal(again->codec, voice->codec);
        if (context) {
            assert_int_equal(again->n_frames, FRAMES);
            assert_int_equal(again->n_codebooks, BOOKS);
            assert_memory_equal(again->codes, codes, sizeof codes);
            assert_string_equal(again->transcript, voice->transcript);
        }
        voice_free(&voice);
        voice_free(&again);
    }
}

/* As docs/voices.md describes it, for other programs. */
static void a_file_holds_what_is_documented(void **state)
{
    static const char *const keys[] = {
        "utter_voice", "name", "language", "provenance", "codec", "transcript"};
    static const char *const values[2][6] = {
        {"1", "Ada \xc3\xa9", "auto", "", "0000000000000000", NULL},
        {"1", "Ada \xc3\xa9", "english", "ada.wav, 0.2 s", "0123456789abcdef",
            "What I said, \"quoted\"."}};
    const char *path = support_path("documented.voice");
    (void)state;
    for (int context = 0; context < 2; context++) {
        utter_voice *voice = make(context), *again;
        struct tensor_set *set;
        if (!context) {
            memory_free(voice->language);
            memory_free(voice->provenance);
            voice->language = voice->provenance = NULL;
        }
        assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
        assert_int_equal(tensor_set_open_file(&set, path, NULL), UTTER_OK);
        assert_int_equal(tensor_set_count(set), context ? 2 : 1);
        for (int i = 0; i < 6; i++) {
            const char *value = tensor_set_metadata(set, keys[i]);
            assert_int_equal(value != NULL, values[context][i] != NULL);
            assert_string_equal(value ? value : "", values[context][i] ? values[context][i] : "");
        }
        const struct tensor *x = tensor_set_find(set, "x_vector"), *c = tensor_set_find(set, "codes");
        assert_true(x->type == DTYPE_F32 && x->n_dims == 1 && x->dims[0] == WIDTH);
        assert_memory_equal(x->data, vector, sizeof vector);
        assert_int_equal(c != NULL, context);
        if (c) {
            assert_true(
                c->type == DTYPE_I32 && c->n_dims == 2 && c->dims[0] == FRAMES && c->dims[1] == BOOKS);
            assert_memory_equal(c->data, codes, sizeof codes);
        }
        tensor_set_close(&set);
        /* What was not said stays unsaid. */
        assert_int_equal(voice_load(&again, path, NULL), UTTER_OK);
        assert_int_equal(again->language != NULL, context);
        assert_int_equal(again->provenance != NULL, context);
        voice_free(&again);
        voice_free(&voice);
    }
}

static void a_preset_is_not_saved(void **state)
{
    static char name[] = "ryan";
    static const struct utter_voice preset = {.n_users = 1, .name = name, .kind = VOICE_PRESET};
    const char *path = support_path("preset.voice");
    utter_error error = {0};
    (void)state;
    assert_int_equal(voice_save(&preset, path, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the preset voice \"ryan\" lives in its model and cannot be saved");
    assert_int_not_equal(access(path, F_OK), 0);
}

static void refused(const char *path, const char *data, size_t bytes, const char *what, size_t at)
{
    utter_voice *voice;
    utter_error error = {0};
    support_write_file(path, data, bytes);
    if (voice_load(&voice, path, &error) != UTTER_E_FILE || voice || !strstr(error.text, path)) {
        fail_msg("%s %zu: %s", what, at, error.text);
    }
}

static void every_damage_is_refused_by_name(void **state)
{
    const char *path = support_path("b.voice");
    utter_voice *voice = make(true);
    size_t bytes;
    (void)state;
    assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
    char *data = support_read_file(path, &bytes);
    assert_non_null(data);
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        data[bit / 8] ^= (char)(1 << bit % 8);
        refused(path, data, bytes, "flipped bit", bit);
        data[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t n = 0; n < bytes; n++) {
        refused(path, data, n, "cut at", n);
    }
    support_write_file(path, data, bytes);
    utter_voice *again;
    assert_int_equal(voice_load(&again, path, NULL), UTTER_OK);
    voice_free(&again);
    voice_free(&voice);
    free(data);
}

static void other_files_are_no_voices(void **state)
{
    utter_voice *voice;
    utter_error error;
    (void)state;
    assert_int_equal(voice_load(&voice, "Makefile", &error), UTTER_E_FILE);
    assert_int_equal(
        voice_load(&voice, "build/checkpoints/tiny17-base/model.safetensors", &error), UTTER_E_FILE);
    assert_int_equal(voice_load(&voice, "/nowhere.voice", &error), UTTER_E_FILE);
    const char *path = support_path("newer.voice");
    static const char *const versions[] = {"2", "20", "0", "", "x", "1.5", "01"};
    struct tensor t = {"x_vector", DTYPE_F32, 1, {WIDTH}, vector, sizeof vector};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        const char *metadata[] = {
            "utter_voice", versions[i], "hash", "0000000000000000", "name", "x", NULL};
        assert_int_equal(tensor_file_write(path, &t, 1, metadata, NULL), UTTER_OK);
        assert_int_equal(voice_load(&voice, path, &error), UTTER_E_FILE);
        char text[5000];
        snprintf(text, sizeof text, "%s: voice format \"%s\", and this program knows 1 (%s)", path,
            versions[i], i < 2 ? "it was made by a newer one: update utter" : "clone it again");
        assert_string_equal(error.text, text);
    }
    const char *metadata[] = {"hash", "0000000000000000", "name", "x", NULL};
    char text[5000];
    assert_int_equal(tensor_file_write(path, &t, 1, metadata, NULL), UTTER_OK);
    assert_int_equal(voice_load(&voice, path, &error), UTTER_E_FILE);
    snprintf(text, sizeof text, "%s: not a usable voice file: it holds no voice", path);
    assert_string_equal(error.text, text);
}

static void refused_for(const char *path, const char *reason, const utter_error *error)
{
    char text[5000];
    snprintf(text, sizeof text, "%s: not a usable voice file: %s", path, reason);
    assert_string_equal(error->text, text);
}

/* A sound seal around what no voice can be. */
static void what_cannot_be_a_voice_is_refused_by_name(void **state)
{
    const char *path = support_path("blank.voice");
    utter_voice *voice = make(true);
    utter_error error = {0};
    (void)state;
    memset(voice->transcript, ' ', strlen(voice->transcript));
    assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
    voice_free(&voice);
    assert_int_equal(voice_load(&voice, path, &error), UTTER_E_FILE);
    assert_null(voice);
    refused_for(path, "a voice with codes needs the transcript of its recording", &error);
}

/* Without it, codes of another codec would be spoken as noise. */
static void codes_name_their_codec(void **state)
{
    const char *path = support_path("whose.voice");
    static const char *const codecs[] = {
        NULL, "", "0123456789abcde", "0123456789abcdeg", "0123456789abcdef"};
    int32_t pair[2] = {1, 2};
    struct tensor t[] = {{"x_vector", DTYPE_F32, 1, {WIDTH}, vector, sizeof vector},
        {"codes", DTYPE_I32, 2, {1, 2}, pair, sizeof pair}};
    (void)state;
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        utter_voice *voice;
        utter_error error = {0};
        const char *metadata[] = {"utter_voice", "1", "hash", "0000000000000000", "name", "x",
            "transcript", "hello", codecs[i] ? "codec" : NULL, codecs[i], NULL};
        const bool good = i + 1 == sizeof codecs / sizeof *codecs;
        assert_int_equal(tensor_file_write(path, t, 2, metadata, NULL), UTTER_OK);
        assert_int_equal(voice_load(&voice, path, &error), good ? UTTER_OK : UTTER_E_FILE);
        if (!good) {
            refused_for(path, "it does not say which codec made its codes", &error);
        }
        voice_free(&voice);
    }
}

/* A name, and a row of numbers that has from 1 to as many as any model may be wide. */
static void an_x_vector_has_a_shape(void **state)
{
    enum { MOST = 1 << 16 };
    static float values[MOST + 1];
    static const struct {
        const char *tensor, *name;
        enum dtype type;
        int n_dims;
        int64_t dims[2];
        float last; /* of the numbers */
        bool good;
    } cases[] = {{"x_vector", "x", DTYPE_F32, 1, {MOST}, 1, true},
        {"x_vector", "x", DTYPE_F32, 1, {1}, 1, true},
        {"x_vector", "x", DTYPE_F32, 1, {MOST + 1}, 1, false},
        {"x_vector", "x", DTYPE_F32, 1, {0}, 0, false},
        {"x_vector", "x", DTYPE_F32, 2, {1, 3}, 1, false},
        {"x_vector", "x", DTYPE_I32, 1, {3}, 1, false}, {"x_vector", NULL, DTYPE_F32, 1, {3}, 1, false},
        {"y_vector", "x", DTYPE_F32, 1, {3}, 1, false},
        {"x_vector", "x", DTYPE_F32, 1, {3}, INFINITY, false},
        {"x_vector", "x", DTYPE_F32, 1, {1}, NAN, false}};
    const char *path = support_path("vector.voice");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_voice *voice;
        utter_error error = {0};
        const size_t n = (size_t)(cases[i].dims[0] * (cases[i].n_dims > 1 ? cases[i].dims[1] : 1));
        struct tensor t = {cases[i].tensor, cases[i].type, cases[i].n_dims,
            {cases[i].dims[0], cases[i].dims[1]}, values, n * sizeof *values};
        const char *metadata[] = {"utter_voice", "1", "hash", "0000000000000000",
            cases[i].name ? "name" : NULL, cases[i].name, NULL};
        values[n ? n - 1 : 0] = cases[i].last;
        assert_int_equal(tensor_file_write(path, &t, 1, metadata, NULL), UTTER_OK);
        assert_int_equal(voice_load(&voice, path, &error), cases[i].good ? UTTER_OK : UTTER_E_FILE);
        if (!cases[i].good) {
            refused_for(path, "its name or its x-vector is missing or wrong", &error);
        }
        if (cases[i].good) { /* what is for people may be missing */
            assert_int_equal(voice->width, n);
            assert_true(voice->vector[n - 1] == 1);
            assert_true(!voice->language && !voice->provenance && voice->codec == 0);
        }
        values[n ? n - 1 : 0] = 0;
        voice_free(&voice);
    }
}

/* A frame has from 1 code to as many as a codec may have; and there is a transcript beside codes. */
static void codes_have_a_shape(void **state)
{
    enum { MOST = 1 << 16 }; /* frames */
    static const int32_t some[MOST + 1];
    static const struct {
        enum dtype type;
        int n_dims;
        int64_t dims[2];
        const char *transcript;
        bool good;
    } cases[] = {{DTYPE_I32, 2, {1, CONFIG_MAX_CODEBOOKS}, "hello", true},
        {DTYPE_I32, 2, {1, CONFIG_MAX_CODEBOOKS}, NULL, false},
        {DTYPE_I32, 2, {1, CONFIG_MAX_CODEBOOKS + 1}, "hello", false},
        {DTYPE_I32, 2, {1, 0}, "hello", false}, {DTYPE_I32, 2, {0, 1}, "hello", false},
        {DTYPE_I32, 1, {2}, "hello", false}, {DTYPE_F32, 2, {1, 2}, "hello", false},
        {DTYPE_I32, 2, {MOST, 1}, "hello", true}, {DTYPE_I32, 2, {MOST + 1, 1}, "hello", false}};
    const char *path = support_path("shape.voice");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_voice *voice;
        utter_error error = {0};
        const int64_t n = cases[i].dims[0] * (cases[i].n_dims > 1 ? cases[i].dims[1] : 1);
        struct tensor t[] = {{"x_vector", DTYPE_F32, 1, {WIDTH}, vector, sizeof vector},
            {"codes", cases[i].type, cases[i].n_dims, {cases[i].dims[0], cases[i].dims[1]}, some,
                (size_t)n * sizeof *some}};
        const char *metadata[] = {"utter_voice", "1", "hash", "0000000000000000", "name", "x", "codec",
            "0123456789abcdef", cases[i].transcript ? "transcript" : NULL, cases[i].transcript, NULL};
        assert_int_equal(tensor_file_write(path, t, 2, metadata, NULL), UTTER_OK);
        assert_int_equal(voice_load(&voice, path, &error), cases[i].good ? UTTER_OK : UTTER_E_FILE);
        if (!cases[i].good) {
            refused_for(path, "its codes or its transcript are missing or wrong", &error);
        }
        assert_int_equal(voice ? voice->n_frames : 0, cases[i].good ? cases[i].dims[0] : 0);
        assert_int_equal(voice ? voice->n_codebooks : 0, cases[i].good ? cases[i].dims[1] : 0);
        voice_free(&voice);
    }
}

/* Nothing is left of a voice whose file cannot be read to its end. */
static void memory_that_is_missing_is_told(void **state)
{
    const char *path = support_path("memory.voice");
    utter_voice *voice = make(true);
    (void)state;
    assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
    voice_free(&voice);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        const utter_status status = voice_load(&voice, path, NULL);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(voice != NULL, status == UTTER_OK);
        voice_free(&voice);
    }
}

static void save_named(const char *path, size_t n)
{
    utter_voice *voice = make(false);
    memory_free(voice->name);
    voice->name = memory_new(n + 1, 1);
    memset(voice->name, 'x', n);
    assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
    voice_free(&voice);
}

/* A megabyte is not too much, and what is more is. With the 8 bytes in front of them headers end at every 64th byte. */
static void a_header_is_read_up_to_a_megabyte(void **state)
{
    enum { MOST = (1 << 20) - 8 };
    const char *path = support_path("header.voice");
    utter_voice *voice;
    utter_error error = {0};
    size_t bytes;
    uint64_t header;
    (void)state;
    save_named(path, 1000);
    char *data = support_read_file(path, &bytes);
    memcpy(&header, data, sizeof header);
    free(data);
    const size_t n = (size_t)(MOST - (header - 1000));
    save_named(path, n);
    assert_int_equal(voice_load(&voice, path, &error), UTTER_OK);
    assert_int_equal(strlen(voice->name), n);
    voice_free(&voice);
    save_named(path, n + 64);
    assert_int_equal(voice_load(&voice, path, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "its header is too large"));
}

/* A header that would take a hundred times its size in memory is not read. */
static void a_large_header_is_refused(void **state)
{
    enum { NAME = 2 << 20 };
    const char *path = support_path("large.voice");
    utter_voice *voice = make(false);
    utter_error error = {0};
    (void)state;
    memory_free(voice->name);
    voice->name = memory_new(NAME, 1);
    memset(voice->name, 'x', NAME - 1);
    assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
    voice_free(&voice);
    assert_int_equal(voice_load(&voice, path, &error), UTTER_E_FILE);
    assert_ptr_equal(strstr(error.text, path), error.text);
    assert_non_null(strstr(error.text, "its header is too large"));
}

/* Nobody waits until gigabytes are hashed. */
static void a_large_file_is_refused(void **state)
{
    const char *path = support_path("huge.voice");
    char why[512];
    utter_voice *voice = make(false);
    utter_error error = {0};
    (void)state;
    assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
    voice_free(&voice);
    snprintf(why, sizeof why, "%s: not a usable voice file: it is larger than any voice", path);
    assert_int_equal(truncate(path, (off_t)8 << 30), 0);
    assert_int_equal(voice_load(&voice, path, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, why));
    assert_int_equal(truncate(path, (64 << 20) + 1), 0);
    assert_int_equal(voice_load(&voice, path, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "larger than any voice"));
    assert_int_equal(truncate(path, 64 << 20), 0);
    assert_int_equal(voice_load(&voice, path, &error), UTTER_E_FILE);
    assert_null(strstr(error.text, "larger than any voice"));
    unlink(path);
}

/* Under renames, what was checked must be what is read. */
static void a_file_is_opened_once(void **state)
{
    const char *path = support_path("once.voice");
    utter_voice *voice = make(true);
    (void)state;
    assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
    voice_free(&voice);
    support_fail_at(SUPPORT_OPEN, 2);
    assert_int_equal(voice_load(&voice, path, NULL), UTTER_OK);
    assert_false(support_failed());
    support_fail_off();
    voice_free(&voice);
}

static const char *shrinking;

static void shrink(void)
{
    assert_int_equal(truncate(shrinking, 100), 0);
}

/* At whatever moment: half a voice is none. */
static void a_file_that_shrinks_meanwhile_is_refused(void **state)
{
    const char *path = shrinking = support_path("shrinking.voice");
    utter_voice *voice = make(true), *again;
    (void)state;
    support_leave_sigbus();
    bool shrunk = true;
    for (long n = 1; shrunk; n++) {
        utter_error error = {0};
        assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
        support_happens_at(SUPPORT_MALLOC, n, shrink);
        utter_status status = voice_load(&again, path, &error);
        shrunk = support_failed();
        support_fail_off();
        assert_int_equal(status, shrunk ? UTTER_E_FILE : UTTER_OK);
        assert_int_equal(again != NULL, !shrunk);
        assert_int_equal(error.text[0] != 0, shrunk);
        voice_free(&again);
    }
    voice_free(&voice);
}

/* Whether it is taken or not. */
static void a_load_leaves_nothing_behind(void **state)
{
    enum { N = 100 };
    const char *path = support_path("heap.voice");
    utter_voice *voice = make(true), *again;
    size_t bytes, used = 0;
    (void)state;
    assert_int_equal(voice_save(voice, path, NULL), UTTER_OK);
    voice_free(&voice);
    char *data = support_read_file(path, &bytes);
    for (int i = 0; i < N; i++) { /* the first ones may fill what stays for all */
        used = i == N / 5 ? heap_used() : used;
        data[30] ^= i % 2 ? 1 : 0;
        support_write_file(path, data, bytes);
        data[30] ^= i % 2 ? 1 : 0;
        assert_int_equal(voice_load(&again, path, NULL), i % 2 ? UTTER_E_FILE : UTTER_OK);
        voice_free(&again);
        const char *metadata[] = {"utter_voice", "1", "hash", "0000000000000000", NULL};
        struct tensor t = {"x_vector", DTYPE_F32, 1, {WIDTH}, vector, sizeof vector};
        assert_int_equal(tensor_file_write(path, &t, 1, metadata, NULL), UTTER_OK); /* it has no name */
        assert_int_equal(voice_load(&again, path, NULL), UTTER_E_FILE);
    }
    assert_true(heap_used() < used + 80 * N); /* the heap keeps small pieces for itself */
    free(data);
}

static void a_failed_write_leaves_the_old_file(void **state)
{
    const char *path = support_path("c.voice");
    utter_voice *old = make(false), *voice = make(true), *again;
    (void)state;
    static const enum support_call calls[] = {
        SUPPORT_MALLOC, SUPPORT_OPEN, SUPPORT_WRITE, SUPPORT_FSYNC, SUPPORT_RENAME};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        bool failed = true;
        for (long n = 1; failed; n++) {
            assert_int_equal(voice_save(old, path, NULL), UTTER_OK);
            support_fail_at(calls[i], n);
            utter_status status = voice_save(voice, path, NULL);
            failed = support_failed();
            support_fail_off();
            assert_int_equal(voice_load(&again, path, NULL), UTTER_OK);
            assert_int_equal(again->kind, status == UTTER_OK ? VOICE_CONTEXT : VOICE_VECTOR);
            voice_free(&again);
        }
    }
    voice_free(&old);
    voice_free(&voice);
}

/* Killed at each call that touches the file, with many small writes: a reader finds the old voice or the new one. */
static void a_crash_leaves_the_old_file_or_the_new(void **state)
{
    const char *path = support_path("d.voice");
    utter_voice *old = make(false), *voice = make(true), *again;
    int n_old = 0, n_new = 0;
    (void)state;
    static const enum support_call calls[] = {
        SUPPORT_OPEN, SUPPORT_WRITE, SUPPORT_FSYNC, SUPPORT_RENAME};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int ended = -1;
        for (long n = 1; ended != 0; n++) {
            assert_int_equal(voice_save(old, path, NULL), UTTER_OK);
            pid_t child = fork();
            if (child == 0) {
                support_short_io(16);
                support_crash_at(calls[i], n);
                _exit(voice_save(voice, path, NULL) == UTTER_OK ? 0 : 3);
            }
            assert_int_equal(waitpid(child, &ended, 0), child);
            assert_true(ended == 0 || (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL));
            assert_int_equal(voice_load(&again, path, NULL), UTTER_OK);
            assert_true(ended != 0 || again->kind == VOICE_CONTEXT);
            n_old += again->kind == VOICE_VECTOR;
            n_new += again->kind == VOICE_CONTEXT;
            voice_free(&again);
        }
    }
    /* The folder is synced behind the rename: a crash there finds the new file. */
    assert_true(n_old > 20 && n_new > 4);
    voice_free(&old);
    voice_free(&voice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(a_file_holds_what_is_documented),
        cmocka_unit_test(a_preset_is_not_saved),
        cmocka_unit_test(every_damage_is_refused_by_name),
        cmocka_unit_test(other_files_are_no_voices),
        cmocka_unit_test(what_cannot_be_a_voice_is_refused_by_name),
        cmocka_unit_test(codes_name_their_codec),
        cmocka_unit_test(an_x_vector_has_a_shape),
        cmocka_unit_test(codes_have_a_shape),
        cmocka_unit_test(memory_that_is_missing_is_told),
        cmocka_unit_test(a_header_is_read_up_to_a_megabyte),
        cmocka_unit_test(a_large_header_is_refused),
        cmocka_unit_test(a_large_file_is_refused),
        cmocka_unit_test(a_file_is_opened_once),
        cmocka_unit_test(a_file_that_shrinks_meanwhile_is_refused),
        cmocka_unit_test(a_load_leaves_nothing_behind),
        cmocka_unit_test(a_failed_write_leaves_the_old_file),
        cmocka_unit_test(a_crash_leaves_the_old_file_or_the_new),
    };
    return cmocka_run_group_tests_name("voice files", tests, NULL, NULL);
}
