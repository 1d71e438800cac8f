/* SPDX-License-Identifier: Apache-2.0
 * Addresses of the internet, as text and as what they reach. */
#ifndef SERVER_ADDRESS_H
#define SERVER_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

void address_text(char *out, size_t size, const struct sockaddr *address);
bool address_is_loopback(const struct sockaddr *address);

#endif
