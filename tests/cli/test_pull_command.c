/* SPDX-License-Identifier: Apache-2.0
 * utter pull, as people type it, of a posed hub and on a posed clock: what is asked for, what is told meanwhile and in
 * the end. And what utter use tells of a choice, and how large models are whose files are links. */
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/defaults.h"
#include "cli/model/hub.h"
#include "tests/cli/typed.h"

#define RELEASED "Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice"

/* ---- The hub ---- */

static struct {
    int64_t now_ns;
    char repository[256], cache[PATH_MAX];
    utter_status status;
    bool arrives;
    void (*during)(hub_progress *tells, void *user);
    int n_asked;
} hub;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
utter_status __wrap_hub_pull(const char *repository, const char *cache, hub_progress *tells, void *user,
    uint64_t *bytes, utter_error *error);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){hub.now_ns / 1000000000, hub.now_ns % 1000000000};
    return 0;
}

static void put(const char *name, const char *text)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "home/models--%s", name);
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(support_path(path), 0700);
        *slash = '/';
    }
    support_write_file(support_path(path), text, strlen(text));
}

/* The snapshot's one file is a link, as a hub's client leaves it. */
static void put_repository(const char *name, const char *config)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/refs/main", name);
    put(path, "c0ffee");
    snprintf(path, sizeof path, "%s/blobs/one", name);
    put(path, config);
    snprintf(path, sizeof path, "%s/snapshots/c0ffee/other.json", name);
    put(path, "{}");
    snprintf(path, sizeof path, "home/models--%s/snapshots/c0ffee/config.json", name);
    unlink(support_path(path));
    assert_int_equal(symlink("../../blobs/one", support_path(path)), 0);
}

utter_status __wrap_hub_pull(const char *repository, const char *cache, hub_progress *tells, void *user,
    uint64_t *bytes, utter_error *error)
{
    hub.n_asked++;
    snprintf(hub.repository, sizeof hub.repository, "%s", repository);
    snprintf(hub.cache, sizeof hub.cache, "%s", cache);
    if (hub.during) {
        hub.during(tells, user);
    }
    if (hub.status) {
        snprintf(error->text, sizeof error->text, "the hub is away");
    } else if (hub.arrives) {
        put_repository("Qwen--Qwen3-TTS-12Hz-0.6B-CustomVoice", "{\"model_type\":\"qwen3_tts\"}");
        put_repository("me--mine", "{\"model_type\":\"qwen3_tts\"}");
    }
    *bytes = 1234567890;
    return hub.status;
}

static void pose(void)
{
    memset(&hub, 0, sizeof hub);
    hub.now_ns = 1000000000000;
    hub.arrives = true;
}

/* ---- What is pulled ---- */

static void a_model_is_pulled_by_its_name(void **state)
{
    (void)state;
    pose();
    typed_assert(COMMAND_PULL, "0.6b", 0, "",
        "utter: note: " RELEASED " is here, 1234.6 MB (utter say -m 0.6b ...)\n");
    assert_string_equal(hub.repository, RELEASED);
    assert_string_equal(hub.cache, support_path("home"));
    typed_assert(COMMAND_PULL, "me/mine", 0, "",
        "utter: note: me/mine is here, 1234.6 MB (utter say -m me/mine ...)\n");
    assert_string_equal(hub.repository, "me/mine");
    typed_assert(COMMAND_PULL, "-q me/mine", 0, "", "");
    /* What was pulled is to be found. */
    hub.arrives = false;
    assert_int_equal(typed_run(COMMAND_PULL, "me/other"), 1);
    assert_non_null(strstr(typed_said, "me/other"));
    hub.status = UTTER_E_DEVICE;
    typed_assert(COMMAND_PULL, "me/mine", 2, "", "utter: the hub is away\n");
    hub.status = UTTER_E_CANCELLED; /* though no signal came */
    assert_int_not_equal(typed_run(COMMAND_PULL, "me/mine"), 0);
    assert_string_equal(typed_said, "utter: the hub is away\n");
}

