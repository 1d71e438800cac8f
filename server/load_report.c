/* SPDX-License-Identifier: Apache-2.0
 * Percentiles over requests. */
#include "server/load_report.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

struct line {
    const char *key, *name;
    size_t at; /* in struct load_sample */
};

static const struct line lines[] = {
    {"first_ms", "first sound", offsetof(struct load_sample, first_s)},
    {"audible_ms", "first audible sample", offsetof(struct load_sample, audible_s)},
    {"gap_ms", "longest gap of a stream", offsetof(struct load_sample, gap_s)},
    {"underrun_ms", "longest underrun", offsetof(struct load_sample, starved_s)},
    {"total_ms", "whole answer", offsetof(struct load_sample, total_s)},
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nearest rank. */
static double percentile(const double *sorted, int n, double share)
{
    int i = (int)(share * n + 0.999999) - 1;
    return n ? sorted[i < 0 ? 0 : i >= n ? n - 1 : i] : 0;
}

struct sums {
    int n_good, n_refused, n_broken, n_underrun, n_within;
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
            s.n_within += x->starved_s <= 0 && 1e3 * x->audible_s <= o->limit_ms;
            s.audio_s += x->audio_s;
        }
    }
    return s;
}

void load_print(
    const struct load_options *o, struct load_sample *samples, int n, int most_at_once, double wall_s)
{
    struct sums s = sum_up(o, samples, n);
    double *values = memory_new((size_t)n + 1, sizeof *values);
    json_t *j = json_pack("{s:i,s:i,s:i,s:i,s:i,s:f,s:f,s:f,s:f,s:i,s:f,s:f}", "requests", n, "good",
        s.n_good, "refused", s.n_refused, "broken", s.n_broken, "underruns", s.n_underrun, "goodput",
        n ? (double)s.n_within / n : 0, "limit_ms", o->limit_ms, "audio_seconds", s.audio_s,
        "wall_seconds", wall_s, "most_at_once", most_at_once, "rate", o->rate, "audio_per_second",
        wall_s > 0 ? s.audio_s / wall_s : 0);
    if (!o->json) {
        printf("requests %d: %d good, %d refused, %d broken; %d with an underrun; at most %d at once\n",
            n, s.n_good, s.n_refused, s.n_broken, s.n_underrun, most_at_once);
        printf("goodput %.1f%% (audible within %.0f ms, no underrun); %.1f s of sound in %.1f s\n\n",
            n ? 100.0 * s.n_within / n : 0.0, o->limit_ms, s.audio_s, wall_s);
        printf("%-26s %10s %10s %10s %10s\n", "ms", "p50", "p95", "p99", "most");
    }
    for (size_t l = 0; values && l < sizeof lines / sizeof *lines; l++) {
        int m = 0;
        for (int i = 0; i < n; i++) {
            if (samples[i].outcome == LOAD_GOOD) {
                values[m++] =
                    1e3 * *(const double *)(const void *)((const char *)&samples[i] + lines[l].at);
            }
        }
        qsort(values, (size_t)m, sizeof *values, compare);
        double p50 = percentile(values, m, 0.5), p95 = percentile(values, m, 0.95),
               p99 = percentile(values, m, 0.99), most = m ? values[m - 1] : 0;
        json_object_set_new(j, lines[l].key,
            json_pack("{s:f,s:f,s:f,s:f}", "p50", p50, "p95", p95, "p99", p99, "max", most));
        if (!o->json) {
            printf("%-26s %10.1f %10.1f %10.1f %10.1f\n", lines[l].name, p50, p95, p99, most);
        }
    }
    if (o->json) {
        json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
    }
    json_decref(j);
    memory_free(values);
}
