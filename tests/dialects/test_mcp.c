/* SPDX-License-Identifier: Apache-2.0
 * The Model Context Protocol, message by message: what is answered, and what is to be done. */
#include "tests/dialects/expected.h"

#include <stdio.h>

#include "server/dialects/mcp/mcp_message.h"

static enum mcp_kind take(struct mcp_request *r, const char *line)
{
    return mcp_take(r, line, strlen(line), "1.2");
}

#define STATELESS "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}"
#define MARKS                                                                                          \
    "\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/"                                \
    "serverInfo\":{\"name\":\"utter\","                                                                \
    "\"version\":\"1.2\"}}"
#define INSTRUCTIONS "\"instructions\":\"Speaks texts aloud with a speech model on this machine.\""
#define ERROR(id, code, message)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"" message "\"}}"

static void expect_answer(const char *line, const char *answer)
{
    struct mcp_request r;
    if (take(&r, line) != MCP_ANSWER) {
        fail_msg("%s has no answer", line);
    }
    expect_json(json_incref(r.answer), answer);
    mcp_fini(&r);
    assert_true(!r.message && !r.answer);
}

static void what_is_no_request_is_refused(void **state)
{
    static const char *const none[] = {"[]", "{}", "{\"id\":1}", "{\"id\":1,\"method\":1}",
        "{\"id\":null,\"method\":\"ping\"}", "{\"id\":1.5,\"method\":\"ping\"}",
        "{\"id\":[],\"method\":\"ping\"}"},
                             *const nothing[] = {"{\"method\":\"notifications/initialized\"}",
                                 "{\"method\":\"ping\"}", "{\"id\":1,\"result\":{}}",
                                 "{\"id\":1,\"error\":{}}"};
    struct mcp_request r;
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        expect_answer(none[i], ERROR("null", "-32600", "no request of JSON-RPC 2.0"));
    }
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        assert_int_equal(take(&r, nothing[i]), MCP_NOTHING);
        assert_null(r.answer);
        mcp_fini(&r);
    }
    assert_int_equal(take(&r, "{\"id\":1"), MCP_ANSWER);
    json_t *error = json_object_get(r.answer, "error");
    assert_int_equal(json_integer_value(json_object_get(error, "code")), -32700);
    assert_true(json_string_length(json_object_get(error, "message")) > 0);
    assert_true(json_is_null(json_object_get(r.answer, "id")));
    mcp_fini(&r);
    expect_answer("{\"id\":\"a\",\"method\":\"sing\"}", ERROR("\"a\"", "-32601", "no such method"));
}

