/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the encoders share: golden files of tools/oracle/encode.py, and a backend. */
#ifndef TESTS_CPU_LISTEN_H
#define TESTS_CPU_LISTEN_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audio/resample.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/numeric.h"
#include "model/backend.h"
#include "tests/cpu/recordings.h"
#include "tests/support.h"

enum { LISTEN_RATE = 24000, LISTEN_LONGEST_S = SUPPORT_SANITIZED ? 4 : 3600 };

struct listener {
    struct model *model;
    struct backend *backend;
};

static inline struct listener listener_open(const char *folder, const char *kernels, int n_threads)
{
    struct listener l;
    utter_error error;
    struct backend_options options = {
        .n_lanes = 1, .n_threads = n_threads, .cpu_kernels = kernels, .lane_positions = 8};
    if (model_open(&l.model, folder, &error) ||
        cpu_backend.open(&l.backend, l.model, &options, &error)) {
        fail_msg("%s: %s", folder, error.text);
    }
    return l;
}

static inline void listener_close(struct listener *l)
{
    cpu_backend.close(&l->backend);
    model_close(&l->model);
}

/* One case of a golden file. */
struct heard_case {
    const char *name;
    float *pcm; /* at 24 kHz, made from the recipe and resampled */
    size_t n;
    bool same_pcm; /* every bit is the official resampler's */
    bool portable; /* it must be on every machine: made at 24 kHz, and so not resampled */
    size_t n_frames;
    double margin;               /* smallest gap between the best and the second distance */
    const struct tensor *codes;  /* U8 or I16 [n_frames][16] */
    const struct tensor *vector; /* F32, or NULL */
};

static inline int32_t heard_code(const struct heard_case *c, size_t i)
{
    const uint8_t *bytes = c->codes->data;
    return c->codes->type == DTYPE_U8 ? bytes[i] : bytes[2 * i] | bytes[2 * i + 1] << 8;
}

static inline uint64_t fnv_of_words(const float *x, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ numeric_to_bits(x[i])) * 1099511628211u;
    }
    return h;
}

static inline struct heard_case heard_case_make(const struct tensor_set *set, const json_t *entry)
{
    char name[128], hex[17];
    struct heard_case c = {.name = json_string_value(json_object_get(entry, "name"))};
    int rate = (int)json_integer_value(json_object_get(entry, "rate"));
    c.portable = rate == LISTEN_RATE;
    size_t n = (size_t)json_integer_value(json_object_get(entry, "n"));
    float *made = recording_make(json_string_value(json_object_get(entry, "kind")),
        (uint64_t)json_integer_value(json_object_get(entry, "seed")), (uint64_t)rate, n);
    assert_int_equal(resample(&c.pcm, &c.n, made, n, rate, LISTEN_RATE, NULL), UTTER_OK);
    free(made);
    assert_int_equal(c.n, json_integer_value(json_object_get(entry, "n_24")));
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)fnv_of_words(c.pcm, c.n));
    c.same_pcm = strcmp(hex, json_string_value(json_object_get(entry, "fnv_24"))) == 0;
    c.n_frames = (size_t)json_integer_value(json_object_get(entry, "frames"));
    c.margin = json_number_value(json_object_get(entry, "margin"));
    snprintf(name, sizeof name, "%s/codes", c.name);
    c.codes = tensor_set_find(set, name);
    assert_non_null(c.codes);
    assert_true(c.codes->type == DTYPE_U8 || c.codes->type == DTYPE_I16);
    assert_int_equal(c.codes->dims[0], c.n_frames);
    snprintf(name, sizeof name, "%s/x_vector", c.name);
    c.vector = tensor_set_find(set, name);
    return c;
}

/* Calls fn for every case of a golden file. */
static inline void each_heard(
    const char *path, void (*fn)(struct heard_case *c, void *user), void *user)
{
    struct tensor_set *set;
    utter_error error;
    json_t *cases;
    size_t i;
    json_t *entry;
    if (tensor_set_open_file(&set, path, &error)) {
        fail_msg("%s", error.text);
    }
    const char *text = tensor_set_metadata(set, "cases");
    assert_non_null(text);
    assert_int_equal(json_text(&cases, text, strlen(text), JSON_LARGE, path, NULL), UTTER_OK);
    json_array_foreach(cases, i, entry)
    {
        if (json_integer_value(json_object_get(entry, "n_24")) <= LISTEN_LONGEST_S * LISTEN_RATE) {
            struct heard_case c = heard_case_make(set, entry);
            fn(&c, user);
            memory_free(c.pcm);
        }
    }
    json_decref(cases);
    tensor_set_close(&set);
}

#endif
