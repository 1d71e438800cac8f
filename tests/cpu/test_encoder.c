/* SPDX-License-Identifier: Apache-2.0
 * Recordings to codes: equal to the official encoder's for every committed recording; and what may not change a
 * code (threads, kernels, what comes later); and requests that are wrong.
 *
 * With two arguments, MODEL and GOLDEN, it compares any golden file of tools/oracle/encode.py and prints. */
#include "cpu/encoders/encoder_parts.h"
#include "cpu/kernels/kern.h"
#include "tests/cpu/listen.h"

#define GOLDEN06 "tests/golden/encode-tiny06.safetensors"
#define GOLDEN17 "tests/golden/encode-tiny17.safetensors"
#define MODEL06 "build/checkpoints/tiny06-base"
#define MODEL17 "build/checkpoints/tiny17-base"

enum { N_CODEBOOKS = 16, FRAME = 1920 };

/* libsoxr adds in the order that suits the processor, and the golden files are of this one: elsewhere the codes alone
 * tell that what it makes is as good. */
#ifdef __x86_64__
static const bool resamples_as_official = true;
#else
static const bool resamples_as_official = false;
#endif

static utter_status encode(
    const struct listener *l, const float *pcm, size_t n, int32_t **codes, size_t *n_frames)
{
    size_t capacity = (n + FRAME - 1) / FRAME;
    *codes = malloc((capacity * N_CODEBOOKS + 1) * sizeof **codes);
    utter_error error;
    utter_status status =
        cpu_backend.encode(l->backend, pcm, n, *codes, capacity, n_frames, NULL, NULL, &error);
    assert_int_equal(*n_frames, status ? 0 : capacity);
    return status;
}

struct tally {
    const struct listener *listener;
    size_t n_cases, n_codes, n_equal, n_same_pcm, n_wrong_pcm, n_bad_frames;
    double seconds;
    bool print;
};

static void compare_case(struct heard_case *c, void *user)
{
    struct tally *tally = user;
    int32_t *codes;
    size_t n_frames, equal = 0;
    assert_int_equal(encode(tally->listener, c->pcm, c->n, &codes, &n_frames), UTTER_OK);
    assert_int_equal(n_frames, c->n_frames);
    for (size_t f = 0; f < n_frames; f++) {
        bool good = true;
        for (size_t i = f * N_CODEBOOKS; i < (f + 1) * N_CODEBOOKS; i++) {
            good = good && codes[i] == heard_code(c, i);
            equal += codes[i] == heard_code(c, i);
        }
        tally->n_bad_frames += !good;
    }
    free(codes);
    if (tally->print || equal < n_frames * N_CODEBOOKS) {
        print_message("%s: %zu of %zu codes equal, %s samples, smallest margin %.3g\n", c->name, equal,
            n_frames * N_CODEBOOKS, c->same_pcm ? "the same" : "other", c->margin);
    }
    tally->n_cases++;
    tally->n_codes += n_frames * N_CODEBOOKS;
    tally->n_equal += equal;
    tally->n_same_pcm += c->same_pcm;
    tally->n_wrong_pcm += !c->same_pcm && (c->portable || resamples_as_official);
    tally->seconds += (double)c->n / LISTEN_RATE;
}

static struct tally compare(const char *folder, const char *golden, const char *kernels, bool print)
{
    struct listener l = listener_open(folder, kernels, 2);
    struct tally tally = {.listener = &l, .print = print};
    each_heard(golden, compare_case, &tally);
    print_message(
        "%s: %zu recordings, %.1f s, %zu of %zu codes equal (%zu frames not), %zu with the same "
        "samples at 24 kHz\n",
        golden, tally.n_cases, tally.seconds, tally.n_equal, tally.n_codes, tally.n_bad_frames,
        tally.n_same_pcm);
    listener_close(&l);
    return tally;
}

static void codes_are_the_official_ones(void **state)
{
    (void)state;
    struct tally t = compare(MODEL06, GOLDEN06, NULL, false);
    assert_int_equal(t.n_equal, t.n_codes);
    assert_int_equal(t.n_wrong_pcm, 0);
    if (LISTEN_LONGEST_S > 60) {
        assert_true(t.n_cases >= 40 && t.seconds >= 490);
    }
}

static void codes_with_every_table(void **state)
{
    static const char *const tables[] = {
        "c", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (kern_find(tables[i])) {
            struct tally t = compare(MODEL17, GOLDEN17, tables[i], false);
            assert_int_equal(t.n_equal, t.n_codes);
        }
    }
}

/* Blocks are cut every 15,360 samples: a recording that ends anywhere has the codes of a longer one, but for the
 * frames that its end reaches into. */
static void the_future_changes_nothing(void **state)
{
    static const size_t ends[] = {1920, 15359, 15360, 15361, 17280, 30720, 30721, 46079, 60000};
    enum { N = 62000 };
    (void)state;
    struct listener l = listener_open(MODEL06, NULL, 2);
    float *pcm = recording_make("speech", 9, LISTEN_RATE, N);
    int32_t *whole, *part;
    size_t n_whole, n_part;
    assert_int_equal(encode(&l, pcm, N, &whole, &n_whole), UTTER_OK);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        assert_int_equal(encode(&l, pcm, ends[i], &part, &n_part), UTTER_OK);
        size_t untouched = ends[i] / FRAME;
        assert_memory_equal(part, whole, untouched * N_CODEBOOKS * sizeof *part);
        free(part);
    }
    free(whole);
    free(pcm);
    listener_close(&l);
}

