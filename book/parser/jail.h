/* SPDX-License-Identifier: Apache-2.0
 * A process without rights for a parser of files that nobody trusts: it sees the bytes of one file, can compute, and
 * write into one pipe, within bounds of memory and time. It can open no file, reach no network and start nothing. */
#ifndef BOOK_JAIL_H
#define BOOK_JAIL_H

#include "base/error.h"

enum { JAIL_ALLOWANCE = 1 << 28 /* bytes that it may write */ };

/* `prepare` loads what the work needs, while files can still be opened and no byte of the file has been seen. Both
 * run in the process alone. */
struct jail_work {
    void (*prepare)(void);
    void (*parse)(const struct jail_work *work, const char *bytes, size_t n);
    const char *name; /* of the file */
};

/* Runs the work on the open file `in`. *answer, what jail_write was given, is the caller's, freed with
 * memory_free; the process may be hostile by then, and so may every byte of it. */
utter_status jail_run(
    const struct jail_work *work, int in, char **answer, size_t *bytes, utter_error *error);

/* Everything, also where it takes several calls. False when the other end is gone. */
bool jail_write(const void *data, size_t bytes);

#endif
