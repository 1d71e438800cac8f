/* SPDX-License-Identifier: Apache-2.0
 * The choice of the next lanes, the limits of keys, the fields of a request, and the formats. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/loop/account.h"
#include "server/loop/server.h"
#include "server/protocol/wire.h"
#include "server/sound/encode.h"
#include "server/speech/admission.h"
#include "server/speech/aliases.h"
#include "server/speech/fields.h"
#include "server/worker/schedule.h"

/* A device on which a step takes step_s, each lane lane_s, and a prompt of 100 bytes first_s. */
static struct schedule_clock clock_of(double step_s, double lane_s, double first_s)
{
    struct schedule_clock c = {0};
    for (int i = 0; i < 100; i++) {
        schedule_learn(&c, 1 + i % 5, step_s + lane_s * (1 + i % 5), 100, first_s);
    }
    return c;
}

static void who_has_no_sound_goes_first(void **state)
{
    struct schedule_speech s[] = {{true, true, 10.18, 0, 0, false, false},
        {true, false, 9.9, 0, 0, false, false}, {true, true, 20, 0, 0, false, false},
        {false, false, 1, 0, 0, false, false}, {true, false, 9.5, 0, 0, false, false}};
    struct schedule_clock slow = clock_of(0.002, 0.010, 0), quick = clock_of(0.002, 0.001, 0);
    (void)state;
    assert_int_equal(schedule_choose(s, 5, 10, &slow), 2);
    assert_true(s[4].chosen && s[1].chosen);
    /* Who has a fifth of a second in hand stands back while others wait; who has less does not. */
    assert_int_equal(schedule_choose(s, 5, 10, &quick), 3);
    assert_true(s[0].chosen && !s[2].chosen && !s[3].chosen);
    /* A frame that is due before the first sound of another could be there goes first. */
    s[0].due = 9.55;
    slow = clock_of(0.002, 0.020, 0);
    assert_int_equal(schedule_choose(s, 5, 10, &slow), 1);
    assert_true(s[0].chosen);
    s[0].due = 10.18;
    s[1].can_step = s[4].can_step = false;
    assert_int_equal(schedule_choose(s, 5, 10, &quick), 2);
    assert_true(s[0].chosen && s[2].chosen);
    assert_int_equal(schedule_choose(s, 5, 10, &slow), 1);
    assert_true(s[0].chosen && !s[2].chosen);
}

/* On a device slower than hearing all have always run dry: who has no sound is not to wait for their end. */
static void who_has_waited_long_has_its_turn(void **state)
{
    struct schedule_speech s[] = {{true, true, 9.98, 0, 0, false, false},
        {true, true, 10.05, 0, 0, false, false}, {true, false, 8, 100, 100, false, false}};
    struct schedule_clock c = clock_of(0.002, 0.1, 0.1);
    (void)state;
    assert_int_equal(schedule_choose(s, 3, 10, &c), 1);
    assert_true(s[2].chosen);
    s[0].due = 5; /* its frame was due before: that one, and one of all who hear, would come first */
    assert_int_equal(schedule_choose(s, 3, 10, &c), 1);
    assert_true(s[2].chosen);
    s[2].due = 9.5; /* not for long yet */
    assert_int_equal(schedule_choose(s, 3, 10, &c), 1);
    assert_true(s[0].chosen);
    s[2].due = 8;
    s[0].due = 10.01; /* would run dry */
    assert_int_equal(schedule_choose(s, 3, 10, &c), 1);
    assert_true(s[0].chosen);
}

/* Who waits for his first sound is due 100 ms after he came. */
static void a_first_sound_is_due_like_a_frame(void **state)
{
    struct schedule_speech s[] = {
        {true, true, 10.08, 0, 0, false, false}, {true, false, 9.99, 100, 100, false, false}};
    struct schedule_clock c = clock_of(0.02, 0.01, 0.014); /* no two fit into a step */
    (void)state;
    assert_int_equal(schedule_choose(s, 2, 10, &c), 1);
    assert_true(s[0].chosen);
    s[1].due = 9.97;
    assert_int_equal(schedule_choose(s, 2, 10, &c), 1);
    assert_true(s[1].chosen);
}

