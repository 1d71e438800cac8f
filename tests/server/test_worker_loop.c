/* SPDX-License-Identifier: Apache-2.0
 * The worker's loop from its first message to its last, word for word, and its slots, each by itself. */
#include "tests/server/posed_library.h"

#include <malloc.h>
#include <math.h>
#include <sys/stat.h>

/* ---- The beginning ---- */

static void a_model_is_opened_as_it_was_asked_for(void **state)
{
    char cache[] = P_tmpdir "/utter-worker-XXXXXX", learnt[80], opened[300], caged[300];
    struct sigaction how;
    struct stat about;
    int signal_of_parent = 0;
    (void)state;
    assert_non_null(mkdtemp(cache));
    snprintf(learnt, sizeof learnt, "%s/learnt", cache);
    build();
    hello = (struct wire_hello){WIRE_VERSION, "/models/m", "cpu:0-2", "avx2", 5, 6, UTTER_WEIGHTS_Q4,
        789, learnt, "/voices", "/other", true, false};
    play(0, LINES(".0.3"),
        "ready 14 custom_voice 0b6 cpu warm q8 1 8000 640 3 7 8 9, cage 5, note another note, clara "
        "miles, "
        "english german thai\n");
    snprintf(opened, sizeof opened,
        "/models/m on cpu, kernels avx2, 5 threads, 6 lanes, weights 2, 789 kept, cache %s, prompts "
        "0.0125 s",
        learnt);
    assert_string_equal(fake.opened, opened);
    snprintf(caged, sizeof caged, "reads /models/m /voices /other, writes %s", learnt);
    assert_string_equal(fake.cage, caged);
    assert_true(stat(learnt, &about) == 0 && S_ISDIR(about.st_mode));
    assert_true(fake.cores == 7 && fake.policy == 0 && fake.one_by_one);
    for (int i = 0; i < 3; i++) { /* the front end decides when it ends */
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
        sigaction(signals[i], NULL, &how);
        assert_true(how.sa_handler == SIG_IGN);
        signal(signals[i], SIG_DFL);
    }
    assert_true(prctl(PR_GET_PDEATHSIG, &signal_of_parent) == 0 && signal_of_parent == SIGKILL);
    prctl(PR_SET_PDEATHSIG, 0);
    assert_true(rmdir(learnt) == 0 && rmdir(cache) == 0);
    build(); /* a GPU has no cage, and a server without one none either */
    hello.caged = true;
    hello.device = "cuda:1";
    play(0, LINES(".0.3"), READY_ON("cuda"));
    assert_true(strstr(fake.opened, "on cuda:1, kernels -") && fake.cage[0] == 0 && fake.cores == 0);
    assert_false(fake.one_by_one);
    build();
    play(0, LINES(".0.3"), READY);
    assert_string_equal(fake.cage, "");
}

static void what_is_not_opened_is_told(void **state)
{
    (void)state;
    build();
    fake.open_status = UTTER_E_FILE;
    play(1, LINES(".0.3"), "0: refused -2 it cannot be opened\n");
    build();
    fake.warm_status = UTTER_E_DEVICE;
    play(1, LINES(".0.3"), "0: refused -6 it does not get warm\n");
    build();
    fake.takes_no_cores = true;
    hello.device = "cpu:1-2";
    play(1, LINES(".0.3"), "0: refused -1 --device cpu:1-2: not all of these cores are here\n");
    assert_int_equal(fake.n_open, 0);
    build(); /* who speaks another language is told nothing */
    hello.version++;
    play(0, LINES(".0.3"), "");
    build();
    static const char *const other[] = {"t 1 a", NULL}, *const none[] = {NULL};
    play(0, other, "");
    play(0, none, "");
    assert_int_equal(fake.n_open, 0);
}

/* ---- Speeches ---- */

