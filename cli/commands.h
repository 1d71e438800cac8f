/* SPDX-License-Identifier: Apache-2.0
 * The commands: each takes what was typed and returns the exit code. Messages have been printed by then. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

enum {
    COMMAND_SAY = 1,
    COMMAND_TOKENS = 2,
    COMMAND_CODEC_DECODE = 4,
    COMMAND_VOICES = 8,
    COMMAND_INFO = 16,
    COMMAND_VERIFY = 32,
    COMMAND_BENCH = 64,
    COMMAND_CODEC_ENCODE = 128,
    COMMAND_CLONE = 256,
    COMMAND_DESIGN = 512,
    COMMAND_VOICES_MIX = 1024,
    COMMAND_READ = 2048,
    COMMAND_SERVE = 1 << 16,
    COMMAND_LOAD = 1 << 17,
    COMMAND_QUANTIZE = 1 << 18,
    COMMAND_MCP = 1 << 19,
    COMMAND_ALIGN_HEADS = 1 << 20,
    COMMAND_JOB_SUBMIT = 1 << 21,
    COMMAND_JOB_WORK = 1 << 22,
    COMMAND_JOB_STATUS = 1 << 23,
    COMMAND_MODELS = 1 << 24,
    COMMAND_PULL = 1 << 25,
    COMMAND_USE = 1 << 26,
    COMMAND_COMPLETION = 1 << 27,
    COMMAND_JOB_RETRY = 1 << 28,
    COMMAND_JOB_COLLECT = 1 << 29,
    COMMAND_JOB = 1 << 30,
    COMMAND_ALL = 4095 | COMMAND_SERVE | COMMAND_MCP | COMMAND_ALIGN_HEADS |
                  COMMAND_JOB_WORK, /* that open a model */
};

struct invocation;

int command_say(const struct invocation *invocation);
int command_read(const struct invocation *invocation);
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
int command_align_heads(const struct invocation *invocation);
int command_bench(const struct invocation *invocation);
int command_serve(const struct invocation *invocation);
int command_load(const struct invocation *invocation);
int command_mcp(const struct invocation *invocation);
int command_models(const struct invocation *invocation);
int command_pull(const struct invocation *invocation);
int command_use(const struct invocation *invocation);
int command_job(const struct invocation *invocation);
int command_job_submit(const struct invocation *invocation);
int command_job_work(const struct invocation *invocation);
int command_job_status(const struct invocation *invocation);
int command_job_retry(const struct invocation *invocation);
int command_job_collect(const struct invocation *invocation);
int command_completion(const struct invocation *invocation);

#endif
