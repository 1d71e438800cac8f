/* SPDX-License-Identifier: Apache-2.0
 * Lines are asked of a running utter serve, as work in the background: events with the samples as they are made, their
 * words and what became of them. libcurl through base/library, all requests by one thread. */
#include <curl/curl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "job/worker_parts.h"

enum {
    RATE = 24000,        /* of every model's sound */
    CONNECT_S = 20,      /* to reach the server */
    QUIET_S = 20,        /* then it is asked whether it still lives */
    SILENT_S = 600,      /* of one that lives and says nothing, as one that is stopped */
    WAIT_MS = 100,       /* for events, at most */
    MOST_LINE = 8 << 20, /* of an event */
    MOST_TOLD = 4096,    /* of an answer that is no sound */
};

struct curl_calls {
    __typeof__(&curl_global_init) global_init;
    __typeof__(&curl_easy_init) init;
    __typeof__(&curl_easy_cleanup) cleanup;
    __typeof__(&curl_easy_strerror) strerror;
    __typeof__(&curl_slist_append) list_append;
    __typeof__(&curl_slist_free_all) list_free;
    __typeof__(&curl_multi_init) multi_init;
    __typeof__(&curl_multi_cleanup) multi_cleanup;
    __typeof__(&curl_multi_add_handle) add;
    __typeof__(&curl_multi_remove_handle) remove;
    __typeof__(&curl_multi_perform) perform;
    __typeof__(&curl_multi_poll) poll;
    __typeof__(&curl_multi_info_read) next_end;
    CURLcode (*setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*getinfo)(CURL *curl, CURLINFO info, ...);
};

struct speaker_server {
    struct speaker base;
    const struct speaker_server_settings *settings;
    struct curl_calls curl;
    CURLM *multi;
    struct curl_slist *headers;
    char url[2048];
    bool is_away; /* has been told; until it speaks again it is asked for one line at a time */
};

/* A line that is asked for: slot->making. */
struct asked {
    struct speaker_server *server;
    struct slot *slot;
    CURL *curl;
    char *body;
    char *in; /* [in_room]: bytes that are no whole line yet, or the answer that is no sound */
    size_t in_n, in_room;
    bool over, done;
    CURLcode code;
    json_t *refused; /* the "error" of an event or an answer */
    utter_status status;
    utter_error error; /* of our own */
};

static struct speaker_server *of(struct speaker *speaker)
{
    return (struct speaker_server *)speaker;
}

/* ---- Events ---- */

static int digit_of(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* Samples in base64, a frame at a time. */
static void take_sound(struct asked *a, const char *text)
{
    enum { BLOCK = 1920 };
    float pcm[BLOCK];
    uint8_t bytes[sizeof pcm];
    size_t n = 0;
    uint32_t bits = 0;
    int n_bits = 0, digit;
    while (a->status == UTTER_OK && (digit = digit_of(*text)) >= 0) {
        text++;
        bits = bits << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            bytes[n++] = (uint8_t)(bits >> n_bits);
        }
        if (n == sizeof bytes || (digit_of(*text) < 0 && n >= sizeof *pcm)) {
            memcpy(pcm, bytes, n);
            a->status = slot_sound(a->slot, pcm, n / sizeof *pcm, &a->error);
            n = 0;
        }
    }
}

static uint64_t sample_of(const json_t *seconds)
{
    double at = json_number_value(seconds) * RATE;
    return at > 0 ? (uint64_t)llround(at) : 0;
}

static void take_word(struct asked *a, const json_t *word)
{
    json_int_t index = json_integer_value(json_object_get(word, "index"));
    if (index < 0 || (uint64_t)index >= a->slot->line.text_bytes) { /* a word has a letter */
        return;
    }
    utter_word *kept = slot_words(a->slot, (uint64_t)index, 1, &a->error);
    if (!kept) {
        a->status = UTTER_E_MEMORY;
        return;
    }
    *kept = (utter_word){.start = sample_of(json_object_get(word, "start")),
        .end = sample_of(json_object_get(word, "end")),
        .at = (uint64_t)json_integer_value(json_object_get(word, "at")),
        .bytes = (uint64_t)json_integer_value(json_object_get(word, "bytes")),
        .certainty = (float)json_number_value(json_object_get(word, "certainty")),
        .final = json_is_true(json_object_get(word, "final")),
        .skipped = json_is_true(json_object_get(word, "skipped"))};
}

static utter_finish finish_of(const char *text)
{
    utter_finish finish = UTTER_FINISH_NONE;
    while (finish < UTTER_FINISH_STUCK && text && strcmp(utter_finish_text(finish), text) != 0) {
        finish++;
    }
    return finish;
}

