/* SPDX-License-Identifier: Apache-2.0
 * Calls about descriptors as the server and libevent make them: those of ours are answered here, all others go to the
 * system below. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/sim/kernel_parts.h"

static int fail(int error)
{
    errno = error;
    return -1;
}

/* What a call costs the front end. */
static void spend(size_t bytes)
{
    if (kernel.call_s > 0 && !task_owner()) {
        world_spend(kernel.call_s + kernel.kib_s * (double)bytes / 1024);
    }
}

/* What lies between processes of one machine is lost with one of them only. */
static bool is_of_client(const struct end *e)
{
    return e->most == STREAM_BYTES;
}

/* ---- epoll ---- */

static int epoll_file; /* there is one */

CALL(int, epoll_create1, int flags)
{
    (void)flags;
    epoll_file = file_new(end_new());
    return epoll_file;
}

CALL(int, epoll_ctl, int epoll, int what, int file, struct epoll_event *event)
{
    struct end *e = file_end(file);
    (void)epoll;
    kernel.has_loop = true;
    if (!e) {
        return fail(EBADF);
    }
    if (what != EPOLL_CTL_DEL && is_of_client(e) && call_fails(FAILS_WATCH)) {
        end_excuse(e);
        e->unwatched = e->unwatched || what == EPOLL_CTL_MOD;
        if (what == EPOLL_CTL_ADD && !e->unread) {
            e->unread = true;
            kernel.n_unread++;
        }
        return fail(ENOMEM);
    }
    e->asked = what == EPOLL_CTL_DEL ? 0 : event->events & (EPOLLIN | EPOLLOUT);
    e->epoll_data = event ? event->data.u64 : 0;
    end_touch(e);
    return 0;
}

/* Those that are ready now, in the order in which they came, or another one. */
static int take_listed(struct epoll_event *events, int most)
{
    int n = 0, looked = kernel.n_listed;
    for (int i = 0; i < looked && n < most; i++) {
        struct end *e = kernel.listed[0];
        int n_left = --kernel.n_listed;
        memmove(&kernel.listed[0], &kernel.listed[1], sizeof *kernel.listed * (size_t)n_left);
        e->listed = false;
        uint32_t ready = end_ready(e) & e->asked;
        if (ready) {
            events[n++] = (struct epoll_event){ready, {.u64 = e->epoll_data}};
            e->listed = true; /* until it is looked at again */
            kernel.listed[kernel.n_listed++] = e;
        }
    }
    for (int i = n - 1; i > 0; i--) {
        int k = draw_below(i + 1);
        struct epoll_event kept = events[i];
        events[i] = events[k];
        events[k] = kept;
    }
    return n;
}

CALL(int, epoll_wait, int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    int64_t until = world_now_ns() + (int64_t)timeout_ms * 1000000;
    int n;
    (void)epoll;
    spend(0);
    if (kernel.n_unread > 0) {
        world_fail("a connection is kept that the system does not watch");
    }
    while ((n = take_listed(events, most)) == 0) {
        if (timeout_ms >= 0 && world_now_ns() >= until) {
            return 0;
        }
        if (kernel.look) {
            kernel.look();
        }
        kernel.poller = task_self();
        timeout_ms < 0 ? task_wait() : task_wait_until(until);
        kernel.poller = NULL;
    }
    return n;
}

/* ---- Reading and writing ---- */

static ssize_t read_end(struct end *e, uint8_t *bytes, size_t n, bool wait)
{
    while (wait && end_waiting(e) == 0 && !e->ended) {
        end_wait(e, -1);
    }
    if (is_of_client(e) && call_fails(FAILS_READ)) {
        end_lose(e);
        return fail(ECONNRESET);
    }
    spend(n < end_waiting(e) ? n : end_waiting(e));
    if (end_waiting(e) == 0) {
        return e->reset ? fail(ECONNRESET) : e->ended ? 0 : fail(EAGAIN);
    }
    return (ssize_t)end_get(e, bytes, n);
}

