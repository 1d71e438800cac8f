/* SPDX-License-Identifier: Apache-2.0
 * A client as its own files see it. */
#ifndef SIM_CLIENT_PARTS_H
#define SIM_CLIENT_PARTS_H

#include <sys/queue.h>

#include "tests/sim/answer.h"
#include "tests/sim/client.h"
#include "tests/sim/kernel.h"
#include "tests/sim/model.h"

TAILQ_HEAD(client_list, client);

enum { MOST_UTTERANCES = 4 };

/* Of a WebSocket: its utterances, in the order in which they are said. */
struct client_socket {
    bool open;
    int n_begun, n_done; /* utterances: asked for, told the end of */
    struct {
        uint32_t id;
        size_t bytes, said; /* of its text; of that, what was sent */
        bool cancelled, failed;
    } utterances[MOST_UTTERANCES];
    int n_wanted;
    bool says;     /* text of the last one is still to be sent */
    bool speaking; /* between audio.start and audio.done */
    bool closing;
    struct heard_sound sound;
};

struct client {
    TAILQ_ENTRY(client) entry;
    struct client_plan plan;
    struct end *end;
    struct end *theirs; /* during the handshake: the server's */
    struct alarm handshake;
    struct alarm act, sending, bound, leave, read;
    double bound_s, sent_at;
    uint8_t *out;
    size_t out_n, out_at;
    uint8_t *in; /* of a WebSocket: what is no whole frame yet */
    size_t in_n;
    struct answer answer;
    uint32_t id;
    size_t text_bytes;
    int max_frames, requests_left;
    bool asked;       /* for a speech, and not told yet */
    bool waits;       /* between two requests */
    bool is_known;    /* all of its request was sent before the server was told to stop */
    bool inattentive; /* does not read at once: may be dropped */
    bool excused;     /* it had more time, since a call about it failed */
    struct client_socket socket;
};

uint32_t client_next_id(void);
bool clients_are_ending(void);
void client_free(struct client *c);
void client_send(struct client *c, const void *bytes, size_t n);
void client_read(struct client *c);
/* It must be told within so many seconds from now. */
void client_expects(struct client *c, double seconds);
/* Likewise, all the sound of so much text, from a server that may be replacing its worker. */
void client_expects_sound(struct client *c, size_t text_bytes);
size_t client_head(struct client *c, char *out, size_t size, const char *method, const char *path);
void client_count_sound(struct client *c, const struct heard_sound *s);

/* The head of a frame of text, with a mask of zeros, for n bytes; returns its length, at most 8. */
size_t client_frame(char *out, size_t n);

void session_ask(struct client *c);
void session_opened(struct client *c);
/* Bytes of frames. False: the client is no more. */
bool session_take(struct client *c, const uint8_t *bytes, size_t n, bool is_end);

void dialect_ask(struct client *c);
void dialect_talk(struct client *c);

#endif
