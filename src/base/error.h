/* SPDX-License-Identifier: Apache-2.0
 * Status and error record. A failure is described once, where it happens; callers pass it on. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "utter.h"

/* Writes the formatted reason into *error (may be NULL) and returns `code`, so that a failure is one
 * line: return error_set(error, UTTER_E_FILE, "%s: ...", path); What a terminal would obey, wherever it comes from, and
 * what is not UTF-8 become escapes, as in error_quote. A reason that is too long is cut at a character border. */
utter_status error_set(utter_error *error, utter_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* UTTER_E_MEMORY with a uniform sentence; `what` names what did not fit. */
utter_status error_memory(utter_error *error, const char *what);

/* What a program ends with: 0, 1 where the request is wrong, 2 where the machine failed. */
int error_exit_code(utter_status status);

/* Copies `text` into out[size] so that it can be printed in one line: control characters, and bytes
 * that are not UTF-8, become escapes; long text is cut with "...". Returns out. For names from files
 * that must leave room for the rest of a reason, and outside of reasons. */
const char *error_quote(char *out, size_t size, const char *text, size_t bytes);

#endif
