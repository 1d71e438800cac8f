/* SPDX-License-Identifier: Apache-2.0
 * utter serve and utter load, from what was typed to what the server and its measurement are asked for; both are
 * posed. */
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/threads.h"
#include "cli/voice/voice_lookup.h"
#include "server/load/load.h"
#include "server/protocol/devices.h"
#include "tests/cli/typed.h"

#define MODEL "build/checkpoints/eos-first"

/* ---- Who is asked ---- */

static struct {
    struct serve_options serve;
    struct load_options load;
    char devices[1024]; /* with a blank behind each */
    int n_asked;
} posed;

int serve_run(const struct serve_options *options)
{
    posed.n_asked++;
    posed.serve = *options;
    posed.devices[0] = 0;
    for (int i = 0; i < options->n_devices; i++) {
        size_t n = strlen(posed.devices);
        snprintf(posed.devices + n, sizeof posed.devices - n, "%s ", options->devices[i]);
    }
    return 42;
}

int load_run(const struct load_options *options)
{
    posed.n_asked++;
    posed.load = *options;
    return 43;
}

static void served(const char *words)
{
    posed.n_asked = 0;
    typed_assert(COMMAND_SERVE, words, 42, "", "");
    assert_int_equal(posed.n_asked, 1);
}

static void refused(unsigned command, const char *words, int code, const char *why)
{
    posed.n_asked = 0;
    typed_assert(command, words, code, "", why);
    assert_int_equal(posed.n_asked, 0);
}

/* ---- A server ---- */

static void a_server_is_as_it_was_typed(void **state)
{
    (void)state;
    const struct serve_options *o = &posed.serve;
    served("-m " MODEL);
    assert_string_equal(o->model, MODEL);
    assert_string_equal(posed.devices, "auto ");
    assert_null(o->kernels);
    assert_int_equal(o->weights, UTTER_WEIGHTS_STORED);
    assert_int_equal(o->threads, 0);
    assert_int_equal(o->snapshot_bytes, 256 << 20);
    assert_int_equal(o->lanes, 0);
    assert_true(o->paced);
    assert_string_equal(o->cache, typed_in_folder("@home/utter"));
    assert_non_null(o->model_hash);
    served("-m " MODEL
           " --device cpu:0-1,cpu:2 --kernels plain --weights q8 --threads 3 --snapshots 1 --lanes 5 "
           "--background idle");
    assert_string_equal(posed.devices, "cpu:0-1 cpu:2 ");
    assert_string_equal(o->kernels, "plain");
    assert_int_equal(o->weights, UTTER_WEIGHTS_Q8);
    assert_int_equal(o->threads, 3);
    assert_int_equal(o->snapshot_bytes, 1 << 20);
    assert_int_equal(o->lanes, 5);
    assert_false(o->paced);
    assert_string_equal(o->background, "idle");
    served("-m " MODEL " --background shared");
    assert_string_equal(o->background, "shared");
    served("-m " MODEL " --control-tokens"); /* a text is another one then */
    assert_null(o->model_hash);
    refused(COMMAND_SERVE, "-m " MODEL " --device cpu:x", 1,
        "utter: --device: 'cpu:x': a set of cores is numbers and ranges, 0-3,8\n");
    refused(COMMAND_SERVE, "-m 0.6b", 1,
        "utter: 0.6b: no folder or file, and the model Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice is not in "
        "@home (utter pull 0.6b gets it)\n");
}

static int n_gpus;
static int quota; /* of processor time, in cores; 0: none */

bool __wrap_utter_gpu_name(char *name, size_t size, int index);
int __wrap_threads_quota(const char *cgroups, const char *mount);

bool __wrap_utter_gpu_name(char *name, size_t size, int index)
{
    snprintf(name, size, n_gpus < 0 ? "" : index < n_gpus ? "GPU %d" : "there is no GPU %d", index);
    return index < n_gpus;
}

int __wrap_threads_quota(const char *cgroups, const char *mount)
{
    assert_string_equal(cgroups, "/proc/self/cgroup");
    assert_string_equal(mount, "/sys/fs/cgroup");
    return quota;
}

static void where_there_is_no_gpu_it_is_told(void **state)
{
    (void)state;
    n_gpus = 0;
    static const char said[] = "utter: --device cuda:all: there is no GPU 0\n";
    refused(COMMAND_SERVE, "-m " MODEL " --device cuda:all", 2, said);
    refused(COMMAND_SERVE, "-m " MODEL " --device cpu,cuda:all", 2, said);
    n_gpus = -1; /* nothing is said */
    refused(COMMAND_SERVE, "-m " MODEL " --device cuda:all", 2,
        "utter: --device cuda:all: the process that asks for GPUs did not answer\n");
}

/* They are counted by a process that is gone then. */
static void all_gpus_are_those_that_there_are(void **state)
{
    (void)state;
    int files = support_count_files("/proc/self/fd");
    for (n_gpus = 1; n_gpus <= DEVICES_MOST; n_gpus++) {
        char wanted[DEVICES_MOST * 16] = "";
        for (int i = 0; i < n_gpus; i++) {
            snprintf(wanted + strlen(wanted), 16, "cuda:%d ", i % 100);
        }
        served("-m " MODEL " --device cuda:all");
        assert_string_equal(posed.devices, wanted);
        assert_int_equal(posed.serve.n_devices, n_gpus);
    }
    served("-m " MODEL " --device cuda:all"); /* one more than a server has places for */
    assert_int_equal(posed.serve.n_devices, DEVICES_MOST);
    assert_int_equal(support_count_files("/proc/self/fd"), files);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    n_gpus = 0;
}

