/* SPDX-License-Identifier: Apache-2.0
 * XML token by token: what each is, where it stands, and its attributes. */
#include "script/xml.h"

#include <stdio.h>
#include <string.h>

#include "tests/support.h"

/* The tokens of a text, each with its place and its bytes in the source; values of attributes are decoded. */
static const char *tokens_of(const char *text)
{
    static char all[2048];
    static const char *const kinds[] = {"text", "character", "open", "close", "end"};
    struct xml xml = {.text = text, .n = strlen(text)};
    struct xml_token t;
    struct xml_attribute a;
    utter_error error = {0};
    utter_status status;
    size_t n = 0, behind = 0;
    do {
        if ((status = xml_next(&xml, &t, &error))) {
            snprintf(all + n, sizeof all - n, "? %s", error.text);
            return all;
        }
        assert_true(t.at >= behind && t.at + t.bytes <= xml.n);
        behind = t.at + t.bytes;
        n += (size_t)snprintf(all + n, sizeof all - n, "%s %zu+%zu", kinds[t.kind], t.at, t.bytes);
        n += (size_t)snprintf(
            all + n, sizeof all - n, " %.*s%s", (int)t.n, t.n ? t.text : "", t.empty ? "/" : "");
        if (t.kind == XML_CHARACTER) {
            n += (size_t)snprintf(all + n, sizeof all - n, "U+%04X", t.code);
        }
        for (size_t at = 0; t.kind == XML_OPEN && xml_attribute(&t, &at, &a);) {
            char value[64];
            size_t length = xml_value(&a, value, sizeof value);
            assert_int_equal(strlen(value), length);
            n += (size_t)snprintf(all + n, sizeof all - n, " %.*s=[%s]", (int)a.name_n, a.name, value);
        }
        n += (size_t)snprintf(all + n, sizeof all - n, "|");
    } while (t.kind != XML_END);
    return all;
}

