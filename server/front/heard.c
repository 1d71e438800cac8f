/* SPDX-License-Identifier: Apache-2.0
 * From seconds to bytes of text. */
#include "server/front/heard.h"

void heard_begin(struct heard *h, int utterance)
{
    heard_fini(h);
    h->utterance = utterance;
}

void heard_fini(struct heard *h)
{
    wire_fini(&h->text);
    word_list_fini(&h->words);
}

size_t heard_size(const struct heard *h)
{
    return h->text.n + word_list_size(&h->words);
}

json_t *heard_news(struct heard *h)
{
    json_t *news = word_list_news(&h->words, (const char *)h->text.bytes, h->text.n);
    return news ? json_pack("{s:s,s:i,s:o,s:b}", "type", "audio.words", "utterance_index", h->utterance,
                      "words", news, "approximate", h->words.approximate)
                : NULL;
}

/* Text that was cut between two characters is text. */
static void set_text(json_t *answer, const char *name, const void *text, size_t n)
{
    json_t *json = json_stringn(text ? text : "", n);
    json_object_set_new(answer, name, json ? json : json_string(""));
}

void heard_split(
    struct heard *h, json_t *answer, double played_s, double seconds, const struct wire_out *rest)
{
    const char *text = (const char *)h->text.bytes;
    size_t n = h->text.n;
    size_t spoken = h->has_words ? word_list_heard(&h->words, text, n, played_s)
                                 : words_share(text, n, played_s, seconds);
    json_object_set_new(answer, "heard_utterance_index", json_integer(h->utterance));
    set_text(answer, "text_spoken", text, spoken);
    wire_put(&h->text, rest->bytes, rest->n);
    set_text(
        answer, "text_remaining", h->text.bytes ? h->text.bytes + spoken : NULL, h->text.n - spoken);
    h->text.n = n;
    json_object_set_new(answer, "approximate", json_boolean(!h->has_words || h->words.approximate));
}
