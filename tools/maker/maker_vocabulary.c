/* SPDX-License-Identifier: Apache-2.0
 * Tokenizer files: which ids they give the control tokens, and a copy of them in the checkpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tools/maker/maker.h"

static json_t *load(const char *folder, const char *name)
{
    char path[4096];
    json_error_t error;
    json_t *root = json_load_file(path_in(path, sizeof path, folder, name), 0, &error);
    if (!json_is_object(root)) {
        fail("%s: %s (--vocabulary names a folder with tokenizer files)", path, error.text);
    }
    return root;
}

static int added_id(json_t *config, const char *content)
{
    const char *key;
    json_t *token;
    json_object_foreach(json_object_get(config, "added_tokens_decoder"), key, token)
    {
        const char *text = json_string_value(json_object_get(token, "content"));
        if (text && strcmp(text, content) == 0) {
            return atoi(key);
        }
    }
    fail("tokenizer_config.json has no token %s", content);
}

void vocabulary_read(struct vocabulary *v)
{
    json_t *config = load(v->folder, "tokenizer_config.json"), *base = load(v->folder, "vocab.json");
    v->im_start = added_id(config, "<|im_start|>");
    v->im_end = added_id(config, "<|im_end|>");
    v->tts_pad = added_id(config, "<tts_pad>");
    v->tts_bos = added_id(config, "<tts_text_bos>");
    v->tts_eos = added_id(config, "<tts_text_eod>");
    json_t *assistant = json_object_get(base, "assistant");
    if (!json_is_integer(assistant)) {
        fail("vocab.json: \"assistant\" is not one token");
    }
    v->assistant = (int)json_integer_value(assistant);

    v->n_tokens = (int)json_object_size(base);
    const char *key;
    json_t *token;
    json_object_foreach(json_object_get(config, "added_tokens_decoder"), key, token)
    {
        v->n_tokens = atoi(key) >= v->n_tokens ? atoi(key) + 1 : v->n_tokens;
    }
    json_decref(config);
    json_decref(base);
}

static void copy(const char *from_folder, const char *to_folder, const char *name)
{
    char from[4096], to[4096], block[1 << 16];
    FILE *in = fopen(path_in(from, sizeof from, from_folder, name), "rb");
    FILE *out = fopen(path_in(to, sizeof to, to_folder, name), "wb");
    if (!in || !out) {
        fail("cannot copy %s to %s", from, to);
    }
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;) {
        if (fwrite(block, 1, n, out) != n) {
            fail("cannot write %s", to);
        }
    }
    if (ferror(in) || fclose(out) != 0) {
        fail("cannot copy %s to %s", from, to);
    }
    fclose(in);
}

void vocabulary_copy(const struct vocabulary *v, const char *folder)
{
    copy(v->folder, folder, "vocab.json");
    copy(v->folder, folder, "merges.txt");
    copy(v->folder, folder, "tokenizer_config.json");
}
