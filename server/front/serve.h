/* SPDX-License-Identifier: Apache-2.0
 * `utter serve`: what the program calls. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "server/loop/serve_options.h"
#include "server/sound/encode.h" /* the list of formats */

/* Serves until a signal ends it; returns the exit code. Messages have been printed by then. */
int serve_run(const struct serve_options *options);

/* The commands that the server starts itself with: "serve-worker SOCKET" and "serve-clone MODEL BASE OUT
 * caged|open". -1 when the arguments name none of them, else the exit code. */
int serve_child(int n, char **arguments);

#endif
