/* SPDX-License-Identifier: Apache-2.0
 * The table of languages that the released models speak. */
#include "base/tables/languages.h"

#include <stddef.h>
#include <strings.h>

static const struct {
    const char *code, *name;
} languages[] = {{"zh", "chinese"}, {"en", "english"}, {"ja", "japanese"}, {"ko", "korean"},
    {"de", "german"}, {"fr", "french"}, {"ru", "russian"}, {"pt", "portuguese"}, {"es", "spanish"},
    {"it", "italian"}};

const char *language_name(const char *text)
{
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        if (strncasecmp(text, languages[i].code, 2) == 0 &&
            (!text[2] || text[2] == '-' || text[2] == '_')) {
            return languages[i].name;
        }
    }
    return text;
}

const char *language_code(const char *name)
{
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        if (strcasecmp(name, languages[i].name) == 0) {
            return languages[i].code;
        }
    }
    return NULL;
}
