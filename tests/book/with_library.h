/* SPDX-License-Identifier: Apache-2.0
 * The libraries that books need, for tests of what uses them, which are passed over without. */
#ifndef TESTS_BOOK_WITH_LIBRARY_H
#define TESTS_BOOK_WITH_LIBRARY_H

#include "tests/support.h"

#include <stdlib.h>

#include "book/parser/library.h"

static struct library library;

/* The setup of a group. */
static inline int load(void **state)
{
    (void)state;
    if (library_books(&library)) {
        print_message("SKIP: a library is not here\n");
        exit(0);
    }
    return 0;
}

#endif
