/* SPDX-License-Identifier: Apache-2.0
 * What a recording of a voice must be; a recording -> a cloned voice, through the encoders of a base model. */
#ifndef VOICE_CLONE_H
#define VOICE_CLONE_H

#include "audio/sound_read.h"
#include "model/backend.h"
#include "voice/voice.h"

struct clone_request {
    const char *name;                  /* required */
    const char *transcript;            /* NULL: x-vector only */
    const char *language, *provenance; /* or NULL */
    backend_progress_fn *progress;     /* or NULL */
    void *progress_user;
};

/* UTTER_E_ARGUMENT with the reason when a recording holds no voice: too short, silent. `what` names it. */
utter_status clone_check_recording(
    const char *what, const struct sound_heard *heard, utter_error *error);
/* The same when its level never changes as that of speech does: hiss, hum, a tone. pcm: mono, finite. */
utter_status clone_check_speech(
    const char *what, const float *pcm, size_t n_samples, int rate, utter_error *error);
/* Both of samples that nobody has read from a file, which must be numbers and not too many. */
utter_status clone_check_samples(
    const float *pcm, size_t n_samples, int rate, double most_seconds, utter_error *error);
/* Says what might spoil a voice, a line a call. `log` may be NULL. */
void clone_note_recording(const struct sound_heard *heard, utter_log_fn *log, void *user);

/* UTTER_E_ARGUMENT with the reason when a model cannot clone. */
utter_status clone_check(const struct model *model, bool with_codes, utter_error *error);

/* pcm: mono at the codec's rate, finite. */
utter_status clone_voice(utter_voice **voice, const struct backend_ops *ops, struct backend *backend,
    const struct model *model, const float *pcm, size_t n_samples, const struct clone_request *request,
    utter_error *error);

/* The codes of a recording, [*n_frames][n_codebooks]; the caller frees them with memory_free. */
utter_status clone_codes(int32_t **codes, size_t *n_frames, const struct backend_ops *ops,
    struct backend *backend, const struct model *model, const float *pcm, size_t n_samples,
    backend_progress_fn *progress, void *user, utter_error *error);

#endif
