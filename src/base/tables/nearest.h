/* SPDX-License-Identifier: Apache-2.0
 * "Did you mean ...?": the name that somebody most likely wanted to type; and which names are the same. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* A search: begin, offer every name that there is, then look at `name`. */
struct nearest {
    const char *typed;
    const char *name; /* the best so far, borrowed from who offered it; NULL: none is near */
    int least;        /* how far it is, in changes of a letter; a name must be nearer than this */
};

struct nearest nearest_begin(const char *typed);
void nearest_offer(struct nearest *nearest, const char *name); /* case does not count */

/* The same over a list: NULL where none is near. */
const char *nearest_name(const char *typed, const char *const *names, size_t n);

/* "did you mean NAME? " in out[size], to stand in front of a list of what is known; "" where none is near. */
const char *nearest_hint(const struct nearest *nearest, char *out, size_t size);

/* An accent may be one character with its letter or stand behind it, as keyboards and file systems have it: that is the
 * same name. */
enum { NAME_COMPOSED = 1024 }; /* room for a name that is composed */

/* The name with accents and letters in one (NFC), in `buffer` of NAME_COMPOSED bytes; the name itself where nothing is
 * to do, where it is too long, and where it is not UTF-8. */
const char *name_composed(char *buffer, const char *name);

/* Whether two are one name; letters of ASCII are the same in either case. */
bool names_same(const char *one, const char *other);

#endif
