/* SPDX-License-Identifier: Apache-2.0
 * What the front end and the worker say to each other over a stream socket: messages of a 12-byte header (body bytes,
 * kind, speech id; little endian) and a body of numbers and strings. A string is its length, its bytes and a zero; the
 * length 0xFFFFFFFF is no string. Each WIRE_OPEN gets exactly one of WIRE_DONE, WIRE_FAILED and WIRE_FREED. Pure. */
#ifndef SERVER_WIRE_H
#define SERVER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tables/parameters.h"
#include "utter.h"

enum { WIRE_VERSION = 14, WIRE_HEADER_BYTES = 12, WIRE_MAX_BODY = 4 << 20 };

enum wire_kind {
    /* to the worker */
    WIRE_HELLO = 1, /* struct wire_hello: the first message */
    WIRE_OPEN,      /* struct wire_open: a speech takes a lane */
    WIRE_TEXT,      /* bytes of its text */
    WIRE_FINISH,    /* no more text */
    WIRE_CANCEL,    /* answered by WIRE_FREED, unless the speech has ended meanwhile */
    WIRE_PAUSE,     /* its client does not read */
    WIRE_RESUME,
    /* to the front end */
    WIRE_READY = 32, /* struct wire_ready: the model is open and warm */
    WIRE_REFUSED, /* struct wire_failed: the model cannot be opened, or speaks no more; the worker ends */
    WIRE_PCM,     /* floats, 24 kHz mono */
    WIRE_DONE,    /* struct wire_done: the speech has ended, its lane is free */
    WIRE_FAILED,  /* struct wire_failed: so has this one */
    WIRE_FREED,   /* cancelled, its lane is free */
    WIRE_BEAT,    /* struct wire_beat: the worker is alive */
    WIRE_KERNELS, /* a string: other kernels make the frames now */
    WIRE_WORDS,   /* struct wire_words: behind the sound that they belong to */
};

/* A message being written: grows; `failed` sticks when memory ends or a string is too long. */
struct wire_out {
    uint8_t *bytes;
    size_t n, room;
    size_t header; /* where the open message begins */
    bool failed;
};

void wire_begin(struct wire_out *w, enum wire_kind kind, uint32_t id);
void wire_end(struct wire_out *w); /* fills in the length */
void wire_put(struct wire_out *w, const void *data, size_t n);
void wire_put_number(struct wire_out *w, uint64_t value, int n_bytes);
void wire_put_real(struct wire_out *w, double value);
void wire_put_string(struct wire_out *w, const char *text); /* NULL goes as NULL */
/* A message with this body. */
void wire_message(struct wire_out *w, enum wire_kind kind, uint32_t id, const void *body, size_t n);
void wire_fini(struct wire_out *w);

struct wire_message {
    enum wire_kind kind;
    uint32_t id;
    const uint8_t *body;
    size_t bytes;
};

enum wire_progress { WIRE_MORE, WIRE_MESSAGE, WIRE_BAD };

/* Bytes of the message, with its header, that begins with these WIRE_HEADER_BYTES. */
size_t wire_message_bytes(const uint8_t *header);
/* The message at the beginning of in[0..n); *used bytes are done with. */
enum wire_progress wire_read(struct wire_message *message, const uint8_t *in, size_t n, size_t *used);

/* Bodies. Strings point into the message (they end with a zero there). The readers return false for a body that is not
 * exactly what it should be. */
struct wire_hello {
    uint32_t version;
    const char *model, *device, *kernels; /* kernels: NULL is the usual */
    int threads;
    int lanes;   /* 0: as many as suit */
    int weights; /* utter_weights */
    uint64_t snapshot_bytes;
    const char *cache; /* a folder for what is learnt of models, or NULL */
    /* Folders whose voice files it is asked to read, or NULL. */
    const char *voices, *temporary_voices;
    bool caged; /* it gives up all rights that it does not need */
    bool idle;  /* it has the processor when nobody else wants it */
};
void wire_put_hello(struct wire_out *w, const struct wire_hello *hello);
bool wire_get_hello(struct wire_hello *hello, const struct wire_message *m);

