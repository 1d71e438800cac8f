/* SPDX-License-Identifier: Apache-2.0
 * Snapshots behind the door on the CPU: a lane that goes on from one cannot be told from a lane that never stopped. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cpu/backend_run.h"

enum { N_KNOWN = 40 }; /* frames that the vocoder has seen before: more than one call takes */

/* Everything that comes out of a lane: codes, samples, in the order of the frames. */
struct heard {
    int32_t codes[N_FRAMES * MAX_CODEBOOKS];
    float *pcm; /* [N_FRAMES * frame_samples] */
};

static void prime(struct backend *b, const struct config *c, int lane)
{
    int32_t codes[BACKEND_MAX_FEED * MAX_CODEBOOKS];
    for (int at = 0, n; at < N_KNOWN; at += n) {
        n = N_KNOWN - at < BACKEND_MAX_FEED ? N_KNOWN - at : BACKEND_MAX_FEED;
        for (int i = 0; i < n * c->n_codebooks; i++) {
            codes[i] = (at * 7 + i * 3) % c->predictor_vocabulary;
        }
        assert_int_equal(cpu->feed(b, lane, codes, n, NULL), UTTER_OK);
        assert_int_equal(cpu->vocode(b, &lane, 1, NULL), UTTER_OK);
    }
}

/* The codes that prime() gives the vocoder, all of them. */
static int32_t *known_codes(const struct config *c, int n_frames)
{
    int32_t *codes = calloc((size_t)(n_frames * c->n_codebooks), sizeof *codes);
    for (int i = 0; i < n_frames * c->n_codebooks; i++) {
        codes[i] = (i * 31 + i / 7) % c->predictor_vocabulary;
    }
    return codes;
}

static struct heard go_on(struct backend *b, const struct config *c, int lane)
{
    size_t frame_samples = (size_t)c->codec.frame_samples;
    struct heard h = {.pcm = calloc(N_FRAMES * frame_samples, sizeof(float))};
    for (int t = 0; t < N_FRAMES; t++) {
        struct frame_in in = {lane, text_of(c, 0, t), NULL};
        struct lane_out out;
        assert_int_equal(cpu->frame(b, &in, 1, NULL), UTTER_OK);
        assert_int_equal(cpu->vocode(b, &lane, 1, NULL), UTTER_OK);
        assert_int_equal(cpu->collect(b, lane, &out, NULL), UTTER_OK);
        assert_int_equal(out.n_samples, frame_samples);
        memcpy(h.codes + t * c->n_codebooks, out.codes, (size_t)c->n_codebooks * sizeof *out.codes);
        memcpy(h.pcm + (size_t)t * frame_samples, out.pcm, frame_samples * sizeof(float));
    }
    return h;
}

static void same(const struct config *c, const struct heard *a, const struct heard *b)
{
    assert_memory_equal(a->codes, b->codes, (size_t)(N_FRAMES * c->n_codebooks) * sizeof *a->codes);
    assert_memory_equal(a->pcm, b->pcm, N_FRAMES * (size_t)c->codec.frame_samples * sizeof *a->pcm);
}

/* Rows all at once, kept after `kept` of them; then another lane resumes and takes the rest. */
static void keep_and_resume(int kept, bool vocoder)
{
    struct model *model = open_model(MODEL);
    const struct config *c = model->config;
    struct backend *b = open_backend(model, 2, 2);
    struct backend_snapshot *snapshot = NULL;
    struct row rows[N_ROWS];
    make_rows(c, 0, rows, N_ROWS);
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    if (vocoder) {
        prime(b, c, 0);
    }
    assert_int_equal(cpu->prefill(b, 0, rows, N_ROWS, NULL), UTTER_OK);
    assert_int_equal(cpu->lane_keep(b, 0, kept, vocoder, &snapshot, NULL), UTTER_OK);
    struct heard first = go_on(b, c, 0), second;
    /* The lane that resumes has spoken before: nothing of that is left. */
    start(b, c, 1, 1);
    second = go_on(b, c, 1);
    free(second.pcm);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(cpu->lane_reset(b, 1, &SETTINGS, NULL), UTTER_OK);
        assert_int_equal(cpu->lane_resume(b, 1, snapshot, NULL), UTTER_OK);
        assert_int_equal(cpu->prefill(b, 1, rows + kept, N_ROWS - kept, NULL), UTTER_OK);
        second = go_on(b, c, 1);
        same(c, &first, &second);
        free(second.pcm);
    }
    free(first.pcm);
    cpu->snapshot_free(b, &snapshot);
    assert_null(snapshot);
    cpu->snapshot_free(b, &snapshot);
    cpu->close(&b);
    model_close(&model);
}