static void speeches_are_made_frame_by_frame(void **state)
{
    (void)state;
    build();
    fake.rows = 2;
    play(0, LINES("o 7 live; t 7 ab", "t 7 %c%&; f 7", "o 8 words; t 8 d; f 8"),
        READY "7: a\n7: b\n7: %\n7: c\n7: %\n7: &\n"
              "7: done 1, frames 6, tokens 50, 0.004 6 12 18 s, pieces 1 0 2, at 103\n"
              "8: d\n8: 1 words\n8: done 1, frames 1, tokens 50, 0.004 1 2 3 s, pieces 1 0 0, at 0\n");
    play(0, LINES("o 1 clara"), READY);
    assert_memory_equal(fake.asked, "clara, ", 7);
    /* Two at once take turns in one step; who is cancelled is free at once, and who is not known says nothing. */
    build();
    play(0, LINES("o 1 live; o 2 live; t 1 abc; t 2 xyz; f 1; f 2", "c 1; c 9; t 9 q; f 9; o 3; f 3"),
        READY "1: a\n2: x\n1: b\n2: y\n1: c\n"
              "1: done 1, frames 3, tokens 50, 0.002 3 6 9 s, pieces 1 0 0, at 0\n2: z\n"
              "2: done 1, frames 3, tokens 50, 0.002 3 6 9 s, pieces 1 0 0, at 0\n"
              "3: done 1, frames 0, tokens 50, 0 0 0 0 s, pieces 1 0 0, at 0\n");
    build();
    play(0, LINES("o 1 live; t 1 abcdef", "+c 1", "o 1 live; t 1 g; f 1"),
        READY
        "1: a\n1: freed\n1: g\n1: done 1, frames 1, tokens 50, 0.002 1 2 3 s, pieces 1 0 0, at 0\n");
}

/* No lane makes more while its client does not read; whoever waits for text does not turn in circles. */
static void who_is_paused_waits(void **state)
{
    (void)state;
    build();
    play(0, LINES("o 1 live; t 1 abc; f 1; p 1", ".0.3", "r 1", ".0.3"),
        READY "1: a\n1: b\n1: c\n1: done 1, frames 3, tokens 50, 0.002 3 6 9 s, pieces 1 0 0, at 0\n");
    assert_int_equal(fake.n_steps, 3);
    build();
    play(0, LINES("o 1 live; t 1 ab", ".0.3", "t 1 c", ".0.3", "f 1"),
        READY "1: a\n1: b\n1: c\n1: done 1, frames 3, tokens 50, 0.002 3 6 9 s, pieces 1 0 0, at 0\n");
    assert_int_equal(fake.n_steps, 6); /* 2, 1 and 1, and each time one that finds nothing */
}

static void what_fails_is_told_to_whom_it_concerns(void **state)
{
    static const struct {
        const char *lines[3], *said;
        int code;
    } cases[] = {
        {{"h", "o 1; t 1 a?; o 2; t 2 b; f 2"},
            "1: failed -1 an odd text\n2: b\n2: done 1, frames 1, tokens 50, 0.002 1 2 3 s, pieces "
            "1 0 0, at 0\n",
            0},
        {{"h", "o 1; t 1 a!b; f 1"}, "1: a\n1: failed -7 failed at !\n", 0},
        {{"h", "o 1 gone"}, "1: failed -2 the file of this voice cannot be read\n", 0},
        {{"h", "o 1 odd"}, "1: failed -3 another model's\n", 0},
        {{"h", "o 1 nobody"}, "1: failed -1 no voice 'nobody'\n", 0},
        {{"h", "o 1 deny"}, "1: failed -1 denied\n", 0},
        {{"h", "o 1; o 2; o 3; o 4"}, "4: failed -9 the front end sent what cannot be\n", 0},
        /* The model is broken: the speeches are not failed, the next worker begins them again. */
        {{"h", "o 1; o 2 lost; o 3 lost"}, "0: refused -6 the device is lost\n", 3},
        {{"h", "o 1; o 2; t 1 a; t 2 $"}, "0: refused -6 lost with its text\n1: a\n", 3},
        {{"h", "o 1; t 1 ab#c; f 1"}, "1: a\n1: b\n0: refused -2 failed at #\n", 3},
        {{"h", "o 1; t 1 a; x 1; t 1 b"}, "", 0},
        {{"h", "o 1; t 1 a; x 2; f 1"},
            "1: a\n1: done 1, frames "
            "1, tokens 50, 0.002 1 2 3 s, pieces 1 0 0, at 0\n",
            0}};
    char expected[1000];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        build();
        snprintf(expected, sizeof expected, READY "%s", cases[i].said);
        play(cases[i].code, cases[i].lines, expected);
    }
    build(); /* in a step; what is no end of the device is for those whom it concerns */
    fake.step_status = UTTER_E_NUMBER;
    play(0, LINES("o 1; t 1 a; f 1"),
        READY "1: a\n1: done 1, frames 1, tokens 50, 0.002 1 2 3 s, pieces 1 0 "
              "0, at 0\n");
    build();
    fake.step_status = UTTER_E_DEVICE;
    play(3, LINES("o 1; t 1 ab; f 1"), READY "1: a\n0: refused -6 no step\n");
}

