/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as the configs of a model: config.json, generation_config.json and the codec's, with a line "--" between
 * them, as members of a model in one file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weights/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { N_MEMBERS = 3 };
static const char *const names[N_MEMBERS] = {
    "config.json", "generation_config.json", "speech_tokenizer/config.json"};

static void put(int fd, const void *bytes, size_t n)
{
    if (write(fd, bytes, n) != (ssize_t)n) {
        exit(1);
    }
}

/* Returns the descriptor of a safetensors file whose tensors are the members. */
static int write_container(const uint8_t *data, size_t bytes)
{
    char header[512];
    size_t at = 0, from = 0;
    for (int i = 0; i < N_MEMBERS; i++) {
        const uint8_t *line = from < bytes ? memmem(data + from, bytes - from, "\n--\n", 4) : NULL;
        size_t to = line && i < N_MEMBERS - 1 ? (size_t)(line - data) : bytes;
        at += (size_t)snprintf(header + at, sizeof header - at,
            "%c\"file/%s\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}",
            i ? ',' : '{', names[i], to - from, from, to);
        from = to + 4 < bytes ? to + 4 : bytes;
    }
    header[at++] = '}';
    uint64_t n = at;
    int fd = memfd_create("fuzz", 0);
    put(fd, &n, sizeof n);
    put(fd, header, at);
    put(fd, data, bytes);
    return fd;
}

static bool is_stack(const struct stack_config *s)
{
    return s->width > 1 && s->inner > 0 && s->n_layers > 0 && s->head > 1 && s->head % 2 == 0 &&
           s->n_kv_heads > 0 && s->n_heads % s->n_kv_heads == 0 && s->norm_eps > 0;
}

static void check(const struct config *c)
{
    bool good = is_stack(&c->talker) && is_stack(&c->predictor) && is_stack(&c->codec.stack) &&
                c->n_codebooks == c->codec.n_codebooks && c->codec.frame_samples > 0 &&
                c->codec_eos < c->codec_vocabulary && c->tts_eos < c->text_vocabulary;
    for (int i = 0; i < c->n_voices; i++) {
        good = good && c->voices[i].id >= 0 && c->voices[i].id < c->codec_vocabulary &&
               config_find(c->voices, c->n_voices, c->voices[i].name) >= 0;
    }
    if (!good) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[64];
    utter_error error = {.text = ""};
    struct config *config = NULL;
    int fd = write_container(data, bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    utter_status status = config_open(&config, path, &error);
    if ((status == UTTER_OK) != (config != NULL) ||
        (status != UTTER_OK && (!error.text[0] || strchr(error.text, '\n')))) {
        abort();
    }
    if (config) {
        check(config);
    }
    config_close(&config);
    close(fd);
    return 0;
}
