/* SPDX-License-Identifier: Apache-2.0
 * What every backend refuses, where no model is needed for it. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "model/request.h"

/* Each convolution wants one frame more than it reaches. */
static void short_recordings_have_no_speaker(void **state)
{
    char kind[] = "base";
    struct config config = {
        .kind_name = kind, .speaker = {.n_blocks = 3, .taps = {5, 3, 3}, .dilations = {1, 2, 1}}};
    struct model model = {.config = &config, .has_speaker = true};
    utter_error error = {0};
    (void)state;
    for (int longest = 0; longest < 3; longest++) {
        config.speaker.dilations[longest] = 4;
        const size_t reach = (size_t)(config.speaker.taps[longest] / 2) * 4;
        char wanted[64];
        snprintf(wanted, sizeof wanted, "which needs %zu", reach + 1);
        assert_int_equal(request_speaker(&model, reach + 1, &error), UTTER_OK);
        assert_int_equal(request_speaker(&model, reach, &error), UTTER_E_ARGUMENT);
        assert_non_null(strstr(error.text, wanted));
        config.speaker.dilations[longest] = 1;
    }
    model.has_speaker = false;
    assert_int_equal(request_speaker(&model, 100, &error), UTTER_E_MODEL);
    assert_non_null(strstr(error.text, "no speaker encoder"));
}

/* Frames that are known already, a few at a time, each of codes that there are. */
static void known_codes_are_looked_at(void **state)
{
    enum { CODEBOOKS = 3, CODES = 40, MOST = BACKEND_MAX_FEED };
    const struct config config = {
        .n_codebooks = CODEBOOKS, .predictor_vocabulary = CODES, .codec.codebook_size = CODES};
    int32_t codes[(MOST + 1) * CODEBOOKS] = {0};
    utter_error error = {.text = ""};
    char wanted[100];
    (void)state;
    assert_int_equal(request_feed(&config, codes, 1, &error), UTTER_OK);
    assert_int_equal(request_feed(&config, codes, MOST, &error), UTTER_OK);
    for (int n = 0; n <= MOST + 1; n += MOST + 1) {
        snprintf(wanted, sizeof wanted, "%d frames of known codes: 1 to %d, each code below %d", n,
            MOST, CODES);
        assert_int_equal(request_feed(&config, codes, n, &error), UTTER_E_ARGUMENT);
        assert_string_equal(error.text, wanted);
    }
    for (size_t i = 0; i < 2 * CODEBOOKS; i++) {
        codes[i] = CODES - 1;
        assert_int_equal(request_feed(&config, codes, 2, &error), UTTER_OK);
        codes[i] = CODES;
        assert_int_equal(request_feed(&config, codes, 2, &error), UTTER_E_ARGUMENT);
        codes[i] = -1;
        assert_int_equal(request_feed(&config, codes, 2, &error), UTTER_E_ARGUMENT);
        codes[i] = 0;
    }
    codes[2 * CODEBOOKS] = CODES; /* behind what is asked for */
    assert_int_equal(request_feed(&config, codes, 2, &error), UTTER_OK);
}

/* ---- Each bound, and what is said beyond it ---- */

enum { CODEBOOKS = 3, TEXTS = 50, IDS = 40, CODES = 30 };
static const struct config small = {.n_codebooks = CODEBOOKS,
    .text_vocabulary = TEXTS,
    .codec_vocabulary = IDS,
    .predictor_vocabulary = CODES,
    .talker = {.n_layers = 2, .n_heads = 3}};

/* `wanted`: the reason; NULL: it is taken. */
static void check(utter_status status, utter_status refusal, const char *said, const char *wanted)
{
    assert_string_equal(status ? said : "", wanted ? wanted : "");
    assert_int_equal(status, wanted ? refusal : UTTER_OK);
}

static void lanes_have_numbers(void **state)
{
    static const struct {
        int n_lanes, positions;
        const char *said;
    } opened[] = {{1, 1, NULL}, {0, 1, "0 lanes of 1 positions: at least one of each"},
        {1, 0, "1 lanes of 0 positions: at least one of each"}};
    static const struct {
        int lane;
        const char *said;
    } lanes[] = {{0, NULL}, {2, NULL}, {-1, "lane -1: there are 3"}, {3, "lane 3: there are 3"}};
    utter_error e;
    (void)state;
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++) {
        const struct backend_options o = {
            .n_lanes = opened[i].n_lanes, .lane_positions = opened[i].positions};
        check(request_open(&o, &e), UTTER_E_ARGUMENT, e.text, opened[i].said);
    }
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        check(request_lane(lanes[i].lane, 3, &e), UTTER_E_ARGUMENT, e.text, lanes[i].said);
    }
}

