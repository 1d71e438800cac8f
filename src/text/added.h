/* SPDX-License-Identifier: Apache-2.0
 * Added tokens (tokenizer_config.json, added_tokens_decoder): strings that stand for one id wherever they
 * occur. Most are searched in the text as it came; those with "normalized" in its normal form. */
#ifndef TEXT_ADDED_H
#define TEXT_ADDED_H

#include "base/error.h"
#include "text/vocabulary.h"

struct added_node {
    uint32_t child, sibling; /* index, 0: none */
    int32_t id;              /* of the token that ends here, or -1 */
    uint8_t byte;
};

/* A tree of all strings of one kind; node 0 is the root. */
struct added_tree {
    struct added_node *node; /* [n] */
    size_t n, capacity;
    bool begins[256]; /* whether a string begins with this byte */
};

struct added {
    struct added_tree raw, normal;
    int32_t largest_id; /* -1: none */
};

/* Reads the added tokens. Their ids must be those that the official package gives: that of an equal token
 * in the vocabulary, else the next after all before. */
utter_status added_open(struct added *added, const struct vocabulary *vocabulary, const char *path,
    file_reader *read_file, utter_error *error);
void added_close(struct added *added); /* accepts a zeroed one */

enum added_match { ADDED_NONE, ADDED_FOUND, ADDED_OPEN };

/* Whether a string begins at `text`: the longest one. ADDED_OPEN: text that comes behind decides (never
 * when `final`). */
enum added_match added_match(const struct added_tree *tree, const char *text, size_t bytes, bool final,
    size_t *length, int32_t *id);

#endif
