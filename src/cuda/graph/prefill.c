/* SPDX-License-Identifier: Apache-2.0
 * A prompt on the GPU, in pieces. Comes in: rows of any number, in the caller's memory. Goes out: pieces of at most
 * CUDA_MAX_VECTORS rows, copied to mapped memory and queued one behind the other (frame_queue_prompt), while the
 * device still works on the piece before. The pieces do not show in the bits. Rows that are weighed wait piece by
 * piece: what comes back stands where the next one writes. A piece stays in its stage until it is known that the kernel
 * of layers has not lost it. */
#include <string.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "cuda/device/wait.h"
#include "cuda/graph/frame_parts.h"

static void stage_rows(struct cuda_frame *f, struct frame_stage *s, const struct row *rows, int n)
{
    size_t width = (size_t)f->weights->talker.width;
    for (int i = 0; i < n; i++) {
        struct cuda_row *to = &s->rows[i];
        to->text = rows[i].text;
        to->codec = (int32_t)rows[i].codec;
        to->id = rows[i].id;
        if (rows[i].codec == ROW_CODES) {
            memcpy(to->codes, rows[i].codes, (size_t)f->weights->n_codebooks * sizeof *to->codes);
        } else if (rows[i].codec == ROW_VECTOR) {
            memcpy(s->vectors + (size_t)i * width, rows[i].vector, width * sizeof(float));
        }
    }
}

/* So long a thread looks for a prompt's end all the time: how long it naps through the frame behind it counts from
 * there. */
static const double LOOKING_S = 0.001;

static utter_status wait_stream(struct cuda_frame *f, utter_error *error)
{
    return cuda_wait_stream(f->device, f->queue.stream, "a prompt", error);
}

/* Queues a stage's rows. What was refused is tried again: rows that are written twice are the same. */
static utter_status queue_rows(struct cuda_frame *f, const struct frame_stage *s, utter_error *error)
{
    utter_status status = UTTER_E_MEMORY;
    for (int i = 0; i < CUDA_TRIES && status == UTTER_E_MEMORY; i++) {
        status = s->weighs ? frame_queue_weigh(f, s, s->lane, s->position, s->n, s->first_row, error)
                           : frame_queue_prompt(
                                 f, s, s->lane, s->position, s->n, s->last, s->first_row, error);
        if (status == UTTER_E_MEMORY) {
            const utter_status waited = wait_stream(f, error);
            status = waited ? waited : status;
            f->ready.x = NULL;
            cuda_wait_refused(i);
        }
    }
    f->prompt_unseen = true;
    return status ? status
                  : cuda_device_check(
                        f->device, cudaEventRecord(s->taken, f->queue.stream), "a prompt", error);
}

/* ---- Prompts that were lost ---- */

bool frame_prompts_lost(const struct cuda_frame *f)
{
    return *(const volatile uint32_t *)f->layers_lost != 0;
}

/* Stages in the order in which they were queued. */
static struct frame_stage *stage_at(struct cuda_frame *f, unsigned i)
{
    return &f->stages[(f->next_stage + i) % FRAME_STAGES];
}

/* The kernel of layers as new; it is not used any more once it has lost as often as anything is tried. */
static utter_status clear_layers(struct cuda_frame *f, utter_error *error)
{
    cudaError_t result =
        cudaMemsetAsync(f->b.signals, 0, 2 * CUDA_MAX_VECTORS * sizeof *f->b.signals, f->queue.stream);
    result =
        result ? result : cudaMemsetAsync(f->b.arrivals, 0, sizeof *f->b.arrivals, f->queue.stream);
    result = result ? result : cudaMemsetAsync(f->b.lost, 0, sizeof *f->b.lost, f->queue.stream);
    f->arrivals = 0;
    f->ready.x = NULL;
    if (++f->layer_losses == CUDA_TRIES) {
        f->layer_blocks = 0;
    }
    return cuda_device_check(f->device, result, "a prompt", error);
}

static void all_are_sure(struct cuda_frame *f)
{
    for (int i = 0; i < FRAME_STAGES; i++) {
        f->stages[i].unsure = false;
    }
}

/* All that is unsure once more, without the kernel of layers. Until that is queued, prompts are still told to be lost:
 * whoever comes next makes them again. */
