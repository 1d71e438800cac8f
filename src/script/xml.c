/* SPDX-License-Identifier: Apache-2.0
 * The tokens of XML. */
#include "script/xml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/chars.h"

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_name(char c, bool first)
{
    unsigned char b = (unsigned char)c;
    return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '_' || b == ':' || b >= 0x80 ||
           (!first && ((b >= '0' && b <= '9') || b == '-' || b == '.'));
}

static size_t name_length(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && is_name(text[at], at == 0)) {
        at++;
    }
    return at;
}

static size_t white_length(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && is_white(text[at])) {
        at++;
    }
    return at;
}

utter_status xml_refuse(const struct xml *xml, size_t at, utter_error *error, const char *format, ...)
{
    char why[200];
    size_t line = 1, column = 1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < at; i++) {
        bool newline = xml->text[i] == '\n';
        line += newline;
        column = newline ? 1 : column + (((unsigned char)xml->text[i] & 0xc0) != 0x80);
    }
    return error_set(error, UTTER_E_ARGUMENT, "markup, line %zu, column %zu: %s", line, column, why);
}

static bool begins(const char *text, size_t n, const char *with)
{
    size_t length = strlen(with);
    return n >= length && memcmp(text, with, length) == 0;
}

/* Where `what` ends that is to be found in text[from..n), 0: nowhere. */
static size_t behind(const char *text, size_t from, size_t n, const char *what)
{
    size_t length = strlen(what);
    for (size_t at = from; at + length <= n; at++) {
        if (memcmp(text + at, what, length) == 0) {
            return at + length;
        }
    }
    return 0;
}

/* &amp; or &#8212; at text[0..n): its length, and what it stands for; 0: it is none. */
static size_t reference(const char *text, size_t n, uint32_t *code)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (begins(text, n, names[i].name)) {
            *code = (uint32_t)names[i].c;
            return strlen(names[i].name);
        }
    }
    if (!begins(text, n, "&#")) {
        return 0;
    }
    bool hex = n > 2 && text[2] == 'x';
    size_t at = hex ? 3 : 2, first = at;
    uint32_t value = 0;
    for (; at < n && at - first < 8; at++) {
        char c = text[at], small = (char)(c | 0x20);
        int digit = c >= '0' && c <= '9'                  ? c - '0'
                    : hex && small >= 'a' && small <= 'f' ? small - 'a' + 10
                                                          : -1;
        if (digit < 0) {
            break;
        }
        value = value * (hex ? 16 : 10) + (uint32_t)digit;
    }
    bool character = (value >= 0x20 || value == '\t' || value == '\n' || value == '\r') &&
                     value <= 0x10ffff && !(value >= 0xd800 && value < 0xe000);
    *code = value;
    return at < n && text[at] == ';' && character ? at + 1 : 0;
}

/* Checks the attributes of an element that begins at xml->at; `at` is behind its name. Ends at > or />. */
static utter_status check_attributes(struct xml *xml, size_t at, size_t *end, utter_error *error)
{
    const char *text = xml->text;
    size_t n = xml->n;
    uint32_t code;
    while (true) {
        size_t white = white_length(text + at, n - at);
        at += white;
        if (at == n) {
            return xml_refuse(xml, xml->at, error,
                "the text ends inside of this element (a '<' that "
                "is none is written &lt;)");
        }
        if (text[at] == '>' || (text[at] == '/' && at + 1 < n && text[at + 1] == '>')) {
            *end = at;
            return UTTER_OK;
        }
        size_t name = name_length(text + at, n - at);
        size_t equals = at + name + white_length(text + at + name, n - at - name);
        size_t value = equals < n ? equals + 1 + white_length(text + equals + 1, n - equals - 1) : n;
        if (white == 0 || name == 0 || value >= n || text[equals] != '=' ||
            !(text[value] == '"' || text[value] == '\'')) {
            return xml_refuse(xml, at, error, "an attribute is name=\"value\", with a blank before it");
        }
        const char *close = memchr(text + value + 1, text[value], n - value - 1);
        if (!close) {
            return xml_refuse(xml, value, error, "the value has no closing quote");
        }
        for (size_t i = value + 1; text + i < close; i++) {
            if (text[i] == '<' || (text[i] == '&' && !reference(text + i, n - i, &code))) {
                return xml_refuse(xml, i, error, "'%c' in a value is written %s", text[i],
                    text[i] == '<' ? "&lt;" : "&amp;");
            }
        }
        at = (size_t)(close - text) + 1;
    }
}