static ssize_t write_end(struct end *e, const uint8_t *bytes, size_t n, bool wait)
{
    spend(n);
    while (wait && e->peer && end_room(e) < (n < LOCAL_BYTES ? n : LOCAL_BYTES)) {
        end_wait(e, -1);
    }
    if (is_of_client(e) && call_fails(FAILS_WRITE)) {
        end_lose(e);
    }
    if (!e->peer || e->shut) {
        return fail(EPIPE);
    }
    size_t put = end_put(e, bytes, n);
    return put > 0 || n == 0 ? (ssize_t)put : fail(EAGAIN);
}

CALL(ssize_t, read, int file, void *bytes, size_t n)
{
    struct end *e = file_end(file);
    return e ? read_end(e, bytes, n, task_owner() != NULL) : __real_read(file, bytes, n);
}

CALL(ssize_t, write, int file, const void *bytes, size_t n)
{
    struct end *e = file_end(file);
    return e ? write_end(e, bytes, n, task_owner() != NULL) : __real_write(file, bytes, n);
}

CALL(ssize_t, readv, int file, const struct iovec *parts, int n_parts)
{
    struct end *e = file_end(file);
    ssize_t total = 0;
    if (!e) {
        return __real_readv(file, parts, n_parts);
    }
    for (int i = 0; i < n_parts; i++) {
        ssize_t n = parts[i].iov_len ? read_end(e, parts[i].iov_base, parts[i].iov_len, false) : 0;
        if (n < 0) {
            return total > 0 ? total : n;
        }
        total += n;
        if ((size_t)n < parts[i].iov_len || end_waiting(e) == 0) {
            break;
        }
    }
    return total;
}

CALL(ssize_t, writev, int file, const struct iovec *parts, int n_parts)
{
    static uint8_t joined[STREAM_BYTES];
    struct end *e = file_end(file);
    size_t n = 0;
    if (!e) {
        return __real_writev(file, parts, n_parts);
    }
    for (int i = 0; i < n_parts && n < sizeof joined; i++) {
        size_t more = parts[i].iov_len < sizeof joined - n ? parts[i].iov_len : sizeof joined - n;
        memcpy(joined + n, parts[i].iov_base, more);
        n += more;
    }
    return write_end(e, joined, n, false);
}

CALL(ssize_t, recv, int file, void *bytes, size_t n, int flags)
{
    struct end *e = file_end(file);
    if (e && (flags & MSG_PEEK)) { /* only whether there is something */
        return end_waiting(e) > 0 ? 1 : fail(EAGAIN);
    }
    return e ? read_end(e, bytes, n, task_owner() && !(flags & MSG_DONTWAIT))
             : __real_recv(file, bytes, n, flags);
}

CALL(ssize_t, send, int file, const void *bytes, size_t n, int flags)
{
    struct end *e = file_end(file);
    return e ? write_end(e, bytes, n, task_owner() && !(flags & MSG_DONTWAIT))
             : __real_send(file, bytes, n, flags);
}

/* Of one descriptor, for reading: what the worker waits with. */
CALL(int, poll, struct pollfd *polled, nfds_t n, int timeout_ms)
{
    struct end *e = n == 1 ? file_end(polled->fd) : NULL;
    int64_t until = world_now_ns() + (int64_t)timeout_ms * 1000000;
    if (!e) {
        return __real_poll(polled, n, timeout_ms);
    }
    while (!(end_ready(e) & EPOLLIN)) {
        if (timeout_ms >= 0 && world_now_ns() >= until) {
            return 0;
        }
        end_wait(e, timeout_ms < 0 ? -1 : until);
    }
    polled->revents = POLLIN;
    return 1;
}

/* ---- Making and closing ---- */

CALL(int, close, int file)
{
    if (!file_end(file)) {
        return __real_close(file);
    }
    spend(0);
    file_close(file);
    return 0;
}

