/* SPDX-License-Identifier: Apache-2.0
 * Watches all heads for one stream at a time, ranks them, and watches the best ones for all from then on. */
#include "engine/learn.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"

/* The cache's file for these weights. */
static utter_status cache_path(const struct learning *l, char *path, size_t size, utter_error *error)
{
    char name[64];
    snprintf(name, sizeof name, "heads-%016" PRIx64 ".json", model_heads_fingerprint(l->model));
    return file_join(path, size, l->folder, name, error);
}

static void read_cache(struct learning *l)
{
    char path[PATH_MAX];
    utter_error error; /* what cannot be read is learnt again */
    if (l->folder && cache_path(l, path, sizeof path, &error) == UTTER_OK && file_exists(path)) {
        l->over = heads_read(l->heads, l->model->config, path, &error) == UTTER_OK;
    }
}

static utter_status watch(struct learning *l, const struct talker_head *at, int n, utter_error *error)
{
    return l->ops->watch(l->backend, at, n, error);
}

utter_status learn_begin(struct learning *l, const utter_stream *s, utter_error *error)
{
    utter_status status = UTTER_OK;
    if (!l->ops->watch || l->heads->n > 0 || l->by) {
        return UTTER_OK;
    }
    if (!l->begun) {
        l->begun = true;
        read_cache(l);
        status = l->heads->n > 0 ? watch(l, l->heads->at, l->heads->n, error) : UTTER_OK;
        l->heads->n = status ? 0 : l->heads->n;
    }
    if (status || l->over) {
        return status;
    }
    if (l->rank.n == 0 && ((status = rank_init(&l->rank, l->model->config, error)) ||
                              (status = watch(l, l->rank.heads, l->rank.n, error)))) {
        rank_fini(&l->rank); /* what is not watched is begun again */
        return status;
    }
    l->by = s;
    return UTTER_OK;
}

void learn_frame(struct learning *l, const float *scores, int n_scores, int n_tokens, bool finished)
{
    rank_frame(&l->rank, scores, n_scores, n_tokens + finished);
}

/* ---- The end ---- */

static utter_status keep(struct learning *l, const char *path, utter_error *error)
{
    char own[PATH_MAX];
    utter_status status = UTTER_OK;
    if (!path && l->folder) {
        status = file_make_folder(l->folder, error);
        status = status ? status : cache_path(l, own, sizeof own, error);
        path = own;
    }
    return status || !path ? status : heads_write(l->heads, path, error);
}

static void tell(struct learning *l)
{
    int n = snprintf(l->note, sizeof l->note,
        l->heads->n > 0 ? "words: timed by heads"
                        : "words: no head of this model follows its "
                          "text: times are approximate");
    for (int i = 0; i < l->heads->n; i++) {
        const struct talker_head *h = &l->heads->at[i];
        n += snprintf(l->note + n, sizeof l->note - (size_t)n, " %d.%d", h->layer, h->head);
    }
}

/* What was found holds from now on; nothing: the times stay approximate. */
static utter_status decide(struct learning *l, utter_error *error)
{
    utter_status status = rank_choose(&l->rank, l->heads, error);
    status = status ? status : watch(l, l->heads->at, l->heads->n, error);
    l->heads->n = status ? 0 : l->heads->n;
    l->over = true;
    return status;
}

bool learn_end(struct learning *l, const utter_stream *s, int n_tokens, utter_finish finish)
{
    utter_error error;
    if (l->by != s || !s) {
        return false;
    }
    l->by = NULL;
    bool whole = finish == UTTER_FINISH_EOS || (l->listens && finish == UTTER_FINISH_MAX_FRAMES);
    l->n_tried += l->rank.paths[0].n > 0; /* one that did not speak tells nothing */
    rank_end(&l->rank, n_tokens, whole);
    if (l->listens || (!rank_enough(&l->rank) && l->n_tried < LEARN_MOST_UTTERANCES)) {
        return false;
    }
    if (decide(l, &error) == UTTER_OK && rank_enough(&l->rank)) {
        keep(l, NULL,
            &error); /* a cache that cannot be written costs the next run its first utterances */
    }
    rank_fini(&l->rank);
    tell(l);
    return true;
}

utter_status learn_anew(struct learning *l, utter_error *error)
{
    if (!l->ops->watch) {
        return error_set(error, UTTER_E_DEVICE,
            "the device %s does not show its heads (choose the cpu)", l->ops->name);
    }
    rank_fini(&l->rank);
    l->heads->n = l->n_tried = 0;
    l->over = false;
    l->begun = l->listens = true;
    return UTTER_OK;
}

utter_status learn_finish(struct learning *l, const char *path, utter_error *error)
{
    l->listens = false;
    utter_status status = decide(l, error);
    bool known =
        path || rank_enough(&l->rank); /* for other runs: too little tells nothing of the model */
    return status || !known ? status : keep(l, path, error);
}

void learn_fini(struct learning *l)
{
    rank_fini(&l->rank);
    memory_free(l->folder);
    *l = (struct learning){0};
}
