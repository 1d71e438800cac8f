/* SPDX-License-Identifier: Apache-2.0
 * Counters of the server and their text for Prometheus. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <event2/buffer.h>
#include <stdint.h>

enum { METRICS_BUCKETS = 15 };

struct histogram {
    uint64_t counts[METRICS_BUCKETS + 1];
    double sum;
};

enum metrics_endpoint { METRICS_SPEECH, METRICS_STREAM, METRICS_BATCH, METRICS_N_ENDPOINTS };
enum metrics_outcome { METRICS_OK, METRICS_ERROR, METRICS_CANCELLED, METRICS_N_OUTCOMES };
enum metrics_rejection {
    METRICS_QUEUE_FULL,
    METRICS_NOT_READY,
    METRICS_DRAINING,
    METRICS_KEY,
    METRICS_RATE,
    METRICS_INVALID,
    METRICS_TOO_LARGE,
    METRICS_N_REJECTIONS,
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
    uint64_t rejected[METRICS_N_REJECTIONS], cancelled[METRICS_N_STAGES];
    uint64_t runaway, said_again, not_whole, unknown_fields, worker_starts, worker_deaths, connections,
        dropped_stalled, crowded_out;
    double audio_s, prefill_s, talker_s, predictor_s, vocoder_s;
    struct histogram ttfa, queue_wait, cancel_to_free, total, underrun, step;
    int batch; /* lanes of the last step */
};

const char *metrics_stage_name(enum metrics_stage stage);
void histogram_add(struct histogram *h, double seconds);

/* What is now, beside what has been counted. */
struct metrics_now {
    int running, queued, lanes, capacity, connections, ready;
    uint64_t worker_memory_bytes;
    const char *version, *model, *device;
};

void metrics_print(const struct metrics *m, const struct metrics_now *now, struct evbuffer *out);

#endif