struct wire_open {
    /* A preset or a voice file; the other is NULL, and both where no voice was asked for. */
    const char *voice_name, *voice_file;
    const char *language, *instruct;
    int layout; /* utter_layout */
    /* As in parameter_table. The checkpoint's own value: NAN, or -1 of integers. */
    double sampling[MOST_PARAMETERS];
    uint64_t seed;
    int max_frames; /* of all its pieces together; 0: the client set no limit */
    bool live;      /* it is heard while it is made */
    int markup;     /* UTTER_MARKUP_ */
    bool spell_out;
    bool carry;      /* each piece goes on from the one before */
    bool plain;      /* control tokens in its texts are characters */
    bool words;      /* it is told which word is heard when */
    bool background; /* it is made when listeners leave time for it */
};
void wire_put_open(struct wire_out *w, uint32_t id, const struct wire_open *open);
bool wire_get_open(struct wire_open *open, const struct wire_message *m);

enum { WIRE_MAX_NAMES = 256 };

struct wire_ready {
    uint32_t version;
    const char *kind_name, *size_name, *device, *kernels, *weights;
    bool takes_instructions;
    int sample_rate, frame_samples, lanes, threads, width;
    uint64_t memory_bytes;
    int cage; /* its parts that hold, CAGE_ */
    /* What the library said while it opened the model: why a GPU is not used; or NULL. */
    const char *note;
    const char *voices[WIRE_MAX_NAMES], *languages[WIRE_MAX_NAMES];
    int n_voices, n_languages;
};
void wire_put_ready(struct wire_out *w, const struct wire_ready *ready);
bool wire_get_ready(struct wire_ready *ready, const struct wire_message *m);

struct wire_done {
    int finish; /* utter_finish */
    int n_frames, n_text_tokens;
    double prefill_s, talker_s, predictor_s, vocoder_s;
    int n_pieces, n_retries, n_broken; /* of its text: said, said again, not whole in the end */
    uint64_t broken_at;                /* the byte where the first of these begins */
};
void wire_put_done(struct wire_out *w, uint32_t id, const struct wire_done *done);
bool wire_get_done(struct wire_done *done, const struct wire_message *m);

enum { WIRE_MAX_WORDS = 1 << 16 };

/* From word `first` of the speech on, these are its words; what was told of later ones is no longer so. */
struct wire_words {
    uint64_t first;
    size_t n;
    bool approximate;  /* their times are shares of the sound */
    const uint8_t *at; /* in the message: wire_word */
};
/* All that are there, in as many messages as it takes. */
void wire_put_words(struct wire_out *w, uint32_t id, uint64_t first, const utter_word *words, size_t n,
    bool approximate);
bool wire_get_words(struct wire_words *words, const struct wire_message *m);
utter_word wire_word(const struct wire_words *words, size_t i);

struct wire_failed {
    int status; /* utter_status */
    const char *text;
};
void wire_put_failed(struct wire_out *w, uint32_t id, int status, const char *text);
void wire_put_refused(struct wire_out *w, int status, const char *text);
bool wire_get_failed(struct wire_failed *failed, const struct wire_message *m); /* of both kinds */

/* Of the time of a worker, what a full house may take, in frames: the `capacity` of its beat stands for so much. */
enum { WIRE_FULL_PERCENT = 80 };
/* So long one of its steps takes at most, where one lane takes no longer. */
enum { WIRE_STEP_MS = 25 };

struct wire_beat {
    int n_open;    /* speeches on lanes, but those in the background */
    int n_stepped; /* lanes of the last step */
    int capacity;  /* speeches that can be made as fast as they are heard */
    /* Not even one can, as far as is known; then there is nothing to keep up with, and `capacity` is all lanes. */
    bool falls_behind;
    double step_s; /* time of the last step */
    /* Foretold: a step with one speech more than are open, what each further one adds, a prompt by the byte of text.
     * 0: not known. */
    double next_step_s, lane_s, prompt_s;
};
void wire_put_beat(struct wire_out *w, const struct wire_beat *beat);
bool wire_get_beat(struct wire_beat *beat, const struct wire_message *m);

void wire_put_kernels(struct wire_out *w, const char *kernels);
const char *wire_get_kernels(const struct wire_message *m); /* NULL: it is no such body */

#endif
