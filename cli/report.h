/* SPDX-License-Identifier: Apache-2.0
 * What the program says on stderr: errors, notes and the progress line, one line each. And lines on stdout that hold
 * texts of files. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>

#include "utter.h"

/* Prints "utter: ..." as one line, whatever the text holds, and returns `code`: 1 when the request is wrong,
 * 2 when the machine failed. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same line from a question: false. */
bool say_no(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a failure of the library. */
int fail_status(utter_status status, const utter_error *error);
/* The same where it is about a place that cannot be written: a fault of the machine, not of the request. */
int fail_output(utter_status status, const utter_error *error);

/* "utter: note: ..." */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note_from_library(void *unused, const char *line); /* a utter_log_fn */

/* Decoders and sound systems complain on standard error, at any length: between these two only the program's own lines
 * get there. */
void report_alone(void);
void report_with_others(void);

/* From here on both name a line of a list of texts, until the number is 0. */
void report_line(size_t number);

/* Rewrites the progress line where stderr is a terminal; errors and notes clear it first. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_clear(void);
bool progress_shown(void); /* whether stderr is a terminal */

/* One line on standard output, whatever the texts in it hold. */
void put_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Flushes standard output; a message and exit code 2 when that fails, else `code`. */
int finish_output(int code);

/* Prints the object in one line on standard output and takes it over. 0, or an exit code when it is NULL. */
int report_json(json_t *object);

/* A name of a file, whose bytes need not be UTF-8, as JSON has it: then with escapes. NULL gives null. */
json_t *json_name(const char *name);

#endif
