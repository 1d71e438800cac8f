/* SPDX-License-Identifier: Apache-2.0
 * A part of a recording that is asked for, and the part that is proposed of what is too long. */
#include "base/memory.h"
#include "tests/audio/sounds.h"

/* Of a part exactly its samples come, whatever lies around; the limit is the part's. */
static void a_part(void **state)
{
    enum { RATE = 8000 };
    size_t bytes, n, n_all;
    uint8_t *data = make_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, RATE, 2, 10000, &bytes);
    float *all, *part;
    (void)state;
    assert_int_equal(
        sound_read_memory(&all, &n_all, NULL, data, bytes, "x.wav", 0, NULL, NULL), UTTER_OK);
    struct sound_limits limits = {.seconds = 0.75, .from = 0.5, .to = 1.25};
    assert_int_equal(
        sound_read_memory(&part, &n, NULL, data, bytes, "x.wav", 0, &limits, NULL), UTTER_OK);
    assert_int_equal(n, RATE * 3 / 4);
    assert_memory_equal(part, all + RATE / 2, n * sizeof *part);
    memory_free(part);
    limits = (struct sound_limits){.seconds = 1, .from = 0.5};
    assert_int_equal(
        sound_read_memory(&part, &n, NULL, data, bytes, "x.wav", 0, &limits, NULL), UTTER_OK);
    assert_int_equal(n, n_all - RATE / 2);
    assert_memory_equal(part, all + RATE / 2, n * sizeof *part);
    memory_free(part);
    limits.seconds = 0.7;
    refused(data, bytes, &limits, "some.wav: the part is longer than 0.7 s (take less of it)");
    limits = (struct sound_limits){.seconds = 0.7, .to = 0.75};
    refused(data, bytes, &limits, "some.wav: the part is longer than 0.7 s (take less of it)");
    limits = (struct sound_limits){.from = 1.25};
    refused(data, bytes, &limits, "some.wav: ends after 1.25 s, before the part that was asked for");
    /* Its bounds lie anywhere in a block; what is behind the end does not count. */
    static const struct {
        int first, end, n;
    } parts[] = {{0, 6000, 6000}, {4096, 4100, 4}, {4095, 4096, 1}, {8192, 10000, 1808},
        {8000, 72000, 2000}, {2000, 9600, 7600}, {9999, 0, 1}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct sound_heard heard;
        limits = (struct sound_limits){.from = (parts[i].first + 0.25) / RATE,
            .to = parts[i].end ? (parts[i].end + 0.25) / RATE : 0,
            .seconds = (parts[i].n + 0.25) / RATE};
        assert_int_equal(
            sound_read_memory(&part, &n, &heard, data, bytes, "x.wav", 0, &limits, NULL), UTTER_OK);
        assert_int_equal(n, parts[i].n);
        assert_memory_equal(part, all + parts[i].first, n * sizeof *part);
        assert_true(fabs(heard.seconds - (double)n / RATE) < 1e-9);
        memory_free(part);
        limits.seconds = (parts[i].n - 0.25) / RATE;
        refused(data, bytes, &limits, "some.wav: the part is longer than ");
    }
    memory_free(all);
    free(data);
}

