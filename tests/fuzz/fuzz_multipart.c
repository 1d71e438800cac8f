/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a form: the first line is the content type, the rest the body. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *feed = bytes ? memchr(data, '\n', bytes) : NULL;
    if (!feed) {
        return 0;
    }
    size_t n = (size_t)(feed - data), rest = bytes - n - 1;
    char *type = malloc(n + 1), *body = malloc(rest ? rest : 1);
    struct multipart form;
    memcpy(type, data, n);
    type[n] = 0;
    memcpy(body, feed + 1, rest);
    if (!multipart_parse(&form, type, body, rest)) {
        for (int i = 0; i < form.n_parts; i++) {
            const struct multipart_part *part = &form.parts[i];
            if (part->data < body || part->data + part->bytes > body + rest ||
                !multipart_find(&form, part->name)) {
                abort();
            }
        }
    }
    free(type);
    free(body);
    return 0;
}
