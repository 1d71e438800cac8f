/* SPDX-License-Identifier: Apache-2.0
 * Lines: what a manifest may say, the key, the line as it waits. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/line.h"

static const struct line_defaults defaults = {"ann", "english", "calm", "ogg", "none", 7};

/* ---- What a line says ---- */

static utter_status parse(struct line *line, const char *text, utter_error *error)
{
    return line_parse(line, &defaults, text, strlen(text), error);
}

static void every_field_is_taken(void **state)
{
    (void)state;
    struct line line;
    utter_error error;
    assert_int_equal(
        parse(&line,
            "{\"id\":\"a/b\",\"text\":\"Gr\\u00fc\\u00dfe.\",\"voice\":\"v\",\"language\":\"l\","
            "\"instruct\":\"i\",\"seed\":9223372036854775807,\"format\":\"opus\",\"markup\":\"ssml\","
            "\"words\":true}",
            &error),
        UTTER_OK);
    assert_string_equal(line.id, "a/b");
    assert_string_equal(line.text, "Gr\xC3\xBC\xC3\x9F"
                                   "e.");
    assert_int_equal(line.text_bytes, 8);
    assert_null(line.file);
    assert_string_equal(line.voice, "v");
    assert_string_equal(line.language, "l");
    assert_string_equal(line.instruct, "i");
    assert_int_equal(line.seed, INT64_MAX);
    assert_string_equal(line.format, "opus");
    assert_string_equal(line.markup, "ssml");
    assert_int_equal(line_markup(&line), UTTER_MARKUP_SSML);
    assert_true(line.words);
    line_free(&line);
    assert_null(line.object);
}

static void what_a_line_leaves_out_is_the_default(void **state)
{
    (void)state;
    struct line line;
    assert_int_equal(parse(&line, "{\"id\":\"a\",\"file\":\"f\",\"seed\":null}", NULL), UTTER_OK);
    assert_null(line.text);
    assert_int_equal(line.text_bytes, 0);
    assert_string_equal(line.file, "f");
    assert_string_equal(line.voice, "ann");
    assert_string_equal(line.language, "english");
    assert_string_equal(line.instruct, "calm");
    assert_string_equal(line.format, "ogg");
    assert_int_equal(line.seed, 7);
    assert_int_equal(line_markup(&line), UTTER_MARKUP_NONE);
    assert_false(line.words);
    line_free(&line);
    static const struct line_defaults bare = {0};
    assert_int_equal(line_parse(&line, &bare, "{\"id\":\"a\",\"text\":\"b\"}", 21, NULL), UTTER_OK);
    assert_true(!line.voice && !line.language && !line.instruct && !line.format && !line.markup);
    assert_int_equal(line_markup(&line), UTTER_MARKUP_NONE);
    assert_int_equal(line.seed, 0);
    line_free(&line);
}

static void every_word_of_a_choice_is_known(void **state)
{
    (void)state;
    static const char *const formats[] = {"wav", "flac", "ogg", "opus", "mp3", "raw"};
    static const struct {
        const char *word;
        int markup;
    } markups[] = {{"none", UTTER_MARKUP_NONE}, {"auto", UTTER_MARKUP_AUTO},
        {"tags", UTTER_MARKUP_TAGS}, {"ssml", UTTER_MARKUP_SSML}};
    struct line line;
    char text[128];
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        snprintf(text, sizeof text, "{\"id\":\"a\",\"text\":\"b\",\"format\":\"%s\"}", formats[i]);
        assert_int_equal(parse(&line, text, NULL), UTTER_OK);
        assert_string_equal(line.format, formats[i]);
        line_free(&line);
    }
    for (size_t i = 0; i < sizeof markups / sizeof *markups; i++) {
        snprintf(text, sizeof text, "{\"id\":\"a\",\"text\":\"b\",\"markup\":\"%s\"}", markups[i].word);
        assert_int_equal(parse(&line, text, NULL), UTTER_OK);
        assert_int_equal(line_markup(&line), markups[i].markup);
        line_free(&line);
    }
}

static void assert_refused(const char *text, const char *why)
{
    struct line line;
    utter_error error = {0};
    assert_int_equal(parse(&line, text, &error), UTTER_E_ARGUMENT);
    if (strcmp(error.text, why) != 0) {
        fail_msg("%s: \"%s\", not \"%s\"", text, error.text, why);
    }
    line_free(&line);
}