static void prompts_come_one_after_another(void **state)
{
    struct schedule_speech s[] = {{true, false, 9.9, 100, 100, false, false},
        {true, false, 9.8, 100, 100, false, false}, {true, true, 10.16, 0, 0, false, false},
        {true, true, 10.18, 0, 0, false, false}};
    struct schedule_clock c = clock_of(0.002, 0.002, 0.014);
    (void)state;
    /* Two prompts do not fit; the frames of others do. */
    assert_int_equal(schedule_choose(s, 4, 10, &c), 3);
    assert_true(!s[0].chosen && s[1].chosen && s[2].chosen && s[3].chosen);
    s[0].prompt = 20; /* a short one fits beside the long one */
    assert_int_equal(schedule_choose(s, 4, 10, &c), 3);
    assert_true(s[0].chosen && s[1].chosen && s[2].chosen);
    s[0].prompt = 100;
    c = clock_of(0.002, 0.002, 0.1); /* one that fits into no step goes alone */
    assert_int_equal(schedule_choose(s, 4, 10, &c), 1);
    assert_true(s[1].chosen);
}

/* All who are in a step get their frames at its end: neither a prompt nor a frame that has time puts that off for so
 * long that one of them hears a pause. */
static void a_step_ends_in_time(void **state)
{
    struct schedule_speech s[] = {{true, true, 10.034, 0, 0, false, false},
        {true, false, 9.6, 100, 100, false, false}, {false, true, 10.3, 0, 0, false, false}};
    struct schedule_clock c = clock_of(0.002, 0.002, 0.014);
    (void)state;
    /* Both take 20 ms, for which there must be 25, and 10 for the way. */
    assert_int_equal(schedule_choose(s, 3, 10, &c), 1);
    assert_true(s[0].chosen);
    s[1].due = 9.4; /* but nobody waits for ever for that */
    assert_int_equal(schedule_choose(s, 3, 10, &c), 2);
    s[1].due = 9.6;
    s[0].due = 10.036;
    assert_int_equal(schedule_choose(s, 3, 10, &c), 2);
    assert_true(s[1].chosen);
    s[0].due = 10.019; /* three frames: 8 ms */
    s[1] = (struct schedule_speech){true, true, 10.2, 0, 0, false, false};
    s[2].can_step = true;
    assert_int_equal(schedule_choose(s, 3, 10, &c), 2);
    assert_true(!s[2].chosen);
    s[1].due = 10.02; /* who has none goes all the same: the next step would be later still */
    s[2].due = 10.03;
    assert_int_equal(schedule_choose(s, 3, 10, &c), 3);
}

/* A device that is quick up to eight lanes and slow beyond makes eight at a time. */
static void few_lanes_that_are_fast_are_used(void **state)
{
    struct schedule_clock c = {0};
    struct schedule_speech s[12];
    (void)state;
    for (int i = 0; i < 200; i++) {
        int n = 1 + i % 12;
        schedule_learn(&c, n, n <= 8 ? 0.001 + 0.00003 * n : 0.006 + 0.0001 * n, 0, 0);
    }
    for (int i = 0; i < 12; i++) {
        s[i] = (struct schedule_speech){true, true, 10.1 + i, 0, 0, false, false};
    }
    assert_int_equal(schedule_choose(s, 12, 10, &c), 8);
    assert_true(s[0].chosen && s[7].chosen && !s[8].chosen);
    assert_in_range(schedule_capacity(&c, 256, 0.008), 30, 41); /* 9 if the line alone counted */
    for (int i = 0; i < 200; i++) { /* what does not pay is not forgotten for not being made */
        int n = 1 + i % 8;
        schedule_learn(&c, n, 0.001 + 0.00003 * n, 0, 0);
    }
    assert_int_equal(schedule_choose(s, 12, 10, &c), 8);
    assert_in_range(schedule_capacity(&c, 256, 0.008), 30, 41);
    for (int i = 0; i < 20000; i++) { /* then it is tried again, but nothing beyond it */
        int n = 1 + i % 8;
        schedule_learn(&c, n, 0.001 + 0.00003 * n, 0, 0);
    }
    assert_int_equal(schedule_choose(s, 12, 10, &c), 9);
    assert_in_range(schedule_capacity(&c, 256, 0.008), 30, 50);
    schedule_learn(&c, 9, 0.00127, 0, 0); /* where it pays now, the others have their turns, too */
    schedule_learn(&c, 9, 0.00127, 0, 0);
    assert_true(schedule_choose(s, 12, 10, &c) > 9);
}

