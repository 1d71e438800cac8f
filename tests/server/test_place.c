/* SPDX-License-Identifier: Apache-2.0
 * Which worker a speech goes to, and the lists of devices. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "server/protocol/devices.h"
#include "server/speech/speech_parts.h"

enum { WORKERS = 3 };

struct house {
    struct serve_options options;
    struct server server;
    struct link links[WORKERS];
    struct speech_sink sink;
};

/* Three workers like each other, with nothing to do. */
static void build(struct house *h)
{
    memset(h, 0, sizeof *h);
    h->options = (struct serve_options){.paced = true, .queue = 8, .patience_ms = 300};
    h->server = (struct server){.options = &h->options, .links = h->links, .n_links = WORKERS};
    TAILQ_INIT(&h->server.queued);
    TAILQ_INIT(&h->server.background.queued);
    admission_begin(&h->server);
    for (int i = 0; i < WORKERS; i++) {
        h->links[i] = (struct link){.server = &h->server,
            .number = i,
            .is_ready = true,
            .lanes = 4,
            .heard = clock_seconds(),
            .beat = {.capacity = 4, .next_step_s = 0.010, .lane_s = 0.004, .prompt_s = 1e-4}};
        TAILQ_INIT(&h->links[i].running);
    }
}

static void let_in(struct house *h, struct speech *p, uint32_t id, uint64_t beginning)
{
    *p = (struct speech){.server = &h->server,
        .id = id,
        .sink = &h->sink,
        .beginning = beginning,
        .speed = 1,
        .text_bytes = 40,
        .text_ended = true};
    struct link *l = speech_place(p, clock_seconds());
    assert_non_null(l);
    p->link = l;
    speech_begins(p);
    TAILQ_INSERT_TAIL(&l->running, p, entry);
    l->n_running++;
}

/* Its prompt took so long, and it has been heard out. */
static void let_out(struct speech *p, double prefill_s)
{
    p->end.model = (struct wire_done){.n_pieces = 1, .prefill_s = prefill_s};
    TAILQ_REMOVE(&p->link->running, p, entry);
    p->link->n_running--;
    speech_began(p);
}

static void who_comes_goes_where_least_waits(void **state)
{
    struct house h;
    struct speech p[12];
    (void)state;
    build(&h);
    for (uint32_t i = 0; i < 12; i++) {
        let_in(&h, &p[i], i + 1, 7);
        int least = 99, most = 0;
        for (int k = 0; k < WORKERS; k++) {
            least = h.links[k].n_running < least ? h.links[k].n_running : least;
            most = h.links[k].n_running > most ? h.links[k].n_running : most;
        }
        assert_true(most - least <= 1);
    }
    struct speech late = p[11];
    late.id = 13;
    assert_null(speech_place(&late, clock_seconds()));
    assert_int_equal(speech_look(&h.server, false, clock_seconds()).n_free, 0);
}

static void a_slower_worker_gets_less(void **state)
{
    struct house h;
    struct speech p[6];
    (void)state;
    build(&h);
    h.links[0].beat.next_step_s = 0.1;
    for (uint32_t i = 0; i < 6; i++) {
        let_in(&h, &p[i], i + 1, 7);
    }
    assert_int_equal(h.links[0].n_running, 0);
    assert_int_equal(h.links[1].n_running + h.links[2].n_running, 6);
}

/* Clocks that differ by what nobody hears do not fill one of two. */
static void clocks_that_differ_a_little_share_alike(void **state)
{
    struct house h;
    struct speech p[9];
    (void)state;
    build(&h);
    for (int i = 0; i < WORKERS; i++) {
        h.links[i].beat = (struct wire_beat){
            .capacity = 4, .next_step_s = 0.010 + 0.001 * i, .lane_s = 0.0001, .prompt_s = 1e-6};
    }
    for (uint32_t i = 0; i < 9; i++) {
        let_in(&h, &p[i], i + 1, 7);
    }
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(h.links[i].n_running, 3);
    }
}

