/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a voice file. In inputs of even length a seal is made right first, so that what lies behind it is
 * reached. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "tests/fuzz/took.h"
#include "voice/voice_file.h"
#include "weights/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void seal(uint8_t *file, size_t bytes)
{
    size_t at = seal_find(file, bytes);
    if (at) {
        memcpy(file + at, SEAL_EMPTY, SEAL_DIGITS);
        seal_digits((char *)file + at, XXH64(file, bytes, 0));
    }
}

static void check(const utter_voice *v)
{
    bool codes = v->codes != NULL;
    if (!v->name || v->width < 1 || codes != (v->n_frames > 0) || codes != (v->transcript != NULL) ||
        codes != (v->kind == VOICE_CONTEXT)) {
        abort();
    }
    for (int i = 0; i < v->width; i++) {
        if (!isfinite(v->vector[i])) {
            abort();
        }
    }
    int64_t sum = 0;
    for (int64_t i = 0; i < (int64_t)v->n_frames * v->n_codebooks; i++) {
        sum += v->codes[i];
    }
    if (sum < INT32_MIN * (int64_t)v->n_frames * v->n_codebooks) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[64];
    utter_error error = {.text = ""};
    utter_voice *voice = NULL;
    uint8_t *copy = memory_new(bytes, 1);
    int fd = memfd_create("fuzz", 0);
    if (!copy || fd < 0) {
        exit(1);
    }
    if (bytes) {
        memcpy(copy, data, bytes);
    }
    if (bytes % 2 == 0) {
        seal(copy, bytes);
    }
    if (write(fd, copy, bytes) != (ssize_t)bytes) {
        exit(1);
    }
    memory_free(copy);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    utter_status status = voice_load(&voice, path, &error);
    if ((status == UTTER_OK) != (voice != NULL) ||
        (status != UTTER_OK && (!error.text[0] || strchr(error.text, '\n')))) {
        abort();
    }
    if (voice) {
        check(voice);
        replay_takes();
    }
    voice_free(&voice);
    close(fd);
    return 0;
}
