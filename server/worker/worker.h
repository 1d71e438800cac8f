/* SPDX-License-Identifier: Apache-2.0
 * The process that owns the model: takes messages (wire.h) from one socket, speaks, and sends samples back. */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

/* Serves the socket until its other end closes; returns the exit code of the process. */
int worker_main(int socket);

#endif
