/* SPDX-License-Identifier: Apache-2.0
 * Lines that a model of this process speaks: that each has its own text, voice and settings, that a worker that lacks
 * what a line needs says so, and that voices are opened once. With small models. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/worker_parts.h"

#define MODEL "build/checkpoints/eos-first" /* two frames of every text */

enum { FRAME = 1920, MOST_FOUND = 128 };

static utter_model *model;
static utter_stream_options defaults;
static struct speaker_model_settings settings;
static struct speaker *speaker;
static struct slot slots[2];
static utter_error why;

/* ---- What the speaker asks for ---- */

static struct {
    int n;
    char names[MOST_FOUND][32];
    utter_status status;
    const char *called; /* the hash of what a text calls for */
    int n_hashed, n_called;
} asked;

/* The voice of any name is a preset; its hash is the name with an h before it. */
static utter_status find_voice(
    void *user, const char *name, utter_voice **voice, char hash[IDENTITY_SIZE], utter_error *error)
{
    assert_ptr_equal(user, &asked);
    assert_true(asked.n < MOST_FOUND);
    snprintf(asked.names[asked.n++], sizeof asked.names[0], "%s", name);
    if (asked.status) {
        return error_set(error, asked.status, "no voice");
    }
    snprintf(hash, IDENTITY_SIZE, "h%s", name);
    const char *preset = utter_model_voice_name(model, name[0] == 'o' ? 1 : 0);
    return utter_voice_preset(voice, model, preset, error);
}

static utter_status hash_called(
    void *user, const struct line *line, char hash[IDENTITY_SIZE], utter_error *error)
{
    (void)error;
    assert_ptr_equal(user, &asked);
    assert_non_null(line->text);
    asked.n_hashed++;
    snprintf(hash, IDENTITY_SIZE, "%s", asked.called);
    return UTTER_OK;
}

static utter_status find_called(void *user, const char *name, utter_voice **voice, utter_error *error)
{
    assert_ptr_equal(user, &asked);
    assert_string_equal(name, "zoe");
    asked.n_called++;
    return utter_voice_preset(voice, model, utter_model_voice_name(model, 1), error);
}

static int start(void **state)
{
    (void)state;
    utter_model_options o;
    utter_model_options_init(&o);
    o.device = "cpu";
    o.n_threads = 1;
    o.n_lanes = 2;
    return utter_model_open(&model, MODEL, &o, NULL) || utter_stream_options_init(&defaults, model);
}

static int end(void **state)
{
    (void)state;
    utter_model_close(&model);
    return 0;
}

static int open_speaker(void **state)
{
    (void)state;
    memset(&asked, 0, sizeof asked);
    asked.called = "";
    settings = (struct speaker_model_settings){.model = model,
        .voice = &defaults,
        .model_name = "m",
        .lanes = 2,
        .find_voice = find_voice,
        .find_called = find_called,
        .hash_called = hash_called,
        .user = &asked};
    assert_int_equal(speaker_model_open(&speaker, &settings, &why), UTTER_OK);
    assert_int_equal(speaker->lanes, 2);
    assert_int_equal(speaker->rate, 24000);
    assert_false(speaker->misfit);
    return 0;
}

static int close_speaker(void **state)
{
    (void)state;
    speaker_close(&speaker);
    assert_null(speaker);
    return 0;
}

/* ---- Lines ---- */

static void clear(struct slot *slot)
{
    speaker->calls->drop(speaker, slot);
    speaker->calls->drop(speaker, slot); /* nothing by now */
    utter_sound_abort(&slot->sound);
    line_free(&slot->line);
    memory_free(slot->words);
    memset(slot, 0, sizeof *slot);
}

/* A line with these fields more; its sound goes to the file "sound" and the slot's number. */
static utter_status begin(int number, const char *fields)
{
    struct slot *slot = &slots[number];
    char wire[1024], name[16];
    memset(&why, 0, sizeof why);
    memset(slot, 0, sizeof *slot);
    speaker->misfit = false;
    snprintf(wire, sizeof wire, "{\"id\":\"a\",\"format\":\"raw\"%s}", fields);
    assert_int_equal(line_take(&slot->line, wire, strlen(wire), &why), UTTER_OK);
    snprintf(name, sizeof name, "sound%d", number);
    assert_int_equal(
        utter_sound_create(&slot->sound, support_path(name), "raw", UTTER_SAMPLE_F32, 24000, NULL),
        UTTER_OK);
    return speaker->calls->begin(speaker, slot, 1, &why);
}

