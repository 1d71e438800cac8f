/* SPDX-License-Identifier: Apache-2.0
 * Files that are open for writing, in both ways that there are, for tests of what becomes of them. */
#ifndef TESTS_BASE_OPEN_OUT_H
#define TESTS_BASE_OPEN_OUT_H

#include "base/file.h"
#include "tests/support.h"

static struct file_out *open_out(const char *path)
{
    struct file_out *out;
    assert_int_equal(file_out_open(&out, path, NULL), UTTER_OK);
    return out;
}

/* One that has a hidden name from the start, as where the system knows no nameless files. */
static struct file_out *open_named(const char *path)
{
    struct file_out *out;
    support_fail_open_at(1);
    const utter_status status = file_out_open(&out, path, NULL);
    support_fail_off();
    assert_int_equal(status, UTTER_OK);
    return out;
}

#endif
