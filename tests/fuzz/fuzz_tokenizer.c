/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as one of the files of a tokenizer, or as a text that comes in pieces. The first byte says
 * which. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/took.h"
#include "text/added.h"
#include "text/bpe.h"
#include "text/feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char folder[] = "tests/fixtures/vocabulary";

/* The vocabulary of the tests, for the files that need one; and a tokenizer for each pattern. */
static struct vocabulary vocabulary;
static struct tokenizer *tokenizers[2];

static void open_fixtures(void)
{
    if (!tokenizers[0] &&
        (vocabulary_open(&vocabulary, "tests/fixtures/vocabulary/vocab.json", file_read, NULL) !=
                UTTER_OK ||
            tokenizer_open(&tokenizers[1], folder, file_read, PRETOKENIZER_NATIVE, NULL) != UTTER_OK ||
            tokenizer_open(&tokenizers[0], folder, file_read, PRETOKENIZER_MISTRAL, NULL) !=
                UTTER_OK)) {
        fprintf(stderr, "run this where %s is\n", folder);
        exit(1);
    }
}

static void read_as_file(int kind, const uint8_t *data, size_t bytes)
{
    char path[64];
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes) {
        exit(1);
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    utter_error error = {.text = ""};
    utter_status status;
    if (kind == 0) {
        struct vocabulary v;
        status = vocabulary_open(&v, path, file_read, &error);
        vocabulary_close(&v);
    } else if (kind == 1) {
        struct bpe bpe;
        status = bpe_open(&bpe, &vocabulary, path, file_read, &error);
        bpe_close(&bpe);
    } else {
        struct added added;
        status = added_open(&added, &vocabulary, path, file_read, &error);
        added_close(&added);
    }
    close(fd);
    if (status == UTTER_OK && kind != 1) { /* merges are lines: fewer of them are a file too */
        replay_takes();
    }
    if (status != UTTER_OK && (!error.text[0] || strchr(error.text, '\n'))) {
        abort();
    }
}

/* Pieces of the lengths that `seed` gives; what is settled on the way must stay. */
static void read_as_text(
    const struct tokenizer *tokenizer, unsigned seed, const char *text, size_t bytes)
{
    struct ids whole = {0}, ids = {0};
    struct token_feed *feed;
    utter_status wanted = tokenizer_encode(tokenizer, text, bytes, &whole, NULL);
    utter_status status = token_feed_open(&feed, tokenizer, NULL);
    for (size_t at = 0, n; at < bytes && status == UTTER_OK; at += n) {
        seed = seed * 1664525u + 1013904223u;
        n = 1 + (seed >> 24) % 9;
        n = n < bytes - at ? n : bytes - at;
        status = token_feed_text(feed, text + at, n, &ids, NULL);
        if (wanted == UTTER_OK &&
            (ids.n > whole.n || (ids.n > 0 && memcmp(ids.at, whole.at, ids.n * sizeof *ids.at) != 0))) {
            abort();
        }
    }
    if (status == UTTER_OK) {
        status = token_feed_finish(feed, &ids, NULL);
    }
    if (status != wanted || (status == UTTER_OK && ids.n != whole.n)) {
        abort();
    }
    token_feed_close(&feed);
    ids_fini(&ids);
    ids_fini(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0) {
        return 0;
    }
    open_fixtures();
    int kind = data[0] % 5; /* "0" to "4" are 3, 4, 0, 1, 2 */
    if (kind < 3) {
        read_as_file(kind, data + 1, bytes - 1);
    } else {
        read_as_text(tokenizers[kind - 3], data[0], (const char *)data + 1, bytes - 1);
    }
    return 0;
}
