/* SPDX-License-Identifier: Apache-2.0
 * A lane's beginning, kept: keys and values of its first positions, and the vocoder's state. Owns the copy, in one
 * piece: keys [n_layers][n_rows][kv], values the same, then the vocoder's state. */
#include <string.h>

#include "base/memory.h"
#include "cpu/talker/lane.h"

struct backend_snapshot {
    int n_rows;
    float *keys, *values, *vocoder; /* vocoder NULL: not kept */
};

struct backend_snapshot *cpu_snapshot_new(const struct cpu_lane *lane, const struct model *model,
    const struct cpu_vocoder *vocoder, int n_rows, bool with_vocoder)
{
    const struct stack_config *shape = &model->config->talker;
    size_t kv = (size_t)shape->n_kv_heads * (size_t)shape->head, rows = (size_t)n_rows * kv;
    size_t half = (size_t)shape->n_layers * rows, head = sizeof(struct backend_snapshot);
    size_t state = with_vocoder ? cpu_vocoder_state_bytes(vocoder) : 0;
    struct backend_snapshot *s = memory_new(head + 2 * half * sizeof(float) + state, 1);
    if (!s) {
        return NULL;
    }
    float *data = (float *)(void *)(s + 1);
    *s = (struct backend_snapshot){n_rows, data, data + half, with_vocoder ? data + 2 * half : NULL};
    for (size_t i = 0; i < (size_t)shape->n_layers; i++) {
        size_t from = i * (size_t)lane->talker.capacity * kv;
        memcpy(s->keys + i * rows, lane->talker.keys + from, rows * sizeof(float));
        memcpy(s->values + i * rows, lane->talker.values + from, rows * sizeof(float));
    }
    if (with_vocoder) {
        cpu_vocoder_state_get(vocoder, lane->vocoder, s->vocoder);
    }
    return s;
}

void cpu_snapshot_put(const struct backend_snapshot *s, struct cpu_lane *lane,
    const struct model *model, const struct cpu_vocoder *vocoder)
{
    const struct stack_config *shape = &model->config->talker;
    size_t kv = (size_t)shape->n_kv_heads * (size_t)shape->head, rows = (size_t)s->n_rows * kv;
    for (size_t i = 0; i < (size_t)shape->n_layers; i++) {
        size_t to = i * (size_t)lane->talker.capacity * kv;
        memcpy(lane->talker.keys + to, s->keys + i * rows, rows * sizeof(float));
        memcpy(lane->talker.values + to, s->values + i * rows, rows * sizeof(float));
    }
    lane->position = s->n_rows;
    if (s->vocoder) {
        cpu_vocoder_state_put(vocoder, lane->vocoder, s->vocoder);
    }
}

int cpu_snapshot_rows(const struct backend_snapshot *snapshot)
{
    return snapshot->n_rows;
}

void cpu_snapshot_free(struct backend_snapshot *snapshot)
{
    memory_free(snapshot);
}
