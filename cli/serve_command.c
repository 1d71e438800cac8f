/* SPDX-License-Identifier: Apache-2.0
 * utter serve: from options to the server. */
#include "checkpoint.h"
#include "commands.h"
#include "server/serve.h"

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
        .voices = s->voices.text,
        .key_file = s->api_key_file.text,
        .format = s->default_format.text,
        .drain_s = (int)s->drain.integer,
        .insecure = s->insecure.given,
        .quiet = s->quiet.given};
    return options.model ? serve_run(&options) : 1;
}
