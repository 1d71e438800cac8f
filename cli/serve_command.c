/* SPDX-License-Identifier: Apache-2.0
 * utter serve and utter load: from options to the server and to its measurement. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/threads.h"
#include "cli/defaults.h"
#include "cli/job/job_lines.h"
#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/voice/voice_lookup.h"
#include "server/protocol/devices.h"

/* Asked by a child: the driver of a GPU is for workers, and would stay in the process that asks. Where there is none,
 * why[size] says it. */
static int count_gpus(char *why, size_t size)
{
    int ends[2], status = 0;
    ssize_t said = 0;
    snprintf(why, size, "the process that asks for GPUs did not answer");
    if (pipe(ends) != 0) {
        return 0;
    }
    pid_t child = fork();
    if (child == 0) {
        int n = 0;
        while (n < DEVICES_MOST && utter_gpu_name(why, size, n)) {
            n++;
        }
        _exit(write(ends[1], why, strlen(why)) < 0 ? 0 : n);
    }
    close(ends[1]);
    if (child > 0) {
        said = read(ends[0], why, size - 1);
        waitpid(child, &status, 0);
    }
    close(ends[0]);
    why[said > 0 ? (size_t)said : strlen(why)] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* What requests of utter job name: how it knows a preset, and a voice in a file. */
static bool hash_voice(char *hash, const char *preset, const char *file)
{
    utter_voice *voice = NULL;
    if (preset || !file) {
        voice_identity_preset(hash, preset);
        return true;
    }
    bool good = utter_voice_load(&voice, file, NULL) == UTTER_OK;
    if (good) {
        voice_identity(hash, voice);
    }
    utter_voice_free(&voice);
    return good;
}

int command_serve(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    struct serve_options options = s->plain.serve;
    struct devices devices;
    char why[512], model_name[MODEL_NAME];
    bool all_gpus = strstr(s->device.text, "cuda:all");
    int n_gpus = all_gpus ? count_gpus(why, sizeof why) : 0;
    if (all_gpus && n_gpus == 0) {
        return fail(2, "--device cuda:all: %s", why);
    }
    if (!devices_parse(&devices, s->device.text, n_gpus, why, sizeof why)) {
        return fail(1, "--device: %s", why);
    }
    options.model = checkpoint_folder(s);
    options.devices = devices.names;
    options.n_devices = devices.n;
    options.kernels = s->kernels.text;
    options.weights = (int)checkpoint_weights(s);
    options.threads = (int)s->threads.integer;
    options.snapshot_bytes = s->snapshots.integer << 20;
    options.cache = defaults_cache();
    options.paced = options.lanes == 0;
    options.hash_voice = hash_voice;
    /* What a worker at idle priority takes of a quota is taken from listeners, too. */
    if (!options.background && threads_quota("/proc/self/cgroup", "/sys/fs/cgroup") > 0) {
        options.background = "shared";
    }
    /* Where control tokens are taken, a text may be another one. */
    if (options.model && !options.control_tokens && job_model_name(model_name, s, NULL) == UTTER_OK) {
        options.model_hash = model_name;
    }
    return options.model ? serve_run(&options) : 1;
}

int command_load(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    int least = 0, most = 0, end = 0;
    int n = sscanf(s->load_words.text, "%d%n-%d%n", &least, &end, &most, &end);
    most = n == 1 ? least : most;
    if (n < 1 || s->load_words.text[end] || least < 1 || most < least || most > 500) {
        return fail(1, "--words: '%s' is not N or N-N, 1 to 500", s->load_words.text);
    }
    struct load_options options = s->plain.load;
    if (options.rate > 0 && options.listeners > 0) {
        return fail(1, "--rate: contradicts --listeners (give one of them)");
    }
    if (options.rate <= 0 && options.listeners == 0) {
        options.listeners = 8;
    }
    options.voice = s->voice.text;
    options.seed = s->seed.integer;
    options.json = s->json.given;
    options.least_words = least;
    options.most_words = most;
    return load_run(&options);
}
