/* SPDX-License-Identifier: Apache-2.0
 * Voices that servers share, as one of them sees it: when it looks, what becomes of what has changed, and what is told
 * when the store is away. The mirror of the store, the thread that waits for it and the clock are the test's. */
#include "tests/server/happened.h"
#include "tests/server/posed_clock.h"
#include "tests/server/posed_voices.h"

#include <event2/event.h>

#include "base/error.h"
#include "server/loop/jobs.h"
#include "store/mirror.h"

static void wait_for(double seconds)
{
    now_s += seconds;
    event_base_loop(s.base, EVLOOP_NONBLOCK);
}

/* ---- The thread ---- */

enum { MOST_JOBS = 4 };
static struct job *waiting[MOST_JOBS];
static int n_waiting;
static bool has_no_thread;

struct jobs *jobs_new(struct event_base *base, int n_threads)
{
    assert_true(base == s.base && n_threads == 1); /* one after the other */
    return has_no_thread ? NULL : (struct jobs *)waiting;
}

bool jobs_submit(struct jobs *jobs, struct job *job)
{
    assert_ptr_equal(jobs, waiting);
    if (n_waiting < MOST_JOBS) {
        waiting[n_waiting++] = job;
        return true;
    }
    return false;
}

static void work(void)
{
    while (n_waiting > 0) {
        struct job *job = waiting[0];
        memmove(waiting, waiting + 1, (size_t)--n_waiting * sizeof *waiting);
        job->run(job);
        job->done(job);
    }
}

void jobs_free(struct jobs *jobs)
{
    assert_true(!jobs || jobs == (struct jobs *)waiting);
    work();
}

/* ---- The mirror ---- */

static struct posed_mirror {
    utter_status answers;         /* with `why` */
    const char *why, *changed[8]; /* changed: what a look finds, up to NULL */
    bool opens, ends;             /* ends: what is waited for is not waited for any longer */
    double takes_s;               /* a look */
    bool (*stop)(void);
} mirror;

utter_status mirror_open(
    struct mirror **m, const char *url, const char *option, const char *cache, utter_error *error)
{
    *m = NULL;
    note("open %s %s %s|", url, option, cache);
    if (!mirror.opens) {
        return error_set(error, UTTER_E_ARGUMENT, "no such store");
    }
    *m = (struct mirror *)&mirror;
    return UTTER_OK;
}

void mirror_close(struct mirror *m)
{
    note(m ? "close|" : "");
}

const char *mirror_folder(const struct mirror *m)
{
    assert_ptr_equal(m, &mirror);
    return folder;
}

void mirror_stop_by(struct mirror *m, bool (*stop)(void))
{
    assert_ptr_equal(m, &mirror);
    mirror.stop = stop;
}

static utter_status answer(utter_error *error)
{
    if (mirror.stop()) {
        return error_set(error, UTTER_E_CANCELLED, "ended");
    }
    *error = (utter_error){.text = ""};
    snprintf(error->text, sizeof error->text, "%s", mirror.why);
    return mirror.answers;
}

utter_status mirror_look(struct mirror *m, mirror_changed_fn *changed, void *user, utter_error *error)
{
    assert_ptr_equal(m, &mirror);
    note("look|");
    now_s += mirror.takes_s;
    for (int i = 0; mirror.changed[i]; i++) {
        changed(user, mirror.changed[i]);
    }
    return answer(error);
}

utter_status mirror_put(struct mirror *m, const char *from, const char *stem, utter_error *error)
{
    assert_ptr_equal(m, &mirror);
    assert_string_equal(from, s.voices->temporary);
    note("put %s|", stem);
    utter_status status = answer(error);
    if (status == UTTER_OK) { /* it comes here, from there */
        char file[100];
        snprintf(file, sizeof file, "%s.voice", stem);
        put_voice(file, "Ann", WIDTH, NULL);
    }
    return status;
}

utter_status mirror_drop(struct mirror *m, const char *stem, utter_error *error)
{
    char file[100];
    assert_ptr_equal(m, &mirror);
    note("drop %s|", stem);
    utter_status status = answer(error);
    snprintf(file, sizeof file, "%s.voice", stem);
    return status ? status : unlink(path_of(file)) ? UTTER_E_FILE : UTTER_OK;
}

/* Of voices: told_read asks for it. */
utter_status mirror_hash(char hash[MIRROR_HASH], uint64_t *bytes, const char *path, utter_error *error)
{
    (void)path, (void)error;
    *bytes = 1;
    snprintf(hash, MIRROR_HASH, "%064d", 7);
    return UTTER_OK;
}

/* ---- The log, which is standard error ---- */

static int log_ends[2], kept_error;