static void what_is_wrong_with_a_line_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"[]", "the line is no object (it should be like {\"id\": \"hello\", \"text\": \"Hello "
               "there.\"})"},
        {"{\"id\":\"a\",\"tex\":\"b\"}", "there is no field \"tex\" (did you mean \"text\"?)"},
        {"{\"id\":\"a\",\"xyzzyx\":\"b\"}",
            "there is no field \"xyzzyx\" (utter job --help lists them)"},
        {"{\"id\":\"a\"}", "it has none of \"text\" and \"file\" (give one of them)"},
        {"{\"id\":\"a\",\"text\":\"b\",\"file\":\"c\"}",
            "it has both of \"text\" and \"file\" (give one of them)"},
        {"{\"id\":\"a\",\"text\":\"b\",\"format\":\"aac\"}",
            "\"format\": \"aac\" is none of wav, flac, ogg, opus, mp3, raw"},
        {"{\"id\":\"a\",\"text\":\"b\",\"markup\":\"html\"}",
            "\"markup\": \"html\" is none of none, auto, tags, ssml"},
        {"{\"id\":\"a\",\"text\":\"\"}", "\"text\" is empty: there is nothing to speak"},
        {"{\"id\":\"a\",\"text\":\" \\t\\r\\n\"}", "\"text\" is empty: there is nothing to speak"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_refused(wrong[i].text, wrong[i].why);
    }
    struct line line;
    static const char *const faulty[] = {"", "{\"id\":\"a\",\"text\":\"b\"", "{\"text\":\"b\"}",
        "{\"id\":3,\"text\":\"b\"}", "{\"id\":\"a\",\"text\":\"b\",\"seed\":-1}",
        "{\"id\":\"a\",\"text\":\"b\",\"words\":1}", "{\"id\":\"a\",\"text\":\"b\",\"voice\":1}",
        "{\"id\":\"a\",\"text\":\"b\",\"text\":\"c\"}", "{\"id\":\"a\",\"text\":1}",
        "{\"id\":\"a\",\"file\":1}"};
    for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
        utter_error error = {0};
        assert_true(parse(&line, faulty[i], &error) < 0);
        assert_true(error.text[0]);
        line_free(&line);
    }
}

static void an_id_names_a_file(void **state)
{
    (void)state;
    char text[1200], part[201], id[1100];
    static const char why[] =
        "\"id\" cannot name a file: it has parts of 1 to 200 bytes between slashes, none of "
        "which begins with a dot";
    static const char *const wrong[] = {"", "/a", "a/", "a//b", ".a", "a/.b", "..", "a/../b",
        "a\\u001f", "a\\u007f", "a/b\\nc", "\\u001fa", "\\u007f", "a/\\u0001b"};
    static const char *const good[] = {"a", "a.", "a/b.wav/d", " ", "a b", "-", "\\u00e4\\u0080"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "{\"id\":\"%s\",\"text\":\"b\"}", wrong[i]);
        assert_refused(text, why);
    }
    struct line line;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(text, sizeof text, "{\"id\":\"%s\",\"text\":\"b\"}", good[i]);
        assert_int_equal(parse(&line, text, NULL), UTTER_OK);
        line_free(&line);
    }
    memset(part, 'x', 200);
    part[200] = 0;
    snprintf(text, sizeof text, "{\"id\":\"%s\",\"text\":\"b\"}", part);
    assert_int_equal(parse(&line, text, NULL), UTTER_OK);
    line_free(&line);
    snprintf(text, sizeof text, "{\"id\":\"%sx\",\"text\":\"b\"}", part);
    assert_refused(text, why);
    /* 1,000 bytes in all: four parts of 200, one of 195, one of none but a letter less or more. */
    snprintf(id, sizeof id, "%s/%s/%s/%s/%.196s", part, part, part, part, part);
    assert_int_equal(strlen(id), 1000);
    snprintf(text, sizeof text, "{\"id\":\"%s\",\"text\":\"b\"}", id);
    assert_int_equal(parse(&line, text, NULL), UTTER_OK);
    line_free(&line);
    snprintf(text, sizeof text, "{\"id\":\"%sx\",\"text\":\"b\"}", id);
    assert_refused(text, why);
}

