/* SPDX-License-Identifier: Apache-2.0
 * What the files behind utter.h share. */
#ifndef API_API_H
#define API_API_H

#include "engine/engine.h"

/* What utter.h calls a model is an engine: an opened checkpoint on a device, with its lanes. */
struct utter_model {
    struct engine engine;
};

static inline const struct config *api_config(const utter_model *model)
{
    return model->engine.context.model->config;
}

/* Copies an option or answer struct that may come from a caller built against an older or newer header: the fields that
 * both know; the rest of *to stays. UTTER_E_ARGUMENT when the size was never set. */
utter_status api_copy_sized(
    void *to, size_t to_size, const void *from, size_t from_size, const char *what, utter_error *error);

/* Fills the caller's options, of which it knows `to_size` bytes, with the defaults in *from. Nothing where `to` is NULL
 * or to_size is none. */
void api_init_sized(void *to, size_t to_size, const void *from, size_t from_size);

/* What utter_model_open may be given -> the folder or file with the checkpoint, in path[size]: NULL is the voice that
 * comes with the library, a repository's folder in a hub's cache its snapshot. Whether it is there is not asked. */
utter_status find_checkpoint(char *path, size_t size, const char *given, utter_error *error);

/* What the `device` option asks for. */
struct device_choice {
    bool gpu, cpu;  /* which may be taken. Where both may: the GPU if it can be used */
    int index;      /* of the GPU */
    const char *as; /* the card that it is posed as, a part of the option; NULL: itself */
};

/* UTTER_E_ARGUMENT when it asks for what is no device. */
utter_status api_choose_device(
    const utter_model_options *options, struct device_choice *choice, utter_error *error);

/* UTTER_E_ARGUMENT when a pointer that must be given is NULL. */
utter_status api_need(const void *pointer, const char *what, utter_error *error);
/* The same of all that a call has which gives samples, `handle` first, and whether there is room. *n becomes 0. */
utter_status api_need_room(
    const void *handle, const float *pcm, size_t capacity, size_t *n, utter_error *error);

/* UTTER_E_ARGUMENT when a text of a voice is not UTF-8. Accepts NULL. */
utter_status api_need_text(const char *text, const char *what, utter_error *error);

#endif
