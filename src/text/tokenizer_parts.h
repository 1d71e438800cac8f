/* SPDX-License-Identifier: Apache-2.0
 * What a tokenizer is made of; for this room only. */
#ifndef TEXT_TOKENIZER_PARTS_H
#define TEXT_TOKENIZER_PARTS_H

#include "text/added.h"
#include "text/bpe.h"
#include "text/pretokens.h"

struct tokenizer {
    struct added added;
    struct pretokens *pretokens;
    struct bpe bpe;
    size_t n_vocabulary;
    size_t longest; /* bytes of the longest token of vocab.json */
};

#endif
