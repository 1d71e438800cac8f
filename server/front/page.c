/* SPDX-License-Identifier: Apache-2.0
 * server/front/page.html and docs.html as bytes; the assembler reads them. */
#include "server/front/page.h"

#define BYTES_OF(name)                                                                                 \
    extern const char name##_end[];                                                                    \
    __asm__(".section .rodata\n"                                                                       \
            ".global " #name "_html\n"                                                                 \
            ".hidden " #name "_html\n" #name "_html:\n"                                                \
            ".incbin \"server/front/" #name ".html\"\n"                                                \
            ".global " #name "_end\n"                                                                  \
            ".hidden " #name "_end\n" #name "_end:\n"                                                  \
            ".byte 0\n"                                                                                \
            ".previous\n");                                                                            \
    size_t name##_bytes(void)                                                                          \
    {                                                                                                  \
        return (size_t)(name##_end - name##_html);                                                     \
    }

BYTES_OF(page)
BYTES_OF(docs)
