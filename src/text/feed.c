/* SPDX-License-Identifier: Apache-2.0
 * The way of a text to its ids. It is a line of three stations, each with what it still holds back:
 *
 *   raw     bytes as they came. An added token ends a stretch of text. What stands before a border of
 *           normalisation moves on, normalised.
 *   normal  normalised text, which begins at the beginning of a word. Words that are complete, whatever
 *           comes behind, move on.
 *   ids     belong to the caller.
 *
 * A whole text and a text in pieces go the same way; `final` says that nothing comes behind. */
#include "text/feed.h"

#include "base/memory.h"
#include "text/nfc.h"
#include "text/places.h"
#include "text/tokenizer_parts.h"

/* Text up to here is looked at again with each new piece; beyond, only when it has grown by a quarter, so
 * that an endless word costs linear time. */
enum { LOOK_AGAIN_BYTES = 4096 };

struct token_feed {
    const struct tokenizer *tokenizer;
    struct pretokens_match *match;
    struct bpe_scratch scratch;
    struct chars raw;
    size_t n_valid;    /* bytes of raw that are whole characters */
    size_t n_plain;    /* bytes of raw in which no added token begins */
    size_t n_bordered; /* bytes of raw that end at the last border of normalisation, at most n_plain */
    struct chars normal;
    struct places places; /* of what is in it, in the text */
    uint64_t n_left;      /* bytes of the whole normal form before it */
    size_t n_searched;    /* bytes of normal in which no added token begins */
    size_t n_patience;    /* bytes of normal below which it is not worth to look for words again */
    uint64_t n_gone;      /* bytes of the whole text before raw */
    uint64_t n_opening;   /* what offsets in errors are less than those in the whole text */
    uint64_t literal_from,
        literal_to; /* bytes of the whole text in which no added token begins or ends */
};

utter_status token_feed_open(
    struct token_feed **feed, const struct tokenizer *tokenizer, utter_error *error)
{
    *feed = NULL;
    struct token_feed *f = memory_new(1, sizeof *f);
    if (!f) {
        return error_memory(error, "text");
    }
    f->tokenizer = tokenizer;
    f->literal_from = UINT64_MAX;
    utter_status status = pretokens_match_new(&f->match, tokenizer->pretokens, error);
    if (status == UTTER_OK) {
        status = chars_reserve(&f->raw, 0, error);
    }
    if (status != UTTER_OK) {
        token_feed_close(&f);
        return status;
    }
    *feed = f;
    return UTTER_OK;
}

void token_feed_close(struct token_feed **feed)
{
    struct token_feed *f = *feed;
    if (f) {
        pretokens_match_free(f->match);
        bpe_scratch_fini(&f->scratch);
        chars_fini(&f->raw);
        chars_fini(&f->normal);
        places_fini(&f->places);
        memory_free(f);
    }
    *feed = NULL;
}

/* Of a byte of the text, counted from its beginning: the same, counted as who gives the text counts it. */
static uint64_t behind_opening(const struct token_feed *f, uint64_t raw)
{
    uint64_t at = raw - f->n_opening; /* modulo 2^64, as n_opening */
    return at <= INT64_MAX ? at : 0;
}

static uint64_t place_of(const struct token_feed *f, uint64_t normal)
{
    return behind_opening(f, places_find(&f->places, normal));
}

/* How many of `n` bytes that begin at byte `at` of the whole text may be an added token; *final: none can grow into one
 * by what comes behind them. */
static size_t not_literal(const struct token_feed *f, uint64_t at, size_t n, bool *final)
{
    if (at >= f->literal_from) {
        return at >= f->literal_to ? n : 0;
    }
    if (f->literal_from - at <= n) {
        *final = true;
        return (size_t)(f->literal_from - at);
    }
    return n;
}

/* The ids of the words in normal[*begin .. end); *begin becomes the beginning of the first word that is
 * not certain. `final`: a text ends at `end`. */
