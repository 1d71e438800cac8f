/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a text that is cut into pieces: the first byte says how long these may be, the second in what pieces the
 * text comes. Pieces follow each other, only white space is between them, and how the text came changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reading/cut.h"
#include "reading/marks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What two ways of giving a text must have in common. */
struct sum {
    size_t n, at, hash;
};

static void take(struct cutter *c, struct sum *sum, const char *text)
{
    struct cut_piece p;
    uint32_t code;
    while (cutter_next(c, &p)) {
        if (p.at < sum->at || (p.bytes == 0 && !p.last && sum->n > 0)) {
            abort();
        }
        for (size_t length; sum->at < p.at; sum->at += length) {
            length = marks_get(text + sum->at, p.at - sum->at, &code);
            if (!marks_is_white(code)) {
                abort();
            }
        }
        sum->n++;
        sum->at = p.at + p.bytes;
        for (size_t i = 0; i < p.text_bytes; i++) {
            sum->hash = sum->hash * 31 + (uint8_t)p.text[i];
        }
        sum->hash = sum->hash * 31 + (size_t)p.end;
    }
}

static struct sum cut(const char *text, size_t bytes, size_t most, size_t step)
{
    struct cutter c = {.most = most};
    struct sum sum = {0};
    for (size_t at = 0; at < bytes; at += step) {
        if (cutter_text(&c, text + at, bytes - at < step ? bytes - at : step, NULL) != UTTER_OK) {
            abort();
        }
        take(&c, &sum, text);
    }
    cutter_finish(&c);
    take(&c, &sum, text);
    if (!cutter_is_done(&c)) {
        abort();
    }
    cutter_fini(&c);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) {
        return 0;
    }
    const char *text = (const char *)data + 2;
    size_t n = bytes - 2, most = 8 + data[0];
    struct sum whole = cut(text, n, most, n + 1), again = cut(text, n, most, 1 + data[1] % 16);
    bool bad;
    /* A character that is no character may be cut otherwise. */
    if (utf8_valid(text, n, &bad) == n && memcmp(&whole, &again, sizeof whole) != 0) {
        abort();
    }
    return 0;
}
