/* SPDX-License-Identifier: Apache-2.0
 * Attention -> the way through the text -> words with times, trimmed by the sound. */
#include "words/words.h"

#include <math.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "words/shares.h"
#include "words/words_parts.h"

enum { WINDOWS = 8 }; /* of loudness, in a frame: 10 ms each */

/* A pause of at most this many frames is taken from the beginning of a word. */
enum { LONGEST_TRIM = 5 };

utter_status words_init(struct words *w, const struct heads *heads, int n_tokens, int n_frames,
    int frame_samples, int sample_rate, utter_error *error)
{
    w->heads = heads;
    w->frame_samples = frame_samples;
    w->sample_rate = sample_rate;
    w->n_shares = n_tokens;
    int window = (frame_samples + WINDOWS - 1) / WINDOWS; /* so that a frame has no more of them */
    utter_status status = loudness_init(&w->loudness, window, n_frames * WINDOWS, error);
    if (status || heads->n == 0) {
        return status;
    }
    w->shares = memory_new((size_t)n_tokens, sizeof *w->shares);
    w->surprise = memory_new((size_t)n_frames, sizeof *w->surprise);
    status =
        w->shares && w->surprise ? path_init(&w->path, n_frames, error) : error_memory(error, "words");
    return status;
}

void words_fini(struct words *w)
{
    segmenter_fini(&w->segmenter);
    path_fini(&w->path);
    loudness_fini(&w->loudness);
    memory_free(w->shares);
    memory_free(w->surprise);
    memory_free(w->at);
    memory_free(w->places);
    *w = (struct words){0};
}

bool words_approximate(const struct words *w)
{
    return w->heads->n == 0;
}

/* ---- Text ---- */

static utter_status grow(struct words *w, size_t room, utter_error *error)
{
    utter_word *at = memory_resize(w->at, w->room, room, sizeof *at);
    if (!at) {
        return error_memory(error, "words");
    }
    w->at = at;
    struct words_place *places = memory_resize(w->places, w->room, room, sizeof *places);
    if (!places) {
        return error_memory(error, "words");
    }
    w->places = places;
    w->room = room;
    return UTTER_OK;
}

/* Room for every word, so that nothing is allocated between frames; words without it are forgotten. */
static utter_status make_room(struct words *w, utter_status status, utter_error *error)
{
    if (w->segmenter.n > w->room) {
        status = status ? status : grow(w, w->segmenter.room, error);
        w->segmenter.n = min(w->segmenter.n, w->room);
    }
    return status;
}

utter_status words_text(struct words *w, const char *text, size_t bytes, utter_error *error)
{
    return make_room(w, segmenter_text(&w->segmenter, text, bytes, error), error);
}

utter_status words_finish(struct words *w, utter_error *error)
{
    return make_room(w, segmenter_finish(&w->segmenter, error), error);
}

/* ---- Attention ---- */

/* The places of the way: the tokens, and behind the last one the end of the text. */
static int count_places(const struct words_tokens *tokens)
{
    return tokens->n + tokens->finished;
}

/* ---- Words ---- */

/* The first byte behind token i's. */
static uint64_t token_end(const struct words_tokens *t, int i)
{
    return i + 1 < t->n ? t->begin[i + 1] : UINT64_MAX;
}

/* The token that has byte `at`, from token i on. False: it has not come, or the next one that tells has not. */
static bool find_token(const struct words_tokens *t, uint64_t at, int *i)
{
    while (*i + 1 < t->n && t->begin[*i + 1] <= at) {
        ++*i;
    }
    return *i < t->n && (*i + 1 < t->n || t->finished);
}

/* When byte `at` of token i is heard: its beginning, or where two words share it, its part of it. */
static double moment_of(const struct words *w, const struct words_tokens *t, size_t i_word)
{
    const struct words_place *p = &w->places[i_word];
    double begin = path_moment(&w->path, p->enter, p->token);
    if (i_word == 0 || p[-1].token != p->token || token_end(t, p->token) == UINT64_MAX) {
        return begin;
    }
    int next = path_enter(&w->path, p->enter, p->token + 1);
    double end = path_moment(&w->path, next, p->token + 1);
    uint64_t from = t->begin[p->token], bytes = token_end(t, p->token) - from;
    double part = (double)(w->segmenter.at[i_word].at - from) / (double)bytes;
    return begin + part * max(end - begin, 0.0);
}

/* Finds where the way enters word i_word; false: it has not, or not long enough ago to be told. */
static bool place_word(struct words *w, const struct words_tokens *t, size_t i_word)
{
    struct words_place *p = &w->places[i_word];
    const struct words_place *before = i_word > 0 ? p - 1 : NULL;
    p->token = before ? before->token : 0;
    if (!find_token(t, w->segmenter.at[i_word].at, &p->token)) {
        return false;
    }
    p->enter = path_enter(&w->path, before ? before->enter : 0, p->token);
    int sure = w->ended ? 0 : 1; /* frames behind it: one may be a slip */
    if (p->enter + sure >= w->path.n) {
        return false;
    }
    double lead = w->heads->lead_ms * w->sample_rate / 1000;
    double start = moment_of(w, t, i_word) * w->frame_samples + lead;
    p->start = start > 0 ? (int64_t)start : 0;
    p->start = before ? max(p->start, before->start) : p->start;
    p->start = w->ended ? min(p->start, w->n_samples) : p->start;
    return true;
}