/* "event what|..." since it was asked last; what is no event stands as it is. */
static const char *logged(void)
{
    static char all[2000];
    char text[4000], *rest = text, *line;
    ssize_t n = read(log_ends[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    all[0] = 0;
    while ((line = strsep(&rest, "\n")) && *line) {
        json_t *event = json_loads(line, 0, NULL);
        const char *name = json_string_value(json_object_get(event, "event")),
                   *error = json_string_value(json_object_get(event, "error")),
                   *file = json_string_value(json_object_get(event, "file"));
        const char *voice = json_string_value(json_object_get(event, "name"));
        sprintf(all + strlen(all), "%s%s%s|", name ? name : line, error || file || voice ? " " : "",
            error   ? error
            : file  ? file
            : voice ? voice
                    : "");
        json_decref(event);
    }
    return all;
}

/* ---- The server ---- */

static const char URL[] = "s3://bucket/prefix";

static void begin_store(void)
{
    kept_error = dup(STDERR_FILENO);
    assert_true(pipe2(log_ends, O_NONBLOCK | O_CLOEXEC) == 0 && dup2(log_ends[1], STDERR_FILENO) >= 0);
    options = (struct serve_options){.voices = URL, .cache = "CACHE", .model = ""};
    s = (struct server){.options = &options, .was_ready = true, .base = event_base_new()};
    s.ready = (struct wire_ready){.kind_name = "base", .width = WIDTH};
    now_s = 2000;
    n_waiting = 0;
    happened[0] = 0;
}

static void end_store(void)
{
    voices_close(&s);
    event_base_free(s.base);
    assert_true(dup2(kept_error, STDERR_FILENO) >= 0);
    close(kept_error), close(log_ends[0]), close(log_ends[1]);
    empty(folder);
}

/* With a store that answers so to the first look. */
static void open_store(utter_status answers, const char *why)
{
    begin_store();
    mirror = (struct posed_mirror){.opens = true, .answers = answers, .why = why};
    assert_true(voices_open(&s));
    assert_string_equal(s.voice_folders[0], folder);
    EXPECT("open s3://bucket/prefix --voices CACHE|look|");
}

static void a_store_must_be_right(void **state)
{
    static const char nowhere[] = "utter: --voices s3://bucket/prefix: where is the copy to be? (set "
                                  "HOME or XDG_CACHE_HOME)|";
    (void)state;
    begin_store();
    options.cache = NULL;
    assert_false(voices_open(&s));
    assert_string_equal(logged(), nowhere);
    EXPECT("");
    end_store();
    begin_store();
    mirror = (struct posed_mirror){.opens = false};
    assert_false(voices_open(&s));
    assert_string_equal(logged(), "utter: no such store|");
    end_store();
    EXPECT("open s3://bucket/prefix --voices CACHE|");
    begin_store();
    mirror = (struct posed_mirror){.opens = true, .why = ""};
    has_no_thread = true;
    assert_false(voices_open(&s));
    has_no_thread = false;
    assert_string_equal(logged(), "utter: --voices s3://bucket/prefix: the server cannot start|");
    end_store();
    EXPECT("open s3://bucket/prefix --voices CACHE|look|close|");
}

/* Workers have the environment of the server, and read what strangers send. */
static void secrets_leave_the_environment(void **state)
{
    static const char *const names[] = {
        "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        setenv(names[i], "x", true);
    }
    open_store(UTTER_OK, "");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(getenv(names[i]) != NULL, i == 2);
    }
    end_store();
    EXPECT("close|");
}

static void expect_one(const char *name, bool there, int status)
{
    const struct fields fields = {.voice = name};
    struct voices_found found;
    refusal = (struct refusal){0};
    assert_int_equal(voices_find(&s, &fields, &found, &refusal), there);
    assert_int_equal(refusal.status, status);
    assert_int_equal(refusal.retry_ms, status == 503 ? 5000 : 0);
}

static void it_looks_every_five_seconds(void **state)
{
    (void)state;
    put_voice("ann.voice", "Ann", WIDTH, NULL);
    put_voice("bob.voice", "Bob", WIDTH, NULL);
    put_voice("dan.voice", "Dan", WIDTH, NULL);
    open_store(UTTER_OK, "");
    assert_string_equal(table(), "Ann of ann.voice, Bob of bob.voice, Dan of dan.voice, ");
    wait_for(4.875), work();
    EXPECT("");
    wait_for(0.125), work();
    EXPECT("look|");
    wait_for(4.875), work();
    EXPECT("");
    /* Voices have come, changed and gone; words of one have. */
    put_voice("ann.voice", "Amy", WIDTH, NULL);
    put_voice("cleo.0123456789abcde.voice", "Cleo", WIDTH, NULL);
    put("dan.0000000000000000.json", "{\"consent\":\"yes\"}");
    assert_int_equal(unlink(path_of("bob.voice")), 0);
    mirror.changed[0] = "ann.voice", mirror.changed[1] = "bob.voice";
    mirror.changed[2] = "cleo.0123456789abcde.json", mirror.changed[3] = "dan.0000000000000000.json";
    wait_for(0.125);
    assert_string_equal(table(), "Ann of ann.voice, Bob of bob.voice, Dan of dan.voice, ");
    work();
    EXPECT("look|");
    assert_string_equal(
        table(), "Amy of ann.voice, Cleo of cleo.0123456789abcde.voice, Dan of dan.voice, ");
    json_t *dan = voices_one(&s, "Dan");
    assert_string_equal(json_string_value(json_object_get(dan, "consent")), "yes");
    json_decref(dan);
    mirror.changed[0] = "dan.json", mirror.changed[1] = NULL;
    put_voice("dan.voice", "Don", WIDTH, NULL);
    for (int i = 0; i < MOST_JOBS; i++) { /* a look that cannot be asked for comes later */
        voices_store_drop(&s, path_of("x.voice"), NULL, NULL);
    }
    wait_for(5), work();
    EXPECT("drop x|drop x|drop x|drop x|");
    wait_for(4.875), work();
    EXPECT("");
    wait_for(0.125), work();
    EXPECT("look|");
    assert_string_equal(
        table(), "Amy of ann.voice, Cleo of cleo.0123456789abcde.voice, Don of dan.voice, ");
    end_store();
}

static void a_store_that_is_away_is_told_once(void **state)
{
    (void)state;
    put_voice("ann.voice", "Ann", WIDTH, NULL); /* of the last time */
    open_store(UTTER_E_IO, "no answer");
    assert_string_equal(logged(), "voices_store_away no answer|");
    expect_one("Ann", true, 0);
    expect_one("Bob", false, 503);
    wait_for(5), work();
    EXPECT("look|");
    assert_string_equal(logged(), "");
    mirror.answers = UTTER_E_CANCELLED; /* says nothing of the store */
    wait_for(5), work();
    expect_one("Bob", false, 503);
    mirror.answers = UTTER_OK, mirror.why = "";
    wait_for(5), work();
    assert_string_equal(logged(), "voices_store_back|");
    expect_one("Bob", false, 400);
    wait_for(5), work();
    assert_string_equal(logged(), "");
    /* What cannot come is told when it is another one than before. */
    static const char *const left_out[] = {
        "a is too large", "a is too large", "b is too large", "", "b is too large"};
    for (int i = 0; i < 5; i++) {
        char expected[60] = "";
        if (i != 1 && i != 3) {
            snprintf(expected, sizeof expected, "voices_store_left_out %s|", left_out[i]);
        }
        mirror.why = left_out[i];
        wait_for(5), work();
        assert_string_equal(logged(), expected);
    }
    mirror.answers = UTTER_E_IO, mirror.why = "no answer";
    wait_for(5), work();
    assert_string_equal(logged(), "voices_store_away no answer|");
    end_store();
}

/* The server is to start: what the first look does not bring in three seconds comes behind. */
static void the_first_look_does_not_last_long(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        begin_store();
        mirror = (struct posed_mirror){
            .opens = true, .why = "one is too large", .takes_s = late ? 4 : 3.875};
        assert_true(voices_open(&s));
        EXPECT("open s3://bucket/prefix --voices CACHE|look|");
        assert_string_equal(logged(), late ? "voices_store_away not all voices have come within 3 s|"
                                           : "voices_store_left_out one is too large|");
        mirror.takes_s = 0, mirror.why = "";
        wait_for(0), work();
        EXPECT(late ? "look|" : "");
        assert_string_equal(logged(), late ? "voices_store_back|" : "");
        end_store();
    }
}

