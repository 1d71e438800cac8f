/* SPDX-License-Identifier: Apache-2.0
 * The lanes of a model and the step that moves every ready stream one frame. Owns the opened checkpoint,
 * its tokenizer and its backend. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/stream.h"

/* What utter.h calls a model is one of these (api/api.h). */
struct engine {
    struct stream_context context; /* the backend, the model and its tokenizer, which streams share */
    char *folder;                  /* of the checkpoint */
    utter_stream **streams;        /* [n_lanes], NULL: the lane is free */
    bool *reserved;                /* [n_lanes], taken for codec work */
    int n_lanes;
    struct frame_in *frames; /* scratch of a step, [n_lanes] each */
    int *lanes;
    utter_log_fn *log;
    void *log_user;
    /* Every frame gets its sound in the step that makes it, although several together would be cheaper: a backend's tap
     * (backend.h) tells nothing of which frame its values are, so who listens to one must know that it is the last. */
    bool no_waiting;
    utter_error broken; /* code != 0: the device failed; every call says so */
};

struct engine_options {
    const struct backend_ops *ops;
    struct backend_options backend; /* n_lanes 0: as many as suit */
    const char *heads;              /* a file (words/heads.h); NULL: what the checkpoint brings */
    const char *cache;              /* a folder for what is learnt of models; NULL: none */
    uint64_t snapshot_bytes;        /* most that kept beginnings may take */
    bool native_pretokenizer;       /* instead of what the official package takes */
    double prompt_s; /* most that a step spends on one stream's prompt; 0: as long as it takes */
};

/* Where the backend has no number that suits: two cores and a small model keep up with so many (docs/speed.md). */
enum { ENGINE_LANES = 24 };

/* The engine is the caller's memory, zeroed. After a failure it is zeroed again. */
utter_status engine_open(struct engine *engine, const char *folder,
    const struct engine_options *options, utter_error *error);
void engine_close(struct engine *engine); /* accepts a zeroed one */

/* What the official package does for a folder whose config.json carries this `transformers_version` (may be NULL):
 * it patches the pre-tokeniser for versions above 4.57.2 and below 5.0.0, and where there is none. */
enum pretokenizer engine_pretokenizer(const char *version);

/* The error of an earlier device failure or of a file that changed under us, or UTTER_OK. */
utter_status engine_check(struct engine *engine, utter_error *error);
/* Passes a backend status on; a device failure sticks to the engine. */
utter_status engine_keep_failure(struct engine *engine, utter_status status, const utter_error *error);
void engine_log(const struct engine *engine, const char *line);

/* A free lane, or -1. */
int engine_free_lane(const struct engine *engine);

bool engine_is_idle(const struct engine *engine); /* no lane is taken */

/* A stream on a free lane; UTTER_AGAIN when all are taken. */
utter_status engine_open_stream(utter_stream **stream, struct engine *engine,
    const utter_stream_options *options, utter_error *error);
/* Tells through the log what the user should know of the stream's options. */
void engine_note_stream(const utter_stream *stream);
/* The stream has ended and its sound was taken: the lane is for others, the rest stays. */
void engine_release_lane(utter_stream *stream);
/* Frees the stream and its lane. Accepts a pointer to NULL. */
void engine_free_stream(utter_stream **stream);

/* One frame for every stream that has what it needs; UTTER_AGAIN when there was none. With `together` frames may wait
 * for their sound (stream_sound_due). A stream's own failure ends that stream only and is returned by its reads. */
utter_status engine_step(struct engine *engine, bool together, utter_error *error);

#endif