/* The part of the attention that is on the word while it is said; 0: it was passed over. */
static float certainty_of(const struct words *w, const struct words_tokens *t, size_t i_word, int end)
{
    const struct words_place *p = &w->places[i_word];
    uint64_t behind = w->segmenter.at[i_word].at + w->segmenter.at[i_word].bytes;
    int to = p->token + 1, n = 0;
    float sum = 0;
    while (to < t->n && t->begin[to] < behind) {
        to++;
    }
    for (int f = p->enter; f < end && w->path.place[f] < to; f++, n++) {
        sum += path_share(&w->path, f, p->token, to);
    }
    return n > 0 ? sum / (float)n : 0;
}

/* Word i_word, which ends where the next one begins, at sample `next` (before it is trimmed) and frame `end`. */
static void tell_word(
    struct words *w, const struct words_tokens *t, size_t i_word, int64_t next, int end)
{
    const struct words_place *p = &w->places[i_word];
    const struct segment *s = &w->segmenter.at[i_word];
    int64_t most = p->start + (int64_t)LONGEST_TRIM * w->frame_samples;
    int64_t start = loudness_onset(&w->loudness, p->start, min(most, next));
    int64_t stop = loudness_offset(&w->loudness, start, next);
    if (!w->ended && w->n_samples < next) {
        stop = next; /* its sound has not come */
    }
    float certainty = certainty_of(w, t, i_word, end);
    w->at[i_word] = (utter_word){.at = s->at,
        .bytes = s->bytes,
        .start = (uint64_t)start,
        .end = (uint64_t)(certainty > 0 ? max(start, stop) : start),
        .certainty = certainty,
        .skipped = certainty == 0};
}

/* No frame that comes can move the beginning of word i_word, which is not the first: neither where the way enters it
 * nor, where it shares a token with the word before, where the way leaves that. */
static bool is_settled(const struct words *w, size_t i_word)
{
    const struct words_place *p = &w->places[i_word];
    bool shares = p[-1].token == p->token;
    int last = shares ? path_enter(&w->path, p->enter, p->token + 1) : p->enter;
    return last + PATH_SETTLED < w->path.n && p->start + w->frame_samples < w->n_samples;
}

/* The words that the way has entered, from the first that is not final on. A word becomes final once nothing can change
 * what is told of it, so that it does not matter when that is noticed. */
static void tell(struct words *w, const struct words_tokens *t)
{
    size_t i = w->n_final;
    int64_t here = (int64_t)w->path.n * w->frame_samples;
    here = w->ended ? w->n_samples : here;
    bool found = i < w->segmenter.n && place_word(w, t, i);
    for (; found; i++) {
        found = i + 1 < w->segmenter.n && place_word(w, t, i + 1);
        const struct words_place *next = &w->places[i + 1];
        int64_t end = found ? min(next->start, here) : here;
        bool shares =
            found && next->token == w->places[i].token; /* its frames are those of the token */
        tell_word(w, t, i, max(end, w->places[i].start), found && !shares ? next->enter : w->path.n);
        if (found && i == w->n_final && is_settled(w, i + 1)) {
            w->at[i].final = true;
            w->n_final++;
        }
    }
    w->n_told = i;
}

/* A frame without scores, as the first one on a GPU is, has a place too: all are as likely. */
void words_frame(struct words *w, const float *scores, int n_scores, const struct words_tokens *tokens)
{
    int n = count_places(tokens), n_heads = w->heads->n;
    n = scores ? min(n, n_scores) : n;
    n = min(n, w->n_shares);
    if (n_heads == 0 || n < 1 || w->path.n >= w->path.room) {
        return;
    }
    shares_clear(w->shares, n);
    for (int h = 0; h < n_heads && scores; h++) {
        shares_add(w->shares, scores + (ptrdiff_t)h * n_scores, n, 1 / (float)n_heads);
    }
    for (int i = 0; i < n && !scores; i++) {
        w->shares[i] = 1 / (float)n;
    }
    path_step(&w->path, w->shares, n);
    tell(w, tokens);
}

void words_sound(struct words *w, const float *pcm, size_t n_samples, const struct words_tokens *tokens)
{
    loudness_add(&w->loudness, pcm, n_samples);
    w->n_samples += (int64_t)n_samples;
    if (words_approximate(w)) {
        words_guess(w);
    } else if (w->path.n > 0) {
        tell(w, tokens);
    }
}

int words_place(const struct words *w)
{
    return w->path.n > 0 ? w->path.place[w->path.n - 1] : -1;
}

int words_there(const struct words *w)
{
    const struct path *p = &w->path;
    int n = 0;
    while (n < p->n && p->place[p->n - 1 - n] == p->place[p->n - 1]) {
        n++;
    }
    return n;
}

size_t words_skipped(const struct words *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_final; i++) {
        n += w->at[i].skipped;
    }
    return n;
}

void words_end(struct words *w, bool whole, const struct words_tokens *tokens)
{
    if (w->ended) {
        return;
    }
    w->ended = true;
    if (words_approximate(w)) {
        words_guess(w);
        return;
    }
    tell(w, tokens);
    for (size_t i = 0; w->weighed && i < w->n_told; i++) { /* final ones, too */
        w->at[i].skipped = (int64_t)i == w->missed;
    }
    bool late = w->weighed && w->missed >= 0; /* the way is, behind a word that was not said */
    for (size_t i = w->n_told; whole && i < w->segmenter.n; i++) { /* nothing of it was heard */
        const struct segment *s = &w->segmenter.at[i];
        uint64_t end = (uint64_t)w->n_samples;
        w->at[i] =
            (utter_word){.at = s->at, .bytes = s->bytes, .start = end, .end = end, .skipped = !late};
        w->n_told = i + 1;
    }
    for (size_t i = w->n_final; i < w->n_told; i++) {
        w->at[i].final = true;
    }

    w->n_final = w->n_told;
}
