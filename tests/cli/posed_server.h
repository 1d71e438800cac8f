/* SPDX-License-Identifier: Apache-2.0
 * An HTTP server that a thread poses, on a port of this machine alone: one answer a connection. */
#ifndef TESTS_CLI_POSED_SERVER_H
#define TESTS_CLI_POSED_SERVER_H

#include "tests/support.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What is sent to who asks so, in *bytes; called by the server's thread. */
typedef const char *server_answer(const char *request, size_t *bytes);

static struct {
    int listener, port;
    pthread_t thread;
    server_answer *answer;
} server;

static inline void server_answer_one(int fd)
{
    char request[2048];
    size_t n = 0;
    do {
        ssize_t got = recv(fd, request + n, sizeof request - 1 - n, 0);
        if (got <= 0) {
            return;
        }
        request[n += (size_t)got] = 0;
    } while (!strstr(request, "\r\n\r\n"));
    size_t left;
    const char *answer = server.answer(request, &left);
    while (left > 0) {
        ssize_t sent = send(fd, answer, left, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        answer += sent;
        left -= (size_t)sent;
    }
}

static inline void *server_run(void *unused)
{
    for (int fd; (fd = accept(server.listener, NULL, NULL)) >= 0;) {
        server_answer_one(fd);
        close(fd);
    }
    return unused;
}

/* A port of this machine alone. */
static inline int server_take_port(int *listener)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    *listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(*listener, (struct sockaddr *)&at, size) == 0 &&
                   getsockname(*listener, (struct sockaddr *)&at, &size) == 0
               ? ntohs(at.sin_port)
               : 0;
}

/* 0, or what a setup gives back that failed. */
static inline int server_start(server_answer *answer)
{
    server.answer = answer;
    server.port = server_take_port(&server.listener);
    return !server.port || listen(server.listener, 8) != 0 || setenv("no_proxy", "*", 1) ||
           pthread_create(&server.thread, NULL, server_run, NULL);
}

static inline int server_end(void **state)
{
    (void)state;
    shutdown(server.listener, SHUT_RDWR);
    pthread_join(server.thread, NULL);
    close(server.listener);
    return 0;
}

/* Where there is no libcurl, nothing can be asked for. */
static inline bool server_can_be_asked(void)
{
    return dlopen("libcurl.so.4", RTLD_NOW) || dlopen("libcurl-gnutls.so.4", RTLD_NOW);
}

#endif
