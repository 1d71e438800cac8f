/* SPDX-License-Identifier: Apache-2.0
 * How a speech ends: what who asked is told and what is counted of it, at which times, and what its worker is told.
 */
#include "tests/server/posed_speech.h"

#include "server/loop/jobs.h"

/* ---- The encoder's thread, which is the test: work is done at once, or kept until it says so ---- */

static bool keeps;
static struct job *kept;

struct jobs *jobs_new(struct event_base *base, int n_threads)
{
    (void)base, (void)n_threads;
    return NULL;
}

void jobs_free(struct jobs *jobs)
{
    (void)jobs;
}

bool jobs_submit(struct jobs *jobs, struct job *job)
{
    (void)jobs;
    assert_null(kept);
    kept = keeps ? job : NULL;
    return keeps;
}

static void work(void)
{
    struct job *job = kept;
    kept = NULL;
    job->run(job);
    job->done(job);
}

static uint64_t count(const struct histogram *h)
{
    uint64_t n = 0;
    for (int i = 0; i <= METRICS_BUCKETS; i++) {
        n += h->counts[i];
    }
    return n;
}

/* ---- Who asked goes ---- */

static void who_goes_is_counted_by_where_it_was(void **state)
{
    struct asker all[4];
    (void)state;
    begin_speeches(1);
    links[0].lanes = 3;
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"first", "streams", "held", "waits"};
        assert_true(ask_as(&all[i], names[i], &plain, i == 3, NULL));
        say(&all[i], "Hi");
    }
    hear_sound(&links[0], 2, 0.5);
    hear_sound(&links[0], 3, 0.5);
    speech_hold(all[2].speech, true);
    assert_true(s.n_running == 3 && s.n_queued == 1);
    told(&links[0]);
    now_s += 2;
    for (int i = 3; i >= 0; i--) {
        static const enum metrics_stage stages[] = {
            METRICS_FIRST, METRICS_STREAMING, METRICS_PAUSED, METRICS_QUEUED};
        speech_cancel(all[i].speech);
        assert_int_equal(s.metrics.cancelled[stages[i]], 1);
        assert_int_equal(s.metrics.requests[METRICS_SPEECH][METRICS_CANCELLED], 4 - i);
    }
    speech_cancel(NULL);
    assert_true(
        s.n_running == 3 && s.n_queued == 0); /* a lane is kept until the worker has let it go */
    assert_true(count(&s.metrics.cancel_to_free) == 1 && s.metrics.cancel_to_free.sum == 0);
    assert_string_equal(told(&links[0]), "cancel 3|cancel 2|cancel 1|");
    now_s += 0.125;
    hear_sound(&links[0], 2, 0.5); /* was on its way */
    hear_odd(&links[0], 3, WIRE_FREED, false);
    assert_true(s.n_running == 2 && s.metrics.cancel_to_free.sum == 0.125);
    hear_done(&links[0], 2, UTTER_FINISH_EOS, 9); /* it was quicker */
    hear_failed(&links[0], 1, UTTER_E_NUMBER, "what");
    hear_failed(&links[0], 1, UTTER_E_NUMBER, "again"); /* of nobody */
    assert_true(s.n_running == 0 && links[0].n_running == 0);
    assert_int_equal(count(&s.metrics.cancel_to_free), 4);
    EXPECT("streams: 8000 bytes|held: 8000 bytes|");
    assert_true(links[0].audio_s == 1 && s.admission.speech_s == 4);
    assert_int_equal(s.metrics.requests[METRICS_SPEECH][METRICS_OK], 0);
    end_speeches(NULL, 0);
}

/* ---- Its worker has said all ---- */

