/* SPDX-License-Identifier: Apache-2.0
 * Rows are written here and nowhere else; docs/model.md draws them. The text is tokenised as one string with
 * its wrapper, as the official package does it, and sliced at fixed offsets: the three header ids are
 * whatever the first three turn out to be (white space with a line break at the start of a text merges with
 * the line break of the header). */
#include "prompt/prompt.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "prompt/edges.h"
#include "text/feed.h"

static const char OPENING[] = "<|im_start|>assistant\n";
static const char CLOSING[] = "<|im_end|>\n<|im_start|>assistant\n";
enum { OPENING_IDS = 3, CLOSING_IDS = 5 };

struct prompt {
    const struct config *config;
    const struct tokenizer *tokenizer;
    utter_layout layout; /* full or stream */
    struct ids instruct; /* the wrapped instruction, or none */
    int32_t codec[8];    /* code ids of the header, the last ones pad and begin */
    int n_codec;
    struct edges edges; /* what is dropped or held back at the ends of the text */
    struct token_feed *feed;
    struct ids ids; /* opening, text, and once finished the closing */
    bool finished;
    struct row *rows; /* NULL until certain */
    int n_rows;
    const char *note;
};

static utter_status unknown_language(const struct config *c, const char *name, utter_error *error)
{
    char quoted[96], known[2048] = "auto";
    size_t at = strlen(known);
    for (int i = 0; i < c->n_languages && at + 1 < sizeof known; i++) {
        if (!config_is_dialect(c->languages[i].name)) {
            at += (size_t)snprintf(known + at, sizeof known - at, ", %s", c->languages[i].name);
        }
    }
    error_quote(quoted, sizeof quoted, name, strlen(name));
    return error_set(error, UTTER_E_ARGUMENT, "unknown language \"%s\" (known: %s)", quoted, known);
}

/* The language's index, -1 for none. A dialect is not to be had by its name, but a preset voice that
 * speaks one does so when the language is Chinese or open. */
static utter_status choose_language(
    const struct config *c, const struct prompt_request *r, int *language, utter_error *error)
{
    const char *name = r->language ? r->language : "auto";
    const char *dialect = r->voice ? c->voices[r->voice->preset].dialect : NULL;
    *language = config_find(c->languages, c->n_languages, name);
    bool open = strcasecmp(name, "auto") == 0;
    if (!open && (*language < 0 || config_is_dialect(name))) {
        return unknown_language(c, name, error);
    }
    bool chinese = *language >= 0 && strcasecmp(name, "chinese") == 0;
    if (dialect && (open || chinese)) {
        *language = config_find(c->languages, c->n_languages, dialect);
    }
    return UTTER_OK;
}

/* think, language and speaker, then pad and begin: spec 3.1. */
static void write_codec_header(struct prompt *p, int language, const utter_voice *voice)
{
    const struct config *c = p->config;
    int32_t *at = p->codec;
    *at++ = language < 0 ? c->nothink : c->think;
    *at++ = c->think_bos;
    if (language >= 0) {
        *at++ = c->languages[language].id;
    }
    *at++ = c->think_eos;
    if (voice) {
        *at++ = c->voices[voice->preset].id;
    }
    *at++ = c->codec_pad;
    *at++ = c->codec_bos;
    p->n_codec = (int)(at - p->codec);
}

/* The official package drops an instruction for custom voices of the small size without a word, and has no
 * place for one with cloned voices. */
bool prompt_takes_instructions(const struct config *c)
{
    return c->kind == UTTER_MODEL_VOICE_DESIGN ||
           (c->kind == UTTER_MODEL_CUSTOM_VOICE && !strstr("0b6", c->size_name));
}

static utter_status encode_instruct(struct prompt *p, const char *instruct, utter_error *error)
{
    static const char head[] = "<|im_start|>user\n", tail[] = "<|im_end|>\n";
    if (!instruct || !*instruct) {
        return UTTER_OK;
    }
    if (!prompt_takes_instructions(p->config)) {
        p->note = "this model takes no instructions; the instruction was left out";
        return UTTER_OK;
    }
    size_t n = strlen(instruct), bytes = sizeof head - 1 + n + sizeof tail - 1;
    char *text = memory_new(bytes + 1, 1);
    if (!text) {
        return error_memory(error, "instruction");
    }
    memcpy(text, head, sizeof head - 1);
    memcpy(text + sizeof head - 1, instruct, n);
    memcpy(text + sizeof head - 1 + n, tail, sizeof tail);
    utter_status status = tokenizer_encode(p->tokenizer, text, bytes, &p->instruct, error);
    memory_free(text);
    return status;
}

utter_status prompt_open(struct prompt **prompt, const struct config *config,
    const struct tokenizer *tokenizer, const struct prompt_request *request, utter_error *error)
{
    struct prompt *p = memory_new(1, sizeof *p);
    int language;
    *prompt = NULL;
    if (!p) {
        return error_memory(error, "prompt");
    }
    p->config = config;
    p->tokenizer = tokenizer;
    /* Preset and designed voices speak from the whole text, cloned ones step by step: the official defaults. */
    p->layout = request->layout != UTTER_LAYOUT_AUTO ? request->layout
                : config->kind == UTTER_MODEL_BASE   ? UTTER_LAYOUT_STREAM
                                                     : UTTER_LAYOUT_FULL;
    utter_status status = choose_language(config, request, &language, error);
    if (status || (status = encode_instruct(p, request->instruct, error)) ||
        (status = token_feed_open(&p->feed, tokenizer, error)) ||
        (status = token_feed_text(p->feed, OPENING, sizeof OPENING - 1, &p->ids, error))) {
        prompt_close(&p);
        return status;
    }
    write_codec_header(p, language, request->voice);
    *prompt = p;
    return UTTER_OK;
}

