/* SPDX-License-Identifier: Apache-2.0
 * A prompt on the GPU, in pieces. Comes in: rows of any number, in the caller's memory. Goes out: pieces of at most
 * CUDA_MAX_VECTORS rows, copied to mapped memory and queued one behind the other (frame_queue_prompt), while the
 * device still works on the piece before. The pieces do not show in the bits. */
#include <string.h>

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

utter_status cuda_frame_prefill(
    struct cuda_frame *f, int lane, int position, const struct row *rows, int n, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (int done = 0; done < n && !status;) {
        struct frame_stage *s = &f->stages[f->next_stage++ % FRAME_STAGES];
        int some = min(n - done, CUDA_MAX_VECTORS);
        if ((status = cuda_wait_for(f->device, s->taken, "a prompt", error))) {
            return status;
        }
        stage_rows(f, s, rows + done, some);
        if ((status = frame_queue_prompt(
                 f, s, lane, position + done, some, done + some == n, done, error))) {
            return status;
        }
        status =
            cuda_device_check(f->device, cudaEventRecord(s->taken, f->queue.stream), "a prompt", error);
        done += some;
    }
    return status;
}
