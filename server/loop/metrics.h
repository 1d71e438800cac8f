/* SPDX-License-Identifier: Apache-2.0
 * Counters of the server and their text for Prometheus. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stdint.h>

#include "server/protocol/wire.h"

enum { METRICS_BUCKETS = 15 };

struct histogram {
    uint64_t counts[METRICS_BUCKETS + 1];
    double sum;
};

enum metrics_endpoint {
    METRICS_SPEECH,
    METRICS_STREAM,
    METRICS_BATCH,
    METRICS_BACKGROUND, /* by whichever of them it was asked for */
    METRICS_N_ENDPOINTS
};
enum metrics_outcome {
    METRICS_OK,
    METRICS_ERROR,
    METRICS_CANCELLED,
    METRICS_GIVEN_BACK, /* its lane, to listeners */
    METRICS_N_OUTCOMES
};
enum metrics_rejection {
    METRICS_QUEUE_FULL,
    METRICS_NOT_READY,
    METRICS_DRAINING,
    METRICS_KEY,
    METRICS_RATE,
    METRICS_INVALID,
    METRICS_TOO_LARGE,
    METRICS_BACKGROUND_FULL,
    METRICS_N_REJECTIONS,
};
/* What a client's own limits, or its address's, have led to. */
enum metrics_limit {
    METRICS_SENT,     /* rested for what was sent */
    METRICS_ASKED,    /* rested for what was asked */
    METRICS_HELD,     /* was thrown out, and told of it later */
    METRICS_MADE_WAY, /* ended for a newcomer, as its address had more than half of all places */
    METRICS_N_LIMITS
};
enum metrics_stage {
    METRICS_QUEUED,
    METRICS_FIRST,
    METRICS_STREAMING,
    METRICS_PAUSED,
    METRICS_N_STAGES
};

struct metrics {
    uint64_t requests[METRICS_N_ENDPOINTS][METRICS_N_OUTCOMES];
    uint64_t rejected[METRICS_N_REJECTIONS], cancelled[METRICS_N_STAGES], limited[METRICS_N_LIMITS];
    uint64_t runaway, said_again, not_whole, unknown_fields, worker_starts, worker_deaths, connections,
        dropped_stalled, crowded_out;
    double audio_s, background_s, prefill_s, talker_s, predictor_s, vocoder_s;
    struct histogram ttfa, queue_wait, cancel_to_free, total, underrun, step;
};

const char *metrics_stage_name(enum metrics_stage stage);
const char *metrics_limit_name(enum metrics_limit limit);
void histogram_add(struct histogram *h, double seconds);

/* Of one worker, in the order of the table in metrics.c. */
enum { METRICS_OF_WORKER = 9 };
struct metrics_worker {
    int number;
    const char *device;
    double values[METRICS_OF_WORKER];
};

/* What is now, beside what has been counted. */
struct metrics_now {
    int running, queued, background_running, background_queued, lanes, capacity, connections, ready;
    int batch;  /* lanes of the last steps */
    double use; /* how much of what can be promised is, 0 to 1 */
    uint64_t worker_memory_bytes;
    const char *version, *model, *device;
    const struct metrics_worker *workers;
    int n_workers;
};

void metrics_print(const struct metrics *m, const struct metrics_now *now, struct wire_out *out);

#endif
