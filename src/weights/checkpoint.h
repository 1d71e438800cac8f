/* SPDX-License-Identifier: Apache-2.0
 * The small files of a checkpoint (configs, vocabulary), wherever they lie: in the checkpoint's folder or, where the
 * checkpoint is one safetensors file, inside that file. Then the path FILE/NAME means the data of its tensor
 * "file/NAME", so that the rest of the code joins a "folder" and a name without knowing which of the two it has. */
#ifndef WEIGHTS_CHECKPOINT_H
#define WEIGHTS_CHECKPOINT_H

#include "base/json.h"

/* What the name of a tensor begins with that holds a file. */
#define CHECKPOINT_FILE_PREFIX "file/"

bool checkpoint_exists(const char *path);
/* UTTER_E_FILE: the file of this path is not there, which is a part of the model. */
utter_status checkpoint_missing(const char *path, utter_error *error);
/* file_read, also of a file inside a safetensors file. */
utter_status checkpoint_read(
    const char *path, size_t limit, char **text, size_t *bytes, utter_error *error);
/* json_file, also of a file inside a safetensors file. */
utter_status checkpoint_json(
    json_t **root, const char *path, size_t limit, size_t most_values, utter_error *error);

#endif
