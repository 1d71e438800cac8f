/* SPDX-License-Identifier: Apache-2.0
 * The released models by name: what people type, and the repository that it stands for. */
#ifndef BASE_RELEASED_H
#define BASE_RELEASED_H

#include <stdbool.h>
#include <stddef.h>

struct released {
    const char *name;       /* short: "0.6b", "1.7b-base", "design" */
    const char *repository; /* "OWNER/NAME" */
};

/* In the order in which they are shown. */
extern const struct released released_table[];
extern const size_t n_released;

/* The repository of a short name, or of its own name without the owner, in any case; NULL: it is none. */
const char *released_repository(const char *name);
/* Whether `name` may be a repository's: two words of letters, digits, '.', '-', '_' around one slash, none of them a
 * name that folders give themselves. */
bool released_is_repository(const char *name);

#endif
