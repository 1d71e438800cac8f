/* SPDX-License-Identifier: Apache-2.0
 * /openapi.json: what becomes of rows of routes, and of the tables of fields and parameters. */
#include "tests/dialects/expected.h"

#include "base/memory.h"
#include "base/tables/parameters.h"
#include "server/front/openapi.h"
#include "server/speech/field_table.h"
#include "utter.h"

static json_t *refusal_json_of_others(const struct refusal *r)
{
    (void)r;
    return NULL;
}

static json_t *described(void)
{
    static const struct route ours[] = {{"POST", "/v1/a/*/b/*", ROUTE_KEY_AND_MODEL, 1, NULL, false,
                                            NULL, "Makes a.", "Speech", "audio/*"},
        {"GET", "/v1/a/", ROUTE_OPEN, 0, NULL, true, refusal_json_of_others, "Tells a.", NULL, NULL},
        {"PUT", "/", ROUTE_OPEN, 1, NULL, false, NULL, "A form.", "Voice", "text/plain"},
        {.method = NULL}},
                              theirs[] = {
                                  {"DELETE", "/v1/a/", ROUTE_KEY, 0, NULL, false,
                                      refusal_json_of_others, "Ends a.", NULL, "application/json"},
                                  {.method = NULL}};
    static const struct route_table tables[] = {{"one", ours}, {"two", theirs}};
    char *text = openapi_text(tables, 2);
    assert_non_null(text);
    assert_null(strchr(text, '\n')); /* in as few bytes as it takes */
    assert_null(strstr(text, "\": "));
    json_t *json = json_of(text);
    memory_plain_free(text);
    return json;
}

#define NAMED "\"parameters\":[" A_NAME "]"
#define A_NAME "{\"name\":\"name\",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\"}}"
#define KEYS "\"security\":[{\"bearer\":[]},{\"key\":[]}]"
#define ERRORS                                                                                         \
    "\"default\":{\"description\":\"an error\",\"content\":{\"application/json\":{\"schema\":{"        \
    "\"$ref\":\"#/components/schemas/Error\"}}}}"
#define THEIR_ERRORS "\"default\":{\"description\":\"an error of that service's shape\"}"

