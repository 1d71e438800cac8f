/* SPDX-License-Identifier: Apache-2.0
 * What the dialects stand on: markup, times of letters, names of formats, maps of voices, samples of telephones. */
#include "tests/support.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/dialects/cartesia/cartesia_message.h"
#include "server/dialects/deepgram/deepgram_message.h"
#include "server/dialects/elevenlabs/elevenlabs_message.h"
#include "server/dialects/markup.h"
#include "server/dialects/spoken.h"
#include "server/dialects/voice_map.h"
#include "server/protocol/base64.h"
#include "server/protocol/refusal.h"
#include "server/sound/encode.h"
#include "server/speech/voices_parts.h"

/* The text without its markup, given in pieces of so many bytes. */
static const char *strip(const char *text, size_t piece)
{
    static char out[4096];
    struct markup m = {.n_held = 0};
    size_t n = strlen(text), written = 0;
    for (size_t at = 0; at < n; at += piece) {
        written += markup_strip(&m, text + at, n - at < piece ? n - at : piece, out + written);
    }
    written += markup_end(&m, out + written);
    out[written] = 0;
    return out;
}

static void markup_is_taken_out(void **state)
{
    static const char *const cases[][2] = {
        {"Wait <break time=\"1s\"/>here.", "Wait here."},
        {"My code is <spell>AB12</spell>.", "My code is AB12."},
        {"<emotion value=\"angry\"/>No!", "No!"},
        {"I say <<m|\xC9\x9B|t>>!", "I say !"},
        {"3 < 4 and 5 > 4", "3 < 4 and 5 > 4"},
        {"a <- b, <3, <", "a <- b, <3, <"},
        {"<<b>", "<<b>"},
        {"< <b>x</b>", "< x"},
        {"a</ b", "a</ b"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece < 9; piece++) {
            assert_string_equal(strip(cases[i][0], piece), cases[i][1]);
        }
    }
    char longer[400] = "<a";
    memset(longer + 2, 'b', sizeof longer - 3); /* never ends: text */
    assert_string_equal(strip(longer, 7), longer);
}

struct told {
    char text[256];
    double starts[256], ends[256];
    int n;
};

static void tell(void *user, const char *letter, size_t bytes, double start_s, double end_s)
{
    struct told *t = user;
    strncat(t->text, letter, bytes);
    t->starts[t->n] = start_s;
    t->ends[t->n++] = end_s;
}

/* More parts of a letter than one has are a letter of their own. */
static void what_is_no_letter_is_told_in_parts(void **state)
{
    static const char text[] = "\xF0\x80\x80\x80\x80"
                               "a";
    static const struct speech_word words[] = {
        {2, 5, 0, 1, 1, true, false}, {5, 1, 2, 3, 1, true, false}};
    struct told t = {.n = 0};
    struct spoken s = {0};
    (void)state;
    spoken_words(&s, text, 6, words, 2, false, tell, &t); /* the first one ends beyond the text */
    assert_int_equal(t.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(t.starts[i] - i) < 1e-9 && fabs(t.ends[i] - i - 1) < 1e-9);
    }
    spoken_rest(&s, text, 6, 4, tell, &t);
    assert_true(t.n == 4 && fabs(t.starts[3] - 4) < 1e-9 && fabs(s.letter_s - 4) < 1e-9);
}

