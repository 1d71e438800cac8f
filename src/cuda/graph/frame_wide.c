/* SPDX-License-Identifier: Apache-2.0
 * Which kernels make a product: those of few vectors (linear.cu), or, from CUDA_WIDE_FROM vectors on, those of
 * many (prompt/wide.cu). Both give the same bits, so that a lane need not know who is beside it. */
#include "cuda/graph/frame_parts.h"

static utter_status check(struct cuda_frame *f, cudaError_t result, utter_error *error)
{
    return cuda_device_check(f->device, result, "queue a product", error);
}

static struct cuda_wide wide_of(const struct cuda_frame *f, const struct cuda_linear *p, void *operand)
{
    return (struct cuda_wide){
        .linear = *p,
        .operand = operand,
        .scales = f->b.scales,
        .arch = &f->device->arch,
        .shape = -1,
    };
}

/* Prepares the operand of a product, unless the product before has written it. */
static utter_status prepare(struct cuda_frame *f, struct cuda_wide *w, utter_error *error)
{
    const bool ready = f->ready.x && f->ready.x == w->linear.x && f->ready.norm == w->linear.norm &&
                       f->ready.n_vectors == w->linear.n_vectors && cuda_wide_by_teams(w);
    f->ready.x = NULL;
    if (ready) {
        w->squares = f->b.squares;
        return UTTER_OK;
    }
    return check(f, cuda_wide_prepare(&f->queue, w), error);
}

/* Asks product w to write its result also as the operand of the next product, so that no kernel has
 * to prepare that. `norm`: the weights of the norm in front of the next product; NULL: there is
 * none, and nothing is asked for. */
static void write_next_operand(struct cuda_frame *f, struct cuda_wide *w, const float *norm)
{
    const struct cuda_linear *p = &w->linear;
    if (norm && p->matrix.rows % CUDA_TILE == 0 && cuda_wide_by_teams(w)) {
        w->next = f->b.operand;
        w->next_k_tiles = p->matrix.n_row_tiles;
        w->next_norm = norm;
        w->next_squares = f->b.squares;
        f->ready = (struct frame_operand){p->y, norm, p->n_vectors};
    }
}

utter_status frame_product(struct cuda_frame *f, const struct cuda_linear *p, utter_error *error)
{
    if (p->n_vectors < CUDA_WIDE_FROM) {
        return check(f, cuda_linear_queue(&f->queue, p), error);
    }
    struct cuda_wide w = wide_of(f, p, f->b.operand);
    utter_status status = prepare(f, &w, error);
    return status ? status : check(f, cuda_wide_multiply(&f->queue, &w), error);
}

utter_status frame_gated(struct cuda_frame *f, const struct cuda_linear *gate,
    const struct cuda_linear *down, const float *next_norm, utter_error *error)
{
    /* The gate leaves the operand itself, unless its last tile of columns would stay unwritten in part, or what is
     * left must be rounded, for which no block has enough columns. */
    if (gate->n_vectors < CUDA_WIDE_FROM || down->matrix.cols % CUDA_TILE != 0 ||
        down->matrix.format != CUDA_BF16) {
        utter_status status = frame_product(f, gate, error);
        return status ? status : frame_product(f, down, error);
    }
    struct cuda_wide first = wide_of(f, gate, f->b.operand);
    struct cuda_wide second = wide_of(f, down, f->b.inner);
    first.next = f->b.inner;
    first.next_k_tiles = down->matrix.n_k_tiles;
    utter_status status = prepare(f, &first, error);
    if (status || (status = check(f, cuda_wide_multiply(&f->queue, &first), error))) {
        return status;
    }
    write_next_operand(f, &second, next_norm);
    return check(f, cuda_wide_multiply(&f->queue, &second), error);
}

static utter_status run_attend(struct cuda_frame *f, const struct cuda_attend *a, utter_error *error)
{
    /* By the stack alone: rows of a prompt get the same, however many come at once. */
    const bool shared =
        a->prompt && (int)CUDA_WIDE_FROM < (int)CUDA_MAX_VECTORS && cuda_attend_rows_suits(a->stack);
    return check(
        f, shared ? cuda_attend_rows_queue(&f->queue, a) : cuda_attend_queue(&f->queue, a), error);
}

utter_status frame_attended(struct cuda_frame *f, const struct cuda_attend *attend,
    const struct cuda_linear *o, const float *next_norm, utter_error *error)
{
    struct cuda_attend a = *attend;
    if (o->n_vectors == 0) {
        return run_attend(f, &a, error);
    }
    if (o->n_vectors < CUDA_WIDE_FROM || o->matrix.cols % CUDA_TILE != 0 ||
        o->matrix.format != CUDA_BF16) {
        utter_status status = run_attend(f, &a, error);
        return status ? status : frame_product(f, o, error);
    }
    struct cuda_wide w = wide_of(f, o, f->b.inner);
    a.operand = f->b.inner;
    a.operand_groups = cuda_wide_groups(o->n_vectors);
    utter_status status = run_attend(f, &a, error);
    write_next_operand(f, &w, next_norm);
    return status ? status : check(f, cuda_wide_multiply(&f->queue, &w), error);
}

utter_status frame_layers(struct cuda_frame *f, const struct cuda_linear *first,
    const struct cuda_attend *attend, int *n_layers, utter_error *error)
{
    const struct cuda_stack *s = attend->stack;
    const int from = s->width > 1024 ? CUDA_LAYERS_FROM_WIDE : CUDA_LAYERS_FROM;
    *n_layers = 0;
    if (f->layer_blocks == 0 || first->n_vectors < from || !cuda_layers_suit(s)) {
        return UTTER_OK;
    }
    struct cuda_wide w = wide_of(f, first, f->b.operand);
    struct cuda_layers layers = {
        .stack = s,
        .n_layers = s->n_layers - 1,
        .attend = *attend,
        .x = (float *)first->x,
        .x_stride = first->x_stride,
        .operand = f->b.operand,
        .inner = f->b.inner,
        .scales = f->b.scales,
        .squares = f->b.squares,
        .angles = f->b.angles,
        .signals = f->b.signals,
        .arrivals = f->b.arrivals,
        .arrivals_before = f->arrivals,
        .n_blocks = f->layer_blocks,
        .patience = f->layer_patience,
        .lost = f->layers_lost_at,
        .lost_on_device = f->b.lost,
    };
    utter_status status = check(f, cuda_wide_prepare(&f->queue, &w), error);
    if (status) {
        return status;
    }
    cudaError_t result = cuda_layers_queue(&f->queue, &layers);
    if (cuda_device_refused(result)) {
        cudaGetLastError(); /* others hold a part of the GPU: without this kernel from now on */
        f->layer_blocks = 0;
        f->ready.x = NULL;
        return UTTER_OK;
    }
    if ((status = check(f, result, error))) {
        return status;
    }
    *n_layers = layers.n_layers;
    f->layers_unseen = true;
    f->arrivals += cuda_layers_counts(&layers);
    f->ready =
        (struct frame_operand){first->x, s->layers[layers.n_layers].input_norm, first->n_vectors};
    return UTTER_OK;
}
