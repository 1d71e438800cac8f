/* SPDX-License-Identifier: Apache-2.0
 * What coders make of the end of a sound, and what is put right at its beginning then. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audio/sound_read.h"
#include "base/memory.h"
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

/* ---- Whole sounds, as a player reads them ---- */

enum { RATE = 24000, SECOND = 24000 };

static float tone(size_t i)
{
    return 0.5F * sinf(0.2F * (float)i);
}

/* A second of sound in pieces of so many samples; the last of them is the end, or the end comes behind it. */
static struct wire_out coded(const struct encode_settings *settings, size_t piece, bool end_alone)
{
    struct wire_out out = {0};
    struct encode *e = encode_new(settings, RATE);
    float pcm[SECOND];
    assert_non_null(e);
    for (size_t at = 0, n; at < SECOND; at += n) {
        n = SECOND - at < piece ? SECOND - at : piece;
        for (size_t i = 0; i < n; i++) {
            pcm[i] = tone(at + i);
        }
        assert_true(encode_feed(e, pcm, n, at + n == SECOND && !end_alone, &out));
    }
    if (end_alone) {
        assert_true(encode_feed(e, pcm, 0, true, &out));
    }
    encode_free(e);
    return out;
}

/* Nor does it matter whether the end is told with the last samples or behind them. */
static void pieces_make_no_difference(void **state)
{
    static const size_t pieces[] = {1, 100, 1919, 1920, 1921, 5000, SECOND};
    (void)state;
    for (int format = 0; format < ENCODE_FORMATS; format++) {
        const struct encode_settings settings = {
            .format = (enum encode_format)format, .speed = 1, .volume = 1};
        struct wire_out wanted = coded(&settings, 480, true);
        for (size_t i = 0; i < 2 * sizeof pieces / sizeof *pieces; i++) {
            struct wire_out out = coded(&settings, pieces[i / 2], i % 2);
            if (out.n != wanted.n || memcmp(out.bytes, wanted.bytes, out.n) != 0) {
                fail_msg(
                    "%s differs in pieces of %zu", encode_format_name(settings.format), pieces[i / 2]);
            }
            wire_fini(&out);
        }
        wire_fini(&wanted);
    }
}

/* Each frame of MP3 has the same head: layer III without a sum, the bits a second, the rate, one channel. */
static void mp3_has_frames_of_one_kind(void **state)
{
    static const struct {
        int rate, bit_rate;
        uint8_t head[4];
        size_t bytes, samples; /* of a frame */
    } cases[] = {
        {0, 0, {0xFF, 0xF3, 0xC4, 0xC4}, 384, 576}, /* 24 kHz, 128 kbit/s */
        {24000, 64000, {0xFF, 0xF3, 0x84, 0xC4}, 192, 576},
        {16000, 0, {0xFF, 0xF3, 0xC8, 0xC4}, 576, 576}, /* 128 kbit/s */
        {12000, 0, {0xFF, 0xE3, 0x84, 0xC4}, 384, 576}, /* 64 kbit/s */
        {8000, 0, {0xFF, 0xE3, 0x88, 0xC4}, 576, 576},
        {48000, 0, {0xFF, 0xFB, 0x94, 0xC4}, 384, 1152}, /* 128 kbit/s */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct encode_settings settings = {.format = ENCODE_MP3,
            .speed = 1,
            .volume = 1,
            .sample_rate = cases[i].rate,
            .bit_rate = cases[i].bit_rate};
        struct wire_out out = coded(&settings, 480, false);
        for (size_t at = 0; at < out.n; at += cases[i].bytes) {
            assert_memory_equal(out.bytes + at, cases[i].head, 4);
            assert_int_equal(out.bytes[at + 4], 0); /* nothing of it is in the one before */
        }
        /* All of the sound is in them, with what a decoder puts in front, and little more. */
        const size_t n = (cases[i].rate ? (size_t)cases[i].rate : SECOND) + 1105,
                     made = out.n / cases[i].bytes * cases[i].samples;
        assert_true(out.n % cases[i].bytes == 0 && made >= n && made < n + cases[i].samples);
        wire_fini(&out);
    }
}

/* Those of AAC: low complexity, the rate, one channel; a frame has as many bits as its second allows. */
static void aac_has_bits_by_its_rate(void **state)
{
    static const struct {
        int rate;
        uint8_t head[4];
        double bits;
    } cases[] = {{0, {0xFF, 0xF9, 0x58, 0x40}, 64000}, {16000, {0xFF, 0xF9, 0x60, 0x40}, 64000},
        {12000, {0xFF, 0xF9, 0x64, 0x40}, 32000}, {8000, {0xFF, 0xF9, 0x6C, 0x40}, 32000}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct encode_settings settings = {
            .format = ENCODE_AAC, .speed = 1, .volume = 1, .sample_rate = cases[i].rate};
        struct wire_out out = coded(&settings, 480, false);
        const double bits = 8.0 * (double)out.n;
        assert_memory_equal(out.bytes, cases[i].head, 3);
        assert_int_equal(out.bytes[3] & 0xF0, cases[i].head[3]); /* the rest is of its length */
        assert_true(bits > cases[i].bits && bits < 1.2 * cases[i].bits);
        wire_fini(&out);
    }
}