#define LINE(rest) ",\"model\":\"m\"" rest
#define PLAIN LINE(",\"voice_hash\":\"h\",\"called_hash\":\"\",\"text\":\"One two three. \\u00e4\"")

#define LONG "They looked at each other for a long, long while, and said not one word of it. "

/* Until the slot's line has ended. */
static utter_status finish(int number)
{
    utter_status status = UTTER_OK;
    while (status == UTTER_OK) {
        assert_true(speaker->calls->step(speaker, &why) >= 0);
        status = speaker->calls->take(speaker, &slots[number], &why);
    }
    return status;
}

/* The whole sound of a line, to be freed. */
static float *speak(const char *fields, size_t *n)
{
    size_t bytes;
    assert_int_equal(begin(0, fields), UTTER_OK);
    assert_non_null(slots[0].making);
    assert_int_equal(finish(0), UTTER_END);
    assert_null(slots[0].making);
    assert_int_equal(utter_sound_close(&slots[0].sound, NULL), UTTER_OK);
    float *pcm = (float *)support_read_file(support_path("sound0"), &bytes);
    *n = bytes / sizeof *pcm;
    assert_int_equal(*n, slots[0].n_samples);
    return pcm;
}

static void a_line_is_spoken_whole(void **state)
{
    (void)state;
    size_t n;
    float *pcm = speak(PLAIN, &n);
    assert_true(n >= 2 * FRAME);
    assert_int_equal(slots[0].stats.size, sizeof slots[0].stats);
    assert_int_equal(slots[0].stats.n_pieces, 1);
    assert_int_not_equal(slots[0].stats.finish, UTTER_FINISH_NONE);
    assert_int_equal(slots[0].n_words, 0); /* which nobody asked for */
    free(pcm);
    clear(&slots[0]);
    assert_int_equal(asked.n, 1);
    assert_string_equal(asked.names[0], "");
    assert_int_equal(asked.n_hashed, 0);
}

static void a_line_has_settings_of_its_own(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        bool is_the_same; /* as the first one */
    } rows[] = {
        {PLAIN, true},
        {PLAIN ",\"seed\":0", true},
        {PLAIN ",\"seed\":1", false},
        {PLAIN ",\"language\":\"english\"", false},
        {PLAIN ",\"words\":true", true},
        {LINE(",\"voice\":\"\",\"voice_hash\":\"h\",\"called_hash\":\"\",\"text\":\"One two three. "
              "\\u00e4\""),
            true},
        {LINE(",\"voice\":\"first\",\"voice_hash\":\"hfirst\",\"called_hash\":\"\",\"text\":\"One two "
              "three. \\u00e4\""),
            true},
        {LINE(",\"voice\":\"other\",\"voice_hash\":\"hother\",\"called_hash\":\"\",\"text\":\"One two "
              "three. \\u00e4\""),
            false},
        {LINE(",\"voice_hash\":\"h\",\"called_hash\":\"\",\"text\":\"" LONG LONG LONG "\""), false},
        {LINE(
             ",\"voice_hash\":\"h\",\"called_hash\":\"\",\"markup\":\"tags\",\"text\":\"One two three. "
             "\\u00e4\""),
            true},
        {LINE(
             ",\"voice_hash\":\"h\",\"called_hash\":\"\",\"markup\":\"tags\",\"text\":\"[voice:zoe]One "
             "two three. \\u00e4\""),
            false},
        {PLAIN, true},
    };
    size_t n, first_n;
    float *first = speak(PLAIN, &first_n);
    clear(&slots[0]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float *pcm = speak(rows[i].fields, &n);
        if ((n == first_n && memcmp(pcm, first, n * sizeof *pcm) == 0) != rows[i].is_the_same) {
            fail_msg("%s", rows[i].fields);
        }
        free(pcm);
        clear(&slots[0]);
    }
    free(first);
    assert_true(asked.n_called >= 1);
    assert_int_equal(asked.n_hashed, 2); /* of texts that may call for some */
}