static void a_text_has_a_bound(void **state)
{
    (void)state;
    const size_t head = strlen("{\"id\":\"a\",\"text\":\"");
    char *text = malloc(LINE_TEXT + 64);
    struct line line;
    utter_error error;
    assert_non_null(text);
    for (size_t more = 0; more < 2; more++) {
        size_t n = LINE_TEXT + more;
        memcpy(text, "{\"id\":\"a\",\"text\":\"", head);
        memset(text + head, 'x', n);
        memcpy(text + head + n, "\"}", 3);
        assert_int_equal(parse(&line, text, &error), more ? UTTER_E_ARGUMENT : UTTER_OK);
        line_free(&line);
    }
    assert_string_equal(
        error.text, "\"text\" has 524289 bytes, and a line 524288 at most (make several lines of it)");
    free(text);
}

/* ---- The key, and the line as it waits ---- */

/* What the rules were asked for. */
static struct {
    int languages, voices, called;
    char voice[32];
    utter_status language_status, voice_status, called_status;
} asked;

static utter_status check_language(void *user, const char *name, utter_error *error)
{
    assert_ptr_equal(user, &asked);
    asked.languages++;
    return asked.language_status ? error_set(error, asked.language_status, "no %s", name) : UTTER_OK;
}

static utter_status hash_voice(
    void *user, const char *name, char hash[IDENTITY_SIZE], utter_error *error)
{
    assert_ptr_equal(user, &asked);
    asked.voices++;
    snprintf(asked.voice, sizeof asked.voice, "%s", name);
    identity_of_bytes(hash, name, strlen(name));
    return asked.voice_status ? error_set(error, asked.voice_status, "no voice %s", name) : UTTER_OK;
}

static utter_status hash_called(
    void *user, const struct line *line, char hash[IDENTITY_SIZE], utter_error *error)
{
    assert_ptr_equal(user, &asked);
    asked.called++;
    identity_of_bytes(hash, line->text, line->text_bytes);
    return asked.called_status ? error_set(error, asked.called_status, "not called") : UTTER_OK;
}

static struct line_rules rules_of(const struct line_defaults *some)
{
    memset(&asked, 0, sizeof asked);
    return (struct line_rules){
        *some, "a model", support_folder(), check_language, hash_voice, hash_called, &asked};
}

/* Key and waiting line of a text. */
static void complete(char key[IDENTITY_SIZE], char **wire, const char *text)
{
    const struct line_rules rules = rules_of(&defaults);
    struct line line;
    utter_error error;
    assert_int_equal(parse(&line, text, &error), UTTER_OK);
    assert_int_equal(line_complete(&line, &rules, key, wire, &error), UTTER_OK);
    line_free(&line);
}

static void a_waiting_line_has_all_of_it(void **state)
{
    (void)state;
    char key[IDENTITY_SIZE], wanted[1024], voice[IDENTITY_SIZE], called[IDENTITY_SIZE], *wire;
    struct line line;
    complete(key, &wire,
        "{\"id\":\"a\",\"text\":\"Hello.\",\"markup\":\"tags\",\"words\":true,\"voice\":\"\",\"seed\":"
        "3}");
    identity_of_bytes(voice, "", 0);
    identity_of_bytes(called, "Hello.", 6);
    assert_int_equal(asked.languages, 1);
    assert_int_equal(asked.voices, 1);
    assert_int_equal(asked.called, 1);
    snprintf(wanted, sizeof wanted,
        "{\"key\":\"%s\",\"id\":\"a\",\"model\":\"a "
        "model\",\"voice_hash\":\"%s\",\"called_hash\":\"%s\","
        "\"voice\":\"\",\"language\":\"english\",\"instruct\":\"calm\",\"seed\":3,\"format\":\"ogg\","
        "\"markup\":\"tags\",\"words\":true,\"text\":\"Hello.\"}",
        key, voice, called);
    assert_string_equal(wire, wanted);
    /* Whoever changes what the key is made of makes all results of before anew. */
    assert_string_equal(key, "660cc6e38b46e2e36ad643d06d981c068d0acff312ad4d7c2a2dc84eff14b114");
    assert_int_equal(line_take(&line, wire, strlen(wire), NULL), UTTER_OK);
    assert_string_equal(line.id, "a");
    assert_string_equal(line.text, "Hello.");
    assert_int_equal(line.text_bytes, 6);
    assert_string_equal(line.model, "a model");
    assert_string_equal(line.voice_hash, voice);
    assert_string_equal(line.called_hash, called);
    assert_string_equal(line.voice, "");
    assert_string_equal(line.language, "english");
    assert_string_equal(line.instruct, "calm");
    assert_string_equal(line.format, "ogg");
    assert_int_equal(line.seed, 3);
    assert_int_equal(line_markup(&line), UTTER_MARKUP_TAGS);
    assert_true(line.words);
    line_free(&line);
    memory_plain_free(wire);
}

