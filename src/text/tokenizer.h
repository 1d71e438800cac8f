/* SPDX-License-Identifier: Apache-2.0
 * UTF-8 text -> token ids: byte-level BPE of the Qwen2 family from vocab.json, merges.txt and the added
 * tokens of tokenizer_config.json. Immutable once open. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include "base/error.h"

struct tokenizer;

enum pretokenizer { PRETOKENIZER_MISTRAL, PRETOKENIZER_NATIVE };

/* `folder` is the checkpoint folder. Which pattern the official package would use depends on the folder's
 * config.json (spec 2.3); the caller decides and passes it. */
utter_status tokenizer_open(
    struct tokenizer **tokenizer, const char *folder, enum pretokenizer pattern, utter_error *error);
void tokenizer_close(struct tokenizer **tokenizer);

/* A growing list of ids. Zero it before use. */
struct ids {
    int32_t *at;
    size_t n, capacity;
};
utter_status ids_add(struct ids *ids, int32_t id, utter_error *error);
void ids_fini(struct ids *ids);

/* Appends the ids of `bytes` bytes of valid UTF-8 to *ids; invalid UTF-8 is UTTER_E_ARGUMENT with the offset. */
utter_status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t bytes,
    struct ids *ids, utter_error *error);

/* Text that arrives in pieces: how many of the first bytes of `text` are *settled*, that is, have the
 * ids that tokenizer_encode(text + anything) begins with, whatever follows. *n_settled_ids says how many ids of
 * tokenizer_encode(text) those are. Incomplete UTF-8 at the end is not settled and no error. `text` begins
 * where a whole text begins. */
utter_status tokenizer_settled(const struct tokenizer *tokenizer, const char *text, size_t bytes,
    size_t *n_settled_bytes, size_t *n_settled_ids, utter_error *error);

size_t tokenizer_vocabulary(const struct tokenizer *tokenizer); /* 1 + largest id */

#endif
