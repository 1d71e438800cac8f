/* SPDX-License-Identifier: Apache-2.0
 * The commands: each takes what was typed and returns the exit code. Messages have been printed by then. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "options.h"

int command_say(const struct invocation *invocation);
int command_tokens(const struct invocation *invocation);
int command_codec_decode(const struct invocation *invocation);
int command_codec_encode(const struct invocation *invocation);
int command_clone(const struct invocation *invocation);
int command_design(const struct invocation *invocation);
int command_voices_mix(const struct invocation *invocation);
int command_voices(const struct invocation *invocation);
int command_info(const struct invocation *invocation);
int command_verify(const struct invocation *invocation);
int command_quantize(const struct invocation *invocation);
int command_bench(const struct invocation *invocation);
int command_serve(const struct invocation *invocation);
int command_load(const struct invocation *invocation);

#endif