/* ---- Voices that are put there, and that go ---- */

static void on_done(void *user, json_t *voice, const char *file, const struct refusal *r)
{
    assert_ptr_equal(user, happened);
    note("done %s %s %s|",
        json_is_null(voice) ? "null"
        : voice             ? "voice"
                            : "-",
        file ? strrchr(file, '/') + 1 : "-", r ? r->message : "-");
    assert_true(!r || r->status == 503);
    assert_int_equal(r ? r->retry_ms : 0, r && strstr(r->message, "be reached") ? 5000 : 0);
    json_decref(voice);
}

/* As a process has made it, with what was said of it: the voice on its way. */
static const char *make_voice(const char *stem)
{
    static char path[400];
    char told[400];
    utter_voice *voice = voice_of("Ann", WIDTH, NULL);
    snprintf(path, sizeof path, "%s/%s.voice", s.voices->temporary, stem);
    snprintf(told, sizeof told, "%s/%s.json", s.voices->temporary, stem);
    assert_int_equal(utter_voice_save(voice, path, NULL), UTTER_OK);
    utter_voice_free(&voice);
    FILE *file = fopen(told, "w");
    assert_true(file && fclose(file) == 0);
    return path;
}

/* Nothing of it is left on its way. */
static void expect_none_left(void)
{
    DIR *d = opendir(s.voices->temporary);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        assert_true(strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
    }
    closedir(d);
}