/* A page that was asked for first does not hold up a sentence. Who has waited for 100 ms goes before any who came
 * later, as sentences may come for as long as a crowd does; but a page leaves them every fourth step. */
static void short_texts_pass_long_ones(void **state)
{
    struct schedule_speech s[] = {{true, false, 9.92, 12, 4000, false, false},
        {true, false, 10.0, 12, 20, false, false}, {true, true, 10.1, 0, 0, false, false}};
    struct schedule_clock c = clock_of(0.002, 0.002, 0.1);
    (void)state;
    for (int k = 0; k < 2; k++) {
        int n_page = 0, n_sentence = 0;
        for (int i = 0; i < 100; i++) { /* only one of the prompts fits, and who runs has its frame */
            assert_int_equal(schedule_choose(s, 3, 10, &c), 2);
            assert_true(s[2].chosen);
            n_page += s[0].chosen;
            n_sentence += s[1].chosen;
            c.n_steps++;
        }
        assert_int_equal(n_page, k == 0 ? 0 : 75);
        assert_int_equal(n_sentence, k == 0 ? 100 : 25);
        s[0].due = 9.88;
    }
    s[0].prompt = s[1].prompt = 6;
    assert_int_equal(schedule_choose(s, 3, 10, &c), 3);
}

/* Where only frames of those who hear and a short prompt fit, a page that has waited does not bar the short one. */
static void a_page_that_does_not_fit_bars_no_sentence(void **state)
{
    struct schedule_speech s[] = {{true, true, 10.04, 0, 0, false, false},
        {true, false, 9.0, 100, 4000, false, false}, {true, false, 9.98, 20, 20, false, false}};
    struct schedule_clock c = clock_of(0.002, 0.002, 0.02);
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(schedule_choose(s, 3, 10, &c), 2);
        assert_true(s[0].chosen && s[2].chosen);
        c.n_steps++;
    }
    s[0].due = 10.1; /* in its turn the page goes before it */
    int n_page = 0;
    for (int i = 0; i < 4; i++) {
        schedule_choose(s, 3, 10, &c);
        n_page += s[1].chosen;
        c.n_steps++;
    }
    assert_int_equal(n_page, 3);
}

/* Three in the background, the last of which came first; a listener with so much sound in hand beside them. */
static void build_background(struct schedule_speech *s, double in_hand)
{
    for (int i = 0; i < 3; i++) {
        s[i] = (struct schedule_speech){true, true, 9.9 - i, 0, 0, false, true};
    }
    s[3] = (struct schedule_speech){true, true, 10 + in_hand, 0, 0, false, false};
}

