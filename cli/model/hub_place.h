/* SPDX-License-Identifier: Apache-2.0
 * The hub: its address, a token for it, and the folder where its client keeps what it has downloaded. utter pull puts
 * its files there in the same way: models--OWNER--NAME with blobs (files, by their hashes), snapshots (a folder of
 * links for each revision) and refs. */
#ifndef CLI_HUB_PLACE_H
#define CLI_HUB_PLACE_H

#include <stddef.h>

/* $HF_HUB_CACHE, $HF_HOME/hub, or huggingface/hub under $XDG_CACHE_HOME or ~/.cache; NULL: none is named. */
const char *hub_folder(void);
/* $HF_TOKEN, or what lies in $HF_HOME/token beside it; NULL: there is none. */
const char *hub_token(void);
/* $HF_ENDPOINT, a mirror, or the hub itself; without a slash at its end. */
const char *hub_address(void);

#endif
