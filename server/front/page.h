/* SPDX-License-Identifier: Apache-2.0
 * The pages at "/" and "/docs", built into the program. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include <stddef.h>

extern const char page_html[];
size_t page_bytes(void);
extern const char docs_html[];
size_t docs_bytes(void);

#endif
