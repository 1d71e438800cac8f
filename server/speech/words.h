/* SPDX-License-Identifier: Apache-2.0
 * The words of a text that is spoken, as they come from the worker, and what of them a client has been told and has
 * heard. Pure but for memory. */
#ifndef SERVER_WORDS_H
#define SERVER_WORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/protocol/wire.h"

struct speech_word {
    size_t at, bytes;      /* in the text as the client gave it */
    double start_s, end_s; /* of the sound as it leaves */
    float certainty;
    bool final;   /* it changes no more */
    bool skipped; /* nothing of the sound is known to say it */
};

/* From word `first` of the speech on, these are its words; what was told of later ones is no longer so. */
struct speech_words {
    uint64_t first;
    const struct speech_word *at;
    size_t n;
    bool approximate; /* times are shares of the sound */
};

/* Words of one speech, or of several in a row. Zero it before the first. */
struct word_list {
    struct speech_word *at; /* [n], from word `first` on */
    size_t n, room, first;
    size_t n_told,
        n_final; /* words that the client knows; of them final ones. They count from word 0 */
    bool approximate, failed; /* failed: memory has ended */
    bool exact;               /* times are told to the sample, and certainties as they are */
    /* Of the speeches before the one whose words come: words, bytes of text, seconds of sound. */
    size_t n_before, at_before;
    double s_before;
};

void word_list_take(struct word_list *l, const struct speech_words *words);
/* The speech whose words came had so much text and sound; those of the next one follow. */
void word_list_next(struct word_list *l, size_t bytes, double seconds);
/* What the client does not know yet, each word when it begins and once more when it is final, as a list of {index,
 * word, start, end, at, bytes, certainty, final, skipped}; NULL: nothing. text[0..n): that of all speeches. */
json_t *word_list_news(struct word_list *l, const char *text, size_t n);
/* For who tells the words of a whole speech once: all final ones, as the text of such a list, one after the other, so
 * that it takes no more memory than that (out->failed: there is none). */
void word_list_write(const struct word_list *l, const char *text, size_t n, struct wire_out *out);
/* About the bytes that the list takes, and what word_list_write will make of it. */
size_t word_list_needs(const struct word_list *l);
/* For who tells each word once: how many of those that the client does not know (from n_told on) it should know by
 * now. Final ones; and those that will have begun before until_s of the sound have been heard, when the next word shows
 * where they end. */
size_t word_list_due(const struct word_list *l, double until_s);
/* The words before this one are not needed any more. */
void word_list_forget(struct word_list *l, size_t index);
/* Bytes of text[0..n) that have begun to be heard when heard_s of the sound have been; marks belong to the word that
 * they follow. */
size_t word_list_heard(const struct word_list *l, const char *text, size_t n, double heard_s);
/* The same without words: by the share of the letters in so many seconds. */
size_t words_share(const char *text, size_t n, double heard_s, double seconds);
/* Bytes of memory. */
size_t word_list_size(const struct word_list *l);
void word_list_fini(struct word_list *l);

#endif
