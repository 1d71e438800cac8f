/* SPDX-License-Identifier: Apache-2.0
 * Methods, tools and errors. */
#include "server/dialects/mcp/mcp_message.h"

#include <string.h>

#include "base/json.h"

enum {
    VALUES = 10000,
    NO_JSON = -32700,
    NO_REQUEST = -32600,
    NO_METHOD = -32601,
    BAD_PARAMETERS = -32602,
    NO_VERSION = -32022
};

static const char newest[] = "2026-07-28", newest_handshake[] = "2025-11-25";
static const char version_key[] = "io.modelcontextprotocol/protocolVersion",
                  server_key[] = "io.modelcontextprotocol/serverInfo";
static const char instructions[] = "Speaks texts aloud with a speech model on this machine.";

static const char tools[] =
    "[{\"name\":\"speak\",\"title\":\"Speak a text\",\"description\":\"Makes speech of a text, of any "
    "length, and gives it back as sound (WAV), plays it on the sound device of this machine, or writes "
    "it to a file.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"text\":{\"type\":\"string\",\"description\":\"what is said\"},"
    "\"voice\":{\"type\":\"string\",\"description\":\"one that list_voices names\"},"
    "\"language\":{\"type\":\"string\",\"description\":\"a code, as en, or a name\"},"
    "\"instructions\":{\"type\":\"string\",\"description\":\"how it is said, where the model takes "
    "them\"},"
    "\"play\":{\"type\":\"boolean\",\"description\":\"play it here instead of giving it back\"},"
    "\"file\":{\"type\":\"string\",\"description\":\"a new file to write it to: .wav or .flac\"}},"
    "\"required\":[\"text\"]}},"
    "{\"name\":\"list_voices\",\"title\":\"List voices\",\"description\":\"The voices and languages "
    "that speak can use.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{}},"
    "\"annotations\":{\"readOnlyHint\":true}}]";

static json_t *envelope(const json_t *id)
{
    json_t *m = json_pack("{s:s}", "jsonrpc", "2.0");
    json_object_set_new(m, "id", id ? json_incref((json_t *)id) : json_null());
    return m;
}

static json_t *result_of(const struct mcp_request *r, const char *version, json_t *result)
{
    json_t *m = envelope(r->id);
    if (r->stateless) {
        json_object_set_new(result, "resultType", json_string("complete"));
        json_object_set_new(result, "_meta",
            json_pack("{s:{s:s,s:s}}", server_key, "name", "utter", "version", version));
    }
    json_object_set_new(m, "result", result);
    return m;
}

/* `data` is taken over; may be NULL. */
static enum mcp_kind refuse_request(struct mcp_request *r, int code, const char *why, json_t *data)
{
    json_t *error = json_pack("{s:i,s:s}", "code", code, "message", why);
    if (data) {
        json_object_set_new(error, "data", data);
    }
    r->answer = envelope(r->id);
    json_object_set_new(r->answer, "error", error);
    return MCP_ANSWER;
}