/* A clone whose recording one worker has read goes there, as long as that is sooner. */
static void who_was_there_goes_there_again(void **state)
{
    struct house h;
    struct speech p[4], other;
    (void)state;
    build(&h);
    let_in(&h, &other, 1, 1); /* so that the first worker is busy */
    assert_ptr_equal(other.link, &h.links[0]);
    let_in(&h, &p[0], 2, 42);
    struct link *knows = p[0].link;
    assert_true(knows == &h.links[1] && p[0].is_new);
    let_out(&p[0], 0.080);
    let_in(&h, &p[0], 3, 42);
    assert_true(p[0].link == knows && !p[0].is_new);
    let_out(&p[0], 0.010);
    for (uint32_t i = 0; i < 3;
         i++) { /* 70 ms are more than the steps and prompts of two who wait there */
        let_in(&h, &p[i], 4 + i, 42);
        assert_ptr_equal(p[i].link, knows);
    }
    let_out(&p[2], 0.010);
    let_out(&p[1], 0.010);
    let_out(&p[0], 0.010);
    speech_worker_ready(knows); /* a new one, which has read nothing */
    let_in(&h, &p[0], 9, 42);
    assert_true(p[0].is_new);
}

/* Nobody knows yet what it can make: its lanes count. */
static void a_capacity_that_is_not_known_is_all_lanes(void **state)
{
    struct house h;
    struct speech p[4];
    (void)state;
    build(&h);
    h.links[0].is_leaving = true;
    for (uint32_t i = 0; i < 4; i++) {
        h.links[2].beat = h.links[1].beat = (struct wire_beat){.capacity = 4};
        h.links[1].beat.capacity = 0;
        let_in(&h, &p[i], i + 1, 7);
    }
    assert_true(h.links[1].n_running == 2 && h.links[2].n_running == 2);
}

static void some_take_none(void **state)
{
    struct house h;
    struct speech p[3];
    (void)state;
    build(&h);
    h.links[0].is_leaving = true;
    h.links[1].heard -= 100;
    let_in(&h, &p[0], 1, 7);
    let_in(&h, &p[1], 2, 7);
    assert_int_equal(h.links[2].n_running, 2);
    assert_int_equal(speech_look(&h.server, false, clock_seconds()).n_free, 2);
    h.links[2].is_ready = false; /* then who is silent is all that is left */
    let_in(&h, &p[2], 3, 7);
    assert_int_equal(h.links[1].n_running, 1);
}

/* Who would have to wait for longer than the patience. */
static bool is_taken(struct house *h)
{
    struct refusal refusal;
    const struct admission_now now = speech_look(&h->server, false, clock_seconds());
    h->server.admission.crowded_since = 0;
    return admission_take(&h->server, false, &now, &refusal);
}

/* Beside one that is full, one that is out, or was lost, promises no more than one that leaves: nothing. */
static void who_is_not_there_promises_nothing(void **state)
{
    struct house h;
    struct speech p[4];
    (void)state;
    build(&h);
    for (int i = 0; i < WORKERS; i++) {
        h.links[i].lanes = 24; /* so many that a few seconds of speech would not wait for one of them */
        h.links[i].is_leaving = i > 0;
    }
    for (uint32_t i = 0; i < 4; i++) {
        let_in(&h, &p[i], i + 1, 7);
    }
    assert_false(is_taken(&h));
    assert_int_equal(links_capacity(&h.server), 4);
    assert_int_equal(links_lanes(&h.server), 72);
    for (int i = 1; i < WORKERS; i++) { /* as they are when they have left */
        h.links[i].is_leaving = h.links[i].is_ready = false;
        h.links[i].is_out = i == 1;
        h.links[i].beat = (struct wire_beat){0};
    }
    assert_false(is_taken(&h));
    assert_int_equal(links_lanes(&h.server), 48);
}

/* Of speeches that came at once none ends at once, however quickly they end in the mean: on a GPU whose 256 lanes were
 * filled in a second, who was taken then heard his first sound after another second. */
static void who_has_just_begun_frees_no_lane(void **state)
{
    enum { ALL = 4 * WORKERS };
    struct house h;
    struct speech p[ALL];
    (void)state;
    build(&h);
    h.server.admission.speech_s = 3.3;
    h.server.n_running = ALL;
    for (uint32_t i = 0; i < ALL; i++) {
        let_in(&h, &p[i], i + 1, 7);
    }
    assert_false(is_taken(&h));
    p[5].made_s = 2.7; /* of 2.86 */
    assert_true(is_taken(&h));
    p[5].paused = true; /* its listener does not take what there is */
    assert_false(is_taken(&h));
    p[5].paused = false;
    p[5].text_ended = false; /* of three seconds, as others */
    assert_false(is_taken(&h));
    p[5].text_ended = true;
    p[5].background = true; /* is no listener's, and gives its lane back at once */
    assert_false(is_taken(&h));
}

