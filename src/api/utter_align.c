/* SPDX-License-Identifier: Apache-2.0
 * Which heads of a model follow the text: it speaks, all heads are ranked, the best ones are kept. */
#include <string.h>

#include "api/api.h"
#include "base/memory.h"

/* One text, to its end. */
static utter_status speak(
    utter_model *model, const utter_stream_options *options, const char *text, utter_error *error)
{
    enum { PIECE = 1920 };
    float pcm[PIECE];
    size_t n;
    utter_stream *stream;
    utter_status status = utter_stream_open(&stream, model, options, error);
    if (status) {
        return status;
    }
    if (!(status = utter_stream_text(stream, text, strlen(text), error))) {
        status = utter_stream_finish(stream, error);
    }
    while (!status) {
        status = utter_stream_read(stream, pcm, PIECE, &n, error);
    }
    utter_stream_free(&stream);
    return status == UTTER_END ? UTTER_OK : status;
}

/* All heads in their order, to *heads. */
static utter_status list_heads(
    const struct stream_context *m, utter_head **heads, size_t *n_heads, utter_error *error)
{
    const struct rank *r = &m->learning.rank;
    struct ranked_head *at = memory_new((size_t)r->n, sizeof *at);
    *heads = memory_new((size_t)r->n, sizeof **heads);
    if (!at || !*heads) {
        memory_free(at);
        memory_free(*heads);
        *heads = NULL;
        return error_memory(error, "heads");
    }
    rank_order(r, at);
    for (int i = 0; i < r->n; i++) {
        (*heads)[i] = (utter_head){at[i].head.layer, at[i].head.head, i < m->heads.n, at[i].score};
    }
    *n_heads = (size_t)r->n;
    memory_free(at);
    return UTTER_OK;
}

utter_status utter_model_align_heads(utter_model *model, const utter_stream_options *options,
    const char *const *texts, size_t n, const char *path, utter_head **heads, size_t *n_heads,
    utter_error *error)
{
    utter_stream_options o;
    utter_status status =
        api_need(model && texts && heads && n_heads && n ? model : NULL, "an argument", error);
    if (status || (status = utter_stream_options_init(&o, model))) {
        return status;
    }
    struct stream_context *m = &model->engine.context;
    *heads = NULL;
    *n_heads = 0;
    for (size_t i = 0; i < n && !status; i++) {
        status = api_need(texts[i], "a text", error);
    }
    if (!status && options) {
        status = api_copy_sized(&o, sizeof o, options, options->size, "utter_stream_options", error);
    }
    if (status) {
        return status;
    }
    o.size = sizeof o;
    o.words = true;
    status = engine_is_idle(&model->engine)
                 ? learn_anew(&m->learning, error)
                 : error_set(error, UTTER_E_ARGUMENT, "a stream of the model is open (free it first)");
    for (size_t i = 0; i < n && !status; i++) {
        status = speak(model, &o, texts[i], error);
    }
    if (!status && !(status = learn_finish(&m->learning, path, error))) {
        status = list_heads(m, heads, n_heads, error);
    }
    m->learning.listens = false;
    rank_fini(&m->learning.rank);
    return status;
}
