/* SPDX-License-Identifier: Apache-2.0
 * A repository of the hub -> its files in the cache, checked. */
#ifndef CLI_HUB_H
#define CLI_HUB_H

#include <stdint.h>

#include "utter.h"

/* Told what is being read and how much of the whole is there; false stops. */
typedef bool hub_progress(void *user, const char *file, uint64_t done, uint64_t all);

/* Downloads what of `repository` (OWNER/NAME) is not in the cache; what is there half goes on. The name
 * refs/main, which makes it a model that can be spoken with, appears when every file is complete and has
 * the hash that the hub names. *bytes: of all files. */
utter_status hub_pull(const char *repository, const char *cache, hub_progress *progress, void *user,
    uint64_t *bytes, utter_error *error);

#endif