static const char *plain_string(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* What may be cached, and by whom, as 2026-07-28 wants to know. */
static void set_life(json_t *result)
{
    json_object_set_new(result, "ttlMs", json_integer(0));
    json_object_set_new(result, "cacheScope", json_string("private"));
}

static enum mcp_kind initialize(struct mcp_request *r, const json_t *params, const char *version)
{
    static const char *const known[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
    const char *asked = plain_string(json_object_get(params, "protocolVersion"));
    const char *chosen = newest_handshake;
    for (size_t i = 0; asked && i < sizeof known / sizeof *known; i++) {
        chosen = strcmp(known[i], asked) == 0 ? known[i] : chosen;
    }
    r->answer = result_of(r, version,
        json_pack("{s:s,s:{s:{}},s:{s:s,s:s},s:s}", "protocolVersion", chosen, "capabilities", "tools",
            "serverInfo", "name", "utter", "version", version, "instructions", instructions));
    return MCP_ANSWER;
}

static enum mcp_kind discover(struct mcp_request *r, const char *version)
{
    json_t *result = json_pack("{s:[s],s:{s:{}},s:s}", "supportedVersions", newest, "capabilities",
        "tools", "instructions", instructions);
    set_life(result);
    r->answer = result_of(r, version, result);
    return MCP_ANSWER;
}

static enum mcp_kind list_tools(struct mcp_request *r, const char *version)
{
    json_t *result = json_pack("{s:o}", "tools", json_loads(tools, 0, NULL));
    if (r->stateless) {
        set_life(result);
    }
    r->answer = result_of(r, version, result);
    return MCP_ANSWER;
}

/* A string of the arguments; false: it is something else. */
static bool take_string(const json_t *arguments, const char *name, const char **text)
{
    const json_t *value = json_object_get(arguments, name);
    *text = plain_string(value);
    return !value || json_is_null(value) || *text;
}

static enum mcp_kind call(struct mcp_request *r, const json_t *params, const char *version)
{
    const char *name = plain_string(json_object_get(params, "name"));
    const json_t *arguments = json_object_get(params, "arguments");
    if (name && strcmp(name, "list_voices") == 0) {
        return MCP_VOICES;
    }
    if (!name || strcmp(name, "speak") != 0) {
        return refuse_request(r, BAD_PARAMETERS, "no such tool (speak and list_voices are)", NULL);
    }
    r->play = json_is_true(json_object_get(arguments, "play"));
    bool good = take_string(arguments, "text", &r->text) &&
                take_string(arguments, "voice", &r->voice) &&
                take_string(arguments, "language", &r->language) &&
                take_string(arguments, "instructions", &r->instructions) &&
                take_string(arguments, "file", &r->file);
    if (!good || !r->text || r->text[strspn(r->text, " \t\r\n")] == 0) {
        r->answer = mcp_result(r, version,
            mcp_texts(good ? "\"text\" must be a text that is not blank"
                           : "the arguments of speak must be strings, but for play"),
            true);
        return MCP_ANSWER;
    }
    return MCP_SPEAK;
}

/* Whether the request belongs to 2026-07-28; *asked is what it names. */
static bool names_version(const json_t *params, const char **asked)
{
    const json_t *version = json_object_get(json_object_get(params, "_meta"), version_key);
    *asked = plain_string(version);
    return version != NULL;
}

static enum mcp_kind serve(
    struct mcp_request *r, const char *method, const json_t *params, const char *version)
{
    const char *asked;
    r->stateless = names_version(params, &asked);
    if (r->stateless && (!asked || strcmp(asked, newest) != 0)) {
        r->stateless = false;
        return refuse_request(r, NO_VERSION, "the version of the protocol is not served",
            json_pack("{s:[s],s:s}", "supported", newest, "requested", asked ? asked : ""));
    }
    if (strcmp(method, "initialize") == 0 && !r->stateless) {
        return initialize(r, params, version);
    }
    if (strcmp(method, "server/discover") == 0 && r->stateless) {
        return discover(r, version);
    }
    if (strcmp(method, "ping") == 0) {
        r->answer = result_of(r, version, json_object());
        return MCP_ANSWER;
    }
    if (strcmp(method, "tools/list") == 0) {
        return list_tools(r, version);
    }
    if (strcmp(method, "tools/call") == 0) {
        return call(r, params, version);
    }
    return refuse_request(r, NO_METHOD, "no such method", NULL);
}

enum mcp_kind mcp_take(struct mcp_request *r, const char *line, size_t n, const char *version)
{
    utter_error error = {.text = ""};
    *r = (struct mcp_request){.message = NULL};
    if (json_text(&r->message, line, n, VALUES, "the message", &error) != UTTER_OK) {
        return refuse_request(r, NO_JSON, error.text, NULL);
    }
    const json_t *id = json_object_get(r->message, "id");
    const char *method = plain_string(json_object_get(r->message, "method"));
    if (!method || !json_is_object(r->message) || (id && !json_is_string(id) && !json_is_integer(id))) {
        /* An answer to something that was never asked is passed over. */
        bool answers = json_object_get(r->message, "result") || json_object_get(r->message, "error");
        return answers ? MCP_NOTHING
                       : refuse_request(r, NO_REQUEST, "no request of JSON-RPC 2.0", NULL);
    }
    r->id = id;
    return id ? serve(r, method, json_object_get(r->message, "params"), version) : MCP_NOTHING;
}

void mcp_fini(struct mcp_request *r)
{
    json_decref(r->message);
    json_decref(r->answer);
    *r = (struct mcp_request){.message = NULL};
}

json_t *mcp_result(const struct mcp_request *r, const char *version, json_t *content, bool failed)
{
    return result_of(r, version, json_pack("{s:o,s:b}", "content", content, "isError", failed));
}

json_t *mcp_text(const char *text)
{
    json_t *said = json_string(text);
    return json_pack("{s:s,s:o}", "type", "text", "text", said ? said : json_string("(no text)"));
}

json_t *mcp_texts(const char *text)
{
    return json_pack("[o]", mcp_text(text));
}

bool mcp_cancels(const char *line, size_t n, const json_t *id)
{
    json_t *m = NULL;
    if (json_text(&m, line, n, VALUES, "the message", NULL) != UTTER_OK) {
        return false;
    }
    const char *method = plain_string(json_object_get(m, "method"));
    bool cancels = method && strcmp(method, "notifications/cancelled") == 0 &&
                   json_equal(json_object_get(json_object_get(m, "params"), "requestId"), id);
    json_decref(m);
    return cancels;
}
