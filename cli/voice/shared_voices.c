/* SPDX-License-Identifier: Apache-2.0
 * One store a process, open until it ends. */
#include "cli/voice/shared_voices.h"

#include <string.h>

#include "base/clock.h"
#include "cli/defaults.h"
#include "cli/report.h"
#include "store/mirror.h"

static struct mirror *mirror;
static double look_ends; /* while lanes wait for it */

static bool is_late(void)
{
    return clock_seconds() > look_ends;
}

static void note_changed(void *user, const char *name)
{
    (void)name;
    *(bool *)user = true;
}

bool shared_voices_look(void)
{
    static const double most_s = 5;
    bool has_changed = false;
    if (!mirror) {
        return false;
    }
    look_ends = clock_seconds() + most_s;
    mirror_stop_by(mirror, is_late);
    utter_status status = mirror_look(mirror, note_changed, &has_changed, NULL);
    mirror_stop_by(mirror, NULL);
    return status == UTTER_OK && has_changed;
}

int shared_voices_open(struct settings *s)
{
    bool ignored;
    utter_error error = {0};
    if (!s->voices.given || strncmp(s->voices.text, "s3://", 5) != 0) {
        return 0;
    }
    if (!defaults_cache()) {
        return fail(
            1, "--voices %s: where is the copy to be? (set HOME or XDG_CACHE_HOME)", s->voices.text);
    }
    utter_status status = mirror_open(&mirror, s->voices.text, "--voices", defaults_cache(), &error);
    if (status) {
        return fail_status(status, &error);
    }
    if (mirror_look(mirror, note_changed, &ignored, &error) != UTTER_OK && !s->quiet.given) {
        note("%s; voices that are here already are used", error.text);
    }
    s->voices.text = mirror_folder(mirror);
    return 0;
}