static void a_voice_goes_there_and_comes_back(void **state)
{
    (void)state;
    put_voice("before.voice", "Ann", WIDTH, NULL);
    open_store(UTTER_OK, "");
    const char *made = make_voice("ann-0");
    voices_store_put(&s, made, on_done, happened);
    assert_true(voices_store_is_putting(&s, made));
    assert_false(voices_store_is_putting(&s, path_of("ann-0.voice")));
    EXPECT("");
    work(); /* the voice that had the name goes behind it */
    EXPECT("put ann-0|done voice ann-0.voice -|drop before|");
    assert_string_equal(table(), "Ann of ann-0.voice, ");
    assert_string_equal(logged(), "voice_made Ann|voice_deleted before.voice|");
    assert_false(voices_store_is_putting(&s, made));
    expect_none_left();
    mirror.answers = UTTER_E_IO, mirror.why = "no answer";
    voices_store_put(&s, make_voice("ann-1"), on_done, happened);
    work();
    EXPECT("put ann-1|done - - the voice cannot be kept, since the store of voices cannot be reached "
           "now (later it may be better)|");
    assert_string_equal(logged(), "voices_store_away no answer|");
    expect_none_left();
    for (int i = 0; i < MOST_JOBS; i++) {
        voices_store_drop(&s, path_of("x.voice"), NULL, NULL);
    }
    voices_store_put(&s, make_voice("ann-2"), on_done, happened);
    EXPECT("done - - too many voices are on their way|");
    expect_none_left();
    end_store();
    EXPECT("drop x|drop x|drop x|drop x|close|");
}

static void a_voice_goes_from_there(void **state)
{
    (void)state;
    put_voice("1.voice", "Ann", WIDTH, NULL);
    put_voice("2.voice", "Bob", WIDTH, NULL);
    open_store(UTTER_E_IO, "no answer");
    assert_true(voices_delete(&s, "Ann", NULL, on_done, happened, &refusal));
    assert_false(voices_store_is_putting(&s, path_of("1.voice")));
    work();
    EXPECT("drop 1|done - - the voice cannot be removed, since the store of voices cannot be reached "
           "now (later it may be better)|");
    assert_string_equal(table(), "Bob of 2.voice, Ann of 1.voice, ");
    mirror.answers = UTTER_OK, mirror.why = "";
    assert_true(voices_delete(&s, "Ann", NULL, on_done, happened, &refusal));
    work();
    EXPECT("drop 1|done null - -|");
    assert_string_equal(table(), "Bob of 2.voice, ");
    assert_string_equal(
        logged(), "voices_store_away no answer|voices_store_back|voice_deleted 1.voice|");
    /* Somebody has left, who asked for something or not. */
    assert_true(voices_delete(&s, "Bob", NULL, on_done, happened, &refusal));
    voices_abandon(&s, &s);
    work();
    EXPECT("drop 2|done null - -|");
    voices_store_put(&s, make_voice("ann-0"), on_done, happened);
    voices_store_drop(&s, path_of("2.voice"), on_done, happened);
    voices_abandon(&s, happened);
    work();
    EXPECT("put ann-0|drop 2|");
    assert_string_equal(table(), "Ann of ann-0.voice, ");
    end_store();
}

/* The server ends: what is on its way has its moment, and says nothing of the store. */
static void the_end_does_not_wait(void **state)
{
    (void)state;
    open_store(UTTER_OK, "");
    voices_store_put(&s, make_voice("ann-0"), NULL, NULL);
    wait_for(5);
    voices_close(&s);
    EXPECT("put ann-0|look|close|");
    assert_string_equal(logged(), "");
    end_store();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_must_be_right),
        cmocka_unit_test(secrets_leave_the_environment),
        cmocka_unit_test(it_looks_every_five_seconds),
        cmocka_unit_test(a_store_that_is_away_is_told_once),
        cmocka_unit_test(the_first_look_does_not_last_long),
        cmocka_unit_test(a_voice_goes_there_and_comes_back),
        cmocka_unit_test(a_voice_goes_from_there),
        cmocka_unit_test(the_end_does_not_wait),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