static utter_status read_again(struct cuda_frame *f, utter_error *error)
{
    utter_status status = wait_stream(f, error);
    status = status ? status : clear_layers(f, error);
    const int blocks = f->layer_blocks;
    f->layer_blocks = 0;
    for (unsigned i = 0; i < FRAME_STAGES && !status; i++) {
        const struct frame_stage *s = stage_at(f, i);
        status = s->unsure ? queue_rows(f, s, error) : UTTER_OK;
    }
    f->layer_blocks = blocks;
    if (!status) {
        *f->layers_lost = 0;
        all_are_sure(f);
    }
    return status;
}

utter_status frame_see_prompts(struct cuda_frame *f, utter_error *error)
{
    if (!f->prompt_unseen) {
        return UTTER_OK;
    }
    const double begin = clock_seconds();
    const cudaEvent_t end = stage_at(f, FRAME_STAGES - 1)->taken;
    while (cudaEventQuery(end) == cudaErrorNotReady && clock_seconds() - begin < LOOKING_S) {
    }
    utter_status status = cuda_wait_for(f->device, end, "a prompt", error);
    if (status) {
        return status;
    }
    f->prompt_unseen = f->layers_unseen = false;
    if (!frame_prompts_lost(f)) {
        all_are_sure(f);
    }
    return UTTER_OK;
}

utter_status cuda_frame_settle(struct cuda_frame *f, utter_error *error)
{
    utter_status status = f->layers_unseen ? frame_see_prompts(f, error) : UTTER_OK;
    return !status && frame_prompts_lost(f) ? read_again(f, error) : status;
}

/* ---- Pieces ---- */

/* The next stage, once the device has taken what is in it, with these rows. */
static utter_status next_stage(
    struct cuda_frame *f, const struct row *rows, int n, struct frame_stage **stage, utter_error *error)
{
    struct frame_stage *s = *stage = stage_at(f, 0);
    utter_status status = cuda_wait_for(f->device, s->taken, "a prompt", error);
    if (!status && frame_prompts_lost(f)) {
        status = cuda_frame_settle(f, error);
        status = status ? status : cuda_wait_for(f->device, s->taken, "a prompt", error);
    }
    if (!status) {
        s->unsure = false;
        f->next_stage++;
        stage_rows(f, s, rows, n);
    }
    return status;
}

utter_status cuda_frame_prefill(
    struct cuda_frame *f, int lane, int position, const struct row *rows, int n, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (int done = 0, some; done < n && !status; done += some) {
        struct frame_stage *s;
        some = min(n - done, CUDA_MAX_VECTORS);
        if ((status = next_stage(f, rows + done, some, &s, error))) {
            return status;
        }
        s->lane = lane;
        s->position = position + done;
        s->n = some;
        s->first_row = done;
        s->last = done + some == n;
        s->weighs = false;
        status = queue_rows(f, s, error);
        s->unsure = !status && f->layers_unseen;
    }
    return status;
}

/* One piece; it is waited for, and once more where it was lost. */
static utter_status weigh_piece(struct cuda_frame *f, struct frame_stage *s, utter_error *error)
{
    utter_status status = queue_rows(f, s, error);
    s->unsure = !status && f->layers_unseen;
    status = status ? status : cuda_wait_for(f->device, s->taken, "rows that are weighed", error);
    if (!status && frame_prompts_lost(f)) {
        status = read_again(f, error);
        status = status ? status : cuda_wait_for(f->device, s->taken, "rows that are weighed", error);
    }
    s->unsure = false;
    return status;
}

utter_status cuda_frame_weigh(struct cuda_frame *f, int lane, int position, const struct row *rows,
    int n, const int32_t *codes, struct likelihood *likelihoods, utter_error *error)
{
    utter_status status = cuda_frame_settle(f, error);
    for (int done = 0, some; done < n && !status; done += some) {
        struct frame_stage *s;
        some = min(n - done, CUDA_MAX_VECTORS);
        if ((status = next_stage(f, rows + done, some, &s, error))) {
            return status;
        }
        memcpy(s->codes, codes + done, (size_t)some * sizeof *codes);
        s->lane = lane;
        s->position = position + done;
        s->n = some;
        s->first_row = done;
        s->weighs = true;
        status = weigh_piece(f, s, error);
        for (int i = 0; i < some && !status; i++) {
            if (codes[done + i] >= 0) {
                likelihoods[done + i] = s->likelihoods[i];
            }
        }
    }
    return status;
}
