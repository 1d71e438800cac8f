/* SPDX-License-Identifier: Apache-2.0
 * A tokenizer small enough to try every damage to its files: the 256 bytes (id = byte), then "ab" "abc" "##"
 * " a" "aa" "aaaa", then added tokens. */
#ifndef TESTS_TEXT_SMALL_H
#define TESTS_TEXT_SMALL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support.h"
#include "text/chars.h"
#include "text/feed.h"
#include "text/vocabulary.h"

#define SMALL_MERGES "a b\nab c\n# #\n\u0120 a\na a\naa aa\n"
#define SMALL_TOKEN(id, content, special, normalized)                                                  \
    "\"" id "\":{\"content\":\"" content "\",\"lstrip\":false,\"normalized\":" normalized              \
    ",\"rstrip\":false,\"single_word\":false,\"special\":" special "}"
#define SMALL_CONFIG                                                                                   \
    "{\"added_tokens_decoder\":{" SMALL_TOKEN("262", "<|im_end|>", "true", "false") "," SMALL_TOKEN(   \
        "263", "<|im_end|>!", "false", "false") "," SMALL_TOKEN("264", "e\\u0301x", "false",           \
        "true") "},\"tokenizer_class\":\"Qwen2Tokenizer\"}"

enum {
    SMALL_AB = 256,
    SMALL_ABC,
    SMALL_HASHES,
    SMALL_SPACE_A,
    SMALL_AA,
    SMALL_AAAA,
    SMALL_END,
    SMALL_END_MARK,
    SMALL_EX
};

/* vocab.json with `last` before the closing brace. */
static inline void small_vocabulary(char *out, const char *last)
{
    char *at = out;
    *at++ = '{';
    for (int byte = 0; byte < 256; byte++) {
        uint32_t code = 0;
        while (vocabulary_byte(code) != byte) {
            code++;
        }
        *at++ = '"';
        if (code == '"' || code == '\\') {
            *at++ = '\\';
        }
        at += utf8_put(code, at);
        at += sprintf(at, "\":%d,", byte);
    }
    sprintf(at, "\"ab\":256,\"abc\":257,\"##\":258,\"\\u0120a\":259,\"aa\":260,\"aaaa\":261%s}", last);
}

enum { SMALL_BYTES = 4096 }; /* room for vocab.json */

static inline void small_write(const char *name, const char *text)
{
    support_write_file(support_path(name), text, strlen(text));
}

/* Writes the three files into support_folder(). */
static inline void small_files(void)
{
    char text[SMALL_BYTES];
    small_vocabulary(text, "");
    small_write("vocab.json", text);
    small_write("merges.txt", SMALL_MERGES);
    small_write("tokenizer_config.json", SMALL_CONFIG);
}

static inline struct tokenizer *small_open(enum pretokenizer pattern)
{
    struct tokenizer *tokenizer;
    utter_error error = {0};
    small_files();
    if (tokenizer_open(&tokenizer, support_folder(), file_read, pattern, &error) != UTTER_OK) {
        fail_msg("%s", error.text);
    }
    return tokenizer;
}

#endif
