/* SPDX-License-Identifier: Apache-2.0
 * What the program's parts say on standard error, kept from the terminal while it is listened to. */
#ifndef TESTS_CLI_HEARD_H
#define TESTS_CLI_HEARD_H

#include "tests/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int heard_before = -1;

static inline void heard_begin(void)
{
    fflush(stderr);
    heard_before = dup(2);
    int file = open(support_path("heard"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(heard_before >= 0 && file >= 0);
    dup2(file, 2);
    close(file);
}

/* What was said since; valid until the next call. */
static inline const char *heard_end(void)
{
    static char text[8192];
    size_t n;
    fflush(stderr);
    dup2(heard_before, 2);
    close(heard_before);
    char *all = support_read_file(support_path("heard"), &n);
    snprintf(text, sizeof text, "%s", all ? all : "");
    free(all);
    return text;
}

/* Ends the listening: `wanted`, a line's end behind it, was said, or nothing where it is "". */
static inline void heard_assert(const char *wanted)
{
    char line[8192];
    const char *text = heard_end();
    snprintf(line, sizeof line, "%s%s", wanted, wanted[0] ? "\n" : "");
    assert_string_equal(text, line);
}

#endif
