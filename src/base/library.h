/* SPDX-License-Identifier: Apache-2.0
 * Libraries that are loaded when they are asked for, not when the program starts. */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct library_call {
    const char *name;
    void *place; /* of the pointer */
};

/* Loads `file` and finds the calls. False: it is not here, or too old. It stays until the program ends: what it brought
 * may have threads of its own. */
bool library_load(const char *file, const struct library_call *calls, size_t n);

#endif
