/* SPDX-License-Identifier: Apache-2.0
 * No result takes the place of what its command reads, or of a file of another kind. */
#ifndef CLI_OVERWRITE_H
#define CLI_OVERWRITE_H

#include "cli/options.h"

/* Before a command runs: 0, or an exit code after a message where -o, --codes, --times or --trace name a file of
 * another kind than what is written there, or one that the command reads, under whatever name, or one in a checkpoint's
 * folder. Results appear by replacing the file of that name, so the input would be gone. */
int overwrite_check(const struct invocation *invocation);
/* Whether two names lead to one file, which need not be there yet: the same name in the same folder. */
bool overwrite_same_file(const char *a, const char *b);

#endif
