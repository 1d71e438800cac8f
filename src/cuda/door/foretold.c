/* SPDX-License-Identifier: Apache-2.0
 * What the GPU that is here will do with the model that is open, by the model of cuda/device/foretell.h. */
#include "cuda/device/foretell.h"

#include "cuda/door/backend_parts.h"
#include "cuda/persistent/persistent.h"

static double numbers_of(const struct cuda_matrix *m)
{
    return (double)m->rows * m->cols;
}

static double stack_numbers(const struct cuda_stack *stack)
{
    double n = 0;
    for (int i = 0; i < stack->n_layers; i++) {
        const struct cuda_layer *l = &stack->layers[i];
        n += numbers_of(&l->qkv) + numbers_of(&l->o) + numbers_of(&l->gate_up) + numbers_of(&l->down);
    }
    return n;
}

void backend_foretell(const struct backend *b, struct backend_memory *memory)
{
    const struct cuda_weights *w = &b->weights;
    const int codes = w->n_codebooks - 1;
    const struct foretell_card card = {.bytes_per_s = b->device.bytes_per_s,
        .clock_hz = b->device.clock_hz,
        .n_sms = b->device.arch.n_sms,
        .tensor = cuda_card_tensor(b->device.name, b->device.arch.capability),
        .l2_bytes = b->device.arch.l2_bytes,
        .overlaps = b->device.arch.overlaps};
    const struct foretell_model m = {.talker_width = w->talker.width,
        .talker_layers = w->talker.n_layers,
        .predictor_layers = w->predictor.n_layers,
        .n_codebooks = w->n_codebooks,
        .talker_weights = stack_numbers(&w->talker) + numbers_of(&w->talker_head),
        .predictor_weights = stack_numbers(&w->predictor) + numbers_of(&w->predictor_head[0]),
        .talker_bytes = (double)b->model->talker_frame_bytes,
        .predictor_bytes = (double)b->model->predictor_frame_bytes / codes,
        .vocoder_weights = cuda_vocoder_products(b->vocoder)};
    const int launch_lanes =
        cuda_frame_persistent(b->frame) ? frame_kernel_most(&b->weights, &b->device) : 0;
    const bool known = card.bytes_per_s > 0 && card.clock_hz > 0 && card.tensor > 0;
    for (int i = 0; i < BACKEND_FORETOLD && known; i++) {
        memory->step_s[i] = foretell_step(&card, &m, launch_lanes, 1 << i);
    }
}
