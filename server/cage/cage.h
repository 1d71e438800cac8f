/* SPDX-License-Identifier: Apache-2.0
 * What a process of the server gives up for good, so that a fault in it, met by a stranger's text or recording, is no
 * way into the machine. Linux only; each part holds as far as the kernel has it. */
#ifndef SERVER_CAGE_H
#define SERVER_CAGE_H

#include <stdbool.h>

/* Parts of the cage, as a set of bits. */
enum {
    CAGE_FILES = 1,   /* opens only files that are named or that the system needs, and no program */
    CAGE_NETWORK = 2, /* opens no TCP connection and waits for none */
    CAGE_CALLS = 4, /* no socket, no process, no hand on another one or on names and rights of files */
    CAGE_WHOLE = 7,
};

enum { CAGE_MOST_PATHS = 4 };

/* Files, or folders with all that is in them; NULL and what is not there are left out. */
struct cage_files {
    const char *reads[CAGE_MOST_PATHS];
    const char *writes[CAGE_MOST_PATHS];
};

/* Whether a process that opens this device can be caged. Not where the driver of a GPU may come into it: on an H100 it
 * then refused to begin ("OS call failed"), and what it misses is not known. */
bool cage_suits(const char *device);

/* For this thread and all that it starts from now on, so it comes first: before the model's threads. Of a folder to
 * read, what its symbolic links lead to may be read as well. Returns the parts that hold. */
int cage_files(const struct cage_files *files);

/* For all threads of the process, once the model is open. Returns the parts that hold. */
int cage_calls(void);

/* "files, network, calls": names of these parts. "none" without any. */
const char *cage_names(int parts);

#endif