static void what_is_no_model_is_refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"0.6c", "did you mean 0.6b? "},
        {"desing", "did you mean design? "},
        {"mine", ""},
        {"/mine", ""},
        {"https://huggingface.co/me/mine", "did you mean me/mine? "},
        {"https://huggingface.co/mine", ""},
        {"file:///me/mine", "did you mean me/mine? "},
        {"https://huggingface.co", ""},
        {"me:/mine", ""},
    };
    pose();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char says[512];
        snprintf(says, sizeof says,
            "utter: pull: '%s' is no model (%sutter models lists the released ones; others are "
            "OWNER/NAME)\n",
            rows[i][0], rows[i][1]);
        typed_assert(COMMAND_PULL, rows[i][0], 1, "", says);
    }
    assert_int_equal(hub.n_asked, 0);
    char home[PATH_MAX];
    snprintf(home, sizeof home, "%s", getenv("HOME"));
    static const char *const names[] = {"HF_HUB_CACHE", "XDG_CACHE_HOME", "HF_HOME", "HOME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsetenv(names[i]);
    }
    typed_assert(
        COMMAND_PULL, "0.6b", 1, "", "utter: pull: no folder to put it (HF_HUB_CACHE names one)\n");
    assert_int_equal(typed_run(COMMAND_MODELS, ""), 0);
    assert_non_null(strstr(typed_printed, "  0.6b       " RELEASED "       not here\n"));
    assert_int_equal(typed_run(COMMAND_MODELS, "--json"), 0);
    assert_int_equal(strncmp(typed_printed, "{\"cache\":null,", 14), 0);
    setenv("HOME", home, 1);
    typed_start(NULL);
    assert_int_equal(hub.n_asked, 0);
}

/* ---- A terminal ---- */

static void tell_some(hub_progress *tells, void *user)
{
    static const struct {
        int later_ms;
        uint64_t done, all;
    } steps[] = {
        {0, 0, 0},                 /* the list has no size */
        {1000, 4000000, 10000000}, /* that were there: nothing has come by now */
        {199, 5000000, 10000000},  /* too soon */
        {1800, 6000000, 10000000},
        {2000, 9200000, 10000000},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        hub.now_ns += (int64_t)steps[i].later_ms * 1000000;
        assert_true(tells(user, i ? "model" : "the list", steps[i].done, steps[i].all));
    }
}

static void a_terminal_shows_how_much_is_here(void **state)
{
    (void)state;
    pose();
    hub.during = tell_some;
    typed_parse(COMMAND_PULL, "me/mine");
    terminal_begin();
    int code = command_pull(&typed);
    const char *shown = terminal_end();
    assert_string_equal(shown,
        "model: 4 of 10 MB, 0.0 MB/s, 0 s to go\r\033[K"
        "model: 6 of 10 MB, 1.0 MB/s, 4 s to go\r\033[K"
        "model: 9 of 10 MB, 1.3 MB/s, 1 s to go\r\033[K"
        "utter: note: me/mine is here, 1234.6 MB (utter say -m me/mine ...)\r\n");
    assert_int_equal(code, 0);
    typed_parse(COMMAND_PULL, "-q me/mine");
    terminal_begin();
    code = command_pull(&typed);
    assert_string_equal(terminal_end(), "");
    assert_int_equal(code, 0);
}

/* ---- use and models ---- */

static void a_choice_is_told_with_who_made_it(void **state)
{
    (void)state;
    static const char config[] = "model = me/mine\nvoice = ann\n";
    pose();
    put_repository("me--mine", "{\"model_type\":\"qwen3_tts\"}");
    mkdir(support_path("home/utter"), 0700);
    support_write_file(support_path("home/utter/config"), config, sizeof config - 1);
    setenv("UTTER_DEVICE", "cpu", 1);
    for (int known = 0; known < 2; known++) {
        if (!known) {
            setenv("UTTER_MODEL", "build/checkpoints/eos-first", 1);
        } else {
            unsetenv("UTTER_MODEL");
        }
        typed_parse(COMMAND_USE, "");
        assert_int_equal(defaults_apply(&typed), 0);
        heard_begin();
        printed_begin("printed");
        int code = typed.command->run(&typed);
        char *printed = printed_end("printed");
        const char *said = heard_end();
        assert_string_equal(said, "");
        assert_string_equal(
            printed, typed_in_folder(known ? "model   me/mine  (@home/utter/config)\n"
                                             "path    @home/models--me--mine/snapshots/c0ffee\n"
                                             "voice   ann  (@home/utter/config)\n"
                                             "device  cpu  (UTTER_DEVICE)\n"
                                           : "model   build/checkpoints/eos-first  (UTTER_MODEL)\n"
                                             "path    build/checkpoints/eos-first\n"
                                             "voice   the model's first  (nobody chose)\n"
                                             "device  cpu  (UTTER_DEVICE)\n"));
        assert_int_equal(code, 0);
        free(printed);
    }
    unsetenv("UTTER_DEVICE");
}

