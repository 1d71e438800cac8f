/* SPDX-License-Identifier: Apache-2.0
 * Files that were made to mislead: what a row of their tables says. Tables: crafted_tensors.h, crafted_shards.h,
 * crafted_settings.h; who reads them: test_crafted.c. */
#ifndef TESTS_WEIGHTS_CRAFTED_H
#define TESTS_WEIGHTS_CRAFTED_H

#include <stddef.h>
#include <stdint.h>

/* A row says what is unusual in it, and leaves out the rest. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* One safetensors file: eight bytes of length, the header, data_bytes bytes of data. */
struct crafted_file {
    const char *name;   /* class: what is wrong with this one */
    const char *header; /* '@' stands for `times` times `filler` */
    size_t data_bytes;
    const char *reason; /* what the refusal says; NULL: it is valid, if odd */
    size_t n_tensors;   /* of a valid one */
    const char *filler;
    size_t times;
    int64_t longer; /* the length that is told less the true one */
    size_t zeros;   /* bytes of zero at the file's end */
    size_t cut;     /* bytes that lack there */
    int as_is;      /* the header is not padded to a multiple of eight */
};

/* A tensor's entry. */
#define T(name, dtype, shape, begin, end)                                                              \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #begin "," #end   \
    "]}"
/* An entry of which the members are written out. */
#define ENTRY(name, members) "\"" name "\":{" members "}"
#define F32 "\"dtype\":\"F32\""
#define ONE "\"shape\":[1]"
#define FOUR "\"data_offsets\":[0,4]"

/* The index of a folder of shards. */
struct crafted_index {
    const char *name, *text, *reason;
    const char *filler;
    size_t times;
};

/* A change of one of the small files of a good checkpoint: the first `from` becomes `to`, four times at most; with
 * `from` NULL the whole file is `to`. */
struct crafted_settings {
    const char *name, *file, *reason;
    struct {
        const char *from, *to;
    } edits[4];
    const char *filler;
    size_t times;
};

#endif
