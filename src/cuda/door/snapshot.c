/* SPDX-License-Identifier: Apache-2.0
 * A lane's beginning, kept in device memory: whole pages of the talker's cache, and the vocoder's state. */
#include "base/memory.h"
#include "cuda/door/backend_parts.h"

struct backend_snapshot {
    int n_rows;
    struct cuda_arena arena;
    float *pages;  /* one after the other; what lies behind n_rows in the last one does not matter */
    void *vocoder; /* NULL: not kept */
};

static int pages_of(int n_rows)
{
    return (n_rows + CUDA_PAGE - 1) / CUDA_PAGE;
}

static void lay_out(struct backend_snapshot *s, const struct backend *b, bool vocoder)
{
    uint64_t page_bytes = b->lanes.page_floats * sizeof(float);
    s->pages = cuda_arena_take(&s->arena, (uint64_t)pages_of(s->n_rows) * page_bytes);
    s->vocoder = vocoder ? cuda_arena_take(&s->arena, cuda_vocoder_state_bytes(b->vocoder)) : NULL;
}

/* Between the snapshot and a lane that has the pages. */
static utter_status copy(
    struct backend *b, const struct backend_snapshot *s, int lane, bool keep, utter_error *error)
{
    const struct cuda_lanes *l = &b->lanes;
    const int32_t *table = b->pages.table + (int64_t)lane * l->pages_stride;
    utter_status status = UTTER_OK;
    for (int i = 0; i < pages_of(s->n_rows) && !status; i++) {
        float *of_lane = l->cache + (uint64_t)table[i] * l->page_floats;
        float *of_snapshot = s->pages + (uint64_t)i * l->page_floats;
        status = backend_check(b,
            cudaMemcpyAsync(keep ? of_snapshot : of_lane, keep ? of_lane : of_snapshot,
                l->page_floats * sizeof(float), cudaMemcpyDeviceToDevice, b->stream),
            "copy a snapshot", error);
    }
    if (!status && s->vocoder) {
        void *state = cuda_vocoder_state(b->vocoder, lane);
        status = backend_check(b,
            cudaMemcpyAsync(keep ? s->vocoder : state, keep ? state : s->vocoder,
                cuda_vocoder_state_bytes(b->vocoder), cudaMemcpyDeviceToDevice, b->stream),
            "copy a snapshot", error);
    }
    return status;
}

utter_status backend_lane_keep(struct backend *b, int lane, int n_rows, bool vocoder,
    struct backend_snapshot **at, utter_error *error)
{
    *at = NULL;
    utter_status status = backend_enter(b, lane, error);
    if (status) {
        return status;
    }
    if (n_rows < 1 || n_rows > b->of[lane].position || b->of[lane].n_frames > 0) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%d rows to keep of %d, after %d frames: only of a new prompt", n_rows,
            b->of[lane].position, b->of[lane].n_frames);
    }
    if ((status = backend_settle(b, error))) {
        return status;
    }
    struct backend_snapshot *s = memory_new(1, sizeof *s);
    if (!s) {
        return error_memory(error, "a snapshot");
    }
    s->n_rows = n_rows;
    lay_out(s, b, vocoder);
    status = cuda_arena_open(&s->arena, &b->device, "a snapshot", error);
    if (!status) {
        lay_out(s, b, vocoder);
        b->busy = true;
        status = copy(b, s, lane, true, error);
    }
    if (status) {
        backend_snapshot_free(b, &s);
    }
    *at = s;
    return status;
}

utter_status backend_lane_resume(
    struct backend *b, int lane, const struct backend_snapshot *s, utter_error *error)
{
    utter_status status = backend_enter(b, lane, error);
    if (status) {
        return status;
    }
    if (b->of[lane].position > 0 || s->n_rows >= b->lanes.pages_stride * CUDA_PAGE) {
        return error_set(
            error, UTTER_E_ARGUMENT, "lane %d: a snapshot goes into a lane that was just reset", lane);
    }
    if ((status = backend_grow(b, lane, s->n_rows, error))) {
        return status;
    }
    b->busy = true;
    b->of[lane].position = s->n_rows;
    return copy(b, s, lane, false, error);
}

void backend_snapshot_free(struct backend *b, struct backend_snapshot **at)
{
    struct backend_snapshot *s = *at;
    if (s && !b->device.hangs) {
        backend_settle(b, NULL); /* it may still be read */
        cuda_arena_close(&s->arena);
        memory_free(s);
    }
    *at = NULL;
}