static uint64_t count_of(const json_t *event, const char *name)
{
    json_int_t n = json_integer_value(json_object_get(event, name));
    return n > 0 ? (uint64_t)n : 0;
}

static void take_event(struct asked *a, const json_t *event)
{
    const char *type = json_string_value(json_object_get(event, "type"));
    const char *audio = json_string_value(json_object_get(event, "audio"));
    const json_t *word, *words = json_object_get(event, "words");
    utter_reading_stats *t = &a->slot->stats;
    size_t i;
    if (!type) {
        return;
    }
    if (strcmp(type, "speech.audio.delta") == 0 && audio) {
        take_sound(a, audio);
    } else if (strcmp(type, "speech.audio.words") == 0) {
        json_array_foreach((json_t *)words, i, word)
        {
            take_word(a, word);
        }
        t->words_approximate = json_is_true(json_object_get(event, "approximate"));
    } else if (strcmp(type, "speech.audio.done") == 0) {
        t->finish = finish_of(json_string_value(json_object_get(event, "finish")));
        t->n_pieces = count_of(event, "pieces");
        t->n_retries = count_of(event, "said_again");
        t->n_broken = count_of(event, "not_whole");
        a->done = true;
    } else if (strcmp(type, "speech.audio.error") == 0) {
        json_decref(a->refused);
        a->refused = json_incref(json_object_get(event, "error"));
    }
}

static void take_line(struct asked *a, const char *line, size_t n)
{
    static const char data[] = "data: ";
    const size_t skip = sizeof data - 1;
    if (n > skip && strncmp(line, data, skip) == 0) {
        json_t *event;
        utter_error error;
        if (json_text(&event, line + skip, n - skip, JSON_LARGE, "an event", &error) ==
            UTTER_E_MEMORY) {
            a->status = UTTER_E_MEMORY; /* what it told would be lost */
            a->error = error;
        }
        take_event(a, event);
        json_decref(event);
    }
}

