/* SPDX-License-Identifier: Apache-2.0
 * How much of the memory that a GPU shares with the system is to be had. What the runtime tells as free does not count
 * what the kernel keeps of files and gives back when somebody asks; what it tells as available does. Plain C without
 * CUDA: a test reads it too. */
#ifndef CUDA_DEVICE_UNIFIED_H
#define CUDA_DEVICE_UNIFIED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* That stays the system's, and other programs': an eighth, but these at least and at most. */
#define CUDA_SYSTEM_LEAST ((uint64_t)1 << 30)
#define CUDA_SYSTEM_MOST ((uint64_t)4 << 30)

static inline uint64_t cuda_system_bytes(uint64_t total)
{
    const uint64_t part = total / 8;
    return part < CUDA_SYSTEM_LEAST  ? CUDA_SYSTEM_LEAST
           : part > CUDA_SYSTEM_MOST ? CUDA_SYSTEM_MOST
                                     : part;
}

/* meminfo: as /proc/meminfo has it; total: bytes of all. False: it does not tell. */
static inline bool cuda_unified_bytes(const char *meminfo, uint64_t total, uint64_t *bytes)
{
    static const char NAME[] = "MemAvailable:";
    const char *line = strstr(meminfo, NAME);
    if (!line || (line > meminfo && line[-1] != '\n')) {
        return false;
    }
    const uint64_t available = (uint64_t)strtoull(line + sizeof NAME - 1, NULL, 10) << 10,
                   kept = cuda_system_bytes(total), most = available < total ? available : total;
    *bytes = most > kept ? most - kept : 0;
    return true;
}

#endif