static void background_has_what_listeners_leave(void **state)
{
    struct schedule_speech s[4];
    struct schedule_clock quick = clock_of(0.002, 0.0004, 0), slow = clock_of(0.002, 0.003, 0);
    (void)state;
    build_background(s, 1);
    s[3].can_step = false; /* alone: as many as fit into four milliseconds, and one where none does */
    assert_int_equal(schedule_choose(s, 4, 10, &quick), 3);
    assert_int_equal(schedule_choose(s, 4, 10, &slow), 1);
    assert_true(s[2].chosen);
    s[3] = (struct schedule_speech){true, false, 9.99, 20, 20, false, false};
    assert_int_equal(schedule_choose(s, 4, 10, &quick), 1); /* somebody waits for the first sound */
    assert_true(s[3].chosen);
    build_background(s, 1); /* beside one who has heard enough to wait */
    assert_int_equal(schedule_choose(s, 4, 10, &quick), 4);
    assert_int_equal(schedule_choose(s, 4, 10, &slow), 1);
    build_background(s, 0.3); /* and one who has not: a tenth of the step at most */
    assert_int_equal(schedule_choose(s, 4, 10, &quick), 1);
    assert_true(s[3].chosen);
    quick = clock_of(0.002, 0.0001, 0);
    assert_int_equal(schedule_choose(s, 4, 10, &quick), 3);
    assert_true(s[3].chosen && s[2].chosen && s[1].chosen);
    build_background(s, 0.004); /* whose next frame would come too late */
    assert_int_equal(schedule_choose(s, 4, 10, &quick), 1);
    build_background(s, 1); /* prompts come one after another, and take what they take */
    s[1].prompt = s[1].whole = s[2].prompt = s[2].whole = 100;
    quick = clock_of(0.002, 0.0001, 0.005);
    assert_int_equal(schedule_choose(s, 4, 10, &quick), 2);
    assert_true(s[3].chosen && s[2].chosen);
    build_background(s, 0.3);
    s[2].prompt = s[2].whole = 100;
    assert_int_equal(schedule_choose(s, 4, 10, &quick), 1);
}

static void steps_are_foretold(void **state)
{
    struct schedule_clock c = {0};
    (void)state;
    assert_true(schedule_step_s(&c, 5, 100) <= 0);
    for (int i = 0; i < 20; i++) { /* of one width: all of it belongs to the lanes */
        schedule_learn(&c, 2, 0.004, 0, 0);
    }
    assert_true(fabs(schedule_step_s(&c, 6, 0) - 0.012) <= 1e-9);
    c = clock_of(0.003, 0.002, 0.005);
    assert_true(fabs(schedule_step_s(&c, 10, 0) - 0.023) <= 1e-6);
    assert_true(fabs(schedule_step_s(&c, 10, 200) - 0.033) <= 1e-6);
    /* 11 fit into a step of 25 ms, and 2.56 such steps into 64 ms of a frame. */
    assert_int_equal(schedule_capacity(&c, 64, 0.08), 28);
    assert_int_equal(schedule_capacity(&c, 24, 0.08), 24);
    c = clock_of(0.001, 0.050, 0); /* one stream at most */
    assert_int_equal(schedule_capacity(&c, 24, 0.08), 1);
    c = clock_of(0.001, 0.072, 0); /* one, with nothing to spare: a busy moment does not let all in */
    assert_int_equal(schedule_capacity(&c, 24, 0.08), 1);
    assert_false(schedule_falls_behind(&c, 0.08));
    c = clock_of(0.001, 0.200, 0); /* not even one: they all take their time */
    assert_int_equal(schedule_capacity(&c, 24, 0.08), 24);
    assert_true(schedule_falls_behind(&c, 0.08));
    for (int i = 0; i < 800; i++) { /* what was long ago is forgotten */
        schedule_learn(&c, 1 + i % 4, 0.001 * (1 + i % 4), 0, 0);
    }
    assert_true(fabs(schedule_step_s(&c, 10, 0) - 0.010) <= 1e-5);
    /* More lanes are no quicker than fewer, whatever the last steps say. */
    c = (struct schedule_clock){0};
    for (int i = 0; i < 20; i++) {
        schedule_learn(&c, 1 + 2 * (i % 2), i % 2 ? 0.008 : 0.010, 0, 0);
    }
    assert_in_range((int)(1e6 * schedule_step_s(&c, 100, 0)), 8000, 10000);
}

