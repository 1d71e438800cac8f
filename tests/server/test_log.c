/* SPDX-License-Identifier: Apache-2.0
 * The log: a line of JSON for each event, with its time, unless nobody is to hear or would read it. */
#include "tests/support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "server/loop/log.h"

/* What is told of an event, to be freed; "": nothing. `full`: nobody reads. */
static char *told(bool quiet, bool full)
{
    const struct serve_options options = {.quiet = quiet};
    const struct server s = {.options = &options};
    static char block[4096];
    int ends[2], kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && pipe2(ends, O_NONBLOCK) == 0);
    while (full && write(ends[1], block, sizeof block) > 0) {
    }
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    log_event(&s, "came", json_pack("{s:s,s:f}", "who", "x", "seconds", 0.1234567));
    log_event(&s, "lost", NULL); /* there was no memory for what it would say */
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept), close(ends[1]);
    while (full && read(ends[0], block, sizeof block) == sizeof block && block[0] == 0) {
    }
    char *text = calloc(1, 1000);
    assert_non_null(text);
    ssize_t n = full ? 0 : read(ends[0], text, 999);
    close(ends[0]);
    assert_true(n >= 0);
    return text;
}

static void an_event_is_a_line(void **state)
{
    struct tm tm = {0};
    time_t before = time(NULL);
    char *text = told(false, false), *feed = strchr(text, '\n');
    (void)state;
    assert_true(feed && !feed[1]);
    json_t *line = json_loads(text, 0, NULL);
    assert_int_equal(json_object_size(line), 4);
    assert_string_equal(json_string_value(json_object_get(line, "event")), "came");
    assert_string_equal(json_string_value(json_object_get(line, "who")), "x");
    assert_non_null(strstr(text, "\"seconds\":0.123457}")); /* six digits say enough */
    const char *when = json_string_value(json_object_get(line, "time")),
               *rest = strptime(when, "%Y-%m-%dT%H:%M:%S", &tm); /* as UTC, with milliseconds */
    assert_true(rest && strlen(rest) == 5 && rest[0] == '.' && rest[4] == 'Z');
    assert_true(strspn(rest + 1, "0123456789") == 3);
    time_t then = timegm(&tm);
    assert_true(then >= before && then <= time(NULL));
    json_decref(line);
    free(text);
}

static void nobody_waits_for_the_log(void **state)
{
    char *quiet = told(true, false), *full = told(false, true);
    (void)state;
    assert_string_equal(quiet, "");
    assert_string_equal(full, "");
    free(quiet);
    free(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_a_line),
        cmocka_unit_test(nobody_waits_for_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
