/* SPDX-License-Identifier: Apache-2.0
 * dlopen. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

bool library_load(const char *file, const struct library_call *calls, size_t n)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < n; i++) {
        void *call = dlsym(library, calls[i].name);
        if (!call) {
            return false;
        }
        memcpy(calls[i].place, &call, sizeof call);
    }
    return library != NULL;
}
