/* SPDX-License-Identifier: Apache-2.0
 * Strict: streams. Operations of a stream follow each other, so what is known of it is one number: the last operation
 * that has ended. */
#include "tests/cuda/host/strict/strict_parts.h"

#include <stdlib.h>
#include <string.h>

enum { ENDS = 1024, N_KNOWN = 4096 };

struct strict_op {
    struct strict_thread self;
    struct strict_vector *host; /* what the host knew when it began */
    bool told;                  /* when the host asked for it, or it has been counted in */
};

/* What was known when operation `time` had ended: at time % ENDS. Older ones know less than the oldest that is here.
 * */
struct stream {
    uint32_t time;
    struct strict_vector *clock, *ends[ENDS];
};
static struct stream **streams;
static int n_streams;

static struct strict_op_info *infos;
static int n_infos, n_infos_held, n_live;

/* Ranges of units, in rising order: which operation each belongs to. */
struct range {
    uint32_t first;
    int op;
};
static struct range *ranges;
static int n_ranges, n_ranges_held;
static uint32_t next_unit = 1;

/* Answers of strict_op_before that were found a moment ago. */
struct answer {
    uint64_t serial;
    uint32_t unit;
    bool before;
};
static struct answer answers[N_KNOWN];

static void *grown(void *list, int n, int *held, size_t bytes)
{
    if (n < *held) {
        return list;
    }
    *held = *held ? *held * 2 : 256;
    list = realloc(list, (size_t)*held * bytes);
    if (!list) {
        abort();
    }
    return list;
}

static struct stream *stream_of(int stream)
{
    if (stream >= n_streams) {
        int n = stream + 8;
        streams = realloc(streams, (size_t)n * sizeof(struct stream *));
        if (!streams) {
            abort();
        }
        memset(streams + n_streams, 0, (size_t)(n - n_streams) * sizeof(struct stream *));
        n_streams = n;
    }
    if (!streams[stream]) {
        streams[stream] = calloc(1, sizeof(struct stream));
        if (!streams[stream]) {
            abort();
        }
    }
    return streams[stream];
}

/* What was known when this operation of the stream had ended, or a later one if that is long ago. */
static struct strict_vector *clock_at(int stream, uint64_t time)
{
    struct stream *s = stream_of(stream);
    if (time == 0) {
        return NULL;
    }
    if (time > s->time || time + ENDS <= s->time) {
        return s->clock;
    }
    struct strict_vector *v = s->ends[time % ENDS];
    return strict_time_of(v, stream) == time ? v : s->clock;
}

/* ---- Units ---- */

static uint32_t units_new(uint32_t n, int op)
{
    ranges = grown(ranges, n_ranges, &n_ranges_held, sizeof *ranges);
    ranges[n_ranges++] = (struct range){next_unit, op};
    next_unit += n;
    return next_unit - n;
}

uint32_t strict_units(struct strict_op *op, uint32_t n, int n_threads, int block_units)
{
    struct strict_op_info *info = &infos[op->self.op];
    info->n_threads = n_threads;
    info->block_units = block_units;
    info->unit = units_new(n, op->self.op);
    return info->unit;
}

int strict_op_of(uint32_t unit)
{
    int low = 0, high = n_ranges; /* ranges[low] is not behind it */
    while (high - low > 1) {
        int mid = (low + high) / 2;
        if (ranges[mid].first <= unit) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return n_ranges && unit >= ranges[low].first && unit < next_unit ? ranges[low].op : -1;
}

const struct strict_op_info *strict_op_info(int op)
{
    return &infos[op];
}

/* When the numbers have come near their end and nothing is under way, they begin again. */
static void begin_again(void)
{
    if (next_unit < 0xc0000000u || n_live > 0) {
        return;
    }
    strict_memory_forget();
    memset(answers, 0, sizeof answers);
    next_unit = 1;
    n_ranges = n_infos = 0;
}

bool strict_op_before(const struct strict_vector *known, int op, uint32_t unit)
{
    if (!known) {
        int of = strict_op_of(unit);
        return of < 0 || of == op;
    }
    struct answer *a = &answers[(unit ^ (uint32_t)known->serial * 0x9e3779b1u) % N_KNOWN];
    if (a->serial == known->serial && a->unit == unit && a->before) {
        return true;
    }
    int of = strict_op_of(unit);
    bool ended = of < 0 || strict_time_of(known, infos[of].stream) >= infos[of].time;
    *a = (struct answer){known->serial, unit, ended};
    return ended || of == op;
}

/* ---- Operations ---- */

struct strict_op *strict_op_begin(int stream, const char *what)
{
    begin_again();
    struct strict_op *op = calloc(1, sizeof *op);
    if (!op) {
        abort();
    }
    struct stream *s = stream_of(stream);
    infos = grown(infos, n_infos, &n_infos_held, sizeof *infos);
    infos[n_infos] =
        (struct strict_op_info){.name = strict_intern(what), .stream = stream, .time = ++s->time};
    op->self.op = n_infos++;
    op->self.unit = units_new(1, op->self.op);
    op->self.time = op->self.lanes = 1;
    op->self.known = strict_vector_keep(s->clock);
    op->host = strict_vector_keep(stream_of(0)->clock);
    n_live++;
    return op;
}

/* Who did not say when the host asked for the operation, means: just before it began. */
static void count_host(struct strict_op *op)
{
    if (!op->told) {
        op->told = true;
        strict_vector_join(&op->self.known, op->host);
    }
}

void strict_op_after(struct strict_op *op, int other_stream, uint64_t its_time)
{
    op->told = op->told || other_stream == 0;
    strict_vector_join(&op->self.known, clock_at(other_stream, its_time));
}

uint64_t strict_op_end(struct strict_op *op)
{
    count_host(op);
    const struct strict_op_info *info = &infos[op->self.op];
    struct stream *s = streams[info->stream];
    uint32_t time = info->time;
    strict_vector_join(&s->clock, op->self.known);
    strict_vector_raise(&s->clock, info->stream, time, n_streams);
    strict_vector_drop(s->ends[time % ENDS]);
    s->ends[time % ENDS] = strict_vector_keep(s->clock);
    strict_vector_drop(op->self.known);
    strict_vector_drop(op->host);
    free(op);
    n_live--;
    return time;
}

void strict_host_knows(int stream, uint64_t time)
{
    strict_vector_join(&stream_of(0)->clock, clock_at(stream, time));
}

struct strict_thread *strict_op_self(struct strict_op *op)
{
    count_host(op);
    return &op->self;
}
