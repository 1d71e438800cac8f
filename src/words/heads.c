/* SPDX-License-Identifier: Apache-2.0
 * The file of heads -> checked heads. */
#include "words/heads.h"

#include <stdio.h>

#include "base/file.h"
#include "weights/checkpoint.h"

enum { FILE_BYTES = 64 << 10 };

static bool read_head(struct talker_head *head, const struct config *config, const json_t *pair)
{
    const json_t *layer = json_array_get(pair, 0), *number = json_array_get(pair, 1);
    const struct stack_config *t = &config->talker;
    json_int_t l = json_integer_value(layer), h = json_integer_value(number);
    if (json_array_size(pair) != 2 || !json_is_integer(layer) || !json_is_integer(number) || l < 0 ||
        l >= t->n_layers || h < 0 || h >= t->n_heads) {
        return false;
    }
    *head = (struct talker_head){(int)l, (int)h};
    return true;
}

utter_status heads_read(
    struct heads *heads, const struct config *config, const char *path, utter_error *error)
{
    json_t *root;
    *heads = (struct heads){0};
    utter_status status = checkpoint_json(&root, path, FILE_BYTES, JSON_SMALL, error);
    if (status) {
        return status;
    }
    struct json_fields fields = {root, path, error, UTTER_OK};
    const json_t *list = json_need_array(&fields, "alignment_heads");
    heads->lead_ms = json_take_number(&fields, "lead_ms", -2000, 2000, 0);
    size_t n = json_array_size(list);
    if (!fields.status && n > HEADS_MOST) {
        fields.status =
            error_set(error, UTTER_E_MODEL, "%s: %zu heads: at most %d", path, n, HEADS_MOST);
    }
    for (size_t i = 0; !fields.status && i < n; i++) {
        if (!read_head(&heads->at[heads->n++], config, json_array_get(list, i))) {
            fields.status = error_set(error, UTTER_E_MODEL,
                "%s: alignment_heads: entry %zu is no [layer, head] of this model (%d layers of %d)",
                path, i, config->talker.n_layers, config->talker.n_heads);
        }
    }
    json_decref(root);
    heads->n = fields.status ? 0 : heads->n;
    return fields.status;
}

utter_status heads_write(const struct heads *heads, const char *path, utter_error *error)
{
    char text[64 + 32 * HEADS_MOST];
    int n = snprintf(text, sizeof text, "{\"alignment_heads\": [");
    for (int i = 0; i < heads->n; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "%s[%d, %d]", i ? ", " : "",
            heads->at[i].layer, heads->at[i].head);
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "], \"lead_ms\": %g}\n", heads->lead_ms);
    struct file_out *out;
    utter_status status = file_out_open(&out, path, error);
    if (!status && (status = file_out_write(out, text, (size_t)n, error))) {
        file_out_abort(&out);
    }
    return status ? status : file_out_close(&out, error);
}