/* ---- What the worker says of itself ---- */

/* A beat is told as: lanes of listeners, lanes that stepped, capacity, whether it falls behind; the last step, the next
 * one, what one lane more adds to it, and a byte of a prompt, in ms. Opened, and warmed by steps of 12, 14 and 16: */
#define WARM_ON(device) "beat 0 0 3 0, 0.0 12.0 2.0 0.000\n" READY_ON(device)
#define WARM WARM_ON("cpu")
#define DONE(id, prefill) id ": done 1, frames 4, tokens 50, " prefill " 4 8 12 s, pieces 1 0 0, at 0\n"

static void play_beaten(const char *const *lines, const char *expected)
{
    fake.is_beaten = true;
    play(0, lines, expected);
}

static void beats_come_several_times_a_second(void **state)
{
    static const char quiet[] =
        WARM "beat 0 0 3 0, 0.0 12.0 2.0 0.000\nbeat 0 0 3 0, 0.0 12.0 2.0 0.000\n",
                      one[] = WARM "beat 1 0 3 0, 0.0 14.0 2.0 0.000\n",
                      two[] = WARM "beat 2 0 3 0, 0.0 16.0 2.0 0.000\n";
    (void)state;
    build();
    play_beaten(LINES(".0.1", ".0.1", ".0.1", ".0.2", ".0.3"), quiet);
    for (int idle = 0; idle < 2; idle++) { /* what is in the background is nobody's, but where all is */
        build();
        hello.idle = idle;
        play_beaten(LINES("o 1; o 2 ground; p 1; p 2", ".0.3"), idle ? two : one);
        assert_int_equal(fake.policy, idle ? SCHED_IDLE : 0);
    }
    FILE *score = fopen("/proc/self/oom_score_adj", "r"); /* of two, it is the first to end */
    int adjusted = 0;
    assert_true(score && fscanf(score, "%d", &adjusted) == 1 && fclose(score) == 0);
    assert_int_equal(adjusted, 1000);
}

static int n_trims;

int malloc_trim(size_t kept)
{
    assert_int_equal(kept, 0);
    n_trims++;
    return 1;
}

static void expect_trims(int n, const char *const *lines)
{
    build();
    n_trims = 0;
    play(0, lines, NULL);
    assert_int_equal(n_trims, n);
}

/* Once after each time that somebody spoke, a second after the last step; the opening leaves some as well. */
static void holes_of_the_heap_go_back(void **state)
{
    (void)state;
    expect_trims(0, LINES(".0.3", ".0.6"));
    expect_trims(1, LINES(".0.3", ".0.6", ".0.2", ".0.1"));
    expect_trims(1, LINES(".3", ".3", ".3", ".3"));
    expect_trims(1, LINES(".3", "o 1; t 1 ab; f 1", ".0.9"));
    expect_trims(2, LINES(".3", "o 1; t 1 ab; f 1", ".0.9", ".0.3", ".0.1"));
    expect_trims(3, LINES(".3", "o 1; t 1 ab; f 1", ".3", "o 1; t 1 ab", ".3", ".3", ".3"));
}

static void other_kernels_are_told_of(void **state)
{
    (void)state;
    build();
    play(0, LINES(".0.3", "k", ".1.5", ".0.1", ".1", ".2.5"), READY "kernels other\n");
    build();
    play(0, LINES(".0.3", "k", ".1.9"), READY);
}

/* What steps took long ago says nothing of now. */
static void who_was_slow_is_asked_again(void **state)
{
    static const char expected[] = WARM "1: a\n"
                                        "beat 1 1 3 1, 1500.0 18.0 1.9 0.000\n"
                                        "1: b\n"
                                        "beat 1 1 3 1, 1500.0 21.7 1.9 0.000\n"
                                        "1: c\n"
                                        "beat 1 1 3 1, 1500.0 25.2 1.9 0.000\n"
                                        "1: d\n" DONE("1", "0") "beat 0 1 3 1, 1500.0 497.0 0.0 0.000\n"
                                                                "beat 0 0 3 1, 0.0 497.0 0.0 0.000\n"
                                                                "beat 0 0 3 0, 0.0 497.0 0.0 0.000\n";
    (void)state;
    build();
    fake.rows = 0;
    fake.step_s = 1.5;
    play_beaten(LINES("o 1 live; t 1 abcd; f 1", ".59.9", ".0.3"), expected);
}