void prompt_close(struct prompt **prompt)
{
    struct prompt *p = *prompt;
    if (p) {
        ids_fini(&p->instruct);
        ids_fini(&p->ids);
        token_feed_close(&p->feed);
        memory_free(p->rows);
        edges_fini(&p->edges);
        memory_free(p);
    }
    *prompt = NULL;
}

static int text_ids(const struct prompt *p)
{
    int n = (int)p->ids.n - OPENING_IDS - (p->finished ? CLOSING_IDS : 0);
    return n > 0 ? n : 0;
}

static void add_row(struct prompt *p, int32_t text, int32_t codec)
{
    p->rows[p->n_rows++] =
        (struct row){.text = text, .id = codec, .codec = codec < 0 ? ROW_NONE : ROW_ID};
}

static utter_status write_rows(struct prompt *p, utter_error *error)
{
    const struct config *c = p->config;
    int n = text_ids(p), body = p->layout == UTTER_LAYOUT_FULL ? n + 2 : 1;
    size_t n_rows = p->instruct.n + OPENING_IDS + (size_t)p->n_codec - 1 + (size_t)body;
    p->rows = memory_new(n_rows, sizeof *p->rows);
    if (!p->rows) {
        return error_memory(error, "prompt");
    }
    for (size_t i = 0; i < p->instruct.n; i++) {
        add_row(p, p->instruct.at[i], -1);
    }
    for (int i = 0; i < OPENING_IDS; i++) {
        add_row(p, p->ids.at[i], -1);
    }
    for (int i = 0; i < p->n_codec - 2; i++) {
        add_row(p, c->tts_pad, p->codec[i]);
    }
    add_row(p, c->tts_bos, c->codec_pad);
    if (p->layout == UTTER_LAYOUT_STREAM) {
        add_row(p, p->ids.at[OPENING_IDS], c->codec_bos);
        return UTTER_OK;
    }
    for (int i = 0; i < n; i++) {
        add_row(p, p->ids.at[OPENING_IDS + i], c->codec_pad);
    }
    add_row(p, c->tts_eos, c->codec_pad);
    add_row(p, c->tts_pad, c->codec_bos);
    return UTTER_OK;
}

/* Rows are certain in the full layout when the text is; in the stream layout with the first token. */
static utter_status settle(struct prompt *p, utter_error *error)
{
    bool certain = p->finished || (p->layout == UTTER_LAYOUT_STREAM && text_ids(p) > 0);
    return certain && !p->rows ? write_rows(p, error) : UTTER_OK;
}

utter_status prompt_text(struct prompt *prompt, const char *text, size_t bytes, utter_error *error)
{
    struct prompt *p = prompt;
    if (p->finished) {
        return error_set(error, UTTER_E_ARGUMENT, "the text of this stream is finished");
    }
    const char *inner;
    size_t n;
    utter_status status;
    while ((status = edges_next(&p->edges, &text, &bytes, &inner, &n, error)) == UTTER_OK && n > 0) {
        if ((status = token_feed_text(p->feed, inner, n, &p->ids, error))) {
            return status;
        }
    }
    return status ? status : settle(p, error);
}

utter_status prompt_finish(struct prompt *prompt, utter_error *error)
{
    struct prompt *p = prompt;
    if (p->finished) {
        return UTTER_OK;
    }
    if (!edges_has_text(&p->edges)) {
        return error_set(error, UTTER_E_ARGUMENT, "the text is empty: there is nothing to say");
    }
    utter_status status = token_feed_text(p->feed, CLOSING, sizeof CLOSING - 1, &p->ids, error);
    if (status || (status = token_feed_finish(p->feed, &p->ids, error))) {
        return status;
    }
    if (p->ids.n <= OPENING_IDS + CLOSING_IDS) {
        return error_set(
            error, UTTER_E_MODEL, "the tokenizer of this checkpoint makes no token of the text");
    }
    p->finished = true;
    return settle(p, error);
}

const struct row *prompt_rows(const struct prompt *prompt, int *n_rows)
{
    *n_rows = prompt->n_rows;
    return prompt->rows;
}

int32_t prompt_trailing(const struct prompt *prompt, int frame)
{
    const struct config *c = prompt->config;
    if (prompt->layout == UTTER_LAYOUT_FULL) {
        return c->tts_pad;
    }
    int at = frame + 1, n = text_ids(prompt); /* token 0 stood in the prompt */
    if (at < n) {
        return prompt->ids.at[OPENING_IDS + at];
    }
    return !prompt->finished ? -1 : at == n ? c->tts_eos : c->tts_pad;
}

bool prompt_consumed(const struct prompt *prompt, int frame)
{
    return prompt->finished && (prompt->layout == UTTER_LAYOUT_FULL || frame + 1 >= text_ids(prompt));
}

int prompt_text_tokens(const struct prompt *prompt)
{
    return text_ids(prompt);
}

bool prompt_finished(const struct prompt *prompt)
{
    return prompt->finished;
}

const char *prompt_note(const struct prompt *prompt)
{
    return prompt->note;
}
