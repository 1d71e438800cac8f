/* SPDX-License-Identifier: Apache-2.0
 * A speech in the worker: a reading on a lane, and what the schedule has to know of it. */
#ifndef SERVER_SLOT_H
#define SERVER_SLOT_H

#include "server/protocol/wire.h"
#include "server/worker/schedule.h"
#include "server/worker/told.h"

struct slot {
    uint32_t id;
    utter_reading *reading; /* NULL: the lane is free */
    bool live;              /* somebody hears it while it is made */
    bool background;        /* nobody waits for it; `due` stays when it came */
    bool paused;            /* the client does not read */
    bool has_all;           /* of its text */
    bool starved;           /* the text has run out, and more may come */
    bool has_sound;         /* its first frame has left, or where nobody hears it: is made */
    /* When all that was made will have been heard; without sound: when the speech came, or text that it waited for. */
    double due;
    utter_reading_stats stats;
    /* Of the stats, what they were when the piece began that is spoken now. */
    uint64_t frames_before;
    double prefill_before;
    int n_broken;       /* pieces whose words were not all said */
    uint64_t broken_at; /* of the text: the first of them */
    bool words;         /* are asked for */
    struct told told;   /* of them */
};

/* What a step was spent on for one speech. */
struct slot_gain {
    bool moved;     /* it made a frame, or ended a piece */
    bool has_begun; /* a piece */
    bool has_read;  /* rows of a prompt, which took rows_s */
    double rows_s;
    double prompt, prompt_s; /* a prompt that came to its end: its size, and the time of all its rows */
};

/* A model whose device is lost, or whose file has shrunk, speaks no more: the next worker opens it again. */
bool slot_model_broke(utter_status status);
/* The slot is zero. UTTER_AGAIN: no lane is free. */
utter_status slot_open(struct slot *slot, utter_model *model, uint32_t id, const struct wire_open *open,
    const utter_voice *voice, utter_error *error);
void slot_close(struct slot *slot);
/* The body of WIRE_TEXT, or NULL for WIRE_FINISH. */
utter_status slot_text(struct slot *slot, const char *text, size_t n, utter_error *error);
/* A prompt takes about as long as its text is; a little of it is there without text. */
double slot_prompt_size(size_t text_bytes);
bool slot_can_step(const struct slot *slot);
/* For the schedule; piece_s: that a step may spend on a prompt, prompt_s: for each byte of one, 0 when not known. */
void slot_choice(
    struct schedule_speech *choice, const struct slot *slot, double piece_s, double prompt_s);
/* What a step gave, as messages; pcm: room for a frame. UTTER_AGAIN: it goes on; UTTER_END: slot_done. */
utter_status slot_take(struct slot *slot, const utter_model_info *info, float *pcm, double now,
    struct slot_gain *gain, struct wire_out *out, utter_error *error);
struct wire_done slot_done(const struct slot *slot);

#endif
