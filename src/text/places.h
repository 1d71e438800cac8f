/* SPDX-License-Identifier: Apache-2.0
 * Where each byte of the normal form stands in the text as it came. Runs that normalisation left alone are one entry,
 * what it changed is an entry for each stretch between two of its borders. */
#ifndef TEXT_PLACES_H
#define TEXT_PLACES_H

#include "text/chars.h"

struct place {
    uint64_t normal, raw; /* first byte, in all text so far */
    bool same;            /* byte for byte; else all of it stands where it begins */
};

/* Zero it before use. */
struct places {
    struct place *at; /* [room] */
    size_t n, room;
    struct chars stretch; /* scratch */
};
/* raw[0..raw_bytes), which begins at raw_at, has become normal[0..normal_bytes), which begins at normal_at. */
utter_status places_add(struct places *places, uint64_t raw_at, const char *raw, size_t raw_bytes,
    uint64_t normal_at, const char *normal, size_t normal_bytes, utter_error *error);
/* Where a byte of the normal form, not before the last that was forgotten, stands in the text. */
uint64_t places_find(const struct places *places, uint64_t normal);
/* Forgets what stands before. */
void places_drop(struct places *places, uint64_t normal);
void places_fini(struct places *places);

#endif
