/* SPDX-License-Identifier: Apache-2.0
 * Cartesia's interface: its paths. */
#ifndef SERVER_CARTESIA_H
#define SERVER_CARTESIA_H

#include "server/loop/routes.h"

extern const struct route cartesia_routes[];

#endif
