/* SPDX-License-Identifier: Apache-2.0
 * The ends of a text that arrives in pieces: line breaks before its first other character are dropped,
 * and those after its last one too (they would merge into the role header). Line breaks inside pass, late:
 * they are held back until something follows. Also tells whether there is anything but white space. */
#ifndef PROMPT_EDGES_H
#define PROMPT_EDGES_H

#include "base/error.h"

/* Zero it before use. */
struct edges {
    bool begun;          /* a character that is no line break has come */
    bool visible;        /* one that is no white space has come */
    uint32_t code_point; /* of a character cut between two pieces */
    int missing;         /* its bytes still to come */
    size_t n_dropped;    /* line breaks before it */
    char *held;          /* line breaks held back */
    size_t n_held;       /* bytes of them */
    size_t n_given;      /* of those, how many the last call gave: dropped by the next */
    size_t capacity;     /* bytes allocated at `held` */
};

/* Takes from *text (*bytes bytes, both move on) and gives the next run that surely belongs to the text: *inner, *n;
 * *n is 0 when the piece is used up. The run is valid until the next call. */
utter_status edges_next(struct edges *e, const char **text, size_t *bytes, const char **inner,
    size_t *n, utter_error *error);
bool edges_has_text(const struct edges *e);
void edges_fini(struct edges *e);

#endif
