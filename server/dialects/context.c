/* SPDX-License-Identifier: Apache-2.0
 * Pieces in a row, the first of them on a lane. */
#include "server/dialects/context.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

struct piece {
    TAILQ_ENTRY(piece) entry;
    struct wire_out text;
    bool ended; /* no more text will come for it */
    int tag;    /* of its flush */
};

TAILQ_HEAD(piece_list, piece);

/* So long before a word is heard it is told, also when its times may still change: a client's own wait is shorter. */
static const double soon_s = 0.5;

enum { PIECE_BYTES = 384 }; /* a piece and its two blocks, beside its text */

struct context {
    struct conn *conn;
    struct fields fields;
    const struct context_sink *sink;
    void *user;
    struct piece_list pieces; /* the first one is spoken, or waits for text */
    struct speech *speech;    /* of the first piece */
    struct word_list words;   /* of it */
    double taken_s;           /* of its sound, given to the client */
    double from_s;            /* where it begins in the sound of the context */
    double ahead_s, heard_until;
    struct event *timer; /* when what was sent has nearly been heard */
    bool unread, paced;  /* the two reasons to wait: the client does not read, it has enough to hear */
    bool has_spoken;     /* who has heard one piece hears the others */
    bool going_on, is_gone; /* is_gone: freed as soon as nobody works in here */
    int n_inside;           /* calls that run */
};

static void leave(struct context *x)
{
    if (--x->n_inside == 0 && x->is_gone) {
        memory_free(x);
    }
}

static void count_bytes(struct context *x, size_t more, size_t less)
{
    x->conn->owner_bytes += more - less;
    conn_count(x->conn);
}

static void drop_piece(struct context *x, struct piece *piece)
{
    count_bytes(x, 0, PIECE_BYTES + piece->text.n);
    TAILQ_REMOVE(&x->pieces, piece, entry);
    wire_fini(&piece->text);
    memory_free(piece);
}

static bool is_blank(const struct piece *piece)
{
    for (size_t i = 0; i < piece->text.n; i++) {
        if (!strchr(" \t\r\n\v\f", piece->text.bytes[i])) {
            return false;
        }
    }
    return true;
}

/* ---- Words ---- */

static struct context_piece first_piece(const struct context *x, double seconds)
{
    const struct piece *piece = TAILQ_FIRST(&x->pieces);
    return (struct context_piece){(const char *)piece->text.bytes, piece->text.n, x->from_s, seconds,
        is_blank(piece), piece->tag, x->words.approximate};
}

/* Tells those that the client should know: final ones, and those that will be heard within so many seconds. It may free
 * the piece, and the context when the last call in here ends. */
static void tell_words(struct context *x, double within_s)
{
    struct word_list *l = &x->words;
    double heard_s = x->taken_s - max(x->heard_until - clock_seconds(), 0.0);
    size_t n = x->taken_s > 0 ? word_list_due(l, heard_s + within_s) : 0;
    if (n > 0) {
        const struct context_piece now = first_piece(x, x->taken_s);
        const struct speech_word *words = l->at + (max(l->n_told, l->first) - l->first);
        l->n_told = max(l->n_told, l->first) + n;
        x->sink->words(x->user, &now, words, n, l->n_told < l->first + l->n);
        word_list_forget(l, l->n_told);
    }
}

/* ---- The pace ---- */

static void steer(struct context *x)
{
    speech_hold(x->speech, x->unread || x->paced);
}

static void on_timer(evutil_socket_t socket, short what, void *user)
{
    struct context *x = user;
    (void)socket, (void)what;
    x->paced = false;
    steer(x);
}

/* Waits until a second of what is ahead has been heard, when there is too much of it. Not longer: Pipecat takes a
 * context of which it hears nothing for 3 s for ended, and throws the rest away. */
static void keep_pace(struct context *x)
{
    double ahead = x->heard_until - clock_seconds();
    if (x->paced || ahead <= x->ahead_s) {
        return;
    }
    double wait = ahead - x->ahead_s + 1;
    struct timeval time = {(time_t)wait, (suseconds_t)(1e6 * (wait - floor(wait)))};
    x->paced = event_add(x->timer, &time) == 0;
    steer(x);
    tell_words(x, wait + soon_s); /* meanwhile nothing comes that could be told */
}

