/* SPDX-License-Identifier: Apache-2.0
 * Deepgram's interface: its paths. */
#ifndef SERVER_DEEPGRAM_H
#define SERVER_DEEPGRAM_H

#include "server/loop/routes.h"

extern const struct route deepgram_routes[];

#endif
