/* SPDX-License-Identifier: Apache-2.0
 * A tokenizer from its files: byte-level BPE of the Qwen2 family from vocab.json, merges.txt and the added tokens of
 * tokenizer_config.json. Immutable once open, so threads may share it. Text becomes ids in text/feed.h. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include "base/file.h"
#include "text/pretokens.h"

struct tokenizer;

/* `folder` is the checkpoint folder. Whether the official package would patch depends on the folder's
 * config.json (docs/model.md, Text to rows); the caller decides and passes PATCHED or NATIVE.
 * `read_file` reads a file by its path, which begins with the folder. */
utter_status tokenizer_open(struct tokenizer **tokenizer, const char *folder, file_reader *read_file,
    enum pretokenizer pattern, utter_error *error);
void tokenizer_close(struct tokenizer **tokenizer); /* accepts a pointer to NULL */

size_t tokenizer_vocabulary(const struct tokenizer *tokenizer); /* 1 + largest id */

#endif