/* ---- Speaking ---- */

void context_clear(struct context *x)
{
    speech_cancel(x->speech);
    x->speech = NULL;
    for (struct piece *piece; (piece = TAILQ_FIRST(&x->pieces));) {
        drop_piece(x, piece);
    }
    event_del(x->timer);
    x->paced = false;
    x->heard_until = 0;
    word_list_fini(&x->words);
}

static void fail(struct context *x, const struct refusal *r)
{
    struct refusal copy = *r;
    context_clear(x);
    x->sink->failed(x->user, &copy);
}

/* The first piece has been spoken, or is blank. */
static void end_piece(struct context *x, double seconds)
{
    struct piece *piece = TAILQ_FIRST(&x->pieces);
    struct wire_out text = piece->text;
    struct context_piece said = first_piece(x, seconds);
    piece->text.bytes = NULL; /* who hears of it may drop all pieces */
    drop_piece(x, piece);
    x->from_s += seconds;
    x->sink->piece(x->user, &said);
    wire_fini(&text);
}

static const struct speech_sink sink;

static void speak(struct context *x, const struct piece *piece)
{
    struct refusal r;
    const struct conn *c = x->conn;
    struct speech_request request = {&x->fields, METRICS_STREAM, clock_seconds(), c->account,
        c->request_id, c->address, x->has_spoken, &c->trace};
    x->taken_s = 0;
    word_list_fini(&x->words);
    x->speech = speech_start(c->server, &request, &sink, x, &r);
    if (!x->speech) {
        fail(x, &r);
        return;
    }
    x->has_spoken = true;
    bool ended = piece->ended;
    steer(x);
    speech_text(x->speech, (const char *)piece->text.bytes, piece->text.n);
    if (x->speech && ended) { /* it may have failed at once */
        speech_finish(x->speech);
    }
}

/* Lets the first piece speak, as far as its text is there. */
static void go_on(struct context *x)
{
    struct piece *piece;
    if (x->going_on) {
        return;
    }
    x->going_on = true;
    x->n_inside++;
    while (!x->is_gone && !x->speech && (piece = TAILQ_FIRST(&x->pieces))) {
        bool blank = is_blank(piece);
        if (!blank) {
            speak(x, piece);
        } else if (piece->ended) {
            end_piece(x, 0);
        } else {
            break;
        }
    }
    x->going_on = false;
    leave(x);
}

static void on_bytes(void *user, const void *bytes, size_t n)
{
    struct context *x = user;
    double made = speech_seconds(x->speech) - x->taken_s;
    x->taken_s += made;
    x->heard_until = max(x->heard_until, clock_seconds()) + made;
    x->n_inside++;
    x->sink->sound(x->user, bytes, n);
    if (x->speech) { /* who heard it may have ended it */
        if (conn_unsent(x->conn) > LIMIT_UNSENT) {
            context_hold(x, true);
        }
        tell_words(x, soon_s);
    }
    if (x->speech) {
        keep_pace(x);
    }
    leave(x);
}

static void on_words(void *user, const struct speech_words *words)
{
    struct context *x = user;
    x->n_inside++;
    word_list_take(&x->words, words);
    tell_words(x, soon_s);
    leave(x);
}

static void on_end(void *user, const struct speech_end *e)
{
    struct context *x = user;
    struct refusal r = e->refusal;
    const bool good = e->good && !x->words.failed;
    x->speech = NULL;
    x->n_inside++;
    if (e->good && !good) {
        refuse(&r, 503, NULL, "out of memory");
    }
    if (good) {
        tell_words(x, INFINITY);
    }
    if (!good) {
        fail(x, &r);
    } else if (TAILQ_FIRST(&x->pieces)) {
        end_piece(x, e->audio_s);
        go_on(x);
    }
    leave(x);
}

static const struct speech_sink sink = {on_bytes, on_end, on_words};

/* ---- What the client says ---- */

