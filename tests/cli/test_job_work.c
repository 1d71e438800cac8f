/* SPDX-License-Identifier: Apache-2.0
 * utter job work around a posed worker: what it is asked for, with which queue, results and speaker, and what is told
 * of it, on a posed clock. */
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "cli/speak/saying.h"
#include "cli/voice/voice_lookup.h"
#include "job/worker.h"
#include "tests/cli/typed.h"

#define MODEL "build/checkpoints/eos-first"
#define PLACES "--queue @queue --results @results "
#define WITH_MODEL " --device cpu --threads 1 -m " MODEL

/* ---- What is posed ---- */

static int64_t now_ns;
static struct queue_counts counts, later; /* at the begin, and behind it */
static int n_counted;                     /* how often that was asked */
static utter_status count_status, run_status, queue_status, results_status, speaker_status;
static int n_open; /* queues, results and speakers */
static struct worker_told told;
static const struct worker_settings *asked; /* while the worker runs */
static void (*during)(void);
static int n_runs;
static struct results results;
static struct speaker_model_settings by_model;
static struct speaker_server_settings by_server;
static int policy; /* -1: nobody has changed it */

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_nanosleep(const struct timespec *asked_for, struct timespec *left);
int __wrap_sched_setscheduler(pid_t process, int wanted, const struct sched_param *parameter);
utter_status __wrap_queue_open(
    struct queue **queue, const char *address, bool make, utter_error *error);
utter_status __wrap_results_open(
    struct results **made, const char *address, bool make, utter_error *error);
utter_status __wrap_speaker_model_open(
    struct speaker **speaker, const struct speaker_model_settings *settings, utter_error *error);
utter_status __wrap_speaker_server_open(
    struct speaker **speaker, const struct speaker_server_settings *settings, utter_error *error);
utter_status __wrap_worker_run(
    const struct worker_settings *settings, struct worker_told *out, utter_error *error);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){now_ns / 1000000000, now_ns % 1000000000};
    return 0;
}

int __wrap_nanosleep(const struct timespec *asked_for, struct timespec *left)
{
    assert_null(left);
    now_ns += asked_for->tv_sec * 1000000000 + asked_for->tv_nsec;
    return 0;
}

int __wrap_sched_setscheduler(pid_t process, int wanted, const struct sched_param *parameter)
{
    assert_true(process == 0 && parameter->sched_priority == 0);
    policy = wanted;
    return 0;
}

static utter_status posed_count(struct queue *queue, struct queue_counts *out, utter_error *error)
{
    assert_non_null(queue);
    *out = n_counted++ ? later : counts;
    if (count_status < 0) {
        snprintf(error->text, sizeof error->text, "no count");
    }
    return count_status;
}

static void close_queue(struct queue *queue)
{
    assert_non_null(queue);
    n_open--;
}

static void close_results(struct results *closed)
{
    assert_ptr_equal(closed, &results);
    n_open--;
}

static void close_speaker(struct speaker *speaker)
{
    assert_non_null(speaker);
    n_open--;
}

static utter_status opened(utter_status status, utter_error *error, const char *what)
{
    n_open += status == UTTER_OK;
    if (status) {
        snprintf(error->text, sizeof error->text, "no %s", what);
    }
    return status;
}

utter_status __wrap_queue_open(struct queue **queue, const char *address, bool make, utter_error *error)
{
    static const struct queue_calls calls = {.count = posed_count, .close = close_queue};
    static struct queue posed = {.calls = &calls};
    assert_string_equal(address, support_path("queue"));
    assert_false(make);
    *queue = queue_status ? NULL : &posed;
    return opened(queue_status, error, "queue");
}

utter_status __wrap_results_open(
    struct results **made, const char *address, bool make, utter_error *error)
{
    static const struct results_calls calls = {.close = close_results};
    assert_string_equal(address, support_path("results"));
    assert_true(make);
    results = (struct results){.calls = &calls};
    *made = results_status ? NULL : &results;
    return opened(results_status, error, "results");
}

static utter_status open_speaker(struct speaker **speaker, utter_error *error)
{
    static const struct speaker_calls calls = {.close = close_speaker};
    static struct speaker posed = {.calls = &calls};
    *speaker = speaker_status ? NULL : &posed;
    return opened(speaker_status, error, "speaker");
}

utter_status __wrap_speaker_model_open(
    struct speaker **speaker, const struct speaker_model_settings *settings, utter_error *error)
{
    by_model = *settings;
    return open_speaker(speaker, error);
}

