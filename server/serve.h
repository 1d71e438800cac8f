/* SPDX-License-Identifier: Apache-2.0
 * `utter serve`: what the program calls. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include <stdbool.h>
#include <stdint.h>

struct serve_options {
    const char *model, *host, *device, *kernels; /* kernels: NULL is the usual */
    int port, threads, lanes, queue;
    bool paced;  /* no more speeches at once than can be made as fast as they are heard */
    int weights; /* utter_weights */
    uint64_t snapshot_bytes;
    const char *voices;   /* folder of voice files, or NULL */
    const char *key_file; /* or NULL: no keys */
    const char *format;   /* response_format of those who name none */
    int drain_s;
    bool insecure; /* may listen on any address without keys */
    bool quiet;    /* no log */
};

/* Serves until a signal ends it; returns the exit code. Messages have been printed by then. */
int serve_run(const struct serve_options *options);

/* The commands that the server starts itself with: "serve-worker SOCKET" and "serve-clone MODEL SOUND OUT NAME
 * TRANSCRIPT". -1 when the arguments name none of them, else the exit code. */
int serve_child(int n, char **arguments);

#endif
