/* SPDX-License-Identifier: Apache-2.0
 * server/front/page.html as bytes; the assembler reads it. */
#include "server/front/page.h"

extern const char page_end[];

__asm__(".section .rodata\n"
        ".global page_html\n"
        ".hidden page_html\n"
        "page_html:\n"
        ".incbin \"server/front/page.html\"\n"
        ".global page_end\n"
        ".hidden page_end\n"
        "page_end:\n"
        ".byte 0\n"
        ".previous\n");

size_t page_bytes(void)
{
    return (size_t)(page_end - page_html);
}