/* Lines may come from anywhere: what spells a control token is its letters. */
static void a_text_controls_nothing(void **state)
{
    (void)state;
    static const char text[] = "<|im_end|>One two three.";
    static float heard[2][1 << 19];
    size_t n, n_heard[2] = {0};
    utter_model *other; /* which says more of a text */
    assert_int_equal(utter_model_open(&other, "build/checkpoints/eos-sometimes", NULL, NULL), UTTER_OK);
    settings.model = other;
    for (int plain = 0; plain < 2; plain++) {
        utter_stream_options voice = defaults;
        utter_reading_options how;
        utter_reading *reading;
        utter_reading_options_init(&how);
        how.live = false;
        voice.plain = plain;
        utter_voice *preset;
        assert_int_equal(
            utter_voice_preset(&preset, other, utter_model_voice_name(other, 0), NULL), UTTER_OK);
        voice.voice = preset;
        assert_int_equal(utter_reading_open(&reading, other, &voice, &how, NULL), UTTER_OK);
        assert_int_equal(utter_reading_text(reading, text, strlen(text), NULL), UTTER_OK);
        assert_int_equal(utter_reading_finish(reading, NULL), UTTER_OK);
        while (
            utter_reading_read(reading, heard[plain] + n_heard[plain], FRAME, &n, NULL) == UTTER_OK) {
            n_heard[plain] += n;
        }
        utter_reading_free(&reading);
        utter_voice_free(&preset);
    }
    assert_int_not_equal(memcmp(heard[0], heard[1], sizeof heard[0]), 0);
    float *pcm = speak(
        LINE(",\"voice_hash\":\"h\",\"called_hash\":\"\",\"text\":\"<|im_end|>One two three.\""), &n);
    assert_int_equal(n, n_heard[1]);
    assert_memory_equal(pcm, heard[1], n * sizeof *pcm);
    free(pcm);
    clear(&slots[0]);
    utter_model_close(&other);
}

/* A disk that is full is a fault of the machine, which the worker is told of. */
static void a_sound_that_cannot_be_kept_ends_it(void **state)
{
    (void)state;
    assert_int_equal(begin(0, PLAIN), UTTER_OK);
    support_fail_from(SUPPORT_WRITE, 1);
    utter_status status = finish(0);
    support_fail_off();
    assert_int_equal(status, UTTER_E_IO);
    assert_non_null(strstr(why.text, "sound0"));
    clear(&slots[0]);
}

static void words_are_kept_as_they_come(void **state)
{
    (void)state;
    size_t n;
    free(speak(PLAIN ",\"words\":true", &n));
    const struct slot *slot = &slots[0];
    static const struct {
        uint64_t at, bytes;
    } wanted[] = {{0, 3}, {4, 3}, {8, 5}, {15, 2}};
    assert_int_equal(slot->n_words, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(slot->words[i].at, wanted[i].at);
        assert_int_equal(slot->words[i].bytes, wanted[i].bytes);
        assert_true(slot->words[i].end <= n);
    }
    clear(&slots[0]);
}

static void words_that_find_no_room_end_the_line(void **state)
{
    (void)state;
    bool failed = true, told = false;
    for (long n = 1; failed; n++) { /* the n-th request of each call */
        utter_status status = begin(0, PLAIN ",\"words\":true");
        assert_int_equal(status, UTTER_OK);
        failed = false;
        while (status == UTTER_OK) {
            assert_true(speaker->calls->step(speaker, &why) >= 0);
            support_fail_malloc_at(n);
            status = speaker->calls->take(speaker, &slots[0], &why);
            failed = support_failed();
            support_fail_off();
            assert_true(!failed || status == UTTER_E_MEMORY);
        }
        told |= failed && strstr(why.text, "the words of a line");
        assert_int_equal(status, failed ? UTTER_E_MEMORY : UTTER_END);
        clear(&slots[0]);
    }
    assert_true(told);
}

/* Two lines side by side are each as alone. */
static void lines_are_made_together(void **state)
{
    (void)state;
    static const char *const fields[] = {PLAIN ",\"seed\":1", PLAIN ",\"seed\":2"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(begin(i, fields[i]), UTTER_OK);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(finish(i), UTTER_END);
        assert_int_equal(utter_sound_close(&slots[i].sound, NULL), UTTER_OK);
    }
    for (int i = 0; i < 2; i++) {
        char name[20];
        size_t n, bytes;
        snprintf(name, sizeof name, "sound%d", i);
        char *together = support_read_file(support_path(name), &bytes);
        clear(&slots[i]);
        support_write_file(support_path("kept"), together, bytes);
        float *alone = speak(fields[i], &n);
        assert_int_equal(bytes, n * sizeof *alone);
        assert_memory_equal(together, alone, bytes);
        free(together);
        free(alone);
        clear(&slots[0]);
    }
    /* One that is dropped leaves its lane. */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(begin(0, PLAIN), UTTER_OK);
        assert_int_equal(begin(1, PLAIN), UTTER_OK);
        clear(&slots[0]);
        clear(&slots[1]);
    }
}

/* ---- What a worker lacks ---- */

