/* SPDX-License-Identifier: Apache-2.0
 * Token ids of many texts, for tools/oracle/compare_tokens.py.
 *
 *     token_lines FOLDER mistral|native [SEED]
 *     token_lines make FIRST N
 *
 * The first form reads "BYTES\n" and that many bytes of text, again and again, and writes one line of ids,
 * or "error ...", for each. With a seed the text goes through a feed in pieces of random length. The second
 * form writes N lines of tests/text/lines.h in the form that the first one reads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/text/lines.h"
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

static int make_lines(uint64_t first, uint64_t n)
{
    static struct line line;
    for (uint64_t i = first; i < first + n; i++) {
        line_make(&line, i);
        printf("%zu\n", line.n);
        fwrite(line.at, 1, line.n, stdout);
    }
    return fflush(stdout) == 0 ? 0 : 2;
}

/* Reads texts and writes their ids until the input ends. */
static int encode_texts(const struct tokenizer *tokenizer, bool in_pieces)
{
    size_t bytes;
    while (scanf("%zu", &bytes) == 1 && getchar() == '\n') {
        char *text = malloc(bytes + 1);
        if (!text || fread(text, 1, bytes, stdin) != bytes) {
            fprintf(stderr, "token_lines: the input ends inside a text\n");
            free(text);
            return 1;
        }
        struct ids ids = {0};
        utter_error error = {0};
        utter_status status = in_pieces ? feed_pieces(tokenizer, text, bytes, &ids, &error)
                                        : tokenizer_encode(tokenizer, text, bytes, &ids, &error);
        if (status == UTTER_OK) {
            print_ids(&ids);
        } else {
            printf("error %s\n", error.text);
        }
        ids_fini(&ids);
        free(text);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0) {
        return make_lines(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    }
    if (argc < 3 || argc > 4 || (strcmp(argv[2], "mistral") != 0 && strcmp(argv[2], "native") != 0)) {
        fprintf(stderr, "usage: token_lines FOLDER mistral|native [SEED], token_lines make FIRST N\n");
        return 1;
    }
    utter_error error = {0};
    struct tokenizer *tokenizer;
    enum pretokenizer pattern =
        strcmp(argv[2], "native") == 0 ? PRETOKENIZER_NATIVE : PRETOKENIZER_MISTRAL;
    state = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
    if (tokenizer_open(&tokenizer, argv[1], file_read, pattern, &error) != UTTER_OK) {
        fprintf(stderr, "token_lines: %s\n", error.text);
        return 1;
    }
    int exit_code = encode_texts(tokenizer, argc == 4);
    tokenizer_close(&tokenizer);
    return exit_code;
}