static void a_speech_that_is_whole_is_counted(void **state)
{
    const struct fields quick = {.sound = {ENCODE_PCM, 2, 1, 0}};
    struct asker a;
    (void)state;
    for (int finish = UTTER_FINISH_EOS; finish <= UTTER_FINISH_MAX_FRAMES; finish++) {
        begin_speeches(1);
        options.paced = finish == UTTER_FINISH_EOS;
        assert_true(ask_as(&a, "a", &quick, false, NULL));
        now_s += 0.25;
        say(&a, "four");
        now_s += 0.5;
        hear_sound(&links[0], 1, 2);
        assert_true(a.speech->first_samples == now_s && speech_seconds(a.speech) == 1);
        assert_int_equal(speech_rate(a.speech), RATE);
        now_s += 0.25;
        hear_sound(&links[0], 1, 2);
        assert_true(speech_seconds(a.speech) == 2 && a.speech->heard_until == BEGAN + 2.75);
        assert_true(a.speech->moved_at == now_s && links[0].audio_s == 2);
        now_s += 1;
        hear_done(&links[0], 1, (enum utter_finish)finish, 5);
        assert_non_null(strstr(happened, "a: good 2 s|"));
        assert_true(a.end.finish == (enum utter_finish)finish && a.end.n_frames == 5);
        assert_true(a.end.n_text_tokens == 7 && a.end.model.n_pieces == 1);
        assert_true(a.end.queue_s == 0.25 && a.end.total_s == 2 && a.end.audio_s == 2);
        assert_true(a.end.first_s >= 0.75 && s.metrics.ttfa.sum == a.end.first_s);
        assert_true(s.metrics.total.sum == 2 && s.metrics.audio_s == 2);
        assert_true(count(&s.metrics.ttfa) == 1 && count(&s.metrics.queue_wait) == 1);
        /* Of a speech that was cut it is not known how long it would have been. */
        const bool learns = finish == UTTER_FINISH_EOS;
        assert_true(fabs(s.admission.speech_s - (learns ? 3.8 : 4)) < 1e-9);
        assert_int_equal(s.admission.seconds_a_byte > 0.1, learns);
        assert_int_equal(s.metrics.requests[METRICS_SPEECH][METRICS_OK], 1);
        assert_true(s.n_running == 0 && links[0].n_running == 0);
        end_speeches(&a, 1);
    }
}

static void the_samples_that_left_are_told(void **state)
{
    struct asker a;
    (void)state;
    begin_speeches(1);
    ask_for(&a, "a", "Hi");
    hear_sound(&links[0], 1, 0.25);
    hear_sound(&links[0], 1, 0.5);
    hear_done(&links[0], 1, UTTER_FINISH_EOS, 1);
    EXPECT("a: 4000 bytes|a: 8000 bytes|a: good 0.75 s|");
    assert_int_equal(a.end.n_samples, 3 * RATE / 4);
    end_speeches(&a, 1);
}

/* How long a listener had nothing to hear, at worst: not before the first sound, not while the client did not read, and
 * only where it is heard as it is made. */
static void pauses_are_measured(void **state)
{
    const struct fields whole = {.sound = {ENCODE_PCM, 1, 1, 0}, .streaming = FIELDS_WHOLE};
    struct asker a;
    (void)state;
    for (int live = 0; live < 2; live++) {
        begin_speeches(1);
        assert_true(ask_as(&a, "a", live ? &plain : &whole, false, NULL));
        say(&a, "Hi");
        now_s += 3;
        hear_sound(&links[0], 1, 0.5);
        now_s += 0.75;
        hear_sound(&links[0], 1, 0.5); /* a quarter of a second too late */
        now_s += 0.625;
        hear_sound(&links[0], 1, 2); /* an eighth */
        now_s += 1;
        hear_sound(&links[0], 1, 0.5); /* in time */
        assert_true(a.speech->end.worst_gap_s == (live ? 0.25 : 0));
        speech_hold(a.speech, true);
        now_s += 9;
        hear_sound(&links[0], 1, 0.5);
        speech_hold(a.speech, false);
        hear_done(&links[0], 1, UTTER_FINISH_EOS, 1);
        assert_true(a.end.worst_gap_s == (live ? 0.25 : 0));
        assert_true(s.metrics.underrun.sum == a.end.worst_gap_s && count(&s.metrics.underrun) == 1);
        end_speeches(&a, 1);
    }
}

static void what_its_worker_cannot_make_is_told(void **state)
{
    static const struct {
        utter_status status;
        const char *told;
    } cases[] = {{UTTER_E_ARGUMENT, "a: 400 why|"}, {UTTER_E_MODEL, "a: 400 why|"},
        {UTTER_E_MEMORY, "a: 503 why|"}, {UTTER_E_FILE, "a: 500 why|"}, {UTTER_E_DEVICE, "a: 500 why|"},
        {UTTER_E_INTERNAL, "a: 500 why|"}};
    struct asker a;
    (void)state;
    begin_speeches(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ask_for(&a, "a", "Hi");
        hear_failed(&links[0], a.speech->id, cases[i].status, "why");
        EXPECT(cases[i].told);
        assert_int_equal(s.metrics.requests[METRICS_SPEECH][METRICS_ERROR], i + 1);
        assert_int_equal(s.n_running, 0);
    }
    ask_for(&a, "a", "Hi");
    hear_odd(&links[0], a.speech->id, WIRE_FAILED, false);
    EXPECT("a: 500 the worker failed|");
    ask_for(&a, "a", "Hi");
    hear_odd(&links[0], a.speech->id, WIRE_DONE, true);
    EXPECT("a: 500 the worker sent what is no message|");
    ask_for(&a, "a", "Hi");
    hear_done(&links[0], a.speech->id, UTTER_FINISH_EOS, 0);
    EXPECT("a: 500 the model ended the speech before its first sound (another seed may help)|");
    assert_true(s.admission.speech_s == 4 && s.metrics.audio_s == 0);
    end_speeches(&a, 1);
}

