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
#include "base/minmax.h"
#include "base/tables/languages.h"
#include "base/tables/nearest.h"
#include "prompt/edges.h"
#include "text/chars.h"

/* How a reference transcript is wrapped; its own header ids are not used. */
static const char REFERENCE_END[] = "<|im_end|>\n";
static const char OPENING[] = "<|im_start|>assistant\n";
static const char CLOSING[] = "<|im_end|>\n<|im_start|>assistant\n";
enum { OPENING_IDS = 3, CLOSING_IDS = 5, REFERENCE_END_IDS = 2 };

struct prompt {
    const struct config *config;
    const struct tokenizer *tokenizer;
    utter_layout layout;  /* full or stream */
    struct ids instruct;  /* the wrapped instruction, or none */
    utter_voice *voice;   /* or NULL */
    struct ids reference; /* text ids of a cloned voice's transcript, or none */
    struct row header[8]; /* think, language, voice: the rows of pad text */
    int n_header;
    struct edges edges; /* what is dropped or held back at the ends of the text */
    struct token_feed *feed;
    bool plain;     /* no control token in what the caller says */
    struct ids ids; /* opening, text, and once finished the closing */
    bool finished;
    struct row *rows; /* NULL until certain */
    int n_rows;
    const char *note;
};

static utter_status unknown_language(const struct config *c, const char *name, utter_error *error)
{
    char quoted[96], hint[128], known[2048] = "auto";
    struct nearest nearest = nearest_begin(name);
    size_t at = strlen(known);
    for (int i = 0; i < c->n_languages && at + 1 < sizeof known; i++) {
        if (!config_is_dialect(c->languages[i].name)) {
            at += (size_t)snprintf(known + at, sizeof known - at, ", %s", c->languages[i].name);
            nearest_offer(&nearest, c->languages[i].name);
        }
    }
    error_quote(quoted, sizeof quoted, name, strlen(name));
    return error_set(error, UTTER_E_ARGUMENT, "unknown language \"%s\" (%sknown: %s)", quoted,
        nearest_hint(&nearest, hint, sizeof hint), known);
}

/* The language's index by its name or code, -1 for none. A dialect is not to be had by its name, but a preset voice
 * that speaks one does so when the language is Chinese or open. */
static utter_status choose_language(
    const struct config *c, const struct prompt_request *r, int *language, utter_error *error)
{
    const char *name = r->language ? r->language : "auto";
    const char *dialect =
        r->voice && r->voice->kind == VOICE_PRESET ? c->voices[r->voice->preset].dialect : NULL;
    *language = config_find(c->languages, c->n_languages, name);
    if (*language < 0) {
        *language = config_find(c->languages, c->n_languages, language_name(name));
    }
    bool open = strcasecmp(name, "auto") == 0;
    if (!open && (*language < 0 || config_is_dialect(name))) {
        return unknown_language(c, name, error);
    }
    bool chinese = *language >= 0 && strcasecmp(c->languages[*language].name, "chinese") == 0;
    if (dialect && (open || chinese)) {
        *language = config_find(c->languages, c->n_languages, dialect);
    }
    return UTTER_OK;
}

static struct row id_row(int32_t text, int32_t code)
{
    return (struct row){.text = text, .id = code, .codec = code < 0 ? ROW_NONE : ROW_ID};
}

/* Think, language and voice: the table of rows in docs/model.md. */
static void write_header(struct prompt *p, int language)
{
    const struct config *c = p->config;
    struct row *at = p->header;
    *at++ = id_row(c->tts_pad, language < 0 ? c->nothink : c->think);
    *at++ = id_row(c->tts_pad, c->think_bos);
    if (language >= 0) {
        *at++ = id_row(c->tts_pad, c->languages[language].id);
    }
    *at++ = id_row(c->tts_pad, c->think_eos);
    if (p->voice && p->voice->kind == VOICE_PRESET) {
        *at++ = id_row(c->tts_pad, c->voices[p->voice->preset].id);
    } else if (p->voice) {
        *at++ = (struct row){.text = c->tts_pad, .codec = ROW_VECTOR, .vector = p->voice->vector};
    }
    *at++ = id_row(c->tts_bos, c->codec_pad);
    p->n_header = (int)(at - p->header);
}

/* The official package drops an instruction for custom voices of the small size without a word, and has no
 * place for one with cloned voices. */
bool prompt_takes_instructions(const struct config *c)
{
    return c->kind == UTTER_MODEL_VOICE_DESIGN ||
           (c->kind == UTTER_MODEL_CUSTOM_VOICE && !strstr("0b6", c->size_name));
}

/* Appends the ids of head + text + tail, tokenised as one string; `plain`: with no control token in the text. `what`:
 * what the text is, for the message. */
