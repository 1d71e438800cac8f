/* SPDX-License-Identifier: Apache-2.0
 * IPv4 and IPv6. */
#include "server/loop/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

void address_text(char *out, size_t size, const struct sockaddr *address)
{
    const void *bytes =
        address->sa_family == AF_INET6
            ? (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr
            : (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    if (!inet_ntop(address->sa_family, bytes, out, (socklen_t)size)) {
        snprintf(out, size, "?");
    }
}

bool address_is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) {
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    }
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}
