/* SPDX-License-Identifier: Apache-2.0
 * utter align-heads: the model speaks, and which of its heads follow the text is kept for --times. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/defaults.h"
#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/overwrite.h"
#include "cli/report.h"

/* Of the heads that do not follow, so many are shown. */
enum { SHOWN = 5 };

static const char *const sentences[] = {
    "The old lighthouse stood on a rock far out in the bay, and nobody had lived there for years.",
    "Please put the letters on the table, close the window, and wait for me in the garden.",
    "We walked along the river until the sun went down, then we turned back and made a fire.",
    "My sister plays the violin, my brother sings, and I can only whistle when nobody listens.",
    "If the train is late again tomorrow, we will take the bus and meet you at the station.",
    "There were apples, pears and plums in the basket, but the children only wanted the bread.",
};

static json_t *heads_json(const utter_head *heads, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(
            list, json_pack("{s:i,s:i,s:f,s:b}", "layer", heads[i].layer, "head", heads[i].head,
                      "score", heads[i].score, "follows", heads[i].follows));
    }
    return list;
}

static void print_heads(const utter_head *heads, size_t n, size_t n_follow)
{
    printf("head    score\n");
    for (size_t i = 0; i < n && i < n_follow + SHOWN; i++) {
        printf("%2d.%-4d %6.3f%s\n", heads[i].layer, heads[i].head, heads[i].score,
            heads[i].follows ? "  follows the text" : "");
    }
}

static int tell(const struct invocation *invocation, const utter_head *heads, size_t n)
{
    const struct settings *s = &invocation->settings;
    size_t n_follow = 0;
    while (n_follow < n && heads[n_follow].follows) {
        n_follow++;
    }
    if (s->json.given) {
        int code = report_json(
            json_pack("{s:b,s:o}", "approximate", n_follow == 0, "heads", heads_json(heads, n)));
        return code ? code : n_follow == 0;
    }
    print_heads(heads, n, n_follow);
    fflush(stdout); /* in front of what is said of it; main tells where that cannot be */
    if (n_follow == 0) {
        return fail(1, "align-heads: no head follows the text well enough: the times of words stay "
                       "approximate");
    }
    if (!s->quiet.given) {
        note("words of this model are timed by %zu head%s", n_follow, n_follow == 1 ? "" : "s");
    }
    return 0;
}

int command_align_heads(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    const char *const *texts = sentences;
    size_t n = sizeof sentences / sizeof *sentences, n_heads;
    utter_model *model = NULL;
    utter_voice *voice = NULL;
    utter_stream_options options;
    utter_head *heads = NULL;
    utter_error error = {0};
    if (invocation->n_words > 0) {
        texts = invocation->words;
        n = (size_t)invocation->n_words;
    }
    int code = checkpoint_open(&model, s, 1);
    if (code == 0 && (code = checkpoint_stream_options(&options, &voice, model, s)) == 0) {
        if (!s->quiet.given && progress_shown()) {
            progress("speaking %zu texts ...", n);
        }
        utter_status status = utter_model_align_heads(
            model, &options, texts, n, s->output.text, &heads, &n_heads, &error);
        progress_clear();
        code = status ? fail_status(status, &error) : tell(invocation, heads, n_heads);
    }
    utter_memory_free(heads);
    utter_voice_free(&voice);
    utter_model_close(&model);
    return code;
}