static void test_rows(void **state)
{
    (void)state;
    keep_and_resume(1, false);
    keep_and_resume(N_ROWS - 1, false);
}

static void test_rows_and_vocoder(void **state)
{
    (void)state;
    keep_and_resume(70, true);
}

/* The vocoder's state is that of a lane that made all the samples, for few frames and many, and for a second piece. */
static void prime_and_compare(struct model *model, int longest)
{
    static const int lengths[] = {1, 2, 3, 4, 5, 6, 9, 33, 75, 110};
    const struct config *c = model->config;
    struct backend *b = open_backend(model, 2, 2);
    const size_t n_lengths = sizeof lengths / sizeof *lengths, step = SUPPORT_SANITIZED ? 3 : 1;
    for (size_t i = 0; i < n_lengths && lengths[i] <= longest; i += step) {
        int32_t *codes = known_codes(c, lengths[i]);
        for (int piece = 0; piece < 2; piece++) {
            for (int lane = 0; lane < 2 && piece == 0; lane++) {
                start(b, c, lane, 0);
            }
            for (int at = 0, n; at < lengths[i]; at += n) {
                int one = 0;
                n = lengths[i] - at < BACKEND_MAX_FEED ? lengths[i] - at : BACKEND_MAX_FEED;
                assert_int_equal(cpu->feed(b, 0, codes + at * c->n_codebooks, n, NULL), UTTER_OK);
                assert_int_equal(cpu->vocode(b, &one, 1, NULL), UTTER_OK);
            }
            assert_int_equal(cpu->prime(b, 1, codes, lengths[i], NULL), UTTER_OK);
        }
        struct heard wanted = go_on(b, c, 0), have = go_on(b, c, 1);
        same(c, &wanted, &have);
        free(wanted.pcm);
        free(have.pcm);
        free(codes);
    }
    int32_t bad[MAX_CODEBOOKS] = {-1};
    assert_int_equal(cpu->prime(b, 2, bad, 1, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->prime(b, 0, bad, 1, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->prime(b, 0, bad, 0, NULL), UTTER_E_ARGUMENT);
    cpu->close(&b);
    model_close(&model);
}

static void test_prime(void **state)
{
    (void)state;
    prime_and_compare(open_model(MODEL), SUPPORT_SANITIZED ? 33 : 110);
}

/* Beside packed weights the vocoder keeps other pasts. */
static void test_prime_packed(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    assert_int_equal(model_pack(model, DTYPE_Q8, 1, NULL), UTTER_OK);
    prime_and_compare(model, SUPPORT_SANITIZED ? 4 : 110);
}

static void test_wrong_requests(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    struct backend *b = open_backend(model, 2, 1);
    struct backend_snapshot *snapshot = NULL, *none;
    utter_error error;
    start(b, model->config, 0, 0);
    assert_int_equal(cpu->lane_keep(b, 2, 1, false, &none, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->lane_keep(b, 0, 0, false, &none, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->lane_keep(b, 0, N_ROWS + 1, false, &none, &error), UTTER_E_ARGUMENT);
    char said[100];
    snprintf(
        said, sizeof said, "a snapshot of %d rows: the lane has %d, and 0 frames", N_ROWS + 1, N_ROWS);
    assert_string_equal(error.text, said);
    assert_null(none);
    assert_int_equal(cpu->lane_keep(b, 0, N_ROWS, false, &snapshot, NULL), UTTER_OK);
    assert_int_equal(cpu->lane_resume(b, 2, snapshot, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->lane_resume(b, 0, snapshot, NULL), UTTER_E_ARGUMENT); /* not empty */
    struct heard h = go_on(b, model->config, 0);
    free(h.pcm);
    assert_int_equal(cpu->lane_keep(b, 0, 1, false, &none, NULL), UTTER_E_ARGUMENT); /* has frames */
    start(b, model->config, 1, 0);
    support_fail_malloc_at(1);
    assert_int_equal(cpu->lane_keep(b, 1, 10, true, &none, NULL), UTTER_E_MEMORY);
    support_fail_off();
    assert_null(none);
    cpu->snapshot_free(b, &snapshot);
    cpu->close(&b);
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rows_and_vocoder),
        cmocka_unit_test(test_prime),
        cmocka_unit_test(test_prime_packed),
        cmocka_unit_test(test_wrong_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
