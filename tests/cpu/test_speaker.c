/* SPDX-License-Identifier: Apache-2.0
 * Recordings to x-vectors: the official ones but for rounding; and requests that are wrong.
 *
 * With two arguments, MODEL and GOLDEN, it compares any golden file of tools/oracle/encode.py and prints. */
#include "audio/mel.h"
#include "cpu/kernels/kern.h"
#include "tests/cpu/listen.h"

#define GOLDEN06 "tests/golden/encode-tiny06.safetensors"
#define GOLDEN17 "tests/golden/encode-tiny17.safetensors"
#define MODEL06 "build/checkpoints/tiny06-base"
#define MODEL17 "build/checkpoints/tiny17-base"

static const double least_cosine = 0.99999, largest_error = 1e-4;

struct tally {
    const struct listener *listener;
    size_t n_cases;
    double cosine, error; /* the worst of all */
    bool print;
};

static void compare_case(struct heard_case *c, void *user)
{
    struct tally *tally = user;
    float *mels;
    size_t n_mels;
    if (!c->vector) {
        assert_true(c->n < MEL_MIN_SAMPLES);
        assert_int_equal(mel_features(&mels, &n_mels, c->pcm, c->n, NULL), UTTER_E_ARGUMENT);
        assert_null(mels);
        return;
    }
    int64_t width = c->vector->dims[0];
    const float *want = c->vector->data;
    float *have = malloc((size_t)width * sizeof *have);
    assert_int_equal(width, tally->listener->model->config->speaker_width);
    assert_int_equal(mel_features(&mels, &n_mels, c->pcm, c->n, NULL), UTTER_OK);
    assert_int_equal(n_mels, c->n / MEL_HOP);
    assert_int_equal(cpu_backend.speaker(tally->listener->backend, mels, n_mels, have, NULL), UTTER_OK);
    double both = 0, a = 0, b = 0, error = 0, largest = 0;
    for (int64_t i = 0; i < width; i++) {
        both += (double)have[i] * (double)want[i];
        a += (double)have[i] * (double)have[i];
        b += (double)want[i] * (double)want[i];
        error = fmax(error, fabs((double)have[i] - (double)want[i]));
        largest = fmax(largest, fabs((double)want[i]));
    }
    double cosine = both / sqrt(a * b);
    error /= largest;
    if (tally->print || cosine < least_cosine || error > largest_error) {
        print_message("%s: 1 - cosine %.2g, largest error %.2g of the largest value\n", c->name,
            1 - cosine, error);
    }
    tally->n_cases++;
    tally->cosine = fmin(tally->cosine, cosine);
    tally->error = fmax(tally->error, error);
    memory_free(mels);
    free(have);
}

static bool compare(const char *folder, const char *golden, const char *kernels, bool print)
{
    struct listener l = listener_open(folder, kernels, 2);
    struct tally tally = {.listener = &l, .cosine = 1, .print = print};
    each_heard(golden, compare_case, &tally);
    print_message("%s: %zu recordings, at worst 1 - cosine %.2g, error %.2g of the largest value\n",
        golden, tally.n_cases, 1 - tally.cosine, tally.error);
    listener_close(&l);
    return tally.n_cases > 0 && tally.cosine >= least_cosine && tally.error <= largest_error;
}

static void vectors_are_the_official_ones(void **state)
{
    (void)state;
    assert_true(compare(MODEL06, GOLDEN06, NULL, false));
}

static void vectors_with_every_table(void **state)
{
    static const char *const tables[] = {
        "c", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (kern_find(tables[i])) {
            assert_true(compare(MODEL17, GOLDEN17, tables[i], false));
        }
    }
}

static void threads_change_nothing(void **state)
{
    enum { N = 30001 };
    (void)state;
    float *pcm = recording_make("speech", 2, LISTEN_RATE, N), *mels, first[64], vector[64];
    size_t n_mels;
    assert_int_equal(mel_features(&mels, &n_mels, pcm, N, NULL), UTTER_OK);
    for (int n_threads = 1; n_threads <= 7; n_threads += 2) {
        struct listener l = listener_open(MODEL06, NULL, n_threads);
        assert_int_equal(l.model->config->speaker_width, 64);
        assert_int_equal(cpu_backend.speaker(l.backend, mels, n_mels, vector, NULL), UTTER_OK);
        if (n_threads == 1) {
            memcpy(first, vector, sizeof first);
        }
        assert_memory_equal(first, vector, sizeof first);
        listener_close(&l);
    }
    memory_free(mels);
    free(pcm);
}

static void wrong_requests(void **state)
{
    (void)state;
    float mels[5 * MEL_BANDS] = {0}, vector[96];
    utter_error error;
    struct listener base = listener_open(MODEL06, NULL, 1);
    assert_int_equal(cpu_backend.speaker(base.backend, mels, 5, vector, &error), UTTER_OK);
    assert_int_equal(cpu_backend.speaker(base.backend, mels, 4, vector, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "4 feature frames is too short"));
    assert_int_equal(cpu_backend.speaker(base.backend, mels, 0, vector, &error), UTTER_E_ARGUMENT);
    mels[7] = NAN;
    assert_int_equal(cpu_backend.speaker(base.backend, mels, 5, vector, &error), UTTER_E_NUMBER);
    listener_close(&base);
    static const char *const without[] = {"tiny17-custom_voice", "tiny17-voice_design", "fine-tuned"};
    for (int i = 0; i < 3; i++) {
        char folder[64];
        snprintf(folder, sizeof folder, "build/checkpoints/%s", without[i]);
        struct listener l = listener_open(folder, NULL, 1);
        assert_int_equal(cpu_backend.speaker(l.backend, mels, 5, vector, &error), UTTER_E_MODEL);
        assert_non_null(strstr(error.text, "Base"));
        listener_close(&l);
    }
}

static void memory_runs_out(void **state)
{
    (void)state;
    struct listener l = listener_open(MODEL06, NULL, 1);
    float *pcm = recording_make("sines", 2, LISTEN_RATE, 2000), vector[64];
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        float *mels;
        size_t n_mels;
        utter_status status = mel_features(&mels, &n_mels, pcm, 2000, NULL);
        if (!status) {
            status = cpu_backend.speaker(l.backend, mels, n_mels, vector, NULL);
        }
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        memory_free(mels);
    }
    free(pcm);
    listener_close(&l);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        return !compare(argv[1], argv[2], NULL, true);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_the_official_ones),
        cmocka_unit_test(vectors_with_every_table),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(wrong_requests),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