/* A page of Ogg holds one packet of Opus, of 20 ms: players start at once. */
static void opus_has_a_page_for_each_packet(void **state)
{
    enum { HEAD = 27, GRANULE = 6, SERIAL = 14, SEGMENTS = 26, ID_CHANNELS = 9, ID_RATE = 12 };
    static const int bit_rates[] = {0, 16000, 64000}; /* 0: 32000 */
    (void)state;
    for (size_t i = 0; i < sizeof bit_rates / sizeof *bit_rates; i++) {
        const struct encode_settings settings = {
            .format = ENCODE_OPUS, .speed = 1, .volume = 1, .bit_rate = bit_rates[i]};
        struct wire_out out = coded(&settings, 480, false);
        size_t n = 0, at = 0, bytes = 0;
        for (size_t packet; at < out.n; at += HEAD + out.bytes[at + SEGMENTS] + packet, n++) {
            const uint8_t *page = out.bytes + at;
            const size_t granule = page[GRANULE] | (size_t)page[GRANULE + 1] << 8;
            assert_memory_equal(page, "OggS", 4);
            assert_memory_equal(page + SERIAL, "\1\0\0\0", 4); /* each time, so that bytes are */
            packet = 0;
            for (int k = 0; k < page[SEGMENTS]; k++) {
                packet += page[HEAD + k];
            }
            if (n == 0) {
                const uint8_t *id = page + HEAD + page[SEGMENTS];
                assert_memory_equal(id, "OpusHead", 8);
                assert_int_equal(id[ID_CHANNELS], 1);
                assert_int_equal(id[ID_RATE] | id[ID_RATE + 1] << 8, RATE);
            } else if (n > 1) { /* the one before are comments; the last is as long as the rest */
                const bool is_last = at + HEAD + page[SEGMENTS] + packet == out.n;
                assert_true(
                    is_last ? granule > 48000 && granule < 48000 + 960 : granule == 960 * (n - 1));
                bytes += packet;
            }
        }
        const double wanted = bit_rates[i] ? bit_rates[i] : 32000, bits = 8.0 * (double)bytes;
        assert_int_equal(at, out.n);
        assert_true(n == 2 + 51 && bits > 0.75 * wanted && bits < 1.35 * wanted);
        wire_fini(&out);
    }
}

/* A tenth of a second behind what goes in, at most, comes what is heard. */
static void sound_comes_as_it_is_made(void **state)
{
    (void)state;
    for (int format = 0; format < ENCODE_FORMATS; format++) {
        const struct encode_settings settings = {
            .format = (enum encode_format)format, .speed = 1, .volume = 1};
        struct wire_out out = {0}, whole = coded(&settings, 480, true);
        struct encode *e = encode_new(&settings, RATE);
        assert_non_null(e);
        float pcm[480];
        for (size_t at = 0; at < SECOND; at += 480) {
            for (size_t i = 0; i < 480; i++) {
                pcm[i] = tone(at + i);
            }
            assert_true(encode_feed(e, pcm, 480, false, &out));
            const double share = (double)(at + 480) / SECOND - 0.11;
            if ((double)out.n < share * (double)whole.n) {
                fail_msg("%s: %zu bytes of %zu after %zu samples", encode_format_name(settings.format),
                    out.n, whole.n, at + 480);
            }
        }
        encode_free(e);
        wire_fini(&out);
        wire_fini(&whole);
    }
}

/* Each allocation of theirs fails, one after the other. */
static void without_memory_there_is_no_coder(void **state)
{
    static const enum encode_format formats[] = {ENCODE_PCM, ENCODE_FLAC, ENCODE_AAC};
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const struct encode_settings settings = {
            .format = formats[i], .speed = 1, .volume = 1, .sample_rate = 16000};
        SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
        {
            struct encode *e = encode_new(&settings, RATE);
            assert_true(!e == support_failed());
            encode_free(e);
        }
    }
}

/* Blocks of 80 ms, of one channel and 16 bits, as STREAMINFO has it. */
static void flac_loses_nothing(void **state)
{
    enum { INFO = 8, BLOCK = 1920 };
    const struct encode_settings settings = {.format = ENCODE_FLAC, .speed = 1, .volume = 1};
    struct wire_out out = coded(&settings, 480, false);
    struct sound_heard about;
    float *pcm;
    size_t n;
    (void)state;
    const uint8_t *info = out.bytes + INFO;
    assert_int_equal(info[0] << 8 | info[1], BLOCK); /* the least, and the most */
    assert_int_equal(info[2] << 8 | info[3], BLOCK);
    assert_int_equal(info[10] << 12 | info[11] << 4 | info[12] >> 4, RATE);
    assert_int_equal(info[12] >> 1 & 7, 1 - 1);
    assert_int_equal((info[12] & 1) << 4 | info[13] >> 4, 16 - 1);
    assert_int_equal(
        sound_read_memory(&pcm, &n, &about, out.bytes, out.n, "it", 0, NULL, NULL), UTTER_OK);
    assert_true(n == SECOND && about.sample_rate == RATE && about.channels == 1);
    for (size_t k = 0; k < n; k++) {
        assert_int_equal(lrintf(32768 * pcm[k]), lrintf(32768 * tone(k)));
    }
    memory_free(pcm);
    wire_fini(&out);
}

