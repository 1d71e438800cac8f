/* SPDX-License-Identifier: Apache-2.0
 * XML token by token, each with its place in the source, which parsers of documents do not keep for every byte. No
 * entities but the five of XML and characters by number, no document types, nothing fetched. Allocates nothing. */
#ifndef SCRIPT_XML_H
#define SCRIPT_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum xml_kind { XML_TEXT, XML_CHARACTER, XML_OPEN, XML_CLOSE, XML_END };

struct xml_token {
    enum xml_kind kind;
    size_t at, bytes; /* of the source: all of it */
    /* XML_TEXT: words as they stand, without references. XML_OPEN, XML_CLOSE: the name. */
    const char *text;
    size_t n;
    uint32_t code;          /* XML_CHARACTER: what a reference stands for */
    bool empty;             /* XML_OPEN: <name/>, no end follows */
    const char *attributes; /* XML_OPEN: what stands behind the name; checked */
    size_t attributes_n;
};

struct xml {
    const char *text;
    size_t n, at;
    size_t cdata_end; /* inside a CDATA section: where it ends; else 0 */
};

/* The next token; a malformed one is refused with its line and column. Comments and instructions are passed over.
 * Whether each end has its beginning is the caller's matter. */
utter_status xml_next(struct xml *xml, struct xml_token *token, utter_error *error);
/* "markup, line 3, column 5: " and the rest. */
utter_status xml_refuse(const struct xml *xml, size_t at, utter_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

struct xml_attribute {
    const char *name, *value; /* the value as it stands, with its references */
    size_t name_n, value_n;
};
/* The next attribute of a token, from *at on, 0 to begin with. False: there is none. */
bool xml_attribute(const struct xml_token *token, size_t *at, struct xml_attribute *attribute);
/* A value with its references decoded, in out[size]; longer ones are cut at a character. Returns its length. */
size_t xml_value(const struct xml_attribute *attribute, char *out, size_t size);

#endif
