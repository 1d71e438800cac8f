/* SPDX-License-Identifier: Apache-2.0
 * What a recording of a voice must be, to the bounds; and what becomes of one, through encoders that are posed. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "voice/clone.h"

/* ---- The recording ---- */

static void a_recording_is_neither_short_nor_silent(void **state)
{
    static const struct {
        double seconds, peak;
        const char *text; /* NULL: it is taken */
    } cases[] = {{0.3, 1e-3, NULL}, {20, 1, NULL},
        {0.299, 1, "me.wav: the recording is too short, 0.30 s (5 to 15 s of speech make a voice)"},
        {0, 0, "me.wav: the recording is too short, 0.00 s (5 to 15 s of speech make a voice)"},
        {0.3, 0.000999, "me.wav: the recording is silent (5 to 15 s of speech make a voice)"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sound_heard heard = {.seconds = cases[i].seconds, .peak = cases[i].peak};
        utter_error error = {0};
        assert_int_equal(clone_check_recording("me.wav", &heard, &error),
            cases[i].text ? UTTER_E_ARGUMENT : UTTER_OK);
        assert_string_equal(error.text, cases[i].text ? cases[i].text : "");
    }
}

/* A tone of `hz` whose amplitude changes with each 40 ms: `high`, but `low` in the last n_low of them; and an even tone
 * of 250 Hz beside it. The caller's, to be freed. */
struct tone {
    int rate, hz, n, n_low;
    double high, low, even;
};

static float *make_tone(const struct tone *t, size_t *n_samples)
{
    static const double turn = 6.283185307179586;
    const int window = t->rate / 25;
    float *pcm = malloc((size_t)(t->n * window) * sizeof *pcm);
    *n_samples = (size_t)(t->n * window);
    for (int i = 0; i < t->n * window; i++) {
        double level = i / window < t->n - t->n_low ? t->high : t->low;
        pcm[i] = (float)(level * sin(turn * ((double)t->hz * i / t->rate)) +
                         t->even * sin(turn * (250.0 * i / t->rate)));
    }
    return pcm;
}

static bool is_speech(const float *pcm, size_t n, int rate)
{
    utter_error error = {0};
    utter_status status = clone_check_speech("me.wav", pcm, n, rate, &error);
    assert_true(status == UTTER_OK || status == UTTER_E_ARGUMENT);
    assert_string_equal(error.text,
        status == UTTER_OK
            ? ""
            : "me.wav: no speech is heard, only an even sound (5 to 15 s of speech make a voice)");
    return status == UTTER_OK;
}

/* Where the level of a tenth of the time is 3.5 dB away from that of the rest, from 80 to 1,000 Hz. */
static void a_level_that_changes_is_speech(void **state)
{
    static const struct {
        struct tone tone;
        bool speech;
    } cases[] = {
        {{8000, 250, 100, 0, 0.3, 0, 0}, false},
        {{8000, 250, 100, 50, 0.3, 0.3 * 0.7, 0}, false},   /* 3.1 dB */
        {{8000, 250, 100, 50, 0.3, 0.3 * 0.6, 0}, true},    /* 4.4 dB */
        {{8000, 250, 100, 50, 0.3, 0.3 * 0.6668, 0}, true}, /* 3.5 dB */
        {{8000, 250, 100, 50, 0.3 * 0.6, 0.3, 0}, true},
        /* How much of the time is below, and above. */
        {{8000, 250, 30, 3, 0.3, 0.1, 0}, true},
        {{8000, 250, 29, 2, 0.3, 0.1, 0}, false},
        {{8000, 250, 105, 10, 0.3, 0.1, 0}, false},
        {{8000, 250, 30, 3, 0.1, 0.3, 0}, true},
        {{8000, 250, 29, 2, 0.1, 0.3, 0}, false},
        {{8000, 250, 105, 10, 0.1, 0.3, 0}, false},
        {{2000, 250, 30, 3, 0.3, 0.1, 0}, true}, /* sample by sample, as at all rates below 4,000 */
        {{2000, 250, 29, 2, 0.3, 0.1, 0}, false},
        {{1000, 250, 60, 6, 0.3, 0.1, 0}, true},
        /* Every rate is heard as 2,000 Hz: what is far above is not heard at all, nor what is below voices. */
        {{24000, 250, 50, 25, 0.3, 0.1, 0}, true},
        {{44100, 250, 50, 25, 0.3, 0.1, 0}, true},
        {{192000, 250, 50, 25, 0.3, 0.1, 0}, true},
        {{24000, 4000, 50, 25, 0.3, 0, 0.1}, false},
        {{48000, 4000, 50, 25, 0.3, 0, 0.1}, false},
        {{8000, 25, 50, 25, 0.2, 0, 0.3}, false},
        {{8000, 500, 50, 25, 0.2, 0, 0.3}, false},
        {{8000, 500, 50, 25, 0.4, 0, 0.3}, true},
        /* Silence, and what is beyond all levels. */
        {{8000, 250, 50, 25, 0, 0.3, 0}, true},
        {{8000, 250, 50, 25, 0, 1.88e-6, 0}, false}, /* the lowest level that there is, and 3.25 dB */
        {{8000, 250, 50, 25, 0, 1.97e-6, 0}, true},
        {{8000, 250, 50, 25, 1e6, 1e7, 0}, false},
        {{8000, 250, 50, 25, 1e6, 1, 0}, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n;
        float *pcm = make_tone(&cases[i].tone, &n);
        if (is_speech(pcm, n, cases[i].tone.rate) != cases[i].speech) {
            fail_msg("case %zu", i);
        }
        free(pcm);
    }
}

/* Of less than a second the level tells nothing. */
static void a_second_is_listened_to(void **state)
{
    static const struct tone hum = {8000, 250, 25, 0, 0.3, 0, 0};
    size_t n;
    float *pcm = make_tone(&hum, &n);
    (void)state;
    assert_int_equal(n, 8000);
    assert_true(is_speech(pcm, n - 1, 8000));
    assert_false(is_speech(pcm, n, 8000));
    free(pcm);
}

/* A window that the recording does not fill tells nothing: of 30, the last of three low ones, one sample short. */
static void only_whole_windows_tell_the_level(void **state)
{
    static const struct tone tone = {8000, 250, 30, 3, 0.3, 0.1, 0};
    size_t n;
    float *pcm = make_tone(&tone, &n);
    (void)state;
    assert_true(is_speech(pcm, n, 8000));
    assert_false(is_speech(pcm, n - 1, 8000));
    free(pcm);
}

static void samples_refused(float *pcm, size_t n, double most_seconds, const char *text)
{
    utter_error error = {0};
    assert_int_equal(clone_check_samples(pcm, n, 8000, most_seconds, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, text);
}

/* Samples of a caller: each is a number, and there are neither too many nor too few. */
static void samples_are_numbers_and_not_too_many(void **state)
{
    static const struct tone speech = {8000, 250, 50, 25, 0.3, 0.1, 0},
                             hum = {8000, 250, 50, 0, 0.3, 0, 0};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    size_t n;
    float *pcm = make_tone(&speech, &n), *even = make_tone(&hum, &n);
    (void)state;
    assert_int_equal(clone_check_samples(pcm, n, 8000, 2, NULL), UTTER_OK);
    samples_refused(pcm, n, 1.9, "the recording is 2.0 s long, more than 1.9 s");
    samples_refused(
        pcm, 2399, 2, "samples: the recording is too short, 0.30 s (5 to 15 s of speech make a voice)");
    assert_int_equal(clone_check_samples(pcm, 2400, 8000, 2, NULL), UTTER_OK);
    samples_refused(even, n, 2,
        "samples: no speech is heard, only an even sound (5 to 15 s of speech make a voice)");
    for (size_t i = 0; i < 3; i++) {
        const float before = pcm[n - 1];
        pcm[n - 1] = bad[i];
        samples_refused(pcm, n, 1, "sample 15999 of the recording is not a number");
        pcm[n - 1] = before;
        pcm[0] = bad[i];
        samples_refused(pcm, n, 2, "sample 0 of the recording is not a number");
        pcm[0] = 0;
    }
    memset(even, 0, n * sizeof *even);
    even[7] = -9.99e-4f;
    samples_refused(
        even, 4000, 2, "samples: the recording is silent (5 to 15 s of speech make a voice)");
    even[7] = -1.01e-3f; /* the loudest, on whichever side, and not the last one */
    assert_int_equal(clone_check_samples(even, 4000, 8000, 2, NULL), UTTER_OK);
    free(pcm);
    free(even);
}

static void count(void *user, const char *line)
{
    assert_true(line[0] != 0);
    ++*(int *)user;
}

/* What lies on a bound is good. */
static void a_recording_is_good_up_to_its_bounds(void **state)
{
    static const struct {
        struct sound_heard heard;
        int n_notes;
    } cases[] = {{{.seconds = 3, .rms_db = -45, .clipped = 0.001}, 0}, {{.seconds = 30}, 0},
        {{.seconds = 2.999}, 1}, {{.seconds = 30.001}, 1}, {{.seconds = 9, .rms_db = -45.01}, 1},
        {{.seconds = 9, .clipped = 0.00101}, 1},
        {{.seconds = 1, .rms_db = -INFINITY, .clipped = 1}, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = 0;
        clone_note_recording(&cases[i].heard, count, &n);
        assert_int_equal(n, cases[i].n_notes);
        clone_note_recording(&cases[i].heard, NULL, NULL);
    }
}

/* ---- Through the encoders ---- */

enum { WIDTH = 5, BOOKS = 3, FRAME = 1920, N = 2 * FRAME + 7, FRAMES = 3 };

/* A backend that is posed: it makes numbers that can be told from each other, or refuses. */
struct backend {
    bool refuses_codes, refuses_vector;
    int n_encoded, n_heard;
};

static bool go_on(void *user, double done)
{
    (void)done;
    ++*(int *)user;
    return true;
}

static utter_status encode(struct backend *b, const float *pcm, size_t n_samples, int32_t *codes,
    size_t capacity, size_t *n_frames, backend_progress_fn *progress, void *user, utter_error *error)
{
    size_t n = (n_samples + FRAME - 1) / FRAME;
    b->n_encoded++;
    assert_true(capacity >= n && pcm[1] == 0.25f);
    for (size_t i = 0; i < capacity * BOOKS; i++) { /* what there is room for may be written */
        codes[i] = (int32_t)(i + 1);
    }
    if (progress) {
        progress(user, 1);
    }
    *n_frames = n;
    return b->refuses_codes ? error_set(error, UTTER_E_CANCELLED, "no codes") : UTTER_OK;
}

static utter_status hear(
    struct backend *b, const float *mels, size_t n_mels, float *vector, utter_error *error)
{
    b->n_heard++;
    assert_int_equal(n_mels, N / 256);
    assert_true(isfinite(mels[128 * n_mels - 1]));
    for (int i = 0; i < WIDTH; i++) {
        vector[i] = (float)i + 0.5f;
    }
    return b->refuses_vector ? error_set(error, UTTER_E_DEVICE, "no vector") : UTTER_OK;
}

static const struct backend_ops ops = {.name = "posed", .encode = encode, .speaker = hear};
static char kind_name[] = "base";
static struct config config = {.kind = UTTER_MODEL_BASE,
    .kind_name = kind_name,
    .n_codebooks = BOOKS,
    .speaker_width = WIDTH,
    .codec = {.frame_samples = FRAME}};
static struct model model = {
    .config = &config, .has_encoder = true, .has_speaker = true, .codec_fingerprint = 0xabcdef};
static const float pcm[N] = {0.5f, 0.25f};

static void codes_have_room_and_are_the_callers(void **state)
{
    struct backend b = {0};
    int32_t *codes;
    size_t n_frames = 77;
    int n_told = 0;
    utter_error error = {0};
    (void)state;
    static const struct {
        size_t n, frames;
    } cases[] = {{1, 1}, {FRAME - 1, 1}, {FRAME, 1}, {FRAME + 1, 2}, {N, FRAMES}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            clone_codes(&codes, &n_frames, &ops, &b, &model, pcm, cases[i].n, go_on, &n_told, &error),
            UTTER_OK);
        assert_int_equal(n_frames, cases[i].frames);
        assert_int_equal(n_told, i + 1);
        assert_int_equal(codes[n_frames * BOOKS - 1], n_frames * BOOKS);
        memory_free(codes);
    }
    b.refuses_codes = true;
    assert_int_equal(clone_codes(&codes, &n_frames, &ops, &b, &model, pcm, N, NULL, NULL, &error),
        UTTER_E_CANCELLED);
    assert_null(codes);
    assert_string_equal(error.text, "no codes");
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_int_equal(
        clone_codes(&codes, &n_frames, &ops, &b, &model, pcm, N, NULL, NULL, &error), UTTER_E_MEMORY);
    support_fail_off();
    assert_null(codes);
    assert_int_equal(n_frames, 0);
    assert_non_null(strstr(error.text, "no room for codes"));
}

/* With a transcript, and without: then nobody asks for codes. */
static void a_clone_holds_what_the_encoders_say(void **state)
{
    (void)state;
    for (int context = 0; context < 2; context++) {
        struct backend b = {0};
        int n_told = 0;
        const struct clone_request request = {.name = "Ann",
            .transcript = context ? "I said." : NULL,
            .language = "german",
            .provenance = "ann.wav",
            .progress = go_on,
            .progress_user = &n_told};
        utter_voice *voice;
        assert_int_equal(clone_voice(&voice, &ops, &b, &model, pcm, N, &request, NULL), UTTER_OK);
        assert_int_equal(b.n_heard, 1);
        assert_int_equal(b.n_encoded, context);
        assert_int_equal(n_told, context);
        assert_int_equal(voice->kind, context ? VOICE_CONTEXT : VOICE_VECTOR);
        assert_int_equal(voice->n_users, 1);
        assert_int_equal(voice->preset, -1);
        assert_int_equal(voice->width, WIDTH);
        assert_true(voice->vector[0] == 0.5f && voice->vector[WIDTH - 1] == WIDTH - 0.5f);
        assert_string_equal(voice->name, "Ann");
        assert_string_equal(voice->language, "german");
        assert_string_equal(voice->provenance, "ann.wav");
        assert_int_equal(voice->codec, context ? 0xabcdef : 0);
        assert_int_equal(voice->n_frames, context ? FRAMES : 0);
        assert_int_equal(voice->n_codebooks, context ? BOOKS : 0);
        if (context) {
            assert_string_equal(voice->transcript, "I said.");
            assert_int_equal(voice->codes[FRAMES * BOOKS - 1], FRAMES * BOOKS);
        } else {
            assert_true(!voice->codes && !voice->transcript);
        }
        voice_free(&voice);
    }
}

static void clone_fails(
    struct backend b, const char *transcript, size_t n, utter_status wanted, const char *text)
{
    const struct clone_request request = {.name = "Ann", .transcript = transcript};
    utter_voice *voice = (utter_voice *)1;
    utter_error error = {0};
    assert_int_equal(clone_voice(&voice, &ops, &b, &model, pcm, n, &request, &error), wanted);
    assert_null(voice);
    assert_string_equal(error.text, text);
}

static void what_an_encoder_refuses_is_no_voice(void **state)
{
    (void)state;
    clone_fails((struct backend){.refuses_vector = true}, NULL, N, UTTER_E_DEVICE, "no vector");
    clone_fails((struct backend){.refuses_codes = true}, "Hi.", N, UTTER_E_CANCELLED, "no codes");
    clone_fails((struct backend){0}, " ", N, UTTER_E_ARGUMENT,
        "a voice with codes needs the transcript of its recording");
    clone_fails((struct backend){0}, NULL, 1279, UTTER_E_ARGUMENT,
        "a recording of 0.053 s is too short for the speaker encoder, which needs 0.053 s");
}

/* A base model with the encoders that are asked for; whoever asks hears what is missing before anything is made. */
static void a_model_must_have_the_encoders(void **state)
{
    static const struct {
        utter_model_kind kind;
        bool has_speaker, has_encoder, with_codes;
        const char *text;
    } cases[] = {
        {UTTER_MODEL_BASE, true, true, true, ""},
        {UTTER_MODEL_BASE, true, false, false, ""},
        {UTTER_MODEL_BASE, true, false, true,
            "the codec of this model has no encoder (clone without a transcript)"},
        {UTTER_MODEL_BASE, false, true, false,
            "this base model cannot clone voices: it has no speaker encoder (take a Base model)"},
        {UTTER_MODEL_CUSTOM_VOICE, true, true, false,
            "this base model cannot clone voices: it has no speaker encoder (take a Base model)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_error error = {0};
        config.kind = cases[i].kind;
        model.has_speaker = cases[i].has_speaker;
        model.has_encoder = cases[i].has_encoder;
        const utter_status wanted = cases[i].text[0] ? UTTER_E_ARGUMENT : UTTER_OK;
        assert_int_equal(clone_check(&model, cases[i].with_codes, &error), wanted);
        assert_string_equal(error.text, cases[i].text);
        if (wanted) {
            clone_fails(
                (struct backend){0}, cases[i].with_codes ? "Hi." : NULL, N, wanted, cases[i].text);
        }
    }
    config.kind = UTTER_MODEL_BASE;
    model.has_speaker = model.has_encoder = true;
}

static void a_clone_without_memory_is_none(void **state)
{
    static const struct clone_request request = {
        .name = "Ann", .transcript = "I said.", .language = "german", .provenance = "ann.wav"};
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct backend b = {0};
        utter_voice *voice;
        utter_error error = {0};
        utter_status status = clone_voice(&voice, &ops, &b, &model, pcm, N, &request, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(error.code, status);
        assert_int_equal(voice != NULL, status == UTTER_OK);
        assert_true(!voice || (voice->language && voice->provenance));
        voice_free(&voice);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_is_neither_short_nor_silent),
        cmocka_unit_test(a_level_that_changes_is_speech),
        cmocka_unit_test(a_second_is_listened_to),
        cmocka_unit_test(only_whole_windows_tell_the_level),
        cmocka_unit_test(samples_are_numbers_and_not_too_many),
        cmocka_unit_test(a_recording_is_good_up_to_its_bounds),
        cmocka_unit_test(codes_have_room_and_are_the_callers),
        cmocka_unit_test(a_clone_holds_what_the_encoders_say),
        cmocka_unit_test(what_an_encoder_refuses_is_no_voice),
        cmocka_unit_test(a_model_must_have_the_encoders),
        cmocka_unit_test(a_clone_without_memory_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
