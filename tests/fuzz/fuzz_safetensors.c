/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a safetensors file: what opens can be read to its last byte and found by its name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/fuzz/took.h"
#include "weights/bind.h"
#include "weights/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void touch(const struct tensor_set *set)
{
    struct bind b;
    utter_error error;
    unsigned sum = 0;
    size_t n_bytes = 0;
    bind_begin(&b, set, "fuzz");
    for (size_t i = 0; i < tensor_set_count(set); i++) {
        const struct tensor *t = tensor_set_at(set, i);
        for (size_t k = 0; k < t->bytes; k++) {
            sum += ((const uint8_t *)t->data)[k];
        }
        n_bytes += t->bytes;
        if (tensor_set_find(set, t->name) != t) {
            abort();
        }
        bind_weight(&b, t->name, 1, 2, t->n_dims, t->dims);
        memory_free(bind_vector(&b, t->name, -1, -1, t->n_dims ? t->dims[0] : 1));
    }
    tensor_set_metadata(set, "format");
    bind_finish(&b, &error);
    if (n_bytes > tensor_set_bytes(set) || sum > 255 * (uint64_t)n_bytes) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint8_t *copy = memory_new(bytes, 1); /* aligned, as a mapped file is */
    struct tensor_set *set;
    utter_error error;
    if (copy) {
        if (bytes) {
            memcpy(copy, data, bytes);
        }
        if (tensor_set_open_memory(&set, copy, bytes, "fuzz", &error) == UTTER_OK) {
            touch(set);
            replay_takes();
        } else if (set || error.text[0] == 0 || strchr(error.text, '\n')) {
            abort();
        }
        tensor_set_close(&set);
        memory_free(copy);
    }
    return 0;
}