/* What a line does not say stays out of it, and a plain text calls for no voice. */
static void a_bare_line_waits_bare(void **state)
{
    (void)state;
    static const struct line_defaults bare = {.format = "wav"};
    const struct line_rules rules = rules_of(&bare);
    char key[IDENTITY_SIZE], wanted[1024], voice[IDENTITY_SIZE], *wire;
    struct line line;
    assert_int_equal(line_parse(&line, &bare, "{\"id\":\"a\",\"text\":\"b\"}", 21, NULL), UTTER_OK);
    assert_int_equal(line_complete(&line, &rules, key, &wire, NULL), UTTER_OK);
    assert_int_equal(asked.languages, 0);
    assert_int_equal(asked.called, 0);
    assert_string_equal(asked.voice, "");
    identity_of_bytes(voice, "", 0);
    snprintf(wanted, sizeof wanted,
        "{\"key\":\"%s\",\"id\":\"a\",\"model\":\"a "
        "model\",\"voice_hash\":\"%s\",\"called_hash\":\"\",\"seed\":0,"
        "\"format\":\"wav\",\"words\":false,\"text\":\"b\"}",
        key, voice);
    assert_string_equal(wire, wanted);
    line_free(&line);
    assert_int_equal(line_take(&line, wire, strlen(wire), NULL), UTTER_OK);
    assert_true(!line.voice && !line.language && !line.instruct && !line.markup && !line.words);
    line_free(&line);
    memory_plain_free(wire);
}

static void the_key_is_all_but_the_id(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"id\":\"a\",\"text\":\"Hello.\"}",
        "{\"id\":\"a\",\"text\":\"Hello!\"}",
        "{\"id\":\"a\",\"text\":\"Hello.\",\"voice\":\"bob\"}",
        "{\"id\":\"a\",\"text\":\"Hello.\",\"language\":\"german\"}",
        "{\"id\":\"a\",\"text\":\"Hello.\",\"instruct\":\"loud\"}",
        "{\"id\":\"a\",\"text\":\"Hello.\",\"seed\":8}",
        "{\"id\":\"a\",\"text\":\"Hello.\",\"format\":\"wav\"}",
        "{\"id\":\"a\",\"text\":\"Hello.\",\"markup\":\"auto\"}",
        "{\"id\":\"a\",\"text\":\"Hello.\",\"markup\":\"tags\"}",
        "{\"id\":\"a\",\"text\":\"Hello.\",\"words\":true}",
    };
    enum { N = sizeof texts / sizeof *texts };
    char keys[N][IDENTITY_SIZE], other[IDENTITY_SIZE], *wire;
    for (size_t i = 0; i < N; i++) {
        complete(keys[i], &wire, texts[i]);
        memory_plain_free(wire);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(keys[i], keys[k]);
        }
    }
    complete(other, &wire, "{\"seed\":7,\"id\":\"b\",\"text\":\"Hello.\",\"words\":false}");
    memory_plain_free(wire);
    assert_string_equal(other, keys[0]);
}

static void a_line_that_lacks_something_is_not_completed(void **state)
{
    (void)state;
    utter_status *const places[] = {&asked.language_status, &asked.voice_status, &asked.called_status};
    static const char *const texts[] = {"no english", "no voice ann", "not called"};
    for (size_t i = 0; i < 3; i++) {
        const struct line_rules rules = rules_of(&defaults);
        struct line line;
        char key[IDENTITY_SIZE], *wire = NULL;
        utter_error error;
        *places[i] = UTTER_E_MODEL;
        assert_int_equal(
            parse(&line, "{\"id\":\"a\",\"text\":\"b\",\"markup\":\"tags\"}", &error), UTTER_OK);
        assert_int_equal(line_complete(&line, &rules, key, &wire, &error), UTTER_E_MODEL);
        assert_string_equal(error.text, texts[i]);
        assert_null(wire);
        assert_int_equal(asked.languages, 1);
        assert_int_equal(asked.voices, i > 0);
        assert_int_equal(asked.called, i > 1);
        line_free(&line);
    }
}

