/* SPDX-License-Identifier: Apache-2.0
 * The pages at "/" and "/docs" and what belongs to them (server/front/page/), built into the program. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include <stdbool.h>
#include <stddef.h>

struct page_file {
    const char *type; /* of media */
    const char *bytes;
    size_t n;
};

/* False: there is no file of this name. */
bool page_find(struct page_file *found, const char *name);

#endif
