/* SPDX-License-Identifier: Apache-2.0
 * Where no heads are known: the loud part of the sound is shared out by what each word weighs. Until the sound is
 * whole, by what people say in a second. */
#include "base/minmax.h"
#include "words/words_parts.h"

static const double letters_per_s = 15;

static int64_t loud_windows(const struct loudness *l)
{
    float least = loudness_threshold(l, l->n);
    int64_t n = 0;
    for (int i = 0; i < l->n; i++) {
        n += l->at[i] >= least;
    }
    return n;
}

static double weight_of_all(const struct segmenter *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        sum += s->at[i].weight;
    }
    return sum;
}

/* Windows go by until `loud` of them were loud. */
struct pass {
    const struct loudness *loudness;
    float least;
    int at;
    double loud;
};

static int64_t pass_to(struct pass *p, double loud)
{
    while (p->at < p->loudness->n && p->loud < loud) {
        p->loud += p->loudness->at[p->at++] >= p->least;
    }
    return (int64_t)p->at * p->loudness->window;
}

void words_guess(struct words *w)
{
    const struct loudness *l = &w->loudness;
    double windows_per_s = (double)w->sample_rate / l->window, loud = (double)loud_windows(l);
    double all = weight_of_all(&w->segmenter);
    double each = w->ended && all > 0 ? loud / all : windows_per_s / letters_per_s, begin = 0;
    struct pass pass = {l, loudness_threshold(l, l->n), 0, 0};
    w->n_told = 0;
    for (size_t i = 0; i < w->segmenter.n && (w->ended || begin <= loud); i++) {
        const struct segment *s = &w->segmenter.at[i];
        int64_t start = loudness_onset(l, pass_to(&pass, begin), w->n_samples);
        begin += each * s->weight;
        int64_t end = pass_to(&pass, begin);
        w->at[w->n_told++] = (utter_word){.at = s->at,
            .bytes = s->bytes,
            .start = (uint64_t)start,
            .end = (uint64_t)max(start, end),
            .final = w->ended};
    }
    w->n_final = w->ended ? w->n_told : 0;
}