static utter_status take_words(
    struct token_feed *f, size_t *begin, size_t end, bool final, struct ids *ids, utter_error *error)
{
    utter_status status = UTTER_OK;
    while (status == UTTER_OK && *begin < end) {
        const char *word = f->normal.at + *begin;
        size_t length;
        status = pretokens_next(
            f->tokenizer->pretokens, f->match, word, end - *begin, final, &length, error);
        size_t n_before = ids->n;
        if (status == UTTER_OK) {
            status = bpe_encode(&f->tokenizer->bpe, &f->scratch, word, length, ids, error);
            for (size_t i = n_before; i < ids->n; i++) {
                ids->begin[i] = place_of(f, f->n_left + *begin + ids->begin[i]);
            }
            *begin += length;
        }
    }
    return status == UTTER_AGAIN ? UTTER_OK : status;
}

/* Moves what is certain from `normal` to the ids. */
static utter_status take_normal(struct token_feed *f, bool final, struct ids *ids, utter_error *error)
{
    const struct added_tree *tree = &f->tokenizer->added.normal;
    utter_status status = UTTER_OK;
    size_t begin = 0;
    while (status == UTTER_OK && f->n_searched < f->normal.n) {
        const char *at = f->normal.at + f->n_searched;
        size_t length;
        int32_t id;
        enum added_match match = ADDED_NONE;
        if (tree->begins[(uint8_t)*at]) {
            bool ends = final;
            size_t n = not_literal(f, places_find(&f->places, f->n_left + f->n_searched),
                f->normal.n - f->n_searched, &ends);
            match = n ? added_match(tree, at, n, ends, &length, &id) : ADDED_NONE;
        }
        if (match == ADDED_OPEN) {
            break;
        }
        if (match == ADDED_NONE) {
            f->n_searched++;
            continue;
        }
        status = take_words(f, &begin, f->n_searched, true, ids, error);
        if (status == UTTER_OK) {
            status = ids_add(ids, id, place_of(f, f->n_left + f->n_searched), error);
        }
        f->n_searched += length;
        begin = f->n_searched;
        f->n_patience = 0;
    }
    if (status == UTTER_OK && (final || f->n_searched - begin >= f->n_patience)) {
        status = take_words(f, &begin, f->n_searched, final, ids, error);
        size_t waiting = f->n_searched - begin;
        f->n_patience = waiting > LOOK_AGAIN_BYTES ? waiting + waiting / 4 : 0;
    }
    chars_drop(&f->normal, begin);
    f->n_left += begin;
    places_drop(&f->places, f->n_left);
    f->n_searched -= begin;
    return status;
}

/* Normalises `bytes` bytes of raw from `begin` and takes from `normal` what is certain then. */
static utter_status move_on(
    struct token_feed *f, size_t begin, size_t bytes, bool final, struct ids *ids, utter_error *error)
{
    size_t n_before = f->normal.n;
    const char *raw = f->raw.at + begin;
    utter_status status = nfc_add(&f->normal, raw, bytes, error);
    if (status == UTTER_OK) {
        status = places_add(&f->places, f->n_gone + begin, raw, bytes, f->n_left + n_before,
            f->normal.at + n_before, f->normal.n - n_before, error);
    }
    return status == UTTER_OK ? take_normal(f, final, ids, error) : status;
}

/* Whether an added token begins at raw + n_plain. */
static enum added_match match_added(const struct token_feed *f, bool final, size_t *length, int32_t *id)
{
    const struct added_tree *tree = &f->tokenizer->added.raw;
    const char *at = f->raw.at + f->n_plain;
    if (!tree->begins[(uint8_t)*at]) {
        return ADDED_NONE;
    }
    size_t n = not_literal(f, f->n_gone + f->n_plain, f->n_valid - f->n_plain, &final);
    return n ? added_match(tree, at, n, final, length, id) : ADDED_NONE;
}