static void letters_have_times(void **state)
{
    static const char text[] = "One t\xC3\xBCr.";
    static const struct speech_word words[] = {{0, 3, 0.1, 0.4, 1, true, false},
        {4, 4, 0.5, 1.1, 1, true, false}, {90, 4, 0, 9, 1, true, false}};
    struct told t = {.n = 0};
    struct spoken s = {0};
    (void)state;
    spoken_words(&s, text, strlen(text), words, 1, true, tell, &t);
    assert_string_equal(t.text, "One "); /* up to the next word, so that this one is seen to be whole */
    assert_true(fabs(t.ends[3] - 0.5) < 1e-9 && fabs(s.letter_s - 0.5) < 1e-9);
    spoken_words(&s, text, strlen(text), words + 1, 2, false, tell, &t);
    assert_string_equal(t.text, "One t\xC3\xBCr");
    assert_int_equal(t.n, 7);
    assert_true(
        fabs(t.starts[1] - 0.2) < 1e-9 && fabs(t.ends[3] - 0.5) < 1e-9 && fabs(t.ends[6] - 1.1) < 1e-9);
    spoken_rest(&s, text, strlen(text), 1.5, tell, &t);
    assert_string_equal(t.text, "One t\xC3\xBCr. ");
    assert_true(fabs(t.ends[7] - 1.5) < 1e-9 && t.starts[8] >= t.ends[7] && t.ends[8] <= t.starts[8]);
    for (int i = 1; i < t.n; i++) {
        assert_true(fabs(t.starts[i] - t.ends[i - 1]) < 1e-9);
    }
}

/* A client that adds up the messages (the last letter's end of each) stays with the sound, whatever is cut where. */
static void messages_of_letters_add_up(void **state)
{
    static const char text[] = "One two, three. ";
    static const struct speech_word words[] = {{0, 3, 0.2, 0.5, 1, true, false},
        {4, 3, 0.6, 0.9, 1, true, false}, {4, 3, 1.2, 1.4, 1, true, false}, /* said again */
        {9, 5, 1.5, 2, 1, true, false}};
    struct spoken s = {0};
    double clock_s = 0;
    (void)state;
    for (int i = 0; i <= 4; i++) {
        struct told t = {.n = 0};
        double from_s = s.letter_s;
        if (i < 4) {
            spoken_words(&s, text, strlen(text), &words[i], 1, i < 3, tell, &t);
        } else {
            spoken_rest(&s, text, strlen(text), 2.4, tell, &t);
        }
        for (int k = 0; k < t.n && i < 4; k++) { /* a word begins when it is heard */
            assert_true(t.text[k] != 't' || t.starts[k] > words[i].start_s - 1e-9);
        }
        clock_s += t.n ? t.ends[t.n - 1] - from_s : 0;
    }
    assert_true(fabs(clock_s - 2.4) < 1e-9);
}

/* A word goes on until white space, also when it is told in two messages. */
static void words_are_put_together(void **state)
{
    static const char text[] = "It's e-mail, no?";
    static const struct speech_word words[] = {{0, 4, 0, 0.2, 1, true, false},
        {5, 1, 0.3, 0.4, 1, true, false}, {7, 4, 0.4, 0.7, 1, true, false},
        {13, 2, 0.8, 1, 1, true, false}};
    struct spoken s = {0};
    struct cartesia_words w = {.from_s = 10};
    char all[200] = "";
    (void)state;
    for (int i = 0; i <= 4; i++) {
        if (i < 4) {
            spoken_words(&s, text, strlen(text), &words[i], 1, i < 3, cartesia_words_letter, &w);
        } else {
            spoken_rest(&s, text, strlen(text), 1.2, cartesia_words_letter, &w);
        }
        json_t *told = i < 4 ? cartesia_words_take(&w) : cartesia_words_end(&w), *word;
        size_t k;
        json_array_foreach(json_object_get(told, "words"), k, word)
        {
            strcat(strcat(all, json_string_value(word)), i < 4 ? "/" : "|");
            double start_s = json_real_value(json_array_get(json_object_get(told, "start"), k));
            assert_true(start_s >= 10 && start_s < 11);
        }
        json_t *ends = json_object_get(told, "end");
        assert_true(!ends || ends->refcount == 1); /* nobody else keeps it */
        json_decref(told);
    }
    assert_string_equal(all, "It's/e-mail,/no?|");
}

