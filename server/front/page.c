/* SPDX-License-Identifier: Apache-2.0
 * The files of server/front/page/ as bytes; the assembler reads them. */
#include "server/front/page.h"

#include <string.h>

#define HTML "text/html; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"

/* One file more: a row here, and it is found by its name. */
#define FILES(FILE)                                                                                    \
    FILE(index, "index.html", HTML)                                                                    \
    FILE(docs, "docs.html", HTML)                                                                      \
    FILE(style, "style.css", "text/css; charset=utf-8")                                                \
    FILE(page, "page.js", SCRIPT)                                                                      \
    FILE(server, "server.js", SCRIPT)                                                                  \
    FILE(take, "take.js", SCRIPT)                                                                      \
    FILE(player, "player.js", SCRIPT)                                                                  \
    FILE(stage, "stage.js", SCRIPT)                                                                    \
    FILE(voice, "voice.js", SCRIPT)                                                                    \
    FILE(interface, "docs.js", SCRIPT)

#define BYTES(id, file, type)                                                                          \
    extern const char page_##id[], page_##id##_end[];                                                  \
    __asm__(".section .rodata\n"                                                                       \
            ".global page_" #id "\n"                                                                   \
            ".hidden page_" #id "\n"                                                                   \
            "page_" #id ":\n"                                                                          \
            ".incbin \"server/front/page/" file "\"\n"                                                 \
            ".global page_" #id "_end\n"                                                               \
            ".hidden page_" #id "_end\n"                                                               \
            "page_" #id "_end:\n"                                                                      \
            ".byte 0\n"                                                                                \
            ".previous\n");
FILES(BYTES)

bool page_find(struct page_file *found, const char *name)
{
#define LOOK(id, file, media)                                                                          \
    if (strcmp(name, file) == 0) {                                                                     \
        *found = (struct page_file){media, page_##id, (size_t)(page_##id##_end - page_##id)};          \
        return true;                                                                                   \
    }
    FILES(LOOK)
    return false;
}
