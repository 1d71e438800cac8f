/* SPDX-License-Identifier: Apache-2.0
 * utter serve and utter load: from options to the server and to its measurement. */
#include <stdio.h>

#include "cli/defaults.h"
#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/report.h"

int command_serve(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    struct serve_options options = s->plain.serve;
    options.model = checkpoint_folder(s);
    options.device = s->device.text;
    options.kernels = s->kernels.text;
    options.weights = (int)checkpoint_weights(s);
    options.threads = (int)s->threads.integer;
    options.snapshot_bytes = s->snapshots.integer << 20;
    options.cache = defaults_cache();
    options.paced = options.lanes == 0;
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