static void formats_of_elevenlabs_are_known(void **state)
{
    const char *name;
    char why[160];
    struct refusal r;
    (void)state;
    for (int i = 0; (name = elevenlabs_format(i)); i++) {
        struct elevenlabs_query query = {.output_format = name};
        json_t *fields = elevenlabs_fields(NULL, &query, false, &r);
        assert_non_null(fields);
        struct encode_settings settings = {.speed = 1, .volume = 1};
        settings.sample_rate = (int)json_integer_value(json_object_get(fields, "sample_rate"));
        assert_true(settings.sample_rate >= 8000 && encode_check(&settings, why, sizeof why));
        bool coded = strncmp(name, "mp3", 3) == 0 || strncmp(name, "opus", 4) == 0;
        assert_int_equal(coded, json_integer_value(json_object_get(fields, "bit_rate")) >= 32000);
        json_decref(fields);
    }
    struct elevenlabs_query wrong = {.output_format = "mp3_44100_"};
    assert_null(elevenlabs_fields(NULL, &wrong, false, &r));
    assert_int_equal(r.status, 400);
}

static void maps_are_looked_up(void **state)
{
    json_t *map = json_pack("{s:{s:s,s:s},s:{s:s,s:s}}", "a", "x", "of a", "*", "rest of a", "*", "x",
        "of all", "y", "y of all");
    (void)state;
    assert_string_equal(voice_map_entry(map, "a", "x"), "of a");
    assert_string_equal(voice_map_entry(map, "a", "y"), "y of all");
    assert_string_equal(voice_map_entry(map, "a", "*"), "rest of a");
    assert_string_equal(voice_map_entry(map, "b", "x"), "of all");
    assert_null(voice_map_entry(map, "b", "z"));
    assert_null(voice_map_entry(NULL, "b", "z"));
    assert_string_equal(voice_map_stock("21m00Tcm4TlvDq8ikWAM"), "nova");
    assert_null(voice_map_stock("nobody"));
    json_decref(map);
}

/* Reads a file of that text; what is said on standard error. */
static const char *read_map(struct server *s, const char *text)
{
    static char said[300];
    int ends[2], kept = dup(STDERR_FILENO);
    FILE *file = text ? fopen(s->options->voice_map, "w") : NULL;
    assert_true(!text || (file && fputs(text, file) >= 0 && fclose(file) == 0));
    assert_true(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    bool good = voice_map_read(s);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    ssize_t n = read(ends[0], said, sizeof said - 1);
    said[n > 0 ? n : 0] = 0;
    close(kept), close(ends[0]), close(ends[1]);
    assert_int_equal(good, n <= 0);
    return said;
}

static void maps_are_read_from_a_file(void **state)
{
    static const char *const bad[] = {
        "[]", "{\"a\":[]}", "{\"a\":{\"x\":1}}", "{\"a\":{},\"b\":\"x\"}"};
    static const struct {
        const char *dialect, *name, *means;
    } cases[] = {{"elevenlabs", "x", "of elevenlabs"}, {"cartesia", "x", "of all"},
        {"elevenlabs", "clara", "clara"}, {"elevenlabs", "miles", "somebody"}, /* the file goes first */
        {"elevenlabs", "21m00Tcm4TlvDq8ikWAM", "nova"}, {"elevenlabs", "21M00TCM4TLVDQ8IKWAM", "nova"},
        {"elevenlabs", "nobody", "the rest"}, {"cartesia", "nobody", "nobody"}};
    char path[] = P_tmpdir "/utter-map-XXXXXX";
    struct voices voices = {.n = 0};
    const struct serve_options options = {.voice_map = path}, none = {.voice_map = NULL};
    struct server s = {.options = &none, .voices = &voices};
    (void)state;
    TAILQ_INIT(&voices.entries);
    s.ready =
        (struct wire_ready){.kind_name = "custom_voice", .voices = {"clara", "miles"}, .n_voices = 2};
    assert_string_equal(read_map(&s, NULL), "");
    assert_null(s.voice_map);
    close(mkstemp(path));
    s.options = &options;
    assert_string_equal(read_map(&s, "{\"elevenlabs\":{\"x\":\"of before\"}}"), "");
    assert_string_equal(read_map(&s, "{\"elevenlabs\":{\"x\":\"of elevenlabs\",\"miles\":\"somebody\","
                                     "\"*\":\"the rest\"},\"*\":{\"x\":\"of all\"}}"),
        "");
    json_t *before = json_incref(s.voice_map);
    assert_string_equal(read_map(&s, "{\"elevenlabs\":{\"x\":\"of elevenlabs\",\"miles\":\"somebody\","
                                     "\"*\":\"the rest\"},\"*\":{\"x\":\"of all\"}}"),
        "");
    assert_int_equal(before->refcount, 1); /* the one before is given back */
    json_decref(before);
    for (int again = 0; again < 2; again++) { /* a file that is wrong leaves the map as it was */
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            assert_string_equal(voice_map_find(&s, cases[i].dialect, cases[i].name), cases[i].means);
        }
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            assert_non_null(strstr(read_map(&s, bad[i]), "must be an object of objects"));
        }
        assert_non_null(strstr(read_map(&s, "{"), path));
    }
    json_t *last = json_incref(s.voice_map);
    voice_map_free(&s);
    assert_null(s.voice_map);
    assert_int_equal(last->refcount, 1);
    json_decref(last);
    assert_string_equal(voice_map_find(&s, "elevenlabs", "x"), "x");
    unlink(path);
}

