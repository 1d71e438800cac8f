/* SPDX-License-Identifier: Apache-2.0
 * The vocoder with groups that lie by time steps, as the table on tiles has them, on any machine: tiles in plain C. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "cpu/vocoder/vocoder.h"
#include "tests/cpu/random.h"
#include "tests/cpu/tile_emulation.h"
#include "tests/support.h"

enum { FRAMES = SUPPORT_SANITIZED ? 2 : 3 };

/* FRAMES frames of random codes in calls of `step`, by a vocoder of `kern`; samples that the caller frees. What a tap
 * sees of the stages goes to *seen: the sum of magnitudes. */
struct spoken {
    float *pcm;
    int64_t n;
    double seen;
};

static void see(void *user, const char *name, int index, const float *x, int64_t rows, int64_t cols)
{
    (void)name, (void)index;
    for (int64_t i = 0; i < rows * cols; i++) {
        *(double *)user += fabs((double)x[i]);
    }
}

static struct spoken speak(
    const char *folder, enum dtype type, const struct kern *kern, int n_threads, int step)
{
    struct model *model;
    struct cpu_vocoder *vocoder;
    struct pool *pool = pool_new(n_threads);
    struct random random = {3, 0};
    struct spoken spoken = {0};
    struct cpu_tap tap = {see, &spoken.seen};
    assert_int_equal(model_open(&model, folder, NULL), UTTER_OK);
    if (pack_is(type)) {
        assert_int_equal(model_pack(model, type, 1, NULL), UTTER_OK);
    }
    assert_int_equal(cpu_vocoder_open(&vocoder, model, kern, pool, NULL), UTTER_OK);
    struct cpu_vocoder_lane *lane = cpu_vocoder_lane_new(vocoder);
    const struct codec_config *codec = &model->config->codec;
    int32_t *codes = malloc(sizeof *codes * (size_t)(FRAMES * codec->n_codebooks));
    for (int i = 0; i < FRAMES * codec->n_codebooks; i++) {
        codes[i] = (int32_t)(random_word(&random) % (uint32_t)codec->codebook_size);
    }
    spoken.n = (int64_t)FRAMES * codec->frame_samples;
    spoken.pcm = malloc((size_t)spoken.n * sizeof *spoken.pcm);
    for (int t = 0; t < FRAMES; t += step) {
        int n = FRAMES - t < step ? FRAMES - t : step;
        assert_true(cpu_vocoder_run(vocoder, lane, codes + t * codec->n_codebooks, n,
            spoken.pcm + (int64_t)t * codec->frame_samples, &tap));
    }
    free(codes);
    cpu_vocoder_lane_free(lane);
    cpu_vocoder_close(&vocoder);
    model_close(&model);
    pool_free(pool);
    return spoken;
}

/* The trained voice on tiles against floats, and what a tap saw on the way. */
static void tiles_sound_the_same(void **state)
{
    (void)state;
    struct spoken exact = speak("voice/builtin", DTYPE_BF16, kern_find("c"), 2, FRAMES);
    struct spoken tiles = speak("voice/builtin", DTYPE_Q8, &tiles_emulated, 2, FRAMES);
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < exact.n; i++) {
        double off = (double)tiles.pcm[i] - (double)exact.pcm[i];
        signal += (double)exact.pcm[i] * (double)exact.pcm[i];
        noise += off * off;
    }
    assert_true(signal > 0 && noise > 0);
    /* 49.5 dB are measured over 60 frames; the official package in bf16 has 31 (docs/log/packed-weights.md). */
    assert_true(10 * log10(signal / noise) > 48);
    assert_true(fabs(tiles.seen / exact.seen - 1) < 1e-3);
    free(exact.pcm);
    free(tiles.pcm);
}

/* However the frames are cut, on any number of threads, in a shape whose groups are not full. */
static void cuts_do_not_show(void **state)
{
    (void)state;
    struct spoken want = speak("build/checkpoints/unusual", DTYPE_Q8, &tiles_emulated, 1, FRAMES);
    for (int n_threads = 1; n_threads <= FRAMES; n_threads++) {
        struct spoken cut =
            speak("build/checkpoints/unusual", DTYPE_Q8, &tiles_emulated, n_threads, n_threads);
        assert_memory_equal(cut.pcm, want.pcm, (size_t)want.n * sizeof *want.pcm);
        free(cut.pcm);
    }
    free(want.pcm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_sound_the_same),
        cmocka_unit_test(cuts_do_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