static long answer_code(const struct asked *a)
{
    long code = 0;
    (a->server->curl.getinfo)(a->curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

static bool keep(struct asked *a, const char *data, size_t n)
{
    if (a->in_n + n > a->in_room) {
        size_t room = 2 * (a->in_n + n);
        char *grown = room <= MOST_LINE ? memory_resize(a->in, a->in_room, room, 1) : NULL;
        if (!grown) {
            a->status =
                error_set(&a->error, UTTER_E_MEMORY, "there is no memory for what a server says");
            return false;
        }
        a->in = grown;
        a->in_room = room;
    }
    memcpy(a->in + a->in_n, data, n);
    a->in_n += n;
    return true;
}

/* Bytes of an answer. */
static size_t take(char *data, size_t size, size_t n, void *user)
{
    struct asked *a = user;
    size_t at = 0;
    n *= size;
    if (answer_code(a) != 200) {
        keep(a, data, min(n, MOST_TOLD - min(a->in_n, MOST_TOLD)));
        return n;
    }
    if (!keep(a, data, n)) {
        return 0;
    }
    for (char *end; (end = memchr(a->in + at, '\n', a->in_n - at));) {
        take_line(a, a->in + at, (size_t)(end - a->in) - at);
        at = (size_t)(end - a->in) + 1;
    }
    memmove(a->in, a->in + at, a->in_n - at);
    a->in_n -= at;
    return a->status == UTTER_OK ? n : 0;
}

/* ---- Requests ---- */

/* Voices of files are the machine's that has them: a text may call a server's presets alone. */
static bool calls_files(const struct line *line)
{
    char none[IDENTITY_SIZE];
    identity_of_bytes(none, NULL, 0);
    return line->called_hash[0] && strcmp(line->called_hash, none) != 0;
}

static char *write_body(const struct line *line)
{
    json_t *body = json_pack("{s:s%,s:s*,s:s*,s:s*,s:s*,s:I,s:b,s:b,s:s,s:s,s:s,s:s,s:s}", "input",
        line->text, line->text_bytes, "voice", line->voice, "language", line->language, "instructions",
        line->instruct, "markup", line->markup, "seed", (json_int_t)line->seed, "word_timestamps",
        line->words, "background", 1, "model_hash", line->model, "voice_hash", line->voice_hash,
        "response_format", "pcm", "sample_format", "f32", "stream_format", "sse");
    char *text = json_text_write(body, JSON_COMPACT);
    json_decref(body);
    return text;
}

static void set_options(struct asked *a)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = a->server->curl.setopt;
    CURL *curl = a->curl;
    (set)(curl, CURLOPT_URL, a->server->url);
    (set)(curl, CURLOPT_NOSIGNAL, 1L);
    (set)(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    (set)(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    (set)(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    (set)(curl, CURLOPT_TCP_KEEPIDLE, (long)QUIET_S);
    (set)(curl, CURLOPT_TCP_KEEPINTVL, (long)QUIET_S);
    (set)(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (set)(curl, CURLOPT_LOW_SPEED_TIME, (long)SILENT_S);
    (set)(curl, CURLOPT_USERAGENT, "utter");
    (set)(curl, CURLOPT_HTTPHEADER, a->server->headers);
    (set)(curl, CURLOPT_POSTFIELDS, a->body);
    (set)(curl, CURLOPT_POSTFIELDSIZE, (long)strlen(a->body));
    (set)(curl, CURLOPT_WRITEFUNCTION, take);
    (set)(curl, CURLOPT_WRITEDATA, a);
    (set)(curl, CURLOPT_PRIVATE, a);
}

static void server_drop(struct speaker *speaker, struct slot *slot)
{
    struct speaker_server *s = of(speaker);
    struct asked *a = slot->making;
    slot->making = NULL;
    if (!a) {
        return;
    }
    if (a->curl) {
        s->curl.remove(s->multi, a->curl);
        s->curl.cleanup(a->curl);
    }
    memory_plain_free(a->body);
    memory_free(a->in);
    json_decref(a->refused);
    memory_free(a);
}

static utter_status server_begin(
    struct speaker *speaker, struct slot *slot, int lanes, utter_error *error)
{
    struct speaker_server *s = of(speaker);
    (void)lanes;
    if (calls_files(&slot->line)) {
        s->base.misfit = true;
        return error_set(error, UTTER_E_ARGUMENT,
            "\"%s\": its text calls for voices of files, which a server does not know (work without "
            "--server)",
            slot->line.id);
    }
    struct asked *a = memory_new(1, sizeof *a);
    slot->making = a;
    if (a) {
        a->server = s;
        a->slot = slot;
        a->body = write_body(&slot->line);
        a->curl = s->curl.init();
    }
    if (!a || !a->body || !a->curl) {
        return error_memory(error, "a request");
    }
    set_options(a);
    s->curl.add(s->multi, a->curl);
    return UTTER_OK;
}

static utter_status server_step(struct speaker *speaker, utter_error *error)
{
    struct speaker_server *s = of(speaker);
    int n_running, n_left;
    const CURLMsg *end;
    (void)error;
    s->curl.poll(s->multi, NULL, 0, WAIT_MS, NULL);
    s->curl.perform(s->multi, &n_running);
    while ((end = s->curl.next_end(s->multi, &n_left))) {
        struct asked *a = NULL;
        (s->curl.getinfo)(end->easy_handle, CURLINFO_PRIVATE, (char **)&a);
        if (a && end->msg == CURLMSG_DONE) {
            a->over = true;
            a->code = end->data.result;
        }
    }
    return UTTER_OK;
}

/* ---- Ends ---- */

static const char *text_of(const struct asked *a, const char *name)
{
    const char *text = json_string_value(json_object_get(a->refused, name));
    return text ? text : "";
}

/* Nothing is made just now. Told once. */
static utter_status be_away(struct speaker_server *s, const utter_error *why)
{
    if (!s->is_away) {
        s->settings->away(s->settings->user, why);
    }
    s->is_away = true;
    s->base.lanes = 1;
    return UTTER_AGAIN;
}

/* It has refused: in an answer of its own, or in the middle of the sound. */
static utter_status judge_refusal(struct asked *a, long answer, utter_error *error)
{
    struct speaker_server *s = a->server;
    const char *message = text_of(a, "message"), *code = text_of(a, "code");
    bool is_key = answer == 401 || answer == 403, is_other = answer == 404 || answer == 409;
    char silent[48];
    snprintf(silent, sizeof silent, "it answers %ld, and not why", answer);
    error_set(error, UTTER_E_ARGUMENT, "%s: %s%s", s->url, message[0] ? message : silent,
        is_key ? " (--key)" : "");
    if (strcmp(code, "given_back") == 0) {
        return UTTER_AGAIN;
    }
    if (strcmp(code, "worker_ended") == 0) { /* perhaps of this line; surely, where no other was made */
        bool alone = a->slot->claim.deaths >= SUSPECT_DEATHS;
        a->slot->claim.deaths += !alone;
        return alone ? error->code : UTTER_AGAIN;
    }
    bool later = answer == 429 || answer == 408 || (answer > 500 && answer < 600) ||
                 strcmp(text_of(a, "type"), "overloaded_error") == 0;
    s->base.misfit = !later && (is_key || is_other || strcmp(text_of(a, "param"), "voice") == 0);
    return later ? be_away(s, error) : error->code;
}

static utter_status judge(struct asked *a, utter_error *error)
{
    struct speaker_server *s = a->server;
    long answer = answer_code(a);
    if (a->status) {
        *error = a->error;
        return a->status == UTTER_E_MEMORY ? a->status : UTTER_E_IO;
    }
    if (answer && answer != 200 && !a->refused) {
        json_t *told = json_loadb(a->in, a->in_n, 0, NULL);
        a->refused = json_incref(json_object_get(told, "error"));
        json_decref(told);
    }
    if (a->refused || (answer && answer != 200)) {
        return judge_refusal(a, answer, error);
    }
    if (!a->done) {
        error_set(error, UTTER_E_IO, "%s: %s", s->url,
            a->code ? s->curl.strerror(a->code) : "the answer was cut");
        return be_away(s, error);
    }
    s->is_away = false;
    s->base.lanes = s->settings->lanes;
    return UTTER_END;
}

static utter_status server_take(struct speaker *speaker, struct slot *slot, utter_error *error)
{
    struct asked *a = slot->making;
    utter_status status = a->over ? judge(a, error) : UTTER_OK;
    if (a->over) {
        server_drop(speaker, slot);
    }
    return status;
}

/* ---- Life ---- */

static bool load(struct curl_calls *c)
{
    const struct library_call calls[] = {{"curl_global_init", &c->global_init},
        {"curl_easy_init", &c->init}, {"curl_easy_cleanup", &c->cleanup},
        {"curl_easy_strerror", &c->strerror}, {"curl_slist_append", &c->list_append},
        {"curl_slist_free_all", &c->list_free}, {"curl_multi_init", &c->multi_init},
        {"curl_multi_cleanup", &c->multi_cleanup}, {"curl_multi_add_handle", &c->add},
        {"curl_multi_remove_handle", &c->remove}, {"curl_multi_perform", &c->perform},
        {"curl_multi_poll", &c->poll}, {"curl_multi_info_read", &c->next_end},
        {"curl_easy_setopt", &c->setopt}, {"curl_easy_getinfo", &c->getinfo}};
    enum { N_CALLS = sizeof calls / sizeof *calls };
    return library_load("libcurl.so.4", calls, N_CALLS) ||
           library_load("libcurl-gnutls.so.4", calls, N_CALLS);
}

static void server_close(struct speaker *speaker)
{
    struct speaker_server *s = of(speaker);
    if (s->multi) {
        s->curl.multi_cleanup(s->multi);
    }
    if (s->headers) {
        s->curl.list_free(s->headers);
    }
    memory_free(s);
}

static const struct speaker_calls server_calls = {
    server_begin, server_step, server_take, server_drop, server_close};

static utter_status prepare(struct speaker_server *s, utter_error *error)
{
    char key[1024];
    const char *url = s->settings->url, *bearer = s->settings->key;
    size_t n = strlen(url);
    n -= n > 0 && url[n - 1] == '/';
    bool good = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    if (!good ||
        snprintf(s->url, sizeof s->url, "%.*s/v1/audio/speech", (int)n, url) >= (int)sizeof s->url) {
        return error_set(error, UTTER_E_ARGUMENT, "--server %s: is not http[s]://HOST[:PORT]", url);
    }
    if (snprintf(key, sizeof key, "Authorization: Bearer %s", bearer ? bearer : "") >=
        (int)sizeof key) {
        return error_set(error, UTTER_E_ARGUMENT, "--key: is too long");
    }
    if (!load(&s->curl) || s->curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return error_set(error, UTTER_E_DEVICE,
            "--server %s: libcurl 7.66 or later is not here (apt-get install libcurl4)", url);
    }
    s->multi = s->curl.multi_init();
    s->headers = s->curl.list_append(NULL, "Content-Type: application/json");
    s->curl.list_append(s->headers, "Expect:");
    if (bearer) {
        s->curl.list_append(s->headers, key);
    }
    return s->multi && s->headers ? UTTER_OK : error_memory(error, "requests");
}

utter_status speaker_server_open(
    struct speaker **speaker, const struct speaker_server_settings *settings, utter_error *error)
{
    struct speaker_server *s = memory_new(1, sizeof *s);
    *speaker = s ? &s->base : NULL;
    if (!s) {
        return error_memory(error, "a speaker");
    }
    s->base = (struct speaker){&server_calls, settings->lanes, RATE, false};
    s->settings = settings;
    utter_status status = prepare(s, error);
    if (status) {
        speaker_close(speaker);
    }
    return status;
}