/* What a worker of its own would take of it, listeners would lack. */
static void where_time_is_counted_out_it_is_shared(void **state)
{
    (void)state;
    served("-m " MODEL);
    assert_null(posed.serve.background);
    quota = 1;
    served("-m " MODEL);
    assert_string_equal(posed.serve.background, "shared");
    served("-m " MODEL " --background idle");
    assert_string_equal(posed.serve.background, "idle");
    quota = 0;
}

/* Where no pipe is to be had, nobody answers. */
static void without_a_pipe(void)
{
    struct rlimit few = {3, 3};
    assert_int_equal(options_parse(&typed, typed_command(COMMAND_SERVE), 0, NULL), true);
    typed.settings.device.text = "cuda:all";
    setrlimit(RLIMIT_NOFILE, &few);
    _exit(command_serve(&typed));
}

static void who_cannot_be_asked_does_not_answer(void **state)
{
    (void)state;
    heard_begin();
    int end = support_child_end(without_a_pipe);
    heard_assert("utter: --device cuda:all: the process that asks for GPUs did not answer");
    assert_int_equal(end, 2);
}

static void voices_are_known_as_jobs_know_them(void **state)
{
    (void)state;
    char hash[IDENTITY_SIZE], wanted[IDENTITY_SIZE];
    served("-m " MODEL);
    assert_true(posed.serve.hash_voice(hash, "ryan", NULL));
    voice_identity_preset(wanted, "ryan");
    assert_string_equal(hash, wanted);
    assert_true(posed.serve.hash_voice(hash, "ryan", "no file is asked"));
    assert_string_equal(hash, wanted);
    assert_true(posed.serve.hash_voice(hash, NULL, NULL));
    voice_identity_preset(wanted, NULL);
    assert_string_equal(hash, wanted);
    assert_false(posed.serve.hash_voice(hash, NULL, support_path("none.voice")));
    utter_voice *voice;
    typed_record();
    assert_int_equal(typed_run(COMMAND_CLONE,
                         "@ref.wav -q -o @ann.voice --threads 1 -m build/checkpoints/tiny06-base"),
        0);
    assert_int_equal(utter_voice_load(&voice, support_path("ann.voice"), NULL), UTTER_OK);
    voice_identity(wanted, voice);
    assert_true(posed.serve.hash_voice(hash, NULL, support_path("ann.voice")));
    assert_string_equal(hash, wanted);
    /* All that it is: its kind, each number of its vector, each code, its transcript. */
    char vector[IDENTITY_SIZE], codes[IDENTITY_SIZE];
    utter_voice_info info = {.size = sizeof info};
    assert_int_equal(utter_voice_get_info(voice, &info), UTTER_OK);
    assert_int_equal(info.kind, UTTER_VOICE_VECTOR);
    identity_of_bytes(vector, info.x_vector, 4 * (size_t)info.width);
    identity_of_bytes(codes, info.codes, 4 * (size_t)(info.n_frames * info.n_codebooks));
    identity_of_texts(hash, (const char *const[]){"1", "", vector, codes, "", NULL});
    assert_string_equal(hash, wanted);
    utter_voice_free(&voice);
}

/* ---- A measurement ---- */

static void a_load_is_as_it_was_typed(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int least, most, listeners;
        double rate;
    } rows[] = {
        {"", 5, 60, 8, 0},
        {"--words 1", 1, 1, 8, 0},
        {"--words 500", 500, 500, 8, 0},
        {"--words 1-500", 1, 500, 8, 0},
        {"--words 7-7", 7, 7, 8, 0},
        {"--listeners 3", 5, 60, 3, 0},
        {"--listeners 1", 5, 60, 1, 0},
        {"--rate 0.5", 5, 60, 0, 0.5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posed.n_asked = 0;
        typed_assert(COMMAND_LOAD, rows[i].words, 43, "", "");
        assert_int_equal(posed.n_asked, 1);
        assert_int_equal(posed.load.least_words, rows[i].least);
        assert_int_equal(posed.load.most_words, rows[i].most);
        assert_int_equal(posed.load.listeners, rows[i].listeners);
        assert_true(posed.load.rate == rows[i].rate);
        assert_false(posed.load.json);
        assert_null(posed.load.voice);
        assert_int_equal(posed.load.seed, 0);
    }
    typed_assert(COMMAND_LOAD, "--json -v ryan --seed 18446744073709551615 --port 1", 43, "", "");
    assert_true(posed.load.json);
    assert_string_equal(posed.load.voice, "ryan");
    assert_true(posed.load.seed == UINT64_MAX);
    assert_int_equal(posed.load.port, 1);
}

static void a_load_that_cannot_be_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "0", "501", "1-501", "6-5", "0-5", "x", "5-", "5-x", "5x", "5-6x", "-5", "5-6-7"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char words[64], why[128];
        snprintf(words, sizeof words, "--words %s", wrong[i]);
        snprintf(why, sizeof why, "utter: --words: '%s' is not N or N-N, 1 to 500\n", wrong[i]);
        refused(COMMAND_LOAD, words, 1, why);
    }
    refused(COMMAND_LOAD, "--rate 1 --listeners 1", 1,
        "utter: --rate: contradicts --listeners (give one of them)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_is_as_it_was_typed),
        cmocka_unit_test(where_there_is_no_gpu_it_is_told),
        cmocka_unit_test(all_gpus_are_those_that_there_are),
        cmocka_unit_test(where_time_is_counted_out_it_is_shared),
        cmocka_unit_test(who_cannot_be_asked_does_not_answer),
        cmocka_unit_test(voices_are_known_as_jobs_know_them),
        cmocka_unit_test(a_load_is_as_it_was_typed),
        cmocka_unit_test(a_load_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("serve_command", tests, typed_start, typed_end);
}