/* ---- While the encoder is at work ---- */

/* More than half a MiB of samples waits for it: the model makes no more. */
static void who_has_too_much_to_encode_is_paused(void **state)
{
    const struct fields mp3 = {.sound = {ENCODE_MP3, 1, 1, 0}};
    struct asker a;
    (void)state;
    begin_speeches(1);
    keeps = true;
    assert_true(ask_as(&a, "a", &mp3, false, NULL));
    say(&a, "Hi");
    hear_sound(&links[0], 1, 4); /* is at work */
    told(&links[0]);
    for (int i = 0; i < 4; i++) {
        hear_sound(&links[0], 1, 4);
    }
    hear_sound(&links[0], 1, 0.384);
    assert_int_equal(a.speech->samples.n, 512 << 10);
    assert_string_equal(told(&links[0]), "");
    hear_sound(&links[0], 1, 0.25);
    hear_sound(&links[0], 1, 0.25);
    assert_string_equal(told(&links[0]), "pause 1|");
    speech_hold(a.speech, true); /* one of two reasons */
    work();
    assert_string_equal(told(&links[0]), "");
    speech_hold(a.speech, false);
    assert_string_equal(told(&links[0]), "resume 1|");
    hear_done(&links[0], 1, UTTER_FINISH_EOS, 1);
    assert_true(kept && a.speech && s.n_running == 0); /* it is not whole yet */
    work();
    work();
    assert_true(a.end.good && !kept && a.end.n_samples == a.end.audio_s * RATE);
    end_speeches(&a, 1);
    keeps = false;
}

static void what_the_encoder_cannot_make_is_told(void **state)
{
    static const char *const told_then[] = {
        "a: 500 the encoder failed|", "a: 503 out of memory|", "a: 503 out of memory|", ""};
    const struct fields mp3 = {.sound = {ENCODE_MP3, 1, 1, 0}};
    struct asker a;
    (void)state;
    for (int i = 0; i < 4; i++) {
        begin_speeches(1);
        keeps = true;
        assert_true(ask_as(&a, "a", &mp3, false, NULL));
        say(&a, "Hi");
        hear_sound(&links[0], 1, 4);
        told(&links[0]);
        struct speech *p = a.speech;
        if (i == 2) { /* no memory for what came meanwhile */
            p->samples.failed = true;
            hear_sound(&links[0], 1, 0.25);
            EXPECT(told_then[i]);
        } else if (i == 3) {
            speech_cancel(p);
            a.speech = NULL;
        }
        struct job *job = kept;
        kept = NULL;
        job->run(job);
        p->job_failed = i == 0;
        p->job_out.failed = i == 1;
        job->done(job); /* behind one that is not wanted any more */
        EXPECT(i < 2 ? told_then[i] : "");
        assert_string_equal(told(&links[0]), "cancel 1|");
        assert_true(s.n_running == 1 && s.metrics.ttfa.sum == 0);
        hear_odd(&links[0], 1, WIRE_FREED, false);
        assert_int_equal(s.n_running, 0);
        end_speeches(&a, 1);
        keeps = false;
    }
}

/* ---- Words ---- */

static void words_are_told_at_the_times_of_the_sound(void **state)
{
    const struct fields asked = {.sound = {ENCODE_PCM, 2, 1, 0}, .words = true};
    const utter_word words[] = {{.at = 1, .bytes = 2, .start = RATE, .end = 3 * RATE, .final = true},
        {.at = 4, .bytes = 5, .start = 4 * RATE, .end = 8 * RATE, .skipped = true}};
    struct asker all[2];
    struct wire_out out = {0};
    (void)state;
    begin_speeches(1);
    assert_true(ask_as(&all[0], "a", &asked, false, NULL) && ask(&all[1], "deaf"));
    say(&all[0], "Hi"), say(&all[1], "Hi");
    for (uint32_t id = 1; id <= 2; id++) {
        wire_put_words(&out, id, 0, words, 2, false);
    }
    hear(&links[0], &out);
    EXPECT("a: words 1+2 0.5-1.5 4+5 2-4|");
    told(&links[0]);
    hear_odd(&links[0], 2, WIRE_WORDS, true); /* nobody looks at them */
    hear_odd(&links[0], 1, WIRE_WORDS, true);
    EXPECT("a: 500 the worker sent what is no message|");
    assert_string_equal(told(&links[0]), "cancel 1|");
    wire_put_words(&out, 1, 0, words, 2, false);
    hear(&links[0], &out);
    EXPECT("");
    end_speeches(all, 2);
}