static void tokens_know_their_places(void **state)
{
    static const struct {
        const char *text, *tokens;
    } all[] = {{"", "end 0+0 |"}, {"a", "text 0+1 a|end 1+0 |"}, {"<a/>", "open 0+4 a/|end 4+0 |"},
        {"<a></a >", "open 0+3 a|close 3+5 a|end 8+0 |"},
        {"x<a b='c'>y</a>z",
            "text 0+1 x|open 1+9 a b=[c]|text 10+1 y|close 11+4 a|text 15+1 z|end 16+0 |"},
        {"<a b=\"c\" d='e'/>", "open 0+16 a/ b=[c] d=[e]|end 16+0 |"},
        {"<a\tb\r=\n'c'\r\td =\t\"e\" />", "open 0+22 a/ b=[c] d=[e]|end 22+0 |"},
        {"<a b='>/' c=\"'\" d='\"'>", "open 0+22 a b=[>/] c=['] d=[\"]|end 22+0 |"},
        {"<a b='' c=''>", "open 0+13 a b=[] c=[]|end 13+0 |"},
        {"<a b='&lt;&#65;x&quot;'/>", "open 0+25 a/ b=[<Ax\"]|end 25+0 |"},
        {"&amp;&#x1F600;b", "character 0+5 U+0026|character 5+9 U+1F600|text 14+1 b|end 15+0 |"},
        {"a<!-- <b> -->c<?d e?>f", "text 0+1 a|text 13+1 c|text 21+1 f|end 22+0 |"},
        {"<![CDATA[a]]>b<![CDATA[]]><![CDATA[<c>]]]]>",
            "text 9+1 a|text 13+1 b|text 35+5 <c>]]|end 43+0 |"},
        {"<a.b:c-d_1 e.f='g'/>", "open 0+20 a.b:c-d_1/ e.f=[g]|end 20+0 |"},
        {"<\xc3\x80 \xc3\x80='1'/>", "open 0+12 \xc3\x80/ \xc3\x80=[1]|end 12+0 |"},
        {"</a\r\n>", "close 0+6 a|end 6+0 |"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *tokens = tokens_of(all[i].text);
        if (strcmp(tokens, all[i].tokens) != 0) {
            fail_msg("%s: %s", all[i].text, tokens);
        }
    }
}

static void what_is_malformed_is_refused_where_it_stands(void **state)
{
    static const struct {
        const char *text, *why;
    } all[] = {{"\xc3\xa9\n\xc3\xa9\xe5\xa4\xa9&x;", "line 2, column 3: '&' begins none of"},
        {"a\n<1/>", "line 2, column 1: '<' begins no element"},
        {"<-a/>", "line 1, column 1: '<' begins no element"},
        {"<.a/>", "line 1, column 1: '<' begins no element"},
        {"< a/>", "line 1, column 1: '<' begins no element"},
        {"</>", "line 1, column 1: '<' begins no element"},
        {"<a/", "line 1, column 3: an attribute is"}, {"<a /b>", "line 1, column 4: an attribute is"},
        {"<a", "line 1, column 1: the text ends inside of this element"},
        {"<a ", "line 1, column 1: the text ends inside of this element"},
        {"<a b='c'", "line 1, column 1: the text ends inside of this element"},
        {"<a b='c' d", "line 1, column 10: an attribute is"},
        {"<a b='c'd='e'>", "line 1, column 9: an attribute is"},
        {"<a b c='d'>", "line 1, column 4: an attribute is"},
        {"<a b=c>", "line 1, column 4: an attribute is"},
        {"<a b/'c'>", "line 1, column 4: an attribute is"},
        {"<a ='c'>", "line 1, column 4: an attribute is"},
        {"<a b=", "line 1, column 4: an attribute is"},
        {"<a b='c\">", "line 1, column 6: the value has no closing quote"},
        {"<a b='<'>", "line 1, column 7: '<' in a value is written &lt;"},
        {"<a b='c&d'>", "line 1, column 8: '&' in a value is written &amp;"},
        {"<a b='&lt'>", "line 1, column 7: '&' in a value is written &amp;"},
        {"</a", "line 1, column 1: the end of an element is </name>"},
        {"</a/>", "line 1, column 1: the end of an element is </name>"},
        {"</a b>", "line 1, column 1: the end of an element is </name>"},
        {"<!DOCTYPE a>", "line 1, column 1: document types and entities are not taken"},
        {"<![CDATA[a]>", "line 1, column 1: this has no end (]]>)"},
        {"<!-->", "line 1, column 1: this has no end (-->)"},
        {"<!--->", "line 1, column 1: this has no end (-->)"},
        {"<?>", "line 1, column 1: this has no end (?>)"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *said = strchr(tokens_of(all[i].text), '?');
        char wanted[160];
        snprintf(wanted, sizeof wanted, "? markup, %s", all[i].why);
        if (!said || strncmp(said, wanted, strlen(wanted)) != 0) {
            fail_msg("%s: %s", all[i].text, said ? said : "nothing");
        }
    }
}

/* A value that does not fit ends with its last whole character, and so does one that fits to the byte. */
static void values_are_cut_at_characters(void **state)
{
    static const char text[] = "ab\xc3\xa9&#x5929;&amp;z";
    static const size_t lengths[] = {0, 1, 2, 2, 4, 4, 4, 7, 8, 9, 9};
    static const char whole[] = "ab\xc3\xa9\xe5\xa4\xa9&z";
    const struct xml_attribute a = {.value = text, .value_n = sizeof text - 1};
    (void)state;
    for (size_t size = 1; size <= sizeof lengths / sizeof *lengths; size++) {
        char out[16];
        memset(out, '#', sizeof out);
        assert_int_equal(xml_value(&a, out, size), lengths[size - 1]);
        assert_memory_equal(out, whole, lengths[size - 1]);
        assert_int_equal(out[lengths[size - 1]], 0);
        assert_int_equal(out[size], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_know_their_places),
        cmocka_unit_test(what_is_malformed_is_refused_where_it_stands),
        cmocka_unit_test(values_are_cut_at_characters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
