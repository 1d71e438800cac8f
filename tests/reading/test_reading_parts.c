/* SPDX-License-Identifier: Apache-2.0
 * A reading from within: what becomes of its options, how its pieces are spoken, what it counts, and where it ends. */
#include "tests/engine/speaking.h"

#include <math.h>
#include <stdio.h>

#include "api/api.h"
#include "reading/reading_parts.h"
#include "tests/heap.h"

enum { MOST_PIECES = 24, CODEBOOKS = 16, MOST_FRAMES = 20 };

/* Pieces as they were told, and the reading's own numbers behind the last. */
struct told {
    struct one {
        char text[128];
        int32_t codes[MOST_FRAMES * CODEBOOKS];
        size_t n_frames;
        uint64_t index, at, bytes, seed;
        utter_finish finish;
    } at[MOST_PIECES];
    size_t n;
    utter_reading_stats stats;
    char note[200];
};

static void on_piece(void *user, const utter_piece *piece)
{
    struct told *h = user;
    assert_true(h->n < MOST_PIECES && piece->n_frames <= MOST_FRAMES && piece->text_bytes < 128);
    struct one *one = &h->at[h->n++];
    *one = (struct one){.n_frames = piece->n_frames,
        .index = piece->index,
        .at = piece->at,
        .bytes = piece->bytes,
        .seed = piece->seed,
        .finish = piece->finish};
    memcpy(one->text, piece->text, piece->text_bytes);
    memcpy(one->codes, piece->codes, piece->n_frames * CODEBOOKS * sizeof *one->codes);
}

static utter_reading_options reading_options(struct told *h)
{
    utter_reading_options o;
    utter_reading_options_init(&o);
    *h = (struct told){.n = 0};
    o.retries = 0;
    o.piece_length = 20;
    o.piece = on_piece;
    o.piece_user = h;
    return o;
}

static void read_to_the_end(utter_reading *reading)
{
    float pcm[1920];
    size_t n;
    utter_status status;
    utter_error error = {0};
    while ((status = utter_reading_read(reading, pcm, 1920, &n, &error)) == UTTER_OK) {
    }
    assert_string_equal(error.text, "");
    assert_int_equal(status, UTTER_END);
}

static void hear(struct told *h, utter_model *model, const utter_stream_options *voice,
    const utter_reading_options *o, const char *text)
{
    utter_reading *reading;
    utter_error error = {0};
    assert_int_equal(utter_reading_open(&reading, model, voice, o, &error), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, text, strlen(text), &error), UTTER_OK);
    assert_int_equal(utter_reading_finish(reading, &error), UTTER_OK);
    read_to_the_end(reading);
    h->stats.size = sizeof h->stats;
    assert_int_equal(utter_reading_get_stats(reading, &h->stats), UTTER_OK);
    utter_reading_free(&reading);
}

static void lanes_are_as_many_as_can_be_used(void **state)
{
    static const struct {
        bool live;
        int lanes, max_frames, piece_length;
        float talker, predictor;
        int n_lanes, n_room;
        size_t most;
        bool random;
    } all[] = {{true, 3, 0, 0, 1, 1, 1, 1, 180, true}, {false, 1, 0, 0, 1, 0, 1, 1, 180, true},
        {false, 2, 0, 20, 0, 1, 2, 4, 20, true}, {false, 3, 0, 1000, 0, 0, 3, 6, 1000, false},
        {false, 9, 0, 0, 1, 1, 3, 6, 180, true}, {false, 3, 1, 0, 1, 1, 1, 1, 180, true}};
    (void)state;
    utter_model *model = open_with(MODEL, 1, 3);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct told h;
        utter_reading_options o = reading_options(&h);
        utter_stream_options v = options_of(model, 5, 1);
        utter_reading *r;
        v.talker.temperature = all[i].talker;
        v.predictor.temperature = all[i].predictor;
        o.live = all[i].live;
        o.lanes = all[i].lanes;
        o.max_frames = all[i].max_frames;
        o.piece_length = all[i].piece_length;
        assert_int_equal(utter_reading_open(&r, model, &v, &o, NULL), UTTER_OK);
        assert_int_equal(r->n_lanes, all[i].n_lanes);
        assert_int_equal(r->n_room, all[i].n_room);
        assert_int_equal(r->source.cutter.most, all[i].most);
        assert_int_equal(r->random, all[i].random);
        assert_int_equal(r->seam.rate, 24000);
        assert_int_equal(r->seam.stress.rate, 24000);
        /* Its lane is taken until it is freed. */
        assert_true(works_lanes(r) == 1 && works_has_lane(r));
        assert_int_equal(engine_free_lane(reading_engine(r)), 1);
        utter_reading_free(&r);
        assert_int_equal(engine_free_lane(&model->engine), 0);
    }
    utter_model_close(&model);
}

