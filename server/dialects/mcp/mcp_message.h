/* SPDX-License-Identifier: Apache-2.0
 * The Model Context Protocol on a stream of lines: a JSON-RPC message in, what is to be done or the answer out. Serves
 * the revisions up to 2025-11-25, with their handshake, and 2026-07-28, whose requests each name it. Pure. */
#ifndef SERVER_MCP_MESSAGE_H
#define SERVER_MCP_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum mcp_kind {
    MCP_NOTHING, /* a notification */
    MCP_ANSWER,  /* `answer` is filled in */
    MCP_SPEAK,   /* to be done, then mcp_result */
    MCP_VOICES,
};

/* Strings belong to `message`. */
struct mcp_request {
    json_t *message;
    const json_t *id;
    bool stateless;                                            /* of 2026-07-28 */
    json_t *answer;                                            /* the caller's */
    const char *text, *voice, *language, *instructions, *file; /* of MCP_SPEAK; NULL: not given */
    bool play;
};

/* Takes one line. To be freed with mcp_fini. */
enum mcp_kind mcp_take(struct mcp_request *r, const char *line, size_t n, const char *version);
void mcp_fini(struct mcp_request *r);

/* The answer to a tool's call: `content` is a list (taken over). A tool that failed is told in the result, where a
 * model reads it. */
json_t *mcp_result(const struct mcp_request *r, const char *version, json_t *content, bool failed);
/* A block of text; and a list of one. */
json_t *mcp_text(const char *text);
json_t *mcp_texts(const char *text);

/* Whether the line takes this request back. */
bool mcp_cancels(const char *line, size_t n, const json_t *id);

#endif
