/* SPDX-License-Identifier: Apache-2.0
 * Watched heads: which, and the memory that a lane's scores go to. Kernels write them to mapped memory beside
 * attention (parts/look.cuh, persistent/attend.cuh); they are there when the frame is. */
#include "cuda/door/backend_parts.h"

utter_status backend_watch(
    struct backend *b, const struct talker_head *heads, int n, utter_error *error)
{
    utter_status status = cuda_device_enter(&b->device, error);
    if (status || (status = request_watch(b->model->config, heads, n, error)) ||
        (status = backend_settle(b, error))) {
        return status;
    }
    for (int i = 0; i < b->lanes.n; i++) {
        b->of[i].look.begin = b->of[i].look.end = 0;
        b->of[i].out.scores = NULL;
        b->of[i].out.n_scores = 0;
    }
    if (n == 0 && b->n_watched == 0) {
        return UTTER_OK;
    }
    b->n_watched = 0; /* should the next call fail */
    status = cuda_frame_watch(b->frame, heads, n, error);
    b->n_watched = status ? 0 : n;
    return status;
}

/* Room for n scores, which the lane keeps. */
static utter_status make_room(struct backend *b, struct lane *l, size_t n, utter_error *error)
{
    void *at;
    utter_status status = n > l->scores_room ? backend_settle(b, error) : UTTER_OK;
    if (status || n <= l->scores_room) {
        return status;
    }
    cuda_pinned_close(l->scores);
    l->scores = NULL;
    l->scores_room = 0;
    status = cuda_pinned_open(
        &b->device, n * sizeof *l->scores, (void **)&l->scores, &at, "scores of watched heads", error);
    l->look.scores = at;
    l->scores_room = status ? 0 : n;
    return status;
}

utter_status backend_look(struct backend *b, int lane, int begin, int end, utter_error *error)
{
    utter_status status = backend_enter(b, lane, error);
    if (status) {
        return status;
    }
    struct lane *l = &b->of[lane];
    const struct request_lane at = backend_standing(b, l);
    l->look.begin = l->look.end = 0;
    if ((status = request_look(&at, begin, end, error)) ||
        (status = make_room(b, l, (size_t)b->n_watched * (size_t)(end - begin), error))) {
        return status;
    }
    l->look.begin = begin;
    l->look.end = b->n_watched > 0 ? end : begin;
    return UTTER_OK;
}

void backend_tell_scores(struct lane *l)
{
    if (l->look.end > l->look.begin) {
        l->out.scores = l->scores;
        l->out.n_scores = cuda_look_rows(&l->look, l->position);
    }
}