static utter_status encode_wrapped(const struct tokenizer *tokenizer, const char *what, bool plain,
    const char *head, const char *text, const char *tail, struct ids *ids, utter_error *error)
{
    bool bad;
    size_t n_text = strlen(text), n_valid = utf8_valid(text, n_text, &bad);
    struct token_feed *feed;
    if (n_valid < n_text) {
        return error_set(error, UTTER_E_ARGUMENT, "%s is not UTF-8 at byte %zu", what, n_valid);
    }
    utter_status status = token_feed_open(&feed, tokenizer, error);
    status = status ? status : token_feed_text(feed, head, strlen(head), ids, error);
    if (status == UTTER_OK && plain) {
        token_feed_literal(feed, true);
    }
    status = status ? status : token_feed_text(feed, text, n_text, ids, error);
    if (status == UTTER_OK && plain) {
        token_feed_literal(feed, false);
    }
    status = status ? status : token_feed_text(feed, tail, strlen(tail), ids, error);
    status = status ? status : token_feed_finish(feed, ids, error);
    token_feed_close(&feed);
    return status;
}

utter_status prompt_wrap(
    const struct tokenizer *tokenizer, const char *text, struct ids *ids, utter_error *error)
{
    return encode_wrapped(tokenizer, "the text", false, OPENING, text, CLOSING, ids, error);
}

static utter_status encode_instruct(struct prompt *p, const char *instruct, utter_error *error)
{
    if (!instruct || !*instruct) {
        return UTTER_OK;
    }
    if (!prompt_takes_instructions(p->config)) {
        p->note = "this model takes no instructions; the instruction was left out";
        return UTTER_OK;
    }
    return encode_wrapped(p->tokenizer, "the instruction", p->plain, "<|im_start|>user\n", instruct,
        "<|im_end|>\n", &p->instruct, error);
}

/* The transcript of a cloned voice, sliced out of its wrapper. */
static utter_status encode_reference(struct prompt *p, utter_error *error)
{
    struct ids *ids = &p->reference;
    if (!p->voice || p->voice->kind != VOICE_CONTEXT) {
        return UTTER_OK;
    }
    utter_status status = encode_wrapped(p->tokenizer, "the transcript of the voice", p->plain, OPENING,
        p->voice->transcript, REFERENCE_END, ids, error);
    if (status) {
        return status;
    }
    if (ids->n <= OPENING_IDS + REFERENCE_END_IDS) {
        return error_set(
            error, UTTER_E_ARGUMENT, "the transcript of the voice \"%s\" is empty", p->voice->name);
    }
    ids->n -= OPENING_IDS + REFERENCE_END_IDS;
    memmove(ids->at, ids->at + OPENING_IDS, ids->n * sizeof *ids->at);
    return UTTER_OK;
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
    p->voice = voice_share(request->voice);
    p->plain = request->plain;
    /* Preset and designed voices speak from the whole text, cloned ones step by step: the official defaults. */
    p->layout = request->layout != UTTER_LAYOUT_AUTO ? request->layout
                : config->kind == UTTER_MODEL_BASE   ? UTTER_LAYOUT_STREAM
                                                     : UTTER_LAYOUT_FULL;
    utter_status status = choose_language(config, request, &language, error);
    if (status || (status = encode_instruct(p, request->instruct, error)) ||
        (status = encode_reference(p, error)) ||
        (status = token_feed_open(&p->feed, tokenizer, error)) ||
        (status = token_feed_text(p->feed, OPENING, sizeof OPENING - 1, &p->ids, error))) {
        prompt_close(&p);
        return status;
    }
    write_header(p, language);
    *prompt = p;
    return UTTER_OK;
}