static void routes_are_described(void **state)
{
    json_t *all = described();
    (void)state;
    expect_json(json_incref(json_object_get(all, "paths")),
        "{\"/v1/a/{name}/b/{name}\":{\"post\":{\"summary\":\"Makes "
        "a.\",\"tags\":[\"one\"],\"responses\":{"
        "\"200\":{\"description\":\"good\",\"content\":{\"audio/*\":{}}}," ERRORS
        "},\"parameters\":[" A_NAME "," A_NAME
        "],\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":{"
        "\"$ref\":\"#/components/schemas/Speech\"}}}}," KEYS
        "}},\"/v1/a/{name}\":{\"get\":{\"summary\":"
        "\"Tells a.\",\"tags\":[\"one\"],\"responses\":{\"101\":{\"description\":\"the WebSocket is "
        "open\"}," THEIR_ERRORS "}," NAMED
        ",\"x-websocket\":true},\"delete\":{\"summary\":\"Ends a.\",\"tags\":["
        "\"two\"],\"responses\":{\"200\":{\"description\":\"good\",\"content\":{\"application/"
        "json\":{}}}," THEIR_ERRORS "}," NAMED "," KEYS
        "}},\"/\":{\"put\":{\"summary\":\"A form.\",\"tags\":[\"one\"],"
        "\"responses\":{\"200\":{\"description\":\"good\",\"content\":{\"text/plain\":{}}}," ERRORS "},"
        "\"requestBody\":{\"required\":true,\"content\":{\"multipart/form-data\":{\"schema\":{"
        "\"$ref\":\"#/components/schemas/Voice\"}}}}}}}");
    json_t *info = json_object_get(all, "info");
    assert_string_equal(json_string_value(json_object_get(all, "openapi")), "3.1.0");
    assert_string_equal(json_string_value(json_object_get(info, "title")), "utter");
    assert_string_equal(json_string_value(json_object_get(info, "version")), utter_version_text());
    expect_json(json_incref(json_object_get(info, "license")), "{\"name\":\"Apache-2.0\"}");
    expect_json(json_incref(json_object_get(json_object_get(all, "components"), "securitySchemes")),
        "{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},\"key\":{\"type\":\"apiKey\",\"in\":\""
        "header\",\"name\":\"X-API-Key\"}}");
    json_decref(all);
}

static const struct {
    const char *name, *json;
} cases[] = {
    {"input", "{\"description\":\"The text; needed.\",\"type\":\"string\",\"maxLength\":100000}"},
    {"voice",
        "{\"description\":\"A preset, an uploaded voice, or one of OpenAI's 13 names; default the "
        "fir"
        "st "
        "one.\",\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"required\":[\"id\"],\"prop"
        "erties\":{\"id\":{\"type\":\"string\"}}}]}"},
    {"speed", "{\"description\":\"Stretched in time; the pitch "
              "stays.\",\"type\":\"number\",\"minimum\":0.2"
              "5,\"maximum\":4.0,\"default\":1}"},
    {"seed", "{\"description\":\"The same seed gives the same "
             "samples.\",\"type\":\"integer\",\"minimum\":"
             "0,\"default\":0}"},
    {"response_format", "{\"description\":\"Default mp3, or what --default-format says; of a "
                        "session pcm. pcm: 16 bit"
                        "s, little endian, "
                        "mono.\",\"type\":\"string\",\"enum\":[\"wav\",\"pcm\",\"mp3\",\"opus\",\"f"
                        "lac\",\"aac\"]}"},
    {"sample_rate", "{\"description\":\"Default the model's, 24000. mp3 and aac have nine "
                    "rates.\",\"type\":\"int"
                    "eger\",\"minimum\":8000,\"maximum\":48000}"},
    {"stream", "{\"description\":\"true: sound from the first frame on; false: one whole file with "
               "its lengt"
               "h.\",\"type\":\"boolean\",\"default\":true}"},
    {"model", "{\"description\":\"The served name, or a name of OpenAI's models that stands for "
              "it; another"
              " one is 404.\",\"type\":\"string\"}"},
    {"top_k", "{\"type\":\"integer\",\"description\":\"choose among the N likeliest, 0 is "
              "off\",\"minimum\""
              ":0,\"maximum\":1000000}"},
    {"top_p", "{\"type\":\"number\",\"description\":\"choose among the likeliest that make up X, 1 "
              "is off\""
              ",\"minimum\":1e-06,\"maximum\":1.0}"},
    {"subtalker_top_k", "{\"type\":\"integer\",\"description\":\"Of the predictor: as that of the "
                        "talker.\",\"minimum"
                        "\":0,\"maximum\":1000000}"},
};

static void fields_are_described(void **state)
{
    json_t *all = described(),
           *schemas = json_object_get(json_object_get(all, "components"), "schemas"),
           *speech = json_object_get(json_object_get(schemas, "Speech"), "properties"),
           *session = json_object_get(json_object_get(schemas, "Session"), "properties");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_json(json_incref(json_object_get(speech, cases[i].name)), cases[i].json);
    }
    size_t n_speech = 0, n_session = 0;
    for (int i = 0; i < N_FIELDS; i++) { /* those that are told of, each where it belongs */
        const struct field_row *row = &field_table[i];
        bool in_speech = row->about && !row->session_only, in_session = row->about && i != FIELD_INPUT;
        assert_int_equal(json_object_get(speech, row->name) != NULL, in_speech);
        assert_int_equal(json_object_get(session, row->name) != NULL, in_session);
        n_speech += in_speech, n_session += in_session;
    }
    assert_int_equal(json_object_size(speech), n_speech + (size_t)parameter_count);
    assert_int_equal(json_object_size(session), n_session + (size_t)parameter_count);
    expect_json(
        json_incref(json_object_get(json_object_get(schemas, "Speech"), "required")), "[\"input\"]");
    assert_null(json_object_get(json_object_get(schemas, "Session"), "required"));
    expect_json(json_incref(json_object_get(schemas, "Batch")),
        "{\"type\":\"object\",\"required\":[\"items\"],\"properties\":{\"items\":{\"type\":\"array\","
        "\"minItems\":1,\"maxItems\":32,\"items\":{\"$ref\":\"#/components/schemas/Speech\"}}}}");
    expect_json(json_incref(json_object_get(schemas, "Voice")),
        "{\"type\":\"object\",\"required\":[\"audio_sample\",\"name\"],\"properties\":{\"audio_sample"
        "\":{\"type\":\"string\",\"format\":\"binary\"},\"name\":{\"type\":\"string\"},\"ref_text\":{"
        "\"type\":\"string\"},\"speaker_description\":{\"type\":\"string\"},\"consent\":{\"type\":\"s"
        "tring\"},\"overwrite\":{\"type\":\"boolean\"}}}");
    expect_json(json_incref(json_object_get(schemas, "Error")),
        "{\"type\":\"object\",\"properties\":{\"error\":{\"type\":\"object\",\"properties\":{\"messag"
        "e\":{\"type\":\"string\"},\"type\":{\"type\":\"string\"},\"param\":{\"type\":[\"string\",\"n"
        "ull\"]},\"code\":{\"type\":[\"string\",\"null\"]}}}}}");
    expect_json(json_incref(json_object_get(schemas, "Theirs")),
        "{\"type\":\"object\",\"description\":\"As that service's interface has it.\"}");
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_are_described),
        cmocka_unit_test(fields_are_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
