/* SPDX-License-Identifier: Apache-2.0
 * The options of `utter serve` that were not typed: the environment, then a file of lines OPTION = VALUE. */
#ifndef CLI_SERVE_DEFAULTS_H
#define CLI_SERVE_DEFAULTS_H

#include "cli/options.h"

/* Before the command line is read, which may change any of them; its arguments say which file. False after a message
 * on stderr. */
bool serve_defaults(struct invocation *invocation, int n, char **arguments);

#endif