/* Values of the tables in G.711, and of every value what its own decoder gives back. */
static void telephones_are_understood(void **state)
{
    (void)state;
    assert_int_equal(samples_ulaw(0), 0xFF);
    assert_int_equal(samples_ulaw(-1), 0x7F);
    assert_int_equal(samples_ulaw(32767), 0x80);
    assert_int_equal(samples_ulaw(-32768), 0x00);
    assert_int_equal(samples_alaw(0), 0xD5);
    assert_int_equal(samples_alaw(-1), 0x55);
    assert_int_equal(samples_alaw(32767), 0xAA);
    assert_int_equal(samples_alaw(-32768), 0x2A);
    for (int x = -32768; x < 32768; x++) {
        int u = (uint8_t)~samples_ulaw((int16_t)x), a = samples_alaw((int16_t)x) ^ 0x55;
        int u_size = ((((u & 15) << 3) + 132) << (u >> 4 & 7)) - 132, segment = a >> 4 & 7;
        int a_size = segment ? (((a & 15) << 4) + 264) << (segment - 1) : ((a & 15) << 4) + 8;
        int size = x < 0 ? -x : x;
        assert_int_equal(u & 0x80, x < 0 ? 0x80 : 0);
        assert_int_equal(a & 0x80, x < 0 ? 0 : 0x80);
        assert_true(abs(u_size - size) <= size / 28 + 4 || size > 32635);
        assert_true(abs(a_size - size) <= size / 28 + 9);
    }
}

static void a_wav_says_its_samples(void **state)
{
    static const int format[] = {1, 3, 7, 6}, bytes[] = {2, 4, 1, 1};
    const float pcm[2] = {0.5f, NAN};
    (void)state;
    for (int i = SAMPLES_S16; i <= SAMPLES_ALAW; i++) {
        struct wire_out out = {0};
        samples_put_wav(&out, (enum samples)i, 8000);
        samples_put(&out, (enum samples)i, pcm, 2);
        assert_int_equal(out.n, 44 + 2 * bytes[i]);
        assert_int_equal(out.bytes[20], format[i]);
        assert_int_equal(out.bytes[32], bytes[i]);
        assert_int_equal(out.bytes[34], 8 * bytes[i]);
        wire_fini(&out);
    }
}

