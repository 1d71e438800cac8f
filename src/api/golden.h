/* SPDX-License-Identifier: Apache-2.0
 * Golden files, read: what the official package computed (tests/golden/README.md gives the format). */
#ifndef API_GOLDEN_H
#define API_GOLDEN_H

#include "base/json.h"
#include "weights/safetensors.h"

/* One case; texts are borrowed from the golden, the tensors too. NULL tensors: the case has none. */
struct golden_case {
    const char *name;
    bool is_decode; /* codes to sound; else text to sound */
    const char *text, *language, *speaker, *instruct;
    size_t text_bytes;
    utter_layout layout;
    float repetition_penalty;
    int max_frames, n_frames;
    const char *transcript; /* of a cloned voice; NULL: none */
    bool is_clone;
    bool ends; /* by the end token */
    const struct tensor *ids, *codes, *margins, *prompt, *hidden, *logits, *predictor_logits, *samples,
        *strided, *samples_fp64, *strided_fp64, *vector, *reference;
    size_t n_samples; /* of the whole sound, 0: no sound in the case */
    size_t stride;    /* one sample in so many is in `strided` */
    double rms;
    bool official_chunks;
};

struct golden {
    struct tensor_set *set;
    json_t *cases; /* array */
    char *kind;    /* of the checkpoint it was made on */
    json_t *files; /* its files: {NAME: {"bytes": N, "edges": HEX}} */
};

utter_status golden_open(struct golden *golden, const char *path, utter_error *error);
void golden_close(struct golden *golden);
/* How many of its checkpoint's files `folder` has unchanged, of *n_files; the first other one is named in *other. */
size_t golden_same_files(
    const struct golden *golden, const char *folder, size_t *n_files, const char **other);
size_t golden_count(const struct golden *golden);
/* Case `index`, shapes checked against n_codebooks. */
utter_status golden_case(const struct golden *golden, size_t index, int n_codebooks,
    struct golden_case *out, utter_error *error);
/* CASE/NAME or CASE/NAME.INDEX (index >= 0); NULL when the case has none. */
const struct tensor *golden_tensor(
    const struct golden *golden, const char *name, const char *what, int index);

#endif