static struct piece *open_piece(struct context *x)
{
    struct piece *piece = TAILQ_LAST(&x->pieces, piece_list);
    if (piece && !piece->ended) {
        return piece;
    }
    piece = memory_new(1, sizeof *piece);
    if (piece) {
        piece->tag = -1;
        TAILQ_INSERT_TAIL(&x->pieces, piece, entry);
        count_bytes(x, PIECE_BYTES, 0);
    }
    return piece;
}

static bool has_room(const struct context *x, size_t n, struct refusal *r)
{
    return x->conn->owner_bytes + n <= LIMIT_WS_SESSION
               ? true
               : refuse(r, 400, "text", "more than 1 MiB of text waits on this connection");
}

bool context_text(struct context *x, const char *text, size_t n, struct refusal *r)
{
    if (n > LIMIT_WS_TEXT) {
        return refuse(r, 400, "text", "a message holds at most 128 KiB of text");
    }
    if (!has_room(x, n, r)) {
        return false;
    }
    struct piece *piece = n ? open_piece(x) : NULL;
    if (piece) {
        wire_put(&piece->text, text, n);
    }
    if (n && (!piece || piece->text.failed)) {
        return refuse(r, 503, NULL, "out of memory");
    }
    count_bytes(x, n, 0);
    if (n && piece == TAILQ_FIRST(&x->pieces) && x->speech) {
        speech_text(x->speech, text, n); /* which may end the speech, and the piece with it */
    } else {
        go_on(x);
    }
    return true;
}

bool context_flush(struct context *x, int tag, struct refusal *r)
{
    const struct piece *last = TAILQ_LAST(&x->pieces, piece_list);
    if ((!last || last->ended) && !has_room(x, PIECE_BYTES, r)) { /* a blank one would be begun */
        return false;
    }
    struct piece *piece = open_piece(x);
    if (!piece) {
        return refuse(r, 503, NULL, "out of memory");
    }
    piece->ended = true;
    piece->tag = tag;
    if (piece == TAILQ_FIRST(&x->pieces) && x->speech) {
        speech_finish(x->speech);
    } else {
        go_on(x);
    }
    return true;
}

void context_drop_open(struct context *x)
{
    struct piece *piece = TAILQ_LAST(&x->pieces, piece_list);
    if (!piece || piece->ended) {
        return;
    }
    if (piece == TAILQ_FIRST(&x->pieces) && x->speech) {
        speech_cancel(x->speech);
        x->speech = NULL;
    }
    drop_piece(x, piece);
}

void context_hold(struct context *x, bool held)
{
    x->unread = held;
    steer(x);
}

bool context_speaks(const struct context *x)
{
    return x->speech != NULL;
}

bool context_is_idle(const struct context *x)
{
    return !x->speech && TAILQ_EMPTY(&x->pieces);
}

bool context_has_text(const struct context *x)
{
    const struct piece *piece = TAILQ_LAST(&x->pieces, piece_list);
    return piece && !piece->ended && !is_blank(piece);
}

bool context_now(const struct context *x, struct context_piece *now)
{
    if (!x->speech || x->taken_s <= 0) {
        return false;
    }
    *now = first_piece(x, x->taken_s);
    return true;
}

void context_speed(struct context *x, double speed)
{
    x->fields.sound.speed = speed;
}

struct context *context_new(struct conn *c, struct fields *fields, double ahead_s,
    const struct context_sink *said_to, void *user)
{
    struct context *x = memory_new(1, sizeof *x);
    struct event *timer = x ? event_new(c->server->base, -1, 0, on_timer, x) : NULL;
    if (!timer || event_priority_set(timer, SERVER_SOUND) != 0) {
        if (timer) {
            event_free(timer);
        }
        memory_free(x);
        fields_fini(fields);
        return NULL;
    }
    x->conn = c;
    x->fields = *fields;
    x->sink = said_to;
    x->user = user;
    x->ahead_s = ahead_s;
    x->timer = timer;
    TAILQ_INIT(&x->pieces);
    *fields = (struct fields){0};
    return x;
}

void context_free(struct context *x)
{
    if (x) {
        x->n_inside++;
        context_clear(x);
        event_free(x->timer);
        fields_fini(&x->fields);
        x->is_gone = true;
        leave(x);
    }
}