/* ---- Who does not take its sound ---- */

static void who_takes_its_sound_too_slowly_is_ended(void **state)
{
    const struct fields ground = {.sound = {ENCODE_PCM, 1, 1, 0}, .background = true};
    struct asker all[4];
    (void)state;
    begin_speeches(2);
    s.n_links = 1;
    s.background.link = &links[1]; /* the worker for what nobody waits for */
    links[1].is_idle = true;
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"slow", "reads", "silent"};
        assert_true(ask(&all[i], names[i]));
        say(&all[i], "Hi");
    }
    assert_true(ask_as(&all[3], "ground", &ground, false, NULL));
    say(&all[3], "Hi");
    speech_send(all[3].speech, &links[1]);
    for (uint32_t id = 1; id <= 2; id++) {
        hear_sound(&links[0], id, 0.5);
    }
    now_s += 1;
    hear_sound(&links[1], 4, 0.5);
    speech_hold(all[0].speech, true), speech_hold(all[2].speech, true);
    speech_hold(all[3].speech, true);
    told(&links[0]), told(&links[1]);
    happened[0] = 0;
    speech_tick(&s, BEGAN + SLOW_S + 1);
    EXPECT("");
    speech_tick(&s, BEGAN + SLOW_S + 1.125);
    EXPECT("slow: 408 the sound is taken at less than half of the pace of hearing|");
    assert_string_equal(told(&links[0]), "cancel 1|");
    speech_tick(&s, BEGAN + 1 + SLOW_S + 1);
    EXPECT("");
    speech_tick(&s, BEGAN + 1 + SLOW_S + 1.125);
    EXPECT("ground: 408 the sound is taken at less than half of the pace of hearing|");
    assert_string_equal(told(&links[1]), "cancel 4|");
    assert_int_equal(s.metrics.dropped_stalled, 2);
    s.n_links = LINKS;
    end_speeches(all, 4);
}

/* ---- The server stops ---- */

static void who_is_left_is_told_that_the_server_stops(void **state)
{
    const struct fields ground = {.sound = {ENCODE_PCM, 1, 1, 0}, .background = true};
    struct asker all[6];
    (void)state;
    begin_speeches(2);
    s.n_links = 1;
    s.background.link = &links[1];
    links[1].is_idle = true;
    links[0].lanes = 2;
    for (int i = 0; i < 6; i++) {
        static const char *const names[] = {"runs", "gone", "waits", "too", "later", "ground"};
        assert_true(ask_as(&all[i], names[i], i < 4 ? &plain : &ground, i > 1, NULL));
        say(&all[i], "Hi");
    }
    speech_send(all[5].speech, &links[1]);
    speech_cancel(all[1].speech);
    all[1].speech = NULL;
    assert_true(s.n_running == 2 && s.n_queued == 2);
    assert_true(s.background.n_running == 1 && s.background.n_queued == 1);
    told(&links[0]), told(&links[1]);
    s.draining = true;
    speech_stop(&s);
    EXPECT(
        "waits: 503 the server stops|too: 503 the server stops|later: 503 the server stops|runs: 503 "
        "the server stops|ground: 503 the server stops|");
    assert_string_equal(told(&links[0]), "cancel 1|");
    assert_string_equal(told(&links[1]), "cancel 6|");
    assert_true(s.n_queued == 0 && s.background.n_queued == 0);
    s.n_links = LINKS;
    end_speeches(all, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_goes_is_counted_by_where_it_was),
        cmocka_unit_test(a_speech_that_is_whole_is_counted),
        cmocka_unit_test(the_samples_that_left_are_told),
        cmocka_unit_test(pauses_are_measured),
        cmocka_unit_test(what_its_worker_cannot_make_is_told),
        cmocka_unit_test(who_has_too_much_to_encode_is_paused),
        cmocka_unit_test(what_the_encoder_cannot_make_is_told),
        cmocka_unit_test(words_are_told_at_the_times_of_the_sound),
        cmocka_unit_test(who_takes_its_sound_too_slowly_is_ended),
        cmocka_unit_test(who_is_left_is_told_that_the_server_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
