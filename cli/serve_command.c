/* SPDX-License-Identifier: Apache-2.0
 * utter serve and utter load: from options to the server and to its measurement. */
#include <stdio.h>

#include "checkpoint.h"
#include "options.h"
#include "report.h"
#include "server/front/serve.h"
#include "server/load/load.h"

int command_serve(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    struct serve_options options = {.model = checkpoint_folder(s),
        .host = s->host.text,
        .device = s->device.text,
        .kernels = s->kernels.text,
        .port = (int)s->port.integer,
        .threads = (int)s->threads.integer,
        .lanes = (int)s->serve_lanes.integer,
        .queue = (int)s->queue.integer,
        .patience_ms = (int)s->patience.integer,
        .paced = !s->serve_lanes.given,
        .weights = (int)checkpoint_weights(s),
        .snapshot_bytes = s->snapshots.integer << 20,
        .voices = s->voices.text,
        .key_file = s->api_key_file.text,
        .format = s->default_format.text,
        .drain_s = (int)s->drain.integer,
        .insecure = s->insecure.given,
        .quiet = s->quiet.given};
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
    if (s->rate.given && s->listeners.given) {
        return fail(1, "--rate: contradicts --listeners (give one of them)");
    }
    struct load_options options = {.host = s->server_host.text,
        .voice = s->voice.text,
        .key = s->key.text,
        .port = (int)s->server_port.integer,
        .rate = s->rate.given ? s->rate.number : 0,
        .listeners = s->rate.given        ? 0
                     : s->listeners.given ? (int)s->listeners.integer
                                          : 8,
        .eager = s->eager.given,
        .seconds = s->seconds.number,
        .least_words = least,
        .most_words = most,
        .word_frames = (int)s->word_frames.integer,
        .seed = s->seed.integer,
        .limit_ms = s->limit.number,
        .json = s->json.given};
    return load_run(&options);
}