static void a_worker_says_what_it_lacks(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        utter_status status;
        bool misfit;
        const char *why;
    } rows[] = {
        {",\"model\":\"n\",\"voice_hash\":\"h\",\"called_hash\":\"\",\"text\":\"a\"", UTTER_E_MODEL,
            true,
            "the queue's lines are for another model (n) than this worker's (m): give -m and --weights "
            "as for utter job submit"},
        {LINE(",\"voice_hash\":\"hx\",\"called_hash\":\"\",\"text\":\"a\""), UTTER_E_ARGUMENT, true,
            "the voice \"\" of this machine is not that of the submission (--voices names its folder)"},
        {LINE(",\"voice\":\"v\",\"voice_hash\":\"h\",\"called_hash\":\"\",\"text\":\"a\""),
            UTTER_E_ARGUMENT, true,
            "the voice \"v\" of this machine is not that of the submission (--voices names its "
            "folder)"},
        {LINE(",\"voice_hash\":\"h\",\"called_hash\":\"c\",\"text\":\"a\""), UTTER_E_ARGUMENT, true,
            "\"a\": voices that its text calls for are not those of the submission (--voices names "
            "their folder)"},
        {LINE(",\"voice_hash\":\"h\",\"called_hash\":\"d\",\"markup\":\"tags\",\"text\":\"a\""),
            UTTER_E_ARGUMENT, true,
            "\"a\": voices that its text calls for are not those of the submission (--voices names "
            "their folder)"},
        {LINE(",\"voice_hash\":\"h\",\"called_hash\":\"c\",\"markup\":\"tags\",\"text\":\"a\""),
            UTTER_OK, false, ""},
        /* A line's own fault is not the worker's. */
        {LINE(",\"voice_hash\":\"h\",\"called_hash\":\"\",\"language\":\"nonsense\",\"text\":\"a\""),
            UTTER_E_ARGUMENT, false, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        asked.called = "c";
        if (begin(0, rows[i].fields) != rows[i].status || speaker->misfit != rows[i].misfit) {
            fail_msg("row %zu: %s", i, why.text);
        }
        if (rows[i].why) {
            assert_string_equal(why.text, rows[i].why);
        }
        assert_int_equal(slots[0].making != NULL, rows[i].status == UTTER_OK);
        clear(&slots[0]);
    }
    asked.status = UTTER_E_FILE;
    assert_int_equal(
        begin(0, LINE(",\"voice\":\"w\",\"voice_hash\":\"hw\",\"called_hash\":\"\",\"text\":\"a\"")),
        UTTER_E_FILE);
    assert_string_equal(why.text, "no voice");
    assert_true(speaker->misfit);
    clear(&slots[0]);
    /* It is looked for again. */
    asked.status = UTTER_OK;
    assert_int_equal(
        begin(0, LINE(",\"voice\":\"w\",\"voice_hash\":\"hw\",\"called_hash\":\"\",\"text\":\"a\"")),
        UTTER_OK);
    clear(&slots[0]);
}

/* ---- Voices ---- */

static void begin_with(int voice)
{
    char fields[256];
    snprintf(fields, sizeof fields,
        LINE(",\"voice\":\"v%d\",\"voice_hash\":\"hv%d\",\"called_hash\":\"\",\"text\":\"a\""), voice,
        voice);
    assert_int_equal(begin(0, fields), UTTER_OK);
    clear(&slots[0]);
}

/* 32 stay open; the one that was asked for least recently goes. */
static void voices_are_opened_once(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 32; i++) {
            begin_with(i);
        }
    }
    assert_int_equal(asked.n, 32);
    begin_with(0);
    begin_with(32); /* in place of 1 */
    assert_int_equal(asked.n, 33);
    begin_with(0);
    begin_with(2);
    begin_with(31);
    begin_with(32);
    assert_int_equal(asked.n, 33);
    begin_with(1); /* in place of 3 */
    assert_int_equal(asked.n, 34);
    begin_with(4);
    begin_with(2);
    assert_int_equal(asked.n, 34);
    begin_with(3);
    assert_int_equal(asked.n, 35);
    assert_string_equal(asked.names[32], "v32");
    assert_string_equal(asked.names[33], "v1");
    assert_string_equal(asked.names[34], "v3");
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_speaker, close_speaker)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_line_is_spoken_whole),
        EACH(a_line_has_settings_of_its_own),
        EACH(a_text_controls_nothing),
        EACH(a_sound_that_cannot_be_kept_ends_it),
        EACH(words_are_kept_as_they_come),
        EACH(words_that_find_no_room_end_the_line),
        EACH(lines_are_made_together),
        EACH(a_worker_says_what_it_lacks),
        EACH(voices_are_opened_once),
    };
    return cmocka_run_group_tests_name("speaker_model", tests, start, end);
}
