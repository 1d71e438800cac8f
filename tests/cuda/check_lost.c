/* SPDX-License-Identifier: Apache-2.0
 * A frame by graphs behind the word in device memory that tells what is lost (parts/steps.h): it is made where a late
 * block of the frame kernel has left its bit there; it is not behind a prompt that is lost, and collect says so where
 * the host was not told of the prompt. Needs a GPU; goes on after a failure. Usage: check_lost CHECKPOINT ...; ends
 * with `N passed, N failed`. */
#include "cuda/door/backend_parts.h"
#include "cuda/graph/frame_parts.h"
#include "cuda/persistent/args.h"
#include "tests/cuda/drive_backend.h"

enum { SAID = 2 };

struct spoken {
    int32_t codes[SAID][MAX_CODEBOOKS];
};

static bool write_word(struct run *r, uint32_t word)
{
    const cudaError_t result =
        cudaMemcpy(r->b->frame->b.lost, &word, sizeof word, cudaMemcpyHostToDevice);
    return result == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
}

/* An utterance of lane 0, with this word in front of its last frame. */
static utter_status speak(struct run *r, uint32_t word, struct spoken *to, utter_error *error)
{
    struct row rows[N_ROWS];
    struct lane_out out;
    utter_status status = r->ops->lane_reset(r->b, 0, &GREEDY, error);
    make_rows(r->config, 1, rows, 10);
    status = status ? status : r->ops->prefill(r->b, 0, rows, 10, error);
    for (int t = 0; t < SAID && !status; t++) {
        const struct frame_in in = {0, text_of(r->config, 1, t), NULL};
        if (!write_word(r, t == SAID - 1 ? word : 0)) {
            return error_set(error, UTTER_E_DEVICE, "the word of what is lost: not written");
        }
        status = r->ops->frame(r->b, &in, 1, error);
        status = status ? status : r->ops->collect(r->b, 0, &out, error);
        if (!status) {
            memcpy(to->codes[t], out.codes, (size_t)r->config->n_codebooks * sizeof(int32_t));
        }
    }
    return status;
}

static void check_same(struct run *r, uint32_t word, const struct spoken *wanted, const char *what)
{
    static struct spoken got;
    utter_error error;
    result(said(speak(r, word, &got, &error), &error, what) && memcmp(&got, wanted, sizeof got) == 0,
        "%s: the same codes", what);
}

static void check(struct run *r)
{
    static struct spoken wanted, none;
    utter_error error;
    if (!said(speak(r, 0, &wanted, &error), &error, "speech")) {
        return;
    }
    check_same(r, FRAME_LATE, &wanted, "behind a late block of the frame kernel");
    result(speak(r, CUDA_PROMPT_LOST, &none, &error) == UTTER_E_DEVICE,
        "behind a lost prompt of which the host was not told: not handed out");
    check_same(r, 0, &wanted, "and behind nothing that is lost");
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        utter_error error;
        struct model *model;
        struct backend_options options = {
            .n_lanes = 1, .lane_positions = POSITIONS, .cpu_kernels = "graph"};
        struct run r = {.ops = &cuda_backend};
        folder = argv[i];
        if (!said(model_open(&model, folder, &error), &error, "model")) {
            continue;
        }
        r.config = model->config;
        if (said(r.ops->open(&r.b, model, &options, &error), &error, "open")) {
            check(&r);
            r.ops->close(&r.b);
        }
        model_close(&model);
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