utter_status __wrap_speaker_server_open(
    struct speaker **speaker, const struct speaker_server_settings *settings, utter_error *error)
{
    by_server = *settings;
    return open_speaker(speaker, error);
}

utter_status __wrap_worker_run(
    const struct worker_settings *settings, struct worker_told *out, utter_error *error)
{
    n_runs++;
    asked = settings;
    if (during) {
        during();
    }
    *out = told;
    if (run_status) {
        snprintf(error->text, sizeof error->text, "the worker failed");
    }
    return run_status;
}

/* ---- A worker ---- */

static void pose(void)
{
    now_ns = 1000000000000;
    n_counted = n_runs = n_open = 0;
    policy = -1;
    count_status = run_status = queue_status = results_status = speaker_status = UTTER_OK;
    counts = later = (struct queue_counts){0};
    told = (struct worker_told){0};
    during = NULL;
    by_model = (struct speaker_model_settings){0};
    by_server = (struct speaker_server_settings){0};
}

static int work(const char *words)
{
    int code = typed_run(COMMAND_JOB_WORK, words);
    assert_int_equal(n_open, 0);
    return code;
}

static void assert_named(void)
{
    char wanted[IDENTITY_SIZE], hash[IDENTITY_SIZE], name[64];
    utter_voice *voice = NULL;
    utter_error error;
    identity_of_model(wanted, MODEL, NULL);
    snprintf(name, sizeof name, "%.16s/stored", wanted);
    assert_string_equal(by_model.model_name, name);
    /* Nobody is the first of all. */
    voice_identity_preset(wanted, utter_model_voice_name(by_model.model, 0));
    assert_int_equal(by_model.find_voice(by_model.user, "", &voice, hash, &error), UTTER_OK);
    assert_string_equal(hash, wanted);
    utter_voice_free(&voice);
    voice_identity_preset(wanted, "ryan");
    assert_int_equal(by_model.find_voice(by_model.user, "ryan", &voice, hash, &error), UTTER_OK);
    assert_string_equal(hash, wanted);
    utter_voice_free(&voice);
    assert_int_equal(
        by_model.find_voice(by_model.user, "nobody", &voice, hash, &error), UTTER_E_ARGUMENT);
    assert_null(voice);
    assert_int_equal(by_model.find_called(by_model.user, "ryan", &voice, &error), UTTER_OK);
    assert_string_equal(utter_voice_name(voice), "ryan");
    utter_voice_free(&voice);
    assert_int_equal(by_model.find_called(by_model.user, "nobody", &voice, &error), UTTER_E_ARGUMENT);
    /* Voices that a text calls for are known by their files. */
    static const char text[] = "[voice:ann]Hi.";
    const struct line line = {.text = text, .text_bytes = sizeof text - 1, .markup = "tags"};
    char none[IDENTITY_SIZE];
    identity_of_bytes(none, NULL, 0);
    assert_int_equal(by_model.hash_called(by_model.user, &line, hash, &error), UTTER_OK);
    assert_string_not_equal(hash, none);
    const struct line plain = {.text = "Hi.", .text_bytes = 3, .markup = "tags"};
    assert_int_equal(by_model.hash_called(by_model.user, &plain, hash, &error), UTTER_OK);
    assert_string_equal(hash, none);
}

static void a_worker_has_what_was_typed(void **state)
{
    (void)state;
    support_write_file(support_path("ann.voice"), "one", 3);
    pose();
    during = assert_named;
    assert_int_equal(work(PLACES "--lanes 3 -q --voices @" WITH_MODEL), 0);
    assert_int_equal(n_runs, 1);
    assert_int_equal(by_model.lanes, 3);
    pose();
    assert_int_equal(work(PLACES "-q --weights q8" WITH_MODEL), 0);
    assert_string_equal(by_model.model_name + 16, "/q8");
    assert_int_equal(policy, -1);
    assert_null(by_server.url);
}

static void assert_settings(void)
{
    const bool is_typed = typed.settings.tries.given;
    assert_int_equal(asked->most_tries, is_typed ? 7 : 3);
    assert_int_equal(asked->until_empty, is_typed);
    assert_true(asked->speaker && asked->queue);
    assert_ptr_equal(asked->results, &results);
    assert_ptr_equal(results.user, asked->user);
    assert_false(asked->stop() || results.stop() || results.stop_keep());
    asked->rest(asked->user);
    assert_true(now_ns == 1000000000000 + 100000000);
}

