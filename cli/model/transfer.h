/* SPDX-License-Identifier: Apache-2.0
 * Files over HTTP, by libcurl, which is loaded when it is asked for. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include <stdint.h>

#include "utter.h"

struct transfer;

/* Takes bytes as they come; an error ends the transfer. */
typedef utter_status transfer_sink(void *user, const void *data, size_t bytes, utter_error *error);
/* Asked several times a second; false stops (UTTER_E_CANCELLED). */
typedef bool transfer_alive(void *user);

/* `token` may be NULL; it goes to the host of the address only. */
utter_status transfer_open(struct transfer **transfer, const char *token, transfer_alive *alive,
    void *user, utter_error *error);
void transfer_close(struct transfer **transfer);

/* Asks for the bytes of `url` from `from` on. *from is set to 0 where the server gives all of them. What ends early
 * gives UTTER_AGAIN, with the reason in *error: it may go on after a pause. */
utter_status transfer_get(struct transfer *transfer, const char *url, uint64_t *from,
    transfer_sink *sink, void *user, utter_error *error);

#endif