/* On a GPU whose lanes a burst had half filled, first sounds were promised in 300 ms and came after 500: frames of
 * those who hear had more of the time than prompts. */
static void a_crowd_waits_for_those_who_hear(void **state)
{
    enum { ALL = 64 + 16, LANES = 100 };
    struct house h;
    struct speech p[ALL];
    (void)state;
    build(&h);
    h.links[1].is_ready = h.links[2].is_ready = false;
    h.links[0].lanes = h.links[0].beat.capacity = LANES;
    h.links[0].beat.prompt_s = 0.14 / 16 / (32 + 40); /* all who wait: 140 ms */
    h.links[0].beat.lane_s = 0;
    for (uint32_t i = 0; i < ALL; i++) {
        let_in(&h, &p[i], i + 1, 7);
        p[i].first_samples = p[i].heard_until = i < 64 ? clock_seconds() : 0;
    }
    assert_false(is_taken(&h));
    for (int i = 0; i < 64; i++) {
        p[i].paused = true; /* takes no frames */
    }
    assert_true(is_taken(&h));
    h.links[0].beat.prompt_s *= 1.2; /* all who wait: 170 ms, and others come while they do */
    assert_false(is_taken(&h));
}

/* Where all that are ready leave, nobody is: who comes waits for a model, and is not told of lanes. */
static void who_only_leaves_is_not_ready(void **state)
{
    struct house h;
    (void)state;
    build(&h);
    for (int i = 0; i < WORKERS; i++) {
        h.links[i].is_leaving = true;
    }
    assert_int_equal(links_ready(&h.server), 0);
    assert_false(links_up(&h.server));
    assert_non_null(links_first(&h.server));
    h.links[2].is_leaving = false;
    assert_int_equal(links_ready(&h.server), 1);
    assert_true(links_up(&h.server));
}

/* One that makes sound more slowly than it is heard says "all lanes", since there is nothing to keep up with: that is
 * so where it is alone. */
static void who_falls_behind_takes_what_no_other_can(void **state)
{
    struct house h;
    struct speech p[13];
    (void)state;
    build(&h);
    h.links[0].lanes = h.links[0].beat.capacity = 24;
    h.links[0].beat.falls_behind = true;
    for (uint32_t i = 0; i < 8; i++) {
        let_in(&h, &p[i], i + 1, 7);
    }
    assert_int_equal(h.links[0].n_running, 0);
    assert_null(speech_place(&p[0], clock_seconds()));
    assert_false(is_taken(&h));
    assert_int_equal(links_capacity(&h.server), 8);
    h.links[1].heard = h.links[2].heard = 0; /* better than those that may hang */
    let_in(&h, &p[8], 9, 7);
    assert_ptr_equal(p[8].link, &h.links[0]);
    h.links[1].is_ready = h.links[2].is_ready = false;
    for (uint32_t i = 9; i < 13; i++) {
        let_in(&h, &p[i], i + 1, 7);
    }
    assert_int_equal(h.links[0].n_running, 5);
    assert_int_equal(links_capacity(&h.server), 24);
}

/* It takes longer for a speech than its listener to hear it: who is refused is told so. */
static void who_falls_behind_is_waited_for_longer(void **state)
{
    enum { LANES = 24 };
    struct house h;
    struct speech p[LANES];
    struct refusal refusal;
    (void)state;
    build(&h);
    h.server.ready.sample_rate = 24000;
    h.server.ready.frame_samples = 1920;
    h.links[0].lanes = h.links[0].beat.capacity = LANES;
    h.links[0].beat.falls_behind = true;
    h.links[1].is_ready = h.links[2].is_ready = false;
    for (uint32_t i = 0; i < LANES; i++) {
        let_in(&h, &p[i], i + 1, 7);
    }
    h.links[0].beat.n_open = LANES;
    h.links[0].beat.next_step_s = (LANES + 1) * 0.160; /* half as fast as it is heard */
    const struct admission_now now = speech_look(&h.server, false, clock_seconds());
    assert_false(admission_take(&h.server, false, &now, &refusal));
    const double speech_s = h.server.admission.speech_s;
    assert_in_range(refusal.retry_ms, (int)(1999 * speech_s), (int)(2001 * speech_s));
}

