/* SPDX-License-Identifier: Apache-2.0
 * Token ids of many texts, for tools/oracle/compare_tokens.py.
 *
 *     token_lines FOLDER mistral|native [SEED]
 *
 * Reads "N\n" and N bytes of text, again and again; writes one line of ids, or "error ...", for each. With
 * a seed the text goes through a feed in pieces of random length. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/feed.h"

static uint64_t state;

/* A number from 0 to n - 1 (a linear congruential generator does: it only chooses lengths). */
static size_t draw(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

static utter_status feed_pieces(const struct tokenizer *tokenizer, const char *text, size_t bytes,
    struct ids *ids, utter_error *error)
{
    struct token_feed *feed;
    utter_status status = token_feed_open(&feed, tokenizer, error);
    size_t longest = draw(2) ? 3 : 40;
    for (size_t at = 0; status == UTTER_OK && at < bytes;) {
        size_t n = draw(longest) + 1;
        n = n < bytes - at ? n : bytes - at;
        status = token_feed_text(feed, text + at, n, ids, error);
        at += n;
    }
    if (status == UTTER_OK) {
        status = token_feed_finish(feed, ids, error);
    }
    token_feed_close(&feed);
    return status;
}

static void print_ids(const struct ids *ids)
{
    for (size_t i = 0; i < ids->n; i++) {
        printf("%s%" PRId32, i ? " " : "", ids->at[i]);
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4 || (strcmp(argv[2], "mistral") != 0 && strcmp(argv[2], "native") != 0)) {
        fprintf(stderr, "usage: token_lines FOLDER mistral|native [SEED]\n");
        return 1;
    }
    utter_error error = {0};
    struct tokenizer *tokenizer;
    enum pretokenizer pattern =
        strcmp(argv[2], "native") == 0 ? PRETOKENIZER_NATIVE : PRETOKENIZER_MISTRAL;
    state = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
    if (tokenizer_open(&tokenizer, argv[1], pattern, &error) != UTTER_OK) {
        fprintf(stderr, "token_lines: %s\n", error.text);
        return 1;
    }
    size_t bytes;
    while (scanf("%zu", &bytes) == 1 && getchar() == '\n') {
        char *text = malloc(bytes + 1);
        if (!text || fread(text, 1, bytes, stdin) != bytes) {
            fprintf(stderr, "token_lines: the input ends inside a text\n");
            return 1;
        }
        struct ids ids = {0};
        utter_status status = argc == 4 ? feed_pieces(tokenizer, text, bytes, &ids, &error)
                                        : tokenizer_encode(tokenizer, text, bytes, &ids, &error);
        if (status == UTTER_OK) {
            print_ids(&ids);
        } else {
            printf("error %s\n", error.text);
        }
        ids_fini(&ids);
        free(text);
    }
    tokenizer_close(&tokenizer);
    return 0;
}
