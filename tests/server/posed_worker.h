/* SPDX-License-Identifier: Apache-2.0
 * The loop of a worker that a test poses: it takes the front end's messages, and sends what the test answers. */
#ifndef TESTS_SERVER_POSED_WORKER_H
#define TESTS_SERVER_POSED_WORKER_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "server/protocol/wire.h"

/* Writes what the worker says to this message, or nothing. */
typedef void posed_answer(struct wire_out *out, const struct wire_message *m);

static inline void posed_send(int socket, struct wire_out *out)
{
    for (size_t at = 0; at < out->n;) {
        ssize_t n = send(socket, out->bytes + at, out->n - at, MSG_NOSIGNAL);
        if (n <= 0) {
            exit(1);
        }
        at += (size_t)n;
    }
    wire_fini(out);
}

/* Until the front end has gone; returns the exit code. */
static inline int posed_worker(int socket, posed_answer *answer)
{
    static uint8_t in[1 << 16];
    size_t n_in = 0, used;
    struct wire_message m;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also while it stands still */
    for (ssize_t n; (n = recv(socket, in + n_in, sizeof in - n_in, 0)) > 0;) {
        n_in += (size_t)n;
        while (wire_read(&m, in, n_in, &used) == WIRE_MESSAGE) {
            struct wire_out out = {0};
            answer(&out, &m);
            posed_send(socket, &out);
            n_in -= used;
            memmove(in, in + used, n_in);
        }
    }
    return 0;
}

#endif