static void a_handshake_agrees_on_a_version(void **state)
{
    static const struct {
        const char *asked, *chosen;
    } cases[] = {{"\"2024-11-05\"", "2024-11-05"}, {"\"2025-03-26\"", "2025-03-26"},
        {"\"2025-06-18\"", "2025-06-18"}, {"\"2025-11-25\"", "2025-11-25"},
        {"\"1999-01-01\"", "2025-11-25"}, {"7", "2025-11-25"}, {"null", "2025-11-25"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[200], answer[400];
        snprintf(line, sizeof line,
            "{\"id\":%zu,\"method\":\"initialize\",\"params\":{\"protocolVersion\":%s}}", i,
            cases[i].asked);
        snprintf(answer, sizeof answer,
            "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"result\":{\"protocolVersion\":\"%s\",\"capabilities\":{"
            "\"tools\":{}},\"serverInfo\":{\"name\":\"utter\",\"version\":\"1.2\"}," INSTRUCTIONS "}}",
            i, cases[i].chosen);
        expect_answer(line, answer);
    }
    expect_answer("{\"id\":1,\"method\":\"ping\"}", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    expect_answer("{\"id\":1,\"method\":\"server/discover\"}", ERROR("1", "-32601", "no such method"));
}

static void a_request_may_name_its_version(void **state)
{
    (void)state;
    expect_answer("{\"id\":1,\"method\":\"server/discover\",\"params\":{" STATELESS "}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2026-07-28\"],"
        "\"capabilities\":{\"tools\":{}}," INSTRUCTIONS ",\"ttlMs\":0,\"cacheScope\":\"private\"," MARKS
        "}}");
    expect_answer("{\"id\":1,\"method\":\"ping\",\"params\":{" STATELESS "}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{" MARKS "}}");
    expect_answer("{\"id\":1,\"method\":\"initialize\",\"params\":{" STATELESS "}}",
        ERROR("1", "-32601", "no such method"));
    for (int i = 0; i < 2; i++) {
        char line[200], answer[300];
        snprintf(line, sizeof line,
            "{\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":{"
            "\"io.modelcontextprotocol/protocolVersion\":%s}}}",
            i ? "\"2025-11-25\"" : "7");
        snprintf(answer, sizeof answer,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"the version of the "
            "protocol is not served\",\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"%s\"}}}",
            i ? "2025-11-25" : "");
        expect_answer(line, answer);
    }
}

static void tools_are_listed(void **state)
{
    struct mcp_request r;
    (void)state;
    for (int stateless = 0; stateless < 2; stateless++) {
        char line[200];
        snprintf(line, sizeof line, "{\"id\":1,\"method\":\"tools/list\",\"params\":{%s}}",
            stateless ? STATELESS : "");
        assert_int_equal(take(&r, line), MCP_ANSWER);
        assert_int_equal(r.stateless, stateless);
        json_t *result = json_object_get(r.answer, "result"), *list = json_object_get(result, "tools");
        assert_int_equal(json_array_size(list), 2);
        static const char *const names[] = {"speak", "list_voices"};
        for (size_t i = 0; i < 2; i++) {
            json_t *tool = json_array_get(list, i);
            assert_string_equal(json_string_value(json_object_get(tool, "name")), names[i]);
            assert_true(json_is_object(json_object_get(tool, "inputSchema")));
        }
        assert_int_equal(json_object_size(result), stateless ? 5 : 1);
        assert_int_equal(json_is_integer(json_object_get(result, "ttlMs")), stateless);
        mcp_fini(&r);
    }
}

static void calls_are_to_be_done(void **state)
{
    static const char blank[] = "\"text\\\" must be a text that is not blank",
                      strings[] = "the arguments of speak must be strings, but for play";
    static const struct {
        const char *arguments;
        bool good;
    } cases[] = {{"{}", true}, {"{\"text\":null}", true}, {"{\"text\":\" \\t\\r\\n\"}", true},
        {"{\"text\":\"\\n \\t \"}", true}, {"{\"text\":1}", false},
        {"{\"text\":\"a\",\"voice\":1}", false}, {"{\"text\":\"a\",\"language\":1}", false},
        {"{\"text\":\"a\",\"instructions\":[]}", false}, {"{\"text\":\"a\",\"file\":true}", false}};
    struct mcp_request r;
    (void)state;
    assert_int_equal(take(&r, "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"speak\","
                              "\"arguments\":{\"text\":\"t\",\"voice\":\"v\",\"language\":\"l\","
                              "\"instructions\":\"i\",\"file\":\"f\",\"play\":true}}}"),
        MCP_SPEAK);
    assert_string_equal(r.text, "t");
    assert_string_equal(r.voice, "v");
    assert_string_equal(r.language, "l");
    assert_string_equal(r.instructions, "i");
    assert_string_equal(r.file, "f");
    assert_true(r.play && !r.answer && json_integer_value(r.id) == 1);
    mcp_fini(&r);
    assert_int_equal(take(&r, "{\"id\":\"x\",\"method\":\"tools/call\",\"params\":{\"name\":\"speak\","
                              "\"arguments\":{\"text\":\" t\",\"voice\":null,\"play\":1}}}"),
        MCP_SPEAK);
    assert_string_equal(r.text, " t");
    assert_true(!r.voice && !r.language && !r.instructions && !r.file && !r.play);
    mcp_fini(&r);
    assert_int_equal(
        take(&r, "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"list_voices\"}}"),
        MCP_VOICES);
    assert_null(r.answer);
    mcp_fini(&r);
    static const char *const names[] = {"\"speaks\"", "7", "null"};
    for (size_t i = 0; i < 3; i++) {
        char line[200];
        snprintf(line, sizeof line, "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":%s}}",
            names[i]);
        expect_answer(line, ERROR("1", "-32602", "no such tool (speak and list_voices are)"));
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[200], answer[300];
        snprintf(line, sizeof line,
            "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"speak\",\"arguments\":%s}}",
            cases[i].arguments);
        snprintf(answer, sizeof answer,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"%s%"
            "s\"}],"
            "\"isError\":true}}",
            cases[i].good ? "\\" : "", cases[i].good ? blank : strings);
        expect_answer(line, answer);
    }
}

static void results_are_told(void **state)
{
    struct mcp_request r;
    (void)state;
    assert_int_equal(
        take(&r,
            "{\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"list_voices\"," STATELESS "}}"),
        MCP_VOICES);
    expect_json(mcp_result(&r, "1.2", mcp_texts("a"), false),
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],"
        "\"isError\":false," MARKS "}}");
    mcp_fini(&r);
    expect_json(mcp_text("\xFF"), "{\"type\":\"text\",\"text\":\"(no text)\"}");
}

static void a_request_is_taken_back_by_its_own_id(void **state)
{
    static const struct {
        const char *line;
        bool cancels;
    } cases[] = {{"{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7}}", true},
        {"{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":8}}", false},
        {"{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"7\"}}", false},
        {"{\"method\":\"notifications/cancelled\"}", false},
        {"{\"method\":\"notifications/progress\",\"params\":{\"requestId\":7}}", false},
        {"{\"params\":{\"requestId\":7}}", false}, {"{\"method", false}};
    json_t *id = json_integer(7);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(mcp_cancels(cases[i].line, strlen(cases[i].line), id), cases[i].cancels);
    }
    json_decref(id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_request_is_refused),
        cmocka_unit_test(a_handshake_agrees_on_a_version),
        cmocka_unit_test(a_request_may_name_its_version),
        cmocka_unit_test(tools_are_listed),
        cmocka_unit_test(calls_are_to_be_done),
        cmocka_unit_test(results_are_told),
        cmocka_unit_test(a_request_is_taken_back_by_its_own_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
