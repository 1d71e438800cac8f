/* SPDX-License-Identifier: Apache-2.0
 * What the counters and the log learn of a speech: how it went, never what was said. */
#include "server/speech/speech_parts.h"

#include <string.h>

#include "server/loop/log.h"

const char *speech_finish_reason(enum utter_finish finish)
{
    return finish == UTTER_FINISH_EOS                                            ? "stop"
           : finish == UTTER_FINISH_MAX_FRAMES || finish == UTTER_FINISH_CONTEXT ? "length"
                                                                                 : "incomplete";
}

void speech_count_end(const struct speech *p)
{
    struct server *s = p->server;
    const struct speech_end *e = &p->end;
    bool is_back = e->refusal.code && strcmp(e->refusal.code, "given_back") == 0;
    enum metrics_outcome outcome = e->good ? METRICS_OK : is_back ? METRICS_GIVEN_BACK : METRICS_ERROR;
    s->metrics.requests[p->endpoint][outcome]++;
    if (e->good) {
        s->metrics.audio_s += e->audio_s;
        s->metrics.prefill_s += e->model.prefill_s;
        s->metrics.talker_s += e->model.talker_s;
        s->metrics.predictor_s += e->model.predictor_s;
        s->metrics.vocoder_s += e->model.vocoder_s;
        s->metrics.runaway += e->finish == UTTER_FINISH_CEILING || e->finish == UTTER_FINISH_LOOP ||
                              e->finish == UTTER_FINISH_SILENCE || e->finish == UTTER_FINISH_SAID ||
                              e->finish == UTTER_FINISH_STUCK;
        s->metrics.said_again += (uint64_t)e->model.n_retries;
        s->metrics.not_whole += (uint64_t)e->model.n_broken;
        s->metrics.background_s += p->background ? e->audio_s : 0;
    }
    if (e->good && !p->background) {
        histogram_add(&s->metrics.total, e->total_s);
        histogram_add(&s->metrics.underrun, e->worst_gap_s);
    }
    log_event(s, "speech",
        json_pack("{s:i,s:s,s:s,s:s*,s:s*,s:b,s:s,s:i,s:f,s:f,s:f,s:f,s:i,s:i,s:i,s:o?,s:s?}", "id",
            (int)p->id, "request", p->request, "client", p->client, "trace_id", trace_id(&p->trace),
            "span_id", trace_span(&p->trace), "good", e->good, "finish", utter_finish_text(e->finish),
            "tokens", e->n_text_tokens, "audio_s", e->audio_s, "queue_s", e->queue_s, "first_s",
            e->first_s, "total_s", e->total_s, "pieces", e->model.n_pieces, "said_again",
            e->model.n_retries, "not_whole", e->model.n_broken, "not_whole_at",
            e->model.n_broken > 0 ? json_integer((json_int_t)e->model.broken_at) : NULL, "error",
            e->good ? NULL : e->refusal.message));
}

void speech_count_cancelled(const struct speech *p)
{
    struct metrics *m = &p->server->metrics;
    m->cancelled[p->stage]++;
    m->requests[p->endpoint][METRICS_CANCELLED]++;
    log_event(p->server, "cancelled",
        json_pack("{s:i,s:s,s:s,s:s*,s:s*,s:s}", "id", (int)p->id, "request", p->request, "client",
            p->client, "trace_id", trace_id(&p->trace), "span_id", trace_span(&p->trace), "stage",
            metrics_stage_name(p->stage)));
}

void speech_count_freed(const struct speech *p, double seconds)
{
    histogram_add(&p->server->metrics.cancel_to_free, seconds);
    log_event(p->server, "freed",
        json_pack("{s:i,s:s,s:f}", "id", (int)p->id, "stage", metrics_stage_name(p->stage), "seconds",
            seconds));
}