static int new_pair(int files[2])
{
    if (call_fails(FAILS_PAIR)) {
        return fail(EMFILE);
    }
    struct end *a = end_new(), *b = end_new();
    ends_join(a, b);
    a->most = b->most = LOCAL_BYTES;
    files[0] = file_new(a);
    files[1] = file_new(b);
    return 0;
}

CALL(int, socketpair, int domain, int type, int protocol, int files[2])
{
    (void)domain, (void)type, (void)protocol;
    return new_pair(files);
}

CALL(int, pipe2, int files[2], int flags)
{
    (void)flags;
    return new_pair(files);
}

CALL(int, socket, int domain, int type, int protocol)
{
    (void)domain, (void)type, (void)protocol;
    return file_new(end_new());
}

CALL(int, bind, int file, const struct sockaddr *address, socklen_t n)
{
    (void)file, (void)address, (void)n;
    return 0;
}

CALL(int, listen, int file, int backlog)
{
    struct end *e = file_end(file);
    (void)backlog;
    e->listens = true;
    kernel.listening = e;
    return 0;
}

static void put_address(struct sockaddr *to, socklen_t *n, uint32_t address)
{
    const struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(8080), .sin_addr = {htonl(address)}};
    memcpy(to, &in, sizeof in);
    *n = sizeof in;
}

CALL(int, accept4, int file, struct sockaddr *address, socklen_t *n, int flags)
{
    (void)flags;
    spend(0);
    if (!file_end(file) || kernel.n_pending == 0) {
        return fail(EAGAIN);
    }
    kernel.refuses = call_fails(FAILS_ACCEPT);
    if (kernel.refuses) { /* who has come waits */
        return fail(EMFILE);
    }
    struct end *e = kernel.pending[0];
    memmove(&kernel.pending[0], &kernel.pending[1], sizeof e * (size_t)--kernel.n_pending);
    put_address(address, n, e->address);
    return file_new(e);
}

CALL(int, getsockname, int file, struct sockaddr *address, socklen_t *n)
{
    (void)file;
    put_address(address, n, INADDR_LOOPBACK);
    return 0;
}

/* What others have left in the folder for temporary files is not of this world: it is empty. */
CALL(DIR *, opendir, const char *path)
{
    if (strcmp(path, P_tmpdir) == 0) {
        errno = ENOENT;
        return NULL;
    }
    return __real_opendir(path);
}

/* ---- What they are told ---- */

CALL(int, setsockopt, int file, int level, int name, const void *value, socklen_t n)
{
    struct end *e = file_end(file);
    (void)n;
    if (e && level == SOL_SOCKET && name == SO_RCVLOWAT) {
        memcpy(&e->low_water, value, sizeof e->low_water);
        end_touch(e);
    }
    if (e && level == SOL_SOCKET && name == SO_ATTACH_FILTER) { /* the only one that there is */
        e->shuts_out = true;
    }
    return 0;
}

CALL(int, shutdown, int file, int how)
{
    struct end *e = file_end(file), *peer = e ? e->peer : NULL;
    if (!e) {
        return __real_shutdown(file, how);
    }
    e->shut = true;
    if (how == SHUT_RDWR) {
        e->ended = true;
        end_touch(e);
    }
    if (peer) {
        peer->ended = true;
        peer->watch ? peer->watch->came(peer->user) : end_touch(peer);
    }
    return 0;
}

int __real_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...)
{
    va_list list;
    va_start(list, command);
    long value = va_arg(list, long);
    va_end(list);
    return file_end(file) ? 0 : __real_fcntl(file, command, value);
}

int __real_ioctl(int file, unsigned long command, ...);
int __wrap_ioctl(int file, unsigned long command, ...);
int __wrap_ioctl(int file, unsigned long command, ...)
{
    va_list list;
    va_start(list, command);
    int *value = va_arg(list, int *);
    va_end(list);
    struct end *e = file_end(file);
    if (!e) {
        return __real_ioctl(file, command, value);
    }
    *value = (int)end_waiting(e);
    return 0;
}
