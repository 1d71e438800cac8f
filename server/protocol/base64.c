/* SPDX-License-Identifier: Apache-2.0
 * Base64 by nettle. */
#include "server/protocol/base64.h"

#include <nettle/base64.h>
#include <string.h>

#include "base/memory.h"

json_t *base64_write(const void *bytes, size_t n)
{
    size_t length = BASE64_ENCODE_RAW_LENGTH(n);
    json_malloc_t take;
    json_free_t give_back;
    json_get_alloc_funcs(&take, &give_back); /* whose lack of memory is known to who writes the text */
    char *text = take(length + 1);
    if (!text) {
        return NULL;
    }
    base64_encode_raw(text, n, bytes);
    json_t *json = json_stringn_nocheck(text, length);
    give_back(text);
    return json;
}

void base64_put(struct wire_out *out, const void *bytes, size_t n)
{
    enum { BLOCK = 3 << 9 }; /* whole threes, so that there is no padding between two */
    char text[BASE64_ENCODE_RAW_LENGTH(BLOCK)];
    const uint8_t *at = bytes;
    for (size_t many; n > 0 && !out->failed; at += many, n -= many) {
        many = n < BLOCK ? n : BLOCK;
        base64_encode_raw(text, many, at);
        wire_put(out, text, BASE64_ENCODE_RAW_LENGTH(many));
    }
}

bool base64_read(const char *text, struct wire_out *out)
{
    struct base64_decode_ctx decode;
    const char *comma = strncmp(text, "data:", 5) == 0 ? strchr(text, ',') : NULL;
    text = comma ? comma + 1 : text;
    size_t length = strlen(text), room = BASE64_DECODE_LENGTH(length), n = room;
    uint8_t *bytes = memory_new(room + 1, 1);
    base64_decode_init(&decode);
    bool good =
        bytes && base64_decode_update(&decode, &n, bytes, length, text) && base64_decode_final(&decode);
    if (good) {
        wire_put(out, bytes, n);
    }
    memory_free(bytes);
    out->failed = out->failed || !bytes;
    return good && !out->failed;
}
