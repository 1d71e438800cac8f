/* SPDX-License-Identifier: Apache-2.0
 * Opens the three files of a tokenizer. */
#include "text/tokenizer.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "text/tokenizer_parts.h"

/* The official package patches vocabularies of more than this many entries. */
enum { PATCHED_ABOVE = 100000 };

static enum pretokenizer choose_pattern(enum pretokenizer wanted, size_t n_entries)
{
    if (wanted != PRETOKENIZER_PATCHED) {
        return wanted;
    }
    return n_entries > PATCHED_ABOVE ? PRETOKENIZER_MISTRAL : PRETOKENIZER_NATIVE;
}

static utter_status read_files(struct tokenizer *t, const char *folder, file_reader *read_file,
    enum pretokenizer pattern, utter_error *error)
{
    char path[4096];
    struct vocabulary vocabulary = {0};
    utter_status status = file_join(path, sizeof path, folder, "vocab.json", error);
    if (status == UTTER_OK) {
        status = vocabulary_open(&vocabulary, path, read_file, error);
    }
    if (status == UTTER_OK) {
        status = file_join(path, sizeof path, folder, "merges.txt", error);
    }
    if (status == UTTER_OK) {
        status = bpe_open(&t->bpe, &vocabulary, path, read_file, error);
    }
    if (status == UTTER_OK) {
        status = file_join(path, sizeof path, folder, "tokenizer_config.json", error);
    }
    if (status == UTTER_OK) {
        status = added_open(&t->added, &vocabulary, path, read_file, error);
    }
    if (status == UTTER_OK) {
        int32_t a = t->added.largest_id, v = vocabulary.largest_id;
        t->n_vocabulary = (size_t)max(a, v) + 1;
        for (size_t i = 0; i < vocabulary.n; i++) {
            t->longest = max(vocabulary.entry[i].bytes, t->longest);
        }
        status = pretokens_new(&t->pretokens, choose_pattern(pattern, vocabulary.n), error);
    }
    vocabulary_close(&vocabulary);
    return status;
}

utter_status tokenizer_open(struct tokenizer **tokenizer, const char *folder, file_reader *read_file,
    enum pretokenizer pattern, utter_error *error)
{
    *tokenizer = NULL;
    struct tokenizer *t = memory_new(1, sizeof *t);
    if (!t) {
        return error_memory(error, "the tokenizer");
    }
    utter_status status = read_files(t, folder, read_file, pattern, error);
    if (status != UTTER_OK) {
        tokenizer_close(&t);
        return status;
    }
    *tokenizer = t;
    return UTTER_OK;
}

void tokenizer_close(struct tokenizer **tokenizer)
{
    struct tokenizer *t = *tokenizer;
    if (t) {
        added_close(&t->added);
        pretokens_free(t->pretokens);
        bpe_close(&t->bpe);
        memory_free(t);
    }
    *tokenizer = NULL;
}

size_t tokenizer_vocabulary(const struct tokenizer *tokenizer)
{
    return tokenizer->n_vocabulary;
}
