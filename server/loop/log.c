/* SPDX-License-Identifier: Apache-2.0
 * Writes the log, unless that would have to wait. */
#include "server/loop/log.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"

void log_event(const struct server *s, const char *event, json_t *fields)
{
    struct pollfd polled = {STDERR_FILENO, POLLOUT, 0};
    struct timespec t;
    char when[40];
    size_t n;
    /* A log that nobody reads must not hold up the loop: then its lines are lost. */
    if (!s->options->quiet && fields && poll(&polled, 1, 0) == 1 && (polled.revents & POLLOUT)) {
        clock_gettime(CLOCK_REALTIME, &t);
        n = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", gmtime(&(time_t){t.tv_sec}));
        snprintf(when + n, sizeof when - n, ".%03ldZ", t.tv_nsec / 1000000);
        json_t *line = json_pack("{s:s,s:s}", "time", when, "event", event);
        json_object_update(line, fields);
        char *text = json_text_write(line, JSON_COMPACT | JSON_REAL_PRECISION(6));
        if (text) {
            fprintf(stderr, "%s\n", text);
            memory_plain_free(text);
        }
        json_decref(line);
    }
    json_decref(fields);
    json_text_forget(); /* where no line was written: the answer that comes next lacks nothing by that */
}
