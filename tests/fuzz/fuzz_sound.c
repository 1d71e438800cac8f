/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a sound file: samples that are numbers, or a reason in one line. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audio/sound_read.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

/* The library and its decoders lose a few kilobytes when a file breaks off in its headers. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libsndfile\nleak:libvorbis\nleak:libogg\nleak:libFLAC\nleak:libopus\nleak:libmpg123\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    float *pcm;
    size_t n;
    struct sound_heard heard;
    struct sound_limits limits = {.bytes = 1 << 20, .seconds = 2};
    utter_error error = {.text = ""};
    /* Making a resampler's filter takes longer than all the rest: now and then is enough. */
    int rate = bytes % 8 == 0 ? 24000 : 0;
    utter_status status =
        sound_read_memory(&pcm, &n, &heard, data, bytes, "fuzz", rate, &limits, &error);
    if ((status == UTTER_OK) != (pcm != NULL) || (status == UTTER_OK) != (n > 0) ||
        (status != UTTER_OK && (error.text[0] == 0 || strchr(error.text, '\n')))) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(pcm[i])) {
            abort();
        }
    }
    memory_free(pcm);
    return 0;
}
