/* SPDX-License-Identifier: Apache-2.0
 * A multipart/form-data body, whole in memory, cut into its parts. Pure. */
#ifndef SERVER_MULTIPART_H
#define SERVER_MULTIPART_H

#include <stddef.h>

enum { MULTIPART_MAX_PARTS = 16, MULTIPART_NAME_BYTES = 64 };

struct multipart_part {
    char name[MULTIPART_NAME_BYTES];      /* of the field */
    char file_name[MULTIPART_NAME_BYTES]; /* as sent, cut; "" without one */
    const char *data;                     /* in the body */
    size_t bytes;
};

struct multipart {
    struct multipart_part parts[MULTIPART_MAX_PARTS];
    int n_parts;
};

/* NULL, or what is wrong in one sentence. `content_type` is the header's value. */
const char *multipart_parse(
    struct multipart *form, const char *content_type, const char *body, size_t bytes);
const struct multipart_part *multipart_find(const struct multipart *form, const char *name);

#endif
