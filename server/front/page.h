/* SPDX-License-Identifier: Apache-2.0
 * The page at "/", built into the program. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include <stddef.h>

extern const char page_html[];
size_t page_bytes(void);

#endif