static void a_waiting_line_is_not_larger_than_a_message(void **state)
{
    (void)state;
    static const struct line_defaults bare = {.format = "wav"};
    struct line_rules rules = rules_of(&bare);
    struct line line;
    char key[IDENTITY_SIZE], *wire, *long_text = malloc(LINE_WIRE + 1),
                                    *instruct = malloc(LINE_WIRE + 1);
    utter_error error;
    assert_true(long_text && instruct);
    /* An instruction fills what a short text leaves; of it there is no bound but that of the whole. */
    memset(instruct, 'x', LINE_WIRE);
    instruct[LINE_WIRE] = 0;
    assert_int_equal(line_parse(&line, &bare, "{\"id\":\"a\",\"text\":\"b\"}", 21, NULL), UTTER_OK);
    line.instruct = instruct;
    instruct[10] = 0;
    assert_int_equal(line_complete(&line, &rules, key, &wire, NULL), UTTER_OK);
    const size_t room = LINE_WIRE - strlen(wire) + 10;
    memory_plain_free(wire);
    instruct[10] = 'x';
    instruct[room] = 0;
    assert_int_equal(line_complete(&line, &rules, key, &wire, NULL), UTTER_OK);
    assert_int_equal(strlen(wire), LINE_WIRE);
    memory_plain_free(wire);
    instruct[room] = 'x';
    instruct[room + 1] = 0;
    assert_int_equal(line_complete(&line, &rules, key, &wire, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text,
        "text and fields have 1047553 bytes as JSON, and a line 1047552 at most (make "
        "several lines of it)");
    memory_plain_free(wire);
    line_free(&line);
    free(long_text);
    free(instruct);
}

/* It waits whole, or not at all. */
static void a_line_without_memory_does_not_wait(void **state)
{
    (void)state;
    static const char text[] = "{\"id\":\"a\",\"text\":\"b\",\"markup\":\"tags\",\"words\":true}";
    const struct line_rules rules = rules_of(&defaults);
    char key[IDENTITY_SIZE], *whole;
    complete(key, &whole, text);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct line line;
        char *wire = NULL;
        utter_error error;
        utter_status status = parse(&line, text, &error);
        status = status ? status : line_complete(&line, &rules, key, &wire, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_true(status || strcmp(wire, whole) == 0);
        memory_plain_free(wire);
        line_free(&line);
    }
    memory_plain_free(whole);
}

static void a_text_may_stand_in_a_file(void **state)
{
    (void)state;
    const struct line_rules rules = rules_of(&defaults);
    struct line line;
    char key[IDENTITY_SIZE], same[IDENTITY_SIZE], path[PATH_MAX], text[PATH_MAX + 64], *wire;
    utter_error error;
    support_write_file(support_path("text"), "Hello.\n", 7);
    assert_int_equal(parse(&line, "{\"id\":\"a\",\"file\":\"text\"}", NULL), UTTER_OK);
    assert_int_equal(line_path(&line, "/some/folder", path, NULL), UTTER_OK);
    assert_string_equal(path, "/some/folder/text");
    assert_int_equal(line_complete(&line, &rules, key, &wire, &error), UTTER_OK);
    assert_int_equal(line.text_bytes, 7);
    assert_non_null(strstr(wire, ",\"text\":\"Hello.\\n\"}"));
    memory_plain_free(wire);
    line_free(&line);
    complete(same, &wire, "{\"id\":\"b\",\"text\":\"Hello.\\n\"}");
    memory_plain_free(wire);
    assert_string_equal(same, key);
    snprintf(text, sizeof text, "{\"id\":\"a\",\"file\":\"%s\"}", support_path("text"));
    assert_int_equal(parse(&line, text, NULL), UTTER_OK);
    assert_int_equal(line_path(&line, "/some/folder", path, NULL), UTTER_OK);
    assert_string_equal(path, support_path("text"));
    line_free(&line);
    /* Its name, in full, must fit. */
    char *name = malloc(PATH_MAX + 1);
    assert_non_null(name);
    memset(name, '/', PATH_MAX);
    name[PATH_MAX] = 0;
    line.file = name;
    assert_int_equal(line_path(&line, "/some/folder", path, &error), UTTER_E_FILE);
    assert_string_equal(error.text, "\"file\": the name is too long");
    name[PATH_MAX - 1] = 0;
    assert_int_equal(line_path(&line, "/some/folder", path, NULL), UTTER_OK);
    free(name);
}

static void what_is_no_text_is_no_line(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        utter_status status;
        const char *why;
    } wrong[] = {{"a\0b", 3, UTTER_E_FILE, ": is no text in UTF-8"},
        {"\xff", 1, UTTER_E_FILE, ": is no text in UTF-8"},
        {" \n", 2, UTTER_E_ARGUMENT, " is empty: there is nothing to speak"},
        {"", 0, UTTER_E_ARGUMENT, " is empty: there is nothing to speak"}};
    char wanted[PATH_MAX];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct line_rules rules = rules_of(&defaults);
        struct line line;
        char key[IDENTITY_SIZE], *wire = NULL;
        utter_error error;
        support_write_file(support_path("wrong"), wrong[i].bytes, wrong[i].n);
        assert_int_equal(parse(&line, "{\"id\":\"a\",\"file\":\"wrong\"}", NULL), UTTER_OK);
        assert_int_equal(line_complete(&line, &rules, key, &wire, &error), wrong[i].status);
        snprintf(wanted, sizeof wanted, "%s%s", support_path("wrong"), wrong[i].why);
        assert_string_equal(error.text, wanted);
        assert_int_equal(asked.voices, 0);
        line_free(&line);
    }
}