/* Of what is too long the part that is proposed is where it is loud, not where it hisses. */
static void the_loud_part_is_proposed(void **state)
{
    enum { RATE = 8000, FROM_S = 20, TO_S = 40, ALL_S = 50 };
    size_t bytes;
    float *x = malloc(ALL_S * RATE * sizeof *x);
    const struct sound_limits limits = {.seconds = 30};
    (void)state;
    for (int t = 0; t < ALL_S * RATE; t++) {
        x[t] = t >= FROM_S * RATE && t < TO_S * RATE ? 0.3f : 0.002f;
        x[t] *= t & 32 ? 1.0f : -1.0f;
    }
    uint8_t *data =
        make_file("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, RATE, 1, x, ALL_S * RATE, &bytes);
    refused(data, bytes, &limits,
        "some.wav: longer than 30 s (take a part of it: the 15 s with the least silence go from 20 s "
        "to 35 s)");
    free(data);
    free(x);
}

/* Half seconds of a level each, in dB below full scale. */
static uint8_t *make_levels(const double *levels, int n, int channels, size_t *bytes)
{
    enum { RATE = 8000, HALF = RATE / 2 };
    float *x = malloc((size_t)(n * HALF * channels) * sizeof *x);
    for (int i = 0; i < n * HALF * channels; i++) {
        const double level = pow(10, levels[i / channels / HALF] / 20);
        x[i] = (float)(i / channels % 2 ? level : -level);
    }
    uint8_t *data =
        make_file("v.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, channels, x, n * HALF, bytes);
    free(x);
    return data;
}

/* The first of equals, and the last where it is louder; nothing of what is quiet all along, and the louder it is the
 * less that counts. */
static void the_part_with_the_least_silence(void **state)
{
    static const struct {
        double level, special;
        int first, end; /* of the half seconds that are special */
        const char *reason;
    } cases[] = {
        {-30, 0, 0, 0, "go from 0 s to 15 s"},
        {-30, -25, 30, 60, "go from 15 s to 30 s"},
        {-30, -25, 29, 59, "go from 14.5 s to 29.5 s"},
        {-90, -25, 20, 25, "longer than 20 s (take a part of it)"}, /* 5.8 dB on the mean */
        {-90, -25, 20, 28, "longer than 20 s (take a part of it)"}, /* 9.3 dB: silence adds nothing */
        {-90, -25, 20, 29, "go from 0 s to 15 s"},                  /* 10.5 dB */
        {-50.5, 0, 0, 0, "longer than 20 s (take a part of it)"},
        {-50.45, 0, 0, 0, "go from 0 s to 15 s"},
        {-19.9, -1, 30, 60, "go from 0 s to 15 s"}, /* both are loud enough */
        {-20.1, -1, 30, 60, "go from 15 s to 30 s"},
    };
    const struct sound_limits limits = {.seconds = 20};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double levels[60];
        size_t bytes;
        for (int k = 0; k < 60; k++) {
            levels[k] = k >= cases[i].first && k < cases[i].end ? cases[i].special : cases[i].level;
        }
        uint8_t *data = make_levels(levels, 60, 1 + (int)i % 2, &bytes);
        refused(data, bytes, &limits, cases[i].reason);
        free(data);
    }
}

/* Of two channels the first is listened to, whatever the other has. */
static void the_first_channel_is_listened_to(void **state)
{
    enum { RATE = 8000, N = 30 * RATE };
    const struct sound_limits limits = {.seconds = 20};
    float *x = malloc(2 * N * sizeof *x);
    (void)state;
    for (int loud = 0; loud < 2; loud++) { /* the channel that there is something in */
        size_t bytes;
        for (int t = 0; t < N; t++) {
            x[2 * t + loud] = t % 2 ? 0.0031f : -0.0031f; /* -50.2 dB */
            x[2 * t + 1 - loud] = 0;
        }
        uint8_t *data = make_file("c.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, 2, x, N, &bytes);
        refused(data, bytes, &limits,
            loud ? "some.wav: longer than 20 s (take a part of it)" : "go from 0 s to 15 s");
        free(data);
    }
    free(x);
}

/* Half a second may be a sample more than what is read at once. */
static void any_rate_is_listened_to(void **state)
{
    enum { RATE = 8194, N = 21 * RATE };
    const struct sound_limits limits = {.seconds = 20};
    float *x = calloc(N, sizeof *x);
    size_t bytes;
    (void)state;
    for (int t = 3 * RATE; t < N; t++) {
        x[t] = t % 2 ? 0.1f : -0.1f;
    }
    uint8_t *data = make_file("r.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, RATE, 1, x, N, &bytes);
    refused(data, bytes, &limits, "go from 3 s to 18 s");
    free(data);
    free(x);
}

/* Twenty minutes are listened to: of the loud seconds all but the last one. */
static void what_is_far_behind_is_not_proposed(void **state)
{
    enum { RATE = 8000, FROM_S = 1186, TO_S = FROM_S + 15 };
    const struct sound_limits limits = {.seconds = 600};
    float *x = calloc(TO_S * RATE, sizeof *x);
    size_t bytes;
    (void)state;
    for (int t = FROM_S * RATE; t < TO_S * RATE; t++) {
        x[t] = t % 2 ? 0.05f : -0.05f;
    }
    uint8_t *data =
        make_file("f.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, RATE, 1, x, TO_S * RATE, &bytes);
    refused(data, bytes, &limits, "from 1185 s to 1200 s");
    free(data);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part),
        cmocka_unit_test(the_loud_part_is_proposed),
        cmocka_unit_test(the_part_with_the_least_silence),
        cmocka_unit_test(the_first_channel_is_listened_to),
        cmocka_unit_test(any_rate_is_listened_to),
        cmocka_unit_test(what_is_far_behind_is_not_proposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
