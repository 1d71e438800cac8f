/* SPDX-License-Identifier: Apache-2.0
 * From the options to an open model. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "cli/options.h"
#include "utter.h"

/* The folder or file to open: what -m or a rule of defaults.h names, or the voice that comes with the program. NULL
 * after a message. */
const char *checkpoint_folder(const struct settings *settings);

/* The same for any name; NULL is the voice that comes with the program. 0, or an exit code after a message. */
int checkpoint_find(char *path, size_t size, const char *name);

/* Opens the model with `n_lanes` lanes. 0, or an exit code after a message. */
int checkpoint_open(utter_model **model, const struct settings *settings, int n_lanes);
/* The same for those who only ask what is in it: no GPU is made to hold it. */
int checkpoint_look(utter_model **model, const struct settings *settings);

/* The same for a folder that is not that of -m. */
int checkpoint_open_folder(
    utter_model **model, const char *folder, const struct settings *settings, int n_lanes);

/* How many lanes of the open model one text takes to a file; `asked` 0: as many as suit the device. */
int checkpoint_lanes(const utter_model *model, int asked);

/* The info of an open model. */
utter_model_info checkpoint_info(const utter_model *model);

/* Applies the sampling, length and voice options on the checkpoint's defaults; without -v the first preset
 * voice speaks. The voice is the caller's and
 * must live until the stream is open. 0, or an exit code after a message. */
int checkpoint_stream_options(utter_stream_options *options, utter_voice **voice,
    const utter_model *model, const struct settings *settings);

/* What --weights says. */
utter_weights checkpoint_weights(const struct settings *settings);

#endif