static void a_key_has_limits(void **state)
{
    static const struct {
        const char *line;
        enum account_line kind;
        int speeches, per_minute;
    } cases[] = {{"sesame", ACCOUNT_LINE_KEY, 0, 0},
        {" sesame speeches=2\tper-minute=60 # mine\r", ACCOUNT_LINE_KEY, 2, 60},
        {"", ACCOUNT_LINE_EMPTY, 0, 0}, {" # speeches=2", ACCOUNT_LINE_EMPTY, 0, 0},
        {"k speeches=0", ACCOUNT_LINE_BAD, 0, 0}, {"k speeches=-1", ACCOUNT_LINE_BAD, 0, 0},
        {"k speeches=99999999999", ACCOUNT_LINE_BAD, 0, 0}, {"k speeches=", ACCOUNT_LINE_BAD, 0, 0},
        {"k speeches=1 speeches=2", ACCOUNT_LINE_BAD, 0, 0}, {"k other", ACCOUNT_LINE_BAD, 0, 0},
        {"sha256:12", ACCOUNT_LINE_BAD, 0, 0}};
    struct account a;
    struct refusal r;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum account_line kind = account_parse(&a, cases[i].line, strlen(cases[i].line));
        if (kind != cases[i].kind ||
            (kind == ACCOUNT_LINE_KEY &&
                (a.most_speeches != cases[i].speeches || a.per_minute != cases[i].per_minute))) {
            fail_msg("'%s'", cases[i].line);
        }
    }
    account_parse(&a, "k speeches=2", 12);
    account_count(&a, 5);
    assert_true(account_admit(&a, 5, &r));
    account_count(&a, 5);
    assert_false(account_admit(&a, 900, &r));
    assert_true(r.status == 429 && r.retry_ms > 0);
    a.n_speeches--;
    assert_true(account_admit(&a, 900, &r));
    account_parse(&a, "k per-minute=6", 14);
    for (int i = 0; i < 6; i++) { /* a minute's worth at once, then one each ten seconds */
        assert_true(account_admit(&a, 100, &r));
        account_count(&a, 100);
    }
    assert_false(account_admit(&a, 101, &r));
    assert_true(r.status == 429 && r.retry_ms > 8990 && r.retry_ms < 9010);
    assert_true(account_admit(&a, 110.01, &r));
    account_count(&a, 110.01);
    assert_false(account_admit(&a, 110.02, &r));
    assert_true(account_admit(&a, 1e6, &r) && a.allowance < 6);
}

static void a_language_outlives_the_worker_that_named_it(void **state)
{
    static const char *const asked[] = {"English", "en-GB"};
    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char said[] = "english";
        const char *languages[] = {said};
        struct fields_model model = {
            .id = "m", .kind = "base", .languages = languages, .n_languages = 1};
        struct fields f;
        struct refusal r;
        json_t *object = json_pack("{s:s}", "language", asked[i]);
        assert_true(fields_parse(&f, object, NULL, FIELDS_FOR_SESSION, &model, &r));
        json_decref(object);
        memset(said, 'x', sizeof said - 1);
        assert_true(f.language && strcasecmp(f.language, "english") == 0);
        fields_fini(&f);
    }
}

static size_t encode_second(const struct encode_settings *settings, size_t piece, struct wire_out *out)
{
    struct encode *e = encode_new(settings, 24000);
    float pcm[1920];
    assert_non_null(e);
    for (size_t at = 0; at < 24000; at += piece) {
        size_t n = 24000 - at < piece ? 24000 - at : piece;
        for (size_t i = 0; i < n; i++) {
            pcm[i] = 0.3f * sinf(0.05f * (float)(at + i));
        }
        assert_true(encode_feed(e, pcm, n, false, out));
    }
    assert_true(encode_feed(e, pcm, 0, true, out));
    encode_free(e);
    return out->n;
}