static void heads_are_those_of_the_talker(void **state)
{
    static const char said[] = "heads to watch: the talker has 2 layers of 3, and each is told once";
    static const struct {
        struct talker_head heads[7];
        int n;
        bool good;
    } cases[] = {{{{0, 0}}, 0, true}, {{{0, 0}}, -1, false}, {{{1, 2}, {0, 2}, {1, 0}}, 3, true},
        {{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}, 6, true},
        {{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {1, 2}}, 7, false}, {{{2, 0}}, 1, false},
        {{{-1, 0}}, 1, false}, {{{0, 3}}, 1, false}, {{{0, -1}}, 1, false},
        {{{1, 1}, {0, 1}, {1, 1}}, 3, false}};
    utter_error e;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(request_watch(&small, cases[i].heads, cases[i].n, &e), UTTER_E_ARGUMENT, e.text,
            cases[i].good ? NULL : said);
    }
}

/* A lane of ten positions. */
static void a_lane_has_room(void **state)
{
    static const struct {
        int begin, end, n_frames;
        const char *said;
    } looks[] = {{0, 10, 0, NULL}, {4, 4, 0, NULL},
        {-1, 4, 0, "rows -1 to 4 are to be looked at, after 0 frames: a lane holds 10"},
        {4, 3, 0, "rows 4 to 3 are to be looked at, after 0 frames: a lane holds 10"},
        {0, 11, 0, "rows 0 to 11 are to be looked at, after 0 frames: a lane holds 10"},
        {0, 4, 1, "rows 0 to 4 are to be looked at, after 1 frames: a lane holds 10"}};
    utter_error e;
    (void)state;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        const struct request_lane lane = {.room = 10, .n_frames = (uint32_t)looks[i].n_frames};
        check(request_look(&lane, looks[i].begin, looks[i].end, &e), UTTER_E_ARGUMENT, e.text,
            looks[i].said);
    }
    const struct request_lane lane = {.room = 10, .position = 7};
    check(request_room(&lane, 3, &e), UTTER_E_MODEL, e.text, NULL);
    check(request_room(&lane, 4, &e), UTTER_E_MODEL, e.text, "7 positions and 4 more: a lane holds 10");
}

static void rows_are_of_their_tables(void **state)
{
    static const int32_t least[CODEBOOKS] = {0}, most[CODEBOOKS] = {IDS - 1, CODES - 1, CODES - 1};
    static const int32_t wrong[][CODEBOOKS] = {
        {IDS, 0, 0}, {-1, 0, 0}, {0, CODES, 0}, {0, 0, CODES}, {0, -1, 0}, {0, 0, -1}};
    static const struct row good[] = {{.text = -1}, {.text = TEXTS - 1}, {.codec = ROW_ID},
        {.codec = ROW_ID, .id = IDS - 1}, {.codec = ROW_CODES, .codes = least},
        {.codec = ROW_CODES, .codes = most}};
    static const struct row bad[] = {{.text = -2}, {.text = TEXTS}, {.codec = ROW_ID, .id = -1},
        {.codec = ROW_ID, .id = IDS}, {.codec = ROW_CODES, .codes = wrong[0]},
        {.codec = ROW_CODES, .codes = wrong[1]}, {.codec = ROW_CODES, .codes = wrong[2]},
        {.codec = ROW_CODES, .codes = wrong[3]}, {.codec = ROW_CODES, .codes = wrong[4]},
        {.codec = ROW_CODES, .codes = wrong[5]}};
    enum { N_GOOD = sizeof good / sizeof *good, N_BAD = sizeof bad / sizeof *bad };
    struct request_lane lane = {.room = N_GOOD + 1, .position = 1};
    utter_error e;
    (void)state;
    check(request_rows(&small, &lane, good, N_GOOD, &e), UTTER_E_ARGUMENT, e.text, NULL);
    for (int i = 0; i < N_BAD; i++) {
        const struct row rows[] = {good[i % N_GOOD], bad[i]};
        check(request_rows(&small, &lane, rows, 2, &e), UTTER_E_ARGUMENT, e.text,
            "row 1: an id is outside its table");
    }
    check(request_rows(&small, &lane, good, 0, &e), UTTER_E_ARGUMENT, e.text,
        "a prompt of 0 rows after 0 frames: rows come first");
    lane.n_frames = 2;
    check(request_rows(&small, &lane, good, 1, &e), UTTER_E_ARGUMENT, e.text,
        "a prompt of 1 rows after 2 frames: rows come first");
    lane = (struct request_lane){.room = N_GOOD - 1};
    check(request_rows(&small, &lane, good, N_GOOD, &e), UTTER_E_MODEL, e.text,
        "0 positions and 6 more: a lane holds 5");
    static const int32_t weighed[] = {-1, IDS - 1, IDS};
    check(request_weigh(&small, weighed, 2, &e), UTTER_E_ARGUMENT, e.text, NULL);
    check(request_weigh(&small, weighed, 3, &e), UTTER_E_ARGUMENT, e.text,
        "the code behind row 2 is outside its table");
}

