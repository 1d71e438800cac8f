/* SPDX-License-Identifier: Apache-2.0
 * The lanes of a model and the step that moves every ready stream one frame. Owns the opened checkpoint,
 * its tokenizer and its backend. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/snapshot.h"
#include "engine/stream.h"
#include "model/backend.h"
#include "text/tokenizer.h"

struct utter_model {
    char *folder; /* of the checkpoint */
    struct model *model;
    struct tokenizer *tokenizer;
    const struct backend_ops *ops;
    struct backend *backend;
    utter_stream **streams; /* [n_lanes], NULL: the lane is free */
    bool *reserved;         /* [n_lanes], taken for codec work */
    int n_lanes;
    struct frame_in *frames; /* scratch of a step, [n_lanes] each */
    int *lanes;
    double prompt_s;   /* as asked for, see engine_options */
    double prompt_row; /* seconds that a row of a prompt takes, running mean; 0: not known */
    struct snapshot_store snapshots;
    utter_log_fn *log;
    void *log_user;
    int n_together; /* frames of a stream that wait for their sound together, at most, in this step */
    bool at_once;   /* no frame waits for its sound: for those who listen to a backend's taps */
    utter_error broken; /* code != 0: the device failed; every call says so */
};

struct engine_options {
    const struct backend_ops *ops;
    struct backend_options backend; /* n_lanes 0: as many as suit */
    uint64_t snapshot_bytes;        /* most that kept beginnings may take */
    bool native_pretokenizer;       /* instead of what the official package takes */
    double prompt_s; /* most that a step spends on one stream's prompt; 0: as long as it takes */
};

/* Where the backend has no number that suits: two cores and a small model keep up with so many (docs/speed.md). */
enum { ENGINE_LANES = 24 };

utter_status engine_open(
    utter_model **engine, const char *folder, const struct engine_options *options, utter_error *error);
void engine_close(utter_model **engine);

/* What the official package does for a folder whose config.json carries this `transformers_version` (may be NULL):
 * it patches the pre-tokeniser for versions above 4.57.2 and below 5.0.0, and where there is none. */
enum pretokenizer engine_pretokenizer(const char *version);

/* The error of an earlier device failure or of a file that changed under us, or UTTER_OK. */
utter_status engine_check(utter_model *engine, utter_error *error);
/* Passes a backend status on; a device failure sticks to the engine. */
utter_status engine_note(utter_model *engine, utter_status status, const utter_error *error);
void engine_log(const utter_model *engine, const char *line);

/* A free lane, or -1. */
int engine_free_lane(const utter_model *engine);

/* One frame for every stream that has what it needs; UTTER_AGAIN when there was none. With `together` frames may wait
 * for their sound (stream_sound_due). A stream's own failure ends that stream only and is returned by its reads. */
utter_status engine_step(utter_model *engine, bool together, utter_error *error);

#endif
