/* SPDX-License-Identifier: Apache-2.0
 * Another process of this program. */
#ifndef SERVER_SPAWN_H
#define SERVER_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

enum { SPAWN_SOCKET = 3 };

/* Starts this program again with the arguments; `socket`, or -1, stays open in it as SPAWN_SOCKET. stderr goes to
 * `error_pipe` unless -1. The id, or -1 and errno. */
pid_t spawn_program(char *const *arguments, int socket, int error_pipe);

/* The process, a child, stands still at once with all of its threads, or goes on. False: it cannot. */
bool spawn_still(pid_t pid, bool still);

#endif