static void threads_change_nothing(void **state)
{
    enum { N = 50001 };
    (void)state;
    float *pcm = recording_make("music", 2, LISTEN_RATE, N);
    int32_t *first = NULL, *codes;
    size_t n_frames;
    for (int n_threads = 1; n_threads <= 7; n_threads += 2) {
        struct listener l = listener_open(MODEL06, NULL, n_threads);
        assert_int_equal(encode(&l, pcm, N, &codes, &n_frames), UTTER_OK);
        if (first) {
            assert_memory_equal(codes, first, n_frames * N_CODEBOOKS * sizeof *codes);
            free(codes);
        } else {
            first = codes;
        }
        listener_close(&l);
    }
    free(first);
    free(pcm);
}

/* ---- Progress ---- */

struct watch {
    double last;
    int n_calls, stop_at; /* stop_at 0: never */
};

static bool watch_progress(void *user, double done)
{
    struct watch *w = user;
    assert_true(done > w->last && done <= 1);
    w->last = done;
    return ++w->n_calls != w->stop_at;
}

static void progress_and_cancel(void **state)
{
    enum { N = 40000 };
    (void)state;
    struct listener l = listener_open(MODEL06, NULL, 1);
    float *pcm = recording_make("sines", 2, LISTEN_RATE, N);
    int32_t codes[(N / FRAME + 1) * N_CODEBOOKS];
    size_t n_frames;
    struct watch all = {0};
    utter_error error;
    assert_int_equal(cpu_backend.encode(l.backend, pcm, N, codes, N / FRAME + 1, &n_frames,
                         watch_progress, &all, &error),
        UTTER_OK);
    assert_true(all.n_calls > 8 && all.last > 0.999);
    for (int stop = 1; stop <= all.n_calls; stop++) {
        struct watch w = {.stop_at = stop};
        assert_int_equal(cpu_backend.encode(l.backend, pcm, N, codes, N / FRAME + 1, &n_frames,
                             watch_progress, &w, &error),
            UTTER_E_CANCELLED);
        assert_int_equal(n_frames, 0);
        assert_int_equal(w.n_calls, stop);
        assert_non_null(strstr(error.text, "stopped"));
    }
    free(pcm);
    listener_close(&l);
}

/* ---- What is wrong ---- */

static void wrong_requests(void **state)
{
    (void)state;
    struct listener l = listener_open(MODEL06, NULL, 1);
    float pcm[FRAME + 1] = {0};
    int32_t codes[2 * N_CODEBOOKS];
    size_t n_frames = 7;
    utter_error error;
    assert_int_equal(cpu_backend.encode(l.backend, pcm, 0, codes, 2, &n_frames, NULL, NULL, &error),
        UTTER_E_ARGUMENT);
    assert_int_equal(n_frames, 0);
    assert_int_equal(
        cpu_backend.encode(l.backend, pcm, FRAME + 1, codes, 1, &n_frames, NULL, NULL, &error),
        UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "2 frames, room for 1"));
    assert_int_equal(
        cpu_backend.encode(l.backend, pcm, FRAME, codes, 1, &n_frames, NULL, NULL, &error), UTTER_OK);
    pcm[5] = INFINITY; /* what a caller ought not to send ends as an error, not as codes */
    assert_int_equal(cpu_backend.encode(l.backend, pcm, FRAME, codes, 1, &n_frames, NULL, NULL, &error),
        UTTER_E_NUMBER);
    assert_int_equal(n_frames, 0);
    listener_close(&l);
}

static void memory_runs_out(void **state)
{
    (void)state;
    struct listener l = listener_open(MODEL06, NULL, 1);
    float *pcm = recording_make("sines", 2, LISTEN_RATE, 3000);
    int32_t *want, codes[2 * N_CODEBOOKS];
    size_t n_frames;
    assert_int_equal(encode(&l, pcm, 3000, &want, &n_frames), UTTER_OK);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_status status =
            cpu_backend.encode(l.backend, pcm, 3000, codes, 2, &n_frames, NULL, NULL, NULL);
        bool failed = support_failed();
        assert_int_equal(status, failed ? UTTER_E_MEMORY : UTTER_OK);
        if (!failed) {
            assert_memory_equal(codes, want, sizeof codes);
        }
    }
    free(want);
    free(pcm);
    listener_close(&l);
}

/* Small whole numbers, whose sums are exact in any order: each counts once, however many are summed at a time. */
static void squares_are_summed_up(void **state)
{
    enum { MOST = 300 };
    float x[MOST + 1];
    int sum = 0;
    (void)state;
    for (int n = 0; n <= MOST; n++) {
        assert_int_equal((int)encoder_sum_of_squares(x, n), sum);
        const int next = n % 7 - 3;
        x[n] = (float)next;
        sum += next * next;
    }
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        struct tally t = compare(argv[1], argv[2], NULL, true);
        return t.n_equal != t.n_codes;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_the_official_ones),
        cmocka_unit_test(codes_with_every_table),
        cmocka_unit_test(squares_are_summed_up),
        cmocka_unit_test(the_future_changes_nothing),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(progress_and_cancel),
        cmocka_unit_test(wrong_requests),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
