/* SPDX-License-Identifier: Apache-2.0
 * The schedule at its bounds: what a clock learns of a step, what it foretells, and who goes first where two are as
 * urgent, or one is just so urgent that it matters. Steps cost what a line says that each test draws; times are such as
 * a double holds exactly. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "server/worker/schedule.h"

/* A step of one lane takes one_s, each further lane more_s. */
static struct schedule_clock line(double one_s, double more_s)
{
    return (struct schedule_clock){.weight = 1,
        .lanes = 1,
        .lanes_lanes = 5,
        .seconds = one_s,
        .lanes_seconds = one_s + 4 * more_s};
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

/* ---- The clock ---- */

static void each_step_is_counted_once(void **state)
{
    static const double memory = 0.97, long_memory = 0.9995;
    struct schedule_clock c = {0};
    (void)state;
    schedule_learn(&c, 2, 0.5, 0, 0);
    assert_true(c.n_steps == 1 && near(c.weight, 1) && near(c.lanes, 2) && near(c.lanes_lanes, 4));
    assert_true(near(c.seconds, 0.5) && near(c.lanes_seconds, 1));
    assert_true(near(c.by_lanes[2].weight, 1) && near(c.by_lanes[2].seconds, 0.5));
    schedule_learn(&c, 3, 0.25, 0, 0);
    assert_true(near(c.weight, memory + 1) && near(c.lanes, 2 * memory + 3));
    assert_true(near(c.lanes_lanes, 4 * memory + 9) && near(c.seconds, 0.5 * memory + 0.25));
    assert_true(near(c.lanes_seconds, memory + 0.75) && near(c.by_lanes[3].weight, 1));
    schedule_learn(&c, 2, 1, 0, 0);
    const double left = memory * long_memory * long_memory; /* two steps later */
    assert_true(near(c.by_lanes[2].weight, left + 1) && near(c.by_lanes[2].seconds, 0.5 * left + 1));
    assert_int_equal(c.by_lanes[2].step, 3);
    struct schedule_clock before = c;
    schedule_learn(&c, 0, 9, 0, 0); /* of frames it tells nothing */
    before.n_steps++;
    assert_memory_equal(&c, &before, sizeof c);
    schedule_learn_width(&c, 0, 9);
    schedule_learn_width(&c, SCHEDULE_MOST_LANES + 1, 9);
    assert_memory_equal(&c, &before, sizeof c);
    schedule_learn_width(&c, 1, 9);
    schedule_learn_width(&c, SCHEDULE_MOST_LANES, 9);
    assert_true(near(c.by_lanes[1].seconds, 9) && near(c.by_lanes[SCHEDULE_MOST_LANES].seconds, 9));
    assert_true(c.n_steps == 4 && near(c.weight, before.weight));
}

static void a_prompt_that_costs_more_tells_more(void **state)
{
    struct schedule_clock c = {0};
    (void)state;
    schedule_learn(&c, 0, 0, 0, 9);
    assert_true(c.prompt_s <= 0);
    schedule_learn(&c, 0, 0, 100, 100);
    assert_true(near(c.prompt_s, 1)); /* the first one */
    schedule_learn(&c, 0, 0, 0.5, 1);
    assert_true(near(c.prompt_s, 1.5));
    schedule_learn(&c, 0, 0, 100, 100);
    assert_true(near(c.prompt_s, 1.4));
}

static void a_step_is_foretold_by_the_line_and_its_own(void **state)
{
    struct schedule_clock c = line(1.0 / 64, 1.0 / 256);
    (void)state;
    assert_true(near(schedule_step_s(&c, 1, 0), 1.0 / 64));
    assert_true(near(schedule_step_s(&c, 5, 0), 1.0 / 32));
    c.prompt_s = 0.25;
    assert_true(near(schedule_step_s(&c, 5, 3), 1.0 / 32 + 0.75));
    c.by_lanes[5].weight = 1.5;
    c.by_lanes[5].seconds = 1.5 * 0.5; /* half a second when it was made last */
    assert_true(near(schedule_step_s(&c, 5, 0), (0.5 / 32 + 0.75) / 2));
    c.n_steps = c.by_lanes[5].step + 1000; /* long ago */
    const double left = pow(0.9995, 1000);
    assert_true(near(schedule_step_s(&c, 5, 0), (0.5 / 32 + 0.75 * left) / (0.5 + 1.5 * left)));
    c.by_lanes[SCHEDULE_MOST_LANES].weight = 1.5;
    c.by_lanes[SCHEDULE_MOST_LANES].seconds = 1.5;
    c.by_lanes[SCHEDULE_MOST_LANES].step = c.n_steps;
    const double at_most = 1.0 / 64 + 255.0 / 256;
    assert_true(near(schedule_step_s(&c, 256, 0), (0.5 * at_most + 1.5) / 2));
    assert_true(near(schedule_step_s(&c, 257, 0), at_most + 1.0 / 256));
    /* Steps of about the same width tell nothing of a lane. */
    c = line(1.0 / 64, 1.0 / 256);
    c.lanes_lanes = 1.25;
    assert_true(near(schedule_step_s(&c, 3, 0), 3.0 / 64));
    c.lanes_lanes = 1.5;
    c.lanes_seconds = 1.0 / 64 + 0.5 / 256;
    assert_true(near(schedule_step_s(&c, 3, 0), 1.0 / 64 + 2.0 / 256));
    c = (struct schedule_clock){
        .weight = 2, .lanes = 4, .lanes_lanes = 8, .seconds = 0.125, .lanes_seconds = 0.25};
    assert_true(near(schedule_step_s(&c, 6, 0), 3.0 / 16));
    /* A lane costs no less than nothing, and no more than its part of the step. */
    c = line(1.0 / 64, -1.0 / 256);
    assert_true(near(schedule_step_s(&c, 100, 0), 1.0 / 64));
    c = line(1.0 / 64, 1);
    assert_true(near(schedule_step_s(&c, 100, 0), 100.0 / 64));
}

static void lanes_are_promised_as_far_as_they_pay(void **state)
{
    struct schedule_clock c = line(0.02, 0.02);
    (void)state;
    assert_true(near(schedule_most_s(0.5, 0.25), 1.05 * 0.75));
    assert_int_equal(schedule_capacity(&c, 24, 0.08), 3); /* one at a time: 3.2 of them */
    assert_int_equal(schedule_capacity(&c, 3, 0.08), 3);
    assert_int_equal(schedule_capacity(&c, 2, 0.08), 2);
    c = line(1.0 / 128, 1.0 / 256); /* five fit into a step */
    assert_int_equal(schedule_capacity(&c, 24, 0.08), 13);
    c = line(0.075, 0.075);
    assert_int_equal(schedule_capacity(&c, 24, 0.08), 1);
    assert_true(!schedule_falls_behind(&c, 0.0750001) && schedule_falls_behind(&c, 0.075));
    assert_int_equal(schedule_capacity(&c, 24, 0.075), 24);
    /* Any width takes 16 ms, of which 1.02 go into a frame. One that cost too much when it was made last bars the next,
     * but for a step of one lane. */
    c = line(1.0 / 64, 0);
    assert_int_equal(schedule_capacity(&c, 40, 0.02), 40);
    for (int width = 1; width <= 3; width++) {
        c = line(1.0 / 64, 0);
        c.by_lanes[width].weight = 1e-9; /* so little that it is as good as forgotten */
        c.by_lanes[width].seconds = 100e-9;
        assert_int_equal(schedule_capacity(&c, 40, 0.02), width == 1 ? 40 : width);
    }
    c = line(1.0 / 64, 0);
    c.by_lanes[1].weight = 100;
    c.by_lanes[1].seconds = 100.0 / 64;
    assert_int_equal(schedule_capacity(&c, 40, 0.02), 40);
}

/* ---- The choice ---- */

static const struct schedule_speech none;

static struct schedule_speech frame(double due)
{
    return (struct schedule_speech){.can_step = true, .has_sound = true, .due = due};
}

static struct schedule_speech prompt(double due, double whole)
{
    return (struct schedule_speech){.can_step = true, .due = due, .prompt = whole, .whole = whole};
}

static struct schedule_speech aside(double due)
{
    return (struct schedule_speech){
        .can_step = true, .has_sound = true, .due = due, .background = true};
}

/* Which of four are chosen at this time, as digits. */
static const char *chosen_at(double now, const struct schedule_clock *c, struct schedule_speech a,
    struct schedule_speech b, struct schedule_speech d)
{
    static char all[5];
    struct schedule_speech s[] = {a, b, d};
    const int n = schedule_choose(s, 3, now, c);
    all[0] = 0;
    for (int i = 0; i < 3; i++) {
        strcat(all, s[i].chosen ? (const char *[]){"1", "2", "3"}[i] : "");
    }
    assert_int_equal(n, strlen(all));
    return all;
}

#define EXPECT_CHOSEN(chosen, ...) assert_string_equal(chosen_at(__VA_ARGS__), chosen)

/* One step of one lane: the first of those that are alike. */
static void of_two_alike_the_first_goes(void **state)
{
    struct schedule_clock c = line(0.02, 0.02);
    (void)state;
    EXPECT_CHOSEN("1", 8, &c, frame(8.25), frame(8.25), none);
    EXPECT_CHOSEN("2", 8, &c, none, frame(8.25), frame(8.25));
    EXPECT_CHOSEN("3", 8, &c, frame(8.25), frame(8.25), frame(8.125));
    c.n_steps = 1;
    c.prompt_s = 0.02;
    EXPECT_CHOSEN("1", 8, &c, prompt(7.5, 9), prompt(7.5, 9), none);
    EXPECT_CHOSEN("1", 8, &c, aside(7.5), aside(7.5), none);
    EXPECT_CHOSEN("2", 8, &c, aside(7.5), aside(7.25), aside(7.5));
    c.n_steps = 4;
    EXPECT_CHOSEN("1", 8, &c, prompt(7.5, 9), prompt(7.5, 9), none);
}

/* What stands behind the last of them is nobody's. */
static void only_those_that_there_are_step(void **state)
{
    struct schedule_clock c = line(0.001, 0.0001);
    struct schedule_speech frames[] = {frame(8.25), frame(8.25), frame(8)},
                           asides[] = {frame(8.75), aside(8), aside(7)},
                           waits[] = {frame(8.75), frame(8.625), prompt(7, 9)};
    (void)state;
    frames[2].chosen = true;
    assert_int_equal(schedule_choose(frames, 2, 8, &c), 2);
    assert_true(frames[2].chosen); /* as it was */
    assert_int_equal(schedule_choose(asides, 2, 8, &c), 2);
    assert_false(asides[2].chosen);
    assert_int_equal(schedule_choose(waits, 2, 8, &c), 2); /* nobody waits for a first sound */
    assert_int_equal(schedule_choose(waits, 3, 8, &c), 1);
    struct schedule_speech first[] = {prompt(7, 9), frame(8.75)};
    assert_int_equal(schedule_choose(first, 2, 8, &c), 1);
}

/* Who may be first: the prompt that has waited, or the frame that is due. */
static void a_frame_or_a_prompt_goes_first(void **state)
{
    struct schedule_clock c = line(0.02, 0.02);
    (void)state;
    c.prompt_s = 0.02;
    /* Whose listener has just run dry goes before one that has waited for long. */
    EXPECT_CHOSEN("1", 8, &c, frame(8), prompt(7, 9), none);
    EXPECT_CHOSEN("2", 8, &c, frame(7.875), prompt(7, 9), none);
    EXPECT_CHOSEN("1", 8, &c, frame(7.875), prompt(7.5, 9), none);
    /* So does one with fifty milliseconds in hand. */
    EXPECT_CHOSEN("1", 0, &c, frame(0.05), prompt(-1, 9), none);
    EXPECT_CHOSEN("2", 0, &c, frame(0.0625), prompt(-1, 9), none);
    /* A first sound is due a tenth of a second after it was asked for. */
    EXPECT_CHOSEN("1", 0, &c, frame(0.1875), prompt(0.09375, 9), none);
    EXPECT_CHOSEN("2", 0, &c, frame(0.1875), prompt(0.0625, 9), none);
}

/* The shorter prompt goes first, or the older one that has waited for a tenth of a second: but in each fourth step. */
static void who_has_waited_goes_before_who_is_short(void **state)
{
    struct schedule_clock c = line(0.02, 0.02);
    (void)state;
    c.prompt_s = 0.02;
    for (unsigned n = 0; n < 9; n++) {
        c.n_steps = n;
        EXPECT_CHOSEN("2", 0, &c, prompt(-0.1, 99), prompt(0, 9), none);
        EXPECT_CHOSEN(n % 4 ? "1" : "2", 0, &c, prompt(-0.125, 99), prompt(0, 9), none);
        EXPECT_CHOSEN(n % 4 ? "2" : "1", 0, &c, prompt(0, 9), prompt(-0.125, 99), none);
        EXPECT_CHOSEN("2", 0, &c, prompt(0, 9), prompt(-0.05, 9), none); /* as long: the older one */
    }
}

static void a_step_takes_so_long_at_most(void **state)
{
    struct schedule_clock c = line(0.0125, 0.0125);
    (void)state;
    EXPECT_CHOSEN("12", 8, &c, frame(8.25), frame(8.25), frame(8.25)); /* 25 ms, to the last of them */
    c = line(0.0126, 0.0125);
    EXPECT_CHOSEN("1", 8, &c, frame(8.25), frame(8.25), frame(8.25));
    /* So that the first frame comes in time: four fifths of what there is, but the way of the sound. Who has fifty
     * milliseconds himself does not wait for that. */
    c = line(0.01, 0.01);
    EXPECT_CHOSEN("12", 0, &c, frame(0.01), frame(0.05), frame(9));
    EXPECT_CHOSEN("1", 0, &c, frame(0.01), frame(0.0625), frame(9));
    EXPECT_CHOSEN("1", 0, &c, frame(0.034), frame(0.0625), frame(9));
    EXPECT_CHOSEN("12", 0, &c, frame(0.036), frame(0.0625), frame(9));
    /* Nor does a prompt that has waited for half a second. */
    EXPECT_CHOSEN("1", 8, &c, frame(8.03), prompt(7.5, 9), none);
    EXPECT_CHOSEN("12", 8, &c, frame(8.03), prompt(7.49, 9), none);
    /* Who has a fifth of a second in hand stands back while somebody waits, and no one who has less. */
    c = line(0.001, 0.0001);
    EXPECT_CHOSEN("12", 0, &c, prompt(0, 9), frame(0.2), none);
    EXPECT_CHOSEN("1", 0, &c, prompt(0, 9), frame(0.201), none);
    EXPECT_CHOSEN("1", 0, &c, frame(0.201), none, none);
}

/* Of nine lanes so many have this frame to make; what the last one does. */
static int choose_beside(
    const struct schedule_clock *c, int n, struct schedule_speech each, struct schedule_speech last)
{
    struct schedule_speech s[9] = {[8] = last};
    for (int i = 0; i < n; i++) {
        s[i] = each;
    }
    return schedule_choose(s, 9, 0, c);
}

static int choose_of_nine(const struct schedule_clock *c, int n, struct schedule_speech each)
{
    return choose_beside(c, n, each, none);
}

/* As long as a lane is free, or waits for its text, somebody may come. */
static void a_step_is_short_where_somebody_may_come(void **state)
{
    struct schedule_clock c = line(0.0049, 0.005);
    (void)state;
    assert_int_equal(choose_of_nine(&c, 9, frame(9)), 5);
    assert_int_equal(choose_of_nine(&c, 8, frame(9)), 3);
    assert_int_equal(choose_of_nine(&c, 3, frame(9)), 3);
    assert_int_equal(choose_beside(&c, 8, frame(9), aside(9)), 3); /* it makes room for who comes */
    c = line(0.005, 0.0033);
    assert_int_equal(choose_of_nine(&c, 8, frame(9)), 4); /* 14.9 ms */
    c = line(0.0052, 0.0033);
    assert_int_equal(choose_of_nine(&c, 8, frame(9)), 3);
    c = line(0.0049, 0.005);
    /* Who has fifty milliseconds in hand needs his frame. */
    assert_int_equal(choose_of_nine(&c, 8, frame(0.05)), 5);
    assert_int_equal(choose_of_nine(&c, 8, frame(0.1)), 3);
    /* Prompts are those of people who have come. */
    c.prompt_s = 0.001;
    EXPECT_CHOSEN("12", 8, &c, prompt(8, 5), prompt(8, 5), none);
    EXPECT_CHOSEN("12", 8, &c, prompt(8, 5), frame(8.15), none); /* 14.9 ms */
    EXPECT_CHOSEN("1", 8, &c, prompt(8, 6), frame(8.15), none);
    EXPECT_CHOSEN("123", 8, &c, prompt(8, 6), frame(8.15), frame(8.15));
    /* Shorter still where lanes are made one by one: two take 8 ms, or more than that. */
    c = line(0.004, 0.004);
    c.one_by_one = true;
    assert_int_equal(choose_of_nine(&c, 8, frame(9)), 2);
    assert_int_equal(choose_of_nine(&c, 8, frame(0.05)), 6);
    assert_int_equal(choose_of_nine(&c, 9, frame(9)), 6);
    c = line(0.0041, 0.004);
    c.one_by_one = true;
    assert_int_equal(choose_of_nine(&c, 8, frame(9)), 1);
    /* Where few lanes are dear it is longer: 80, 133, 171, 200, 222, 240 lanes a second; nine tenths are 216. */
    c = line(0.0124, 0.0025);
    assert_int_equal(choose_of_nine(&c, 8, frame(9)), 5);
    assert_int_equal(choose_of_nine(&c, 5, frame(9)), 4); /* nine tenths of what five can do */
    /* Quick up to two lanes, slow beyond: what follows does not pay, and makes no step longer. */
    c = line(0.001, 0.0005);
    for (int width = 3; width < 9; width++) {
        c.by_lanes[width].weight = 1e6;
        c.by_lanes[width].seconds = 0.024e6;
    }
    assert_int_equal(choose_of_nine(&c, 8, frame(9)), 2);
}

/* ---- In the background ---- */

static void the_background_waits_for_all_who_hear(void **state)
{
    enum { MOST = 8 };
    struct schedule_clock c = line(0.0625, 0); /* too long for two lanes at once */
    struct schedule_speech s[MOST + 1];
    (void)state;
    for (int n_heard = 6; n_heard <= MOST; n_heard++) {
        for (int i = 0; i < n_heard; i++) {
            s[i] = frame(i == 0 ? 8.625 : 8.75);
        }
        s[n_heard] = aside(8);
        s[n_heard].prompt = s[n_heard].whole = 1;
        /* Of 625 ms four fifths are for steps: seven of them, and one for it. */
        assert_int_equal(schedule_choose(s, n_heard + 1, 8, &c), n_heard <= 7 ? 2 : 1);
        assert_int_equal(s[n_heard].chosen, n_heard <= 7);
        s[0].can_step = false; /* who does not step needs nothing */
        assert_int_equal(schedule_choose(s, n_heard + 1, 8, &c), 2);
    }
    /* All who hear in one step, and a tenth of it for the background. */
    c = line(1.0 / 128, 1.0 / 4096);
    for (int late = 0; late < 2; late++) {
        const double enough_s = (2.0 / 128 + 11.0 / 4096) / 0.8 + (late ? -0.0001 : 0.0001);
        for (int i = 0; i < 6; i++) {
            s[i] = frame(8 + enough_s);
        }
        s[6] = aside(8);
        assert_int_equal(schedule_choose(s, 7, 8, &c), late ? 6 : 7);
    }
}

static void the_background_lengthens_no_step_that_matters(void **state)
{
    struct schedule_clock c = line(0.001, 0.001);
    (void)state;
    EXPECT_CHOSEN("1", 8, &c, frame(8.5), aside(8), none); /* a tenth at most */
    EXPECT_CHOSEN("123", 8, &c, frame(8.625), aside(8), aside(8));
    c = line(0.002, 0.002); /* four milliseconds in all */
    EXPECT_CHOSEN("12", 8, &c, frame(8.625), aside(8), aside(8));
    EXPECT_CHOSEN("12", 8, &c, aside(8), aside(8), aside(8));
    c = line(0.01, 0.01); /* where nobody hears one goes whatever it takes */
    EXPECT_CHOSEN("1", 8, &c, aside(8), aside(8), none);
    EXPECT_CHOSEN("1", 8, &c, frame(8.625), aside(8), none);
    c.prompt_s = 0.001;
    struct schedule_speech reads = aside(8);
    reads.prompt = reads.whole = 50;
    EXPECT_CHOSEN("12", 8, &c, frame(8.625), reads, reads); /* a prompt, and one alone */
    EXPECT_CHOSEN("1", 8, &c, frame(8.5), reads, reads);
    EXPECT_CHOSEN("1", 8, &c, prompt(8, 9), aside(8), none); /* somebody waits for a first sound */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_is_counted_once),
        cmocka_unit_test(a_prompt_that_costs_more_tells_more),
        cmocka_unit_test(a_step_is_foretold_by_the_line_and_its_own),
        cmocka_unit_test(lanes_are_promised_as_far_as_they_pay),
        cmocka_unit_test(of_two_alike_the_first_goes),
        cmocka_unit_test(only_those_that_there_are_step),
        cmocka_unit_test(a_frame_or_a_prompt_goes_first),
        cmocka_unit_test(who_has_waited_goes_before_who_is_short),
        cmocka_unit_test(a_step_takes_so_long_at_most),
        cmocka_unit_test(a_step_is_short_where_somebody_may_come),
        cmocka_unit_test(the_background_waits_for_all_who_hear),
        cmocka_unit_test(the_background_lengthens_no_step_that_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
