/* SPDX-License-Identifier: Apache-2.0
 * A sound that is answered whole: it is put together first, so that its status, its length and its header are true. The
 * beginning is kept in memory, what is more in a file without a name. */
#ifndef SERVER_CONN_WHOLE_H
#define SERVER_CONN_WHOLE_H

#include "server/loop/conn/conn.h"
#include "server/protocol/wire.h"

/* Zero it before use. */
struct conn_whole {
    struct server *server;
    struct wire_out memory; /* its first bytes: more than a header of any format has */
    int file;               /* of those behind them, where has_file */
    bool has_file;
    size_t n;      /* of all bytes */
    size_t beside; /* bytes that are kept with it and count as its memory does: its words */
};

/* Begins a sound of about so many bytes. False: neither memory nor the folder for temporary files (TMPDIR) has room for
 * it, and *refusal says so before anything is made. */
bool conn_whole_begin(struct conn_whole *w, struct server *s, double expected, struct refusal *refusal);
/* False, with *refusal: there is no room after all. */
bool conn_whole_put(struct conn_whole *w, const void *bytes, size_t n, struct refusal *refusal);
/* So many bytes are kept beside it now. False, with *refusal: there is no room. */
bool conn_whole_beside(struct conn_whole *w, size_t bytes, struct refusal *refusal);
void conn_whole_fini(struct conn_whole *w); /* accepts a zeroed one */

/* Bytes at .. at + n, which it has. False: the file has lost them. */
bool conn_whole_take(const struct conn_whole *w, size_t at, uint8_t *bytes, size_t n);

#endif
