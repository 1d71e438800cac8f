/* SPDX-License-Identifier: Apache-2.0
 * The memory of all lanes, and the pages of the talker's cache: which lane holds which. Owns both. */
#include "cuda/device/lanes.h"

#include "base/memory.h"
#include "base/minmax.h"

static uint64_t page_floats(const struct model *m)
{
    const struct stack_config *t = &m->config->talker;
    return (uint64_t)t->n_layers * (uint64_t)t->n_kv_heads * 2 * CUDA_PAGE * (uint64_t)t->head;
}

uint64_t cuda_lanes_page_bytes(const struct model *model)
{
    return page_floats(model) * sizeof(float);
}

int cuda_lanes_pages(int n_lanes, int lane_positions)
{
    int64_t wanted = (int64_t)n_lanes * CUDA_LANE_POSITIONS;
    int64_t most =
        (int64_t)n_lanes * (lane_positions + CUDA_PAGE); /* a lane's last page may not be full */
    wanted = min(max(wanted, CUDA_LONE_POSITIONS), most);
    return (int)((wanted + CUDA_PAGE - 1) / CUDA_PAGE);
}

static void lay_out(struct cuda_lanes *l, struct cuda_arena *arena, const struct model *m, int n,
    int n_pages, int lane_positions)
{
    const struct config *c = m->config;
    const struct stack_config *p = &c->predictor;
    uint64_t width = (uint64_t)(c->talker.width + CUDA_TILE - 1) / CUDA_TILE * CUDA_TILE;
    uint64_t vocabulary = (uint64_t)c->codec_vocabulary, lanes = (uint64_t)n;
    l->n = n;
    l->n_pages = n_pages;
    l->page_floats = page_floats(m);
    l->pages_stride = (lane_positions + CUDA_PAGE - 1) / CUDA_PAGE;
    if (n_pages > 0) { /* no lane can hold more */
        l->pages_stride = min(l->pages_stride, n_pages);
    }
    l->predictor_floats = (uint64_t)p->n_layers * (uint64_t)p->n_kv_heads * 2 *
                          (uint64_t)c->n_codebooks * (uint64_t)p->head;
    l->state = cuda_arena_take(arena, lanes * sizeof *l->state);
    l->hidden = cuda_arena_take(arena, lanes * width * sizeof(float));
    l->logits = cuda_arena_take(arena, lanes * vocabulary * sizeof(float));
    l->seen = cuda_arena_take(arena, lanes * vocabulary);
    l->sum = cuda_arena_take(arena, lanes * width * sizeof(float));
    l->codes =
        cuda_arena_take(arena, lanes * BACKEND_MAX_FEED * (uint64_t)c->n_codebooks * sizeof(int32_t));
    l->pages = cuda_arena_take(arena, lanes * (uint64_t)l->pages_stride * sizeof(int32_t));
    l->predictor_cache = cuda_arena_take(arena, lanes * l->predictor_floats * sizeof(float));
    l->cache = cuda_arena_take(arena, (uint64_t)n_pages * l->page_floats * sizeof(float));
}

uint64_t cuda_lanes_lane_bytes(const struct model *model)
{
    struct cuda_lanes lanes = {0};
    struct cuda_arena arena = {0};
    lay_out(&lanes, &arena, model, 1, 0, model->config->max_positions);
    return arena.used;
}

utter_status cuda_lanes_open(struct cuda_pages *pages, struct cuda_lanes *lanes,
    const struct model *model, struct cuda_device *device, int n_lanes, int n_pages, int lane_positions,
    utter_error *error)
{
    void *unused_view, *table;
    pages->device = device;
    pages->lanes = lanes;
    lay_out(lanes, &pages->arena, model, n_lanes, n_pages, lane_positions);
    utter_status status = cuda_arena_open(&pages->arena, device, "lanes", error);
    if (status) {
        return status;
    }
    lay_out(lanes, &pages->arena, model, n_lanes, n_pages, lane_positions);
    status =
        cuda_pinned_open(device, (uint64_t)n_lanes * (uint64_t)lanes->pages_stride * sizeof(int32_t),
            &table, &unused_view, "pinned memory for lanes", error);
    pages->table = table;
    pages->unused = memory_new((size_t)n_pages, sizeof *pages->unused);
    pages->held = memory_new((size_t)n_lanes, sizeof *pages->held);
    if (!status && (!pages->unused || !pages->held)) {
        status = error_memory(error, "lanes");
    }
    if (status) {
        cuda_lanes_close(pages);
        return status;
    }
    for (int i = 0; i < n_pages; i++) {
        pages->unused[pages->n_unused++] = n_pages - 1 - i;
    }
    return UTTER_OK;
}

void cuda_lanes_close(struct cuda_pages *pages)
{
    cuda_arena_close(&pages->arena);
    cuda_pinned_close(pages->table);
    memory_free(pages->unused);
    memory_free(pages->held);
    *pages = (struct cuda_pages){0};
}

utter_status cuda_lanes_grow(
    struct cuda_pages *pages, int lane, int n_positions, cudaStream_t stream, utter_error *error)
{
    const struct cuda_lanes *l = pages->lanes;
    int wanted = (n_positions + CUDA_PAGE - 1) / CUDA_PAGE, held = pages->held[lane];
    if (wanted <= held) {
        return UTTER_OK;
    }
    if (wanted > l->pages_stride || wanted - held > pages->n_unused) {
        return error_set(error, UTTER_E_MEMORY,
            "lane %d: no room for %d positions on the GPU: all lanes together hold %d (open the model "
            "with fewer "
            "lanes)",
            lane, n_positions, l->n_pages * CUDA_PAGE);
    }
    int32_t *table = pages->table + (int64_t)lane * l->pages_stride;
    for (int i = held; i < wanted; i++) {
        table[i] = pages->unused[--pages->n_unused];
    }
    pages->held[lane] = wanted;
    return cuda_device_check(pages->device,
        cudaMemcpyAsync(l->pages + (int64_t)lane * l->pages_stride + held, table + held,
            (size_t)(wanted - held) * sizeof *table, cudaMemcpyHostToDevice, stream),
        "hand out cache pages", error);
}

void cuda_lanes_empty(struct cuda_pages *pages, int lane)
{
    const int32_t *table = pages->table + (int64_t)lane * pages->lanes->pages_stride;
    for (int i = pages->held[lane] - 1; i >= 0; i--) {
        pages->unused[pages->n_unused++] = table[i];
    }
    pages->held[lane] = 0;
}
