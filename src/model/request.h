/* SPDX-License-Identifier: Apache-2.0
 * What a backend refuses before it begins: requests that do not fit the model or the lane. The checks and
 * their words are the same for every device. */
#ifndef MODEL_REQUEST_H
#define MODEL_REQUEST_H

#include "model/backend.h"

/* Where a lane stands, as far as a request depends on it. */
struct request_lane {
    int64_t position; /* rows and frames that it holds */
    int64_t room;     /* that it can hold */
    uint32_t n_frames;
    bool ready; /* a prompt or a resumed beginning waits for its first frame */
    bool ended; /* its end token was chosen */
};

utter_status request_open(const struct backend_options *options, utter_error *error);
utter_status request_lane(int lane, int n_lanes, utter_error *error);
/* Heads that are watched; a lane that looks at rows. */
utter_status request_watch(
    const struct config *config, const struct talker_head *heads, int n, utter_error *error);
utter_status request_look(const struct request_lane *lane, int begin, int end, utter_error *error);
/* The codes behind n rows, where they are not below 0. */
utter_status request_weigh(
    const struct config *config, const int32_t *codes, int n, utter_error *error);
/* n more positions. */
utter_status request_room(const struct request_lane *lane, int n, utter_error *error);
utter_status request_rows(const struct config *config, const struct request_lane *lane,
    const struct row *rows, int n, utter_error *error);
utter_status request_frame(const struct config *config, const struct request_lane *lane,
    const struct frame_in *in, utter_error *error);
bool request_codes_fit(const struct config *config, const int32_t *codes, int n_frames);
utter_status request_feed(
    const struct config *config, const int32_t *codes, int n_frames, utter_error *error);
/* A recording's codes, any number of frames. */
utter_status request_prime(
    const struct config *config, const int32_t *codes, int n_frames, utter_error *error);
/* `n_frames` that a recording of n_samples becomes. */
utter_status request_encode(const struct model *model, size_t n_samples, size_t n_frames,
    size_t capacity_frames, utter_error *error);
/* n_mels feature frames of a recording. */
utter_status request_speaker(const struct model *model, size_t n_mels, utter_error *error);

#endif
