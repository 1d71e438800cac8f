/* SPDX-License-Identifier: Apache-2.0
 * A sound device for tests of who plays: the library that tests/cli/portaudio.c makes, which lies beside the test's own
 * program, comes in place of the system's, so that nothing is heard. */
#ifndef TESTS_CLI_POSED_DEVICE_H
#define TESTS_CLI_POSED_DEVICE_H

#include "tests/support.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Whether who asks for the library finds it. */
static bool device_is_installed;

static inline const char *device_library(void)
{
    static char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    assert_true(n > 0);
    path[n] = 0;
    strcpy(strrchr(path, '/') + 1, "libportaudio.so.2");
    return path;
}

/* In place of the system's, for who asks for it by name. */
void *dlopen(const char *name, int flags)
{
    static void *(*system_dlopen)(const char *, int);
    if (!system_dlopen) {
        void *call = dlsym(RTLD_NEXT, "dlopen");
        memcpy(&system_dlopen, &call, sizeof call);
    }
    if (name && strcmp(name, "libportaudio.so.2") == 0) {
        return device_is_installed ? system_dlopen(device_library(), flags) : NULL;
    }
    return system_dlopen(name, flags);
}

/* What is played goes into the file `path`. A test ends here where nobody has made the library: `make test-programs`
 * does. */
static inline void device_begin(const char *path)
{
    if (access(device_library(), F_OK) != 0) {
        skip();
    }
    device_is_installed = true;
    assert_int_equal(setenv("PLAYED", path, 1), 0);
    assert_int_equal(setenv("PLAYED_END", "", 1), 0);
}

#endif
