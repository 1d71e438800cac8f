/* SPDX-License-Identifier: Apache-2.0
 * What `utter serve` was asked for. */
#ifndef SERVER_SERVE_OPTIONS_H
#define SERVER_SERVE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct serve_options {
    const char *model, *host, *kernels; /* kernels: NULL is the usual */
    const char *const *devices;         /* a worker for each */
    int n_devices;
    int port, threads, lanes, queue;
    int patience_ms; /* who could not be heard so soon is refused */
    bool paced;      /* no more speeches at once than can be made as fast as they are heard */
    int weights;     /* utter_weights */
    uint64_t snapshot_bytes;
    const char *model_hash; /* as utter job knows the model, or NULL: it is not known */
    /* Likewise the hash of a preset, or of the voice in a file: hash[65]. */
    bool (*hash_voice)(char *hash, const char *preset, const char *file);
    /* idle: what nobody waits for has a worker of its own on processors; shared: it has not. */
    const char *background;
    const char *cache;     /* folder for what is learnt of models, or NULL */
    const char *voices;    /* folder of voice files, or NULL */
    const char *key_file;  /* or NULL: no keys */
    const char *voice_map; /* file of names that clients of other services use, or NULL */
    const char *format;    /* response_format of those who name none */
    const char *wyoming;   /* tcp://HOST:PORT, or NULL: not served */
    double idle_minutes;   /* without a speech, until the model's memory is given back; 0: never */
    int opening_s;         /* a worker that has not opened the model by then is replaced; 0: never */
    bool control_tokens;   /* what spells one in a text is one; else its characters */
    int drain_s;
    bool no_cage;  /* who reads what strangers sent keeps all rights */
    bool insecure; /* may listen on any address without keys */
    bool quiet;    /* no log */
};

#endif