static void formats_are_what_they_say(void **state)
{
    static const struct {
        enum encode_format format;
        const char *begin;
        size_t n_begin, least, most;
    } cases[] = {{ENCODE_WAV, "RIFF", 4, 48044, 48044}, {ENCODE_PCM, "", 0, 48000, 48000},
        {ENCODE_MP3, "\xFF", 1, 15000, 18000}, {ENCODE_OPUS, "OggS", 4, 2000, 12000},
        {ENCODE_FLAC, "fLaC", 4, 5000, 48000}, {ENCODE_AAC, "\xFF\xF9", 2, 5000, 12000}};
    char list[256] = "";
    (void)state;
    assert_int_equal(sizeof cases / sizeof *cases, ENCODE_FORMATS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct encode_settings settings = {.format = cases[i].format, .speed = 1, .volume = 1};
        strcat(strcat(list, i ? "|" : ""), encode_format_name((enum encode_format)i));
        struct wire_out one = {0}, other = {0};
        size_t n = encode_second(&settings, 1920, &one);
        if (n < cases[i].least || n > cases[i].most ||
            memcmp(one.bytes, cases[i].begin, cases[i].n_begin) != 0) {
            fail_msg("%s: %zu bytes", encode_format_name(cases[i].format), n);
        }
        /* The pieces in which the samples came do not matter. */
        assert_int_equal(encode_second(&settings, 480, &other), n);
        if (memcmp(one.bytes, other.bytes, n) != 0) {
            fail_msg("%s differs in other pieces", encode_format_name(cases[i].format));
        }
        wire_fini(&one);
        wire_fini(&other);
    }
    assert_string_equal(list, ENCODE_FORMAT_LIST);
}

static void speed_rate_and_loudness(void **state)
{
    static const struct {
        double speed, volume;
        int rate;
        size_t bytes;
    } cases[] = {{2, 1, 0, 24000}, {0.5, 1, 0, 96000}, {1, 0.5, 0, 48000}, {1, 1, 8000, 16000},
        {1, 1, 48000, 96000}, {1.25, 1, 16000, 25600}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct encode_settings settings = {.format = ENCODE_PCM,
            .speed = cases[i].speed,
            .volume = cases[i].volume,
            .sample_rate = cases[i].rate};
        struct wire_out out = {0};
        double n = (double)encode_second(&settings, 1920, &out), want = (double)cases[i].bytes;
        /* Stretching works on whole pitch periods: within 60 ms. */
        if (fabs(n - want) > 0.06 * 2 * (cases[i].rate ? cases[i].rate : 24000)) {
            fail_msg("speed %g, rate %d: %g bytes, not %g", cases[i].speed, cases[i].rate, n, want);
        }
        int most = 0;
        for (size_t k = 0; k + 1 < out.n; k += 2) {
            int sample = (int16_t)(out.bytes[k] | out.bytes[k + 1] << 8);
            most = sample > most ? sample : most;
        }
        assert_true(fabs(most / 32768.0 - 0.3 * cases[i].volume) < 0.02);
        wire_fini(&out);
    }
}

