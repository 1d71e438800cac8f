/* SPDX-License-Identifier: Apache-2.0
 * UTF-8 text -> token ids: byte-level BPE of the Qwen2 family from vocab.json, merges.txt and the added
 * tokens of tokenizer_config.json. Immutable once open, so threads may share it. Text that arrives in
 * pieces: text/feed.h. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include "base/file.h"

struct tokenizer;

/* PATCHED is what the official package makes of a folder whose config.json asks for its patch: MISTRAL when
 * vocab.json has more than 100,000 entries (as every released one), else NATIVE. */
enum pretokenizer { PRETOKENIZER_MISTRAL, PRETOKENIZER_NATIVE, PRETOKENIZER_PATCHED };

/* `folder` is the checkpoint folder. Whether the official package would patch depends on the folder's
 * config.json (docs/model.md, Text to rows); the caller decides and passes PATCHED or NATIVE.
 * `read_file` reads a file by its path, which begins with the folder. */
utter_status tokenizer_open(struct tokenizer **tokenizer, const char *folder, file_reader *read_file,
    enum pretokenizer pattern, utter_error *error);
void tokenizer_close(struct tokenizer **tokenizer); /* accepts a pointer to NULL */

/* A growing list of ids. Zero it before use. */
struct ids {
    int32_t *at;
    size_t n, capacity;
};
utter_status ids_add(struct ids *ids, int32_t id, utter_error *error);
void ids_fini(struct ids *ids);

/* Appends the ids of `bytes` bytes of valid UTF-8 to *ids; invalid UTF-8 is UTTER_E_ARGUMENT with the
 * offset. After a failure *ids is as it was. */
utter_status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t bytes,
    struct ids *ids, utter_error *error);

size_t tokenizer_vocabulary(const struct tokenizer *tokenizer); /* 1 + largest id */

#endif