/* What a decoder puts in front of a sound, in seconds; and the types of formats. */
static void formats_have_delays_and_types(void **state)
{
    static const struct {
        const char *type;
        double delay;
    } wanted[ENCODE_FORMATS] = {{"audio/wav", 0}, {"audio/pcm", 0}, {"audio/mpeg", 1105},
        {"audio/ogg", 0}, {"audio/flac", 0}, {"audio/aac", 1600}};
    (void)state;
    for (int format = 0; format < ENCODE_FORMATS; format++) {
        assert_string_equal(encode_content_type((enum encode_format)format), wanted[format].type);
        for (int rate = 8000; rate <= 48000; rate += 40000) {
            const struct encode_settings settings = {
                .format = (enum encode_format)format, .speed = 1, .volume = 1, .sample_rate = rate};
            struct encode *e = encode_new(&settings, RATE);
            assert_non_null(e);
            assert_int_equal(encode_rate(e), rate);
            assert_true(fabs(encode_delay(e) - wanted[format].delay / rate) < 1e-9);
            encode_free(e);
        }
    }
}

static void some_formats_have_some_rates(void **state)
{
    static const int has[] = {0, 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000},
                     has_not[] = {7999, 8001, 44000, 48001, 96000};
    char why[200];
    (void)state;
    for (int format = 0; format < ENCODE_FORMATS; format++) {
        struct encode_settings settings = {.format = (enum encode_format)format};
        const bool any = format != ENCODE_MP3 && format != ENCODE_AAC;
        for (size_t i = 0; i < sizeof has / sizeof *has; i++) {
            settings.sample_rate = has[i];
            assert_true(encode_check(&settings, why, sizeof why));
        }
        for (size_t i = 0; i < sizeof has_not / sizeof *has_not; i++) {
            char wanted[200];
            settings.sample_rate = has_not[i];
            assert_true(encode_check(&settings, why, sizeof why) == any);
            snprintf(wanted, sizeof wanted,
                "%s has 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100 and 48000 only",
                encode_format_name(settings.format));
            if (!any) {
                assert_string_equal(why, wanted);
            }
        }
    }
}

/* G.711 and floats are kinds of samples: what is coded has none of them. */
static void what_is_coded_has_no_kinds_of_samples(void **state)
{
    char why[200], wanted[200];
    (void)state;
    for (int format = 0; format < ENCODE_FORMATS; format++) {
        for (int kind = SAMPLES_S16; kind <= SAMPLES_ALAW; kind++) {
            const struct encode_settings settings = {.format = (enum encode_format)format,
                .sample_rate = 8000,
                .samples = (enum samples)kind};
            const bool may = kind == SAMPLES_S16 || format == ENCODE_WAV || format == ENCODE_PCM;
            assert_true(encode_check(&settings, why, sizeof why) == may);
            snprintf(wanted, sizeof wanted, "%s has no kinds of samples, only wav and pcm have",
                encode_format_name(settings.format));
            if (!may) {
                assert_string_equal(why, wanted);
            }
        }
    }
}

/* What costs nothing needs no thread of its own: neither a coder, nor another rate or speed. */
static void light_work_is_known(void **state)
{
    static const struct {
        struct encode_settings settings;
        bool is_light;
    } cases[] = {{{ENCODE_WAV, 1, 1, 0, SAMPLES_S16, 0}, true},
        {{ENCODE_PCM, 1, 0.5, 24000, SAMPLES_ULAW, 0}, true},
        {{ENCODE_PCM, 2, 1, 0, SAMPLES_S16, 0}, false},
        {{ENCODE_PCM, 1, 1, 8000, SAMPLES_S16, 0}, false},
        {{ENCODE_FLAC, 1, 1, 0, SAMPLES_S16, 0}, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct encode *e = encode_new(&cases[i].settings, RATE);
        assert_non_null(e);
        assert_true(encode_is_light(e) == cases[i].is_light);
        encode_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aac_has_frames_of_silence_at_its_end),
        cmocka_unit_test(a_whole_flac_has_its_samples),
        cmocka_unit_test(pieces_make_no_difference),
        cmocka_unit_test(mp3_has_frames_of_one_kind),
        cmocka_unit_test(aac_has_bits_by_its_rate),
        cmocka_unit_test(opus_has_a_page_for_each_packet),
        cmocka_unit_test(sound_comes_as_it_is_made),
        cmocka_unit_test(without_memory_there_is_no_coder),
        cmocka_unit_test(flac_loses_nothing),
        cmocka_unit_test(formats_have_delays_and_types),
        cmocka_unit_test(some_formats_have_some_rates),
        cmocka_unit_test(what_is_coded_has_no_kinds_of_samples),
        cmocka_unit_test(light_work_is_known),
    };
    return cmocka_run_group_tests_name("coders", tests, NULL, NULL);
}