static void devices_are_listed(void **state)
{
    static const struct {
        const char *list;
        int n; /* 0: refused */
        const char *names[3];
    } cases[] = {{"auto", 1, {"auto"}}, {"cpu", 1, {"cpu"}}, {"cuda:1", 1, {"cuda:1"}},
        {"cuda:0,cuda:1", 2, {"cuda:0", "cuda:1"}}, {"cuda:all", 2, {"cuda:0", "cuda:1"}},
        {"cuda:all,cpu:3", 3, {"cuda:0", "cuda:1", "cpu:3"}},
        {"cpu:0-3,8-11,cpu:4-7,12", 2, {"cpu:0-3,8-11", "cpu:4-7,12"}}, {"", 0, {0}}, {"cpu,", 0, {0}},
        {",cpu", 0, {0}}, {"cpu,cpu", 0, {0}}, {"cuda:all,cuda:1", 0, {0}}, {"cpu:", 0, {0}},
        {"cpu:1-", 0, {0}}, {"cpu:2-1", 0, {0}}, {"cpu:0-1,cpu:1", 0, {0}}, {"cpu:4096", 0, {0}},
        {"cpu:99999999999999999999", 0, {0}}, {"a\"b", 0, {0}}, {"CPU", 0, {0}}};
    struct devices d;
    char why[128];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(devices_parse(&d, cases[i].list, 2, why, sizeof why), cases[i].n > 0);
        for (int k = 0; k < cases[i].n; k++) {
            assert_int_equal(d.n, cases[i].n);
            assert_string_equal(d.names[k], cases[i].names[k]);
        }
    }
    assert_false(devices_parse(&d, "cuda:all", 0, why, sizeof why));
    assert_non_null(strstr(why, "no GPU"));
    char many[1024] = "cpu:0";
    for (int i = 1; i <= DEVICES_MOST; i++) {
        assert_true(devices_parse(&d, many, 0, why, sizeof why) && d.n == i);
        size_t n = strlen(many);
        snprintf(many + n, sizeof many - n, ",cpu:%d", i);
    }
    assert_false(devices_parse(&d, many, 0, why, sizeof why));
}

/* What a container may use is shared by its sets; where there is enough, each thread has its core. */
static void sets_share_what_there_is(void **state)
{
    static const char *const names[] = {"cpu:0-11", "cuda:0", "cpu:12-15"};
    (void)state;
    assert_int_equal(devices_threads(names[0], names, 3, 8), 6);
    assert_int_equal(devices_threads(names[2], names, 3, 8), 2);
    assert_int_equal(devices_threads(names[2], names, 3, 1), 1);
    assert_int_equal(devices_threads(names[0], names, 3, 16), 0);
    assert_int_equal(devices_threads(names[1], names, 3, 8), 0);
}

static void sets_of_cores_are_read(void **state)
{
    struct devices_cores c;
    (void)state;
    assert_true(devices_cores(&c, "cpu:0-2,5,64-65"));
    assert_true(c.bits[0] == 0x27 && c.bits[1] == 3);
    assert_true(devices_cores(&c, "cpu:1-1") && c.bits[0] == 2);
    assert_false(devices_cores(&c, "cpu:1-0"));
    assert_false(devices_cores(&c, "cpu"));
    assert_false(devices_cores(&c, "cuda:0"));
    assert_false(devices_cores(&c, "cpu:0,"));
    assert_false(devices_cores(&c, "cpu:0;1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_goes_where_least_waits),
        cmocka_unit_test(a_slower_worker_gets_less),
        cmocka_unit_test(clocks_that_differ_a_little_share_alike),
        cmocka_unit_test(who_was_there_goes_there_again),
        cmocka_unit_test(a_capacity_that_is_not_known_is_all_lanes),
        cmocka_unit_test(some_take_none),
        cmocka_unit_test(who_is_not_there_promises_nothing),
        cmocka_unit_test(who_has_just_begun_frees_no_lane),
        cmocka_unit_test(a_crowd_waits_for_those_who_hear),
        cmocka_unit_test(who_only_leaves_is_not_ready),
        cmocka_unit_test(who_falls_behind_takes_what_no_other_can),
        cmocka_unit_test(who_falls_behind_is_waited_for_longer),
        cmocka_unit_test(devices_are_listed),
        cmocka_unit_test(sets_of_cores_are_read),
        cmocka_unit_test(sets_share_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
