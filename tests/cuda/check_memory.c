/* SPDX-License-Identifier: Apache-2.0
 * The device memory that one lane needs, all in, by the same count that opening makes: whether the released models fit
 * small cards with packed weights. Nothing is allocated and no weight is looked at, so files without values do
 * (make_model --hollow). Usage: check_memory CHECKPOINT ...; ends with `N passed, N failed`. */
#include <stdio.h>

#include "base/memory.h"
#include "cuda/door/backend_parts.h"

static int n_passed, n_failed;

/* GB that a lane with the least of cache may take; 0: no promise. */
static double promised(const struct config *c, enum dtype type)
{
    const bool wide = c->talker.width == 2048;
    return type == DTYPE_Q8 ? (wide ? 3.0 : 1.7) : type == DTYPE_Q4 ? (wide ? 2.2 : 1.3) : 0;
}

/* As if the matrices that may be packed were: their types say how many bytes they take. */
static bool narrow(struct model *model, enum dtype type)
{
    struct weight **list;
    int n, n_narrow;
    utter_error error;
    if (model_packable(model, &list, &n, &n_narrow, &error)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        list[i]->type = i < n_narrow ? type : DTYPE_Q8;
    }
    memory_free(list);
    return true;
}

static void check(struct model *model, const char *folder, enum dtype type)
{
    uint64_t vocoder, lane;
    cuda_vocoder_plan(model, &vocoder, &lane);
    const double fixed = 1e-9 * (double)backend_fixed_bytes(model),
                 all = fixed + 1e-9 * (double)(backend_least_lane_bytes(model) +
                                               backend_rows_bytes(model, CUDA_LEAST_PAGES)),
                 most = promised(model->config, type);
    const bool good = most == 0 || all <= most;
    printf("%s %s, %s: %.3f GB with one lane; weights %.3f, vocoder %.3f, frames %.3f, a lane %.3f\n",
        good ? "ok  " : "FAIL", folder, weights_name(type), all,
        1e-9 * (double)cuda_weights_plan(model), 1e-9 * (double)vocoder,
        1e-9 * (double)cuda_frame_plan(model), all - fixed);
    n_passed += good;
    n_failed += !good;
}

int main(int argc, char **argv)
{
    static const enum dtype types[] = {DTYPE_BF16, DTYPE_Q8, DTYPE_Q4};
    for (int i = 1; i < argc; i++) {
        for (int t = 0; t < 3; t++) {
            struct model *model;
            utter_error error;
            if (model_open(&model, argv[i], &error)) {
                printf("FAIL %s\n", error.text);
                n_failed++;
                break;
            }
            if (types[t] == DTYPE_BF16 || narrow(model, types[t])) {
                check(model, argv[i], types[t]);
            }
            model_close(&model);
        }
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
