/* SPDX-License-Identifier: Apache-2.0
 * The devices that `utter serve --device` names: a worker for each. Pure.
 *
 *     auto  cpu  cuda  cuda:1  cuda:all  cpu:0-7  cuda:0,cuda:1  cpu:0-3,8-11,cpu:4-7,12-15
 *
 * What begins with a digit behind a comma belongs to the set of cores before it. */
#ifndef SERVER_DEVICES_H
#define SERVER_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEVICES_MOST = 64, DEVICES_CORES = 4096 };

struct devices {
    int n;
    const char *names[DEVICES_MOST]; /* in `text` */
    char text[4096];
};

/* n_gpus: that cuda:all stands for. False: why[size] says what is wrong with the list. Names of devices are looked at
 * only where they are of sets of cores: the library knows the others, and only it whether two of them (`cuda,cuda:0`)
 * are one device. */
bool devices_parse(struct devices *devices, const char *list, int n_gpus, char *why, size_t size);

/* One bit for each core of the system. */
struct devices_cores {
    uint64_t bits[DEVICES_CORES / 64];
};

/* The cores of "cpu:SET"; false: the device is no such set. */
bool devices_cores(struct devices_cores *cores, const char *device);

/* How many threads a worker for the set of cores `device` has, where all may use n_cores together: control groups may
 * pay for fewer than the sets have. 0: one for each core. */
int devices_threads(const char *device, const char *const *names, int n, int n_cores);

#endif