static void a_line_of_a_queue_is_checked_too(void **state)
{
    (void)state;
    static const char whole[] =
        "{\"id\":\"a\",\"model\":\"m\",\"voice_hash\":\"v\",\"called_hash\":\"\","
        "\"format\":\"wav\",\"text\":\"b\"}";
    static const char *const fields[] = {"\"id\":\"a\",", "\"model\":\"m\",", "\"voice_hash\":\"v\",",
        "\"called_hash\":\"\",", "\"format\":\"wav\",", ",\"text\":\"b\""};
    struct line line;
    utter_error error;
    assert_int_equal(line_take(&line, whole, sizeof whole - 1, NULL), UTTER_OK);
    line_free(&line);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char text[256];
        const char *at = strstr(whole, fields[i]);
        snprintf(text, sizeof text, "%.*s%s", (int)(at - whole), whole, at + strlen(fields[i]));
        assert_int_equal(line_take(&line, text, strlen(text), &error), UTTER_E_FILE);
        if (i >= 4) {
            assert_string_equal(error.text, "a line of the queue is damaged (submit again)");
        }
        line_free(&line);
    }
    assert_int_equal(line_take(&line, whole, sizeof whole - 2, &error), UTTER_E_FILE);
    line_free(&line);
    static const char other[] =
        "{\"id\":\"a\",\"model\":\"m\",\"voice_hash\":\"v\",\"called_hash\":\"\","
        "\"format\":\"aac\",\"text\":\"b\"}";
    assert_int_equal(line_take(&line, other, sizeof other - 1, &error), UTTER_E_ARGUMENT);
    line_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_taken),
        cmocka_unit_test(what_a_line_leaves_out_is_the_default),
        cmocka_unit_test(every_word_of_a_choice_is_known),
        cmocka_unit_test(what_is_wrong_with_a_line_is_told),
        cmocka_unit_test(an_id_names_a_file),
        cmocka_unit_test(a_text_has_a_bound),
        cmocka_unit_test(a_waiting_line_has_all_of_it),
        cmocka_unit_test(a_bare_line_waits_bare),
        cmocka_unit_test(the_key_is_all_but_the_id),
        cmocka_unit_test(a_line_that_lacks_something_is_not_completed),
        cmocka_unit_test(a_waiting_line_is_not_larger_than_a_message),
        cmocka_unit_test(a_line_without_memory_does_not_wait),
        cmocka_unit_test(a_text_may_stand_in_a_file),
        cmocka_unit_test(what_is_no_text_is_no_line),
        cmocka_unit_test(a_line_of_a_queue_is_checked_too),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
