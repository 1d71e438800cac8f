/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a line of the Model Context Protocol: an answer of JSON-RPC, or something to be done. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/dialects/mcp/mcp_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_answer(const json_t *answer)
{
    char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    bool one = json_object_get(answer, "result") != NULL,
         other = json_object_get(answer, "error") != NULL;
    if (!text || strchr(text, '\n') || one == other || !json_object_get(answer, "id")) {
        abort();
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mcp_request r;
    enum mcp_kind kind = mcp_take(&r, (const char *)data, bytes, "0");
    if (kind == MCP_ANSWER) {
        check_answer(r.answer);
    } else if (kind == MCP_SPEAK || kind == MCP_VOICES) {
        json_t *answer = mcp_result(&r, "0", mcp_texts(kind == MCP_SPEAK ? r.text : "x"), false);
        check_answer(answer);
        json_decref(answer);
        mcp_cancels((const char *)data, bytes, r.id);
    }
    mcp_fini(&r);
    return 0;
}
