/* SPDX-License-Identifier: Apache-2.0
 * Unicode normalisation form C as the official tokenizer computes it: that of Unicode 9, so that younger
 * combining characters stay where they are. */
#ifndef TEXT_NFC_H
#define TEXT_NFC_H

#include "text/chars.h"

/* Whether NFC(before + text) is NFC(before) + NFC(text) for every text that begins with this code point. */
bool nfc_border_before(uint32_t code);
/* Whether NFC(text + after) is NFC(text) + NFC(after) for every text that ends with this code point. May
 * say no where yes is true: it knows the characters that end words in common scripts. */
bool nfc_border_after(uint32_t code);

/* Appends NFC of valid UTF-8 to *out. Linear in `bytes`, whatever the marks. */
utter_status nfc_add(struct chars *out, const char *text, size_t bytes, utter_error *error);

#endif
