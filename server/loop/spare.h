/* SPDX-License-Identifier: Apache-2.0
 * libevent's memory: a small block in hand, for calls of it that take for granted that they get one. */
#ifndef SERVER_SPARE_H
#define SERVER_SPARE_H

#include <stdbool.h>

/* Before the first call of libevent. */
void spare_begin(void);
/* Whether the next allocation of libevent for what is called when a buffer changes will succeed. */
bool spare_keep(void);
void spare_end(void);

#endif