static void a_whole_wav_has_true_sizes(void **state)
{
    struct encode_settings settings = {.format = ENCODE_WAV, .speed = 1, .volume = 1};
    struct wire_out out = {0};
    (void)state;
    size_t n = encode_second(&settings, 1920, &out);
    assert_int_equal(out.bytes[40] & out.bytes[43], 0xFF);
    encode_true_sizes(ENCODE_WAV, out.bytes, n, 24000);
    assert_int_equal(out.bytes[40] | out.bytes[41] << 8 | out.bytes[42] << 16, 48000);
    assert_int_equal(out.bytes[4] | out.bytes[5] << 8 | out.bytes[6] << 16, 48036);
    /* Of more than its header can tell it says, as a stream does, that it goes on to the end. */
    const size_t most = UINT32_MAX;
    encode_true_sizes(ENCODE_WAV, out.bytes, most + 8, 24000);
    assert_memory_equal(out.bytes + 4, "\xFF\xFF\xFF\xFF", 4);
    assert_memory_equal(out.bytes + 40, "\xDB\xFF\xFF\xFF", 4);
    encode_true_sizes(ENCODE_WAV, out.bytes, 5 * (most / 4), 24000);
    assert_memory_equal(out.bytes + 4, "\xFF\xFF\xFF\xFF", 4);
    assert_memory_equal(out.bytes + 40, "\xFF\xFF\xFF\xFF", 4);
    wire_fini(&out);
}

static double real_at(const uint8_t *bytes)
{
    double value;
    memcpy(&value, bytes, sizeof value); /* little endian, as every machine that this runs on */
    return value;
}

/* What an older worker would read: the message has not changed with the table of parameters. */
static void parameters_have_their_place_in_the_message(void **state)
{
    struct wire_open open = {.layout = 2,
                         .sampling = {0.5, 7, 0.25, 1.5, 0.75, 9, NAN},
                         .markup = 3,
                         .spell_out = true,
                         .carry = true,
                         .plain = true,
                         .words = true,
                         .background = true},
                     again;
    struct wire_out out = {0};
    struct wire_message m;
    size_t used;
    (void)state;
    wire_put_open(&out, 5, &open);
    assert_int_equal(out.n, WIRE_HEADER_BYTES + 4 * 4 + 4 + 5 * 8 + 2 * 4 + 8 + 8 * 4);
    const uint8_t *at = out.bytes + WIRE_HEADER_BYTES + 4 * 4 + 4;
    assert_true(real_at(at) == 0.5 && real_at(at + 8) == 0.25 && real_at(at + 16) == 1.5);
    assert_true(real_at(at + 24) == 0.75 && isnan(real_at(at + 32)));
    assert_true(at[40] == 7 && at[44] == 9);
    assert_int_equal(wire_message_bytes(out.bytes), out.n);
    assert_int_equal(wire_read(&m, out.bytes, out.n, &used), WIRE_MESSAGE);
    assert_true(wire_get_open(&again, &m) && again.markup == 3 && again.spell_out && again.carry &&
                again.plain && again.words && again.background);
    assert_memory_equal(again.sampling, open.sampling, (size_t)parameter_count * sizeof *open.sampling);
    wire_fini(&out);
}

static const char *const languages[] = {"english", "german"};
static const struct fields_model model = {"m", "custom_voice", languages, 2, false, ENCODE_MP3};

/* The refusal of a request with these fields beside its input, or "". */
static const char *told(const char *more)
{
    static struct refusal refusal;
    struct fields f;
    char text[256];
    refusal = (struct refusal){0};
    snprintf(text, sizeof text, "{\"input\": \"x\", %s}", more);
    json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    bool good = fields_parse(&f, object, NULL, FIELDS_FOR_SPEECH, &model, &refusal);
    assert_int_equal(f.n_unknown, 0);
    assert_int_equal(good, refusal.status == 0);
    fields_fini(&f);
    json_decref(object);
    return refusal.message;
}

static void parameters_are_fields(void **state)
{
    (void)state;
    assert_string_equal(told("\"temperature\": 100, \"top_k\": 1000000, \"top_p\": 1e-6"), "");
    assert_string_equal(told("\"subtalker_top_k\": 0, \"repetition_penalty\": 0.001"), "");
    assert_string_equal(told("\"top_p\": 1e-7"), "\"top_p\" must be a number from 1e-06 to 1");
    assert_string_equal(told("\"repetition_penalty\": 101"),
        "\"repetition_penalty\" must be a number from 0.001 to 100");
    assert_string_equal(told("\"top_k\": 1.5"), "\"top_k\" must be a whole number from 0 to 1000000");
    /* The first of several faults, as it has always been. */
    assert_string_equal(told("\"subtalker_temperature\": -1, \"top_k\": -1, \"top_p\": 2"),
        "\"top_p\" must be a number from 1e-06 to 1");
    assert_string_equal(told("\"subtalker_top_p\": 2, \"top_k\": -1"),
        "\"top_k\" must be a whole number from 0 to 1000000");
}