static utter_status take_element(struct xml *xml, struct xml_token *t, utter_error *error)
{
    const char *text = xml->text;
    bool close = xml->at + 1 < xml->n && text[xml->at + 1] == '/';
    size_t name = xml->at + 1 + close, n = name_length(text + name, xml->n - name), end = name + n;
    if (n == 0) {
        return xml_refuse(
            xml, xml->at, error, "'<' begins no element (as a character it is written &lt;)");
    }
    *t = (struct xml_token){
        .kind = close ? XML_CLOSE : XML_OPEN, .at = xml->at, .text = text + name, .n = n};
    if (close) {
        end += white_length(text + end, xml->n - end);
        if (end == xml->n || text[end] != '>') {
            return xml_refuse(xml, xml->at, error, "the end of an element is </name>");
        }
    } else {
        utter_status status = check_attributes(xml, end, &end, error);
        if (status) {
            return status;
        }
        t->attributes = text + name + n;
        t->attributes_n = end - name - n;
        t->empty = text[end] == '/';
    }
    xml->at = end + 1 + t->empty;
    t->bytes = xml->at - t->at;
    return UTTER_OK;
}

/* Passes over comments, instructions and the beginning of a CDATA section; where there is none, *passed is made
 * false. */
static utter_status pass(struct xml *xml, bool *passed, utter_error *error)
{
    const char *text = xml->text + xml->at;
    size_t n = xml->n - xml->at, end = 0;
    const char *what = begins(text, n, "<!--") ? "-->" : begins(text, n, "<?") ? "?>" : NULL;
    if (what) {
        end = behind(text, what[0] == '-' ? 4 : 2, n, what);
    } else if (begins(text, n, "<![CDATA[")) {
        end = 9;
        size_t close = behind(text, 9, n, "]]>");
        xml->cdata_end = close ? xml->at + close - 3 : 0;
        end = close ? end : 0;
        what = "]]>";
    } else if (begins(text, n, "<!")) {
        return xml_refuse(xml, xml->at, error, "document types and entities are not taken");
    } else {
        *passed = false;
        return UTTER_OK;
    }
    if (end == 0) {
        return xml_refuse(xml, xml->at, error, "this has no end (%s)", what);
    }
    xml->at += end;
    return UTTER_OK;
}

static bool take_cdata(struct xml *xml, struct xml_token *t)
{
    size_t n = xml->cdata_end - xml->at, at = xml->at;
    xml->at = xml->cdata_end + 3;
    xml->cdata_end = 0;
    *t = (struct xml_token){.kind = XML_TEXT, .at = at, .bytes = n, .text = xml->text + at, .n = n};
    return n > 0;
}

utter_status xml_next(struct xml *xml, struct xml_token *t, utter_error *error)
{
    bool passed = true;
    while (passed) {
        if (xml->cdata_end && take_cdata(xml, t)) {
            return UTTER_OK;
        }
        utter_status status = pass(xml, &passed, error);
        if (status) {
            return status;
        }
    }
    const char *text = xml->text + xml->at;
    size_t n = xml->n - xml->at, at = 0;
    if (n == 0) {
        *t = (struct xml_token){.kind = XML_END, .at = xml->n};
        return UTTER_OK;
    }
    if (*text == '<') {
        return take_element(xml, t, error);
    }
    if (*text == '&') {
        uint32_t code;
        size_t bytes = reference(text, n, &code);
        if (bytes == 0) {
            return xml_refuse(xml, xml->at, error,
                "'&' begins none of &amp; &lt; &gt; &quot; &apos; &#NUMBER; (as a character it is "
                "written &amp;)");
        }
        *t = (struct xml_token){.kind = XML_CHARACTER, .at = xml->at, .bytes = bytes, .code = code};
        xml->at += bytes;
        return UTTER_OK;
    }
    while (at < n && text[at] != '<' && text[at] != '&') {
        at++;
    }
    *t = (struct xml_token){.kind = XML_TEXT, .at = xml->at, .bytes = at, .text = text, .n = at};
    xml->at += at;
    return UTTER_OK;
}

bool xml_attribute(const struct xml_token *t, size_t *at, struct xml_attribute *a)
{
    const char *text = t->attributes;
    size_t n = t->attributes_n;
    *at += white_length(text + *at, n - *at);
    if (*at == n) {
        return false;
    }
    a->name = text + *at;
    a->name_n = name_length(a->name, n - *at);
    const char *equals = memchr(a->name, '=', n - *at);
    const char *quote = equals + 1 + white_length(equals + 1, n - (size_t)(equals + 1 - text));
    const char *close = memchr(quote + 1, *quote, n - (size_t)(quote + 1 - text));
    a->value = quote + 1;
    a->value_n = (size_t)(close - a->value);
    *at = (size_t)(close + 1 - text);
    return true;
}

size_t xml_value(const struct xml_attribute *a, char *out, size_t size)
{
    size_t to = 0;
    for (size_t at = 0, length; at < a->value_n; at += length) {
        uint32_t code;
        char character[4];
        size_t put = 1;
        length = a->value[at] == '&' ? reference(a->value + at, a->value_n - at, &code) : 0;
        if (length > 0) {
            put = utf8_put(code, character);
        } else {
            length = 1;
            character[0] = a->value[at];
        }
        if (to + put >= size) {
            break;
        }
        memcpy(out + to, character, put);
        to += put;
    }
    bool bad;
    to = utf8_valid(out, to, &bad); /* without a character that was cut */
    out[to] = 0;
    return to;
}