void prompt_close(struct prompt **prompt)
{
    struct prompt *p = *prompt;
    if (p) {
        ids_fini(&p->instruct);
        ids_fini(&p->reference);
        voice_free(&p->voice);
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
    return max(n, 0);
}

/* The text side of the body is one list, A: transcript of the voice, text, end. The codec side, B: begin,
 * then the frames of the voice. */
static int n_list(const struct prompt *p)
{
    return (int)p->reference.n + text_ids(p) + 1;
}

static int n_frames(const struct prompt *p)
{
    return p->reference.n ? p->voice->n_frames : 0;
}

/* Entry `at` of A: an id; behind the end, the pad; -1 while it depends on text to come. */
static int32_t list_id(const struct prompt *p, int at)
{
    int n_reference = (int)p->reference.n, n = text_ids(p);
    if (at < n_reference) {
        return p->reference.at[at];
    }
    at -= n_reference;
    if (at < n) {
        return p->ids.at[OPENING_IDS + at];
    }
    return !p->finished ? -1 : at == n ? p->config->tts_eos : p->config->tts_pad;
}

/* Entry `at` of B over a text id. */
static struct row codec_row(const struct prompt *p, int at, int32_t text)
{
    if (at == 0) {
        return id_row(text, p->config->codec_bos);
    }
    const int32_t *codes = p->voice->codes + (size_t)(at - 1) * (size_t)p->voice->n_codebooks;
    return (struct row){.text = text, .codec = ROW_CODES, .codes = codes};
}

static utter_status write_rows(struct prompt *p, utter_error *error)
{
    const struct config *c = p->config;
    bool full = p->layout == UTTER_LAYOUT_FULL;
    int n_a = full ? n_list(p) : 0, n_b = n_frames(p) + 1;
    size_t n = p->instruct.n + OPENING_IDS + (size_t)p->n_header + (size_t)n_a + (size_t)n_b;
    struct row *at = p->rows = memory_new(n, sizeof *p->rows);
    if (!p->rows) {
        return error_memory(error, "prompt");
    }
    for (size_t i = 0; i < p->instruct.n; i++) {
        *at++ = id_row(p->instruct.at[i], -1);
    }
    for (int i = 0; i < OPENING_IDS; i++) {
        *at++ = id_row(p->ids.at[i], -1);
    }
    memcpy(at, p->header, (size_t)p->n_header * sizeof *at);
    at += p->n_header;
    for (int i = 0; i < n_a; i++) {
        *at++ = id_row(list_id(p, i), c->codec_pad);
    }
    for (int i = 0; i < n_b; i++) {
        *at++ = codec_row(p, i, full ? c->tts_pad : list_id(p, i));
    }
    p->n_rows = (int)n;
    return UTTER_OK;
}

/* Rows are certain in the full layout when the text is; in the stream layout when there is text for each of B. */
static utter_status settle(struct prompt *p, utter_error *error)
{
    bool certain = p->finished || (p->layout == UTTER_LAYOUT_STREAM && text_ids(p) > 0 &&
                                      list_id(p, n_frames(p)) >= 0);
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
    bool begun = p->edges.begun;
    while ((status = edges_next(&p->edges, &text, &bytes, &inner, &n, error)) == UTTER_OK && n > 0) {
        if (!begun) { /* the first of the text, behind its line breaks */
            token_feed_begin_offsets(p->feed, p->edges.n_dropped);
            if (p->plain) {
                token_feed_literal(p->feed, true);
            }
            begun = true;
        }
        if ((status = token_feed_text(p->feed, inner, n, &p->ids, error))) {
            return status;
        }
    }
    /* In the stream layout ids may be more than the positions: the speech ends before they are reached. A word
     * without an end would be waited for. */
    const size_t least = p->layout == UTTER_LAYOUT_FULL ? (size_t)text_ids(p) : 0;
    if (!status && least + token_feed_least_ids(p->feed) > (size_t)p->config->max_positions) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the text takes more than the %d positions that this model has (split it)",
            p->config->max_positions);
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
    if (p->plain) {
        token_feed_literal(p->feed, false);
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

int prompt_rows_without(const struct prompt *p, int from, int to, const int32_t *codes, int n_frames,
    struct row *rows, int *first)
{
    bool full = p->layout == UTTER_LAYOUT_FULL;
    int begin = prompt_text_position(p), n = 0;
    for (int i = 0; i < p->n_rows + n_frames; i++) {
        int frame = i - p->n_rows; /* whose codes the row has, behind those of the prompt */
        struct row row = frame < 0 ? p->rows[i]
                                   : (struct row){.text = prompt_trailing(p, frame),
                                         .codec = ROW_CODES,
                                         .codes = codes + (ptrdiff_t)frame * p->config->n_codebooks};
        if (!full && i >= begin + from) { /* what comes behind the tokens moves up */
            row.text = list_id(p, (int)p->reference.n + i - begin + to - from);
        }
        if (!full || i < begin + from || i >= begin + to) {
            rows[n++] = row;
        }
    }
    *first = n - n_frames - 1;
    return n;
}

int prompt_fixed_rows(const struct prompt *p)
{
    /* In the stream layout the text is laid over the frames of a voice from the transcript's end on; in the full layout
     * it stands before them. */
    size_t n = (size_t)prompt_text_position(p);
    return n < (size_t)p->n_rows ? (int)n : p->n_rows - 1;
}

int32_t prompt_trailing(const struct prompt *prompt, int frame)
{
    /* What of A is not in the prompt goes in one with each frame. */
    return prompt->layout == UTTER_LAYOUT_FULL ? prompt->config->tts_pad
                                               : list_id(prompt, n_frames(prompt) + 1 + frame);
}

bool prompt_consumed(const struct prompt *prompt, int frame)
{
    return prompt->finished &&
           (prompt->layout == UTTER_LAYOUT_FULL || n_frames(prompt) + 2 + frame >= n_list(prompt));
}

bool prompt_streams(const struct prompt *p)
{
    return p->layout == UTTER_LAYOUT_STREAM;
}

int prompt_text_tokens(const struct prompt *prompt)
{
    return text_ids(prompt);
}

const uint64_t *prompt_token_begins(const struct prompt *p)
{
    return p->ids.begin + OPENING_IDS;
}

bool prompt_finished(const struct prompt *p)
{
    return p->finished;
}

int prompt_text_position(const struct prompt *p)
{
    return (int)(p->instruct.n + p->reference.n) + OPENING_IDS + p->n_header;
}

const char *prompt_note(const struct prompt *prompt)
{
    return prompt->note;
}