static void names_of_others_stand_for_ours(void **state)
{
    static const char *const ours[] = {"ryan", "vivian"}, *const strange[] = {"a", "b"};
    (void)state;
    assert_string_equal(told("\"model\": \"utter\""), "");
    assert_true(alias_is_model("gpt-4o-mini-tts-2025-12-15"));
    for (int i = 0; alias_model(i); i++) {
        assert_true(alias_is_model(alias_model(i)));
    }
    assert_string_equal(told("\"model\": \"x\""),
        "the model 'x' is not served here (served: m, tts-1, tts-1-hd, gpt-4o-mini-tts)");
    assert_string_equal(told("\"language\": \"de-AT\""), "");
    assert_non_null(strstr(told("\"language\": \"germn\""), "(did you mean german? it speaks auto, "));
    int n = 0;
    while (alias_voice(n)) {
        assert_non_null(alias_preset(alias_voice(n++), strange, 2));
    }
    assert_int_equal(n, 13);
    assert_string_equal(alias_preset("Alloy", ours, 2), "vivian");
    assert_null(alias_preset("ryan", ours, 2));
}

/* By the format; of those that lose something by the bits a second that were asked for. */
static void bytes_of_an_answer_are_foretold(void **state)
{
    static const struct {
        struct encode_settings sound;
        double a_second;
    } cases[] = {{{.format = ENCODE_PCM}, 48000}, {{.format = ENCODE_PCM, .sample_rate = 48000}, 96000},
        {{.format = ENCODE_WAV, .samples = SAMPLES_ULAW, .sample_rate = 8000}, 8000},
        {{.format = ENCODE_FLAC}, 48000}, {{.format = ENCODE_MP3}, 16000},
        {{.format = ENCODE_OPUS, .bit_rate = 64000}, 8000}};
    static struct server server = {.ready.sample_rate = 24000};
    server.admission.seconds_a_byte = 1;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fields f = {.input = "four", .sound = cases[i].sound};
        f.sound.speed = 2;
        const double margin = admission_bytes(&server, &f) / (4.0 / 2 * cases[i].a_second);
        assert_true(margin > 1 && margin < 1.5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_no_sound_goes_first),
        cmocka_unit_test(who_has_waited_long_has_its_turn),
        cmocka_unit_test(a_first_sound_is_due_like_a_frame),
        cmocka_unit_test(prompts_come_one_after_another),
        cmocka_unit_test(a_step_ends_in_time),
        cmocka_unit_test(few_lanes_that_are_fast_are_used),
        cmocka_unit_test(short_texts_pass_long_ones),
        cmocka_unit_test(a_page_that_does_not_fit_bars_no_sentence),
        cmocka_unit_test(background_has_what_listeners_leave),
        cmocka_unit_test(steps_are_foretold),
        cmocka_unit_test(a_key_has_limits),
        cmocka_unit_test(a_language_outlives_the_worker_that_named_it),
        cmocka_unit_test(formats_are_what_they_say),
        cmocka_unit_test(speed_rate_and_loudness),
        cmocka_unit_test(a_whole_wav_has_true_sizes),
        cmocka_unit_test(bytes_of_an_answer_are_foretold),
        cmocka_unit_test(parameters_have_their_place_in_the_message),
        cmocka_unit_test(parameters_are_fields),
        cmocka_unit_test(names_of_others_stand_for_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
