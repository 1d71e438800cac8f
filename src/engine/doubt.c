/* SPDX-License-Identifier: Apache-2.0
 * Codes that were made, read again behind the text without a word. */
#include "engine/doubt.h"

#include "base/memory.h"
#include "base/minmax.h"

/* Nats by which the text without a word must explain the codes better. Codes that were drawn (at temperature 1) from
 * what the text with it makes likely come to that by chance, but at most for one word in e^8 (3,000). */
static const double least_better = 8;

bool doubt_pending(const struct doubt *d)
{
    return d->n_done < d->n;
}

static void drop_rows(struct doubt *d)
{
    memory_free(d->rows);
    memory_free(d->codes);
    memory_free(d->likelihoods);
    d->rows = NULL;
    d->codes = NULL;
    d->likelihoods = NULL;
}

void doubt_fini(struct doubt *d)
{
    drop_rows(d);
    *d = (struct doubt){0};
}

/* Words in doubt, once it is known how much each frame surprises. */
static void find_doubts(struct doubt *d, const struct doubt_in *in)
{
    const struct words_tokens tokens = {
        prompt_token_begins(in->prompt), prompt_text_tokens(in->prompt), prompt_finished(in->prompt)};
    d->n_done = 0;
    d->n = words_doubts(in->words, &tokens, d->at);
}

void doubt_begin(struct doubt *d, const struct doubt_in *in)
{
    if (d->log_p != 0) {
        find_doubts(d, in);
    } else if (!words_approximate(in->words)) {
        d->at[0] = (struct words_doubt){0}; /* nothing is left out */
        d->n = 1;
    }
}

/* The rows without word n_done, and the lane ready for those that are not kept of other utterances. */
static utter_status begin_word(struct doubt *d, const struct doubt_in *in, utter_error *error)
{
    const struct words_doubt *doubt = &d->at[d->n_done];
    int n_prompt;
    const struct row *rows = prompt_rows(in->prompt, &n_prompt);
    const struct beginning beginning = {in->voice, rows, prompt_fixed_rows(in->prompt)};
    size_t n = (size_t)n_prompt + (size_t)in->n_frames;
    d->rows = memory_new(n, sizeof *d->rows);
    d->codes = memory_new(n, sizeof *d->codes);
    d->likelihoods = memory_new(n, sizeof *d->likelihoods);
    if (!d->rows || !d->codes || !d->likelihoods) {
        return error_memory(error, "a word in doubt");
    }
    d->n_rows = prompt_rows_without(
        in->prompt, doubt->from, doubt->to, in->codes, in->n_frames, d->rows, &d->first);
    for (int i = 0; i < d->n_rows; i++) {
        int frame = i - d->first;
        d->codes[i] = frame < 0               ? -1
                      : frame == in->n_frames ? in->config->codec_eos
                                              : in->codes[(ptrdiff_t)frame * in->config->n_codebooks];
    }
    bool found = false;
    utter_status status = in->ops->lane_reset(in->backend, in->lane, in->settings, error);
    status = status ? status : snapshot_resume(in->snapshots, in->lane, &beginning, &found, error);
    d->n_read = found ? beginning.n_rows : 0;
    return status;
}

/* The whole text was read. */
static void end_whole(struct doubt *d, const struct doubt_in *in, double log_p)
{
    for (int i = d->first; i < d->n_rows; i++) {
        const struct likelihood *l = &d->likelihoods[i];
        words_surprise(in->words, i - d->first, l->usual_log_p - l->log_p);
    }
    d->log_p = log_p;
    find_doubts(d, in);
}

static void end_word(struct doubt *d, double log_p)
{
    double better = log_p - d->log_p;
    if (better > d->most) {
        d->most = better;
        d->word = d->at[d->n_done].word;
    }
    d->n_done++;
}

static void end_rows(struct doubt *d, const struct doubt_in *in)
{
    double log_p = 0;
    for (int i = d->first; i < d->n_rows; i++) {
        log_p += (double)d->likelihoods[i].log_p;
    }
    if (d->at[d->n_done].to == 0) {
        end_whole(d, in, log_p);
    } else {
        end_word(d, log_p);
    }
    drop_rows(d);
    if (d->n > 0 && !doubt_pending(d)) {
        words_weighed(in->words, d->most > least_better ? (int64_t)d->word : -1);
    }
}

utter_status doubt_step(struct doubt *d, const struct doubt_in *in, int n, utter_error *error)
{
    utter_status status = d->rows ? UTTER_OK : begin_word(d, in, error);
    if (status) {
        return status;
    }
    n = min(n, d->n_rows - d->n_read);
    status = in->ops->weigh(in->backend, in->lane, d->rows + d->n_read, n, d->codes + d->n_read,
        d->likelihoods + d->n_read, error);
    d->n_read += n;
    if (status == UTTER_OK && d->n_read == d->n_rows) {
        end_rows(d, in);
    }
    return status;
}
