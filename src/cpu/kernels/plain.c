/* SPDX-License-Identifier: Apache-2.0
 * The kernels as the plain set: what every machine runs, and the specification of the others. */
#define KERN_TABLE kern_c
#define KERN_NAME "c"
#include "cpu/kernels/body.h"
