/* SPDX-License-Identifier: Apache-2.0
 * What coders make of the end of a sound, and what is put right at its beginning then. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "server/sound/encode.h"

/* Its last frame is filled up with silence, and one more brings out what the coder keeps back. */
static void aac_has_frames_of_silence_at_its_end(void **state)
{
    enum { FRAME = 1024, N = 3 * FRAME + 100 };
    const struct encode_settings settings = {.format = ENCODE_AAC, .speed = 1, .volume = 1};
    struct wire_out ends[2] = {{0}, {0}};
    int n_frames[2] = {0};
    (void)state;
    for (int i = 0; i < 2; i++) { /* filled up by the coder, and by us */
        static float pcm[4 * FRAME];
        memset(pcm, 0, sizeof pcm);
        for (int k = 0; k < N; k++) {
            pcm[k] = 0.5F * sinf(0.2F * (float)k);
        }
        struct encode *e = encode_new(&settings, 24000);
        assert_non_null(e);
        assert_true(encode_feed(e, pcm, i ? 4 * FRAME : N, true, &ends[i]));
        encode_free(e);
        for (size_t at = 0; at + 6 < ends[i].n; n_frames[i]++) {
            at += (size_t)(ends[i].bytes[at + 3] & 3) << 11 | (size_t)ends[i].bytes[at + 4] << 3 |
                  ends[i].bytes[at + 5] >> 5;
        }
    }
    assert_int_equal(n_frames[0], 5);
    assert_int_equal(n_frames[1], 6);
    assert_memory_equal(ends[0].bytes, ends[1].bytes, ends[0].n);
    wire_fini(&ends[0]);
    wire_fini(&ends[1]);
}

/* The last 4 bits of byte 21 and the next 4 bytes. What 36 bits cannot tell stays as it is: unknown. */
static void a_whole_flac_has_its_samples(void **state)
{
    (void)state;
    uint8_t flac[27];
    static const struct {
        size_t n;
        uint64_t n_samples;
        const char *wanted;
    } cases[] = {{27, 0xF12345678, "\xAA\xAF\x12\x34\x56\x78\xAA"},
        {27, (uint64_t)1 << 36, "\xAA\xAA\xAA\xAA\xAA\xAA\xAA"},
        {26, 1, "\xAA\xAA\xAA\xAA\xAA\xAA\xAA"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(flac, 0xAA, sizeof flac);
        encode_true_sizes(ENCODE_FLAC, flac, cases[i].n, cases[i].n_samples);
        assert_memory_equal(flac + 20, cases[i].wanted, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aac_has_frames_of_silence_at_its_end),
        cmocka_unit_test(a_whole_flac_has_its_samples),
    };
    return cmocka_run_group_tests_name("coders", tests, NULL, NULL);
}