/* Behind a prompt the first frame needs neither text nor room. */
static void a_frame_has_something_before_it(void **state)
{
    static const int32_t known[CODEBOOKS] = {0, CODES - 1, 0}, wrong[CODEBOOKS] = {0, 0, CODES};
    static const struct {
        struct request_lane lane;
        int32_t text;
        const int32_t *forced;
        utter_status status;
        const char *said;
    } cases[] = {
        {{.ready = true}, TEXTS, NULL, UTTER_OK, NULL},
        {{.ready = true}, 0, known, UTTER_OK, NULL},
        {{.ready = true}, 0, wrong, UTTER_E_ARGUMENT, "lane 4: a forced code is outside its codebook"},
        {{.ready = true, .ended = true}, 0, NULL, UTTER_OK, NULL},
        {{.room = 9}, 0, NULL, UTTER_E_ARGUMENT, "lane 4: a frame needs a prompt"},
        {{.room = 9, .n_frames = 1, .ended = true}, 0, NULL, UTTER_E_ARGUMENT,
            "lane 4: its utterance has ended"},
        {{.room = 9, .position = 8, .n_frames = 1}, -1, NULL, UTTER_OK, NULL},
        {{.room = 9, .position = 8, .n_frames = 1}, TEXTS - 1, known, UTTER_OK, NULL},
        {{.room = 9, .position = 8, .n_frames = 1}, -2, NULL, UTTER_E_ARGUMENT,
            "text id -2: outside the vocabulary"},
        {{.room = 9, .position = 8, .n_frames = 1}, TEXTS, NULL, UTTER_E_ARGUMENT,
            "text id 50: outside the vocabulary"},
        {{.room = 9, .position = 9, .n_frames = 1}, 0, NULL, UTTER_E_MODEL,
            "9 positions and 1 more: a lane holds 9"},
    };
    utter_error e;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct frame_in in = {.lane = 4, .text = cases[i].text, .forced = cases[i].forced};
        check(request_frame(&small, &cases[i].lane, &in, &e), cases[i].status, e.text, cases[i].said);
    }
}

static void recordings_have_frames(void **state)
{
    static const int32_t codes[2 * CODEBOOKS] = {0, 0, 0, 0, 0, CODES};
    struct model model = {.has_encoder = true};
    utter_error e;
    (void)state;
    check(request_prime(&small, codes, 1, &e), UTTER_E_ARGUMENT, e.text, NULL);
    check(request_prime(&small, codes, 0, &e), UTTER_E_ARGUMENT, e.text,
        "0 frames of known codes: at least 1, each code below 30");
    check(request_prime(&small, codes, 2, &e), UTTER_E_ARGUMENT, e.text,
        "2 frames of known codes: at least 1, each code below 30");
    check(request_encode(&model, 9000, 5, 5, &e), UTTER_E_ARGUMENT, e.text, NULL);
    check(request_encode(&model, 9000, 1, 5, &e), UTTER_E_ARGUMENT, e.text, NULL);
    check(request_encode(&model, 9000, 0, 5, &e), UTTER_E_ARGUMENT, e.text,
        "a recording of 9000 samples: 0 frames, room for 5");
    check(request_encode(&model, 9000, 6, 5, &e), UTTER_E_ARGUMENT, e.text,
        "a recording of 9000 samples: 6 frames, room for 5");
    model.has_encoder = false;
    check(request_encode(&model, 9000, 5, 5, &e), UTTER_E_MODEL, e.text,
        "this checkpoint has no codec encoder");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_recordings_have_no_speaker),
        cmocka_unit_test(known_codes_are_looked_at),
        cmocka_unit_test(lanes_have_numbers),
        cmocka_unit_test(heads_are_those_of_the_talker),
        cmocka_unit_test(a_lane_has_room),
        cmocka_unit_test(rows_are_of_their_tables),
        cmocka_unit_test(a_frame_has_something_before_it),
        cmocka_unit_test(recordings_have_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
