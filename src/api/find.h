/* SPDX-License-Identifier: Apache-2.0
 * Where models lie. */
#ifndef API_FIND_H
#define API_FIND_H

#include "api/api.h"

/* What utter_model_open may be given -> the folder or file with the checkpoint, in path[size]: NULL is
 * the voice that comes with the library, a repository's folder in a hub's cache its snapshot. Whether it
 * is there is not asked. */
utter_status find_checkpoint(char *path, size_t size, const char *given, utter_error *error);

#endif