/* A talker of more than 512 keeps its place in longer pieces. */
static void a_piece_is_as_long_as_the_talker_is_large(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    struct config *config = (struct config *)model->engine.context.model->config;
    int width = config->talker.width;
    for (int more = 0; more < 2; more++) {
        utter_reading *r;
        config->talker.width = 512 + more;
        assert_int_equal(utter_reading_open(&r, model, NULL, NULL, NULL), UTTER_OK);
        assert_int_equal(r->source.cutter.most, more ? 360 : 180);
        utter_reading_free(&r);
    }
    config->talker.width = width;
    utter_model_close(&model);
}

static void each_end_has_its_pause(void **state)
{
    struct utter_reading r = {
        .options = {.clause_pause_s = 1, .sentence_pause_s = 2, .paragraph_pause_s = 3}};
    static const struct {
        enum cut_end end;
        double pause_s;
    } all[] = {{CUT_CHARACTER, 0.05}, {CUT_WORD, 0.05}, {CUT_CLAUSE, 1}, {CUT_SENTENCE, 2},
        {CUT_PARAGRAPH, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(fabs(works_pause(&r, all[i].end) - all[i].pause_s) < 1e-12);
    }
}

/* The piece is what a stream says with these options. */
static void is_said_so(utter_model *model, const utter_stream_options *v, const struct one *one)
{
    struct result *alone = speak(model, v, one->text, strlen(one->text), 1920);
    assert_int_equal(alone->n_frames, one->n_frames);
    assert_memory_equal(alone->codes, one->codes, one->n_frames * CODEBOOKS * sizeof *one->codes);
    assert_int_equal(alone->finish, one->finish);
    free(alone);
}

/* The strings of the options are the reading's own: who opened it may change them. */
static void strings_of_the_voice_are_kept(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    char language[] = "german", instruct[] = "Speak slowly.";
    utter_stream_options v = options_of(model, 4, 7), plain = v;
    struct told h;
    utter_reading_options o = reading_options(&h);
    utter_reading *r;
    static const char text[] = "Ein Boot kam gestern an. Ein anderes ging.";
    v.language = language;
    v.instruct = instruct;
    assert_int_equal(utter_reading_open(&r, model, &v, &o, NULL), UTTER_OK);
    memset(language, 'x', sizeof language - 1);
    memset(instruct, 'x', sizeof instruct - 1);
    assert_int_equal(utter_reading_text(r, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(r, NULL), UTTER_OK);
    read_to_the_end(r);
    utter_reading_free(&r);
    assert_true(h.n > 1);
    memcpy(language, "german", sizeof language);
    memcpy(instruct, "Speak slowly.", sizeof instruct);
    for (size_t i = 0; i < h.n; i++) {
        is_said_so(model, &v, &h.at[i]);
    }
    struct result *other = speak(model, &plain, h.at[0].text, strlen(h.at[0].text), 1920);
    assert_memory_not_equal(other->codes, h.at[0].codes, sizeof *other->codes * CODEBOOKS);
    free(other);
    utter_model_close(&model);
}

/* Without memory for one of them there is no reading. */
static void memory_for_strings_may_run_out(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options v = options_of(model, 4, 7);
    v.language = "german";
    v.instruct = "Speak slowly.";
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_reading *r;
        utter_error error = {0};
        utter_status status = utter_reading_open(&r, model, &v, NULL, &error);
        assert_true(status == UTTER_OK || (support_failed() && status == UTTER_E_MEMORY && !r));
        assert_int_equal(error.code, status);
        assert_true(
            !r || (strcmp(r->voice.language, v.language) == 0 && r->voice.language == r->language));
        assert_true(
            !r || (strcmp(r->voice.instruct, v.instruct) == 0 && r->voice.instruct == r->instruct));
        utter_reading_free(&r);
        assert_int_equal(engine_free_lane(&model->engine), 0);
    }
    utter_model_close(&model);
}

static void on_note(void *user, const char *line)
{
    snprintf(user, 200, "%s", line);
}

/* A language by any of its names, where the model speaks it; else what the reading speaks, which is told. A voice by
 * its name. Each piece is counted, wherever it is. */
static void spans_have_their_voices_and_languages(void **state)
{
    static const char text[] = "[lang:de]Ein Boot.[lang:german]Zwei Boote.[lang:xx]Three boats.[/lang]"
                               "[voice:ryan]Four boats.[lang:french]Cinq bateaux.[/lang][/voice]Six.";
    static const struct {
        const char *words, *language, *voice;
    } wanted[] = {{"Ein Boot.", "german", NULL}, {"Zwei Boote.", "german", NULL},
        {"Three boats.", "english", NULL}, {"Four boats.", "english", "ryan"},
        {"Cinq bateaux.", "french", "ryan"}, {"Six.", "english", NULL}};
    static char note[200];
    (void)state;
    utter_model_options m;
    utter_model *model;
    utter_model_options_init(&m);
    m.n_threads = m.n_lanes = 1;
    m.log = on_note;
    m.log_user = note;
    assert_int_equal(utter_model_open(&model, MODEL, &m, NULL), UTTER_OK);
    struct told h;
    utter_reading_options o = reading_options(&h);
    utter_stream_options v = options_of(model, 4, 7);
    utter_voice *ryan;
    assert_int_equal(utter_voice_preset(&ryan, model, "ryan", NULL), UTTER_OK);
    v.language = "english";
    o.markup = UTTER_MARKUP_TAGS;
    *note = 0;
    hear(&h, model, &v, &o, text);
    assert_string_equal(
        note, "the model does not speak \"xx\": the words that the text marks so are left to it");
    assert_int_equal(h.n, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < h.n; i++) {
        assert_string_equal(h.at[i].text, wanted[i].words);
        assert_int_equal(h.at[i].index, i);
        assert_memory_equal(text + h.at[i].at, wanted[i].words, h.at[i].bytes);
        v.language = wanted[i].language;
        v.voice = wanted[i].voice ? ryan : NULL;
        is_said_so(model, &v, &h.at[i]);
    }
    utter_voice_free(&ryan);
    utter_model_close(&model);
}

/* Tokens, rows and frames are those of its pieces' streams together, each stage took its time, and the first sound is
 * that of the first piece. */
static void what_pieces_did_is_added_up(void **state)
{
    static const char text[] = "One boat left. Two boats came here. Three of us saw them.";
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    struct told h;
    utter_reading_options o = reading_options(&h);
    utter_stream_options v = options_of(model, 4, 7);
    utter_reading *r;
    utter_reading_stats stats = {.size = sizeof stats}, before = {0};
    float pcm[500];
    size_t n;
    uint64_t n_tokens = 0, n_frames = 0;
    double first_s = 0;
    assert_int_equal(utter_reading_open(&r, model, &v, &o, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(r, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(r, NULL), UTTER_OK);
    while (utter_reading_read(r, pcm, 500, &n, NULL) == UTTER_OK) {
        assert_int_equal(utter_reading_get_stats(r, &stats), UTTER_OK);
        assert_int_equal(stats.n_pieces, h.n);
        assert_true(r->n_works == 0 || stats.finish == UTTER_FINISH_NONE);
        assert_true(stats.n_frames >= before.n_frames && stats.n_rows >= before.n_rows);
        assert_true(stats.n_text_tokens >= before.n_text_tokens);
        assert_true(stats.prefill_s >= before.prefill_s && stats.talker_s >= before.talker_s);
        if (r->n_works > 0) { /* the piece that is spoken is counted as far as it is */
            const struct work *w = &r->works[0];
            assert_true(stats.at == w->at && stats.bytes == w->bytes);
            assert_int_equal(stats.n_frames, r->stats.n_frames + (uint64_t)w->stream->n_frames);
        }
        assert_true(stats.first_sound_s > 0);
        first_s = before.n_frames ? first_s : stats.first_sound_s;
        assert_true(fabs(stats.first_sound_s - first_s) < 1e-12);
        before = stats;
    }
    utter_reading_get_stats(r, &stats);
    utter_reading_free(&r);
    assert_true(h.n > 2);
    for (size_t i = 0; i < h.n; i++) {
        utter_stream *stream;
        utter_stream_stats one = {.size = sizeof one};
        assert_int_equal(utter_stream_open(&stream, model, &v, NULL), UTTER_OK);
        assert_int_equal(utter_stream_text(stream, h.at[i].text, strlen(h.at[i].text), NULL), UTTER_OK);
        assert_int_equal(utter_stream_finish(stream, NULL), UTTER_OK);
        while (utter_stream_read(stream, pcm, 500, &n, NULL) == UTTER_OK) {
        }
        assert_int_equal(utter_stream_get_stats(stream, &one), UTTER_OK);
        n_tokens += (uint64_t)one.n_text_tokens;
        n_frames += (uint64_t)one.n_frames;
        utter_stream_free(&stream);
    }
    assert_int_equal(stats.n_text_tokens, n_tokens);
    assert_int_equal(stats.n_frames, n_frames);
    assert_true(stats.n_rows > n_tokens);
    assert_true(stats.prompt_s > 0 && stats.prefill_s > 0 && stats.talker_s > 0);
    assert_true(stats.predictor_s > 0 && stats.vocoder_s > 0);
    utter_model_close(&model);
}

/* Pieces of three frames each: the limit falls into one, to its end, or behind the last. */
static void a_limit_is_kept_to_the_frame(void **state)
{
    static const char text[] = "One boat left us. Two boats came here. Three of us saw.";
    static const struct {
        int most;
        size_t n_pieces, n_frames, n_broken;
        utter_finish finish;
    } all[] = {{1, 1, 1, 1, UTTER_FINISH_MAX_FRAMES}, {2, 1, 2, 1, UTTER_FINISH_MAX_FRAMES},
        {3, 1, 3, 1, UTTER_FINISH_MAX_FRAMES}, {4, 2, 4, 2, UTTER_FINISH_MAX_FRAMES},
        {6, 2, 6, 2, UTTER_FINISH_MAX_FRAMES}, {7, 3, 7, 3, UTTER_FINISH_MAX_FRAMES},
        {9, 3, 9, 3, UTTER_FINISH_MAX_FRAMES}, {10, 3, 9, 3, UTTER_FINISH_MAX_FRAMES}};
    (void)state;
    utter_model *model = open_with("build/checkpoints/endless", 1, 1);
    utter_stream_options v = options_of(model, 3, 7);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int live = 0; live < 2; live++) {
            struct told h;
            utter_reading_options o = reading_options(&h);
            o.max_frames = all[i].most;
            o.live = live;
            hear(&h, model, &v, &o, text);
            assert_int_equal(h.n, all[i].n_pieces);
            assert_int_equal(h.stats.n_frames, all[i].n_frames);
            assert_int_equal(h.stats.n_broken, all[i].n_broken);
            assert_int_equal(h.stats.finish, all[i].finish);
        }
    }
    utter_model_close(&model);
}

/* A reading that is held makes no frame, neither of the piece that is spoken nor of one that begins meanwhile. */
static void a_held_reading_makes_nothing(void **state)
{
    static const char text[] = "One boat left us. Two boats came here.";
    (void)state;
    utter_model *model = open_with(MODEL, 1, 2);
    utter_stream_options v = options_of(model, 4, 7);
    for (int when = 0; when < 3; when++) {
        struct told h;
        utter_reading_options o = reading_options(&h);
        utter_reading *r;
        float pcm[500];
        size_t n;
        o.live = when < 2;
        o.lanes = 2;
        assert_int_equal(utter_reading_open(&r, model, &v, &o, NULL), UTTER_OK);
        utter_reading_hold(r, when == 0); /* before there is a text */
        assert_int_equal(utter_reading_text(r, text, strlen(text), NULL), UTTER_OK);
        assert_int_equal(utter_reading_finish(r, NULL), UTTER_OK);
        if (when == 1) {
            assert_int_equal(utter_reading_read(r, pcm, 500, &n, NULL), UTTER_OK);
        }
        if (when > 0) {
            utter_reading_hold(r, true);
        }
        while (utter_reading_take(r, pcm, 500, &n, NULL) == UTTER_OK) {
        }
        assert_true(r->n_works == (when == 2 ? 2 : 1));
        for (int i = 0; i < r->n_works; i++) {
            assert_true(r->works[i].stream->held);
        }
        assert_false(reading_ready(r));
        assert_int_equal(utter_reading_read(r, pcm, 500, &n, NULL), UTTER_AGAIN);
        utter_reading_hold(r, false);
        assert_true(reading_ready(r));
        read_to_the_end(r);
        assert_int_equal(h.n, 2);
        utter_reading_free(&r);
    }
    utter_model_close(&model);
}

/* Also where it was held and let go while no piece was spoken. */
static void a_reading_that_is_let_go_goes_on(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options v = options_of(model, 3, 7);
    struct told h;
    utter_reading_options o = reading_options(&h);
    utter_reading *r;
    float pcm[1920];
    size_t n;
    assert_int_equal(utter_reading_open(&r, model, &v, &o, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(r, "One boat left us. Two boats came", 32, NULL), UTTER_OK);
    for (int i = 0; i < 50; i++) { /* held but for the steps */
        utter_reading_hold(r, false);
        if (reading_ready(r)) {
            assert_int_equal(utter_model_step(model, NULL), UTTER_OK);
        }
        utter_reading_hold(r, true);
        utter_reading_take(r, pcm, 1920, &n, NULL);
    }
    assert_int_equal(h.n, 1);
    assert_true(r->spare && r->spare->held && r->n_works == 0);
    utter_reading_hold(r, false);
    assert_int_equal(utter_reading_text(r, " here.", 6, NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(r, NULL), UTTER_OK);
    assert_false(r->works[0].stream->held);
    read_to_the_end(r);
    assert_int_equal(h.n, 2);
    utter_reading_free(&r);
    utter_model_close(&model);
}

/* Of stars between paragraphs nothing is said, and the pieces around them are counted as neighbours. */
static void stars_are_passed_over(void **state)
{
    static const char text[] = "One boat left us.\n\n* * *\n\nTwo boats came here.\n\n***\n";
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options v = options_of(model, 3, 7);
    struct told h;
    utter_reading_options o = reading_options(&h);
    hear(&h, model, &v, &o, text);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.at[0].text, "One boat left us.");
    assert_string_equal(h.at[1].text, "Two boats came here.");
    assert_true(h.at[0].index == 0 && h.at[1].index == 1);
    assert_int_equal(h.at[1].at, strstr(text, "Two") - text);
    assert_int_equal(h.at[1].bytes, strlen("Two boats came here."));
    utter_model_close(&model);
}

/* Any lane that is free is taken, the first one as well. */
static void a_lane_that_was_let_go_is_used(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 2);
    utter_stream_options v = options_of(model, 3, 7);
    struct told h;
    utter_reading_options o = reading_options(&h);
    utter_stream *other;
    utter_reading *r;
    static const char text[] = "One boat left us. Two boats came here. Three of us saw.";
    o.live = false;
    o.lanes = 2;
    assert_int_equal(utter_stream_open(&other, model, &v, NULL), UTTER_OK);
    assert_int_equal(utter_reading_open(&r, model, &v, &o, NULL), UTTER_OK);
    utter_stream_free(&other);
    assert_int_equal(utter_reading_text(r, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(r, NULL), UTTER_OK);
    assert_int_equal(r->n_works, 2);
    assert_int_equal(works_lanes(r), 2);
    assert_true(r->works[0].stream->lane == 1 && r->works[1].stream->lane == 0);
    assert_false(works_has_lane(r));
    read_to_the_end(r);
    assert_int_equal(h.n, 3);
    utter_reading_free(&r);
    utter_model_close(&model);
}

/* Whether it was read to its end, cancelled or given up: text, pieces, voices, sound and words. */
static void nothing_stays_of_a_reading(void **state)
{
    enum { KINDS = 12 };
    bool stays[KINDS];
    static const char text[] =
        "[voice:ryan]One boat [volume:50%]left us. Two boats came here.[pause:1s] "
        "[lang:german]Drei  davon\nsahen wir. [rate:120%]Vier";
    (void)state;
    utter_model *model = open_with(MODEL, 1, 2);
    utter_stream_options v = options_of(model, 3, 7);
    struct told h;
    utter_reading_options o = reading_options(&h);
    float pcm[1920];
    size_t n, n_words;
    uint64_t first;
    v.words = true;
    v.language = "english";
    v.instruct = "Softly.";
    o.markup = UTTER_MARKUP_TAGS;
    o.lexicon = "[de]boats = boots";
    o.lanes = 2;
    memset(stays, true, sizeof stays);
    /* At first the heap takes in store what it keeps of freed blocks. What stays does so in each round of its kind. */
    for (int round = 0; round < 4 * KINDS; round++) {
        size_t before = heap_used();
        utter_reading *r;
        h.n = 0;
        o.live = round % 2;
        assert_int_equal(utter_reading_open(&r, model, &v, &o, NULL), UTTER_OK);
        assert_int_equal(utter_reading_text(r, text, strlen(text), NULL), UTTER_OK);
        assert_int_equal(utter_reading_finish(r, NULL), UTTER_OK);
        for (int i = 0; i < round % 3 * 40; i++) {
            utter_reading_read(r, pcm, 1920, &n, NULL);
            utter_reading_words(r, &first, &n_words);
        }
        if (round % 4 == 0) {
            utter_reading_cancel(r);
            read_to_the_end(r);
        }
        utter_reading_free(&r);
        assert_null(r);
        assert_int_equal(engine_free_lane(&model->engine), 0);
        stays[round % KINDS] &= round < 2 * KINDS || heap_used() > before;
    }
    for (int i = 0; i < KINDS; i++) {
        assert_false(stays[i]);
    }
    utter_model_close(&model);
}

static void a_text_ends_once(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options v = options_of(model, 2, 7);
    struct told h;
    utter_reading_options o = reading_options(&h);
    utter_reading *r;
    utter_error error = {0};
    assert_int_equal(utter_reading_open(&r, model, &v, &o, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(r, "One boat.", 9, NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(r, &error), UTTER_OK);
    assert_int_equal(utter_reading_finish(r, &error), UTTER_OK);
    assert_int_equal(utter_reading_text(r, " Two.", 5, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "text after the end of the text");
    read_to_the_end(r); /* it goes on as if nobody had asked */
    assert_int_equal(h.n, 1);
    assert_string_equal(h.at[0].text, "One boat.");
    utter_reading_free(&r);
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lanes_are_as_many_as_can_be_used),
        cmocka_unit_test(a_piece_is_as_long_as_the_talker_is_large),
        cmocka_unit_test(each_end_has_its_pause), cmocka_unit_test(strings_of_the_voice_are_kept),
        cmocka_unit_test(memory_for_strings_may_run_out),
        cmocka_unit_test(spans_have_their_voices_and_languages),
        cmocka_unit_test(what_pieces_did_is_added_up), cmocka_unit_test(a_limit_is_kept_to_the_frame),
        cmocka_unit_test(a_held_reading_makes_nothing),
        cmocka_unit_test(a_reading_that_is_let_go_goes_on), cmocka_unit_test(stars_are_passed_over),
        cmocka_unit_test(a_lane_that_was_let_go_is_used), cmocka_unit_test(a_text_ends_once),
        cmocka_unit_test(nothing_stays_of_a_reading)};
    return cmocka_run_group_tests_name("parts of a reading", tests, NULL, NULL);
}