/* A prompt is read in two steps. Of several that are read at once the device tells the time of the last alone: what
 * they took together is what the step took beyond its frames. */
static void what_a_prompt_costs_is_learnt(void **state)
{
    static const char alone[] = WARM "beat 1 1 3 0, 12.0 14.0 2.0 0.000\n"
                                     "1: a\n"
                                     "beat 1 1 3 0, 12.0 14.0 2.0 0.111\n"
                                     "1: b\n"
                                     "beat 1 1 3 0, 10.0 14.0 2.0 0.111\n"
                                     "1: c\n"
                                     "beat 1 1 3 0, 10.0 14.0 2.0 0.111\n"
                                     "1: d\n" DONE("1", "0.004") "beat 0 1 3 0, 10.0 11.3 2.7 0.111\n",
                      both[] = WARM_ON("cuda") "beat 2 2 3 0, 30.0 16.0 2.0 0.000\n"
                                               "1: a\n2: w\n"
                                               "beat 2 2 3 0, 30.0 16.0 2.0 0.222\n"
                                               "1: b\n2: x\n"
                                               "beat 2 2 3 0, 10.0 16.0 1.8 0.222\n"
                                               "1: c\n2: y\n"
                                               "beat 2 2 3 0, 10.0 16.0 1.7 0.222\n"
                                               "1: d\n" DONE("1", "0.02") "2: z\n" DONE(
                                                   "2", "0.02") "beat 0 2 3 0, 10.0 12.0 1.0 0.222\n";
    (void)state;
    build();
    fake.rows = 2;
    play_beaten(LINES("o 1 live; t 1 abcd; f 1"), alone);
    build();
    fake.rows = 2;
    fake.row_s = 0.010;
    hello.device = "cuda"; /* it makes both lanes in one step */
    play_beaten(LINES("o 1; t 1 abcd; f 1; o 2; t 2 wxyz; f 2"), both);
}

/* Of two prompts the shorter one ends first: what that step took is no measure of either. */
static void half_of_a_prompt_tells_nothing(void **state)
{
    static const char expected[] =
        WARM "1: a\n"
             "1: done 1, frames 1, tokens 50, 0.002 1 2 3 s, pieces 1 0 0, at 0\n"
             "beat 1 2 3 0, 14.0 14.0 2.0 0.000\n"
             "2: w\n"
             "2: done 1, frames 1, tokens 50, 0.004 1 2 3 s, pieces 1 0 0, at 0\n"
             "beat 0 1 3 0, 12.0 11.8 2.2 0.121\n";
    (void)state;
    build();
    fake.more_rows = 1;
    play_beaten(LINES("o 1; t 1 a; f 1; o 2; t 2 w; f 2"), expected);
}

/* ---- A slot ---- */

static utter_error why;

static void open_slot(struct slot *slot, const struct wire_open *o, const utter_voice *voice)
{
    struct wire_open open = *o;
    for (int i = 0; i < parameter_count; i++) {
        open.sampling[i] = open.sampling[i] > 0 ? open.sampling[i] : parameter_own(&parameter_table[i]);
    }
    *slot = (struct slot){0};
    assert_int_equal(slot_open(slot, (utter_model *)&fake, 5, &open, voice, &why), UTTER_OK);
    assert_true(slot->id == 5 && slot->reading);
}

