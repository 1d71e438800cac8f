/* SPDX-License-Identifier: Apache-2.0
 * What a million characters of one kind cost the tokenizer against ten times a hundred thousand of them: 1.1 at most.
 * A character of each of Unicode's categories, and what the rules of words and added tokens look for; as a whole text
 * and through a feed. The least of some turns, each as long for the few as for the many, so that other programs count
 * for little. Usage: linear FOLDER [TURNS], with a folder of tokenizer files. Ends with `N passed, N failed`.
 * linear FOLDER 0 PATTERN FEED KIND N tokenizes N characters once, for who counts its instructions (count_linear). */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text/feed.h"

enum { FEW = 100000, MANY = 1000000, PIECE = 64 };

static const double most = 1.1;

static const char *const kinds[] = {"a", "Z", "z", "é", "ſ", "ǅ", "ʰ", "ª", "あ", "中", "가", "ᄀ", "ก",
    "ب", "א", "क", "𝒜", "𠀀", "́", "ि", "⃝", "0", "٣", "Ⅻ", "½", "_", "-", "(", ")", "«", "»", "!", ".",
    "'", "\"", "+", "$", "^", "©", "😀", " ", "\t", "\n", "\r\n", "\u00a0", "\u2028", "\u2029", "\u200d",
    "\u00ad", "\ufeff", "\ue000", "\u0378", "\001", "'s", "a ", " a", "a\n", "<", "<|", "<|im_",
    "e\u0301", "\u1100\u1161", "1a", "ab", "the"};

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static utter_status feed_pieces(const struct tokenizer *tokenizer, const char *text, size_t bytes,
    struct ids *ids, utter_error *error)
{
    struct token_feed *feed;
    utter_status status = token_feed_open(&feed, tokenizer, error);
    for (size_t at = 0; status == UTTER_OK && at < bytes; at += PIECE) {
        status = token_feed_text(feed, text + at, bytes - at < PIECE ? bytes - at : PIECE, ids, error);
    }
    if (status == UTTER_OK) {
        status = token_feed_finish(feed, ids, error);
    }
    token_feed_close(&feed);
    return status;
}

/* Seconds of a processor for `n` characters of this kind. */
static double seconds_of(const struct tokenizer *tokenizer, const char *kind, size_t n, bool in_pieces)
{
    size_t bytes = strlen(kind), characters = 0;
    for (const char *c = kind; *c; c++) {
        characters += ((unsigned char)*c & 0xC0) != 0x80;
    }
    const size_t times = n / characters;
    char *text = malloc(times * bytes);
    if (!text) {
        perror("linear");
        exit(2);
    }
    for (size_t i = 0; i < times; i++) {
        memcpy(text + i * bytes, kind, bytes);
    }
    struct ids ids = {0};
    utter_error error = {0};
    double began = processor_s();
    utter_status status = in_pieces ? feed_pieces(tokenizer, text, times * bytes, &ids, &error)
                                    : tokenizer_encode(tokenizer, text, times * bytes, &ids, &error);
    double took = processor_s() - began;
    if (status != UTTER_OK) {
        fprintf(stderr, "linear: %s\n", error.text);
        exit(2);
    }
    ids_fini(&ids);
    free(text);
    return took;
}

static bool is_linear(
    const struct tokenizer *tokenizer, const char *pattern, size_t kind, bool in_pieces, int turns)
{
    double few = INFINITY, many = INFINITY;
    for (int turn = 0; turn < turns; turn++) {
        double some = 0;
        for (int i = 0; i < MANY / FEW; i++) {
            some += seconds_of(tokenizer, kinds[kind], FEW, in_pieces);
        }
        few = fmin(few, some);
        many = fmin(many, seconds_of(tokenizer, kinds[kind], MANY, in_pieces));
    }
    double ratio = many / few;
    printf("%s %s\tkind %zu, first byte %02x\t%.1f ms\t%.3f%s\n", pattern, in_pieces ? "feed" : "whole",
        kind, (unsigned char)kinds[kind][0], 1e3 * many, ratio, ratio > most ? "\tFAIL" : "");
    fflush(stdout);
    return ratio <= most;
}

static struct tokenizer *opened(const char *folder, enum pretokenizer pattern)
{
    struct tokenizer *tokenizer;
    utter_error error = {0};
    if (tokenizer_open(&tokenizer, folder, file_read, pattern, &error) != UTTER_OK) {
        fprintf(stderr, "linear: %s\n", error.text);
        exit(2);
    }
    return tokenizer;
}

int main(int argc, char **argv)
{
    static const enum pretokenizer patterns[] = {PRETOKENIZER_MISTRAL, PRETOKENIZER_NATIVE};
    const size_t n_kinds = sizeof kinds / sizeof *kinds;
    /* Pages stay, so that what the system takes for new ones is not counted. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    if (argc == 7 && (size_t)atoi(argv[5]) < n_kinds) {
        struct tokenizer *tokenizer = opened(argv[1], patterns[atoi(argv[3]) != 0]);
        seconds_of(tokenizer, kinds[atoi(argv[5])], (size_t)atoi(argv[6]), atoi(argv[4]) != 0);
        tokenizer_close(&tokenizer);
        return 0;
    }
    int n = 0, n_right = 0, turns = argc > 2 ? atoi(argv[2]) : 5;
    for (int native = 0; native < 2 && argc > 1; native++) {
        struct tokenizer *tokenizer = opened(argv[1], patterns[native]);
        for (size_t kind = 0; kind < 2 * n_kinds; kind++) {
            n++;
            n_right += is_linear(tokenizer, native ? "native" : "mistral", kind / 2, kind % 2, turns);
        }
        tokenizer_close(&tokenizer);
    }
    printf("%d passed, %d failed\n", n_right, n - n_right);
    return n_right < n || n == 0;
}
