/* SPDX-License-Identifier: Apache-2.0
 * What the program's parts say on standard error, or print on standard output, kept from the terminal meanwhile; and a
 * terminal for what they show on one. */
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

/* ---- Standard error as a terminal ---- */

static int terminal_far = -1;

static inline void terminal_begin(void)
{
    fflush(stderr);
    heard_before = dup(2);
    terminal_far = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal_far >= 0 && grantpt(terminal_far) == 0 && unlockpt(terminal_far) == 0);
    int near = open(ptsname(terminal_far), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(near >= 0);
    dup2(near, 2);
    close(near);
}

/* What it was shown since; valid until the next call. */
static inline const char *terminal_end(void)
{
    static char text[8192];
    size_t n = 0;
    fprintf(stderr, "\001");
    do { /* as far as the mark, which is there by now */
        ssize_t got = read(terminal_far, text + n, sizeof text - n);
        assert_true(got > 0);
        n += (size_t)got;
    } while (text[n - 1] != 1);
    text[n - 1] = 0;
    dup2(heard_before, 2);
    close(heard_before);
    close(terminal_far);
    return text;
}

/* ---- Standard output ---- */

static int printed_before = -1;

/* What is printed goes into `file` from here on. */
static inline void printed_begin(const char *file)
{
    fflush(stdout);
    printed_before = dup(1);
    int to = open(support_path(file), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(printed_before >= 0 && to >= 0);
    dup2(to, 1);
    close(to);
}

/* What was printed since, to be freed. */
static inline char *printed_end(const char *file)
{
    size_t n;
    fflush(stdout);
    dup2(printed_before, 1);
    close(printed_before);
    char *all = support_read_file(support_path(file), &n);
    assert_non_null(all);
    return all;
}

#endif