/* What the client set no limit for is bounded all the same; who hears it live hears nothing twice. */
static void a_slot_hands_on_what_was_asked(void **state)
{
    static const struct {
        struct wire_open open;
        const char *asked;
    } cases[] = {
        {{.live = true},
            "no voice, language -, instruct -, layout 0, seed 0, words 0, plain 0, most 2048 0, "
            "temperature 0, live 1, retries 1, markup 0, spell 0, carry 0"},
        {{.language = "thai",
             .instruct = "low",
             .layout = 2,
             .sampling = {0.5},
             .seed = 99,
             .max_frames = 3000,
             .markup = 3,
             .words = true},
            "a file, language thai, instruct low, layout 2, seed 99, words 1, plain 0, most 3000 3000, "
            "temperature 0.5, live 0, retries 2, markup 3, spell 0, carry 0"},
        {{.max_frames = 9000, .spell_out = true},
            "no voice, language -, instruct -, layout 0, seed 0, words 0, plain 0, most 4096 9000, "
            "temperature 0, live 0, retries 2, markup 0, spell 1, carry 0"},
        {{.max_frames = 7, .carry = true, .plain = true},
            "no voice, language -, instruct -, layout 0, seed 0, words 0, plain 1, most 2048 7, "
            "temperature 0, live 0, retries 2, markup 0, spell 0, carry 1"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slot slot;
        build();
        open_slot(&slot, &cases[i].open, i == 1 ? (utter_voice *)&fake.cage : NULL);
        assert_string_equal(fake.asked, cases[i].asked);
        assert_true(slot.words == cases[i].open.words && slot.live == cases[i].open.live);
        slot_close(&slot);
        assert_true(!slot.reading && slot.id == 0);
    }
}

/* A step, and what it gave at this time. */
static utter_status take(struct slot *slot, double now, struct slot_gain *gain)
{
    static float pcm[FRAME];
    const utter_model_info info = {.frame_samples = FRAME, .sample_rate = RATE};
    struct wire_out out = {0};
    utter_model_step((utter_model *)&fake, &why);
    utter_status status = slot_take(slot, &info, pcm, now, gain, &out, &why);
    wire_fini(&out);
    return status;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* The listener begins with the first frame, goes on behind the last one, and begins anew where it has run dry. */
static void sound_is_due_when_all_before_it_is_heard(void **state)
{
    enum { LIVE, WHOLE, GROUND, KINDS };
    static const double frame_s = (double)FRAME / RATE;
    struct slot_gain gain;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const struct wire_open open = {.live = kind == LIVE, .background = kind == GROUND};
        struct slot slot;
        build();
        fake.rows = 2;
        fake.keeps = kind == WHOLE; /* what is made counts as heard all the same */
        open_slot(&slot, &open, NULL);
        assert_true(
            near(slot.due, 1000) && slot_can_step(&slot) && slot.background == (kind == GROUND));
        assert_int_equal(slot_text(&slot, "abcd", 4, &why), UTTER_OK);
        assert_int_equal(take(&slot, 1001, &gain), UTTER_AGAIN);
        assert_true(!gain.moved && gain.has_read && !slot.has_sound && !slot.starved);
        assert_true(near(gain.rows_s, fake.row_s) && gain.prompt <= 0 && gain.prompt_s <= 0);
        assert_true(near(slot.due, 1000));
        assert_int_equal(take(&slot, 1002, &gain), UTTER_AGAIN); /* the prompt has been read */
        assert_true(gain.moved && gain.has_read && slot.has_sound && near(gain.rows_s, fake.row_s));
        assert_true(near(gain.prompt, 4 + 32) && near(gain.prompt_s, 2 * fake.row_s));
        assert_true(near(slot.due, kind == GROUND ? 1000 : 1002 + frame_s));
        take(&slot, 1002.01, &gain);
        assert_true(gain.moved && !gain.has_read && gain.prompt <= 0 && gain.rows_s <= 0);
        assert_true(near(slot.due, kind == GROUND ? 1000 : 1002 + 2 * frame_s));
        take(&slot, 1003, &gain);
        assert_true(near(slot.due, kind == GROUND ? 1000 : 1003 + frame_s));
        take(&slot, 1003.01, &gain);
        assert_true(gain.moved && !slot.starved);
        take(&slot, 1003.02, &gain); /* it waits for text */
        assert_true(!gain.moved && slot.starved && !slot_can_step(&slot));
        assert_true(near(slot.due, kind == GROUND ? 1000 : 1003 + 2 * frame_s));
        assert_int_equal(slot_text(&slot, NULL, 0, &why), UTTER_OK);
        assert_true(slot.has_all && slot_can_step(&slot));
        assert_int_equal(take(&slot, 1004, &gain), UTTER_END);
        slot_close(&slot);
    }
}

/* A step may show nothing, as one that is spent on words in doubt: only who has no text left waits for more. */
static void a_step_that_shows_nothing_starves_nobody(void **state)
{
    const struct wire_open open = {.live = true};
    struct slot_gain gain;
    struct slot slot;
    (void)state;
    for (int has_all = 0; has_all < 2; has_all++) {
        build();
        open_slot(&slot, &open, NULL);
        assert_int_equal(slot_text(&slot, "abc", 3, &why), UTTER_OK);
        if (has_all) {
            assert_int_equal(slot_text(&slot, NULL, 0, &why), UTTER_OK);
        }
        take(&slot, 1001, &gain);
        assert_true(gain.moved && !slot.starved);
        utter_model_step((utter_model *)&fake, &why);
        slot.stats.n_frames = slot.reading->stats.n_frames; /* its sound comes behind the frame */
        utter_reading_hold(slot.reading, true);
        take(&slot, 1002, &gain);
        assert_true(!gain.moved && slot.due > 1002 && !slot.starved);
        take(&slot, 1003, &gain);
        assert_true(!gain.moved && slot.starved == !has_all && slot_can_step(&slot) == has_all);
        slot_close(&slot);
    }
}

/* Of a long prompt a step reads a piece; a later piece of the text has a prompt of its own. */
static void a_prompt_is_chosen_by_its_piece(void **state)
{
    const struct wire_open open = {.live = true};
    struct schedule_speech choice;
    struct slot_gain gain;
    struct slot slot = {0};
    (void)state;
    slot_choice(&choice, &slot, 1, 1);
    assert_true(!choice.can_step && !slot_can_step(&slot));
    build();
    open_slot(&slot, &open, NULL);
    slot_text(&slot, "abcdefgh", 8, &why);
    slot_choice(&choice, &slot, 0.010, 0.001);
    assert_true(choice.can_step && !choice.has_sound && !choice.background && near(choice.due, 1000));
    assert_true(near(choice.whole, 40) && near(choice.prompt, 10));
    slot_choice(&choice, &slot, 0.010, 0.0002);
    assert_true(near(choice.whole, 40) && near(choice.prompt, 40));
    slot_choice(&choice, &slot, 0.010, 0); /* not known */
    assert_true(near(choice.whole, 40) && near(choice.prompt, 40));
    slot.paused = true;
    slot_choice(&choice, &slot, 0.010, 0);
    assert_false(choice.can_step);
    slot.paused = false;
    take(&slot, 1001, &gain);
    slot_choice(&choice, &slot, 0.010, 0.001);
    assert_true(choice.has_sound && choice.whole <= 0 && choice.prompt <= 0);
    slot.reading->stats.n_pieces = 1; /* the piece ends in the next step, and its time with it */
    slot.reading->stats.prefill_s = 5;
    take(&slot, 1001.02, &gain);
    assert_true(slot.frames_before == slot.stats.n_frames && near(slot.prefill_before, 5));
    slot_choice(&choice, &slot, 0.010, 0.001);
    assert_true(near(choice.whole, 40) && near(choice.prompt, 10));
    slot.reading->stats.prefill_s = 7;
    take(&slot, 1001.04, &gain);
    assert_true(gain.moved && near(gain.prompt, 40) && near(gain.prompt_s, 2));
    slot_close(&slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_opened_as_it_was_asked_for),
        cmocka_unit_test(what_is_not_opened_is_told),
        cmocka_unit_test(speeches_are_made_frame_by_frame),
        cmocka_unit_test(who_is_paused_waits),
        cmocka_unit_test(what_fails_is_told_to_whom_it_concerns),
        cmocka_unit_test(beats_come_several_times_a_second),
        cmocka_unit_test(holes_of_the_heap_go_back),
        cmocka_unit_test(other_kernels_are_told_of),
        cmocka_unit_test(who_was_slow_is_asked_again),
        cmocka_unit_test(what_a_prompt_costs_is_learnt),
        cmocka_unit_test(half_of_a_prompt_tells_nothing),
        cmocka_unit_test(a_slot_hands_on_what_was_asked),
        cmocka_unit_test(sound_is_due_when_all_before_it_is_heard),
        cmocka_unit_test(a_step_that_shows_nothing_starves_nobody),
        cmocka_unit_test(a_prompt_is_chosen_by_its_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
