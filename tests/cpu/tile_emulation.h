/* SPDX-License-Identifier: Apache-2.0
 * The kernels on tiles for a machine that has none: their table, on tiles in plain C (tile_emulation.c). */
#ifndef TESTS_CPU_TILE_EMULATION_H
#define TESTS_CPU_TILE_EMULATION_H

#include "cpu/kernels/kern.h"

extern const struct kern tiles_emulated;
/* How many times more than it was ended the unit was begun in this thread. */
extern _Thread_local int emulated_begun;

#endif
