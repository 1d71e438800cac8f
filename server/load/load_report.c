/* SPDX-License-Identifier: Apache-2.0
 * Percentiles over requests. */
#include "server/load/load_report.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

struct line {
    const char *key, *name;
    size_t at;            /* in struct load_sample */
    enum load_outcome of; /* which answers are counted */
};

static const struct line lines[] = {
    {"first_ms", "first sound", offsetof(struct load_sample, first_s), LOAD_GOOD},
    {"audible_ms", "first audible sample", offsetof(struct load_sample, audible_s), LOAD_GOOD},
    {"worst_gap_ms", "longest gap of a stream", offsetof(struct load_sample, gap_s), LOAD_GOOD},
    {"underrun_ms", "longest underrun", offsetof(struct load_sample, starved_s), LOAD_GOOD},
    {"total_ms", "whole answer", offsetof(struct load_sample, total_s), LOAD_GOOD},
    {"refused_ms", "refusal", offsetof(struct load_sample, total_s), LOAD_REFUSED},
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nearest rank; of a share above 0 and below 1. */
static double percentile(const double *sorted, int n, double share)
{
    return n ? sorted[(int)(share * n + 0.999999) - 1] : 0;
}

struct sums {
    int n_good, n_refused, n_broken, n_underrun, n_within;
    int n_pauses; /* in which listeners had nothing left, and how long in all */
    double pauses_s;
    double audio_s;
};

static struct sums sum_up(const struct load_options *o, const struct load_sample *samples, int n)
{
    struct sums s = {0};
    for (int i = 0; i < n; i++) {
        const struct load_sample *x = &samples[i];
        s.n_good += x->outcome == LOAD_GOOD;
        s.n_refused += x->outcome == LOAD_REFUSED;
        s.n_broken += x->outcome == LOAD_BROKEN;
        if (x->outcome == LOAD_GOOD) {
            s.n_underrun += x->starved_s > 0;
            s.n_pauses += x->n_starved;
            s.pauses_s += x->starved_all_s;
            s.n_within += x->starved_s <= 0 && 1e3 * x->audible_s <= o->limit_ms;
            s.audio_s += x->audio_s;
        }
    }
    return s;
}

struct percentiles {
    double p50, p95, p99, most;
};

static void put(
    json_t *j, const struct load_options *o, const char *key, const char *name, struct percentiles p)
{
    json_object_set_new(j, key,
        json_pack("{s:f,s:f,s:f,s:f}", "p50", p.p50, "p95", p.p95, "p99", p.p99, "max", p.most));
    if (!o->json) {
        printf("%-26s %10.1f %10.1f %10.1f %10.1f\n", name, p.p50, p.p95, p.p99, p.most);
    }
}

/* Of one line of the table. `values` has room for all samples. */
static struct percentiles of_samples(
    const struct load_seen *seen, const struct line *line, double *values)
{
    int m = 0;
    for (int i = 0; i < seen->n; i++) {
        if (seen->samples[i].outcome == line->of) {
            values[m++] =
                1e3 * *(const double *)(const void *)((const char *)&seen->samples[i] + line->at);
        }
    }
    qsort(values, (size_t)m, sizeof *values, compare);
    return (struct percentiles){percentile(values, m, 0.5), percentile(values, m, 0.95),
        percentile(values, m, 0.99), m ? values[m - 1] : 0};
}

static double gap_at(const struct load_seen *seen, double share)
{
    uint64_t total = 0, below = 0;
    int bin = 0;
    for (int i = 0; i < LOAD_BINS; i++) {
        total += seen->gaps[i];
    }
    while (bin < LOAD_BINS - 1 && (double)(below += seen->gaps[bin]) < share * (double)total) {
        bin++;
    }
    return total ? 1e3 * (bin + 1) / LOAD_BINS_A_SECOND : 0;
}

/* Each good answer's own, so that several runs can be put together. */
static json_t *audible_each(const struct load_seen *seen)
{
    json_t *each = json_array();
    for (int i = 0; i < seen->n; i++) {
        if (seen->samples[i].outcome == LOAD_GOOD) {
            json_array_append_new(each, json_real(1e3 * seen->samples[i].audible_s));
        }
    }
    return each;
}

void load_print(const struct load_options *o, const struct load_seen *seen)
{
    int n = seen->n;
    struct sums s = sum_up(o, seen->samples, n);
    double wall_s = seen->wall_s, *values = memory_new((size_t)n + 1, sizeof *values);
    json_t *j = json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:f,s:f,s:f,s:f,s:f,s:i,s:f,s:f}", "requests", n,
        "good", s.n_good, "refused", s.n_refused, "broken", s.n_broken, "underruns", s.n_underrun,
        "pauses", s.n_pauses, "pauses_seconds", s.pauses_s, "goodput", n ? (double)s.n_within / n : 0,
        "limit_ms", o->limit_ms, "audio_seconds", s.audio_s, "wall_seconds", wall_s, "most_at_once",
        seen->most_at_once, "rate", o->rate, "audio_per_second", wall_s > 0 ? s.audio_s / wall_s : 0);
    if (!o->json) {
        printf("requests %d: %d good, %d refused, %d broken; at most %d at once\n", n, s.n_good,
            s.n_refused, s.n_broken, seen->most_at_once);
        printf("%d with an underrun: %d pauses, %.1f s in all\n", s.n_underrun, s.n_pauses, s.pauses_s);
        printf("goodput %.1f%% (audible within %.0f ms, no underrun); %.1f s of sound in %.1f s\n\n",
            n ? 100.0 * s.n_within / n : 0.0, o->limit_ms, s.audio_s, wall_s);
        printf("%-26s %10s %10s %10s %10s\n", "ms", "p50", "p95", "p99", "most");
    }
    for (size_t l = 0; values && l < sizeof lines / sizeof *lines; l++) {
        put(j, o, lines[l].key, lines[l].name, of_samples(seen, &lines[l], values));
    }
    put(j, o, "gap_ms", "gaps between pieces",
        (struct percentiles){
            gap_at(seen, 0.5), gap_at(seen, 0.95), gap_at(seen, 0.99), gap_at(seen, 1)});
    if (o->json) {
        json_object_set_new(j, "audible_each_ms", audible_each(seen));
        json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
    }
    json_decref(j);
    memory_free(values);
}
