/* SPDX-License-Identifier: Apache-2.0
 * Binding of a checkpoint's tensors to struct model, inside the room. */
#ifndef MODEL_MODEL_PARTS_H
#define MODEL_MODEL_PARTS_H

#include "model/model.h"

/* One tensor file being bound; what is allocated goes to the model. */
struct model_bind {
    struct bind bind;
    struct model *model;
    bool out_of_memory;
};

/* As bind_vector; the model owns the result. */
float *model_vector(struct model_bind *mb, const char *name, int i, int j, int64_t n);
/* As bind_weight for a matrix. */
struct weight model_matrix(
    struct model_bind *mb, const char *name, int i, int j, int64_t rows, int64_t cols);
/* As model_matrix, or packed in the file (weights/pack.h). */
struct weight model_linear(
    struct model_bind *mb, const char *name, int i, int j, int64_t rows, int64_t cols);
/* A matrix that the kernels read as fp32, [rows][cols][taps] (taps 0: two dims): kept in the file when it is
 * F32 there. */
struct weight model_exact(
    struct model_bind *mb, const char *name, int i, int j, int64_t rows, int64_t cols, int64_t taps);
/* n zeroed elements owned by the model; NULL sets out_of_memory. */
void *model_new(struct model_bind *mb, int64_t n, size_t size);

/* Zeroed bytes that the model frees; NULL when out of memory. */
void *model_own(struct model *model, size_t bytes);
/* Why the model in one file at `path` is not a sound one. */
utter_status model_file_check(const char *path, utter_error *error);
/* Sizes of the parts from what is bound. */
void model_count(struct model *model);

void model_bind_talker(struct model_bind *mb);  /* talker.* of model.safetensors, predictor too */
void model_bind_vocoder(struct model_bind *mb); /* decoder.* of the codec */
/* The vocoder's matrices that a file of utter quantize holds in 16 bits: all but convolutions and tables, which
 * backends lay out for themselves. Returns how many; list has room for MODEL_VOCODER_MATRICES(n_layers). */
#define MODEL_VOCODER_MATRICES(n_layers) (7 * (size_t)(n_layers) + 2 + 2 * CONFIG_MAX_RATES)
int model_vocoder_matrices(struct model *m, struct weight **list);
/* Nothing at all when the config or the file has none. */
void model_bind_speaker(struct model_bind *mb); /* speaker_encoder.* of model.safetensors */
void model_bind_encoder(struct model_bind *mb); /* encoder.* of the codec */
/* True when the file has any tensor whose name begins so. */
bool model_bind_has(const struct model_bind *mb, const char *prefix);

#endif
