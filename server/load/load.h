/* SPDX-License-Identifier: Apache-2.0
 * `utter load`: asks a server for speech as listeners would, and says what they heard. */
#ifndef SERVER_LOAD_H
#define SERVER_LOAD_H

#include "server/load/load_options.h"

int load_run(const struct load_options *options);

#endif