/* Both are written a block at a time. */
static void many_samples_are_as_each_alone(void **state)
{
    enum { N = 1300 };
    float pcm[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        pcm[i] = i % 100 == 99 ? NAN : 1.1f * sinf((float)i);
    }
    for (int kind = SAMPLES_S16; kind <= SAMPLES_ALAW; kind++) {
        struct wire_out all = {0}, alone = {0}, letters = {0};
        samples_put(&all, (enum samples)kind, pcm, N);
        for (int i = 0; i < N; i++) {
            samples_put(&alone, (enum samples)kind, pcm + i, 1);
        }
        assert_int_equal(all.n, N * (size_t)samples_bytes((enum samples)kind));
        assert_int_equal(alone.n, all.n);
        assert_memory_equal(all.bytes, alone.bytes, all.n);
        for (size_t left = 0; left < 3; left++) { /* without padding, and with both kinds of it */
            json_t *right = base64_write(all.bytes, all.n - left);
            letters.n = 0;
            base64_put(&letters, all.bytes, all.n - left);
            assert_int_equal(letters.n, json_string_length(right));
            assert_memory_equal(letters.bytes, json_string_value(right), letters.n);
            json_decref(right);
        }
        wire_fini(&all);
        wire_fini(&alone);
        wire_fini(&letters);
    }
}

/* The text is not ended by a zero: what stands behind it is no part of it. */
static void an_interruption_ends_with_its_text(void **state)
{
    const struct deepgram_turn turn = {"id", 1, 2};
    (void)state;
    char *text = malloc(3);
    assert_non_null(text);
    memcpy(text, "a  ", 3);
    for (long long spoken = 1; spoken <= 3; spoken += 2) {
        json_t *m = deepgram_interrupted(&turn, 500, text, 3, spoken);
        assert_int_equal(json_string_length(json_object_get(m, "text_spoken")), spoken);
        assert_string_equal(json_string_value(json_object_get(m, "text_remaining")), "");
        json_decref(m);
    }
    free(text);
}

/* Of a message that it does not have, the sentence names those that there are. */
static void deepgram_is_refused_in_its_words(void **state)
{
    static const struct {
        int status;
        const char *code;
    } cases[] = {{400, "INVALID_REQUEST"}, {401, "INVALID_AUTH"}, {404, "INVALID_MODEL"},
        {429, "TOO_MANY_REQUESTS"}, {500, "INTERNAL_SERVER_ERROR"}, {502, "INTERNAL_SERVER_ERROR"},
        {503, "SERVICE_UNAVAILABLE"}};
    struct deepgram_message m;
    struct refusal r;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refuse(&r, cases[i].status, NULL, "why");
        json_t *error = deepgram_error(&r), *refusal = deepgram_refusal(&r);
        assert_string_equal(json_string_value(json_object_get(error, "code")), cases[i].code);
        assert_string_equal(json_string_value(json_object_get(refusal, "err_code")), cases[i].code);
        json_decref(error);
        json_decref(refusal);
    }
    json_t *clear = json_pack("{s:s}", "type", "Clear");
    assert_true(deepgram_read(&m, clear, false, &r) && m.kind == DEEPGRAM_CLEAR);
    assert_false(deepgram_read(&m, clear, true, &r));
    assert_string_equal(r.message, "\"type\" must be Speak, Flush, Interrupt, Configure or Close");
    json_decref(clear);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_is_taken_out),
        cmocka_unit_test(what_is_no_letter_is_told_in_parts),
        cmocka_unit_test(letters_have_times),
        cmocka_unit_test(messages_of_letters_add_up),
        cmocka_unit_test(words_are_put_together),
        cmocka_unit_test(formats_of_elevenlabs_are_known),
        cmocka_unit_test(maps_are_looked_up),
        cmocka_unit_test(maps_are_read_from_a_file),
        cmocka_unit_test(telephones_are_understood),
        cmocka_unit_test(a_wav_says_its_samples),
        cmocka_unit_test(many_samples_are_as_each_alone),
        cmocka_unit_test(an_interruption_ends_with_its_text),
        cmocka_unit_test(deepgram_is_refused_in_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