/* Moves what is certain from `raw` on. */
static utter_status take_raw(struct token_feed *f, bool final, struct ids *ids, utter_error *error)
{
    utter_status status = UTTER_OK;
    size_t begin = 0;
    while (status == UTTER_OK && f->n_plain < f->n_valid) {
        uint32_t code;
        size_t length = utf8_get(f->raw.at + f->n_plain, &code), token_length;
        int32_t id;
        /* A border before the first character of an added token is one whether or not it is a token. */
        if (nfc_border_before(code)) {
            f->n_bordered = f->n_plain;
        }
        enum added_match match = match_added(f, final, &token_length, &id);
        if (match == ADDED_OPEN) {
            break;
        }
        if (match == ADDED_NONE) {
            f->n_plain += length;
            if (nfc_border_after(code)) {
                f->n_bordered = f->n_plain;
            }
            continue;
        }
        status = move_on(f, begin, f->n_plain - begin, true, ids, error);
        if (status == UTTER_OK) {
            status = ids_add(ids, id, behind_opening(f, f->n_gone + f->n_plain), error);
        }
        f->n_plain += token_length;
        f->n_bordered = begin = f->n_plain;
    }
    size_t end = final ? f->n_plain : f->n_bordered;
    if (status == UTTER_OK && (end > begin || final)) {
        status = move_on(f, begin, end - begin, final, ids, error);
    }
    chars_drop(&f->raw, end);
    f->n_gone += end;
    f->n_valid -= end;
    f->n_plain -= end;
    f->n_bordered = 0;
    return status;
}

void token_feed_begin_offsets(struct token_feed *feed, size_t n_before)
{
    feed->n_opening = feed->n_gone + feed->raw.n - n_before; /* modulo 2^64, as what it is taken from */
}

void token_feed_literal(struct token_feed *feed, bool literal)
{
    uint64_t here = feed->n_gone + feed->raw.n;
    feed->literal_from = literal ? here : feed->literal_from;
    feed->literal_to = literal ? UINT64_MAX : here;
}

utter_status token_feed_text(
    struct token_feed *feed, const char *text, size_t bytes, struct ids *ids, utter_error *error)
{
    utter_status status = chars_add(&feed->raw, text, bytes, error);
    if (status != UTTER_OK) {
        return status;
    }
    bool bad;
    feed->n_valid += utf8_valid(feed->raw.at + feed->n_valid, feed->raw.n - feed->n_valid, &bad);
    if (bad) {
        return error_set(error, UTTER_E_ARGUMENT, "the text is not UTF-8 at byte %llu",
            (unsigned long long)(feed->n_gone + feed->n_valid - feed->n_opening));
    }
    return take_raw(feed, false, ids, error);
}

size_t token_feed_least_ids(const struct token_feed *feed)
{
    /* Composed characters (NFC) take a quarter of the bytes of their parts at the least. */
    enum { COMPOSED = 4 };
    return (feed->raw.n / COMPOSED + feed->normal.n) / feed->tokenizer->longest;
}

utter_status token_feed_finish(struct token_feed *feed, struct ids *ids, utter_error *error)
{
    if (feed->n_valid < feed->raw.n) {
        return error_set(error, UTTER_E_ARGUMENT, "the text ends inside a character at byte %llu",
            (unsigned long long)(feed->n_gone + feed->n_valid - feed->n_opening));
    }
    utter_status status = take_raw(feed, true, ids, error);
    feed->n_gone = feed->n_left = 0;
    feed->places.n = 0;
    feed->n_opening = 0;
    feed->literal_from = UINT64_MAX;
    return status;
}

utter_status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t bytes,
    struct ids *ids, utter_error *error)
{
    const size_t n_before = ids->n;
    struct token_feed *feed;
    utter_status status = token_feed_open(&feed, tokenizer, error);
    if (status == UTTER_OK) {
        status = token_feed_text(feed, text, bytes, ids, error);
    }
    if (status == UTTER_OK) {
        status = token_feed_finish(feed, ids, error);
    }
    token_feed_close(&feed);
    if (status != UTTER_OK) {
        ids->n = n_before;
    }
    return status;
}
