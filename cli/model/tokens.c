/* SPDX-License-Identifier: Apache-2.0
 * utter tokens: the ids of a text. */
#include <stdlib.h>

#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/speak/text_source.h"

static void print_ids(const int32_t *ids, size_t n_ids, bool as_json)
{
    fputs(as_json ? "{\"ids\":[" : "", stdout);
    for (size_t i = 0; i < n_ids; i++) {
        printf("%s%d", i == 0 ? "" : as_json ? "," : " ", ids[i]);
    }
    fputs(as_json ? "]}\n" : "\n", stdout);
}

int command_tokens(const struct invocation *invocation)
{
    struct text_source source;
    utter_model *model = NULL;
    int code = text_source_open(&source, invocation);
    if (code == 0) {
        code = text_source_read_all(&source);
    }
    if (code == 0) {
        code = checkpoint_look(&model, &invocation->settings);
    }
    if (code == 0) {
        int32_t *ids = NULL;
        size_t n_ids = 0;
        utter_error error = {0};
        utter_status status =
            utter_model_tokenize(model, source.text, source.bytes, &ids, &n_ids, &error);
        if (status == UTTER_OK) {
            print_ids(ids, n_ids, invocation->settings.json.given);
        } else {
            code = fail_status(status, &error);
        }
        utter_memory_free(ids);
    }
    utter_model_close(&model);
    text_source_close(&source);
    free(source.text);
    return code;
}