static void a_server_has_what_was_typed(void **state)
{
    (void)state;
    static const struct {
        const char *words, *variable, *key;
        int lanes;
    } rows[] = {
        {"--lanes 5 --key own --tries 7 --until-empty", "other", "own", 5},
        {"", "other", "other", 16},
        {"", "", NULL, 16},
        {"", NULL, NULL, 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[256];
        snprintf(words, sizeof words, PLACES "-q --server http://here %s", rows[i].words);
        unsetenv("UTTER_API_KEY");
        assert_int_equal(rows[i].variable ? setenv("UTTER_API_KEY", rows[i].variable, 1) : 0, 0);
        pose();
        during = assert_settings;
        assert_int_equal(work(words), 0);
        assert_int_equal(n_runs, 1);
        assert_string_equal(by_server.url, "http://here");
        assert_int_equal(by_server.lanes, rows[i].lanes);
        assert_int_equal(by_server.key != NULL, rows[i].key != NULL);
        assert_string_equal(by_server.key ? by_server.key : "", rows[i].key ? rows[i].key : "");
        assert_int_equal(policy, SCHED_IDLE); /* listeners come first */
        assert_null(by_model.model);
    }
    unsetenv("UTTER_API_KEY");
}

/* ---- What is told ---- */

static const struct worker_told made = {.made = 11,
    .found = 12,
    .failed = 13,
    .not_whole = 14,
    .again = 15,
    .given_back = 16,
    .seconds = 50};

#define SERVER PLACES "--server http://here "

static void be_away(void)
{
    utter_error away = {.text = "the store is away"};
    results.away(results.user, &away);
    asked->told(asked->user, &made);
    asked->told(asked->user, &made);
    snprintf(away.text, sizeof away.text, "so is the server");
    by_server.away(by_server.user, &away);
    asked->told(asked->user, &made);
    asked->note(asked->user, "one", "no", 2);
    asked->note(asked->user, "one", "never", 0);
}

static void what_is_waited_for_is_told_once(void **state)
{
    (void)state;
    pose();
    during = be_away;
    assert_int_equal(work("--json " SERVER), 0);
    assert_string_equal(typed_said, "utter: note: the store is away; it is waited for\n"
                                    "utter: note: so is the server; it is waited for\n"
                                    "utter: note: \"one\": try 2 failed: no\n"
                                    "utter: note: \"one\" has failed: never\n");
    pose();
    during = be_away;
    assert_int_equal(work("-q --json " SERVER), 0);
    assert_string_equal(typed_said, "");
}

static char shown[2048];

/* What a terminal is shown so many milliseconds later. */
static void show(int later_ms)
{
    now_ns += (int64_t)later_ms * 1000000;
    terminal_begin();
    asked->told(asked->user, &made);
    const char *text = terminal_end();
    assert_true(strlen(shown) + strlen(text) + 2 < sizeof shown);
    strcat(strcat(shown, text), "|");
}

static void show_some(void)
{
    later = (struct queue_counts){.waiting = 3, .claimed = 1, .done = 10, .failed = 2, .all = true};
    show(100000);
    show(999);
    show(2);
    later.all = false; /* then it is this worker's own that is known */
    show(1000);
    later.all = true;
    later.done = 6;
    later.failed = 1; /* one line since the begin */
    show(797999);
    later.done = 5;
    later.failed = 1; /* nothing since the begin */
    show(2000);
    count_status = UTTER_AGAIN;
    show(2000);
}

/* With standard error as it is, which the worker's own test takes. */
static void work_at_a_terminal(const char *words)
{
    during = show_some;
    shown[0] = 0;
    typed_parse(COMMAND_JOB_WORK, words);
    printed_begin("printed");
    int code = command_job_work(&typed);
    free(printed_end("printed"));
    assert_int_equal(code, 0);
    assert_int_equal(n_open, 0);
}

static void a_terminal_shows_how_far_the_queue_is(void **state)
{
    (void)state;
    pose();
    counts = (struct queue_counts){.done = 5, .failed = 1, .all = true};
    work_at_a_terminal("--json " SERVER);
    assert_string_equal(shown, "6 lines done, 4 left, 0.5 x real time, 0:01:07 left|"
                               "|"
                               "\r\033[K6 lines done, 4 left, 0.5 x real time, 0:01:07 left|"
                               "\r\033[K36 lines done, 4 left, 0.5 x real time, 0:00:11 left|"
                               "\r\033[K1 lines done, 4 left, 0.1 x real time, 1:00:00 left|"
                               "\r\033[K4 lines left|"
                               "|");
    pose();
    work_at_a_terminal("-q --json " SERVER);
    assert_string_equal(shown, "|||||||");
}

static void pass_time(void)
{
    now_ns += 20000000000;
}

static void the_end_is_told(void **state)
{
    (void)state;
    pose();
    during = pass_time;
    told = made;
    assert_int_equal(work(SERVER), EXIT_NOT_WHOLE);
    assert_string_equal(typed_said,
        "utter: note: 11 lines were made, 50.0 s of speech, 2.50 x real time; "
        "12 had a result, 13 failed\n");
    assert_string_equal(typed_printed, "");
    pose();
    during = pass_time;
    told = made;
    assert_int_equal(work("-q --json " SERVER), EXIT_NOT_WHOLE);
    assert_string_equal(typed_printed,
        "{\"made\":11,\"found\":12,\"failed\":13,\"again\":15,\"given_back\":16,"
        "\"not_whole\":14,\"seconds\":50.0,\"took_s\":20.0}\n");
    static const struct {
        uint64_t failed, not_whole;
        int code;
    } rows[] = {{0, 0, 0}, {1, 0, EXIT_NOT_WHOLE}, {0, 1, EXIT_NOT_WHOLE}};
    for (size_t i = 0; i < 3; i++) {
        pose();
        told =
            (struct worker_told){.made = 9, .failed = rows[i].failed, .not_whole = rows[i].not_whole};
        assert_int_equal(work("-q " SERVER), rows[i].code);
    }
}

/* ---- What fails ---- */

static void what_cannot_be_opened_ends_it(void **state)
{
    (void)state;
    utter_status *const statuses[] = {&queue_status, &results_status, &speaker_status};
    static const char *const says[] = {
        "utter: no queue\n", "utter: no results\n", "utter: no speaker\n"};
    static const char *const words[] = {SERVER, PLACES WITH_MODEL};
    for (size_t i = 0; i < 6; i++) {
        pose();
        *statuses[i / 2] = UTTER_E_IO;
        assert_int_equal(work(words[i % 2]), 2);
        assert_string_equal(typed_said, says[i / 2]);
        assert_int_equal(n_runs, 0);
    }
    pose();
    assert_int_equal(work(PLACES "-m @none"), 1);
    assert_string_equal(typed_said,
        typed_in_folder("utter: @none: cannot open: No such file or directory (check the name)\n"));
    /* A queue that cannot be asked now may be later. */
    pose();
    count_status = UTTER_AGAIN;
    assert_int_equal(work("-q " SERVER), 0);
    assert_int_equal(n_runs, 1);
    pose();
    count_status = UTTER_E_FILE;
    assert_int_equal(work("-q " SERVER), 1);
    assert_string_equal(typed_said, "utter: no count\n");
    assert_int_equal(n_runs, 0);
    pose();
    run_status = UTTER_E_DEVICE;
    assert_int_equal(work(SERVER), 2);
    assert_string_equal(typed_said, "utter: the worker failed\n");
}

/* ---- A signal ---- */

static void be_stopped(void)
{
    raise(SIGTERM);
    if (!asked->stop() || !results.stop()) {
        _exit(1);
    }
    /* What was spoken has ten seconds to be kept. */
    static const int later_ms[] = {0, 9000, 1000, 1};
    for (int i = 0; i < 4; i++) {
        now_ns += later_ms[i] * 1000000LL;
        if (results.stop_keep() != (i == 3)) {
            _exit(2);
        }
    }
}

static void work_until_a_signal(void)
{
    typed_parse(COMMAND_JOB_WORK, "--json " SERVER);
    run_status = UTTER_E_CANCELLED;
    during = be_stopped;
    int code = command_job_work(&typed);
    fflush(stdout);
    _exit(code);
}

static void a_signal_ends_it_soon(void **state)
{
    (void)state;
    pose();
    told = made;
    heard_begin();
    printed_begin("printed");
    int end = support_child_end(work_until_a_signal);
    char *printed = printed_end("printed");
    heard_assert("");
    assert_int_equal(end, 128 + SIGTERM);
    assert_int_equal(strncmp(printed, "{\"made\":11,", 11), 0);
    free(printed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_has_what_was_typed),
        cmocka_unit_test(a_server_has_what_was_typed),
        cmocka_unit_test(what_is_waited_for_is_told_once),
        cmocka_unit_test(a_terminal_shows_how_far_the_queue_is),
        cmocka_unit_test(the_end_is_told),
        cmocka_unit_test(what_cannot_be_opened_ends_it),
        cmocka_unit_test(a_signal_ends_it_soon),
    };
    return cmocka_run_group_tests_name("job_work", tests, typed_start, typed_end);
}