static void a_choice_that_is_not_here_has_no_path(void **state)
{
    (void)state;
    pose();
    setenv("UTTER_MODEL", "1.7b", 1);
    typed_parse(COMMAND_USE, "");
    assert_int_equal(defaults_apply(&typed), 0);
    heard_begin();
    printed_begin("printed");
    int code = typed.command->run(&typed);
    char *printed = printed_end("printed");
    const char *said = heard_end();
    assert_non_null(strstr(said, "(utter pull 1.7b gets it)"));
    assert_string_equal(printed,
        "model   1.7b  (UTTER_MODEL)\nvoice   the model's first  (nobody chose)\n"
        "device  auto  (nobody chose)\n");
    assert_int_equal(code, 1);
    free(printed);
    unsetenv("UTTER_MODEL");
}

static void a_choice_that_cannot_be_written_leaves_the_one_before(void **state)
{
    (void)state;
    static const char config[] = "voice = ann\n";
    mkdir(support_path("home/utter"), 0700);
    support_write_file(support_path("home/utter/config"), config, sizeof config - 1);
    typed_parse(COMMAND_USE, "builtin -v eve");
    support_fail_write_at(1);
    heard_begin();
    int code = typed.command->run(&typed);
    support_fail_off();
    const char *said = heard_end();
    assert_non_null(strstr(said, "No space left on device"));
    assert_int_equal(code, 2);
    support_assert_content(support_path("home/utter/config"), config);
}

/* Of links the files count that they lead to. */
static void the_size_of_a_model_is_that_of_its_files(void **state)
{
    (void)state;
    char config[1024];
    pose();
    int n = snprintf(config, sizeof config, "{\"model_type\":\"qwen3_tts\"%*s}", 900, "");
    put_repository("me--mine", config);
    assert_int_equal(typed_run(COMMAND_MODELS, "--json"), 0);
    json_t *all = json_loads(typed_printed, 0, NULL);
    const json_t *models = json_object_get(all, "models"),
                 *last = json_array_get(models, json_array_size(models) - 1);
    assert_string_equal(json_string_value(json_object_get(last, "repository")), "me/mine");
    assert_int_equal(json_integer_value(json_object_get(last, "bytes")), n + 2);
    json_decref(all);
}

/* ---- A signal, which stays: the last ---- */

static void be_interrupted(hub_progress *tells, void *user)
{
    assert_true(tells(user, "model", 1, 2));
    raise(SIGTERM);
    assert_false(tells(user, "model", 2, 2));
}

static void a_signal_ends_it(void **state)
{
    (void)state;
    pose();
    hub.during = be_interrupted;
    hub.status = UTTER_E_CANCELLED;
    typed_assert(COMMAND_PULL, "me/mine", 128 + SIGTERM, "",
        "utter: interrupted (the same command goes on where this ended)\n");
    hub.during = NULL;
    hub.status = UTTER_E_FILE; /* which is no matter of the signal */
    typed_assert(COMMAND_PULL, "me/mine", 1, "", "utter: the hub is away\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_model_is_refused),
        cmocka_unit_test(a_model_is_pulled_by_its_name),
        cmocka_unit_test(a_terminal_shows_how_much_is_here),
        cmocka_unit_test(a_choice_is_told_with_who_made_it),
        cmocka_unit_test(a_choice_that_is_not_here_has_no_path),
        cmocka_unit_test(a_choice_that_cannot_be_written_leaves_the_one_before),
        cmocka_unit_test(the_size_of_a_model_is_that_of_its_files),
        cmocka_unit_test(a_signal_ends_it),
    };
    return cmocka_run_group_tests_name("pull_command", tests, typed_start, typed_end);
}
